/**
 * A walk over all rows, one shard at a time. Shards are visited in the order of their hash bits
 * read backwards: a split then puts the new shard right behind the old one, and the walk's place
 * stays a place. The rows of a shard are read at once and handed out as they are asked for, so that
 * a transaction that changes the table while it walks meets no row twice, and misses none.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import { MAX_SHARD_DEPTH } from "../../runtime/limits.ts";
import { placeRow, RowPlace } from "../row-object.ts";
import type { PlacedCursor, RowCodec } from "../store.ts";
import type { Directory } from "./directory.ts";
import { DEPTH, type ShardGeometry } from "./layout.ts";
import { ShardAccess, type ShardVersions, type ShardVisitor, ShardWalker } from "./walker.ts";

/** Where the places end: all values of the bits that choose a shard. */
export const END = 2 ** MAX_SHARD_DEPTH;

export class ShardCursor<Row, Key> implements PlacedCursor<Row> {
  readonly #directory: Directory;
  readonly #geometry: ShardGeometry;
  readonly #visitor: RowVisitor<Row, Key>;
  readonly #walker: ShardWalker;
  /** The shard to read next: its bits, read backwards. */
  place = 0;
  /** Rows of the shard that was read last, and how many of them were handed out. */
  #rows: Row[] = [];
  #given = 0;

  constructor(
    directory: Directory,
    geometry: ShardGeometry,
    codec: RowCodec<Row, Key>,
    versions: ShardVersions,
  ) {
    this.#directory = directory;
    this.#geometry = geometry;
    this.#visitor = new RowVisitor(geometry, codec, versions);
    this.#walker = new ShardWalker(geometry, this.#visitor);
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
      count = this.#visitor.count;
    }
    return count;
  }

  #readShard(tx: Transaction, kept: Row[] | undefined): void {
    const directory = this.#directory;
    directory.locate(tx, backwards(this.place));
    const { base, depth } = directory;
    const { buckets, stride } = this.#geometry;
    this.#visitor.begin(tx, directory, kept);
    for (let bucket = 0; bucket < buckets; bucket++) {
      this.#walker.walk(bucket, base + bucket * stride);
    }
    // It may have begun in the middle of a shard.
    const places = END >>> depth;
    this.place += places - (this.place % places);
  }
}

/** Counts the rows of a shard, and keeps them if somebody wants them. */
class RowVisitor<Row, Key> implements ShardVisitor {
  readonly #codec: RowCodec<Row, Key>;
  readonly #inline: boolean;
  readonly #slotWords: number;
  readonly #access: ShardAccess;
  readonly #row = new RowPlace();
  count = 0;
  #kept: Row[] | undefined;
  #depth = 0;
  /** Of the bucket: the depth that it says, and the rows before it. */
  #itsDepth = 0;
  #first = 0;

  constructor(geometry: ShardGeometry, codec: RowCodec<Row, Key>, versions: ShardVersions) {
    this.#codec = codec;
    this.#inline = geometry.inline;
    this.#slotWords = geometry.slotWords;
    this.#access = new ShardAccess(versions);
  }

  get views(): Views {
    return this.#access.views;
  }

  get at(): number {
    return this.#access.at;
  }

  /** Begins with the shard that was located last. */
  begin(tx: Transaction, { region, depth }: Directory, kept: Row[] | undefined): void {
    this.#access.tx = tx;
    this.#access.region = region!;
    this.#depth = depth;
    this.#kept = kept;
    this.count = 0;
  }

  openBucket(_bucket: number, word: number): boolean {
    const access = this.#access;
    access.openBucket(word);
    this.#itsDepth = access.views.i32[access.at + DEPTH];
    this.#first = this.count;
    return true;
  }

  openBlock(block: number, regionId: number, word: number, incarnation: number): boolean {
    this.#access.openBlock(block, regionId, word, incarnation);
    return true;
  }

  pair(_tag: number, _slot: number, views: Views, at: number): void {
    this.count++;
    if (this.#kept === undefined) return;
    const row = this.#inline
      ? this.#codec.decode(views, at, this.#slotWords)
      : this.#rowBehind(views.i32[at] - 1, views.i32[at + 1], views.i32[at + 2]);
    this.#kept.push(row);
  }

  close(): boolean {
    const access = this.#access;
    const { tx, bucket, holder } = access;
    if (holder === bucket) {
      if (!tx.settle(bucket)) {
        this.count = this.#first;
        if (this.#kept !== undefined) this.#kept.length = this.#first;
        return false;
      }
      // Split since its head was looked at: half of its rows are in a shard that would be passed.
      if (this.#itsDepth !== this.#depth) tx.conflict(bucket);
      tx.depend(bucket);
      return true;
    }
    access.settle(holder);
    tx.doneWith(holder);
    return true;
  }

  leave(): void {
    this.#access.tx.doneWith(this.#access.bucket);
  }

  #rowBehind(regionId: number, word: number, incarnation: number): Row {
    const access = this.#access;
    const { tx } = access;
    // The pointer, before it is followed.
    access.settle(access.holder);
    const entry = tx.open(tx.executor.memory.region(regionId), word);
    const row = placeRow(tx, entry, this.#row)
      ? this.#codec.decode(this.#row.views, this.#row.at, this.#row.words)
      : undefined;
    access.settle(entry);
    if (row === undefined || tx.incarnationOf(entry) !== incarnation) return tx.conflict(entry);
    tx.doneWith(entry);
    return row;
  }
}

/** The place of a row in a walk over all rows, by the hash of its key. */
export function placeOfHash(hash: number): number {
  return backwards(hash);
}

/** The bits that choose a shard, the lowest one first. */
function backwards(place: number): number {
  let bits = 0;
  for (let bit = 0; bit < MAX_SHARD_DEPTH; bit++) {
    if ((place >>> bit) & 1) bits |= 1 << (MAX_SHARD_DEPTH - 1 - bit);
  }
  return bits;
}
