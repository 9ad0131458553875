/**
 * A walk over all rows, one shard at a time. Shards are visited in the order of their hash bits
 * read backwards: a split then puts the new shard right behind the old one, and the walk's place
 * stays a place. The rows of a shard are read at once and handed out as they are asked for, so that
 * a transaction that changes the table while it walks meets no row twice, and misses none.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Region } from "../../memory/store-memory.ts";
import {
  BUCKET_SLOTS,
  MAX_SHARD_DEPTH,
  OVERFLOW_SLOTS,
  SHARD_BUCKETS,
} from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import type { PlacedCursor, RowCodec } from "../store.ts";
import type { Directory } from "./directory.ts";
import type { Placement } from "./displacement.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  DEPTH,
  type Geometry,
  OVERFLOW,
} from "./layout.ts";

/** Where the places end: all values of the bits that choose a shard. */
export const END = 2 ** MAX_SHARD_DEPTH;

export class Walk<Row, Key> implements PlacedCursor<Row> {
  readonly #directory: Directory;
  readonly #geometry: Geometry;
  readonly #codec: RowCodec<Row, Key>;
  readonly #placement: Placement;
  readonly #row = new RowPlace();
  /** The shard to read next: its bits, read backwards. */
  place = 0;
  /** Rows of the shard that was read last, and how many of them were handed out. */
  #rows: Row[] = [];
  #given = 0;
  /** The rows of the shard that is being read: counted, and kept if somebody wants them. */
  #count = 0;
  #kept: Row[] | undefined;

  constructor(
    directory: Directory,
    geometry: Geometry,
    codec: RowCodec<Row, Key>,
    placement: Placement,
  ) {
    this.#directory = directory;
    this.#geometry = geometry;
    this.#codec = codec;
    this.#placement = placement;
  }

  next(tx: Transaction, rows: Row[], most: number): boolean {
    rows.length = 0;
    while (this.#given === this.#rows.length && this.place < END) {
      const kept: Row[] = [];
      this.#readShard(tx, kept);
      this.#rows = kept;
      this.#given = 0;
    }
    const end = Math.min(this.#rows.length, this.#given + most);
    while (this.#given < end) rows.push(this.#rows[this.#given++]);
    return rows.length > 0;
  }

  /** Replaces `rows` by all of the next shard's, be there none. */
  step(tx: Transaction, rows: Row[]): void {
    rows.length = 0;
    this.#readShard(tx, rows);
  }

  skip(tx: Transaction): number {
    let count = this.#rows.length - this.#given;
    this.#given = this.#rows.length;
    while (count === 0 && this.place < END) {
      this.#readShard(tx, undefined);
      count = this.#count;
    }
    return count;
  }

  #readShard(tx: Transaction, kept: Row[] | undefined): void {
    this.#count = 0;
    this.#kept = kept;
    const directory = this.#directory;
    directory.locate(tx, backwards(this.place));
    const { base, depth } = directory;
    const region = directory.region!;
    // One bucket more than there are homes: the last one is a neighbour only.
    for (let bucket = 0; bucket <= SHARD_BUCKETS; bucket++) {
      this.#readBucket(tx, region, base + bucket * this.#geometry.stride, depth);
    }
    this.place += END >>> depth;
  }

  #readBucket(tx: Transaction, region: Region, word: number, depth: number): void {
    const first = this.#count;
    for (;;) {
      const entry = tx.open(region, word);
      const itsDepth = tx.views.i32[tx.at + DEPTH];
      const isChained = tx.views.i32[tx.at + OVERFLOW] !== 0;
      this.#gather(tx, entry, BUCKET_TAGS, BUCKET_ROWS, BUCKET_SLOTS);
      if (!tx.settle(entry)) {
        this.#takeBack(first);
        continue;
      }
      // Split since its head was looked at: half of its rows are in a shard that would be passed.
      if (itsDepth !== depth) tx.conflict(entry);
      tx.depend(entry);
      if (isChained) this.#readChain(tx, entry);
      tx.doneWith(entry);
      return;
    }
  }

  #readChain(tx: Transaction, bucket: number): void {
    const blocks = this.#placement.chainOf(tx, bucket);
    // The last one first: its copy, if it has one, is the last in the arena.
    for (let i = blocks.length - 1; i >= 0; i--) {
      const block = blocks[i];
      tx.open(tx.set.regionOf(block), tx.set.wordOf(block));
      this.#gather(tx, block, BLOCK_TAGS, BLOCK_ROWS, OVERFLOW_SLOTS);
      if (!tx.settle(block)) tx.conflict(block);
      tx.doneWith(block);
    }
  }

  #takeBack(count: number): void {
    this.#count = count;
    if (this.#kept !== undefined) this.#kept.length = count;
  }

  /** The rows of the bucket or block that was opened last. */
  #gather(tx: Transaction, entry: number, tagsAt: number, rowsAt: number, slots: number): void {
    const { slotWords, inline } = this.#geometry;
    const { views, at } = tx;
    for (let slot = 0; slot < slots; slot++) {
      if (views.i32[at + tagsAt + slot] === 0) continue;
      this.#count++;
      if (this.#kept === undefined) continue;
      const slotAt = rowsAt + slot * slotWords;
      if (inline) this.#kept.push(this.#codec.decode(views, at + slotAt, slotWords));
      else this.#kept.push(this.#rowBehind(tx, entry, slotAt));
    }
  }

  #rowBehind(tx: Transaction, holder: number, slotAt: number): Row {
    tx.open(tx.set.regionOf(holder), tx.set.wordOf(holder));
    const pointer = tx.at + slotAt;
    const { i32 } = tx.views;
    const regionId = i32[pointer] - 1;
    const rowWord = i32[pointer + 1];
    const incarnation = i32[pointer + 2];
    if (!tx.settle(holder)) tx.conflict(holder);
    const entry = tx.open(tx.executor.memory.region(regionId), rowWord);
    const placed = placeRow(tx, entry, this.#row);
    const row = placed
      ? this.#codec.decode(this.#row.views, this.#row.at, this.#row.words)
      : undefined;
    if (!tx.settle(entry) || row === undefined || tx.incarnationOf(entry) !== incarnation) {
      return tx.conflict(entry);
    }
    tx.depend(entry);
    tx.doneWith(entry);
    return row;
  }
}

/** The bits that choose a shard, the lowest one first. */
function backwards(place: number): number {
  let bits = 0;
  for (let bit = 0; bit < MAX_SHARD_DEPTH; bit++) {
    if ((place >>> bit) & 1) bits |= 1 << (MAX_SHARD_DEPTH - 1 - bit);
  }
  return bits;
}
