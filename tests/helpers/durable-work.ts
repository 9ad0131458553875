/**
 * Random transactions on bare objects, for stores with a log: transfers between accounts, objects and
 * arrays of many sizes that are allocated, changed in part and freed. All are noted in a model.
 */

import { CHANGE_UPDATE } from "../../src/engine/changes.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  HEADER_WORDS,
  INCARNATION,
  LOCK,
} from "../../src/memory/object.ts";
import { Views } from "../../src/memory/views.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";
import { type Change, keyOf, type Model, type Place, type State } from "./durable-model.ts";

const TIMEOUT_MS = 2_000;
const ACCOUNTS = 6;
const BALANCE = 100;
export const TOTAL = ACCOUNTS * BALANCE;
/** Marks the account among the objects, in its second word. */
const ACCOUNT = 0x0acc0acc;
const ACCOUNT_WORDS = 4;

/** Data bytes of objects: many small ones, some in blocks of two units and of eight. */
const SIZES = [8, 40, 40, 120, 400, 1_000, 9_000];
const SHAPES = [
  { count: 3, bytes: 16 },
  { count: 12, bytes: 40 },
  { count: 2, bytes: 1_500 },
];

/** The store is full, or the journal too small: no fault of the log. */
const NO_ROOM = ["SITU_FULL", "SITU_TOO_LARGE"];

/** An object, or with a count an array, by the place of its cell. */
interface Thing extends Place {
  readonly dataWords: number;
  readonly count: number;
}

/** A transaction that is cut short. */
export interface Cuttable {
  /** Commits; whatever is thrown in the middle, nobody catches it. */
  readonly run: () => void;
  /** The same by one who lives on, and ends what was cut short. */
  readonly runAlive: () => void;
  /** Whether others can see that it was committed. */
  readonly isSeen: () => boolean;
  /** Notes it, if it was committed. */
  readonly settle: () => void;
}

const ROW = new Views(Int32Array.of(-1, 7, 0xffff, 0).buffer);

/** Row changes, as of a table that is watched: nothing that is done with a record may mind them. */
function tellRows(tx: Transaction, count: number): void {
  for (let i = 0; i < Math.min(count, 3); i++) {
    tx.set.changes.take(ROW, i, 3 - i);
    tx.set.changes.add(i, CHANGE_UPDATE, -1);
  }
}

type Body = (tx: Transaction, changes: Change[]) => void;

export class Work {
  readonly #model: Model;
  readonly #random: Random;
  readonly #accounts: Place[] = [];
  readonly #things: Thing[] = [];

  constructor(model: Model, random: Random) {
    this.#model = model;
    this.#random = random;
    for (const thing of thingsIn(model.now)) {
      const isAccount = model.now.get(keyOf(thing))?.data[1] === ACCOUNT;
      if (isAccount && thing.count === 0) this.#accounts.push(thing);
      else this.#things.push(thing);
    }
  }

  /** The first account, once there are some: a place to be remembered. */
  get root(): Place | undefined {
    return this.#accounts[0];
  }

  get sum(): number {
    return this.#accounts.reduce((sum, at) => sum + this.#dataOf(at)[0], 0);
  }

  /** One transaction of this executor, whatever it is. False if the store had no room for it. */
  step(executor: Executor): boolean {
    if (this.#accounts.length === 0) return this.#open(executor);
    const random = this.#random;
    const what = random.below(100);
    if (what < 40) return this.transfer(executor);
    if (what < 60) return this.#allocate(executor, 1 + random.below(3));
    if (what < 80) return this.#change(executor, 1 + random.below(4));
    if (what < 90) return this.#free(executor, 1 + random.below(3));
    if (what < 94) return this.#freeMany(executor);
    if (what < 97) return this.#allocateInVain(executor);
    return this.#replace(executor);
  }

  /** Allocates objects of so many bytes in one transaction. */
  allocate(executor: Executor, count: number, bytes: number): void {
    const made: Thing[] = [];
    const isDone = this.#run(
      executor,
      (tx, changes) => {
        made.length = 0;
        for (let i = 0; i < count; i++) made.push(this.#allocateObject(tx, changes, bytes));
      },
      () => this.#things.push(...made),
    );
    if (!isDone) throw new Error(`there is no room for ${count} objects of ${bytes} bytes`);
  }

  /** Frees all objects of so many bytes in one transaction. */
  freeAll(executor: Executor, bytes: number): void {
    const alike = this.#things.filter((one) => one.count === 0 && one.dataWords * 4 === bytes);
    this.#run(
      executor,
      (tx, changes) => {
        for (const thing of alike) this.#freeThing(tx, changes, thing);
      },
      () => this.#forget(alike),
    );
  }

