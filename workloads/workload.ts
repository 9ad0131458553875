/**
 * What a workload is, apart from the engine that it runs on.
 *
 * A workload has tables, the rows that they begin with, a mix of transactions, and an invariant.
 * It says what its transactions mean in an interface, its store: `YcsbStore`, `SmallBankStore`,
 * `TatpStore`, `ObjectStore`. Each engine implements these in its own best way, as its users would:
 * a Lua script, a prepared statement, the body of a transaction. So everybody runs the same
 * transactions with the same parameters in the same order, and nobody runs another one's idiom.
 *
 * Nothing here reads a clock or rolls dice: all chance comes from a seed, so the same workload runs
 * in tests, in the simulation and in benchmarks.
 */

import type { Table } from "situ";

/** Engines in this process's memory answer at once; awaiting them would only cost time. */
export type Result<T> = T | Promise<T>;

/** How a transaction ended; failures are thrown. */
export const REFUSED = 0;
export const DONE = 1;
/** REFUSED: a rule of the benchmark said no, such as too little money. That is a normal end. */
export type Outcome = typeof REFUSED | typeof DONE;

/** What sessions did, by name, for the invariant: sums over all sessions of a run. */
export type Tally = Readonly<Record<string, number>>;

/** One stream of transactions. Several may be in flight: all is drawn before `next` returns. */
export interface Session {
  /** Draws the next transaction and runs it. */
  next(): Result<Outcome>;
  /** The transaction that `next` drew last: its place in the workload's mix. */
  readonly drawn: number;
  /** What the transactions that have ended did. */
  tally(): Tally;
}

export interface Share {
  readonly name: string;
  readonly percent: number;
}

/** A row that a table begins with. */
export interface InitialRow {
  readonly table: Table;
  readonly row: object;
}

/** Reads a table at rest, for the invariant. */
export type ReadRows = (table: Table) => AsyncIterable<Readonly<Record<string, unknown>>>;

export interface SessionOptions {
  readonly seed: number;
  /** Numbers the sessions of a run: each draws other transactions, and inserts other keys. */
  readonly lane: number;
  readonly lanes: number;
}

/** `Store` is the interface of its transactions. */
export interface Workload<Store> {
  readonly name: string;
  /** The paper or specification that the parameters are from, with the section. */
  readonly source: string;
  readonly mix: readonly Share[];
  readonly tables: readonly Table[];
  /** In the words of people: "1,000,000 records of 1 KB, zipfian 0.99". */
  readonly scale: string;
  /** Bytes of user data in all rows at the beginning, for engines that must be told. */
  readonly bytes: number;
  /** The rows at the beginning: always the same for the same workload. */
  rows(): Iterable<InitialRow>;
  session(store: Store, options: SessionOptions): Session;
  /** Sentences about what does not hold. Called when nobody writes. */
  check(read: ReadRows, tally: Tally): Promise<string[]>;
}

export function addTallies(tallies: readonly Tally[]): Tally {
  const sums: Record<string, number> = {};
  for (const tally of tallies) {
    for (const [name, value] of Object.entries(tally)) sums[name] = (sums[name] ?? 0) + value;
  }
  return sums;
}
