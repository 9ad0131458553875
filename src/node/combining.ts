/**
 * Combining (FaRM §3.6, after flat combining): calls of procedures about one row, at the node that has it, become
 * one transaction. Each of them would lock the row, log it at all backups, and meet the others; together
 * they do so once. They run one after another, in the order in which they came, and each sees what those
 * before it have done; each caller gets the result of its own call. All of them were under way when the
 * transaction committed, so that is an order in which they may have run.
 *
 *   a row      calls run side by side, until one of them has to run again: then they get into each other's way
 *   hot row    one transaction at a time. Calls that come meanwhile wait, and the next transaction carries
 *              out all that wait, up to MAX_COMBINED_CALLS, the oldest first
 *   and back   when none has met another for COMBINING_MS
 *
 * Nobody waits for company: who comes first begins at once.
 *
 * A call that fails takes nobody with it. What it saw includes what those before it did, and they have not
 * committed; so they commit first, without it, and it runs again as the first of the rest. The first
 * one of a transaction has seen only what is committed, and its failure is its own. If a transaction fails for
 * another reason, as it is too large or its time is over, its calls run one by one. If nobody knows whether it
 * has committed, all are told so, and nothing is tried again.
 *
 * The records of the transaction name all calls (protocols/origin.ts), so that each of their callers can ask what
 * became of its own if this node dies.
 */

import type { TimeLeft } from "../cluster/session.ts";
import type { Origin } from "../protocols/origin.ts";
import { assert } from "../runtime/assert.ts";
import { nowMs } from "../runtime/clock.ts";
import type { SituErrorCode } from "../runtime/errors.ts";
import { COMBINING_MS, MAX_COMBINED_CALLS, MAX_COMBINED_ROWS } from "../runtime/limits.ts";

/** What combining needs of a transaction. */
export interface CombinedTransaction {
  /** Waits for operations that were issued. */
  settle(): Promise<void> | undefined;
  /** The failure of one that nobody has awaited. */
  unseenFailure(): { readonly error: unknown } | undefined;
}

export interface CombinedCall<Tx> {
  readonly origin: Origin;
  readonly time: TimeLeft;
  body(tx: Tx): unknown;
  /** What its caller is told if its time is over before it begins. */
  notBegun(): unknown;
}

/** Runs a callback as a transaction for an origin, again and again until it commits or the time is over. */
export type RunTransaction<Tx> = <T>(
  origin: Origin,
  leftMs: number,
  callback: (tx: Tx) => Promise<T>,
) => Promise<T>;

/** After these nothing was committed, and a call may succeed alone. */
const APART: ReadonlySet<SituErrorCode> = new Set([
  "SITU_CONFLICT",
  "SITU_FULL",
  "SITU_OVERLOADED",
  "SITU_TIMEOUT",
  "SITU_TOO_LARGE",
]);

interface Waiting<Tx> {
  readonly call: CombinedCall<Tx>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface HotRow<Tx> {
  waiting: Waiting<Tx>[];
  isBusy: boolean;
  /** When two calls came together last. */
  sharedMs: number;
}

/** Which call of a transaction has failed, in its last attempt. */
interface Failure {
  at: number;
  error: unknown;
}

export class Combining<Tx extends CombinedTransaction> {
  /** By row, those that became hot first at the beginning. */
  readonly #hot = new Map<string, HotRow<Tx>>();
  readonly #transact: RunTransaction<Tx>;
  readonly #nowMs: () => number;
  #waiting = 0;

  constructor(transact: RunTransaction<Tx>, now = nowMs) {
    this.#transact = transact;
    this.#nowMs = now;
  }

  /** Calls that wait for a transaction before theirs. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether calls about a row are combined. */
  isHot(row: string): boolean {
    return this.#hot.has(row);
  }

  /** Runs a call about a row, and gives what it returned. */
  run(row: string, call: CombinedCall<Tx>): Promise<unknown> {
    const hot = this.#hot.get(row);
    if (hot === undefined) return this.#runAlone(row, call);
    return new Promise((resolve, reject) => {
      hot.waiting.push({ call, resolve, reject });
      this.#waiting++;
      if (!hot.isBusy) void this.#drain(row, hot);
    });
  }