  /** A transaction that can be cut short: `run` it, and then `settle` what has become of it. */
  cuttable(executor: Executor): Cuttable {
    const tx = new Transaction(executor);
    const changes: Change[] = [];
    const bytes = this.#choose(SIZES);
    const { memory } = executor;
    let made: Thing | undefined;
    const begin = (): void => {
      executor.enter();
      made = this.#allocateObject(tx, changes, bytes);
      for (const other of this.#some(2)) this.#write(tx, changes, other);
      tellRows(tx, changes.length);
    };
    const isAllocated = (): boolean =>
      made !== undefined &&
      (memory.region(made.regionId).i32[made.word + INCARNATION] & ALLOCATED) !== 0;
    return {
      run: () => {
        begin();
        executor.committer.commit(tx);
      },
      runAlive: () => {
        begin();
        try {
          executor.commit(tx);
        } finally {
          tx.clear();
          executor.leave();
        }
      },
      isSeen: () => isAllocated() && memory.region(made!.regionId).i32[made!.word + LOCK] === 0,
      settle: () => {
        if (!isAllocated()) return;
        this.#model.note(memory, changes);
        this.#things.push(made!);
      },
    };
  }

  #open(executor: Executor): boolean {
    return this.#run(
      executor,
      (tx, changes) => {
        for (let i = 0; i < ACCOUNTS; i++) {
          const data = new Int32Array(ACCOUNT_WORDS);
          data[0] = BALANCE;
          data[1] = ACCOUNT;
          const entry = tx.allocate(4 * ACCOUNT_WORDS);
          this.#fill(tx, entry, data, 0, ACCOUNT_WORDS);
          const place = { regionId: tx.set.regionIdOf(entry), word: tx.set.wordOf(entry) };
          changes.push({ ...place, data });
        }
      },
      (changes) => this.#accounts.push(...changes),
    );
  }

  /** A small transaction, if there are accounts. */
  transfer(executor: Executor): boolean {
    if (this.#accounts.length === 0) return false;
    const random = this.#random;
    const from = this.#choose(this.#accounts);
    const to = this.#choose(this.#accounts.filter((one) => one !== from));
    const amount = random.below(50);
    return this.#run(executor, (tx, changes) => {
      for (const [account, sign] of [
        [from, -1],
        [to, 1],
      ] as const) {
        const data = this.#dataOf(account).slice();
        data[0] += sign * amount;
        this.#put(tx, account, data, 0, 1);
        changes.push({ ...account, data });
      }
    });
  }

  #allocate(executor: Executor, count: number): boolean {
    const random = this.#random;
    const made: Thing[] = [];
    return this.#run(
      executor,
      (tx, changes) => {
        made.length = 0;
        for (let i = 0; i < count; i++) {
          if (random.below(4) === 0) made.push(this.#allocateArray(tx, changes));
          else made.push(this.#allocateObject(tx, changes, this.#choose(SIZES)));
        }
      },
      () => this.#things.push(...made),
    );
  }

  #change(executor: Executor, count: number): boolean {
    const chosen = this.#some(count);
    if (chosen.length === 0) return this.#allocate(executor, 1);
    return this.#run(executor, (tx, changes) => {
      for (const thing of chosen) this.#write(tx, changes, thing);
    });
  }

  #free(executor: Executor, count: number): boolean {
    const chosen = this.#some(count);
    if (chosen.length === 0) return this.#allocate(executor, 1);
    return this.#run(
      executor,
      (tx, changes) => {
        for (const thing of chosen) this.#freeThing(tx, changes, thing);
      },
      () => this.#forget(chosen),
    );
  }

  /** All things of a size, so that blocks get empty, and gives the empty ones back. */
  #freeMany(executor: Executor): boolean {
    const first = this.#some(1)[0];
    const alike = this.#things.filter((one) => one.dataWords === first?.dataWords).slice(0, 12);
    if (alike.length === 0) return this.#allocate(executor, 2);
    const done = this.#run(
      executor,
      (tx, changes) => {
        for (const thing of alike) this.#freeThing(tx, changes, thing);
      },
      () => this.#forget(alike),
    );
    executor.slabs.releaseEmptyBlocks();
    return done;
  }

  /** A transaction that gives up: a block may be left in which nothing was ever committed. */
  #allocateInVain(executor: Executor): boolean {
    const why = new Error("given up");
    try {
      this.#run(executor, (tx, changes) => {
        this.#allocateObject(tx, changes, this.#choose(SIZES));
        throw why;
      });
    } catch (error) {
      if (error !== why) throw error;
    }
    return true;
  }

  /** Frees a thing and makes another, perhaps in its place in the next transaction. */
  #replace(executor: Executor): boolean {
    const [old] = this.#some(1);
    if (old === undefined) return this.#allocate(executor, 1);
    let made: Thing | undefined;
    return this.#run(
      executor,
      (tx, changes) => {
        this.#freeThing(tx, changes, old);
        made = this.#allocateObject(tx, changes, this.#choose(SIZES));
        const vain = tx.allocate(this.#choose(SIZES));
        tx.free(vain);
      },
      () => {
        this.#forget([old]);
        this.#things.push(made!);
      },
    );
  }

  #run(executor: Executor, body: Body, done?: (changes: Change[]) => void): boolean {
    const tx = new Transaction(executor);
    const changes: Change[] = [];
    try {
      runSync(
        executor,
        tx,
        TIMEOUT_MS,
        () => {
          changes.length = 0;
          body(tx, changes);
          tellRows(tx, changes.length);
        },
        undefined,
      );
    } catch (error) {
      if (error instanceof SituError && NO_ROOM.includes(error.code)) return false;
      throw error;
    }
    this.#model.note(executor.memory, changes);
    done?.(changes);
    return true;
  }

  #allocateObject(tx: Transaction, changes: Change[], bytes: number): Thing {
    const entry = tx.allocate(bytes);
    const dataWords = Math.ceil(bytes / 8) * 2;
    const data = new Int32Array(dataWords);
    const from = this.#random.below(dataWords);
    const to = from + this.#random.below(Math.min(dataWords - from, 40) + 1);
    for (let i = from; i < to; i++) data[i] = this.#random.next();
    this.#fill(tx, entry, data, from, to);
    const place = { regionId: tx.set.regionIdOf(entry), word: tx.set.wordOf(entry) };
    changes.push({ ...place, data });
    return { ...place, dataWords, count: 0 };
  }

  #allocateArray(tx: Transaction, changes: Change[]): Thing {
    const { count, bytes } = this.#choose(SHAPES);
    const dataWords = Math.ceil(bytes / 8) * 2;
    const first = tx.allocateArray(count, bytes);
    const regionId = tx.set.regionIdOf(first);
    const word = tx.set.wordOf(first) - ARRAY_HEADER_WORDS;
    const thing = { regionId, word, dataWords, count };
    changes.push({ regionId, word, data: Int32Array.of(dataWords, count) });
    for (const element of elementsOf(thing)) {
      const entry = tx.set.find(regionId, element.word);
      const data = new Int32Array(dataWords);
      data[0] = this.#random.next();
      this.#fill(tx, entry, data, 0, 1);
      changes.push({ ...element, data });
    }
    return thing;
  }

  /** Changes some words of an object, or of an element. */
  #write(tx: Transaction, changes: Change[], thing: Thing): void {
    const random = this.#random;
    const place = thing.count === 0 ? thing : this.#choose(elementsOf(thing));
    const data = this.#dataOf(place).slice();
    const from = random.below(data.length);
    const to = from + 1 + random.below(Math.min(data.length - from, 40));
    for (let i = from; i < to; i++) data[i] = random.next();
    this.#put(tx, place, data, from, to);
    changes.push({ regionId: place.regionId, word: place.word, data });
  }

  #freeThing(tx: Transaction, changes: Change[], thing: Thing): void {
    const { regionId, word } = thing;
    const entry = tx.open(tx.executor.memory.region(regionId), word);
    if (thing.count === 0) {
      tx.free(entry);
    } else {
      tx.freeArray(entry, thing.count, thing.dataWords * 4);
      for (const element of elementsOf(thing)) changes.push({ ...element, data: undefined });
    }
    changes.push({ regionId, word, data: undefined });
  }

  #put(tx: Transaction, place: Place, data: Int32Array, from: number, to: number): void {
    const entry = tx.open(tx.executor.memory.region(place.regionId), place.word);
    tx.writable(entry, data.length);
    this.#fill(tx, entry, data, from, to);
  }

  #fill(tx: Transaction, entry: number, data: Int32Array, from: number, to: number): void {
    const { set } = tx;
    set.arena.i32.set(data.subarray(from, to), set.bufferOf(entry) + from);
    if (to > from) set.markDirty(entry, from, to);
  }

  #dataOf(place: Place): Int32Array {
    const held = this.#model.now.get(keyOf(place));
    if (held === undefined) throw new Error(`nothing is at ${keyOf(place)}`);
    return held.data;
  }

  #some(count: number): Thing[] {
    const chosen = new Set<Thing>();
    for (let i = 0; i < count && this.#things.length > 0; i++) {
      chosen.add(this.#choose(this.#things));
    }
    return [...chosen];
  }

  #forget(things: readonly Thing[]): void {
    for (const thing of things) this.#things.splice(this.#things.indexOf(thing), 1);
  }

  #choose<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)];
  }
}

function elementsOf({ regionId, word, dataWords, count }: Thing): Place[] {
  return Array.from({ length: count }, (_, index) => ({
    regionId,
    word: word + ARRAY_HEADER_WORDS + index * (HEADER_WORDS + dataWords),
  }));
}

/** The objects and arrays of a state. */
function thingsIn(state: State): Thing[] {
  const things: Thing[] = [];
  const elements = new Set<string>();
  for (const { regionId, word, data, incarnation } of state.values()) {
    if ((incarnation & ARRAY) === 0) continue;
    const thing = { regionId, word, dataWords: data[0], count: data[1] };
    things.push(thing);
    for (const element of elementsOf(thing)) elements.add(keyOf(element));
  }
  for (const held of state.values()) {
    if ((held.incarnation & ARRAY) !== 0 || elements.has(keyOf(held))) continue;
    const { regionId, word, data } = held;
    things.push({ regionId, word, dataWords: data.length, count: 0 });
  }
  return things;
}
