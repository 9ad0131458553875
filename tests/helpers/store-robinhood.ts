/** A Robin Hood table without the database above it, and a look at the shape of its memory. */

import type { Executor } from "../../src/engine/executor.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, INCARNATION } from "../../src/memory/object.ts";
import { MAX_DISPLACEMENT, OVERFLOW_SLOTS, SEGMENT_SLOTS } from "../../src/runtime/limits.ts";
import { Geometry, homeSlotOf, segmentOf } from "../../src/stores/robinhood/layout.ts";
import { Robinhood } from "../../src/stores/robinhood/robinhood.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SIBLINGS,
  OVERFLOW,
  TAGS,
} from "../../src/stores/shards/layout.ts";
import { NEXT } from "../../src/stores/shards/overflow-chains.ts";
import type { RowCodec } from "../../src/stores/store.ts";
import { run } from "./store-engine.ts";
import type { ModelKind } from "./store-model.ts";

export interface RobinhoodTable<Row, Key> {
  readonly executor: Executor;
  readonly tx: Transaction;
  readonly store: Robinhood<Row, Key>;
  readonly root: Address;
  readonly codec: RowCodec<Row, Key>;
}

export function createRobinhood<Row, Key>(
  executor: Executor,
  codec: RowCodec<Row, Key>,
  splitOccupancy?: number,
): RobinhoodTable<Row, Key> {
  const tx = new Transaction(executor);
  const root = run(executor, tx, () => Robinhood.create(tx, codec.fixedWords));
  return { executor, tx, store: new Robinhood(executor, codec, root, splitOccupancy), root, codec };
}

export interface RobinhoodShape {
  /** The homes of the pairs in the slots of each shard; -1 is a free slot. */
  readonly shards: number[][];
  /** The homes of the chained pairs of each shard. */
  readonly chained: number[][];
  readonly pairs: number;
  readonly blocks: number;
  /** The rules of the layout that do not hold. */
  readonly broken: string[];
}

/** The shape of a table that nobody is writing to. */
export function robinhoodShape(under: RobinhoodTable<never, never>): RobinhoodShape {
  const { executor, root, codec } = under;
  const geometry = new Geometry(codec.fixedWords);
  const { memory } = executor;
  const shards: number[][] = [];
  const chained: number[][] = [];
  const broken: string[] = [];
  let blocks = 0;
  const heads: [number, number, number, number][] = [[regionIdOf(root), wordOf(root), 0, 0]];
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    const [regionId, word, bits, known] = head;
    const { i32 } = memory.region(regionId);
    const at = word + HEADER_WORDS;
    const depth = i32[at + HEAD_DEPTH];
    for (let bit = known; bit < depth; bit++) {
      const sibling = at + HEAD_SIBLINGS + 2 * bit;
      heads.push([i32[sibling] - 1, i32[sibling + 1], bits | (1 << bit), bit + 1]);
    }
    const mask = 2 ** depth - 1;
    const { i32: region } = memory.region(i32[at + HEAD_BUCKETS] - 1);
    const base = i32[at + HEAD_BUCKETS + 1];
    const tell = (what: string): void => void broken.push(`shard ${shards.length}: ${what}`);
    const homes: number[] = [];
    const inChains: number[] = [];
    const isOurs = (tag: number): void => {
      if ((tag & mask) !== (bits & mask)) tell("a pair of another shard");
    };
    for (let segment = 0; segment < geometry.buckets; segment++) {
      const data = base + segment * geometry.stride + HEADER_WORDS;
      if (region[data + DEPTH] !== depth) tell(`segment ${segment} has another depth`);
      for (let slot = 0; slot < SEGMENT_SLOTS; slot++) {
        const tag = region[data + TAGS + slot];
        if (tag !== 0) isOurs(tag);
        homes.push(tag === 0 ? -1 : homeSlotOf(tag));
      }
      let from = region;
      let pointer = data + OVERFLOW;
      for (let block = 0; from[pointer] !== 0; block++) {
        const next = memory.region(from[pointer] - 1).i32;
        const nextWord = from[pointer + 1];
        if (next[nextWord + INCARNATION] !== from[pointer + 2])
          tell("a chain leads to a freed block");
        const tags = [
          ...next.subarray(
            nextWord + HEADER_WORDS + TAGS,
            nextWord + HEADER_WORDS + TAGS + OVERFLOW_SLOTS,
          ),
        ];
        if (tags.every((tag) => tag === 0)) tell("an empty block");
        if (block > 0 && tags.includes(0)) tell("room behind a first block");
        for (const tag of tags) {
          if (tag === 0) continue;
          isOurs(tag);
          if (segmentOf(homeSlotOf(tag)) !== segment) tell("a pair in the chain of another home");
          inChains.push(homeSlotOf(tag));
        }
        blocks++;
        from = next;
        pointer = nextWord + HEADER_WORDS + NEXT;
      }
    }
    homes.forEach((home, slot) => {
      if (home < 0) return;
      if (home > slot || slot - home >= MAX_DISPLACEMENT) tell(`slot ${slot} has home ${home}`);
      for (let between = home; between < slot; between++) {
        if (homes[between] < 0) tell(`slot ${slot}, of home ${home}, is behind a free one`);
        if (homes[between] > home) tell(`slot ${slot}, of home ${home}, is behind a later home`);
      }
    });
    shards.push(homes);
    chained.push(inChains);
  }
  const inSlots = shards.flat().filter((home) => home >= 0).length;
  return { shards, chained, pairs: inSlots + chained.flat().length, blocks, broken };
}

export const ROBINHOOD_KIND: ModelKind = {
  create: (executor, codec, splitOccupancy) => createRobinhood(executor, codec, splitOccupancy),
  reopen(under, executor, codec, splitOccupancy) {
    const { root } = under as unknown as RobinhoodTable<never, never>;
    const store = new Robinhood(executor, codec, root, splitOccupancy);
    return { ...under, executor, tx: new Transaction(executor), codec, store };
  },
  shape(under) {
    const shape = robinhoodShape(under as unknown as RobinhoodTable<never, never>);
    return { broken: shape.broken, pairs: shape.pairs, blocks: shape.blocks };
  },
};
