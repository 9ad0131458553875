/**
 * A process that dies at any step of creating a store, of rebuilding it, or of breaking and making its seal: the
 * next one opens it, with all that was acknowledged, and nothing is left of the attempt. The child counts its calls of the file
 * system and kills itself at one of them.
 */

import { existsSync, readdirSync, rmSync } from "node:fs";
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

/** Calls that change something on disk or in memory. */
const CHANGES = [
  "mkdirSync",
  "renameSync",
  "writeFileSync",
  "ftruncateSync",
  "rmSync",
  "writevSync",
];
/** So many of the steps are tried, evenly spread; all of them take a minute or two. */
const STEPS = Number(process.env.SITU_CRASH_STEPS ?? 10);

const CHILD = `${KILLED_AT_CALL}
  const { path, memoryDir } = data;
  const db = await situ.open({ path, memoryDir, memoryBytes: 8 << 20, durability: "sync" });
  const made = calls;
  await db.close();
  return made;`;

/** Opens a store that is sealed, changes it, and seals it again. */
const SEALING_CHILD = `${KILLED_AT_CALL}
  const { path, memoryDir, at } = data;
  const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
  const db = await situ.open({ path, memoryDir, tables: [Cell], durability: "none" });
  const opened = calls;
  db.transactSync((tx) => tx.put(Cell, { id: 1_000, value: at + 1 }));
  await db.close();
  return { opened, closed: calls };`;

interface Place {
  readonly path: string;
  readonly memoryDir: string;
}

function newPlace(): Place {
  return { path: stores.folder(), memoryDir: stores.folder() };
}

async function runTo<Result = number>(
  at: number,
  place: Place,
  child = CHILD,
): Promise<Result | "killed"> {
  const data = { ...place, at, changes: CHANGES, script: import.meta.url };
  const { result, signal, error } = await runChild(stores, child, data, 60_000);
  if (signal === "SIGKILL") return "killed";
  expect(error).toBeUndefined();
  return result as Result;
}

/** Numbers of the calls at which the child is to die. */
function stepsOf(calls: number): number[] {
  const step = Math.max(1, calls / STEPS);
  const steps = new Set<number>();
  for (let at = 0; at < calls; at += step) steps.add(Math.floor(at));
  return [...steps];
}

async function expectSound({ path, memoryDir }: Place, rows: number): Promise<void> {
  const db = await open({ path, memoryDir, tables: [Cell], memoryBytes: 8 * MIB });
  expect(db.count(Cell)).toBe(rows);
  await db.close();
  expect(readdirSync(memoryDir)).toHaveLength(1);
}

describe("killed at a step", () => {
  it("of creating a store", async () => {
    const calls = await runTo(-1, newPlace());
    expect(calls).toBeGreaterThan(5);
    for (const at of stepsOf(calls as number)) {
      const place = newPlace();
      expect(await runTo(at, place)).toBe("killed");
      await expectSound(place, 0);
    }
  });

  it("of rebuilding one", async () => {
    const place = newPlace();
    const db = await open({ ...place, tables: [Cell], memoryBytes: 8 * MIB, durability: "sync" });
    for (let id = 0; id < 100; id++) db.transactSync((tx) => tx.put(Cell, { id, value: id }));
    await db.close();
    const lose = (): void => rmSync(memoryOf(place.path), { recursive: true, force: true });
    lose();
    const calls = await runTo(-1, place);
    expect(calls).toBeGreaterThan(5);
    for (const at of stepsOf(calls as number)) {
      lose();
      const outcome = await runTo(at, place);
      // How many calls the log's thread makes at the end is not the same in each run.
      if (at < (calls as number) / 2) expect(outcome).toBe("killed");
      await expectSound(place, 100);
    }
  });

  it("of opening and closing one that is sealed", async () => {
    const place = newPlace();
    // Without a log, so that nothing is rebuilt: damage would be an error.
    const options = { ...place, tables: [Cell], memoryBytes: 8 * MIB, durability: "none" } as const;
    const rewrite = async (value: number): Promise<void> => {
      const db = await open(options);
      db.transactSync((tx) => tx.put(Cell, { id: 1_000, value }));
      await db.close();
    };
    const seal = (): string => join(memoryOf(place.path), "seal");
    await rewrite(0);
    const counted = await runTo<{ opened: number; closed: number }>(-1, place, SEALING_CHILD);
    if (counted === "killed") throw new Error("the child was to live");
    const { opened, closed } = counted;
    expect(opened).toBeGreaterThan(0);
    expect(closed).toBeGreaterThan(opened + 2);
    for (let at = 0; at < closed; at++) {
      await rewrite(0);
      expect(existsSync(seal())).toBe(true);
      expect(await runTo(at, place, SEALING_CHILD), `at ${at}`).toBe("killed");
      const db = await open(options);
      // What was committed before the process died is there, and memory that has changed is not called damaged.
      expect(db.get(Cell, 1_000)?.value, `at ${at}`).toBe(at < opened ? 0 : at + 1);
      expect((await db.verify()).problems).toEqual([]);
      await db.close();
    }
  });
});
