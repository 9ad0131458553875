/** The records of a thread in its store: slots and rows, order, parts, and what was left half-way. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { runReadOnly, runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { readIdentity, removeMemory } from "../../src/folder/store-files.ts";
import { RECORD_SLOT_WORDS, RECORD_SLOTS } from "../../src/runtime/limits.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { bytes, u8, u32 } from "../../src/tables/fields.ts";
import { BACKUP_LOG, LOCK_RECORDS } from "../../src/tables/own-tables.ts";
import { StoreRecordLog } from "../../src/tables/served/record-log.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

test("kept in the order of arrival, also where it goes round, and in parts; half a record is none", async () => {
  const db = await stores.open({ memoryBytes: 64 * 2 ** 20 });
  const executor = await attach(settingsOf({ path: db.path }), (attached) => attached.executor);
  try {
    const log = new StoreRecordLog(executor, BACKUP_LOG);
    const long = Int32Array.from({ length: 700_000 }, (_, i) => i * 2_654_435_761);
    const short = Int32Array.of(1, 2);
    log.append(0, long);
    log.append(2 ** 32 - 1, short);
    log.append(1, short);
    const tx = new Transaction(executor);
    const Records = table(
      "situ backup log",
      { arrival: u32(), part: u8(), parts: u8(), record: bytes() },
      { key: ["arrival", "part"] },
    );
    const { rows } = openTable(executor, Records);
    const half = { arrival: 2, part: 1, parts: 2, record: new Uint8Array(8) };
    runSync(executor, tx, 1_000, () => rows.put(tx, half), undefined);

    const found = new StoreRecordLog(executor, BACKUP_LOG).all();
    expect(found.map(({ arrival }) => arrival)).toEqual([2 ** 32 - 1, 0, 1]);
    expect(found[1].record).toEqual(long);
    expect(rows.get([2, 1])).toBeUndefined();

    runSync(executor, tx, 1_000, () => log.remove(tx, 0, long), undefined);
    expect(log.all().map(({ arrival }) => arrival)).toEqual([2 ** 32 - 1, 1]);
    expect(rows.get([0, 2])).toBeUndefined();
    log.drop(1, short);
    expect(log.all().map(({ arrival }) => arrival)).toEqual([2 ** 32 - 1]);
  } finally {
    executor.close();
  }
});

describe("slots", () => {
  let executor: Executor;
  beforeEach(async () => {
    const db = await stores.open({ memoryBytes: 64 * 2 ** 20 });
    executor = await attach(settingsOf({ path: db.path }), (attached) => attached.executor);
  });
  afterEach(() => executor.close());

  const open = (name: string = LOCK_RECORDS.nic): StoreRecordLog =>
    new StoreRecordLog(executor, name);
  const short = (value: number): Int32Array => Int32Array.of(1, value);
  const arrivals = (log: StoreRecordLog): number[] => log.all().map(({ arrival }) => arrival);
  /** Records that are not in slots. */
  const rowsOf = (name: string): number => {
    const Records = table(
      name,
      { arrival: u32(), part: u8(), parts: u8(), record: bytes() },
      { key: ["arrival", "part"] },
    );
    const { rows } = openTable(executor, Records);
    const cursor = rows.cursor({ from: undefined, to: undefined }, false);
    return runReadOnly(executor, new Transaction(executor), (tx) => cursor.skip(tx), undefined);
  };

  test("go round: a record that stays is in the way of one arrival of a round, which is a row", () => {
    const log = open();
    log.append(3, short(-1));
    for (let arrival = 4; arrival < 3 + 2 * RECORD_SLOTS; arrival++) {
      log.append(arrival, short(arrival));
      if (arrival === 3 + RECORD_SLOTS) {
        expect(rowsOf(LOCK_RECORDS.nic)).toBe(1);
        expect(arrivals(open())).toEqual([3, arrival]);
      }
      log.drop(arrival, short(arrival));
    }
    expect(rowsOf(LOCK_RECORDS.nic)).toBe(0);
    expect(log.all()).toEqual([{ arrival: 3, record: short(-1) }]);
    log.drop(3, short(-1));
    expect(arrivals(open())).toEqual([]);
  });

  test("all of them in use: further records are rows, and each is removed where it is", () => {
    const log = open();
    const all = Array.from({ length: RECORD_SLOTS + 50 }, (_, i) => (2 ** 32 - 100 + i) % 2 ** 32);
    for (const arrival of all) log.append(arrival, short(arrival));
    expect(rowsOf(LOCK_RECORDS.nic)).toBe(50);
    expect(arrivals(open())).toEqual(all);
    const even = all.filter((arrival) => arrival % 2 === 0);
    for (const arrival of even) log.drop(arrival, short(arrival));
    expect(arrivals(open())).toEqual(all.filter((arrival) => arrival % 2 === 1));
    expect(rowsOf(LOCK_RECORDS.nic)).toBe(25);
  });

  test("of two logs are apart, and hold records up to their size", () => {
    const [mine, other] = [open(), open(LOCK_RECORDS.host)];
    const longest = new Int32Array(RECORD_SLOT_WORDS - 2).fill(7);
    const longer = new Int32Array(RECORD_SLOT_WORDS).fill(8);
    mine.append(0, longest);
    mine.append(1, longer);
    other.append(0, short(5));
    expect(rowsOf(LOCK_RECORDS.nic)).toBe(1);
    expect(
      open()
        .all()
        .map(({ record }) => record),
    ).toEqual([longest, longer]);
    expect(open(LOCK_RECORDS.host).all()).toEqual([{ arrival: 0, record: short(5) }]);
  });

  test("a removal that is not committed removes nothing", () => {
    const log = open();
    log.append(0, short(1));
    const tx = new Transaction(executor);
    log.remove(tx, 0, short(1));
    tx.clear();
    expect(arrivals(open())).toEqual([0]);
    // The slot is taken: what comes a round later is a row.
    log.append(RECORD_SLOTS, short(2));
    runSync(executor, tx, 1_000, () => log.remove(tx, 0, short(1)), undefined);
    expect(arrivals(open())).toEqual([RECORD_SLOTS]);
    log.append(2 * RECORD_SLOTS, short(3));
    expect(rowsOf(LOCK_RECORDS.nic)).toBe(1);
  });

  test("a record that is replaced keeps its arrival, in its slot, as a row and in parts", () => {
    const log = open();
    for (const arrival of [0, 1, 2]) log.append(arrival, short(arrival));
    const records = [
      short(10),
      new Int32Array(RECORD_SLOT_WORDS).fill(11),
      new Int32Array(270_000).fill(12),
      new Int32Array(530_000).fill(13),
    ];
    let before = short(1);
    for (const record of records) {
      log.replace(1, before, record);
      const found = open().all();
      expect(found.map(({ arrival }) => arrival)).toEqual([0, 1, 2]);
      expect(Buffer.from(found[1].record.buffer).equals(Buffer.from(record.buffer))).toBe(true);
      before = record;
    }
    log.drop(1, before);
    expect(arrivals(open())).toEqual([0, 2]);
    expect(rowsOf(LOCK_RECORDS.nic)).toBe(0);
  });
});

