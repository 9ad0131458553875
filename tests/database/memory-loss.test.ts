/**
 * The files of a store's memory are removed while it is open, as temporary-file cleaners and logind do:
 * it is noticed before anything more is acknowledged, nothing that was acknowledged is lost, and opening
 * the store again rebuilds it.
 */

import { readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { openLocal as open } from "../../src/database/open.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { COMMITS_PER_MEMORY_LOOK } from "../../src/runtime/limits.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
// Rows of one table may share a bucket, and with it the version that says whether they are on disk.
const Untouched = table("untouched", { id: u32(), value: u32() }, { key: "id" });
const OPTIONS = { tables: [Cell, Untouched], memoryBytes: 8 * MIB };

const put = (db: Database, id: number): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value: id }));

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

function removeFile(name: string): (memory: string) => void {
  return (memory) => rmSync(join(memory, name));
}

const REMOVALS: [string, (memory: string) => void][] = [
  ["all of them", (memory) => rmSync(memory, { recursive: true })],
  ["the control file", removeFile("control")],
  ["a region", removeFile("region-0")],
  ["a journal", removeFile("journal-0")],
  ["a lock file", removeFile("slot-0.lock")],
  ["the folder, renamed", (memory) => renameSync(memory, `${memory}.away`)],
];

/** Commits until it is refused; says how many were acknowledged, and with which code it ended. */
async function commitUntilRefused(db: Database, from: number): Promise<[number, string]> {
  for (let id = from; ; id++) {
    try {
      put(db, id);
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      return [id - from, error.code];
    }
    if (id % 16 === 0) await sleep(1);
  }
}

describe('durability "sync"', () => {
  it.each(REMOVALS)("%s: the next commit is not acknowledged", async (_, remove) => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "sync" });
    stores.later(() => db.close());
    db.transactSync((tx) => tx.put(Untouched, { id: 1, value: 1 }));
    put(db, 1);
    const memory = memoryOf(path);
    stores.later(() => rmSync(`${memory}.away`, { recursive: true, force: true }));
    remove(memory);
    const unacknowledged = failureSync("SITU_NOT_DURABLE", () => put(db, 2));
    expect(unacknowledged.message).toMatch(/committed in memory.*were removed while the store was/);
    const refused = failureSync("SITU_MEMORY_LOST", () => put(db, 3));
    expect(refused.message).toMatch(/^nothing was committed.*close the store in all processes/);
    await failure("SITU_MEMORY_LOST", () => db.transact((tx) => tx.put(Cell, { id: 3, value: 3 })));
    // Reads go on, and so do transactions that have seen only what is on disk.
    expect(db.get(Cell, 1)?.value).toBe(1);
    expect(db.transactSync((tx) => tx.get(Untouched, 1)?.value)).toBe(1);
    expect(db.stats().durability.state).toBe("memory lost");
    await failure("SITU_MEMORY_LOST", () => db.checkpoint());
    // Nobody gets in, and nothing is rebuilt, while it is open.
    await failure("SITU_OTHER_MEMORY", () => open({ ...OPTIONS, path }));
    // All that was committed has reached the log, so closing has nothing to complain about.
    await db.close();
    const again = await stores.open({ ...OPTIONS, path, durability: "sync" });
    expect(again.recovered).toBeDefined();
    expect([1, 2, 3].map((id) => again.get(Cell, id)?.value)).toEqual([1, 2, undefined]);
    put(again, 4);
  });

  it("what waits in flight is not acknowledged either", async () => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "sync" });
    stores.later(() => db.close());
    put(db, 0);
    const acknowledged = new Set<number>();
    let isRemoved = false;
    const writers = Array.from({ length: 16 }, async (_, writer) => {
      for (let id = writer; ; id += 16) {
        const isAfter = isRemoved;
        await db.transact((tx) => tx.put(Cell, { id, value: id }));
        if (isAfter) throw new Error(`${id} was acknowledged after the removal`);
        acknowledged.add(id);
      }
    });
    const ends = Promise.allSettled(writers);
    await sleep(200);
    rmSync(memoryOf(path), { recursive: true });
    isRemoved = true;
    for (const end of await ends) {
      expect(["SITU_NOT_DURABLE", "SITU_MEMORY_LOST"]).toContain(
        ((end as PromiseRejectedResult).reason as SituError).code,
      );
    }
    await db.close();
    const again = await stores.open({ ...OPTIONS, path });
    for (const id of acknowledged) expect(again.get(Cell, id)?.value).toBe(id);
  });

  it("the log's writer also writes the first commit of one who has joined before the removal", async () => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "sync" });
    stores.later(() => db.close());
    put(db, 1);
    const { durableEpoch } = db.stats().durability;
    const joined = await open({ ...OPTIONS, path, durability: "sync" });
    stores.later(() => joined.close());
    // The writer has looked who is there.
    await vi.waitUntil(() => db.stats().durability.durableEpoch > durableEpoch, 60_000);
    rmSync(memoryOf(path), { recursive: true });
    const unacknowledged = failureSync("SITU_NOT_DURABLE", () => put(joined, 2));
    expect(unacknowledged.message).toMatch(/were removed while the store was open.* is in the log/);
    await joined.close();
    await db.close();
    const again = await stores.open({ ...OPTIONS, path });
    expect([1, 2].map((id) => again.get(Cell, id)?.value)).toEqual([1, 2]);
  });

  it("others in the same memory learn of it from whoever notices", async () => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "sync" });
    stores.later(() => db.close());
    const { child, outcome } = startChild(
      stores,
      `
      const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
      const db = await situ.open({ path: data.path, tables: [Cell], durability: "sync" });
      // From here on the log's writer, which is in the other process, knows the journal.
      db.transactSync((tx) => tx.put(Cell, { id: 999, value: 999 }));
      process.stdout.write("open");
      for (let id = 1_000; ; id++) {
        try {
          db.transactSync((tx) => tx.put(Cell, { id, value: id }));
        } catch (error) {
          await db.close();
          return [id, error.code];
        }
        await new Promise((resolve) => setTimeout(resolve, 5));
      }`,
      { path },
    );
    await new Promise((resolve) => child.stdout!.once("data", resolve));
    put(db, 1);
    rmSync(memoryOf(path), { recursive: true });
    const { result, error } = await outcome;
    expect(error).toBeUndefined();
    const [refused, code] = result as [number, string];
    expect(["SITU_NOT_DURABLE", "SITU_MEMORY_LOST"]).toContain(code);
    expect(failureSync("SITU_MEMORY_LOST", () => put(db, 2)).message).toMatch(/Reads go on/);
    await db.close();
    const again = await stores.open({ ...OPTIONS, path });
    for (let id = 1_000; id < refused; id++) expect(again.get(Cell, id)?.value).toBe(id);
  });
});

