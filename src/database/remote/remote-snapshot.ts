/** Snapshots of a cluster: what was committed at all nodes at one point in time (docs/decisions/0071). */

import type { Routine } from "../../protocols/message.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Plan } from "../../tables/bulk/plan.ts";
import type { CountOptions, ScanOptions } from "../../tables/indexes/read-options.ts";
import type { Table } from "../../tables/table.ts";
import type { AsyncScan } from "../scan.ts";
import type { RemoteSnapshot as PublicRemoteSnapshot } from "../snapshot.ts";
import { type Fetcher, RemoteTransaction } from "./remote-transaction.ts";
import { isTooOld, type TakenSnapshot } from "./taken-snapshot.ts";

export class RemoteSnapshot implements PublicRemoteSnapshot {
  readonly #taken: TakenSnapshot;
  readonly #fetcher: Fetcher;
  readonly #check: () => void;
  readonly #closed: (snapshot: RemoteSnapshot) => void;
  #isClosed = false;

  /** `check` throws if the database is closed. */
  constructor(taken: TakenSnapshot, check: () => void, closed: (snapshot: RemoteSnapshot) => void) {
    this.#taken = taken;
    this.#check = check;
    this.#closed = closed;
    this.#fetcher = {
      view: taken.view,
      readsAt: taken,
      tableOf: (table) => taken.tableOf(table),
      fetch: (entries, accesses) => told(taken.fetch(entries, accesses)),
      run: <T>(routine: Routine<T>) => told(taken.run(routine)),
      patience: () => taken.patience(),
      pause: () => taken.pause(),
    };
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<Row | undefined> {
    return this.#read((tx) => tx.get(table, key));
  }

  getMany<Row, Key>(
    table: Table<Row, Key>,
    keys: Iterable<NoInfer<Key>>,
  ): Promise<(Row | undefined)[]> {
    return this.#read((tx) => tx.getMany(table, keys));
  }

  has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): Promise<boolean> {
    return this.#read((tx) => tx.has(table, key));
  }

  scan<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: ScanOptions<NoInfer<Ways>>,
  ): AsyncScan<Row> {
    return this.#transaction().scan(table, options);
  }

  count<Row, Key, Changes, Ways>(
    table: Table<Row, Key, Changes, Ways>,
    options?: CountOptions<NoInfer<Ways>>,
  ): Promise<number> {
    return this.#read((tx) => tx.count(table, options));
  }

  select(table: Table, options?: unknown): AsyncScan<never> {
    return this.#transaction().select(table, options);
  }

  aggregate(table: Table, options: unknown): Promise<never> {
    return this.#read((tx) => tx.aggregate(table, options));
  }

  explain(table: Table, options?: unknown): Promise<Plan> {
    return this.#read((tx) => tx.explain(table, options));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closed(this);
    await this.#taken.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #read<T>(read: (tx: RemoteTransaction) => Promise<T>): Promise<T> {
    return await read(this.#transaction());
  }

  #transaction(): RemoteTransaction {
    this.#check();
    if (this.#isClosed) {
      throw new SituError("SITU_CLOSED", "this snapshot is closed: take a new one");
    }
    return new RemoteTransaction(this.#fetcher);
  }
}

/** What a change of the configuration means for a snapshot. */
async function told<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (
      !isTooOld(error) &&
      error instanceof SituError &&
      error.code === "SITU_STALE_CONFIGURATION"
    ) {
      throw new SituError(
        "SITU_SNAPSHOT_TOO_OLD",
        "the nodes of the cluster have changed since the snapshot was taken: take a new one",
        { cause: error },
      );
    }
    throw error;
  }
}
