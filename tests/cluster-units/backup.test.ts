/** A backup's records: their order, decisions, duplicates, and what an earlier life has left. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import type { Incoming } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { BackupRecords } from "../../src/protocols/backup-records.ts";
import { AT_ONCE } from "../../src/protocols/disk.ts";
import { LOG, TRUNCATE } from "../../src/protocols/kinds.ts";
import { Name } from "../../src/protocols/names.ts";
import { Log, LogWrites, serveLog } from "../../src/protocols/phases/log.ts";
import type { ServingThread } from "../../src/protocols/phases/table.ts";
import { serveTruncate, Truncate } from "../../src/protocols/phases/truncate.ts";
import { Head } from "../../src/protocols/records.ts";
import { WriteList } from "../../src/protocols/writes.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { RecordLog, ServedTable, ServedTables } from "../../src/tables/served/contract.ts";
import { PUT } from "../../src/tables/served/requests.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded, ManualClock } from "./fake-endpoint.ts";

/** What survives the end of a backup, and what it has applied. */
class Kept implements RecordLog {
  readonly records = new Map<number, Int32Array>();
  isFull = false;

  append(arrival: number, record: Int32Array): void {
    if (this.isFull) throw new SituError("SITU_FULL", "the store is full");
    expect(this.records.has(arrival)).toBe(false);
    this.records.set(arrival, record.slice());
  }

  replace(arrival: number, _before: Int32Array, record: Int32Array): void {
    this.records.set(arrival, record.slice());
  }

  remove(_tx: unknown, arrival: number): void {
    // Here it goes at once, in a store with the commit of what applies it.
    this.records.delete(arrival);
  }

  drop(arrival: number): void {
    this.records.delete(arrival);
  }

  installed(): Int32Array[] {
    return [];
  }

  all(): { arrival: number; record: Int32Array }[] {
    const sorted = [...this.records].sort(([a], [b]) => (a - b) | 0);
    return sorted.map(([arrival, record]) => ({ arrival, record }));
  }
}

class Tables implements ServedTables {
  readonly applied: number[] = [];
  maintained = 0;
  /** Writes that fit one local transaction. */
  most = Number.POSITIVE_INFINITY;
  #lives = 0;
  #writes: number[] = [];

  /** Of a transaction that is too large nothing stays. */
  #write({ lives }: Transaction, value: number): void {
    if (lives !== this.#lives) this.#writes = [];
    this.#lives = lives;
    this.#writes.push(value);
    this.applied.push(value);
    if (this.#writes.length <= this.most) return;
    this.applied.length -= this.#writes.length;
    throw new SituError("SITU_TOO_LARGE", "a journal holds less");
  }

  byId(id: number): ServedTable {
    if (id !== 5) throw new SituError("SITU_UNKNOWN_TABLE", `no table ${id}`);
    return {
      name: "five",
      read: () => false,
      placeToWrite: () => undefined,
      write: (tx, request) =>
        this.#write(
          tx,
          request.code === PUT ? request.views.i32[request.at + 1] : -(request.key as number),
        ),
      check: (request) =>
        request.code === PUT ? request.views.i32[request.at] : (request.key as number),
      scan: () => {},
      maintain: () => void this.maintained++,
    };
  }

  open(): string {
    return "null";
  }
}

let store: EngineStore;
let executor: Executor;
let kept: Kept;
let tables: Tables;
let clock: ManualClock;

beforeEach(() => {
  answered = 0;
  store = new EngineStore();
  executor = store.open();
  executor.isPatient = false;
  kept = new Kept();
  tables = new Tables();
  clock = new ManualClock();
});
afterEach(() => store.dispose());

const start = (): BackupRecords => new BackupRecords(executor, tables, kept, clock);

/** As much of a thread as records need. */
const thread = (backup: BackupRecords): ServingThread =>
  ({ backup, disk: AT_ONCE }) as unknown as ServingThread;

function headOf(name: Name): Head {
  return new Head(name, 3, undefined, [0]);
}

/** TRUNCATEs that were answered later. */
let answered = 0;

function incoming(kind: number, write: (out: Writer) => void): Incoming {
  return {
    from: { node: 1, connection: 0 },
    kind,
    body: encoded(write),
    reply: () => new Writer(),
    defer: () => ({
      isWanted: true,
      reply: () => void answered++,
      fail: (error) => {
        throw error;
      },
    }),
  };
}

/** Logs a put of each row; without rows, of one of its own. */
function log(
  backup: BackupRecords,
  sequence: number,
  { rows = [sequence], low = 0, coordinator = 1, table = 5 } = {},
): void {
  const name = Object.assign(new Name(), { coordinator, sequence, low });
  const list = new WriteList(new Writer());
  for (const row of rows) list.put(table, 0, Int32Array.of(row, sequence), 0, 2);
  const words = list.words();
  const writes = new LogWrites();
  for (let at = 0; at < words.length; at += words[at]) writes.add(words, at);
  const message = new Log(0, headOf(name), writes);
  serveLog(
    thread(backup),
    incoming(LOG, (out) => message.encode(out)),
  );
}

function truncate(
  backup: BackupRecords,
  committed: number[],
  { low = 0, coordinator = 1, aborted = [] as number[] } = {},
): void {
  const message = new Truncate(0, coordinator, low, committed, aborted);
  serveTruncate(
    thread(backup),
    incoming(TRUNCATE, (out) => message.encode(out)),
  );
}

