/**
 * What the transactions of both databases have in common: operations are promises, and those that are
 * issued in one tick form one batch, carried out in their order when the tick ends. Here the batch is a
 * loop over local memory, or one message to each node.
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

export abstract class OperationQueue<Queued> {
  /** Batches carried out, for those who count round trips. */
  batches = 0;
  protected queue: Queued[] = [];
  readonly #failed: { readonly operation: Operation<unknown>; readonly error: unknown }[] = [];
  #explain: ((error: unknown) => unknown) | undefined;
  readonly #flushAtEnd = (): void => this.flushAtEndOfTick();

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
    return this.#failed.find(({ operation }) => !operation.isObserved);
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
    const fail = (error: unknown): void => {
      this.#failed.push({ operation, error });
      operation.silence();
      if (this.#explain === undefined) reject(error);
      else void Promise.resolve(this.#explain(error)).then(reject, reject);
    };
    if (this.queue.length === 0) runAsMicrotask(this.#flushAtEnd);
    this.queue.push(queued(resolve, fail));
    return operation;
  }
}
