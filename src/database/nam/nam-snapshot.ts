/** A snapshot of memory servers: a vector of timestamps. Old versions are kept for a while whether anybody reads them or not. */

import { SituError } from "../../runtime/errors.ts";
import type { Table } from "../../tables/table.ts";
import { type Fetcher, RemoteTransaction } from "../remote/remote-transaction.ts";
import type { RemoteSnapshot } from "../snapshot.ts";
import { noScans } from "./nam-execution.ts";

export class NamSnapshot implements RemoteSnapshot {
  readonly #fetcher: Fetcher;
  readonly #check: () => void;
  #isClosed = false;

  /** `check` throws if the database is closed. */
  constructor(fetcher: Fetcher, check: () => void) {
    this.#fetcher = fetcher;
    this.#check = check;
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

  scan(): never {
    throw noScans();
  }

  async count(): Promise<never> {
    throw noScans();
  }

  select(): never {
    throw noScans();
  }

  async aggregate(): Promise<never> {
    throw noScans();
  }

  async explain(): Promise<never> {
    throw noScans();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #transaction(): RemoteTransaction {
    this.#check();
    if (this.#isClosed) {
      throw new SituError("SITU_CLOSED", "this snapshot is closed: take a new one");
    }
    return new RemoteTransaction(this.#fetcher);
  }
}
