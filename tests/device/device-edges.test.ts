/** Tables on the device, and what is done with a whole table or store: nothing is lost, and nothing is left. */

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice, replaceDeviceFiles } from "../../src/device/device.ts";
import { readSchemas } from "../../src/tables/catalogue.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { dropTable } from "../../src/tables/migrations/steps.ts";
import { isOnDevice } from "../../src/tables/schema.ts";
import { table } from "../../src/tables/table.ts";
import { dump } from "../../src/transfer/dump.ts";
import { load } from "../../src/transfer/load.ts";
import { failureSync, MIB, seed, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const fields = { id: u32(), n: u32(), text: str() };
const T = table("t", fields, { key: "id", storage: "device" });
const Kept = table("kept", fields, { key: "id", storage: "device" }) as unknown as typeof T;
const ROWS = 200;

function flush(db: LocalDatabase): void {
  for (const { mover } of workOf(knownDevice(db.executor)!)) {
    while (mover.move(Number.POSITIVE_INFINITY));
  }
}

function fill(db: LocalDatabase, into = T, n = 1): void {
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) tx.put(into, { id, n, text: "x".repeat(id) });
  });
}

const filesOf = (path: string): string[] => readdirSync(join(path, "device"));

async function cleared(db: LocalDatabase): Promise<void> {
  while (db.isClearing) await new Promise((resolve) => setTimeout(resolve, 1));
}

async function expectAll(db: LocalDatabase, of = T, n = 1): Promise<void> {
  const rows = db.scan(of).toArray();
  expect(rows).toHaveLength(ROWS);
  expect(rows.every((row) => row.n === n && row.text.length === row.id)).toBe(true);
  expect((await db.verify()).problems).toEqual([]);
}

it("is dumped and loaded, as a table on the device", async () => {
  const path = stores.folder();
  const db = await stores.open({ path, tables: [T], durability: "lazy" });
  fill(db);
  flush(db);
  db.put(T, { id: 3, n: 1, text: "abc" });
  await db.close();
  const folder = join(stores.folder(), "dump");
  expect((await dump(path, folder)).tables).toMatchObject([{ name: "t", rows: ROWS }]);
  const copy = join(stores.folder(), "copy");
  stores.adopt(copy);
  expect((await load(folder, copy)).tables).toMatchObject([{ name: "t", rows: ROWS }]);
  const loaded = await stores.open({ path: copy, tables: [T] });
  const { schema } = readSchemas(loaded.executor).find((each) => each.schema.name === "t")!;
  expect(isOnDevice(schema)).toBe(true);
  await expectAll(loaded);
});

it("is gone when it is dropped, with its file, and another one takes its place", async () => {
  const path = stores.folder();
  const db = await stores.open({ path, tables: [T, Kept] });
  const other = await stores.open({ path, tables: [T, Kept] });
  for (const each of [T, Kept]) fill(db, each);
  flush(db);
  expect(filesOf(path)).toHaveLength(2);
  // Rows in memory that nobody may move any more, here and in another process.
  fill(other, T, 2);
  fill(db, T, 3);
  const before = db.snapshot();
  await db.migrate([dropTable("t")]);
  failureSync("SITU_SCHEMA", () => db.get(T, 1));
  flush(db);
  flush(other);
  expect(before.scan(T).toArray()).toHaveLength(ROWS);
  expect(filesOf(path)).toHaveLength(2);
  before.close();
  await cleared(db);
  expect(filesOf(path)).toHaveLength(1);
  expect(db.device.work()).toBe(false);
  flush(other);
  const Next = table("t", { ...fields, more: u32() }, { key: "id", storage: "device" });
  const third = await stores.open({ path, tables: [Next, Kept] });
  third.put(Next, { id: 1, n: 1, text: "", more: 7 });
  for (const each of [third, db, other]) flush(each);
  expect(third.get(Next, 1)?.more).toBe(7);
  expect(filesOf(path)).toHaveLength(2);
  for (const each of [db, other, third]) await expectAll(each, Kept);
});