test("what is on disk is there after a loss of power: in slots, as a row, and removed", async () => {
  const path = stores.folder();
  const longer = new Int32Array(RECORD_SLOT_WORDS).fill(8);
  const during = async (run: (log: StoreRecordLog, executor: Executor) => void): Promise<void> => {
    const db = await stores.open({ path, durability: "sync", memoryBytes: 32 * 2 ** 20 });
    const executor = await attach(settingsOf({ path }), (attached) => attached.executor);
    try {
      run(new StoreRecordLog(executor, BACKUP_LOG), executor);
      await executor.durability.await(executor.committer.lastEpoch, 20_000);
    } finally {
      executor.close();
      await db.close();
    }
    removeMemory(readIdentity(path)!);
  };
  await during((log) => {
    for (let arrival = 0; arrival < 100; arrival++) log.append(arrival, Int32Array.of(1, arrival));
    log.append(100, longer);
    for (let arrival = 1; arrival < 99; arrival++) log.drop(arrival, Int32Array.of(1, arrival));
  });
  await during((log) => {
    const found = log.all();
    expect(found.map(({ arrival }) => arrival)).toEqual([0, 99, 100]);
    expect(found[1].record).toEqual(Int32Array.of(1, 99));
    expect(found[2].record).toEqual(longer);
    log.append(101, Int32Array.of(1, 101));
    log.drop(0, found[0].record);
  });
  await during((log) => {
    expect(log.all().map(({ arrival }) => arrival)).toEqual([99, 100, 101]);
  });
});
