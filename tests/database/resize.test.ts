/** A store grows and shrinks while it is in use, and keeps its size through whatever happens to it. */

import { readdirSync, readFileSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import { backup, restore, verify } from "../../src/database/store-tools.ts";
import { ResizeError, SituError } from "../../src/runtime/errors.ts";
import { shownSize } from "../../src/runtime/units.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { startChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
const tables = [Blob];
const SIZE = 30_000;

/** What the store's memory takes of its file system, which others use as well. */
function blocksOf(path: string): number {
  const folder = memoryOf(path);
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).blocks, 0);
}

/** Inserts rows until there is no room; returns how many there are then. */
function fill(db: Database, from = 0): number {
  const data = new Uint8Array(SIZE);
  for (let id = from; ; id++) {
    try {
      db.transactSync((tx) => tx.insert(Blob, { id, data: data.fill(id & 255) }));
    } catch (error) {
      if (error instanceof SituError && error.code === "SITU_FULL") return id;
      throw error;
    }
  }
}

function expectRows(db: Database, count: number): void {
  expect(db.count(Blob)).toBe(count);
  for (let id = 0; id < count; id++) {
    if (db.get(Blob, id)?.data[SIZE - 1] !== (id & 255)) throw new Error(`row ${id} is wrong`);
  }
}

const limitOf = (db: Database): number => db.stats().memory.limitBytes;
const recordedSize = (path: string): unknown =>
  JSON.parse(readFileSync(join(path, "store.json"), "utf8")).memoryBytes;

describe("growing", () => {
  it("by resize: SITU_FULL says how, and others who have it open go on at once", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    const other = await stores.open({ path, tables });
    const worker = startWorker(
      stores,
      `const { open, table, u32, bytes } = situ;
      const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
      const db = await open({ path: data.path, tables: [Blob] });
      port.postMessage("open");
      await new Promise((resolve) => port.once("message", resolve));
      for (let id = 5_000; id < 5_100; id++) db.transactSync((tx) => tx.insert(Blob, { id, data: new Uint8Array(30_000) }));
      await db.close();`,
      { path },
    );
    await new Promise((resolve) => worker.worker.once("message", resolve));
    const rows = fill(db);
    const error = failureSync("SITU_FULL", () =>
      other.transactSync((tx) => tx.insert(Blob, { id: 9_999, data: new Uint8Array(SIZE) })),
    );
    expect(error.message).toContain(
      `situ resize --path ${path} --memory 16MiB, or db.resize(16777216)`,
    );
    expect(await db.resize(32 * MIB)).toBe(32 * MIB);
    expect(limitOf(other)).toBe(32 * MIB);
    const more = fill(other, rows);
    expect(more).toBeGreaterThan(3 * rows);
    expectRows(db, more);
    await db.resize(64 * MIB);
    worker.worker.postMessage("go");
    await worker.result;
    expect(db.count(Blob)).toBe(more + 100);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("by open, never shrinking; the size holds after a restart", async () => {
    const path = stores.folder();
    const first = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    const rows = fill(first);
    const second = await open({ path, tables, memoryBytes: 24 * MIB });
    expect(limitOf(first)).toBe(24 * MIB);
    const third = await open({ path, memoryBytes: 8 * MIB });
    expect(limitOf(third)).toBe(24 * MIB);
    for (const db of [first, second, third]) await db.close();
    const again = await stores.open({ path, tables });
    expect(limitOf(again)).toBe(24 * MIB);
    expect(fill(again, rows)).toBeGreaterThan(2 * rows);
  });

  it("holds after recovery, and after restore, which also can grow", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB, durability: "lazy" });
    await db.resize(16 * MIB);
    const rows = fill(db);
    await db.checkpoint();
    const saved = join(stores.folder(), "backup");
    await backup(path, saved);
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    const recovered = await open({ path, tables });
    expect(recovered.recovered).toBeDefined();
    expect(limitOf(recovered)).toBe(16 * MIB);
    expectRows(recovered, rows);
    await recovered.close();
    rmSync(memoryOf(path), { recursive: true });
    const larger = await open({ path, tables, memoryBytes: 40 * MIB });
    expect(limitOf(larger)).toBe(40 * MIB);
    const more = fill(larger, rows);
    expect(more).toBeGreaterThan(2 * rows);
    await larger.close();
    expect((await verify(path)).problems).toEqual([]);
    const copy = join(stores.folder(), "restored");
    stores.adopt(copy);
    await restore(saved, copy);
    const restored = await stores.open({ path: copy, tables });
    expect(limitOf(restored)).toBe(16 * MIB);
    expectRows(restored, rows);
    await restored.resize(24 * MIB);
    expect(fill(restored, rows)).toBeGreaterThan(rows + 100);
  });

  it("to what there is no room for: refused, and nothing has changed", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    const { regions, regionBytes } = db.executor.memory.control.geometry;
    const room = regions * regionBytes;
    // Twice the memory of this machine, at least 16 GiB; at most 16,384 regions.
    const gibs = Math.min(128, Math.max(16, (2 * totalmem()) / 2 ** 30));
    expect(room).toBe(Math.ceil((gibs * 2 ** 30) / regionBytes) * regionBytes);
    const { bavail, bsize } = statfsSync("/dev/shm");
    const tooMuch = Math.ceil((2 * bavail * bsize) / MIB) * MIB;
    if (tooMuch <= room) await failure("SITU_NO_MEMORY", () => db.resize(tooMuch));
    const error = await failure("SITU_CONFIG", () => db.resize(2 ** 40));
    expect(error.message).toContain(`at most ${shownSize(room)}`);
    for (const wrong of [0, -1, 1.5, "1GiB", undefined]) {
      await failure("SITU_CONFIG", () => db.resize(wrong as number));
    }
    expect(limitOf(db)).toBe(8 * MIB);
    expect(recordedSize(path)).toBe(8 * MIB);
    await db.close();
    await failure("SITU_CLOSED", () => db.resize(16 * MIB));
  });
});

