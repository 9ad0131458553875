/**
 * Finding a key inside a transaction: from its home slot on, over two or three segments, then the home segment's chain
 * (layout.ts says where a walk ends, and what proves a key present or absent). All that a caller needs to go on
 * (insert, remove) stays in the fields of the search.
 */

import { VERSION_HIGH, VERSION_LOW } from "../../engine/access-set.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Region } from "../../memory/store-memory.ts";
import {
  MAX_DISPLACEMENT,
  OVERFLOW_SLOTS,
  SEGMENT_SLOTS,
  SHARD_ATTEMPTS,
} from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import { type Directory, regionIdIn } from "../shards/directory.ts";
import { DEPTH, OVERFLOW, TAGS, touchBucket } from "../shards/layout.ts";
import { BLOCK_ROWS, NEXT } from "../shards/overflow-chains.ts";
import type { ShardSearch } from "../shards/sharded-store.ts";
import { endlessChain } from "../shards/walker.ts";
import type { RowCodec } from "../store.ts";
import { type Geometry, homeSlotOf, placeInSegment, SEGMENT_ROWS, segmentOf } from "./layout.ts";

const FOUND = 1;
const ABSENT = 0;
/** The shard is no longer responsible, or the chain changed on the way: start again. */
const MOVED = -1;

/** Verdicts of a look at a segment or block, where they are no slots. */
const ENDS_HERE = -1;
const GOES_ON = -2;
/** It changed while it was looked at. */
const BEGIN_AGAIN = -3;

export class Search<Row, Key> implements ShardSearch {
  readonly #directory: Directory;
  readonly #codec: RowCodec<Row, Key>;
  readonly #geometry: Geometry;
  readonly #inline: boolean;
  readonly #slotWords: number;
  readonly #stride: number;
  /** The home segment. */
  bucket = -1;
  holder = -1;
  tagAt = 0;
  slotAt = 0;
  rowEntry = -1;
  readonly row = new RowPlace();
  /** The slot of the shard where the pair was found; below 0 in a chain. And the shard. */
  slot = -1;
  region!: Region;
  base = 0;
  /** What `touchBucket` read: kept, so that the compiler keeps the loads. */
  touched = 0;
  /** The segments that were walked over, and the blocks of the chain, as far as searched. */
  readonly #segments: number[] = [];
  readonly #chain: number[] = [];
  /** What the segment or block looked at last says: its depth, its pointer to a block. */
  #depth = 0;
  #pointerRegion = 0;
  #pointerWord = 0;
  #pointerIncarnation = 0;

  constructor(directory: Directory, geometry: Geometry, codec: RowCodec<Row, Key>) {
    this.#directory = directory;
    this.#geometry = geometry;
    this.#codec = codec;
    this.#inline = geometry.inline;
    this.#slotWords = geometry.slotWords;
    this.#stride = geometry.stride;
  }

  get holderWords(): number {
    return this.slot < 0 ? this.#geometry.blockWords : this.#geometry.segmentWords;
  }

  /** The segments lie side by side: however many, they are one read. */
  get reads(): number {
    return 1 + this.#chain.length;
  }

  settle(tx: Transaction): void {
    const entry = this.#inline ? this.holder : this.rowEntry;
    if (!tx.settle(entry)) tx.conflict(entry);
  }