it("has its file removed by another, if the one who dropped it did not come to that", async () => {
  const path = stores.folder();
  let db = await stores.open({ path, tables: [T, Kept], durability: "lazy" });
  for (const each of [T, Kept]) fill(db, each);
  flush(db);
  const disk = new FaultyFiles({ seed });
  // Its files cannot be removed where it looks for them.
  replaceDeviceFiles(path, disk);
  await db.migrate([dropTable("t")]);
  await cleared(db);
  await db.close();
  replaceDeviceFiles(path, undefined);
  expect(filesOf(path)).toHaveLength(2);
  db = await stores.open({ path, tables: [Kept] });
  await cleared(db);
  expect(filesOf(path)).toHaveLength(1);
  await expectAll(db, Kept);
});

it("is given an index when it has rows, on pages and in memory; inspected; and resized", async () => {
  const path = stores.folder();
  const db = await stores.open({ path, tables: [T], memoryBytes: 8 * MIB });
  fill(db);
  flush(db);
  for (let id = 0; id < ROWS; id += 3) db.update(T, id, { n: 2 });
  const indexes = { byN: { on: ["n"] }, byText: { on: ["text"], unique: true } } as const;
  const Indexed = table("t", fields, { key: "id", storage: "device", indexes });
  const second = await stores.open({ path, tables: [Indexed] });
  expect(second.count(Indexed, { index: "byN", eq: 2 })).toBe(67);
  expect(second.get(Indexed, "x".repeat(100), { index: "byText" })?.id).toBe(100);
  const inspected = await second.inspect("t");
  expect(inspected).toMatchObject({ schema: { name: "t" }, rows: ROWS });
  expect(await second.resize(32 * MIB)).toBe(32 * MIB);
  fill(db, T, 5);
  flush(second);
  const third = await stores.open({ path, tables: [Indexed] });
  expect(third.count(Indexed, { index: "byN", eq: 5 })).toBe(ROWS);
  await expectAll(third, Indexed as unknown as typeof T, 5);
});

it("loses nothing when the disk fails to make or sync its file", async () => {
  const path = stores.folder();
  const disk = new FaultyFiles({ seed });
  replaceDeviceFiles(path, disk);
  stores.later(() => replaceDeviceFiles(path, undefined));
  const db = await stores.open({ path, tables: [T], durability: "lazy" });
  const { mover } = workOf(knownDevice(db.executor)!)[0];
  fill(db);
  let failed = 0;
  // Each operation of the first move fails once, and then each of a later one.
  for (let n = 1; n < 3; n++) {
    fill(db, T, n);
    for (let at = 1; ; at++) {
      const end = disk.operations + at;
      disk.fail({ kind: "EIO", at: end });
      try {
        while (mover.move(Number.POSITIVE_INFINITY));
      } catch (error) {
        expect((error as Error).message).toContain("input/output error");
        failed++;
      }
      disk.forgive();
      if (disk.operations < end) break;
      expect(db.count(T)).toBe(ROWS);
    }
    await expectAll(db, T, n);
  }
  expect(failed).toBeGreaterThan(4);
  expect(mover.moved).toBeGreaterThanOrEqual(2 * ROWS);
});

it("keeps rows in memory while the disk cannot sync, and tells no writer", async () => {
  const path = stores.folder();
  const disk = new FaultyFiles({ seed });
  replaceDeviceFiles(path, disk);
  stores.later(() => replaceDeviceFiles(path, undefined));
  const db = await stores.open({ path, tables: [T], durability: "lazy", memoryBytes: 8 * MIB });
  disk.fail({ kind: "EIO", on: "sync", times: 1_000 });
  // Twice as much as may stay in memory: writers move rows themselves.
  for (let id = 0; id < 1_500; id++) db.put(T, { id, n: 1, text: "x".repeat(1_000) });
  const [work] = workOf(knownDevice(db.executor)!);
  expect((work.failure as Error).message).toContain("input/output error");
  expect(work.mover.moved).toBe(0);
  disk.forgive();
  flush(db);
  expect(work.mover.moved).toBe(1_500);
  expect(db.count(T)).toBe(1_500);
  expect((await db.verify()).problems).toEqual([]);
});