describe("shrinking", () => {
  it("as far as what it holds allows; the memory is the system's again", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    const other = await stores.open({ path, tables });
    const rows = fill(db);
    await db.resize(32 * MIB);
    const all = fill(other, rows);
    const error = await failure("SITU_FULL", () => db.resize(8 * MIB));
    expect(error).toBeInstanceOf(ResizeError);
    expect((error as ResizeError).smallestBytes).toBe(32 * MIB);
    expect(error.message).toContain("the smallest size possible now is 32 MiB (33554432 bytes)");
    expect(limitOf(db)).toBe(32 * MIB);
    for (let id = rows; id < all; id++) other.transactSync((tx) => tx.delete(Blob, id));
    const before = blocksOf(path);
    expect(await db.resize(16 * MIB)).toBe(16 * MIB);
    expect(blocksOf(path)).toBeLessThan(before);
    expectRows(other, rows);
    expect(recordedSize(path)).toBe(16 * MIB);
    // Full at its new size, for one who knew free cells in what was given back; and grows again.
    expect(fill(other, rows)).toBeLessThan(all / 2 + rows);
    await other.resize(32 * MIB);
    const again = fill(other, other.count(Blob));
    expect(again).toBeGreaterThan(all - 100);
    expectRows(db, again);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("with a log: the smaller size holds after recovery, and no row is missing", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB, durability: "lazy" });
    const rows = fill(db);
    await db.resize(24 * MIB);
    const all = fill(db, rows);
    for (let id = rows; id < all; id++) db.transactSync((tx) => tx.delete(Blob, id));
    await db.resize(16 * MIB);
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    const recovered = await stores.open({ path, tables });
    expect(recovered.recovered).toBeDefined();
    expect(limitOf(recovered)).toBe(16 * MIB);
    expectRows(recovered, rows);
    expect((await recovered.verify()).problems).toEqual([]);
  });

  it("is not held up, nor are others, by a transaction that is open", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    await db.resize(24 * MIB);
    const rows = fill(db);
    const tx = await db.begin();
    await tx.get(Blob, rows - 1);
    for (let id = 1; id < rows; id++) db.transactSync((inner) => inner.delete(Blob, id));
    await failure("SITU_FULL", () => db.resize(8 * MIB));
    await tx.rollback();
    const after = await db.resize(8 * MIB).catch((error: ResizeError) => error.smallestBytes);
    expect(after).toBeLessThanOrEqual(24 * MIB);
    expect(db.count(Blob)).toBe(1);
  });
});

describe("a resize that somebody died over", () => {
  it("is completed by the next opener: the size that store.json has", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    await db.close();
    for (const size of [24 * MIB, 16 * MIB]) {
      const file = join(path, "store.json");
      const identity = JSON.parse(readFileSync(file, "utf8"));
      writeFileSync(file, JSON.stringify({ ...identity, memoryBytes: size }));
      const again = await open({ path, tables });
      expect(limitOf(again)).toBe(size);
      await again.close();
    }
  });
});

