/** A bucket store without the database above it, and a look at the shape of its memory. */

import type { Executor } from "../../src/engine/executor.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, INCARNATION } from "../../src/memory/object.ts";
import { SHARD_BUCKETS } from "../../src/runtime/limits.ts";
import { Buckets } from "../../src/stores/buckets/buckets.ts";
import { CHAIN_BLOCKS, Geometry, NEXT } from "../../src/stores/buckets/layout.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  homeOf,
  TAGS,
} from "../../src/stores/shards/layout.ts";
import type { RowCodec } from "../../src/stores/store.ts";
import { run } from "./store-engine.ts";
import type { ModelKind } from "./store-model.ts";

export interface BucketsTable<Row, Key> {
  readonly executor: Executor;
  readonly tx: Transaction;
  readonly store: Buckets<Row, Key>;
  readonly root: Address;
  readonly codec: RowCodec<Row, Key>;
}

export function createBuckets<Row, Key>(
  executor: Executor,
  codec: RowCodec<Row, Key>,
  splitOccupancy?: number,
): BucketsTable<Row, Key> {
  const tx = new Transaction(executor);
  const root = run(executor, tx, () => Buckets.create(tx, codec.fixedWords));
  return { executor, tx, store: new Buckets(executor, codec, root, splitOccupancy), root, codec };
}

export interface BucketsShape {
  readonly shards: number;
  readonly pairs: number;
  readonly blocks: number;
  readonly longestChain: number;
  /** The rules of the layout that do not hold. */
  readonly broken: string[];
}

/** The shape of a table that nobody is writing to. */
export function bucketsShape(under: BucketsTable<never, never>): BucketsShape {
  const { executor, root, codec } = under;
  const geometry = new Geometry(codec.fixedWords);
  const { memory } = executor;
  const found = { shards: 0, pairs: 0, blocks: 0, longestChain: 0, broken: [] as string[] };
  const heads: [number, number, number, number][] = [[regionIdOf(root), wordOf(root), 0, 0]];
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    const { i32 } = memory.region(head[0]);
    const at = head[1] + HEADER_WORDS;
    const depth = i32[at + HEAD_DEPTH];
    for (let bit = head[3]; bit < depth; bit++) {
      const sibling = at + HEAD_SIBLINGS + 2 * bit;
      heads.push([i32[sibling] - 1, i32[sibling + 1], head[2] | (1 << bit), bit + 1]);
    }
    const region = memory.region(i32[at + HEAD_BUCKETS] - 1).i32;
    for (let bucket = 0; bucket < SHARD_BUCKETS; bucket++) {
      const where = `shard ${found.shards} bucket ${bucket}`;
      const complain = (what: string): void => {
        found.broken.push(`${where}: ${what}`);
      };
      let words = region;
      let data = i32[at + HEAD_BUCKETS + 1] + bucket * geometry.stride + HEADER_WORDS;
      if (words[data + DEPTH] !== depth) complain(`depth ${words[data + DEPTH]}, not ${depth}`);
      for (let block = 0; ; block++) {
        const tags = [...words.subarray(data + TAGS, data + TAGS + geometry.slots)];
        const used = tags.filter((tag) => tag !== 0);
        found.pairs += used.length;
        const isRight = (tag: number): boolean =>
          homeOf(tag) === bucket && (tag & (2 ** depth - 1)) === (head[2] & (2 ** depth - 1));
        if (!used.every(isRight)) complain(`a strange pair at ${block}`);
        if (block > 0 && used.length === 0) complain(`block ${block} is empty`);
        const isLast = words[data + NEXT] === 0;
        if (block !== 1 && !isLast && used.length < geometry.slots) complain(`room at ${block}`);
        if (isLast) {
          found.longestChain = Math.max(found.longestChain, block);
          break;
        }
        found.blocks++;
        const [regionId, word] = [words[data + NEXT] - 1, words[data + NEXT + 1]];
        const incarnation = words[data + NEXT + 2];
        const before = block === 0 ? undefined : words[data + CHAIN_BLOCKS];
        words = memory.region(regionId).i32;
        if (words[word + INCARNATION] !== incarnation) complain("leads to a freed block");
        data = word + HEADER_WORDS;
        if (before !== undefined && words[data + CHAIN_BLOCKS] !== before - 1) {
          complain(`says ${words[data + CHAIN_BLOCKS]} blocks after ${before}`);
        }
      }
    }
    found.shards++;
  }
  return found;
}

export const BUCKETS_KIND: ModelKind = {
  create: (executor, codec, splitOccupancy) => createBuckets(executor, codec, splitOccupancy),
  reopen(under, executor, codec, splitOccupancy) {
    const { root } = under as unknown as BucketsTable<never, never>;
    const store = new Buckets(executor, codec, root, splitOccupancy);
    return { ...under, executor, tx: new Transaction(executor), codec, store };
  },
  shape(under) {
    const { broken, pairs, blocks } = bucketsShape(under as unknown as BucketsTable<never, never>);
    return { broken, pairs, blocks };
  },
};
