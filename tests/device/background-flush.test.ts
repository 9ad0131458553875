/** Rows are moved to the device in the background: nothing is written or synced on the thread of those who write. */

import { rmSync } from "node:fs";
import { expect, it } from "vitest";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice, replaceDeviceFiles } from "../../src/device/device.ts";
import type { StoreFile, StoreFiles } from "../../src/folder/files.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { DEVICE_PAGE_BYTES } from "../../src/runtime/limits.ts";
import { type DeviceWork, workOf } from "../../src/tables/device/device-work.ts";
import { hasDeviceJobs } from "../../src/tables/device/elements/device-jobs.ts";
import { sum } from "../../src/tables/expressions/aggregates.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { MIB, memoryOf, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const T = table("t", { id: u32(), n: u32(), text: str() }, { key: "id", storage: "device" });
const rowCount = 200;

/** A disk that counts the calls that hold the thread, and can fail or wait where others do not. */
class WatchedFiles extends NodeFiles implements StoreFiles {
  held = 0;
  synced = 0;
  /** Whole pages that were read. */
  heldReads = 0;
  reads = 0;
  /** Before a background write or sync. */
  before: () => Promise<void> | void = () => {};

  override create(name: string, bytes: number): StoreFile {
    return this.#watched(super.create(name, bytes));
  }

  override open(name: string, readOnly?: boolean): StoreFile {
    return this.#watched(super.open(name, readOnly));
  }

  #watched(file: StoreFile): StoreFile {
    const disk = this;
    return {
      name: file.name,
      write(parts, at) {
        disk.held++;
        return file.write(parts, at);
      },
      async writeLater(bytes, at) {
        await disk.before();
        await file.writeLater!(bytes, at);
      },
      read(into, at) {
        if (into.length >= DEVICE_PAGE_BYTES) disk.heldReads++;
        return file.read(into, at);
      },
      readLater(into, at) {
        disk.reads++;
        return file.readLater!(into, at);
      },
      sync() {
        disk.held++;
        file.sync();
      },
      async syncLater() {
        await disk.before();
        disk.synced++;
        await file.syncLater!();
      },
      size: () => file.size(),
      truncate: (bytes) => file.truncate(bytes),
      close: () => file.close(),
    };
  }
}

async function opened(): Promise<{ db: LocalDatabase; disk: WatchedFiles; work: DeviceWork }> {
  const path = stores.folder();
  const disk = new WatchedFiles(path);
  replaceDeviceFiles(path, disk);
  stores.later(() => replaceDeviceFiles(path, undefined));
  const db = await stores.open({ path, tables: [T], durability: "lazy", memoryBytes: 64 * MIB });
  const [work] = workOf(knownDevice(db.executor)!);
  return { db, disk, work };
}

function put(db: LocalDatabase, n: number, from = 0, to = rowCount): void {
  for (let first = from; first < to; first += 100) {
    db.transactSync((tx) => {
      for (let id = first; id < Math.min(to, first + 100); id++) {
        tx.put(T, { id, n, text: "x".repeat(1_000) });
      }
    });
  }
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 2));

/** Rows are moved as if there were enough of them. */
async function until(db: LocalDatabase, work: DeviceWork, isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    work.table.writtenBytes = work.table.device.deltaBytes;
    db.device.tick();
    await turn();
  }
}

const values = (db: LocalDatabase): number[] =>
  db
    .scan(T)
    .toArray()
    .sort((a, b) => a.id - b.id)
    .map(({ n }) => n);

it("moves rows without a write or sync that holds the thread, while others write", async () => {
  const { db, disk, work } = await opened();
  put(db, 1);
  await until(db, work, () => work.mover.moved > 0);
  // Rows that change while their old values are being written keep the new ones.
  put(db, 2, 0, 50);
  await until(db, work, () => work.mover.moved >= rowCount - 50);
  expect(disk.held).toBe(0);
  expect(disk.synced).toBeGreaterThan(0);
  expect(values(db)).toEqual(Array.from({ length: rowCount }, (_, id) => (id < 50 ? 2 : 1)));
  expect((await db.verify()).problems).toEqual([]);
  await db.close();
  rmSync(memoryOf(db.path), { recursive: true });
  const again = await stores.open({ path: db.path, tables: [T], durability: "lazy" });
  expect(values(again)).toEqual(Array.from({ length: rowCount }, (_, id) => (id < 50 ? 2 : 1)));
});

