/** When checkpoints are taken, of which kind they are, and what of log and checkpoints they leave. */

import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { open } from "../../src/database/open.ts";
import type { OpenOptions } from "../../src/database/open-options.ts";
import { figureOf } from "../../src/log/figures.ts";
import { MAX_DELTAS } from "../../src/runtime/limits.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { copyOfDisk, filesIn, loseMemory } from "../helpers/logged-stores.ts";
import { eventually, MIB, PATIENCE_MS, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
const TABLES = [Cell, Blob];
/** Short lives of a store after which one of them must have waited for its checkpoint. */
const MOST_LIVES = 60;
const put = (db: Database, id: number, value = id): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value }));

const opened = (options: Partial<OpenOptions> = {}): Promise<LocalDatabase> =>
  stores.open({ tables: TABLES, memoryBytes: 32 * MIB, durability: "sync", ...options });

/** Segments of the log that are part of it: the next one may have been made ahead of need. */
const firstSegment = (path: string): number => Number.parseInt(filesIn(path, "log")[0], 10);

/** Many small rows, in one transaction. */
function fill(db: Database, from: number, to: number): void {
  db.transactSync((tx) => {
    for (let id = from; id < to; id++) tx.put(Cell, { id, value: id });
  });
}

async function countOnDisk(path: string): Promise<number> {
  const db = await stores.open({ path: copyOfDisk(stores, path), tables: TABLES });
  const count = db.count(Cell);
  await db.close();
  return count;
}

