/**
 * Those who run transactions in a simulation: clients, and procedures at a node. Both use the database
 * as a program of a user would, with promises; time is virtual and the order of events follows from
 * the seed. One whose process is killed, in the middle of anything, is told so at once.
 */

import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import type { Isolation } from "../../src/database/transact-options.ts";
import type { Clock } from "../../src/fabric/fabric.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";

/** How long a transaction of a simulation insists on an answer. */
export const TIMEOUT_MS = 4_000;
const MAX_PAUSE_MS = 50;
const KILLED: unique symbol = Symbol("killed");

/** How a transaction ended, and how often its body was run. */
export type Ended<T> = { readonly attempts: number } & (
  | { readonly kind: "ok"; readonly result: T }
  | { readonly kind: "failed" | "unknown"; readonly error: SituError }
);

export class Worker {
  /** Different for all that ever take part. */
  readonly number: number;
  readonly random: Random;
  readonly db: RemoteDatabase;
  isGone = false;
  readonly #clock: Clock;
  /** Before each transaction, at most. */
  readonly #paceMs: number;
  /** Told when the process is killed. */
  readonly #waiting = new Set<() => void>();

  constructor(number: number, random: Random, db: RemoteDatabase, clock: Clock, paceMs = 0) {
    this.number = number;
    this.random = random;
    this.db = db;
    this.#clock = clock;
    this.#paceMs = paceMs;
  }

  /** Its process was killed. */
  killed(): void {
    this.isGone = true;
    for (const tell of this.#waiting) tell();
  }

  /** Runs a transaction. Whatever goes wrong is told, not thrown. */
  transact<T>(
    body: (tx: RemoteTransaction) => Promise<T>,
    isolation: Isolation = "strict-serializable",
  ): Promise<Ended<T>> {
    const run = (counted: (tx: RemoteTransaction) => Promise<T>): Promise<T> =>
      this.db.transact(counted, { isolation });
    return this.#attempt(run, body);
  }

  /** Does something with the database. Whatever goes wrong is told, not thrown. */
  attempt<T>(what: () => Promise<T>): Promise<Ended<T>> {
    return this.#attempt((counted) => counted(undefined as never), what);
  }

  async #attempt<T>(
    run: (counted: (tx: RemoteTransaction) => Promise<T>) => Promise<T>,
    body: (tx: RemoteTransaction) => Promise<T>,
  ): Promise<Ended<T>> {
    if (this.#paceMs > 0) await this.pause((this.#paceMs * this.random.below(1_000)) / 1_000);
    let attempts = 0;
    const running = run((tx) => {
      attempts++;
      return body(tx);
    });
    try {
      const result = await this.#whileAlive(running);
      if (result !== KILLED) return { kind: "ok", result, attempts };
      return { kind: "unknown", error: killed(), attempts };
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      const isUnknown = error.code === "SITU_UNKNOWN_OUTCOME";
      return { kind: isUnknown ? "unknown" : "failed", error, attempts };
    }
  }

  async pause(ms: number): Promise<void> {
    await this.#whileAlive(sleep(ms, this.#clock));
  }

  /** The pause before a transaction is repeated: random, and longer each time. */
  async backOff(times: number): Promise<void> {
    const mostMs = Math.min(0.1 * 2 ** Math.min(times, 12), MAX_PAUSE_MS);
    await this.pause((mostMs * (1 + this.random.below(1_000))) / 1_000);
  }

  /** Until it has succeeded, or the process is killed. */
  async insist(what: () => Promise<void>): Promise<void> {
    for (let times = 1; !this.isGone; times++) {
      try {
        await this.#whileAlive(what());
        return;
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        await this.backOff(times);
      }
    }
  }

  /** What `running` comes to, unless the process is killed before that. */
  #whileAlive<T>(running: Promise<T>): Promise<T | typeof KILLED> {
    return new Promise((resolve, reject) => {
      const tell = (): void => resolve(KILLED);
      if (this.isGone) tell();
      this.#waiting.add(tell);
      running.then(
        (result) => {
          this.#waiting.delete(tell);
          resolve(result);
        },
        (error: unknown) => {
          this.#waiting.delete(tell);
          reject(error);
        },
      );
    });
  }
}

function killed(): SituError {
  return new SituError("SITU_UNKNOWN_OUTCOME", "the process was killed");
}
