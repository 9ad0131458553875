/**
 * The records of a thread of a node, in its store: short ones in slots (record-slots.ts), the others as rows of
 * a table. Each thread has a log of its own for each role: nobody else writes to it, so that a record can be
 * removed in the transaction that installs it without meeting anybody's lock. A record may be as long as a
 * message, which is more than a value or a journal holds: as rows it is kept in parts, each in a transaction of
 * its own. Part 0 comes last and says how many there are; without it the record has not arrived.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly, runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { DEFAULT_TIMEOUT_MS, MAX_VALUE_BYTES, SCAN_BATCH_ROWS } from "../../runtime/limits.ts";
import type { Store } from "../../stores/store.ts";
import { openTable } from "../catalogue.ts";
import { bytes, u8, u32 } from "../fields.ts";
import { table } from "../table.ts";
import type { RecordLog } from "./contract.ts";
import { RecordSlots } from "./record-slots.ts";

const FIELDS = { arrival: u32(), part: u8(), parts: u8(), record: bytes() };
const KEY = ["arrival", "part"] as const;

interface Row {
  arrival: number;
  part: number;
  parts: number;
  record: Uint8Array;
}

interface Found {
  readonly arrival: number;
  readonly record: Int32Array;
}

const NOTHING: Int32Array = new Int32Array(0);

export class StoreRecordLog implements RecordLog {
  readonly #executor: Executor;
  readonly #tx: Transaction;
  readonly #slots: RecordSlots;
  readonly #store: Store<Row, [number, number]>;
  /** What the bodies of its transactions are about: they are run often, and made once. */
  readonly #row: Row = { arrival: 0, part: 0, parts: 1, record: new Uint8Array(0) };
  #record: Int32Array = NOTHING;
  readonly #intoSlot = (): void => this.#slots.put(this.#tx, this.#row.arrival, this.#record);
  readonly #intoRow = (): void => {
    const { arrival, part } = this.#row;
    this.#store.put(this.#tx, this.#row);
    // What it replaces goes when the last of it is there.
    if (part === 0 && this.#slots.has(arrival)) this.#slots.clear(this.#tx, arrival, false);
  };

  /** `name` is that of its table (own-tables.ts). */
  constructor(executor: Executor, name: string) {
    this.#executor = executor;
    this.#tx = new Transaction(executor);
    this.#tx.subject = "the record of a transaction";
    this.#slots = new RecordSlots(executor, name);
    this.#store = openTable(executor, table(name, FIELDS, { key: KEY })).rows as unknown as Store<
      Row,
      [number, number]
    >;
  }

  append(arrival: number, record: Int32Array): void {
    this.#row.arrival = arrival;
    if (this.#slots.hasRoom(arrival, record)) this.#putInSlot(record);
    else this.#putRows(record);
  }

  replace(arrival: number, before: Int32Array, record: Int32Array): void {
    this.#row.arrival = arrival;
    if (this.#slots.has(arrival) && this.#slots.fits(record)) {
      this.#putInSlot(record);
      return;
    }
    // Parts of two records would be mixed up. Should the node die in between, it has none.
    if (!this.#slots.has(arrival) && partsOf(before) > 1) this.drop(arrival, before);
    this.#putRows(record);
  }

  #putInSlot(record: Int32Array): void {
    this.#record = record;
    this.#run(this.#intoSlot);
    this.#record = NOTHING;
  }

  #putRows(record: Int32Array): void {
    const all = new Uint8Array(record.buffer, record.byteOffset, record.byteLength);
    const row = this.#row;
    row.parts = partsOf(record);
    for (row.part = row.parts - 1; row.part >= 0; row.part--) {
      const from = row.part * MAX_VALUE_BYTES;
      row.record = all.subarray(from, from + MAX_VALUE_BYTES);
      this.#run(this.#intoRow);
    }
    this.#store.maintain();
  }

  remove(tx: Transaction, arrival: number, record: Int32Array): void {
    this.#remove(tx, arrival, record, true);
  }

  #remove(tx: Transaction, arrival: number, record: Int32Array, isInstalled: boolean): void {
    if (this.#slots.has(arrival)) {
      this.#slots.clear(tx, arrival, isInstalled);
      return;
    }
    const parts = partsOf(record);
    for (let part = 0; part < parts; part++) this.#store.remove(tx, [arrival, part]);
  }

  drop(arrival: number, record: Int32Array): void {
    this.#run(() => this.#remove(this.#tx, arrival, record, false));
  }

  installed(): Int32Array[] {
    const read = (tx: Transaction): Int32Array[] => this.#slots.installed(tx);
    return runReadOnly(this.#executor, new Transaction(this.#executor), read, undefined);
  }

  all(): Found[] {
    const { rows, found } = this.#read();
    rows.sort((a, b) => (a.arrival - b.arrival) | 0 || a.part - b.part);
    for (const [i, { arrival, part, parts }] of rows.entries()) {
      if (part !== 0) continue;
      const record = Buffer.concat(rows.slice(i, i + parts).map((each) => each.record));
      found.push({ arrival, record: new Int32Array(new Uint8Array(record).buffer) });
    }
    const arrived = new Set(found.map(({ arrival }) => arrival));
    for (const row of rows) if (!arrived.has(row.arrival)) this.#forget(row);
    // Arrivals go round in a circle of 32 bits; those that are kept lie close together.
    return found.sort((a, b) => (a.arrival - b.arrival) | 0);
  }

  /** A part of a record whose part 0 never came: nobody was told that it is here. */
  #forget({ arrival, part }: Row): void {
    this.#run(() => void this.#store.remove(this.#tx, [arrival, part]));
  }

  #run(body: () => void): void {
    runSync(this.#executor, this.#tx, DEFAULT_TIMEOUT_MS, body, undefined);
  }

  #read(): { readonly rows: Row[]; readonly found: Found[] } {
    const read = (tx: Transaction): { readonly rows: Row[]; readonly found: Found[] } => {
      const all: Row[] = [];
      const cursor = this.#store.cursor({ from: undefined, to: undefined }, false);
      for (const rows: Row[] = []; cursor.next(tx, rows, SCAN_BATCH_ROWS); ) all.push(...rows);
      return { rows: all, found: this.#slots.all(tx) };
    };
    return runReadOnly(this.#executor, new Transaction(this.#executor), read, undefined);
  }
}

function partsOf({ byteLength }: Int32Array): number {
  return Math.ceil(byteLength / MAX_VALUE_BYTES);
}