  touch(tx: Transaction, hash: number): void {
    const { places, mask } = this.#directory;
    const place = 2 * (hash & mask);
    const shard = places[place];
    if (shard === 0) return;
    const { i32 } = tx.executor.memory.region(regionIdIn(shard));
    const word = places[place + 1] + segmentOf(homeSlotOf(hash)) * this.#stride;
    this.touched ^= i32[word] ^ touchBucket(i32, word, this.#stride);
  }

  find(tx: Transaction, hash: number): boolean {
    let isKnown = this.#recall(tx, hash);
    for (let attempt = 0; attempt < SHARD_ATTEMPTS; attempt++) {
      if (!isKnown) this.#directory.locate(tx, hash);
      const verdict = this.#findInShard(tx, hash, isKnown);
      if (verdict !== MOVED) return verdict === FOUND;
      isKnown = false;
    }
    return tx.conflict(this.bucket);
  }

  /** A shard that is younger than the transaction's snapshot is none of its. */
  #recall(tx: Transaction, hash: number): boolean {
    const directory = this.#directory;
    if (!directory.recall(hash)) return false;
    const segment = segmentOf(homeSlotOf(hash));
    return tx.seesCurrent(directory.region!, directory.base + segment * this.#stride);
  }

  #findInShard(tx: Transaction, hash: number, isRecalled: boolean): number {
    const { base, depth } = this.#directory;
    const region = this.#directory.region!;
    const home = homeSlotOf(hash);
    this.region = region;
    this.base = base;
    this.#chain.length = 0;
    this.#segments.length = 0;
    const end = home + MAX_DISPLACEMENT;
    let blockRegion = 0;
    let blockWord = 0;
    let blockIncarnation = 0;
    for (let slot = home; slot < end; slot += SEGMENT_SLOTS - placeInSegment(slot)) {
      const word = base + segmentOf(slot) * this.#stride;
      const entry = tx.open(region, word);
      if (slot === home) {
        this.bucket = entry;
        this.touched = touchBucket(region.i32, word, this.#stride);
      }
      const verdict = this.#lookAtSegment(tx, entry, hash, home, slot, end);
      if (slot === home) {
        if (this.#depth !== depth) {
          // Less deep than a head that was read before it: our own copy of it is too old.
          if (this.#depth < depth && !isRecalled) tx.conflict(this.bucket);
          return MOVED;
        }
        blockRegion = this.#pointerRegion;
        blockWord = this.#pointerWord;
        blockIncarnation = this.#pointerIncarnation;
      }
      if (verdict >= 0) {
        this.slot = slot - placeInSegment(slot) + verdict;
        this.tagAt = TAGS + verdict;
        this.slotAt = SEGMENT_ROWS + verdict * this.#slotWords;
        return this.#found(tx, entry);
      }
      this.#segments.push(entry);
      if (verdict === ENDS_HERE) break;
    }
    while (blockRegion !== 0) {
      const block = tx.open(tx.executor.memory.region(blockRegion - 1), blockWord);
      if (this.#chain.includes(block)) return this.#goesRound(tx);
      this.#chain.push(block);
      const found = this.#lookAtBlock(tx, block, hash);
      if (tx.incarnationOf(block) !== blockIncarnation) {
        // The home segment still says that this is its block: then it is our own copy, and too old.
        return tx.settle(this.bucket) ? tx.conflict(this.bucket) : MOVED;
      }
      if (found >= 0) {
        this.slot = -1;
        this.tagAt = TAGS + found;
        this.slotAt = BLOCK_ROWS + found * this.#slotWords;
        return this.#found(tx, block);
      }
      blockRegion = this.#pointerRegion;
      blockWord = this.#pointerWord;
      blockIncarnation = this.#pointerIncarnation;
    }
    for (let i = 0; i < this.#segments.length; i++) tx.depend(this.#segments[i]);
    for (let i = 0; i < this.#chain.length; i++) tx.depend(this.#chain[i]);
    return ABSENT;
  }

  /** A chain that was followed leads back into itself: it changed on the way, or is damaged. */
  #goesRound(tx: Transaction): number {
    const chain = this.#chain;
    if (!tx.settle(this.bucket) || !chain.every((block) => tx.settle(block))) return MOVED;
    // Believed only if the transaction finds all of them unchanged once more.
    tx.depend(this.bucket);
    for (const block of chain) tx.depend(block);
    throw endlessChain(tx, this.bucket);
  }

  #found(tx: Transaction, holder: number): number {
    this.holder = holder;
    tx.depend(this.#inline ? holder : this.rowEntry);
    return FOUND;
  }

  /** Looks for the staged key from a slot on, in one version of its segment. */
  #lookAtSegment(
    tx: Transaction,
    entry: number,
    hash: number,
    home: number,
    from: number,
    end: number,
  ): number {
    const first = placeInSegment(from);
    const most = Math.min(SEGMENT_SLOTS, first + end - from);
    for (;;) {
      this.#note(tx, OVERFLOW);
      const verdict = this.#walk(tx, entry, hash, home, first, most);
      if (verdict !== BEGIN_AGAIN) return verdict;
      tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    }
  }

  #lookAtBlock(tx: Transaction, entry: number, hash: number): number {
    for (;;) {
      this.#note(tx, NEXT);
      const { i32 } = tx.views;
      let found = GOES_ON;
      const { at } = tx;
      for (let slot = 0; slot < OVERFLOW_SLOTS && found === GOES_ON; slot++) {
        if (i32[at + TAGS + slot] === hash) {
          found = this.#isHere(tx, entry, slot, at + BLOCK_ROWS + slot * this.#slotWords);
        }
      }
      if (found !== BEGIN_AGAIN && tx.settle(entry)) return found;
      tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    }
  }

  #note(tx: Transaction, pointerAt: number): void {
    const { i32 } = tx.views;
    const { at } = tx;
    this.#depth = i32[at + DEPTH];
    this.#pointerRegion = i32[at + pointerAt];
    this.#pointerWord = i32[at + pointerAt + 1];
    this.#pointerIncarnation = i32[at + pointerAt + 2];
  }

  #walk(
    tx: Transaction,
    entry: number,
    hash: number,
    home: number,
    first: number,
    most: number,
  ): number {
    const { i32 } = tx.views;
    const { at } = tx;
    let verdict = most === SEGMENT_SLOTS ? GOES_ON : ENDS_HERE;
    for (let slot = first; slot < most; slot++) {
      const tag = i32[at + TAGS + slot];
      if (tag === hash) {
        const found = this.#isHere(tx, entry, slot, at + SEGMENT_ROWS + slot * this.#slotWords);
        if (found !== GOES_ON) return found >= 0 && !tx.settle(entry) ? BEGIN_AGAIN : found;
      } else if (tag === 0 || homeSlotOf(tag) > home) {
        verdict = ENDS_HERE;
        break;
      }
    }
    return tx.settle(entry) ? verdict : BEGIN_AGAIN;
  }

