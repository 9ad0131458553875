/** Runs the transactions of a database, local or remote: callbacks, until they commit; and interactive ones. */

import type { SituError } from "../../runtime/errors.ts";
import type { AsyncLimits } from "./async-retry.ts";
import { ENDED } from "./ended.ts";
import type { Execution } from "./execution.ts";
import { Interactive } from "./interactive.ts";
import type { OperationQueue } from "./operation-queue.ts";
import { TransactionContext } from "./transaction-context.ts";

export class TransactionRunner<Tx extends OperationQueue<unknown>, Limits extends AsyncLimits> {
  readonly #database: object;
  readonly #start: (limits: Limits) => Execution<Tx>;
  readonly #running = new Set<Promise<unknown>>();
  readonly #interactive = new Set<Interactive<Tx>>();
  #closing: SituError | undefined;

  /** `start` may throw; nothing is held before the first `begin`. */
  constructor(database: object, start: (limits: Limits) => Execution<Tx>) {
    this.#database = database;
    this.#start = start;
  }

  /** Whether nothing is under way. */
  get isIdle(): boolean {
    return this.#running.size === 0;
  }

  /** `close` waits for it. */
  async track<T>(running: Promise<T>): Promise<T> {
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Runs a callback until its transaction commits, or its policy is over. */
  async run<T>(callback: (tx: Tx) => T | PromiseLike<T>, limits: Limits): Promise<Awaited<T>> {
    const execution = this.#start(limits);
    const { retry } = execution;
    let result: Awaited<T>;
    try {
      try {
        for (;;) {
          const attempt = await this.#attempt(execution, callback);
          if (attempt !== undefined) {
            result = attempt.result;
            break;
          }
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
    }
    execution.count();
    return result;
  }

  async #attempt<T>(
    execution: Execution<Tx>,
    callback: (tx: Tx) => T | PromiseLike<T>,
  ): Promise<{ readonly result: Awaited<T> } | undefined> {
    const { retry } = execution;
    const beginning = execution.begin();
    const tx = beginning instanceof Promise ? await beginning : beginning;
    const context = new TransactionContext(this.#database);
    let why = ENDED;
    try {
      const result = await retry.race(context.run(() => Promise.resolve(callback(tx))));
      const settling = tx.settle();
      if (settling !== undefined) await retry.race(settling);
      const unseen = tx.unseenFailure();
      if (unseen !== undefined) throw unseen.error;
      const committing = execution.commit();
      if (typeof committing === "boolean" ? committing : await committing) return { result };
    } catch (error) {
      if (retry.isCause(error)) why = error as SituError;
      // First: parts of the callback may still run, and must not touch what comes next.
      execution.endAttempt(why);
      if (retry.isCause(error)) {
        execution.countAbort(error);
        throw retry.explained(error);
      }
      const isOwn = execution.isCallersOwn(error);
      if (typeof isOwn === "boolean" ? isOwn : await isOwn) throw error;
    } finally {
      execution.endAttempt(why);
      context.end();
    }
    return undefined;
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
    await Promise.allSettled(this.#running);
  }
}
