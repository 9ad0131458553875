/**
 * The overflow area: old versions that a snapshot still needs and that no ring has room for
 * (NAM-DB §5.1). It is made of chunks that come into being when needed, up to a bound, and has one
 * index over all of them. Only the keeper writes here, under its lock; everybody reads.
 *
 * Four words of control for each chunk: whether it was made, its state, its generation (how often it
 * was emptied), the units filled. A reference is chunk and unit in one word, plus one; 0 is none.
 *
 * The keeper may die at any step. A version is written, then the chunk's filling moves on, then
 * the index leads to it: what is lost in between is still in its ring. Versions leave the index
 * one by one before their chunk is emptied: whoever comes next does the rest. A reader believes
 * a version that bears the generation of its chunk, and what it has read of it if that has not
 * changed by then: in one generation no word is written twice.
 */

import { placeHash } from "../../memory/address.ts";
import { CHUNK_ENTRY_WORDS, OVERFLOW_INDEX_STATE, OVERFLOW_MOVES } from "../../memory/control.ts";
import { loadAcquire, loadAfterLoads, storeRelease } from "../../memory/ordering.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { assert } from "../../runtime/assert.ts";
import { OVERFLOW_BUCKETS } from "../../runtime/limits.ts";
import { copyWords } from "../journal.ts";
import type { Limits } from "./registry.ts";
import {
  DATA,
  isNeeded,
  isSeenBy,
  NEXT,
  PLACE,
  REGION_ID,
  STAMP,
  UNIT_WORDS,
  UNITS,
  unitsAt,
  WORD,
} from "./version.ts";

const MADE = 0;
const STATE = 1;
const GENERATION = 2;
const FILLED = 3;

const EMPTY = 0;
const IN_USE = 1;

export class OverflowArea {
  /** The most chunks there may be. */
  readonly chunks: number;
  readonly #memory: StoreMemory;
  readonly #control: Int32Array;
  readonly #chunks: (Int32Array | undefined)[] = [];
  #index: Int32Array | undefined;
  readonly #chunkUnits: number;
  readonly #unitBits: number;
  /** The chunk that is being filled, as far as this keeper knows. */
  #filling = -1;
  /** The chunk that is being cleaned: nothing goes there. */
  #cleaning = -1;
  /** The chunk of the version that `find` found, and its generation then. */
  foundChunk = 0;
  foundGeneration = 0;

  constructor(memory: StoreMemory) {
    this.#memory = memory;
    this.chunks = memory.control.geometry.chunks;
    this.#control = memory.control.i32;
    this.#chunkUnits = memory.control.geometry.chunkBytes / (4 * UNIT_WORDS);
    this.#unitBits = Math.log2(this.#chunkUnits);
  }

  get limitBytes(): number {
    return this.chunks * this.#memory.control.geometry.chunkBytes;
  }

  isInUse(chunk: number): boolean {
    return this.#load(chunk, STATE) === IN_USE;
  }

  usedBytes(): number {
    let units = 0;
    for (let chunk = 0; chunk < this.chunks; chunk++) {
      if (this.isInUse(chunk)) units += this.#load(chunk, FILLED);
    }
    return units * UNIT_WORDS * 4;
  }

