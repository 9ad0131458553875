/**
 * Bare objects for tests of snapshots. Every data word of an object is made of its value and the
 * word's number, so that a read that is torn, or of another object, shows.
 */

import type { Executor } from "../../src/engine/executor.ts";
import { readAtSnapshot, runSync } from "../../src/engine/run.ts";
import { COUNTERS, type Counter, counterSum } from "../../src/engine/slot.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { Geometry } from "../../src/memory/control.ts";
import { ARRAY_HEADER_WORDS, HEADER_WORDS } from "../../src/memory/object.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { type AtomicStep, Death, hookAtomics, type When } from "./engine-atomics.ts";
import { type EngineStore, SMALL } from "./engine-store.ts";

const TIMEOUT_MS = 1_000;
export const LIFE_MS = 60_000;

/** So small that sixteen objects fill a ring and 32 a chunk. */
export const TINY: Geometry = { ...SMALL, ringBytes: 2_048, chunkBytes: 4_096, chunks: 4 };
/** Data words such that a kept version takes four units: 128 bytes. */
export const TINY_WORDS = 16;

/** An object, or an array of `count` of them if that is not 0. */
export interface Place {
  readonly regionId: number;
  readonly word: number;
  readonly words: number;
  readonly incarnation: number;
  readonly count: number;
}

const wordOfValue = (value: number, index: number): number =>
  (Math.imul(value + 1, 0x9e3779b1) + index) | 0;

function fill(i32: Int32Array, at: number, words: number, value: number): void {
  i32[at] = value;
  for (let i = 1; i < words; i++) i32[at + i] = wordOfValue(value, i);
}

/** The value of an object whose words were copied; throws if they are not of one value. */
function wholeValue(words: Int32Array): number {
  const value = words[0];
  for (let i = 1; i < words.length; i++) {
    if (words[i] !== wordOfValue(value, i)) throw new Error(`torn at word ${i}: ${words}`);
  }
  return value;
}

export function create(tx: Transaction, words: number, value: number): Place {
  const entry = tx.allocate(words * 4);
  fill(tx.set.arena.i32, tx.set.bufferOf(entry), words, value);
  return placeOf(tx, entry, words, 0);
}

export function createArray(tx: Transaction, count: number, words: number, value: number): Place {
  const first = tx.allocateArray(count, words * 4);
  const { set } = tx;
  for (let index = 0; index < count; index++) {
    const element = set.find(
      set.regionIdOf(first),
      set.wordOf(first) + index * (HEADER_WORDS + words),
    );
    fill(set.arena.i32, set.bufferOf(element), words, value + index);
  }
  return placeOf(tx, first, words, count);
}

function placeOf(tx: Transaction, entry: number, words: number, count: number): Place {
  const { set } = tx;
  return {
    regionId: set.regionIdOf(entry),
    word: set.wordOf(entry),
    words,
    incarnation: set.incarnationOf(entry),
    count,
  };
}

/** One element of an array, as an object. */
export function elementOf(array: Place, index: number): Place {
  return { ...array, word: array.word + index * (HEADER_WORDS + array.words), count: 0 };
}

function open(tx: Transaction, place: Place): number {
  return tx.open(tx.executor.memory.region(place.regionId), place.word);
}

/** What the transaction sees of an object: its value; or undefined if it is not there any more. */
export function read(tx: Transaction, place: Place): number | undefined {
  for (;;) {
    const entry = open(tx, place);
    const copy = tx.views.i32.slice(tx.at, tx.at + place.words);
    if (!tx.settle(entry)) continue;
    tx.depend(entry);
    return tx.incarnationOf(entry) === place.incarnation ? wholeValue(copy) : undefined;
  }
}

export function write(tx: Transaction, place: Place, value: number): void {
  const entry = open(tx, place);
  const at = tx.writable(entry, place.words);
  fill(tx.set.arena.i32, at, place.words, value);
  tx.set.markDirty(entry, 0, place.words);
}

export function free(tx: Transaction, place: Place): void {
  if (place.count === 0) {
    tx.free(open(tx, place));
    return;
  }
  const cell = tx.open(tx.executor.memory.region(place.regionId), place.word - ARRAY_HEADER_WORDS);
  tx.freeArray(cell, place.count, place.words * 4);
}

/** An executor with a transaction for its work and one for reading from snapshots. */
export class Worker {
  readonly executor: Executor;
  readonly #tx: Transaction;
  readonly #reader: Transaction;

  constructor(store: EngineStore) {
    this.executor = store.open();
    this.#tx = new Transaction(this.executor);
    this.#reader = new Transaction(this.executor);
  }

  run<T>(body: (tx: Transaction) => T, snapshotMs = 0): T {
    return runSync(this.executor, this.#tx, TIMEOUT_MS, body, this.#tx, snapshotMs);
  }

  /** What is left to do of a transaction is its commit; what that throws is nobody's to handle. */
  prepare(body: (tx: Transaction) => void): () => boolean {
    const tx = new Transaction(this.executor);
    this.executor.enter();
    body(tx);
    return () => this.executor.committer.commit(tx);
  }

  create(values: readonly number[], words = TINY_WORDS): Place[] {
    return this.run((tx) => values.map((value) => create(tx, words, value)));
  }

  write(place: Place, value: number): void {
    this.run((tx) => write(tx, place, value));
  }

  free(place: Place): void {
    this.run((tx) => free(tx, place));
  }

  read(place: Place): number | undefined {
    return this.run((tx) => read(tx, place));
  }

  take(lifeMs: number = LIFE_MS, timeoutMs: number = TIMEOUT_MS): Snapshot {
    return Snapshot.take(this.executor, lifeMs, timeoutMs);
  }

  /** What a snapshot sees of an object. */
  readAt(snapshot: Snapshot, place: Place): number | undefined {
    return readAtSnapshot(this.executor, this.#reader, snapshot, read, place);
  }

  tick(): void {
    this.executor.versions.keeper.tick();
  }

  get usedBytes(): number {
    return this.executor.versions.keeper.usedBytes();
  }

  get open(): number {
    return this.executor.versions.registry.summary().open;
  }

  counted(counter: Counter): number {
    return counterSum(this.executor.memory.control, counter);
  }
}

/** What the counters of the whole store have grown by while some work was done. */
export function growthOf(worker: Worker, work: () => void): Readonly<Record<Counter, number>> {
  const before = COUNTERS.map((counter) => worker.counted(counter));
  work();
  const growth = COUNTERS.map((counter, i) => [counter, worker.counted(counter) - before[i]]);
  return Object.fromEntries(growth) as Record<Counter, number>;
}

/** The code of the error that a call ends with. */
export function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    if (error instanceof SituError) return error.code;
    throw error;
  }
  return "no error";
}

/**
 * Runs `work` and lets it die at its k-th atomic change, or at the first one of a kind. Unlike with
 * `dieAt`, it stays dead: what `catch` and `finally` would still change, they cannot. Says whether
 * it came that far.
 */
export function dieForGood(
  at: number | ((step: AtomicStep) => boolean),
  when: When,
  work: () => void,
): boolean {
  let steps = 0;
  let dead = false;
  const meets = (step: AtomicStep): boolean => (typeof at === "number" ? steps === at : at(step));
  const die = (): never => {
    dead = true;
    throw new Death(`${when} step ${steps}`);
  };
  const off = hookAtomics({
    before: (step) => {
      steps++;
      if (dead || (when === "before" && meets(step))) die();
    },
    after: (step) => {
      if (when === "after" && meets(step)) die();
    },
  });
  try {
    work();
  } catch (error) {
    if (!dead) throw error;
  } finally {
    off();
  }
  return dead;
}
