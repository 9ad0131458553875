/**
 * A walk over all rows, shard by shard and home by home. A row is met at its home, wherever it
 * has been displaced to, so that a transaction that changes the table while it walks meets no row
 * twice. Shards are visited in the order of their hash bits read backwards: a split then puts the
 * new shard right behind the old one, and the walk's place stays a place.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Region } from "../../memory/region.ts";
import {
  BUCKET_SLOTS,
  MAX_SHARD_DEPTH,
  OVERFLOW_SLOTS,
  SHARD_BUCKETS,
} from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import type { Cursor, RowCodec } from "../store.ts";
import type { Directory } from "./directory.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  type Geometry,
  homeOf,
} from "./layout.ts";
import type { Placement } from "./placement.ts";

/** Where the places end: all values of the bits that choose a shard. */
const END = 2 ** MAX_SHARD_DEPTH;

export class Walk<Row, Key> implements Cursor<Row> {
  readonly #directory: Directory;
  readonly #geometry: Geometry;
  readonly #codec: RowCodec<Row, Key>;
  readonly #placement: Placement;
  readonly #row = new RowPlace();
  /** The shards to visit now: those whose bits, read backwards, lie in [start, start + size). */
  #start = 0;
  #size = 0;
  /** The home to go on with, and how many of its rows were given out already. */
  #home = 0;
  #given = 0;
  /** Rows of the running step: counted, and kept only if somebody wants them. */
  #count = 0;
  #rows: Row[] | undefined;

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
    this.#rows = rows;
    while (rows.length === 0 && this.#start < END && most > 0) this.#step(tx, most);
    return rows.length > 0;
  }

  skip(tx: Transaction): number {
    this.#rows = undefined;
    this.#count = 0;
    while (this.#count === 0 && this.#start < END) this.#step(tx, Number.POSITIVE_INFINITY);
    return this.#count;
  }

  /** The rest of the shards at this place, or less if `most` rows are there. */
  #step(tx: Transaction, most: number): void {
    this.#count = 0;
    if (this.#rows !== undefined) this.#rows.length = 0;
    const first = END >>> this.#locate(tx, this.#start);
    const size = this.#size || first;
    // One shard, unless this transaction has split it since the walk got here.
    const whole = first === size;
    for (let home = this.#home; home < SHARD_BUCKETS; home++) {
      const before = home === this.#home ? this.#given : 0;
      const count = this.#count;
      if (whole) this.#gatherHome(tx, home, before);
      else this.#gatherFromAll(tx, home, size, before);
      if (this.#count < most) continue;
      const more = this.#count - most;
      if (this.#rows !== undefined) this.#rows.length = most;
      this.#given = before + this.#count - count - more;
      this.#home = home;
      this.#size = size;
      return;
    }
    this.#start += size;
    this.#size = 0;
    this.#home = 0;
    this.#given = 0;
  }

  #gatherFromAll(tx: Transaction, home: number, size: number, before: number): void {
    let passOver = before;
    for (let place = this.#start; place < this.#start + size; ) {
      const depth = this.#locate(tx, place);
      passOver -= this.#gatherHome(tx, home, passOver);
      place += END >>> depth;
    }
  }

  #locate(tx: Transaction, place: number): number {
    this.#directory.locate(tx, backwards(place));
    return this.#directory.depth;
  }

  /** The rows of one home but for the first ones, which were given out; says how many those are. */
  #gatherHome(tx: Transaction, home: number, passOver: number): number {
    const { stride } = this.#geometry;
    const first = this.#count;
    const region = this.#directory.region!;
    const word = this.#directory.base + home * stride;
    const bucket = this.#gather(tx, region, word, home, BUCKET_TAGS, BUCKET_ROWS, BUCKET_SLOTS);
    this.#gather(tx, region, word + stride, home, BUCKET_TAGS, BUCKET_ROWS, BUCKET_SLOTS);
    for (const block of this.#placement.chainOf(tx, bucket)) {
      const { set } = tx;
      const at = set.wordOf(block);
      this.#gather(tx, set.regionOf(block), at, home, BLOCK_TAGS, BLOCK_ROWS, OVERFLOW_SLOTS);
    }
    const passed = Math.min(passOver, this.#count - first);
    if (passed > 0) this.#rows?.splice(first, passed);
    this.#count -= passed;
    return passed;
  }

  /** The pairs of one bucket or block that are at home in `home`. */
  #gather(
    tx: Transaction,
    region: Region,
    word: number,
    home: number,
    tagsAt: number,
    rowsAt: number,
    slots: number,
  ): number {
    const { slotWords, inline } = this.#geometry;
    const first = this.#count;
    for (;;) {
      const entry = tx.open(region, word);
      const { views, at } = tx;
      for (let slot = 0; slot < slots; slot++) {
        const tag = views.i32[at + tagsAt + slot];
        if (tag === 0 || homeOf(tag) !== home) continue;
        this.#count++;
        if (this.#rows === undefined) continue;
        const rowAt = at + rowsAt + slot * slotWords;
        if (inline) this.#rows.push(this.#codec.decode(views, rowAt, slotWords));
        else this.#rows.push(this.#rowBehind(tx, entry, region, word, rowAt - at));
      }
      if (tx.settle(entry)) {
        tx.depend(entry);
        return entry;
      }
      this.#count = first;
      if (this.#rows !== undefined) this.#rows.length = first;
    }
  }

  #rowBehind(tx: Transaction, holder: number, region: Region, word: number, slotAt: number): Row {
    tx.open(region, word);
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