  async #runAlone(row: string, call: CombinedCall<Tx>): Promise<unknown> {
    const leftMs = Math.ceil(call.time.leftMs());
    if (leftMs <= 0) throw call.notBegun();
    let runs = 0;
    return await this.#transact(call.origin, leftMs, async (tx) => {
      if (++runs === 2) this.#heat(row);
      return await call.body(tx);
    });
  }

  #heat(row: string): void {
    const sharedMs = this.#nowMs();
    const hot = this.#hot.get(row);
    if (hot !== undefined) {
      hot.sharedMs = sharedMs;
      return;
    }
    if (this.#hot.size >= MAX_COMBINED_ROWS && !this.#coolOne()) return;
    this.#hot.set(row, { waiting: [], isBusy: false, sharedMs });
  }

  /** Makes room for another row; false if calls of all wait. */
  #coolOne(): boolean {
    for (const [row, { isBusy }] of this.#hot) if (!isBusy) return this.#hot.delete(row);
    return false;
  }

  async #drain(row: string, hot: HotRow<Tx>): Promise<void> {
    hot.isBusy = true;
    // So those that came in one message run together.
    await undefined;
    while (hot.waiting.length > 0) {
      const batch = hot.waiting.splice(0, MAX_COMBINED_CALLS);
      this.#waiting -= batch.length;
      if (batch.length > 1) hot.sharedMs = this.#nowMs();
      await this.#carryOut(batch);
    }
    hot.isBusy = false;
    if (this.#nowMs() - hot.sharedMs > COMBINING_MS) this.#hot.delete(row);
  }

  /** Never rejects: an error is told to those whom it is about. */
  async #carryOut(batch: Waiting<Tx>[]): Promise<void> {
    const groups = [batch];
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      const calls = group.filter(isInTime);
      if (calls.length === 0) continue;
      const failure: Failure = { at: -1, error: undefined };
      try {
        const results = await this.#transact(originOf(calls), leftMsOf(calls), (tx) =>
          runInOrder(tx, calls, failure),
        );
        for (const [i, { resolve }] of calls.entries()) resolve(results[i]);
      } catch (error) {
        groups.unshift(...apart(calls, failure, error));
      }
    }
  }
}

async function runInOrder<Tx extends CombinedTransaction>(
  tx: Tx,
  calls: readonly Waiting<Tx>[],
  failure: Failure,
): Promise<unknown[]> {
  failure.at = -1;
  const results: unknown[] = [];
  for (let i = 0; i < calls.length; i++) {
    try {
      results.push(await calls[i].call.body(tx));
      const settling = tx.settle();
      if (settling !== undefined) await settling;
      const unseen = tx.unseenFailure();
      if (unseen !== undefined) throw unseen.error;
    } catch (error) {
      failure.at = i;
      failure.error = error;
      throw error;
    }
  }
  return results;
}

/** What is to be tried again after a transaction has failed; the others are told why. */
function apart<Tx>(calls: Waiting<Tx>[], failure: Failure, error: unknown): Waiting<Tx>[][] {
  const isOfCall = failure.at >= 0 && Object.is(failure.error, error);
  if (isOfCall && failure.at > 0) return [calls.slice(0, failure.at), calls.slice(failure.at)];
  if (isOfCall) {
    calls[0].reject(error);
    return [calls.slice(1)];
  }
  const code = (error as { code?: SituErrorCode } | undefined)?.code;
  if (calls.length > 1 && code !== undefined && APART.has(code)) {
    // Those whose time is over are told so before the next transaction; the others go on together.
    const isOver = calls.some(({ call }) => call.time.leftMs() <= 0);
    return code === "SITU_TIMEOUT" && isOver ? [calls] : calls.map((call) => [call]);
  }
  for (const { reject } of calls) reject(error);
  return [];
}

function isInTime<Tx>({ call, reject }: Waiting<Tx>): boolean {
  if (call.time.leftMs() > 0) return true;
  reject(call.notBegun());
  return false;
}

/** That of the one that has the least. */
function leftMsOf<Tx>(calls: readonly Waiting<Tx>[]): number {
  return Math.max(1, Math.ceil(Math.min(...calls.map(({ call }) => call.time.leftMs()))));
}

function originOf<Tx>(calls: readonly Waiting<Tx>[]): Origin {
  const [first, ...others] = calls.map(({ call }) => call.origin);
  assert(first !== undefined, "a transaction is for somebody");
  return others.length === 0 ? first : { ...first, others };
}
