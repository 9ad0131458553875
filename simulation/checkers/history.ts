/**
 * What a list-append history is.
 *
 * Every value in the store is a list. Transactions append values that are unique within their key,
 * and read whole lists. A list therefore carries its own past: who reads `[1, 4, 2]` has seen three
 * versions of the key and the order they were made in. That is what lets a checker recover the
 * order of the writes from outside, without asking the store.
 *
 * How to record one:
 *
 * - `start` is taken before the first operation is sent, `end` after the outcome is known, both
 *   from one monotonic clock that all processes of the machine share (`process.hrtime`, nanoseconds
 *   as a number). Rounding to a double is harmless: it can make two moments equal, never swap them,
 *   and equal moments order nothing.
 * - Only the attempt that was last counts. An attempt that is retried inside the store is not a
 *   transaction of its own; if it is recorded, then as `failed` and with values of its own.
 * - `failed` promises that nothing was and ever will be applied. Whoever is not sure says
 *   `unknown`: the process was killed, the reply was lost. Its `end` is then ignored.
 * - Of an unknown transaction, record every append that was sent, and only the reads that returned.
 * - The reads of failed transactions are not judged: an optimistic store may show them a torn state
 *   that validation then refuses.
 */

export type Key = string | number;
export type Value = number;

export interface Append {
  readonly kind: "append";
  readonly key: Key;
  readonly value: Value;
}

export interface Read {
  readonly kind: "read";
  readonly key: Key;
  /** The whole list, including what this transaction itself appended so far. */
  readonly list: readonly Value[];
}

export type Operation = Append | Read;

export type Outcome = "ok" | "failed" | "unknown";

export interface Transaction {
  readonly process: number;
  readonly start: number;
  readonly end: number;
  readonly operations: readonly Operation[];
  readonly outcome: Outcome;
  /** For histories that are checked as "mixed". Default: strict-serializable. */
  readonly isolation?: "strict-serializable" | "snapshot";
}

/** In any order. Reports name a transaction by its index here: T0, T1, … */
export type History = readonly Transaction[];

/** Every key, read at rest after the last transaction. A key left out was found absent: empty. */
export type FinalReads = ReadonlyMap<Key, readonly Value[]>;