describe('durability "lazy"', () => {
  it("goes on until the log is written next; all that was acknowledged is in the log", async () => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "lazy" });
    stores.later(() => db.close());
    put(db, 0);
    await db.durable();
    rmSync(memoryOf(path), { recursive: true });
    const [acknowledged, code] = await commitUntilRefused(db, 1);
    expect(code).toBe("SITU_MEMORY_LOST");
    await failure("SITU_NOT_DURABLE", () => db.durable());
    await db.close();
    const again = await stores.open({ ...OPTIONS, path });
    expect(again.count(Cell)).toBe(acknowledged + 1);
  });
});

describe('durability "none"', () => {
  it("is noticed by a process whose event loop turns, and reads go on", async () => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "none" });
    stores.later(() => db.close());
    put(db, 0);
    rmSync(memoryOf(path), { recursive: true });
    const [, code] = await commitUntilRefused(db, 1);
    expect(code).toBe("SITU_MEMORY_LOST");
    expect(failureSync("SITU_MEMORY_LOST", () => put(db, 1)).message).toMatch(/has no log: copy/);
    expect(db.get(Cell, 0)?.value).toBe(0);
    await db.close();
    const again = await stores.open({ ...OPTIONS, path });
    expect(again.count(Cell)).toBe(0);
  });

  it("is noticed by one who commits without a pause", async () => {
    const path = stores.folder();
    const db = await open({ ...OPTIONS, path, durability: "none" });
    stores.later(() => db.close());
    put(db, 0);
    rmSync(memoryOf(path), { recursive: true });
    failureSync("SITU_MEMORY_LOST", () => {
      for (let i = 0; i <= COMMITS_PER_MEMORY_LOOK; i++) put(db, 1);
    });
  });
});

it("a living executor whose lock file was removed is not taken for dead", async () => {
  const path = stores.folder();
  const db = await open({ ...OPTIONS, path, durability: "none" });
  stores.later(() => db.close());
  put(db, 1);
  const memory = memoryOf(path);
  const locks = readdirSync(memory).filter((name) => name.endsWith(".lock"));
  expect(locks).not.toEqual([]);
  const other = await open({ ...OPTIONS, path });
  stores.later(() => other.close());
  for (const name of locks) rmSync(join(memory, name));
  expect(other.executor.sweep()).toBe(0);
  expect(other.stats().executors.length).toBe(2);
});
