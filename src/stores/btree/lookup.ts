/**
 * Lookups outside a transaction: lock-free, writing nothing. A lookup walks down with plain reads
 * and then looks at every node again, the leaf first and the root last. The root is never freed;
 * it has not changed, so the node below it was its child all the while, and what the second look
 * at that one says is true; and so on down to the leaf. So there was a moment when all of them were
 * as they were read, and neither fences nor incarnations need be looked at. Whatever else comes in
 * between (a node that is being installed, a row in pieces) is left to a small transaction.
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../memory/address.ts";
import { HEADER_WORDS, unchanged, VERSION_HIGH, VERSION_LOW } from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Region, StoreMemory } from "../../memory/store-memory.ts";
import { MAX_TREE_LEVEL } from "../../runtime/limits.ts";
import { ROW_DATA, wordsOfSingleRow } from "../row-object.ts";
import type { OrderedCodec } from "../store.ts";
import { FixedNodes } from "./fixed-nodes.ts";
import type { Geometry } from "./geometry.ts";
import { LEVEL, type NodeFormat, UNSURE } from "./layout.ts";
import { WordLookup } from "./word-lookup.ts";

/** Words of a cache line. */
const LINE = 16;

/** Reads the staged key inside a transaction. */
export type Read<Row> = (tx: Transaction, words: number) => Row | undefined;

export class Lookup<Row, Key> {
  readonly #executor: Executor;
  readonly #memory: StoreMemory;
  readonly #codec: OrderedCodec<Row, Key>;
  readonly #inner: NodeFormat;
  readonly #leaf: NodeFormat;
  readonly #inline: boolean;
  readonly #rootRegionId: number;
  readonly #rootWord: number;
  readonly #read: Read<Row>;
  /** For tables with keys of one word and rows in the leaf. */
  readonly #words: WordLookup<Row, Key> | undefined;
  readonly #reader: Transaction;
  /** The nodes of the way down, with their versions: region, then word, high and low version. */
  readonly #regions: Region[] = [];
  readonly #seen = new Int32Array(3 * (MAX_TREE_LEVEL + 3));
  #depth = 0;
  /** What `touch` read: kept, so that the compiler keeps the loads. */
  touched = 0;

  constructor(
    executor: Executor,
    codec: OrderedCodec<Row, Key>,
    geometry: Geometry,
    root: Address,
    read: Read<Row>,
  ) {
    this.#executor = executor;
    this.#memory = executor.memory;
    this.#codec = codec;
    this.#inner = geometry.inner;
    this.#leaf = geometry.leaf;
    this.#inline = geometry.inline;
    this.#rootRegionId = regionIdOf(root);
    this.#rootWord = wordOf(root);
    this.#read = read;
    const { inner, leaf } = geometry;
    if (geometry.inline && leaf instanceof FixedNodes && inner instanceof FixedNodes) {
      const { memory } = executor;
      if (leaf.keyWords === 1) {
        this.#words = new WordLookup(memory, codec, inner, leaf, regionIdOf(root), wordOf(root));
      }
    }
    this.#reader = new Transaction(executor);
  }

  get(key: Key): Row | undefined {
    const words = this.#codec.stageOrdered(key);
    const row =
      this.#words === undefined ? this.#look(words) : this.#words.look(this.#codec.ordered[0]);
    return row === UNSURE
      ? runReadOnly(this.#executor, this.#reader, this.#read, words)
      : (row as Row | undefined);
  }

  /** Asks memory for the leaf of a key that will be looked for soon. */
  touch(key: Key): void {
    if (!this.#descend(this.#codec.stageOrdered(key))) return;
    const { i32 } = this.#regions[this.#depth];
    const word = this.#seen[3 * this.#depth];
    for (let line = LINE; line < 4 * LINE; line += LINE) this.touched ^= i32[word + line];
  }

  #look(words: number): unknown {
    if (!this.#descend(words)) return UNSURE;
    const depth = this.#depth;
    const region = this.#regions[depth];
    const { i32 } = region;
    const key = this.#codec.ordered;
    const at = this.#seen[3 * depth] + HEADER_WORDS;
    const leaf = this.#leaf;
    const index = leaf.lowerBound(i32, at, key, words);
    let row: unknown;
    if (leaf.holds(i32, at, index, key, words)) {
      const payload = at + leaf.payloadAt(index);
      row = this.#inline
        ? this.#codec.decode(region, payload, leaf.payloadWords)
        : this.#lookBehind(i32, payload);
    }
    return this.#isUnchanged(depth) ? row : UNSURE;
  }

  /** Walks down to a leaf without any certainty; false if it leads nowhere. */
  #descend(words: number): boolean {
    const nodes = this.#inner;
    const key = this.#codec.ordered;
    const seen = this.#seen;
    let region = this.#memory.region(this.#rootRegionId);
    let word = this.#rootWord;
    let expected = -1;
    for (let depth = 0; depth <= MAX_TREE_LEVEL; depth++) {
      const { i32 } = region;
      this.#regions[depth] = region;
      seen[3 * depth] = word;
      seen[3 * depth + 1] = loadAcquire(i32, word + VERSION_HIGH);
      seen[3 * depth + 2] = loadAcquire(i32, word + VERSION_LOW);
      const at = word + HEADER_WORDS;
      const level = i32[at + LEVEL];
      if (expected >= 0 && level !== expected) return false;
      if (level === 0) {
        this.#depth = depth;
        return expected === 0;
      }
      const child = nodes.upperBound(i32, at, key, words) - 1;
      const pointer = at + nodes.payloadAt(Math.max(child, 0));
      const next = this.#memory.regions[i32[pointer] - 1];
      word = i32[pointer + 1];
      if (next === undefined || word >>> 0 >= next.i32.length) return false;
      region = next;
      expected = level - 1;
    }
    return false;
  }

  /** Follows the pointer of a leaf to a row object. */
  #lookBehind(leaf: Int32Array, pointer: number): unknown {
    const region = this.#memory.regions[leaf[pointer] - 1];
    const word = leaf[pointer + 1];
    if (region === undefined || word >>> 0 >= region.i32.length) return UNSURE;
    const { i32 } = region;
    const high = loadAcquire(i32, word + VERSION_HIGH);
    const low = loadAcquire(i32, word + VERSION_LOW);
    const words = wordsOfSingleRow(i32, word);
    if (words < 0) return UNSURE;
    const row = this.#codec.decode(region, word + HEADER_WORDS + ROW_DATA, words);
    return unchanged(i32, word, high, low) ? row : UNSURE;
  }

  /** The second look at all nodes of the way, from the leaf up. */
  #isUnchanged(depth: number): boolean {
    const seen = this.#seen;
    for (let each = depth; each >= 0; each--) {
      const { i32 } = this.#regions[each];
      if (!unchanged(i32, seen[3 * each], seen[3 * each + 1], seen[3 * each + 2])) return false;
    }
    return true;
  }
}
