/**
 * Freeing a table of shards that nobody uses any more, one shard at a time. The last shard that was
 * split off is freed first, and its parent is made one bit less deep in the same transaction: what is
 * left is a smaller tree of shards with the same root, so whoever goes on, after a crash too, begins at
 * the root again. Row objects are freed before their shard, a bucket at a time: they may be large.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { type Address, wordOf } from "../../memory/address.ts";
import { ARRAY_HEADER_WORDS } from "../../memory/object.ts";
import type { Region } from "../../memory/store-memory.ts";
import type { Views } from "../../memory/views.ts";
import { freeRow } from "../row-object.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  HEAD_WORDS,
  type ShardGeometry,
} from "./layout.ts";
import { ShardAccess, type ShardVisitor, ShardWalker } from "./walker.ts";

/** A shard head, and the one that it was split off from. */
interface Leaf {
  readonly head: number;
  /** -1 for the root itself. */
  readonly parent: number;
  readonly parentDepth: number;
}

/** Rows are freed until a transaction has freed so many. */
const ROWS_AT_ONCE = 64;

/** Frees a part; true when the root is gone. */
export function dismantleShards(tx: Transaction, geometry: ShardGeometry, root: Address): boolean {
  const { head, parent, parentDepth } = lastLeaf(tx, root);
  const { i32, at } = headAt(tx, head);
  const region = tx.executor.memory.region(i32[at + HEAD_BUCKETS] - 1);
  const base = i32[at + HEAD_BUCKETS + 1];
  if (!tx.settle(head)) tx.conflict(head);
  const visitor = new Emptying(tx, region, geometry);
  const walker = new ShardWalker(geometry, visitor);
  for (let bucket = 0; bucket < geometry.buckets; bucket++) {
    walker.walk(bucket, base + bucket * geometry.stride);
    if (visitor.rows >= ROWS_AT_ONCE) return false;
  }
  const cell = tx.open(region, base - ARRAY_HEADER_WORDS);
  if (!tx.settle(cell)) tx.conflict(cell);
  tx.freeArray(cell, geometry.buckets, geometry.bucket.words * 4);
  tx.open(tx.set.regionOf(head), tx.set.wordOf(head));
  tx.free(head);
  if (parent < 0) return true;
  const words = tx.writable(parent, HEAD_WORDS);
  const own = tx.set.arena.i32;
  own[words + HEAD_DEPTH] = parentDepth - 1;
  own[words + HEAD_SIBLINGS + 2 * (parentDepth - 1)] = 0;
  own[words + HEAD_SIBLINGS + 2 * (parentDepth - 1) + 1] = 0;
  tx.set.markDirty(parent, 0, HEAD_WORDS);
  return false;
}

/** The shard that was split off last from the one split off last, and so on. */
function lastLeaf(tx: Transaction, root: Address): Leaf {
  const { memory } = tx.executor;
  let region = memory.regionOf(root);
  let word = wordOf(root);
  let parent = -1;
  let parentDepth = 0;
  for (;;) {
    const head = tx.open(region, word);
    tx.depend(head);
    const { i32, at } = headAt(tx, head);
    const depth = i32[at + HEAD_DEPTH];
    const sibling = at + HEAD_SIBLINGS + 2 * (depth - 1);
    // The bits below its own depth at birth belong to its parents; there its pointers are empty.
    const isLeaf = depth === 0 || i32[sibling] === 0;
    const nextRegion = isLeaf ? -1 : i32[sibling] - 1;
    const nextWord = isLeaf ? 0 : i32[sibling + 1];
    if (!tx.settle(head)) tx.conflict(head);
    if (isLeaf) return { head, parent, parentDepth };
    parent = head;
    parentDepth = depth;
    region = memory.region(nextRegion);
    word = nextWord;
  }
}

function headAt(tx: Transaction, head: number): { i32: Int32Array; at: number } {
  tx.open(tx.set.regionOf(head), tx.set.wordOf(head));
  return { i32: tx.views.i32, at: tx.at };
}

/** Frees the blocks of a bucket's chain, and its row objects. */
class Emptying implements ShardVisitor {
  rows = 0;
  readonly #geometry: ShardGeometry;
  readonly #access: ShardAccess;
  readonly #rows: number[] = [];

  constructor(tx: Transaction, region: Region, geometry: ShardGeometry) {
    this.#geometry = geometry;
    this.#access = new ShardAccess({ settle: (each, _bucket, entry) => settled(each, entry) });
    this.#access.tx = tx;
    this.#access.region = region;
  }

  get views(): Views {
    return this.#access.views;
  }

  get at(): number {
    return this.#access.at;
  }

  openBucket(_bucket: number, word: number): boolean {
    this.#access.openBucket(word);
    this.#access.settle(this.#access.bucket);
    this.#access.tx.depend(this.#access.bucket);
    return true;
  }

  openBlock(block: number, regionId: number, word: number, incarnation: number): boolean {
    this.#access.openBlock(block, regionId, word, incarnation);
    return true;
  }

  pair(_tag: number, _slot: number, { i32 }: Views, at: number): void {
    if (!this.#geometry.inline) this.#rows.push(i32[at] - 1, i32[at + 1]);
  }

  close(): boolean {
    const { tx, bucket, holder } = this.#access;
    this.#access.settle(holder);
    const rows = this.#rows;
    for (let i = 0; i < rows.length; i += 2) {
      freeRow(tx, tx.open(tx.executor.memory.region(rows[i]), rows[i + 1]));
    }
    this.rows += rows.length / 2;
    rows.length = 0;
    if (holder !== bucket) tx.free(holder);
    return true;
  }

  /** The bucket is left without pairs: another transaction may go on from here. */
  leave(): void {
    // Rows that lie in their bucket go with it, in this very transaction.
    if (this.#geometry.inline) return;
    const { tx, bucket } = this.#access;
    const { words } = this.#geometry.bucket;
    const at = tx.writable(bucket, words);
    const depth = tx.set.arena.i32[at + DEPTH];
    tx.set.arena.i32.fill(0, at, at + words);
    tx.set.arena.i32[at + DEPTH] = depth;
    tx.set.markDirty(bucket, 0, words);
  }
}

function settled(tx: Transaction, entry: number): void {
  if (!tx.settle(entry)) tx.conflict(entry);
}
