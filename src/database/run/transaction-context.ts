/**
 * Whether a call comes from inside a transaction's callback. A callback that opens a transaction of the
 * same database, instead of using its `tx`, is refused: transactions do not nest.
 */

import { AsyncLocalStorage } from "node:async_hooks";

/** The transaction whose callback the running code belongs to, or did before it ended. */
export class TransactionContext {
  readonly #database: object;
  #isRunning = true;

  constructor(database: object) {
    this.#database = database;
  }

  /** Code that the callback runs is inside this transaction, until `end`. */
  run<T>(callback: () => Promise<T>): Promise<T> {
    return context.run(this, callback);
  }

  end(): void {
    this.#isRunning = false;
  }

  isInside(database: object): boolean {
    return this.#database === database && this.#isRunning;
  }
}

const context = new AsyncLocalStorage<TransactionContext>();

/** Whether the caller runs inside a callback of this database's that has not ended. */
export function isInsideTransaction(database: object): boolean {
  return context.getStore()?.isInside(database) ?? false;
}
