/**
 * A transaction that its caller ends: `db.begin()`. There is no callback to run again, so there are no
 * retries: an operation or the commit that meets another transaction fails with ConflictError, and the
 * transaction is rolled back with it. It is rolled back, too, when its time is over, when its signal is
 * aborted, and when the database is closed. Whatever ended it is what later calls are told.
 */

import { isSignal } from "../../engine/signals.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Execution } from "./execution.ts";
import type { OperationQueue } from "./operation-queue.ts";

/** How an interactive transaction ends. */
export interface TransactionEnd extends AsyncDisposable {
  /** Whether operations are still possible. */
  readonly isOpen: boolean;
  /**
   * Makes the transaction's changes visible to others, all at once. Fails with ConflictError, and
   * changes nothing, if another transaction changed what this one read or wrote.
   */
  commit(): Promise<void>;
  /** Ends the transaction without changing anything. Does nothing if it was rolled back already. */
  rollback(): Promise<void>;
  /** `await using tx = await db.begin()` rolls the transaction back unless it was committed. */
  [Symbol.asyncDispose](): Promise<void>;
}

const COMMITTED = new SituError(
  "SITU_CLOSED",
  "this transaction was committed: begin another one for further operations",
);
const ROLLED_BACK = new SituError(
  "SITU_CLOSED",
  "this transaction was rolled back: begin another one for further operations",
);
const COMMITTING = new SituError("SITU_CLOSED", "this transaction is being committed");

export class Interactive<Tx extends OperationQueue<unknown>> {
  readonly tx: Tx;
  /** Resolves when nothing of the transaction is under way any more. */
  readonly ended: Promise<void>;
  readonly #execution: Execution<Tx>;
  /** What later calls are told, once it has ended. */
  #why: SituError | undefined;
  #committing: Promise<void> | undefined;
  #resolveEnded!: () => void;

  private constructor(execution: Execution<Tx>, tx: Tx) {
    this.tx = tx;
    this.#execution = execution;
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve;
    });
    tx.explainFailures((error) => this.#explain(error));
    execution.retry.onEnd((cause) => this.#interrupted(cause));
  }

  static async begin<Tx extends OperationQueue<unknown>>(
    execution: Execution<Tx>,
  ): Promise<Interactive<Tx>> {
    try {
      return new Interactive(execution, await execution.begin(true));
    } catch (error) {
      execution.retry.stop();
      execution.end();
      execution.count({ error });
      throw error;
    }
  }

  get isOpen(): boolean {
    return this.#why === undefined && this.#committing === undefined;
  }

  async commit(): Promise<void> {
    if (this.#why !== undefined) throw this.#why;
    if (this.#committing !== undefined) throw COMMITTING;
    this.#committing = this.#commit();
    await this.#committing;
  }

  async rollback(): Promise<void> {
    if (this.#why === COMMITTED) throw COMMITTED;
    if (this.#why === undefined && this.#committing !== undefined) throw COMMITTING;
    this.#rollBack(ROLLED_BACK);
  }

  async dispose(): Promise<void> {
    // Whoever called `commit` is told how it went.
    if (this.#committing !== undefined) await this.#committing.catch(() => {});
    else this.#rollBack(ROLLED_BACK);
  }

  /** For a database that is being closed: a commit that has begun goes on. */
  abandon(why: SituError): void {
    if (this.#committing === undefined) this.#rollBack(why);
  }

  async #commit(): Promise<void> {
    const execution = this.#execution;
    const { retry } = execution;
    try {
      const settling = this.tx.settle();
      if (settling !== undefined) await retry.race(settling);
      const unseen = this.tx.unseenFailure();
      if (unseen !== undefined) throw await this.#explain(unseen.error);
      if (this.#why !== undefined) throw this.#why;
      retry.stop();
      if (!(await execution.commit())) throw execution.whyNot();
    } catch (error) {
      const why = isSignal(error) ? execution.whyNot() : (error as SituError);
      this.#rollBack(why);
      throw why;
    }
    this.#end(COMMITTED);
    try {
      await execution.acknowledge();
    } catch (error) {
      execution.count({ error });
      throw error;
    } finally {
      this.#resolveEnded();
    }
    execution.count();
  }

  /** What the caller is told of an operation that failed: its error, if what it rests on is still so. */
  async #explain(error: unknown): Promise<unknown> {
    if (this.#why !== undefined) return this.#why;
    if (!isSignal(error) && (await this.#execution.isValid())) return error;
    if (this.#why === undefined) this.#rollBack(this.#execution.whyNot());
    return this.#why;
  }

  #interrupted(cause: SituError): void {
    if (this.#why !== undefined) return;
    this.#execution.countAbort(cause);
    this.#rollBack(cause);
  }

  #rollBack(why: SituError): void {
    if (this.#why !== undefined) return;
    this.#end(why);
    this.#execution.count({ error: why });
    this.#resolveEnded();
  }

  #end(why: SituError): void {
    this.#why = why;
    this.#execution.endAttempt(why);
    this.#execution.retry.stop();
    this.#execution.end();
  }
}

/** The transactions behind the handles that callers have. */
const behind = new WeakMap<object, unknown>();

/** For graphs: the transaction behind a handle; `undefined` for what is none. */
export function transactionBehind(handle: object): unknown {
  return behind.get(handle);
}

/** What the caller gets: these operations of the transaction, and how to end it. */
export function handleOf<Tx extends OperationQueue<unknown>, Name extends keyof Tx>(
  interactive: Interactive<Tx>,
  operations: readonly Name[],
): Pick<Tx, Name> & TransactionEnd {
  const { tx } = interactive;
  const handle = {
    get isOpen() {
      return interactive.isOpen;
    },
    commit: () => interactive.commit(),
    rollback: () => interactive.rollback(),
    [Symbol.asyncDispose]: () => interactive.dispose(),
  };
  for (const name of operations) {
    const operation = tx[name] as (...call: unknown[]) => unknown;
    Object.defineProperty(handle, name, { value: operation.bind(tx), enumerable: true });
  }
  behind.set(handle, tx);
  return Object.freeze(handle) as Pick<Tx, Name> & TransactionEnd;
}
