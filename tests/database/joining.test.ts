/**
 * Joining a store that is open: beside others who join, and killed at any call of the file system on the way
 * (src/attach/join-beside.ts). Nobody who has the store open notices.
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { open } from "../../src/database/open.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { KILLED_AT_CALL } from "../helpers/killed-at-call.ts";
import { MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });

/** All that joining calls. */
const CALLS = [
  "openSync",
  "closeSync",
  "futimesSync",
  "fstatSync",
  "ftruncateSync",
  "lstatSync",
  "readdirSync",
  "readFileSync",
];
/** So many of the steps are tried, evenly spread. */
const STEPS = Number(process.env.SITU_CRASH_STEPS ?? 12);
const CROWD = 12;

/** Joins, commits and leaves; tells how many calls of the file system it took to join. */
const JOINING_CHILD = `${KILLED_AT_CALL}
  const { path, id } = data;
  const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
  calls = 0;
  const db = await situ.open({ path, tables: [Cell], timeoutMs: 60_000 });
  const joined = calls;
  db.transactSync((tx) => tx.put(Cell, { id, value: id }));
  await db.close();
  return joined;`;

async function joinAndLeave(path: string, id: number, at = -1): Promise<number | "killed"> {
  const data = { path, id, at, changes: CALLS, script: import.meta.url };
  const { result, signal, error } = await runChild(stores, JOINING_CHILD, data);
  if (signal === "SIGKILL") return "killed";
  expect(error).toBeUndefined();
  return result as number;
}

function isSealed(path: string): boolean {
  return existsSync(join(memoryOf(path), "seal"));
}

describe.each(["none", "lazy"] as const)("durability: %s", (durability) => {
  const options = { tables: [Cell], memoryBytes: 8 * MIB, durability };

  it("a process killed while it joins leaves nothing that others would notice", async () => {
    const path = stores.folder();
    const db = await open({ path, ...options });
    const calls = (await joinAndLeave(path, 0)) as number;
    expect(calls).toBeGreaterThan(10);
    const step = Math.max(1, calls / STEPS);
    let next = 1;
    for (let at = 0; at < calls; at += step) {
      expect(await joinAndLeave(path, next, Math.floor(at))).toBe("killed");
      db.transactSync((tx) => tx.put(Cell, { id: next, value: next }));
      next++;
    }
    // Whoever comes after them joins as before.
    expect(await joinAndLeave(path, next)).toBeGreaterThan(10);
    expect(db.count(Cell)).toBe(next + 1);
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
    expect((await reopened(path)).length).toBe(next + 1);
  });

  it("many join a closed store at once, beside one that changes its size", async () => {
    const path = stores.folder();
    await (await open({ path, ...options })).close();
    expect(isSealed(path)).toBe(true);
    const crowd = Array.from({ length: CROWD }, (_, id) => joinAndLeave(path, id));
    const db = await open({ path, tables: [Cell], timeoutMs: 60_000 });
    await db.resize(16 * MIB);
    for (const joined of await Promise.all(crowd)) expect(joined).not.toBe("killed");
    expect(db.count(Cell)).toBe(CROWD);
    expect(isSealed(path)).toBe(false);
    await db.close();
    expect(isSealed(path)).toBe(true);
    expect((await reopened(path)).length).toBe(CROWD);
  });

  async function reopened(path: string): Promise<unknown[]> {
    const db = await open({ path, tables: [Cell] });
    const rows = db.scan(Cell).toArray();
    await db.close();
    return rows;
  }
});
