/**
 * The records of a thread of a node, as rows of a table of its store. Each thread has a table of its own for
 * each role: nobody else writes to it, so that a record can be removed in the transaction that installs it
 * without meeting anybody's lock. A record may be as long as a message, which
 * is more than a value or a journal holds: it is kept in parts, each in a transaction of its own.
 * Part 0 comes last and says how many there are; without it the record has not arrived.
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

const FIELDS = { arrival: u32(), part: u8(), parts: u8(), record: bytes() };
const KEY = ["arrival", "part"] as const;

interface Row {
  arrival: number;
  part: number;
  parts: number;
  record: Uint8Array;
}

export class StoreRecordLog implements RecordLog {
  readonly #executor: Executor;
  readonly #tx: Transaction;
  readonly #store: Store<Row, [number, number]>;
  readonly #row: Row = { arrival: 0, part: 0, parts: 1, record: new Uint8Array(0) };
  readonly #put = (): void => this.#store.put(this.#tx, this.#row);

  /** `name` is that of its table (own-tables.ts). */
  constructor(executor: Executor, name: string) {
    this.#executor = executor;
    this.#tx = new Transaction(executor);
    this.#store = openTable(executor, table(name, FIELDS, { key: KEY })).rows as unknown as Store<
      Row,
      [number, number]
    >;
  }

  append(arrival: number, record: Int32Array): void {
    const all = new Uint8Array(record.buffer, record.byteOffset, record.byteLength);
    const row = this.#row;
    row.arrival = arrival;
    row.parts = Math.ceil(all.length / MAX_VALUE_BYTES);
    this.#tx.subject = "the record of a transaction";
    for (row.part = row.parts - 1; row.part >= 0; row.part--) {
      const from = row.part * MAX_VALUE_BYTES;
      row.record = all.subarray(from, from + MAX_VALUE_BYTES);
      runSync(this.#executor, this.#tx, DEFAULT_TIMEOUT_MS, this.#put, undefined);
    }
    this.#store.maintain();
  }

  remove(tx: Transaction, arrival: number, record: Int32Array): void {
    const parts = Math.ceil(record.byteLength / MAX_VALUE_BYTES);
    for (let part = 0; part < parts; part++) this.#store.remove(tx, [arrival, part]);
  }

  drop(arrival: number, record: Int32Array): void {
    const remove = (): void => this.remove(this.#tx, arrival, record);
    runSync(this.#executor, this.#tx, DEFAULT_TIMEOUT_MS, remove, undefined);
  }

  all(): { readonly arrival: number; readonly record: Int32Array }[] {
    // Arrivals go round in a circle of 32 bits; those that are kept lie close together.
    const rows = this.#rows().sort((a, b) => (a.arrival - b.arrival) | 0 || a.part - b.part);
    const found: { readonly arrival: number; readonly record: Int32Array }[] = [];
    for (const [i, { arrival, part, parts }] of rows.entries()) {
      if (part !== 0) continue;
      const record = Buffer.concat(rows.slice(i, i + parts).map((each) => each.record));
      found.push({ arrival, record: new Int32Array(new Uint8Array(record).buffer) });
    }
    const arrived = new Set(found.map(({ arrival }) => arrival));
    for (const row of rows) if (!arrived.has(row.arrival)) this.#forget(row);
    return found;
  }

  /** A part of a record whose part 0 never came: nobody was told that it is here. */
  #forget({ arrival, part }: Row): void {
    const tx = this.#tx;
    const remove = (): boolean => this.#store.remove(tx, [arrival, part]);
    runSync(this.#executor, tx, DEFAULT_TIMEOUT_MS, remove, undefined);
  }

  #rows(): Row[] {
    return runReadOnly(
      this.#executor,
      new Transaction(this.#executor),
      (tx) => {
        const all: Row[] = [];
        const cursor = this.#store.cursor({ from: undefined, to: undefined }, false);
        for (const rows: Row[] = []; cursor.next(tx, rows, SCAN_BATCH_ROWS); ) all.push(...rows);
        return all;
      },
      undefined,
    );
  }
}
