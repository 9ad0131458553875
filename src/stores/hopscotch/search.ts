/**
 * Finding a key inside a transaction: home bucket, next bucket, overflow chain. All that a caller
 * needs to go on (insert, remove) stays in the fields of the search.
 *
 * What becomes part of the read set: the one object that proves the key present (its bucket or
 * block, or its row object), or all that were searched, which together prove it absent. So a key
 * that is being moved is never missed: the move changes the versions of both places. This does
 * what FaRM's joint versions do (§3.6), with the versions that the buckets have anyway.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { BUCKET_SLOTS, LOOKUP_ATTEMPTS, OVERFLOW_SLOTS } from "../../runtime/limits.ts";
import type { RowCodec } from "../store.ts";
import type { Directory } from "./directory.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  DEPTH,
  type Geometry,
  homeOf,
  NEXT,
  OVERFLOW,
} from "./layout.ts";
import { placeRow, RowPlace } from "./row-object.ts";

const FOUND = 1;
const ABSENT = 0;
/** The shard is no longer responsible, or the chain changed on the way: start again. */
const MOVED = -1;
/** The bucket changed while it was searched. */
const BEGIN_AGAIN = -2;

export class Search<Row, Key> {
  readonly directory: Directory;
  readonly #geometry: Geometry;
  readonly #codec: RowCodec<Row, Key>;
  /** Entries of the two buckets of the key, and of its chain in order, as far as searched. */
  home = -1;
  next = -1;
  readonly chain: number[] = [];
  /** Where the key was found: bucket or block, and where in its data the tag and the slot are. */
  holder = -1;
  tagAt = 0;
  slotAt = 0;
  /** The entry of the row object, if rows are objects. */
  rowEntry = -1;
  readonly row = new RowPlace();
  /** The fat pointer that was read last: to a chain block. */
  #pointerRegion = 0;
  #pointerWord = 0;
  #pointerIncarnation = 0;

  constructor(directory: Directory, geometry: Geometry, codec: RowCodec<Row, Key>) {
    this.directory = directory;
    this.#geometry = geometry;
    this.#codec = codec;
  }

  /** Searches for the staged key; on success `row` says where the row can be read. */
  find(tx: Transaction, hash: number): boolean {
    let known = this.directory.recall(hash);
    for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
      if (!known) this.directory.locate(tx, hash);
      known = false;
      const verdict = this.#findInShard(tx, hash);
      if (verdict !== MOVED) return verdict === FOUND;
    }
    return tx.conflict(this.home);
  }

  #findInShard(tx: Transaction, hash: number): number {
    const { region, base, depth } = this.directory;
    const homeWord = base + homeOf(hash) * this.#geometry.stride;
    this.chain.length = 0;
    this.next = -1;

    this.home = tx.open(region!, homeWord);
    const inHome = this.#scan(
      tx,
      this.home,
      hash,
      BUCKET_TAGS,
      BUCKET_ROWS,
      BUCKET_SLOTS,
      OVERFLOW,
    );
    if (this.#depth !== depth) return MOVED;
    if (inHome) return this.#found(tx, this.home);
    let blockRegion = this.#pointerRegion;
    let blockWord = this.#pointerWord;
    let blockIncarnation = this.#pointerIncarnation;

    this.next = tx.open(region!, homeWord + this.#geometry.stride);
    if (this.#scan(tx, this.next, hash, BUCKET_TAGS, BUCKET_ROWS, BUCKET_SLOTS, OVERFLOW)) {
      return this.#found(tx, this.next);
    }
    while (blockRegion !== 0) {
      const block = tx.open(tx.executor.memory.region(blockRegion - 1), blockWord);
      if (tx.incarnationOf(block) !== blockIncarnation) return MOVED;
      if (this.chain.includes(block)) return MOVED;
      this.chain.push(block);
      const found = this.#scan(tx, block, hash, BLOCK_TAGS, BLOCK_ROWS, OVERFLOW_SLOTS, NEXT);
      if (tx.incarnationOf(block) !== blockIncarnation) return MOVED;
      if (found) return this.#found(tx, block);
      blockRegion = this.#pointerRegion;
      blockWord = this.#pointerWord;
      blockIncarnation = this.#pointerIncarnation;
    }
    tx.depend(this.home);
    tx.depend(this.next);
    for (let i = 0; i < this.chain.length; i++) tx.depend(this.chain[i]);
    return ABSENT;
  }

  #found(tx: Transaction, holder: number): number {
    this.holder = holder;
    tx.depend(this.#geometry.inline ? holder : this.rowEntry);
    return FOUND;
  }

  /** The depth that the bucket scanned last carries. */
  #depth = 0;

  /**
   * Looks for the staged key in one bucket or block, in one version of it. Leaves the slot, and
   * the pointer to the (next) overflow block.
   */
  #scan(
    tx: Transaction,
    entry: number,
    hash: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
    pointerAt: number,
  ): boolean {
    const { slotWords, inline } = this.#geometry;
    for (;;) {
      const { views, at } = tx;
      const { i32 } = views;
      this.#depth = i32[at + DEPTH];
      this.#pointerRegion = i32[at + pointerAt];
      this.#pointerWord = i32[at + pointerAt + 1];
      this.#pointerIncarnation = i32[at + pointerAt + 2];
      let slot = -1;
      if (inline) {
        for (let s = 0; s < slots; s++) {
          const slotAt = rowsAt + s * slotWords;
          if (i32[at + tagsAt + s] === hash && this.#codec.matches(views, at + slotAt)) {
            slot = s;
            this.row.views = views;
            this.row.at = at + slotAt;
            this.row.words = slotWords;
            break;
          }
        }
        if (!tx.settle(entry)) continue;
      } else {
        slot = this.#scanPointers(tx, entry, hash, tagsAt, rowsAt, slots);
        if (slot === BEGIN_AGAIN) {
          tx.open(tx.set.regions[entry]!, tx.set.word[entry]);
          continue;
        }
      }
      this.tagAt = tagsAt + slot;
      this.slotAt = rowsAt + slot * slotWords;
      return slot >= 0;
    }
  }

  /** The same for slots with pointers to row objects: -1 if absent. */
  #scanPointers(
    tx: Transaction,
    entry: number,
    hash: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
  ): number {
    const { set } = tx;
    const { i32 } = tx.views;
    const at = tx.at;
    const versionHigh = set.versionHigh[entry];
    const versionLow = set.versionLow[entry];
    const same = (): boolean =>
      tx.settle(entry) &&
      set.versionLow[entry] === versionLow &&
      set.versionHigh[entry] === versionHigh;
    for (let s = 0; s < slots; s++) {
      if (i32[at + tagsAt + s] !== hash) continue;
      const pointer = at + rowsAt + s * this.#geometry.slotWords;
      const regionId = i32[pointer] - 1;
      const word = i32[pointer + 1];
      const incarnation = i32[pointer + 2];
      if (!same()) return BEGIN_AGAIN;
      const row = tx.open(tx.executor.memory.region(regionId), word);
      if (tx.incarnationOf(row) !== incarnation) {
        if (same()) tx.conflict(entry);
        return BEGIN_AGAIN;
      }
      const matched =
        placeRow(tx, row, this.row) && this.#codec.matches(this.row.views, this.row.at);
      // The bucket still points to it, so it was this row's object all along.
      if (!tx.settle(row) || tx.incarnationOf(row) !== incarnation || !same()) return BEGIN_AGAIN;
      if (matched) {
        this.rowEntry = row;
        return s;
      }
    }
    return same() ? -1 : BEGIN_AGAIN;
  }
}
