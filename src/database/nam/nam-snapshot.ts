/**
 * A snapshot of memory servers: a vector of timestamps. Old versions are kept for a while whether anybody reads them or not. A scan
 * reads all cells of a table (protocols/nam/scan.ts), in no particular order.
 */

import { planRemote } from "../../protocols/execute/remote-scan-plan.ts";
import { FIRST_PLACE, type ScanPlace } from "../../protocols/nam/scan.ts";
import type { NamTransaction } from "../../protocols/nam/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import type { CountOptions, ScanOptions } from "../../tables/indexes/read-options.ts";
import type { Table } from "../../tables/table.ts";
import { RemoteTransaction } from "../remote/remote-transaction.ts";
import { AsyncRowScan } from "../run/row-scan.ts";
import type { AsyncScan } from "../scan.ts";
import type { RemoteSnapshot } from "../snapshot.ts";
import { type NamHost, namFetcher, noBulk, readWith } from "./nam-execution.ts";
import type { NamRows } from "./nam-rows.ts";

export interface NamSnapshotOptions {
  readonly host: NamHost;
  /** It has begun. */
  readonly attempt: NamTransaction;
  readonly timeoutMs: number;
  rowsOf(table: Table): NamRows;
  /** Throws if the database is closed. */
  check(): void;
}

export class NamSnapshot implements RemoteSnapshot {
  readonly #options: NamSnapshotOptions;
  #isClosed = false;

  constructor(options: NamSnapshotOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  async get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return await this.#transaction().get(table, key);
  }

  async getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    return await this.#transaction().getMany(table, keys);
  }

  async has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return await this.#transaction().has(table, key);
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    this.#check();
    const { host } = this.#options;
    const { limit } = planRemote("scan", host.tableOf(table as Table), options);
    return new AsyncRowScan(() => this.#rowsOf<Row>(table as Table, limit));
  }

  async count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    this.#check();
    planRemote("count", this.#options.host.tableOf(table as Table), options);
    let rows = 0;
    for await (const found of this.#dataOf(table as Table)) rows += found.length;
    return rows;
  }

  select(): never {
    throw noBulk();
  }

  async aggregate(): Promise<never> {
    throw noBulk();
  }

  async explain(): Promise<never> {
    throw noBulk();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#rowsOf<Row>(table: Table, limit: number): AsyncGenerator<Row, undefined> {
    const rows = this.#options.rowsOf(table);
    let left = limit;
    for await (const found of this.#dataOf(table)) {
      for (const data of found) {
        if (left-- <= 0) return;
        this.#check();
        yield rows.row(data) as Row;
      }
      if (left <= 0) return;
    }
  }

  /** What the records have, some cells at a time. */
  async *#dataOf(table: Table): AsyncGenerator<readonly Int32Array[], undefined> {
    const { host, attempt, timeoutMs, rowsOf } = this.#options;
    const { extents } = rowsOf(table);
    let place: ScanPlace | undefined = FIRST_PLACE;
    while (place !== undefined) {
      const at: ScanPlace = place;
      this.#check();
      const { bodies, next } = await readWith(
        host,
        () => host.driver.start(attempt.scan(extents, at), timeoutMs),
        () => timeoutMs,
        false,
      );
      yield bodies.map((body) => extents.dataOf(body));
      place = next;
    }
  }

  #check(): void {
    this.#options.check();
    if (this.#isClosed) {
      throw new SituError("SITU_CLOSED", "this snapshot is closed: take a new one");
    }
  }

  #transaction(): RemoteTransaction {
    this.#check();
    const { host, attempt, timeoutMs } = this.#options;
    return new RemoteTransaction(namFetcher(host, attempt, () => timeoutMs, false));
  }
}