  /** The words in which a found or walked version lies. */
  wordsOf(chunk: number): Int32Array {
    let words = this.#chunks[chunk];
    if (words === undefined) {
      words = this.#memory.attachChunk(chunk, this.#memory.control.chunkAt(chunk) + MADE).i32;
      while (this.#chunks.length <= chunk) this.#chunks.push(undefined);
      this.#chunks[chunk] = words;
    }
    return words;
  }

  /** Where in chunk `foundChunk` the version lies that a snapshot sees; -1 if there is none. */
  find(regionId: number, word: number, limitHigh: number, limitLow: number): number {
    if (Atomics.load(this.#control, OVERFLOW_INDEX_STATE) === 0) return -1;
    for (;;) {
      const moves = Atomics.load(this.#control, OVERFLOW_MOVES);
      const at = this.#findOnce(regionId, word, limitHigh, limitLow);
      // One that was moved while we looked for it may have been passed by: look again.
      if (at >= 0 || loadAfterLoads(this.#control, OVERFLOW_MOVES) === moves) return at;
    }
  }

  #findOnce(regionId: number, word: number, limitHigh: number, limitLow: number): number {
    const bucket = placeHash(regionId, word) & (OVERFLOW_BUCKETS - 1);
    let reference = loadAcquire(this.#indexWords(), bucket);
    for (let step = 0; reference !== 0 && step < this.#chunkUnits; step++) {
      const chunk = (reference - 1) >>> this.#unitBits;
      // What is followed may be garbage, until the generation has been found unchanged.
      if (chunk >= this.chunks || this.#load(chunk, MADE) === 0) return -1;
      this.foundChunk = chunk;
      this.foundGeneration = this.#load(chunk, GENERATION);
      const i32 = this.wordsOf(chunk);
      const at = ((reference - 1) & (this.#chunkUnits - 1)) * UNIT_WORDS;
      if (loadAcquire(i32, at + PLACE) !== reference) return -1;
      if (loadAcquire(i32, at + STAMP) !== this.foundGeneration) return -1;
      const next = i32[at + NEXT];
      const found = isSeenBy(i32, at, regionId, word, limitHigh, limitLow);
      if (!this.isHere()) return -1;
      if (found) return at;
      reference = next;
    }
    return -1;
  }

  /** Whether the chunk of the version found last has not been emptied since. */
  isHere(): boolean {
    const at = this.#memory.control.chunkAt(this.foundChunk) + GENERATION;
    return loadAfterLoads(this.#control, at) === this.foundGeneration;
  }

  /** Copies a version into the area; false if no chunk has room for it. Only for the keeper. */
  append(from: Int32Array, fromAt: number): boolean {
    const units = from[fromAt + UNITS];
    const chunk = this.#chunkWith(units);
    if (chunk < 0) return false;
    const unit = this.#load(chunk, FILLED);
    const to = this.wordsOf(chunk);
    const at = unit * UNIT_WORDS;
    const reference = ((chunk << this.#unitBits) | unit) + 1;
    const index = this.#indexWords();
    const bucket =
      placeHash(from[fromAt + REGION_ID], from[fromAt + WORD]) & (OVERFLOW_BUCKETS - 1);
    // What lay here before must not be taken for the new one while it is being written.
    storeRelease(to, at + PLACE, 0);
    storeRelease(to, at + STAMP, -1);
    copyWords(from, fromAt + NEXT, to, at + NEXT, STAMP - NEXT);
    copyWords(from, fromAt + DATA, to, at + DATA, units * UNIT_WORDS - DATA);
    to[at + UNITS] = units;
    to[at + NEXT] = index[bucket];
    storeRelease(to, at + STAMP, this.#load(chunk, GENERATION));
    storeRelease(to, at + PLACE, reference);
    this.#store(chunk, FILLED, unit + units);
    storeRelease(index, bucket, reference);
    return true;
  }

  /**
   * Empties a chunk if none of the limits needs what is in it, or only little, which is then moved;
   * says whether it did. Only for the keeper.
   */
  collect(limits: Limits, chunk: number): boolean {
    if (limits.count === 0) return this.#emptyAll();
    if (chunk === this.#filling || !this.isInUse(chunk)) return false;
    const needed = this.#neededUnits(chunk, limits);
    if (needed * 2 > this.#load(chunk, FILLED) || !this.#fitElsewhere(chunk, needed)) return false;
    this.#clean(chunk, limits);
    return true;
  }

  /** Nobody needs anything: all at once. */
  #emptyAll(): boolean {
    let emptied = 0;
    this.#filling = -1;
    for (let chunk = 0; chunk < this.chunks; chunk++) {
      if (!this.isInUse(chunk)) continue;
      if (emptied++ === 0) this.#indexWords().fill(0);
      this.#empty(chunk);
    }
    return emptied > 0;
  }

  /** Units of the versions in a chunk that are needed. */
  #neededUnits(chunk: number, limits: Limits): number {
    const i32 = this.wordsOf(chunk);
    const end = this.#load(chunk, FILLED) * UNIT_WORDS;
    let needed = 0;
    for (let at = 0; at < end; at += stepAt(i32, at, end)) {
      if (isNeeded(i32, at, limits)) needed += stepAt(i32, at, end) / UNIT_WORDS;
    }
    return needed;
  }

  /** Whether another chunk has room for so much, so that cleaning this one makes room. */
  #fitElsewhere(chunk: number, units: number): boolean {
    if (units === 0) return true;
    this.#cleaning = chunk;
    try {
      return this.#chunkWith(units) >= 0;
    } finally {
      this.#cleaning = -1;
    }
  }

  /** Moves what is needed to the chunk that is being filled, and empties this one. */
  #clean(chunk: number, limits: Limits): void {
    const i32 = this.wordsOf(chunk);
    const end = this.#load(chunk, FILLED) * UNIT_WORDS;
    this.#cleaning = chunk;
    try {
      for (let at = 0; at < end; at += stepAt(i32, at, end)) {
        if (!isNeeded(i32, at, limits)) continue;
        // Damaged: where it ends is not known.
        if (i32[at + UNITS] * UNIT_WORDS !== stepAt(i32, at, end)) continue;
        assert(this.append(i32, at), "what is needed of a chunk fits another one");
      }
    } finally {
      this.#cleaning = -1;
    }
    Atomics.add(this.#control, OVERFLOW_MOVES, 1);
    for (let at = 0; at < end; at += stepAt(i32, at, end)) this.#unlink(i32, at);
    this.#empty(chunk);
  }

  #unlink(i32: Int32Array, at: number): void {
    const index = this.#indexWords();
    const bucket = placeHash(i32[at + REGION_ID], i32[at + WORD]) & (OVERFLOW_BUCKETS - 1);
    let before = index;
    let beforeAt = bucket;
    let step = 0;
    for (let reference = index[bucket]; reference !== 0; ) {
      const chunk = (reference - 1) >>> this.#unitBits;
      // Damaged: what is not found is not believed either, for its chunk gets another generation.
      if (chunk >= this.chunks || step++ > this.#chunkUnits) return;
      const words = this.wordsOf(chunk);
      const nextAt = ((reference - 1) & (this.#chunkUnits - 1)) * UNIT_WORDS + NEXT;
      if (reference === i32[at + PLACE]) {
        storeRelease(before, beforeAt, words[nextAt]);
        return;
      }
      before = words;
      beforeAt = nextAt;
      reference = words[nextAt];
    }
  }

  #empty(chunk: number): void {
    Atomics.add(this.#control, this.#memory.control.chunkAt(chunk) + GENERATION, 1);
    this.#store(chunk, FILLED, 0);
    this.#store(chunk, STATE, EMPTY);
  }

  /** The chunk being filled if it has room, else an empty one; -1 if all are in use. */
  #chunkWith(units: number): number {
    const { chunks } = this;
    if (this.#hasRoom(this.#filling, units)) return this.#filling;
    this.#filling = -1;
    // Another keeper may have been here since: any chunk that has room will do.
    for (let chunk = 0; chunk < chunks && this.#filling < 0; chunk++) {
      if (this.#hasRoom(chunk, units)) this.#filling = chunk;
    }
    for (let chunk = 0; chunk < chunks && this.#filling < 0; chunk++) {
      if (this.isInUse(chunk)) continue;
      this.wordsOf(chunk);
      this.#store(chunk, FILLED, 0);
      this.#store(chunk, STATE, IN_USE);
      this.#filling = chunk;
    }
    return this.#filling;
  }

  #hasRoom(chunk: number, units: number): boolean {
    if (chunk < 0 || chunk === this.#cleaning || !this.isInUse(chunk)) return false;
    return this.#load(chunk, FILLED) + units <= this.#chunkUnits;
  }

  #indexWords(): Int32Array {
    this.#index ??= this.#memory.attachOverflowIndex().i32;
    return this.#index;
  }

  #load(chunk: number, word: number): number {
    return loadAcquire(this.#control, this.#memory.control.chunkAt(chunk) + word);
  }

  #store(chunk: number, word: number, value: number): void {
    storeRelease(this.#control, this.#memory.control.chunkAt(chunk) + word, value);
  }
}

/** From a version in a chunk to the next one; to the end, if it does not say where that is. */
function stepAt(i32: Int32Array, at: number, end: number): number {
  return unitsAt(i32, at, Math.ceil((end - at) / UNIT_WORDS)) * UNIT_WORDS;
}

/** The four words of a chunk are the ones that control.ts reserves. */
if (FILLED >= CHUNK_ENTRY_WORDS) throw new Error("a chunk's words do not fit");
