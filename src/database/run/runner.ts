/** Runs the transactions of a database, local or remote: callbacks, until they commit; and interactive ones. */

import type { SituError } from "../../runtime/errors.ts";
import type { AsyncLimits } from "./async-retry.ts";
import { ENDED } from "./ended.ts";
import type { Execution } from "./execution.ts";
import { Interactive } from "./interactive.ts";
import type { OperationQueue } from "./operation-queue.ts";
import { CallbacksUnderWay } from "./transaction-context.ts";

type Callback<Tx, T> = (tx: Tx) => T | PromiseLike<T>;
/** Runs a callback until its transaction commits, or its policy is over. */
type Run<Tx, Limits> = <T>(callback: Callback<Tx, T>, limits: Limits) => Promise<Awaited<T>>;

export class TransactionRunner<Tx extends OperationQueue<unknown>, Limits extends AsyncLimits> {
  readonly run: Run<Tx, Limits>;
  /** For calls that must not come from inside one. */
  readonly callbacks = new CallbacksUnderWay();
  readonly #start: (limits: Limits) => Execution<Tx>;
  /** Callbacks that are run, from the first attempt to the acknowledgement of the last. */
  #runs = 0;
  #onIdle: (() => void) | undefined;
  readonly #tracked = new Set<Promise<unknown>>();
  readonly #interactive = new Set<Interactive<Tx>>();
  #closing: SituError | undefined;

  /** `start` may throw; nothing is held before the first `begin`. */
  constructor(start: (limits: Limits) => Execution<Tx>) {
    this.#start = start;
    this.run = this.#named(this.callbacks.runnerName);
  }

  /** Whether nothing is under way. */
  get isIdle(): boolean {
    return this.#runs === 0 && this.#tracked.size === 0;
  }

  /** `close` waits for it. */
  async track<T>(running: Promise<T>): Promise<T> {
    this.#tracked.add(running);
    try {
      return await running;
    } finally {
      this.#tracked.delete(running);
    }
  }

  /**
   * The function that runs callbacks, under the name by which nested calls know it. It is one function
   * from the first attempt to the last: each asynchronous call more would be a promise more.
   */
  #named(name: string): Run<Tx, Limits> {
    const { callbacks } = this;
    const functions: Record<string, Run<Tx, Limits>> = {
      [name]: async <T>(callback: Callback<Tx, T>, limits: Limits): Promise<Awaited<T>> => {
        const execution = this.#start(limits);
        const { retry } = execution;
        let result: Awaited<T>;
        this.#runs++;
        try {
          try {
            for (let isAgain = false; ; isAgain = true) {
              const beginning = execution.begin();
              const tx = beginning instanceof Promise ? await beginning : beginning;
              let isCommitted = false;
              let why = ENDED;
              callbacks.begin(isAgain);
              try {
                const returned = callbacks.call(callback, tx);
                result = (
                  isThenable(returned) ? await retry.race(Promise.resolve(returned)) : returned
                ) as Awaited<T>;
                const settling = tx.settle();
                if (settling !== undefined) await retry.race(settling);
                const unseen = tx.unseenFailure();
                if (unseen !== undefined) throw unseen.error;
                const committing = execution.commit();
                isCommitted = typeof committing === "boolean" ? committing : await committing;
              } catch (error) {
                if (retry.isCause(error)) why = error as SituError;
                // First: parts of the callback may still run, and must not touch what comes next.
                execution.endAttempt(why);
                await throwIfCallersOwn(execution, error);
              } finally {
                execution.endAttempt(why);
                callbacks.end(isAgain);
              }
              if (isCommitted) break;
              await execution.awaitRetry();
            }
          } finally {
            retry.stop();
            execution.end();
          }
          // Nothing is held any more: others may go on with what it has done.
          const acknowledged = execution.acknowledge();
          if (acknowledged !== undefined) await acknowledged;
        } catch (error) {
          execution.count({ error });
          throw error;
        } finally {
          if (--this.#runs === 0) this.#onIdle?.();
        }
        execution.count();
        return result!;
      },
    };
    return functions[name];
  }

  /** Begins a transaction that its caller ends. */
  begin(limits: Limits): Promise<Interactive<Tx>> {
    return this.track(this.#begin(this.#start(limits)));
  }

  async #begin(execution: Execution<Tx>): Promise<Interactive<Tx>> {
    const interactive = await Interactive.begin(execution);
    if (this.#closing !== undefined) interactive.abandon(this.#closing);
    this.#interactive.add(interactive);
    void this.track(interactive.ended).finally(() => this.#interactive.delete(interactive));
    return interactive;
  }

  /** Rolls interactive transactions back, unless they are committing, and waits for all that runs. */
  async close(why: SituError): Promise<void> {
    this.#closing = why;
    for (const interactive of this.#interactive) interactive.abandon(why);
    await Promise.allSettled(this.#tracked);
    if (this.#runs === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }
}

/** Throws what has ended the transaction; returns if that was only an attempt, which saw two moments. */
async function throwIfCallersOwn<Tx extends OperationQueue<unknown>>(
  execution: Execution<Tx>,
  error: unknown,
): Promise<void> {
  const { retry } = execution;
  if (retry.isCause(error)) {
    execution.countAbort(error);
    throw retry.explained(error);
  }
  if (await execution.isCallersOwn(error)) throw error;
}

function isThenable(value: unknown): boolean {
  if (value instanceof Promise) return true;
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  return typeof (value as { then?: unknown }).then === "function";
}