describe("checkpoint()", () => {
  it("puts one on disk, and says so", async () => {
    const db = await opened();
    fill(db, 0, 500);
    expect(db.stats().durability).toMatchObject({ checkpoints: 0, lastCheckpoint: undefined });
    const { epoch } = db.stats();
    // There is one that the store was made with.
    const made = filesIn(db.path, "checkpoints");
    expect(made).toHaveLength(1);
    await db.checkpoint();
    const [name, ...others] = filesIn(db.path, "checkpoints").filter((one) => !made.includes(one));
    expect(others).toEqual([]);
    const { checkpoints, lastCheckpoint } = db.stats().durability;
    expect(checkpoints).toBe(1);
    expect(name).toBe(`${String(lastCheckpoint?.epoch).padStart(16, "0")}.full`);
    expect(lastCheckpoint).toMatchObject({
      kind: "full",
      bytes: statSync(join(db.path, "checkpoints", name)).size,
    });
    // All that had been committed is in it.
    expect(lastCheckpoint?.epoch).toBeGreaterThanOrEqual(epoch);
    expect(lastCheckpoint?.ms).toBeGreaterThan(0);
    expect(await countOnDisk(db.path)).toBe(500);
  });

  it("of a lazy database has all that was committed before, also what was not on disk", async () => {
    const db = await opened({ durability: "lazy", lagMs: 10_000 });
    fill(db, 0, 100);
    await db.checkpoint();
    expect(await countOnDisk(db.path)).toBe(100);
  });

  it("of a store with nothing in it, and again with nothing new", async () => {
    const db = await opened();
    for (let round = 1; round <= 3; round++) {
      await db.checkpoint();
      expect(db.stats().durability.checkpoints).toBe(round);
    }
    put(db, 1);
    await db.close();
    loseMemory(db.path);
    expect((await opened({ path: db.path })).count(Cell)).toBe(1);
  });

  it("is incremental while little has changed, and full again when that is much", async () => {
    const db = await opened();
    fill(db, 0, 5_000);
    const kinds: string[] = [];
    const sizes: number[] = [];
    const take = async (): Promise<void> => {
      await db.checkpoint();
      const { kind, bytes } = db.stats().durability.lastCheckpoint!;
      kinds.push(kind);
      sizes.push(bytes);
    };
    await take();
    put(db, 1, 0);
    await take();
    put(db, 2, 0);
    await take();
    fill(db, 0, 5_000);
    await take();
    expect(kinds).toEqual(["full", "delta", "delta", "full"]);
    expect(sizes[1]).toBeLessThan(sizes[0] / 4);
    expect(sizes[2]).toBeLessThan(sizes[0] / 4);
    expect(await countOnDisk(db.path)).toBe(5_000);
  });

  it("a chain of incremental ones does not get long without end", async () => {
    const db = await opened();
    fill(db, 0, 5_000);
    const kinds: string[] = [];
    for (let round = 0; round < 12; round++) {
      put(db, round, 0);
      await db.checkpoint();
      kinds.push(db.stats().durability.lastCheckpoint!.kind);
    }
    const expected = kinds.map((_, i) => (i % (MAX_DELTAS + 1) === 0 ? "full" : "delta"));
    expect(kinds).toEqual(expected);
    expect(await countOnDisk(db.path)).toBe(5_000);
    await db.close();
    loseMemory(db.path);
    const again = await opened({ path: db.path });
    expect(again.recovered!.checkpoints.length).toBeGreaterThan(1);
    expect(Array.from({ length: 14 }, (_, id) => again.get(Cell, id)?.value)).toEqual([
      ...Array(12).fill(0),
      12,
      13,
    ]);
  });

  it("several at once are taken, one after the other or for all", async () => {
    const one = await opened();
    const two = await opened({ path: one.path });
    fill(one, 0, 100);
    await Promise.all([one.checkpoint(), two.checkpoint(), one.checkpoint(), two.checkpoint()]);
    const { checkpoints } = one.stats().durability;
    // One that has not begun serves all who asked until then: how many that are is up to the scheduler.
    expect(checkpoints).toBeGreaterThanOrEqual(1);
    expect(checkpoints).toBeLessThanOrEqual(4);
    expect(await countOnDisk(one.path)).toBe(100);
  });

  it("one asked for after a commit has it, also while another is being taken", async () => {
    const db = await opened();
    fill(db, 0, 2_000);
    const first = db.checkpoint();
    await new Promise((resolve) => setTimeout(resolve, 20));
    put(db, 1, 77);
    const { epoch } = db.stats();
    await db.checkpoint();
    await first;
    expect(db.stats().durability.lastCheckpoint?.epoch).toBeGreaterThanOrEqual(epoch);
  });

  it("commits go on while it is taken, and what comes back has them", async () => {
    const db = await opened({ durability: "lazy", memoryBytes: 64 * MIB });
    for (let id = 0; id < 20; id++) {
      db.transactSync((tx) => tx.put(Blob, { id, data: new Uint8Array(MIB / 2).fill(id) }));
    }
    let commits = 0;
    // One may be taken before this thread gets to run again.
    while (commits <= 100) {
      const taking = db.checkpoint();
      let isTaken = false;
      void taking.finally(() => {
        isTaken = true;
      });
      while (!isTaken) {
        for (let n = 0; n < 20; n++) put(db, commits % 300, ++commits);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await taking;
    }
    const cells = db.scan(Cell).toArray();
    await db.close();
    loseMemory(db.path);
    const again = await opened({ path: db.path });
    expect(again.recovered?.checkpoints).not.toHaveLength(0);
    expect(again.scan(Cell).toArray()).toEqual(cells);
    expect(again.count(Blob)).toBe(20);
    for (let id = 0; id < 20; id += 7) expect(again.get(Blob, id)?.data[9]).toBe(id);
  });

  it("is taken for one database although the other, whose thread takes it, is closed meanwhile", async () => {
    const host = await opened({ memoryBytes: 64 * MIB });
    for (let id = 0; id < 20; id++) {
      host.transactSync((tx) => tx.put(Blob, { id, data: new Uint8Array(MIB / 2).fill(id) }));
    }
    const other = await opened({ path: host.path });
    const { checkpoints } = other.stats().durability;
    const taking = other.checkpoint();
    await new Promise((resolve) => setTimeout(resolve, 30));
    await host.close();
    await taking;
    expect(other.stats().durability.checkpoints).toBeGreaterThan(checkpoints);
    expect(filesIn(host.path, "checkpoints").filter((name) => !name.endsWith(".new"))).not.toEqual(
      [],
    );
  });
});

describe("by themselves", () => {
  it("after so many bytes of log", async () => {
    const db = await opened({ durability: "lazy", checkpointBytes: 64 * 1024 });
    const data = new Uint8Array(20_000).fill(0xa5);
    expect(db.stats().durability.checkpoints).toBe(0);
    for (let round = 0; round < 2; round++) {
      const { checkpoints } = db.stats().durability;
      for (let id = 0; id < 8; id++) db.transactSync((tx) => tx.put(Blob, { id, data }));
      await eventually(() => db.stats().durability.checkpoints > checkpoints);
    }
    expect(filesIn(db.path, "checkpoints")).not.toEqual([]);
  });

  it("also where nobody has the store open for long", async () => {
    const path = stores.folder();
    const made = { path, tables: TABLES, memoryBytes: 16 * MIB, durability: "lazy" as const };
    await (await open(made)).close();
    const before = filesIn(path, "checkpoints");
    const isTaken = (): boolean =>
      filesIn(path, "checkpoints").some((name) => !name.endsWith(".new") && !before.includes(name));
    let lives = 0;
    for (; lives < 6 || (lives < MOST_LIVES && !isTaken()); lives++) {
      const db = await open({ ...made, checkpointBytes: 64 * 1024, timeoutMs: PATIENCE_MS });
      const data = new Uint8Array(50_000).fill(0xa5);
      db.transactSync((tx) => tx.put(Blob, { id: lives, data }));
      await db.close();
    }
    expect(isTaken()).toBe(true);
    loseMemory(path);
    expect((await opened({ path })).count(Blob)).toBe(lives);
  });

  it("after so many milliseconds, if anything was written", async () => {
    const db = await opened({ durability: "lazy", checkpointMs: 60 });
    const { memory } = db.executor;
    const taken = (): number => db.stats().durability.checkpoints;
    const logBytes = (): number => figureOf(memory, "logBytes");
    for (const id of [1, 2]) {
      const before = taken();
      put(db, id);
      await db.durable();
      await eventually(() => taken() > before);
      await eventually(async () => {
        // What reached the log while one was being taken is worth another.
        await eventually(() => logBytes() === figureOf(memory, "checkpointLogBytes"));
        const [count, bytes] = [taken(), logBytes()];
        await new Promise((resolve) => setTimeout(resolve, 200));
        // Work in the background may commit, too.
        if (logBytes() !== bytes) return false;
        expect(taken()).toBe(count);
        return true;
      });
    }
  });
});

describe("what is left", () => {
  /** Each round in a segment of its own, with a full checkpoint at its end. */
  async function rounds(path: string, count: number, keepLogMs = 0): Promise<void> {
    for (let round = 0; round < count; round++) {
      const db = await open({
        path,
        tables: TABLES,
        memoryBytes: 16 * MIB,
        durability: "lazy",
        keepLogMs,
        timeoutMs: PATIENCE_MS,
      });
      fill(db, 0, 300 * (round + 1));
      await db.checkpoint();
      await db.close();
    }
  }

  it("two checkpoints that can each be recovered from, and the log since the older one", async () => {
    const path = stores.folder();
    await rounds(path, 5);
    const names = filesIn(path, "checkpoints");
    expect(names.filter((name) => name.endsWith(".full"))).toHaveLength(2);
    expect(firstSegment(path)).toBeGreaterThan(2);
    loseMemory(path);
    expect((await opened({ path })).count(Cell)).toBe(1_500);
  });

  it("the first one leaves the one that the store was made with, and the log since", async () => {
    const path = stores.folder();
    await rounds(path, 1);
    expect(filesIn(path, "checkpoints")).toHaveLength(2);
    // Should the newer one be damaged, nothing is lost.
    rmSync(join(path, "checkpoints", filesIn(path, "checkpoints")[1]));
    loseMemory(path);
    expect((await opened({ path })).count(Cell)).toBe(300);
  });

  it("incremental ones leave the full one before the one that they build on", async () => {
    const path = stores.folder();
    await rounds(path, 2);
    const db = await opened({ path });
    put(db, 1, 0);
    await db.checkpoint();
    put(db, 2, 0);
    await db.checkpoint();
    await db.close();
    const names = filesIn(path, "checkpoints");
    expect(names.map((name) => name.split(".")[1])).toEqual(["full", "full", "delta", "delta"]);
    // One damaged block in what both of them build on is not the end.
    rmSync(join(path, "checkpoints", names[1]));
    loseMemory(path);
    const again = await opened({ path });
    expect(again.count(Cell)).toBe(600);
    expect(again.get(Cell, 2)?.value).toBe(0);
  });

  it("keepLogMs: all that a point in that time needs", async () => {
    const path = stores.folder();
    await rounds(path, 4, 3600 * 1000);
    expect(firstSegment(path)).toBe(1);
    expect(filesIn(path, "checkpoints")).toHaveLength(5);
    // Whoever asks for less has the rest removed with the next checkpoint.
    await rounds(path, 1, 0);
    expect(firstSegment(path)).toBeGreaterThan(1);
    const kinds = filesIn(path, "checkpoints").map((name) => name.split(".")[1]);
    expect(kinds).toEqual(["full", "full", "delta"]);
  });

  it("keepLogMs: for ever", async () => {
    const path = stores.folder();
    await rounds(path, 4, Number.POSITIVE_INFINITY);
    expect(firstSegment(path)).toBe(1);
    expect(filesIn(path, "checkpoints")).toHaveLength(5);
  });
});