  /** Whether the slot at word `at` holds the staged key: its number, GOES_ON or BEGIN_AGAIN. */
  #isHere(tx: Transaction, entry: number, slot: number, at: number): number {
    const { row } = this;
    if (this.#inline) {
      if (!this.#codec.matches(tx.views, at)) return GOES_ON;
      row.views = tx.views;
      row.at = at;
      row.words = this.#slotWords;
      return slot;
    }
    const { words } = tx.set;
    const { i32 } = tx.views;
    const high = words[entry + VERSION_HIGH];
    const low = words[entry + VERSION_LOW];
    const regionId = i32[at] - 1;
    const word = i32[at + 1];
    const incarnation = i32[at + 2];
    if (!isSame(tx, entry, high, low)) return BEGIN_AGAIN;
    const object = tx.open(tx.executor.memory.region(regionId), word);
    const isPlaced = placeRow(tx, object, row);
    const isMatch = isPlaced && this.#codec.matches(row.views, row.at);
    // The segment must still point to it: then it was this row's object all along.
    if (!tx.settle(object) || !isSame(tx, entry, high, low)) return BEGIN_AGAIN;
    if (!isPlaced || tx.incarnationOf(object) !== incarnation) tx.conflict(entry);
    if (isMatch) {
      this.rowEntry = object;
      return slot;
    }
    // Another key with this hash: the walk goes on in the segment, which has to be opened again.
    tx.open(tx.set.regionOf(entry), tx.set.wordOf(entry));
    return isSame(tx, entry, high, low) ? GOES_ON : BEGIN_AGAIN;
  }
}

/** Whether an object is settled in the version in which it was opened. */
function isSame(tx: Transaction, entry: number, high: number, low: number): boolean {
  const { words } = tx.set;
  if (!tx.settle(entry)) return false;
  return words[entry + VERSION_LOW] === low && words[entry + VERSION_HIGH] === high;
}
