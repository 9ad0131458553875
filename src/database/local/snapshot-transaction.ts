/**
 * A transaction that reads from a snapshot: the same operations, but each tells the engine whether
 * it only reads, and what it has read counts only if the snapshot is still registered then. A
 * class of its own, so that strictly serializable transactions need not ask.
 */

import type { Transaction as EngineTransaction } from "../../engine/transaction.ts";
import type { Pointer } from "../../memory/pointer.ts";
import type { Store } from "../../stores/store.ts";
import type { InsertedKey, InsertOf, PutOf, Table } from "../../tables/table.ts";
import { SyncTransaction } from "./sync-transaction.ts";
import type { Stores } from "./table-set.ts";

export class SnapshotTransaction extends SyncTransaction {
  readonly #tx: EngineTransaction;

  constructor(stores: Stores, tx: EngineTransaction) {
    super(stores, tx);
    this.#tx = tx;
  }

  // A field, because the overloads of `get` are declared once, by the class above.
  override get: SyncTransaction["get"] = (...call: unknown[]) =>
    this.#reads(() => Reflect.apply(super.get, this, call) as never);

  override has<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    return this.#reads(() => super.has(table, key));
  }

  override read(pointer: Pointer): Uint8Array {
    return this.#reads(() => super.read(pointer));
  }

  override runStep<A, T>(
    life: number,
    table: Table,
    step: (tx: EngineTransaction, argument: A) => T,
    argument: A,
  ): T {
    return this.#reads(() => super.runStep(life, table, step, argument));
  }

  override insert<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<InsertOf<Row, Writes>>,
  ): InsertedKey<Writes> {
    return this.#changes(() => super.insert(table, row));
  }

  override put<Row, Key, Writes>(
    table: Table<Row, Key, unknown, unknown, Writes>,
    row: NoInfer<PutOf<Row, Writes>>,
  ): void {
    this.#changes(() => super.put(table, row));
  }

  override update<Row, Key, Changes>(
    table: Table<Row, Key, Changes>,
    key: NoInfer<Key>,
    changes: NoInfer<Changes>,
  ): void {
    this.#changes(() => super.update(table, key, changes));
  }

  override delete<Row, Key>(table: Table<Row, Key>, key: NoInfer<Key>): boolean {
    return this.#changes(() => super.delete(table, key));
  }

  override write(pointer: Pointer, data: Uint8Array): void {
    this.#changes(() => super.write(pointer, data));
  }

  override free(pointer: Pointer): void {
    this.#changes(() => super.free(pointer));
  }

  override operate<Row, Key, T>(
    table: Table<Row, Key>,
    run: (tx: EngineTransaction, store: Store<Row, Key>) => T,
    key: unknown,
    changes: boolean,
  ): T {
    const operation = (): T => super.operate(table, run, key, changes);
    return changes ? this.#changes(operation) : this.#reads(operation);
  }

  // The caller's code that an operation runs, as the getters of a row, may use this transaction too.
  // It comes before the operation's own first look, which then goes on as what it is.

  #reads<T>(operation: () => T): T {
    const before = this.#tx.readsOnly;
    this.#tx.readsOnly = true;
    try {
      const result = operation();
      this.#tx.snapshot?.check();
      this.#tx.forgetReads();
      return result;
    } finally {
      this.#tx.readsOnly = before;
    }
  }

  #changes<T>(operation: () => T): T {
    const before = this.#tx.readsOnly;
    this.#tx.readsOnly = false;
    try {
      return operation();
    } finally {
      this.#tx.readsOnly = before;
    }
  }
}
