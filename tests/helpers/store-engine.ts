/** A hopscotch table without the database above it, and a look at the shape of its memory. */

import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, INCARNATION } from "../../src/memory/object.ts";
import { BUCKET_SLOTS, OVERFLOW_SLOTS, SHARD_BUCKETS } from "../../src/runtime/limits.ts";
import { Hopscotch } from "../../src/stores/hopscotch/hopscotch.ts";
import { Geometry } from "../../src/stores/hopscotch/layout.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  homeOf,
  OVERFLOW,
  TAGS,
} from "../../src/stores/shards/layout.ts";
import { NEXT } from "../../src/stores/shards/overflow-chains.ts";
import type { RowCodec } from "../../src/stores/store.ts";
import { createCatalogue } from "../../src/tables/catalogue.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import type { Table } from "../../src/tables/table.ts";
import { MIB, type TemporaryStores } from "./store.ts";

/** An executor in the store of a folder; the first one makes the store. */
export async function openExecutor(
  stores: TemporaryStores,
  path: string,
  memoryBytes = 64 * MIB,
): Promise<Executor> {
  const executor = await attach(
    settingsOf({ path, memoryBytes, durability: "none" }),
    (attached) => {
      if (attached.fresh) {
        createCatalogue(attached.executor);
        attached.executor.memory.control.publish();
      }
      return attached.executor;
    },
  );
  stores.later(() => executor.close());
  return executor;
}

export function run<T>(executor: Executor, tx: Transaction, body: () => T): T {
  return runSync(executor, tx, 5_000, body, undefined);
}

/** What the hash of each key becomes: a way to make keys collide on purpose. */
export type Rehash = (hash: number) => number;

export function rehashed<Row, Key>(table: Table<Row, Key>, rehash: Rehash): RowCodec<Row, Key> {
  const codec = codecOf(table);
  return {
    ...codec,
    stageKey: (key) => rehash(codec.stageKey(key)) | 0 || 1,
    stageKeyOf: (row) => rehash(codec.stageKeyOf(row)) | 0 || 1,
    stageEncoded: () => rehash(codec.stageEncoded()) | 0 || 1,
    stageUpdate: (key, changes) => rehash(codec.stageUpdate(key, changes)) | 0 || 1,
  };
}

export interface EngineTable<Row, Key> {
  readonly executor: Executor;
  readonly tx: Transaction;
  readonly store: Hopscotch<Row, Key>;
  readonly root: Address;
  readonly codec: RowCodec<Row, Key>;
}

export function createTable<Row, Key>(
  executor: Executor,
  codec: RowCodec<Row, Key>,
  splitOccupancy?: number,
): EngineTable<Row, Key> {
  const tx = new Transaction(executor);
  const root = run(executor, tx, () => Hopscotch.create(tx, codec.fixedWords));
  const store = new Hopscotch(executor, codec, root, splitOccupancy);
  return { executor, tx, store, root, codec };
}

export interface BucketShape {
  readonly depth: number;
  /** The hashes in the slots; 0 is an empty slot. */
  readonly tags: readonly number[];
  /** The same for each overflow block, the first of the chain first. */
  readonly chain: readonly (readonly number[])[];
}

export interface ShardShape {
  readonly depth: number;
  readonly buckets: readonly BucketShape[];
}

/** All shards of a table that nobody is writing to. */
export function shapeOf({ executor, root, codec }: EngineTable<never, never>): ShardShape[] {
  const geometry = new Geometry(codec.fixedWords);
  const { memory } = executor;
  const shards: ShardShape[] = [];
  const heads: [number, number][] = [[regionIdOf(root), wordOf(root)]];
  const seen = new Set<string>();
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    if (seen.has(head.join())) continue;
    seen.add(head.join());
    const { i32 } = memory.region(head[0]);
    const at = head[1] + HEADER_WORDS;
    const depth = i32[at + HEAD_DEPTH];
    for (let bit = 0; bit < depth; bit++) {
      const sibling = at + HEAD_SIBLINGS + 2 * bit;
      if (i32[sibling] !== 0) heads.push([i32[sibling] - 1, i32[sibling + 1]]);
    }
    const region = memory.region(i32[at + HEAD_BUCKETS] - 1).i32;
    const base = i32[at + HEAD_BUCKETS + 1];
    const buckets: BucketShape[] = [];
    for (let bucket = 0; bucket <= SHARD_BUCKETS; bucket++) {
      const data = base + bucket * geometry.stride + HEADER_WORDS;
      buckets.push({
        depth: region[data + DEPTH],
        tags: [...region.subarray(data + TAGS, data + TAGS + BUCKET_SLOTS)],
        chain: chainFrom(executor, region, data + OVERFLOW),
      });
    }
    shards.push({ depth, buckets });
  }
  return shards;
}

function chainFrom(executor: Executor, from: Int32Array, pointerAt: number): number[][] {
  const chain: number[][] = [];
  let i32 = from;
  let at = pointerAt;
  while (i32[at] !== 0) {
    const block = executor.memory.region(i32[at] - 1).i32;
    const word = i32[at + 1];
    if (block[word + INCARNATION] !== i32[at + 2])
      throw new Error("a chain leads to a freed block");
    const data = word + HEADER_WORDS;
    chain.push([...block.subarray(data + TAGS, data + TAGS + OVERFLOW_SLOTS)]);
    i32 = block;
    at = data + NEXT;
  }
  return chain;
}

/** The rules of the layout; an empty list if all of them hold. */
export function brokenRules(shards: readonly ShardShape[]): string[] {
  const broken: string[] = [];
  for (const [number, { depth, buckets }] of shards.entries()) {
    const where = (bucket: number): string => `shard ${number} bucket ${bucket}`;
    buckets.forEach((bucket, index) => {
      if (bucket.depth !== depth)
        broken.push(`${where(index)}: depth ${bucket.depth}, not ${depth}`);
      for (const tag of bucket.tags) {
        const home = homeOf(tag);
        if (tag !== 0 && home !== index && home !== index - 1) {
          broken.push(`${where(index)}: holds a pair whose home is ${home}`);
        }
      }
      bucket.chain.forEach((tags, block) => {
        if (block > 0 && tags.includes(0)) broken.push(`${where(index)}: room in block ${block}`);
        if (tags.every((tag) => tag === 0)) broken.push(`${where(index)}: block ${block} is empty`);
        for (const tag of tags) {
          if (tag !== 0 && homeOf(tag) !== index)
            broken.push(`${where(index)}: strange pair in chain`);
        }
      });
    });
    if (buckets[SHARD_BUCKETS].chain.length > 0) broken.push("the last bucket has a chain");
  }
  return broken;
}

export function pairsIn(shards: readonly ShardShape[]): number {
  let pairs = 0;
  for (const { buckets } of shards) {
    for (const { tags, chain } of buckets) {
      for (const tag of [...tags, ...chain.flat()]) if (tag !== 0) pairs++;
    }
  }
  return pairs;
}

export function blocksIn(shards: readonly ShardShape[]): number {
  return shards.flatMap(({ buckets }) => buckets.flatMap(({ chain }) => chain)).length;
}