describe("a backup", () => {
  test("applies the records of one row in the order of arrival, whatever the order of the outcomes", () => {
    const backup = start();
    for (const sequence of [12, 11, 13]) log(backup, sequence, { rows: [7] });
    truncate(backup, [13, 11]);
    expect([tables.applied, backup.logged, answered]).toEqual([[], 3, 0]);
    truncate(backup, [12]);
    expect(tables.applied).toEqual([12, 11, 13]);
    expect([backup.logged, kept.records.size]).toEqual([0, 0]);
    // Now what it names is applied.
    expect(answered).toBe(1);
    expect(tables.maintained).toBeGreaterThan(0);
  });

  test("one that nobody decides about holds up those that write its rows, and nobody else", () => {
    const backup = start();
    log(backup, 11, { rows: [1, 2] });
    log(backup, 21, { rows: [2, 3], coordinator: 2 });
    log(backup, 22, { rows: [3], coordinator: 2 });
    log(backup, 23, { rows: [4], coordinator: 2 });
    truncate(backup, [21, 22, 23], { coordinator: 2 });
    expect(tables.applied).toEqual([23]);
    truncate(backup, [11]);
    expect(tables.applied).toEqual([23, 11, 11, 21, 21, 22]);
    expect([backup.logged, kept.records.size]).toEqual([0, 0]);
  });

  test("drops what is aborted at once; those behind it still wait for those before it", () => {
    const backup = start();
    for (const sequence of [11, 12, 13]) log(backup, sequence, { rows: [7] });
    truncate(backup, [13], { aborted: [12] });
    expect([tables.applied, kept.records.size, answered]).toEqual([[], 2, 0]);
    truncate(backup, [11]);
    expect(tables.applied).toEqual([11, 13]);
    expect([backup.logged, kept.records.size, answered]).toEqual([0, 0, 1]);
    failureSync("SITU_PROTOCOL", () => log(backup, 12));
  });

  test("takes duplicates once, and refuses what is over or below low", () => {
    const backup = start();
    log(backup, 11);
    log(backup, 11);
    expect(kept.records.size).toBe(1);
    truncate(backup, [11]);
    truncate(backup, [11]);
    failureSync("SITU_PROTOCOL", () => log(backup, 11));
    truncate(backup, [], { low: 20 });
    failureSync("SITU_PROTOCOL", () => log(backup, 12));
    expect([backup.logged, kept.records.size]).toEqual([0, 0]);
    expect(tables.applied).toEqual([11]);
  });

  test("its next life keeps the order where the numbers of arrivals have gone round", () => {
    const before = start();
    for (const sequence of [11, 12, 13]) log(before, sequence, { rows: [7] });
    const [a, b, c] = [...kept.records.values()];
    kept.records.clear();
    kept.records
      .set(0, b)
      .set(2 ** 32 - 1, a)
      .set(1, c);
    const after = start();
    log(after, 14, { rows: [7] });
    expect([...kept.records.keys()].sort((x, y) => x - y)).toEqual([0, 1, 2, 2 ** 32 - 1]);
    truncate(after, [11, 12, 13, 14]);
    expect(tables.applied).toEqual([11, 12, 13, 14]);
  });

  test("refuses what it could not apply later, and is asked again for what it has no room for", () => {
    const backup = start();
    failureSync("SITU_UNKNOWN_TABLE", () => log(backup, 11, { table: 6 }));
    kept.isFull = true;
    failureSync("SITU_OVERLOADED", () => log(backup, 12));
    expect(backup.logged).toBe(0);
    kept.isFull = false;
    log(backup, 12);
    truncate(backup, [12]);
    expect(tables.applied).toEqual([12]);
  });

  test("applies nothing that it is not told of, however far its coordinator is", () => {
    const before = start();
    log(before, 11);
    log(before, 500, { coordinator: 2 });
    before.close();

    const after = start();
    expect(after.logged).toBe(2);
    truncate(after, [], { low: 100 });
    log(after, 9_000, { low: 9_000, coordinator: 2 });
    truncate(after, [9_000], { low: 9_000, coordinator: 2 });
    expect(tables.applied).toEqual([9_000]);
    // Below the low of their coordinators, they are known, and decided when somebody does.
    log(after, 11);
    truncate(after, [11], { low: 100 });
    truncate(after, [], { aborted: [500], coordinator: 2 });
    expect(tables.applied).toEqual([9_000, 11]);
    expect([after.logged, kept.records.size]).toEqual([0, 0]);
  });

  test("what is more than a journal holds is applied record by record, or in pieces", () => {
    const backup = start();
    const apply = (): void => {
      for (let i = 0; i < 100 && backup.logged > 0; i++) clock.advance(10);
    };
    for (const sequence of [11, 12, 13]) log(backup, sequence, { rows: [sequence, -sequence] });
    tables.most = 3;
    truncate(backup, [11, 12, 13]);
    apply();
    expect(tables.applied).toEqual([11, 11, 12, 12, 13, 13]);
    // One record of many writes, among others.
    tables.applied.length = 0;
    log(backup, 14);
    log(backup, 15, { rows: Array.from({ length: 3_000 }, (_, i) => 1_000 + i) });
    log(backup, 16);
    tables.most = 100;
    truncate(backup, [14, 15, 16]);
    apply();
    expect(tables.applied).toEqual([14, ...new Array(3_000).fill(15), 16]);
    expect([backup.logged, kept.records.size]).toEqual([0, 0]);
  });

  test("closed, it applies nothing any more", () => {
    const backup = start();
    log(backup, 11);
    backup.close();
    truncate(backup, [11]);
    clock.advance(1_000);
    expect(tables.applied).toEqual([]);
    expect(kept.records.size).toBe(1);
  });
});
