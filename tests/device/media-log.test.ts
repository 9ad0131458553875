/** The media log: a second copy of device pages, from which damaged ones are read and a lost file is rebuilt (§6). */

import {
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { destroy } from "../../src/database/open.ts";
import { knownDevice, replaceDeviceFiles } from "../../src/device/device.ts";
import { DEVICE_KEEPER } from "../../src/memory/control.ts";
import { Random } from "../../src/runtime/random.ts";
import { type DeviceWork, workOf } from "../../src/tables/device/device-work.ts";
import { count, sum } from "../../src/tables/expressions/aggregates.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { MIB, memoryOf, seed, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const T = table("t", { id: u32(), n: u32(), text: str() }, { key: "id", storage: "device" });
const ROWS = 300;
const PAGE = 8_192;
/** More than it ever takes until a move meets nobody. */
const MOVES = 10_000;

const opened = (path: string, mediaLog?: string): Promise<LocalDatabase> =>
  stores.open({
    path,
    tables: [T],
    durability: "lazy",
    memoryBytes: 8 * MIB,
    ...(mediaLog === undefined ? {} : { mediaLog }),
  });

const workIn = (db: LocalDatabase): DeviceWork => workOf(knownDevice(db.executor)!)[0];
const flush = (db: LocalDatabase): boolean => workIn(db).mover.move(Number.POSITIVE_INFINITY);

function put(db: LocalDatabase, n: number, rows = ROWS): void {
  db.transactSync((tx) => {
    for (let id = 0; id < rows; id++) tx.put(T, { id, n, text: "x".repeat(300) });
    tx.put(T, { id: ROWS, n, text: "y".repeat(20_000) });
  });
}

/** The one device file of a store. */
function fileIn(path: string): string {
  const [name] = readdirSync(join(path, "device")).filter((each) => each.endsWith(".pages"));
  return join(path, "device", name);
}

function expectRows(db: LocalDatabase, n: number): void {
  const rows = db.scan(T).toArray();
  expect(rows).toHaveLength(ROWS + 1);
  expect(rows.every((row) => row.n === n && row.text.length >= 300)).toBe(true);
}

it("rebuilds a lost file, with memory or without, and whoever is the first to write", async () => {
  for (const keepsMemory of [false, true]) {
    const path = stores.folder();
    const media = stores.folder();
    let db = await opened(path, media);
    put(db, 1);
    await workIn(db).mover.moveLater(() => false);
    put(db, 2, 100);
    put(db, 2);
    flush(db);
    expect(await db.updateWhere(T, { place: "device", set: { n: 3 } })).toMatchObject({
      matched: ROWS + 1,
    });
    flush(db);
    expect(existsSync(fileIn(media))).toBe(true);
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
    rmSync(fileIn(path));
    if (!keepsMemory) rmSync(memoryOf(path), { recursive: true });
    // Without the option: the store knows.
    db = await opened(path);
    expectRows(db, 3);
    expect(await db.aggregate(T, { place: "device", values: () => ({ n: count() }) })).toEqual({
      n: ROWS + 1,
    });
    expect((await db.verify()).problems.length).toBeGreaterThan(0);
    if (keepsMemory) {
      await db.updateWhere(T, { place: "device", set: { n: 4 } });
    } else {
      put(db, 4);
      flush(db);
    }
    expectRows(db, 4);
    await db.close();
    expect(existsSync(fileIn(path))).toBe(true);
    rmSync(memoryOf(path), { recursive: true });
    db = await opened(path, media);
    expectRows(db, 4);
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
  }
});

it("reads damaged pages from the media log, and verify tells of damage on either side", async () => {
  const path = stores.folder();
  const media = stores.folder();
  let db = await opened(path, media);
  put(db, 1);
  flush(db);
  await db.close();
  const pages = readFileSync(fileIn(path));
  const whole = Buffer.from(pages);
  for (let at = 100; at < pages.length; at += PAGE) pages[at] ^= 1;
  writeFileSync(fileIn(path), pages);
  db = await opened(path);
  expectRows(db, 1);
  expect(
    await db.aggregate(T, {
      place: "device",
      where: (t: { n: { eq(n: number): unknown } }) => t.n.eq(1),
      values: (t: { n: never }) => ({ n: sum(t.n) }),
    }),
  ).toEqual({ n: ROWS + 1 });
  const { problems } = await db.verify();
  expect(JSON.stringify(problems)).toContain("were read from the media log");
  await db.close();
  writeFileSync(fileIn(path), whole);
  truncateSync(fileIn(media), PAGE);
  db = await opened(path);
  expectRows(db, 1);
  expect(JSON.stringify((await db.verify()).problems)).toContain("in the media log, page");
  await db.close();
  // A copy that is lost is made again by the next write.
  rmSync(fileIn(media));
  db = await opened(path);
  put(db, 1);
  flush(db);
  expect((await db.verify()).problems).toEqual([]);
  await db.close();
  const again = readFileSync(fileIn(path));
  for (let at = 100; at < again.length; at += PAGE) again[at] ^= 1;
  writeFileSync(fileIn(path), again);
  truncateSync(fileIn(media), 0);
  // Damage on both sides is told, never read as data.
  db = await opened(path);
  expect(() => db.scan(T).toArray()).toThrow(/checksum.*; and in the media log: it ends before/);
  await db.close();
});

it("loses nothing when the power is lost on both disks, at any step of a move", async () => {
  for (let lostAt = 1; lostAt <= 8; lostAt++) {
    const path = stores.folder();
    const media = stores.folder();
    const disk = new FaultyFiles({ seed: seed + lostAt });
    const other = new FaultyFiles({ seed: seed + lostAt + 100 });
    replaceDeviceFiles(path, disk);
    replaceDeviceFiles(media, other);
    stores.later(() => {
      replaceDeviceFiles(path, undefined);
      replaceDeviceFiles(media, undefined);
    });
    let db = await opened(path, media);
    put(db, 1);
    flush(db);
    put(db, 2);
    const [failing] = lostAt % 2 === 0 ? [disk] : [other];
    failing.fail({ kind: "power", at: failing.operations + Math.ceil(lostAt / 2) });
    try {
      for (let round = 0; round < 2; round++) flush(db);
    } catch (error) {
      expect((error as Error).name).toBe("PowerLost");
    }
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    replaceDeviceFiles(path, disk.powerLoss(new Random(seed + lostAt)));
    replaceDeviceFiles(media, other.powerLoss(new Random(seed - lostAt)));
    db = await opened(path, media);
    expectRows(db, 2);
    expect((await db.verify()).problems).toEqual([]);
    flush(db);
    expectRows(db, 2);
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
  }
});

it("keeps rows in memory while the other disk fails", async () => {
  const path = stores.folder();
  const media = stores.folder();
  const other = new FaultyFiles({ seed });
  replaceDeviceFiles(media, other);
  stores.later(() => replaceDeviceFiles(media, undefined));
  const db = await opened(path, media);
  put(db, 1);
  other.fail({ kind: "EIO", on: "sync", times: 1_000 });
  // A move that somebody is in the way of leaves rows to the next one.
  let failure: unknown;
  for (let i = 0; failure === undefined && i < MOVES; i++) {
    try {
      flush(db);
    } catch (error) {
      failure = error;
    }
  }
  expect(String(failure)).toContain("input/output error");
  expect(workIn(db).mover.moved).toBe(0);
  other.forgive();
  for (let i = 0; workIn(db).mover.moved <= ROWS && i < MOVES; i++) flush(db);
  expect(workIn(db).mover.moved).toBe(ROWS + 1);
  expectRows(db, 1);
  expect((await db.verify()).problems).toEqual([]);
});

it("is written by processes that had the store open before there was one", async () => {
  const path = stores.folder();
  const media = stores.folder();
  const before = await opened(path);
  // It knows its tables, and that they have no file.
  expect(before.count(T)).toBe(0);
  const after = await opened(path, media);
  put(before, 1);
  flush(before);
  await before.updateWhere(T, { place: "device", set: { n: 2 } });
  expect(readFileSync(fileIn(media)).length).toBe(readFileSync(fileIn(path)).length);
  expect((await after.verify()).problems).toEqual([]);
  await before.close();
  await after.close();
  rmSync(fileIn(path));
  const again = await opened(path);
  expectRows(again, 2);
});

it("waits for one who writes pages when it is noted, and gives up if that does not move", async () => {
  const path = stores.folder();
  const db = await opened(path);
  const { i32 } = db.executor.memory.control;
  Atomics.store(i32, DEVICE_KEEPER, db.executor.slot + 1);
  const later = { path, tables: [T], mediaLog: stores.folder(), timeoutMs: 20 };
  await expect(stores.open(later)).rejects.toMatchObject({ code: "SITU_TIMEOUT" });
  Atomics.store(i32, DEVICE_KEEPER, 0);
  await stores.open(later);
});

it("belongs to one store, from its beginning, and goes with it", async () => {
  const path = stores.folder();
  const media = stores.folder();
  const db = await opened(path, media);
  put(db, 1);
  flush(db);
  await expect(opened(path, stores.folder())).rejects.toMatchObject({ code: "SITU_CONFIG" });
  await expect(opened(stores.folder(), media)).rejects.toThrow("another store");
  await expect(opened(path, "")).rejects.toMatchObject({ code: "SITU_CONFIG" });
  const without = await opened(stores.folder());
  put(without, 1);
  flush(without);
  await expect(opened(without.path, stores.folder())).rejects.toThrow("before the first rows");
  await db.close();
  await destroy(path);
  expect(readdirSync(join(media, "device"))).toEqual([]);
});