describe("memoryBytes: auto", () => {
  it("grows as it is needed, holds after a restart, and ends with a resize", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB });
    const rows = fill(db);
    await db.resize("auto");
    expect(recordedSize(path)).toBe("auto");
    for (let id = rows; id < 3 * rows; id++) {
      db.transactSync((tx) => tx.insert(Blob, { id, data: new Uint8Array(SIZE).fill(id & 255) }));
    }
    expect(limitOf(db)).toBeGreaterThan(16 * MIB);
    await db.close();
    const again = await stores.open({ path, tables });
    for (let id = 3 * rows; id < 4 * rows; id++) {
      again.transactSync((tx) =>
        tx.insert(Blob, { id, data: new Uint8Array(SIZE).fill(id & 255) }),
      );
    }
    expectRows(again, 4 * rows);
    const size = await again.resize(limitOf(again));
    expect(recordedSize(path)).toBe(size);
    fill(again, 4 * rows);
    expect(limitOf(again)).toBe(size);
  });

  it("stays within half of what the container may use, and says so", async () => {
    const limit = vi.spyOn(process, "constrainedMemory").mockReturnValue(48 * MIB);
    stores.later(() => limit.mockRestore());
    const db = await stores.open({ tables, memoryBytes: 8 * MIB });
    await db.resize("auto");
    fill(db);
    expect(limitOf(db)).toBe(24 * MIB);
    const error = failureSync("SITU_FULL", () =>
      db.transactSync((tx) => tx.insert(Blob, { id: 9_999, data: new Uint8Array(SIZE) })),
    );
    expect(error.message).toMatch(
      /all 24 MiB .*"auto" allows no more on this machine.*situ resize/,
    );
    // Whoever wants more says so.
    expect(await db.resize(32 * MIB)).toBe(32 * MIB);
  });

  it("from the start, by open", async () => {
    const db = await stores.open({ tables, memoryBytes: "auto" });
    expect(limitOf(db)).toBe(64 * MIB);
    db.transactSync((tx) => tx.insert(Blob, { id: 1, data: new Uint8Array(SIZE) }));
    expect(db.stats().memory.reservedBytes).toBe(64 * MIB);
  });
});

describe("a store that only threads share", () => {
  it("cannot grow beyond what it was created with, and says so; smaller it can be", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 128 * MIB, sharing: "threads" });
    const error = await failure("SITU_UNSUPPORTED", () => db.resize(256 * MIB));
    expect(error.message).toMatch(/threads of one process.*128 MiB/);
    await failure("SITU_UNSUPPORTED", () => db.resize("auto"));
    expect(await db.resize(64 * MIB)).toBe(64 * MIB);
    expect(await db.resize(128 * MIB)).toBe(128 * MIB);
  });
});

describe("others", () => {
  it("commit all the time, in other processes, in both isolations", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables, memoryBytes: 8 * MIB, durability: "lazy" });
    const writers = (["strict-serializable", "snapshot"] as const).map((isolation, first) =>
      startChild(
        stores,
        `const { open, table, u32, bytes } = situ;
        const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
        const db = await open({ path: data.path, tables: [Blob] });
        let isOver = false;
        process.once("SIGTERM", () => { isOver = true; });
        process.stdout.write("open");
        let commits = 0;
        for (; !isOver; commits++) {
          const id = 10_000 * data.first + (commits % 20);
          db.transactSync((tx) => tx.put(Blob, { id, data: new Uint8Array(1_000 + 400 * (commits % 50)) }), { isolation: data.isolation, timeoutMs: 20_000 });
          if (commits % 10 === 0) await new Promise(setImmediate);
        }
        await db.close();
        return commits;`,
        { path, isolation, first: first + 1 },
      ),
    );
    await Promise.all(
      writers.map(({ child }) => new Promise((resolve) => child.stdout!.once("data", resolve))),
    );
    const commits = (): number => db.stats().counters.commits;
    let meanwhile = 0;
    for (let round = 0; round < 12; round++) {
      const before = commits();
      await db.resize((8 + 8 * (1 + (round % 4))) * MIB).catch((error: SituError) => {
        // Larger rows of the writers may lie in the last region just now.
        expect(error.code).toBe("SITU_FULL");
      });
      await new Promise((resolve) => setTimeout(resolve, 20));
      meanwhile += commits() - before > 0 ? 1 : 0;
    }
    for (const { child } of writers) child.kill("SIGTERM");
    for (const { outcome } of writers) {
      const { result, error } = await outcome;
      expect(error).toBeUndefined();
      expect(result).toBeGreaterThan(0);
    }
    expect(meanwhile).toBeGreaterThan(6);
    expect((await db.verify()).problems).toEqual([]);
  });
});
