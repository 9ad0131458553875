/**
 * The one walker over the buckets of a shard: a bucket, then the blocks of its chain, and of each
 * the pairs. Who walks says how objects are opened and what becomes of a pair: a cursor and a split
 * read through a transaction (ShardAccess below), a check reads copies (tools/structures/shards.ts).
 */

import type { Transaction } from "../../engine/transaction.ts";
import { damagedAt } from "../../memory/damage.ts";
import type { Region } from "../../memory/store-memory.ts";
import type { Views } from "../../memory/views.ts";
import type { SituError } from "../../runtime/errors.ts";
import { MAX_CHAIN_BLOCKS } from "../../runtime/limits.ts";
import { type HolderShape, type ShardGeometry, TAGS } from "./layout.ts";

export interface ShardVisitor {
  /** Where the bucket or block that was opened last can be read. */
  readonly views: Views;
  readonly at: number;
  /** Opens a bucket, whose header is at `word`; false if it is to be passed over. */
  openBucket(bucket: number, word: number): boolean;
  /** Opens the next block of its chain; false if the chain cannot be followed. */
  openBlock(block: number, regionId: number, word: number, incarnation: number): boolean;
  /** A pair, whose slot is at word `at`. It may open other objects. */
  pair(tag: number, slot: number, views: Views, at: number): void;
  /** So many pairs were visited; false if the bucket has changed meanwhile, to visit it again. */
  close(used: number): boolean;
  /** The bucket and its chain, of so many blocks, are done. */
  leave(blocks: number): void;
}

export class ShardWalker {
  readonly #geometry: ShardGeometry;
  readonly #visitor: ShardVisitor;
  /** The pointer to the next block, from what was opened last. */
  #regionId = 0;
  #word = 0;
  #incarnation = 0;

  constructor(geometry: ShardGeometry, visitor: ShardVisitor) {
    this.#geometry = geometry;
    this.#visitor = visitor;
  }

  /** Visits a bucket and its chain. */
  walk(bucket: number, word: number): void {
    const visitor = this.#visitor;
    do {
      if (!visitor.openBucket(bucket, word)) return;
    } while (!this.#visit(this.#geometry.bucket));
    let block = 0;
    while (
      this.#regionId >= 0 &&
      visitor.openBlock(block, this.#regionId, this.#word, this.#incarnation)
    ) {
      this.#visit(this.#geometry.block);
      block++;
    }
    visitor.leave(block);
  }

  #visit({ nextAt, slots, rowsAt }: HolderShape): boolean {
    const visitor = this.#visitor;
    const { views, at } = visitor;
    this.#regionId = views.i32[at + nextAt] - 1;
    this.#word = views.i32[at + nextAt + 1];
    this.#incarnation = views.i32[at + nextAt + 2];
    const { slotWords } = this.#geometry;
    let used = 0;
    for (let slot = 0; slot < slots; slot++) {
      const tag = views.i32[at + TAGS + slot];
      if (tag === 0) continue;
      used++;
      visitor.pair(tag, slot, views, at + rowsAt + slot * slotWords);
    }
    return visitor.close(used);
  }
}

/** A chain that is longer than any can be, or goes round; its bucket is part of the read set. */
export function endlessChain({ set }: Transaction, bucket: number): SituError {
  return damagedAt(set.regionOf(bucket), set.wordOf(bucket), "a chain of blocks has no end");
}

/** Which versions prove what was read of an object that hangs on a bucket. */
export interface ShardVersions {
  /**
   * What was read of the object is of one version, and part of what the transaction depends on; else
   * the attempt ends. The object may be the bucket itself.
   */
  settle(tx: Transaction, bucket: number, entry: number): void;
}

/** Opens buckets and blocks for a transaction. */
export class ShardAccess {
  readonly #versions: ShardVersions;
  tx!: Transaction;
  region!: Region;
  /** The entries of the bucket, and of the bucket or block, that was opened last. */
  bucket = -1;
  holder = -1;
  views!: Views;
  at = 0;

  constructor(versions: ShardVersions) {
    this.#versions = versions;
  }

  openBucket(word: number): void {
    const { tx } = this;
    this.bucket = tx.open(this.region, word);
    this.holder = this.bucket;
    this.views = tx.views;
    this.at = tx.at;
  }

  openBlock(block: number, regionId: number, word: number, incarnation: number): void {
    const { tx } = this;
    if (block >= MAX_CHAIN_BLOCKS) throw endlessChain(tx, this.bucket);
    this.holder = tx.open(tx.executor.memory.region(regionId), word);
    this.views = tx.views;
    this.at = tx.at;
    this.settle(this.holder);
    if (tx.incarnationOf(this.holder) !== incarnation) tx.conflict(this.bucket);
  }

  /** What was read of an object that hangs on the bucket is good; else the attempt ends. */
  settle(entry: number): void {
    this.#versions.settle(this.tx, this.bucket, entry);
  }
}
