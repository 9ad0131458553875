/**
 * Random work in a bare store: objects and arrays of many sizes are allocated, changed and freed by
 * several executors; blocks are emptied, given back and taken for other classes; transactions are
 * given up, executors closed and killed. What a seed does is always the same.
 *
 * The first data word of a plain object says how many it has, so that nobody need remember it.
 */

import { repack } from "../../src/engine/edits.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { HEAD, TAIL } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { BLOCK_CELLS, BlockTable, SPAN } from "../../src/memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_WORDS,
  INCARNATION,
} from "../../src/memory/object.ts";
import { CELL_BYTES } from "../../src/memory/size-classes.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Random } from "../../src/runtime/random.ts";
import { dieForGood } from "./snapshots.ts";

const TIMEOUT_MS = 1_000;

/** Data bytes of objects: blocks of one unit, of two, of eight and of sixteen. */
const SIZES = [8, 40, 48, 120, 1_000, 4_000, 7_000, 9_000, 15_000, 60_000, 130_000];
const SHAPES = [
  { count: 3, bytes: 8 },
  { count: 20, bytes: 40 },
  { count: 65, bytes: 100 },
  { count: 2, bytes: 4_400 },
];

/** An object, or with a count an array, by the place of its cell. */
interface Thing {
  readonly regionId: number;
  readonly word: number;
  readonly dataWords: number;
  readonly count: number;
}

/** What it needs of a store. */
export interface ChurnStore {
  readonly memory: StoreMemory;
  open(): Executor;
  close(executor: Executor): void;
  kill(executor: Executor): void;
}

class GivenUp extends Error {}

export class Churn {
  readonly executors: Executor[] = [];
  readonly #store: ChurnStore;
  readonly #random: Random;
  /** Empties the journals. */
  readonly #flush: () => void;
  readonly #transactions = new Map<Executor, Transaction>();
  #things: Thing[] = [];

  constructor(store: ChurnStore, random: Random, executors: number, flush: () => void) {
    this.#store = store;
    this.#random = random;
    this.#flush = flush;
    for (let i = 0; i < executors; i++) this.#open();
  }

  /** For `differences`. */
  readonly dataWordsAt = (regionId: number, word: number): number =>
    this.#store.memory.region(regionId).i32[word + HEADER_WORDS];

  /** Does something, whatever it is. */
  step(): void {
    const random = this.#random;
    const executor = this.executors[random.below(this.executors.length)];
    this.#makeRoom(executor);
    const what = random.below(100);
    if (what < 30) this.#run(executor, (tx) => this.#allocate(tx));
    else if (what < 58) this.#run(executor, (tx) => this.#change(tx, 1 + random.below(4)));
    else if (what < 72)
      this.#run(executor, (tx) => this.#free(tx, this.#some(1 + random.below(3))));
    else if (what < 77) this.#allocateInVain(executor);
    else if (what < 81) this.#run(executor, (tx) => this.#allocateAndFree(tx));
    else if (what < 89) this.#freeAllOfAKind(executor);
    else if (what < 96) executor.slabs.releaseEmptyBlocks();
    else if (what < 98) executor.epochs.advance();
    else this.#replace(executor);
  }

  /**
   * What an executor does who has found empty blocks, has waited until everybody had moved on, and
   * only now comes to give them back.
   */
  prepareReleases(): () => void {
    const random = this.#random;
    const { memory } = this.#store;
    const table = new BlockTable(memory);
    // A slot that nobody has.
    const slot = memory.control.geometry.slots - 1;
    this.#freeAllOfAKind(this.executors[0], false);
    this.#replace(this.executors[0]);
    const found: { block: number; sizeClass: number; highest: number }[] = [];
    for (let block = 0; block < table.count; block++) {
      const sizeClass = table.classOf(block);
      const seen = { highest: 0, sum: 0, freedHigh: 0, freedLow: 0 };
      if (sizeClass < 0 || !table.isEmpty(block, sizeClass, seen)) continue;
      if (random.below(2) === 0 || !table.close(block, sizeClass, slot)) continue;
      found.push({ block, sizeClass, highest: seen.highest });
    }
    const [executor] = this.executors;
    const since = executor.mark();
    if (!executor.isPast(since)) found.length = 0;
    return () => {
      for (const { block, sizeClass, highest } of found) {
        table.release(block, sizeClass, slot, highest);
      }
      table.orphan(slot);
    };
  }

