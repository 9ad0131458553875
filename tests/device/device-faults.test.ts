/** Device files that are lost, damaged or on a disk that fails: told, and never read as data. */

import { rmSync } from "node:fs";
import { expect, it } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice, replaceDeviceFiles } from "../../src/device/device.ts";
import { Random } from "../../src/runtime/random.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, memoryOf, seed, temporaryStores } from "../helpers/store.ts";
import { changeHere } from "./change-here.ts";

const stores = temporaryStores();
const T = table("t", { id: u32(), n: u32(), text: str() }, { key: "id", storage: "device" });

async function opened(path: string, disk: FaultyFiles): Promise<LocalDatabase> {
  replaceDeviceFiles(path, disk);
  stores.later(() => replaceDeviceFiles(path, undefined));
  return stores.open({ path, tables: [T], durability: "lazy", memoryBytes: 8 * MIB });
}

const workIn = (db: LocalDatabase) => workOf(knownDevice(db.executor)!)[0];
const flush = (db: LocalDatabase) => workIn(db).mover.move(Number.POSITIVE_INFINITY);

function put(db: LocalDatabase, n: number, rows = 100): void {
  db.transactSync((tx) => {
    for (let id = 0; id < rows; id++) tx.put(T, { id, n, text: "x".repeat(300) });
  });
}

it("recovers all rows, wherever the power was lost while rows were moved", async () => {
  for (let lostAt = 1; lostAt <= 6; lostAt++) {
    const path = stores.folder();
    const disk = new FaultyFiles({ seed: seed + lostAt });
    let db = await opened(path, disk);
    put(db, 1);
    flush(db);
    put(db, 2, 50);
    disk.fail({ kind: "power", at: disk.operations + lostAt });
    try {
      for (let round = 0; round < 3; round++) flush(db);
    } catch (error) {
      expect((error as Error).name).toBe("PowerLost");
    }
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    db = await opened(path, disk.powerLoss(new Random(seed + lostAt)));
    for (let id = 0; id < 100; id++) expect(db.get(T, id)?.n).toBe(id < 50 ? 2 : 1);
    expect((await db.verify()).problems).toEqual([]);
    flush(db);
    expect(db.scan(T).toArray()).toHaveLength(100);
    await db.close();
  }
});

it("tells of a flipped bit with file and offset, and of a lost file", async () => {
  const path = stores.folder();
  const disk = new FaultyFiles({ seed });
  let db = await opened(path, disk);
  put(db, 1);
  flush(db);
  const { file } = workIn(db).table;
  await db.close();
  disk.flipBit(file.name, 8_192 + 500);
  db = await opened(path, disk);
  const errors: string[] = [];
  for (let id = 0; id < 100; id++) {
    try {
      expect(db.get(T, id)?.n).toBe(1);
    } catch (error) {
      expect((error as { code: string }).code).toBe("SITU_CORRUPT");
      errors.push((error as Error).message);
    }
  }
  expect(errors.length).toBeGreaterThan(0);
  expect(errors.every((each) => each.includes(`${file.name}, byte 8192:`))).toBe(true);
  expect((await db.verify()).problems.join()).toContain("checksum");
  await db.close();
  disk.remove(file.name);
  db = await opened(path, disk);
  expect(failureSync("SITU_CORRUPT", () => db.get(T, 1)).message).toContain("missing");
  put(db, 2);
  expect(() => flush(db)).toThrow("missing");
  expect(db.get(T, 1)?.n).toBe(2);
});

it("keeps rows in memory while the disk is full, and goes on when there is room", async () => {
  const path = stores.folder();
  const disk = new FaultyFiles({ seed, capacityBytes: 64 * 1024 });
  const db = await opened(path, disk);
  let rows = 0;
  const error = failureSync("SITU_DISK_FULL", () => {
    for (; rows < 20_000; rows++) db.put(T, { id: rows, n: 1, text: "x".repeat(1_000) });
  });
  expect(error.retryable).toBe(true);
  for (let id = 0; id < rows; id += 37) expect(db.get(T, id)?.n).toBe(1);
  disk.capacityBytes = Number.POSITIVE_INFINITY;
  flush(db);
  db.put(T, { id: rows, n: 1, text: "x".repeat(1_000) });
  expect(db.count(T)).toBe(rows + 1);
  expect((await db.verify()).problems).toEqual([]);
});

it("changes nothing by an update in the device that meets a fault of the disk, and gives its pages back", async () => {
  const path = stores.folder();
  const disk = new FaultyFiles({ seed });
  const db = await opened(path, disk);
  put(db, 1, 400);
  flush(db);
  const update = (n: number) => changeHere(db, T, { set: { n } });
  const expectAll = (n: number): void => {
    const rows = db.scan(T).toArray();
    expect(rows).toHaveLength(400);
    expect(rows.every((row) => row.n === n)).toBe(true);
  };
  for (const on of ["write", "sync"] as const) {
    disk.fail({ kind: "EIO", on, times: 1_000 });
    expect((await failure("SITU_CORRUPT", () => update(2))).message).toContain(
      "input/output error",
    );
    disk.forgive();
    expectAll(1);
  }
  // What was taken is there again: the next one needs no more.
  disk.capacityBytes = disk.usedBytes;
  await update(3);
  expectAll(3);
  disk.capacityBytes = Number.POSITIVE_INFINITY;
  await update(5);
  expectAll(5);
  expect((await db.verify()).problems).toEqual([]);
});
