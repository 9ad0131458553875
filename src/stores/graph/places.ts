/**
 * Where things are remembered to be: fat pointers by id, of objects or of the heads of their lists, in a table of the
 * process's own with one place for each hash. What is remembered may be out of date. Whoever uses it looks at the
 * incarnation; and before that, as with any pointer from outside, at the allocator's tables: if the block is not one of
 * the same class any more, what lies there is no header.
 *
 * A place is half a cache line: the id as a double, then region id, word, incarnation, block, size class, and a word
 * that is not used. Ids are usually counted from 1, so the hash leaves neighbours apart: a table that is large enough
 * for all of them has a place for each.
 */

import { addressOf } from "../../memory/address.ts";
import type { BlockTable } from "../../memory/blocks.ts";
import { MAX_REMEMBERED_PLACES, MIN_REMEMBERED_PLACES } from "../../runtime/limits.ts";
import type { Places } from "./objects.ts";

const PLACE_WORDS = 8;
const PLACE_DOUBLES = PLACE_WORDS / 2;
const REGION = 2;
const WORD = 3;
const INCARNATION = 4;
const BLOCK = 5;
const SIZE_CLASS = 6;

export class RememberedPlaces implements Places {
  /** Of the place that `recall` has found. */
  regionId = 0;
  word = 0;
  incarnation = 0;
  readonly #blocks: BlockTable;
  #i32 = new Int32Array(MIN_REMEMBERED_PLACES * PLACE_WORDS);
  #ids = new Float64Array(this.#i32.buffer);
  #mask = MIN_REMEMBERED_PLACES - 1;
  #block = 0;
  #sizeClass = 0;
  /** Places that were given to another id, since the table has had its size. */
  #displaced = 0;

  constructor(blocks: BlockTable) {
    this.#blocks = blocks;
  }

  recall(id: number): boolean {
    const slot = hashOf(id) & this.#mask;
    if (this.#ids[slot * PLACE_DOUBLES] !== id) return false;
    const i32 = this.#i32;
    const at = slot * PLACE_WORDS;
    this.regionId = i32[at + REGION];
    this.word = i32[at + WORD];
    this.incarnation = i32[at + INCARNATION];
    this.#block = i32[at + BLOCK];
    this.#sizeClass = i32[at + SIZE_CLASS];
    return this.isBlock();
  }

  /** Whether the block of the place that was recalled last still has cells of its size. */
  isBlock(): boolean {
    return this.#blocks.classOf(this.#block) === this.#sizeClass;
  }

  remember(id: number, regionId: number, word: number, incarnation: number): void {
    const block = this.#blocks.blockOf(addressOf(regionId, word));
    if (block < 0) return;
    let slot = hashOf(id) & this.#mask;
    const before = this.#ids[slot * PLACE_DOUBLES];
    if (before !== 0 && before !== id && ++this.#displaced > this.#mask >> 3) {
      this.#grow();
      slot = hashOf(id) & this.#mask;
    }
    const i32 = this.#i32;
    const at = slot * PLACE_WORDS;
    this.#ids[slot * PLACE_DOUBLES] = id;
    i32[at + REGION] = regionId;
    i32[at + WORD] = word;
    i32[at + INCARNATION] = incarnation;
    i32[at + BLOCK] = block;
    i32[at + SIZE_CLASS] = this.#blocks.classOf(block);
  }

  forget(id: number): void {
    const slot = hashOf(id) & this.#mask;
    if (this.#ids[slot * PLACE_DOUBLES] === id) this.#ids[slot * PLACE_DOUBLES] = 0;
  }

  #grow(): void {
    this.#displaced = 0;
    const length = 2 * (this.#mask + 1);
    if (length > MAX_REMEMBERED_PLACES) return;
    const i32 = this.#i32;
    const ids = this.#ids;
    this.#i32 = new Int32Array(length * PLACE_WORDS);
    this.#ids = new Float64Array(this.#i32.buffer);
    this.#mask = length - 1;
    for (let at = 0; at < i32.length; at += PLACE_WORDS) {
      const id = ids[at / 2];
      if (id === 0) continue;
      const to = (hashOf(id) & this.#mask) * PLACE_WORDS;
      this.#i32.set(i32.subarray(at, at + PLACE_WORDS), to);
    }
  }
}

/** Shifts are to the right only: of ids below a power of two, those of a table that size are all different. */
function hashOf(id: number): number {
  const folded = (id | 0) === id ? id : id ^ (id / 2 ** 32);
  return folded ^ (folded >>> 13);
}