it("keeps rows in memory when the disk fails in the background, and tries again later", async () => {
  const { db, disk, work } = await opened();
  disk.before = () => {
    throw Object.assign(new Error("EIO: i/o error, write"), { code: "EIO", errno: -5 });
  };
  put(db, 1);
  await until(db, work, () => work.failure !== undefined);
  expect((work.failure as Error).message).toContain("input/output error");
  expect(hasDeviceJobs(db.executor)).toBe(false);
  expect(work.mover.moved).toBe(0);
  expect(values(db)).toEqual(new Array(rowCount).fill(1));
  disk.before = () => {};
  await until(db, work, () => work.mover.moved === rowCount);
  expect(values(db)).toEqual(new Array(rowCount).fill(1));
});

it("lets one executor move rows at a time, and a drop or a close end what is under way", async () => {
  const { db, disk, work } = await opened();
  let release = (): void => {};
  let waiting = 0;
  disk.before = () => {
    waiting++;
    return new Promise((resolve) => {
      release = resolve;
    });
  };
  put(db, 1);
  const first = work.mover.moveLater(() => false);
  while (waiting === 0) await turn();
  expect(hasDeviceJobs(db.executor)).toBe(true);
  const second = await stores.open({ path: db.path, tables: [T], durability: "lazy" });
  const [other] = workOf(knownDevice(second.executor)!);
  expect(await other.mover.moveLater(() => false)).toBe(false);
  // One who needs room does not wait for it.
  expect(other.mover.move(Number.POSITIVE_INFINITY)).toBe(true);
  expect(other.mover.moved).toBe(rowCount);
  disk.before = () => {};
  release();
  expect(await first).toBe(false);
  expect(hasDeviceJobs(db.executor)).toBe(false);
  expect(values(db)).toEqual(new Array(rowCount).fill(1));
  // What it has written for nothing is found by the collector.
  expect((await db.verify()).problems).toEqual([]);
  // One that closes lets it come to an end, and waits for that.
  put(db, 2);
  waiting = 0;
  disk.before = () => {
    waiting++;
    return new Promise((resolve) => {
      release = resolve;
    });
  };
  await until(db, work, () => waiting > 0);
  const closing = db.close();
  disk.before = () => {};
  release();
  await closing;
  expect(values(second)).toEqual(new Array(rowCount).fill(2));
  expect((await second.verify()).problems).toEqual([]);
});

it("reads pages while the event loop turns, for those who await their rows", async () => {
  const { db, disk, work } = await opened();
  put(db, 1);
  db.put(T, { id: rowCount, n: 1, text: "y".repeat(30_000) });
  while (work.mover.move(Number.POSITIVE_INFINITY));
  await db.close();
  const again = await stores.open({ path: db.path, tables: [T], memoryBytes: 64 * MIB });
  disk.heldReads = 0;
  let rows = 0;
  for await (const row of again.scan(T)) rows += row.n;
  expect(rows).toBe(rowCount + 1);
  expect(disk.reads).toBeGreaterThan(20);
  for await (const row of again.scan(T, { limit: 5 })) rows -= row.n;
  expect(rows).toBe(rowCount - 4);
  const place = "host" as const;
  const { total } = await again.aggregate(T, {
    place,
    values: (t: { n: never }) => ({ total: sum(t.n) }),
  });
  expect(total).toBe(rowCount + 1);
  using snapshot = again.snapshot();
  let lengths = 0;
  for await (const { text } of snapshot.select(T, { where: (t) => t.n.eq(1), columns: ["text"] })) {
    lengths += text.length;
  }
  expect(lengths).toBe(rowCount * 1_000 + 30_000);
  expect(disk.heldReads).toBe(0);
  // Who does not await them gets the same.
  expect(again.scan(T).toArray()).toHaveLength(rowCount + 1);
});
