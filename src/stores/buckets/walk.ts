/**
 * A walk over all rows, one shard at a time, in the order that hopscotch's walk has: that of the
 * hash bits read backwards, in which a split puts the new shard right behind the old one. The rows
 * of a shard are read at once and handed out as they are asked for.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { MAX_CHAIN_BLOCKS, MAX_SHARD_DEPTH, SHARD_BUCKETS } from "../../runtime/limits.ts";
import type { Directory } from "../hopscotch/directory.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import type { PlacedCursor, RowCodec } from "../store.ts";
import { type Chains, endlessChain } from "./chains.ts";
import { DEPTH, type Geometry, TAGS } from "./layout.ts";

/** Where the places end: all values of the bits that choose a shard. */
const END = 2 ** MAX_SHARD_DEPTH;

export class Walk<Row, Key> implements PlacedCursor<Row> {
  readonly #directory: Directory;
  readonly #geometry: Geometry;
  readonly #codec: RowCodec<Row, Key>;
  readonly #chains: Chains;
  readonly #row = new RowPlace();
  /** The shard to read next: its bits, read backwards. */
  place = 0;
  /** Rows of the shard that was read last, and how many of them were handed out. */
  #rows: Row[] = [];
  #given = 0;
  /** The rows of the shard that is being read: counted, and kept if somebody wants them. */
  #count = 0;
  #kept: Row[] | undefined;

  constructor(directory: Directory, geometry: Geometry, codec: RowCodec<Row, Key>, chains: Chains) {
    this.#directory = directory;
    this.#geometry = geometry;
    this.#codec = codec;
    this.#chains = chains;
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
    for (let bucket = 0; bucket < SHARD_BUCKETS; bucket++) {
      const main = tx.open(region, base + bucket * this.#geometry.stride);
      this.#readBucket(tx, main, depth);
    }
    this.place += END >>> depth;
  }

  /** Reads a main bucket and its chain, in one version; it was opened last. */
  #readBucket(tx: Transaction, main: number, depth: number): void {
    const first = this.#count;
    for (;;) {
      const itsDepth = tx.views.i32[tx.at + DEPTH];
      this.#gather(tx, main, main);
      if (tx.settle(main)) {
        // Split since its head was looked at: half of its rows are in a shard that would be passed.
        if (itsDepth !== depth) tx.conflict(main);
        break;
      }
      this.#count = first;
      if (this.#kept !== undefined) this.#kept.length = first;
      tx.open(tx.set.regionOf(main), tx.set.wordOf(main));
    }
    tx.depend(main);
    let block = this.#chains.nextOf(tx, main, main);
    for (let blocks = 1; block >= 0; blocks++) {
      if (blocks > MAX_CHAIN_BLOCKS) throw endlessChain(tx, main);
      const next = this.#chains.nextOf(tx, main, block);
      tx.open(tx.set.regionOf(block), tx.set.wordOf(block));
      this.#gather(tx, main, block);
      this.#chains.settle(tx, main, block);
      tx.doneWith(block);
      block = next;
    }
    tx.doneWith(main);
  }

  /** The rows of the bucket or block that was opened last. */
  #gather(tx: Transaction, main: number, entry: number): void {
    const { slots, slotWords, inline } = this.#geometry;
    const { views, at } = tx;
    for (let slot = 0; slot < slots; slot++) {
      if (views.i32[at + TAGS + slot] === 0) continue;
      this.#count++;
      if (this.#kept === undefined) continue;
      const slotAt = at + this.#geometry.slotAt(slot);
      if (inline) {
        this.#kept.push(this.#codec.decode(views, slotAt, slotWords));
        continue;
      }
      const { i32 } = views;
      const [regionId, word, incarnation] = [i32[slotAt] - 1, i32[slotAt + 1], i32[slotAt + 2]];
      this.#chains.settle(tx, main, entry);
      this.#kept.push(this.#rowBehind(tx, main, regionId, word, incarnation));
    }
  }

  #rowBehind(
    tx: Transaction,
    main: number,
    regionId: number,
    word: number,
    incarnation: number,
  ): Row {
    const entry = tx.open(tx.executor.memory.region(regionId), word);
    const row = placeRow(tx, entry, this.#row)
      ? this.#codec.decode(this.#row.views, this.#row.at, this.#row.words)
      : undefined;
    this.#chains.settle(tx, main, entry);
    if (row === undefined || tx.incarnationOf(entry) !== incarnation) return tx.conflict(main);
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
