/**
 * What the transactions of both databases have in common: operations are promises, carried out in the
 * order in which they are issued. Those that cannot be carried out at once wait in a queue, which is looked
 * at when the tick ends. What is in it then is one batch: for a cluster one message to each node.
 *
 * The failure of an operation that nobody awaited must not vanish, nor end the process: the transaction
 * fails with it.
 */

import { runAsMicrotask } from "./microtask-queue.ts";

/** The promise of one operation. It knows whether anybody looks at it. */
class Operation<T> extends Promise<T> {
  isObserved = false;

  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // biome-ignore lint/suspicious/noThenProperty: noticing who waits is what this class is for
  override then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isObserved = true;
    return super.then(onFulfilled, onRejected);
  }

  /** Before it fails: a failure that nobody awaits does not end the process. */
  silence(): void {
    // Not through `then` of the class: this does not count as looking at it.
    super.then(undefined, () => {});
  }
}

/** The queue of all that have none. */
const NOTHING: readonly never[] = [];

export abstract class OperationQueue<Queued> {
  /** Replaced, never emptied: most transactions of this machine have none of their own. */
  protected queue: readonly Queued[] = NOTHING;
  #failed: { readonly operation: Operation<unknown>; readonly error: unknown }[] | undefined;
  #explain: ((error: unknown) => unknown) | undefined;

  /** Carries out what has been issued, and waits for it. Undefined if all is done already. */
  abstract settle(): Promise<void> | undefined;

  /** Carries out what was issued in a tick. */
  protected abstract flushAtEndOfTick(): void;

  /** For a transaction without a callback to run again: what its caller is told instead of an error. */
  explainFailures(explain: (error: unknown) => unknown): void {
    this.#explain = explain;
  }

  /** The failure of an operation that nobody awaited, if there is one. */
  unseenFailure(): { readonly error: unknown } | undefined {
    return this.#failed?.find(({ operation }) => !operation.isObserved);
  }

  protected enqueue<T>(
    queued: (resolve: (value: T) => void, fail: (error: unknown) => void) => Queued,
  ): Promise<T> {
    let resolve!: (value: T) => void;
    let reject!: (error: unknown) => void;
    const operation = new Operation<T>((onResolve, onReject) => {
      resolve = onResolve;
      reject = onReject;
    });
    const fail = (error: unknown): void => this.#fail(operation, reject, error);
    if (this.queue.length === 0) {
      this.queue = [];
      runAsMicrotask(() => this.flushAtEndOfTick());
    }
    (this.queue as Queued[]).push(queued(resolve, fail));
    return operation;
  }

  /** An operation that has failed already. */
  protected failed(error: unknown): Promise<never> {
    let reject!: (error: unknown) => void;
    const operation = new Operation<never>((_, onReject) => {
      reject = onReject;
    });
    this.#fail(operation, reject, error);
    return operation;
  }

  #fail(operation: Operation<unknown>, reject: (error: unknown) => void, error: unknown): void {
    this.#failed ??= [];
    this.#failed.push({ operation, error });
    operation.silence();
    if (this.#explain === undefined) reject(error);
    else void Promise.resolve(this.#explain(error)).then(reject, reject);
  }
}
