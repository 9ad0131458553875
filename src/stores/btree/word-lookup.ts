/**
 * The lookup of lookup.ts once more, for the common table: keys of one word, rows in the leaf. It
 * waits for memory and for little else, so it asks for what it will need as early as it can.
 */

import { HEADER_WORDS, unchanged, VERSION_HIGH, VERSION_LOW } from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Region, StoreMemory } from "../../memory/store-memory.ts";
import { MAX_TREE_LEVEL } from "../../runtime/limits.ts";
import type { OrderedCodec } from "../store.ts";
import { type FixedNodes, isLess } from "./fixed-nodes.ts";
import { COUNT, LEVEL, POINTER_WORDS, UNSURE } from "./layout.ts";

/** No guess where the row is. */
const NOWHERE = -1;

export class WordLookup<Row, Key> {
  readonly #regions: (Region | undefined)[];
  readonly #codec: OrderedCodec<Row, Key>;
  readonly #rootRegionId: number;
  readonly #rootWord: number;
  readonly #leaf: FixedNodes;
  readonly #innerKeys: number;
  readonly #innerPointers: number;
  readonly #innerCapacity: number;
  readonly #leafKeys: number;
  readonly #leafRows: number;
  readonly #leafCapacity: number;
  readonly #rowWords: number;
  /** The inner nodes of the way down: their regions by level, and word, high and low version. */
  readonly #passed: Region[] = [];
  readonly #seen = new Int32Array(3 * (MAX_TREE_LEVEL + 1));
  /** What was read only to ask for it: kept, so that the compiler keeps the loads. */
  touched = 0;

  constructor(
    memory: StoreMemory,
    codec: OrderedCodec<Row, Key>,
    inner: FixedNodes,
    leaf: FixedNodes,
    rootRegionId: number,
    rootWord: number,
  ) {
    // Mapped here, so that a look finds it among the regions.
    this.#passed.push(memory.region(rootRegionId));
    this.#regions = memory.regions;
    this.#codec = codec;
    this.#rootRegionId = rootRegionId;
    this.#rootWord = rootWord;
    this.#leaf = leaf;
    this.#innerKeys = HEADER_WORDS + inner.keysAt;
    this.#innerPointers = HEADER_WORDS + inner.payloadsAt;
    this.#innerCapacity = inner.capacity;
    this.#leafKeys = HEADER_WORDS + leaf.keysAt;
    this.#leafRows = HEADER_WORDS + leaf.payloadsAt;
    this.#leafCapacity = leaf.capacity;
    this.#rowWords = leaf.payloadWords;
  }

  /** The row with this key, undefined if there is none, or UNSURE. */
  look(wanted: number): Row | undefined | typeof UNSURE {
    const seen = this.#seen;
    let region: Region | undefined = this.#regions[this.#rootRegionId];
    if (region === undefined) return UNSURE;
    let word = this.#rootWord;
    let expected = -1;
    let top = 0;
    for (;;) {
      const i32: Int32Array = region.i32;
      const high = loadAcquire(i32, word + VERSION_HIGH);
      const low = loadAcquire(i32, word + VERSION_LOW);
      const level = i32[word + HEADER_WORDS + LEVEL];
      const count = i32[word + HEADER_WORDS + COUNT];
      if (level === 0) return this.#lookInto(region, word, wanted, count, high, low, top);
      if (level >>> 0 > MAX_TREE_LEVEL || (expected >= 0 && level !== expected)) return UNSURE;
      if (count >>> 0 > this.#innerCapacity) return UNSURE;
      this.#passed[top] = region;
      seen[3 * top] = word;
      seen[3 * top + 1] = high;
      seen[3 * top + 2] = low;
      top++;
      const keys = word + this.#innerKeys;
      const key = lastNotAbove(i32, keys, count, wanted);
      const pointer = word + this.#innerPointers + (key - keys) * POINTER_WORDS;
      region = this.#regions[i32[pointer] - 1];
      if (region === undefined) return UNSURE;
      word = i32[pointer + 1];
      if (word >>> 0 >= region.i32.length) return UNSURE;
      expected = level - 1;
      const distance = expected === 0 ? wanted - i32[key] : NOWHERE;
      this.touched = this.#leaf.touch(region.i32, word + HEADER_WORDS, distance);
    }
  }

  #lookInto(
    region: Region,
    word: number,
    wanted: number,
    count: number,
    high: number,
    low: number,
    depth: number,
  ): Row | undefined | typeof UNSURE {
    if (count >>> 0 > this.#leafCapacity || depth === 0) return UNSURE;
    const { i32 } = region;
    const keys = word + this.#leafKeys;
    const key = lastNotAbove(i32, keys, count, wanted);
    let row: Row | undefined;
    if (count > 0 && i32[key] === wanted) {
      const at = word + this.#leafRows + (key - keys) * this.#rowWords;
      row = this.#codec.decode(region, at, this.#rowWords);
    }
    if (!unchanged(i32, word, high, low)) return UNSURE;
    const seen = this.#seen;
    for (let each = depth - 1; each >= 0; each--) {
      const at = 3 * each;
      const above = this.#passed[each].i32;
      if (!unchanged(above, seen[at], seen[at + 1], seen[at + 2])) return UNSURE;
    }
    return row;
  }
}

/**
 * Where the last of `count` sorted words is that is not above `wanted`; the first one if all are.
 * Without branches on what is compared: nobody could predict them.
 */
function lastNotAbove(i32: Int32Array, at: number, count: number, wanted: number): number {
  let from = at;
  for (let left = count; left > 1; ) {
    const half = left >> 1;
    from += half & ~isLess(wanted, i32[from + half]);
    left -= half;
  }
  return from;
}