  /** Kills an executor in the middle of a commit; `meanwhile` happens before anybody notices. */
  die(meanwhile: () => void): void {
    const random = this.#random;
    const victim = this.executors[random.below(this.executors.length)];
    this.#makeRoom(victim);
    const when = random.below(2) === 0 ? "before" : "after";
    dieForGood(1 + random.below(60), when, () => {
      const work = (tx: Transaction): (() => void) => {
        this.#change(tx, 3);
        this.#allocate(tx);
        return this.#free(tx, this.#some(1));
      };
      // Without patience: the dead try again, and meet their own locks.
      this.#run(victim, work, 0);
    });
    this.#store.kill(victim);
    this.#forget(victim);
    meanwhile();
    this.#open().sweep();
    this.#things = this.#scan();
  }

  #open(): Executor {
    const executor = this.#store.open();
    this.executors.push(executor);
    this.#transactions.set(executor, new Transaction(executor));
    return executor;
  }

  #forget(executor: Executor): void {
    this.#transactions.delete(executor);
    this.executors.splice(this.executors.indexOf(executor), 1);
  }

  #replace(executor: Executor): void {
    this.#forget(executor);
    this.#store.close(executor);
    this.#open();
  }

  #makeRoom(executor: Executor): void {
    const { control } = executor.memory;
    const at = control.slotAt(executor.slot);
    const used = (control.i32[at + HEAD] - control.i32[at + TAIL]) | 0;
    if (4 * used > control.geometry.journalBytes / 4 || this.#random.below(8) === 0) this.#flush();
  }

  /** A transaction that may find the store full, or be given up. */
  #run(
    executor: Executor,
    body: (tx: Transaction) => (() => void) | undefined,
    timeoutMs = TIMEOUT_MS,
  ): boolean {
    const tx = this.#transactions.get(executor)!;
    try {
      runSync(executor, tx, timeoutMs, body, tx)?.();
      return true;
    } catch (error) {
      if (error instanceof GivenUp) return false;
      if (error instanceof SituError && error.code === "SITU_FULL") return false;
      throw error;
    }
  }

  #allocate(tx: Transaction): () => void {
    const made = this.#make(tx);
    if (this.#random.below(3) === 0) this.#change(tx, 1);
    return () => this.#things.push(made);
  }

  #make(tx: Transaction): Thing {
    const random = this.#random;
    const { set } = tx;
    if (random.below(3) === 0) {
      const { count, bytes } = SHAPES[random.below(SHAPES.length)];
      const first = tx.allocateArray(count, bytes);
      const dataWords = Math.ceil(bytes / 8) * 2;
      for (let index = 0; index < count; index++) {
        const word = set.wordOf(first) + index * (HEADER_WORDS + dataWords);
        this.#scribble(tx, set.find(set.regionIdOf(first), word), 0, dataWords);
      }
      const word = set.wordOf(first) - ARRAY_HEADER_WORDS;
      return { regionId: set.regionIdOf(first), word, dataWords, count };
    }
    const bytes = SIZES[random.below(SIZES.length)];
    const entry = tx.allocate(bytes);
    const dataWords = Math.ceil(bytes / 8) * 2;
    set.arena.i32[set.bufferOf(entry)] = dataWords;
    this.#scribble(tx, entry, 1, dataWords);
    return { regionId: set.regionIdOf(entry), word: set.wordOf(entry), dataWords, count: 0 };
  }

  /** Writes some words of an object's copy. */
  #scribble(tx: Transaction, entry: number, from: number, to: number): void {
    const { set } = tx;
    const at = set.bufferOf(entry);
    for (let word = from; word < Math.min(to, from + 20); word++) {
      set.arena.i32[at + word] = this.#random.next();
    }
    set.arena.i32[at + to - 1] = this.#random.next();
    set.markDirty(entry, from, to);
  }

  #change(tx: Transaction, count: number): undefined {
    const random = this.#random;
    for (const thing of this.#some(count)) {
      const isArray = thing.count > 0;
      const index = isArray ? random.below(thing.count) : 0;
      const stride = HEADER_WORDS + thing.dataWords;
      const word = isArray ? thing.word + ARRAY_HEADER_WORDS + index * stride : thing.word;
      const entry = tx.open(tx.executor.memory.region(thing.regionId), word);
      if ((tx.incarnationOf(entry) & ALLOCATED) === 0) continue;
      const least = isArray ? 0 : 1;
      const from = least + random.below(thing.dataWords - least);
      const to = from + 1 + random.below(thing.dataWords - from);
      if (random.below(2) === 0 && from < 2_000 && tx.set.bufferOf(entry) < 0) {
        const at = tx.writableWindow(entry, from, to, thing.dataWords);
        for (let i = from; i < Math.min(to, from + 20); i++)
          tx.set.arena.i32[at + i] = random.next();
      } else {
        tx.writable(entry, thing.dataWords);
        if (random.below(2) === 0) this.#scribble(tx, entry, from, to);
        for (let edits = random.below(4); edits > 0; edits--) {
          this.#edit(tx, entry, least, thing.dataWords);
        }
      }
    }
  }

  /** Moves some words of an object's copy, or writes a few; or packs a heap of keys, as trees do. */
  #edit(tx: Transaction, entry: number, least: number, dataWords: number): void {
    const random = this.#random;
    const { set } = tx;
    const { i32 } = set.arena;
    const at = set.bufferOf(entry);
    const from = least + random.below(dataWords - least);
    const count = 1 + random.below(dataWords - from);
    set.beginEdits(entry);
    const how = random.below(8);
    if (how === 0 && dataWords - least > 8) {
      // Slots of two words, of which the second says where a key lies, in their front half.
      const slots = random.below((dataWords - least) >> 2);
      const heap = least + 2 * slots;
      for (let slot = 0; slot < slots; slot++) {
        const words = random.below(3);
        const place = heap + random.below(dataWords - heap - words + 1);
        i32[at + least + 2 * slot + 1] = (words << 16) | place;
      }
      set.recordWrite(entry, least, 2 * slots);
      repack(i32, at, least, slots, 2, dataWords);
      set.recordRepack(entry, least, slots, 2, heap, dataWords);
    } else if (how < 5) {
      const to = least + random.below(dataWords - least - count + 1);
      i32.copyWithin(at + to, at + from, at + from + count);
      set.recordMove(entry, from, to, count);
    } else {
      const few = Math.min(count, 5);
      for (let i = from; i < from + few; i++) i32[at + i] = random.next();
      set.recordWrite(entry, from, few);
    }
  }

  #free(tx: Transaction, things: readonly Thing[]): () => void {
    for (const thing of things) {
      const entry = tx.open(tx.executor.memory.region(thing.regionId), thing.word);
      if (thing.count > 0) tx.freeArray(entry, thing.count, thing.dataWords * 4);
      else tx.free(entry);
    }
    return () => {
      this.#things = this.#things.filter((thing) => !things.includes(thing));
    };
  }

  #allocateInVain(executor: Executor): void {
    this.#run(executor, (tx) => {
      this.#make(tx);
      throw new GivenUp();
    });
  }

  #allocateAndFree(tx: Transaction): () => void {
    const [made, kept] = [this.#make(tx), this.#make(tx)];
    this.#free(tx, [made]);
    return () => this.#things.push(kept);
  }

  /** So that blocks become empty, and are used for others. */
  #freeAllOfAKind(executor: Executor, releases = true): void {
    const chosen = this.#some(1)[0];
    if (chosen === undefined) return;
    const { dataWords, count } = chosen;
    const all = this.#things.filter((one) => one.dataWords === dataWords && one.count === count);
    this.#run(executor, (tx) => this.#free(tx, all));
    if (!releases) return;
    executor.slabs.releaseEmptyBlocks();
    if (this.#random.below(2) === 0) this.#run(executor, (tx) => this.#allocate(tx));
  }

  /** Some things, each once. */
  #some(count: number): Thing[] {
    const chosen = new Set<Thing>();
    for (let i = 0; i < count && this.#things.length > 0; i++) {
      chosen.add(this.#things[this.#random.below(this.#things.length)]);
    }
    return [...chosen];
  }

  /** All that is allocated. */
  #scan(): Thing[] {
    const found: Thing[] = [];
    const { memory } = this.#store;
    const table = new BlockTable(memory);
    for (let block = 0; block < table.count; ) {
      const sizeClass = table.classOf(block);
      const regionId = table.regionIdOf(block);
      const cells = sizeClass < 0 ? 0 : BLOCK_CELLS[sizeClass];
      for (let index = 0; index < cells; index++) {
        const { i32 } = memory.region(regionId);
        const word = table.firstWordOf(block) + (index * CELL_BYTES[sizeClass]) / 4;
        const state = i32[word + INCARNATION];
        if ((state & ALLOCATED) === 0) continue;
        const [dataWords, count] =
          (state & ARRAY) === 0
            ? [i32[word + HEADER_WORDS], 0]
            : [i32[word + ELEMENT_WORDS], i32[word + ELEMENT_COUNT]];
        found.push({ regionId, word, dataWords, count });
      }
      block += sizeClass < 0 ? 1 : SPAN[sizeClass];
    }
    return found;
  }
}
