/**
 * Checks a table of shards (stores/shards/layout.ts tells its shape) in any state, sound or not:
 *
 *   shards    from the first head, for every bit of its depth a head that was split off there; so
 *             every hash has one shard. All buckets say the depth of their head.
 *   pairs     in a bucket, or a chain, that the layout allows; the tag is the hash of the row's key,
 *             and the shard is responsible for it. So a lookup finds what is there.
 *   chains    only the first block has room, and no block is empty
 *   rows      every row makes sense, and no key is there twice. Row objects are what the pointers
 *             in their slots were made for.
 *
 * Two rows with the same key have the same hash, so they are in one shard: it is enough to compare
 * the keys within each. What else a layout promises, its rules check (hopscotch.ts, buckets.ts, robinhood.ts).
 */

import { classFor } from "../../engine/cells.ts";
import { type Address, regionIdOf, wordOf } from "../../memory/address.ts";
import {
  ARRAY_HEADER_BYTES,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_BYTES,
  HEADER_WORDS,
} from "../../memory/object.ts";
import { Views } from "../../memory/views.ts";
import { MAX_SHARD_DEPTH } from "../../runtime/limits.ts";
import {
  DEPTH,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SEED,
  HEAD_SIBLINGS,
  HEAD_WORDS,
  homeOf,
  type ShardGeometry,
} from "../../stores/shards/layout.ts";
import { type ShardVisitor, ShardWalker } from "../../stores/shards/walker.ts";
import {
  type Check,
  type CheckedRows,
  NO_STAGE,
  type Place,
  type StructureFigures,
  soundRow,
  stagedKey,
} from "./check.ts";
import type { ObjectReader } from "./reader.ts";
import { RowReader } from "./rows.ts";

export interface ShardFigures extends StructureFigures {
  readonly kind: "hopscotch" | "buckets" | "robinhood";
  readonly shards: number;
  /** The most bits of a hash that choose a shard. */
  readonly depth: number;
  readonly buckets: number;
  /** Slots of a bucket. */
  readonly slots: number;
  /** The part of the buckets' slots that hold a row. */
  readonly occupancy: number;
  /** Buckets with an overflow chain, their blocks, the rows in these, and the longest chain. */
  readonly chains: number;
  readonly chainBlocks: number;
  readonly chainRows: number;
  readonly longestChain: number;
}

/** Where the check is: a shard is named by its number in the walk. */
class ShardPlace implements Place {
  shard = 0;
  bucket = -1;
  block = -1;
  slot = -1;

  at(bucket: number, block = -1, slot = -1): this {
    this.bucket = bucket;
    this.block = block;
    this.slot = slot;
    return this;
  }

  toString(): string {
    const parts = [`shard ${this.shard}`];
    if (this.bucket >= 0) parts.push(`bucket ${this.bucket}`);
    if (this.block >= 0) parts.push(`overflow block ${this.block}`);
    if (this.slot >= 0) parts.push(`slot ${this.slot}`);
    return parts.join(", ");
  }
}

/** What a layout promises beyond that. Each is called when the check is there, and tells what is wrong. */
export interface ShardRules {
  readonly kind: "hopscotch" | "buckets" | "robinhood";
  readonly geometry: ShardGeometry;
  /** Whether a row whose home is bucket `home` may lie in a bucket, or in a block of its chain. */
  mayLieIn(home: number, bucket: number, isInChain: boolean): boolean;
  /** A bucket (block -1), or a block, has been read; later, its so many pairs have been visited. */
  opened?(i32: Int32Array, block: number, tell: Tell, bucket: number): void;
  holder?(i32: Int32Array, block: number, used: number, tell: Tell): void;
  /** A bucket's chain ends, after so many blocks. */
  chain?(bucket: number, blocks: number, tell: Tell): void;
  /** The slot at word `at` led to a row object of so many words. */
  rowObject?(i32: Int32Array, at: number, words: number, tell: Tell): void;
}

export type Tell = (what: string) => void;

/** A shard to be looked at: its head, and the hash bits that lead to it. */
interface Head {
  readonly regionId: number;
  readonly word: number;
  readonly bits: number;
  readonly known: number;
}

export class ShardCheck<Row> implements ShardVisitor {
  readonly #reader: ObjectReader;
  readonly #rows: CheckedRows<Row>;
  readonly #rules: ShardRules;
  readonly #geometry: ShardGeometry;
  readonly #walker: ShardWalker;
  /** Of the hash, from the first head. */
  #seed = 0;
  readonly #rowReader: RowReader;
  readonly #place = new ShardPlace();
  readonly #heads: Head[];
  readonly #head = new Views(new ArrayBuffer(HEAD_WORDS * 4));
  /** The shard that is looked at: the bits of its hashes, where its buckets are, their array. */
  #bits = 0;
  #shardDepth = 0;
  #regionId = 0;
  #arrayIncarnation = 0;
  /** The bucket or block that is looked at. */
  readonly views: Views;
  readonly at = 0;
  /** The keys of the shard's rows, for messages. */
  readonly #keys = new Set<string>();
  #shards = 0;
  #depth = 0;
  #inBuckets = 0;
  #inChains = 0;
  #chains = 0;
  #blocks = 0;
  #longest = 0;
  readonly #tell: Tell = (what) => this.#reader.problems.add(this.#place, what);

  constructor(reader: ObjectReader, rows: CheckedRows<Row>, root: Address, rules: ShardRules) {
    this.#reader = reader;
    this.#rows = rows;
    this.#rules = rules;
    this.#geometry = rules.geometry;
    this.#walker = new ShardWalker(rules.geometry, this);
    this.#rowReader = new RowReader(reader, rows.codec.fixedWords);
    this.#heads = [{ regionId: regionIdOf(root), word: wordOf(root), bits: 0, known: 0 }];
    const { bucket, block } = rules.geometry;
    this.views = new Views(new ArrayBuffer(Math.max(bucket.words, block.words) * 4));
  }

  *run(): Check<ShardFigures> {
    const { buckets: perShard, bucket, stride, inline } = this.#geometry;
    for (let head = this.#heads.pop(); head !== undefined; head = this.#heads.pop()) {
      const base = this.#readHead(head);
      this.#keys.clear();
      for (let index = 0; base >= 0 && index < perShard; index++) {
        this.#walker.walk(index, base + index * stride);
        if (!inline) yield;
      }
      this.#shards++;
      this.#place.shard = this.#shards;
      yield;
    }
    const buckets = this.#shards * perShard;
    return {
      kind: this.#rules.kind,
      rows: this.#inBuckets + this.#inChains,
      rowObjects: this.#rowReader.objects,
      cutRows: this.#rowReader.cut,
      memoryBytes: this.#reader.memoryBytes,
      shards: this.#shards,
      depth: this.#depth,
      buckets,
      slots: bucket.slots,
      occupancy: this.#inBuckets / (buckets * bucket.slots),
      chains: this.#chains,
      chainBlocks: this.#blocks,
      chainRows: this.#inChains,
      longestChain: this.#longest,
    };
  }

  /** Reads a shard's head, notes the shards split off from it; returns where its buckets begin, or -1. */
  #readHead({ regionId, word, bits, known }: Head): number {
    const place = this.#place.at(-1);
    const expected = { sizeClass: classFor(HEAD_WORDS * 4), incarnation: undefined };
    const head = this.#head;
    if (!this.#reader.readCell(place, regionId, word, expected, HEAD_WORDS, head)) return -1;
    const { i32 } = head;
    const depth = i32[HEAD_DEPTH];
    if (known === 0) this.#seed = i32[HEAD_SEED];
    if (depth < known || depth > MAX_SHARD_DEPTH) {
      const range = `${known} to ${MAX_SHARD_DEPTH}`;
      this.#tell(`its head says depth ${depth}, which should be ${range}`);
      return -1;
    }
    this.#depth = Math.max(this.#depth, depth);
    // The last one first: shards are numbered as they are reached, the nearest ones first.
    for (let bit = MAX_SHARD_DEPTH - 1; bit >= 0; bit--) {
      const at = HEAD_SIBLINGS + 2 * bit;
      const isThere = i32[at] !== 0 || i32[at + 1] !== 0;
      if (bit < known || bit >= depth) {
        if (isThere) this.#tell(`its head has a shard split off at bit ${bit}, beside its depth`);
      } else if (isThere) {
        const from = { regionId: i32[at] - 1, word: i32[at + 1] };
        this.#heads.push({ ...from, bits: bits | (1 << bit), known: bit + 1 });
      } else {
        this.#tell(`its head has no shard split off at bit ${bit}, at depth ${depth}`);
      }
    }
    this.#bits = bits;
    this.#shardDepth = depth;
    return this.#readArray(i32[HEAD_BUCKETS] - 1, i32[HEAD_BUCKETS + 1]);
  }

  /** Looks at the array of a shard's buckets, and returns where they begin, or -1. */
  #readArray(regionId: number, base: number): number {
    const { buckets, bucket, stride } = this.#geometry;
    const ownBytes = ARRAY_HEADER_BYTES - HEADER_BYTES;
    const sizeClass = classFor(ownBytes + buckets * stride * 4);
    const expected = { sizeClass, incarnation: undefined, isArray: true };
    const cell = base - ARRAY_HEADER_WORDS;
    const reader = this.#reader;
    if (!reader.readCell(this.#place, regionId, cell, expected, ownBytes / 4, this.views))
      return -1;
    const elementWords = this.views.i32[ELEMENT_WORDS - HEADER_WORDS];
    const elements = this.views.i32[ELEMENT_COUNT - HEADER_WORDS];
    if (elementWords !== bucket.words || elements !== buckets) {
      this.#tell(
        `its array says ${elements} buckets of ${elementWords} words, and should have ${buckets} ` +
          `of ${bucket.words}`,
      );
    }
    this.#regionId = regionId;
    this.#arrayIncarnation = reader.incarnation;
    return base;
  }

  openBucket(bucket: number, word: number): boolean {
    const place = this.#place.at(bucket);
    const { words } = this.#geometry.bucket;
    const incarnation = this.#arrayIncarnation;
    const reader = this.#reader;
    if (!reader.readElement(place, this.#regionId, word, incarnation, words, this.views)) {
      return false;
    }
    const depth = this.views.i32[DEPTH];
    if (depth !== this.#shardDepth) {
      this.#tell(`it says depth ${depth}, its shard's head ${this.#shardDepth}`);
    }
    this.#rules.opened?.(this.views.i32, -1, this.#tell, bucket);
    return true;
  }

  openBlock(block: number, regionId: number, word: number, incarnation: number): boolean {
    const place = this.#place.at(this.#place.bucket, block);
    const { words } = this.#geometry.block;
    const expected = { sizeClass: classFor(words * 4), incarnation };
    // A chain that goes round in a circle ends here: what was reached before is not read again.
    if (!this.#reader.readCell(place, regionId, word, expected, words, this.views)) return false;
    this.#rules.opened?.(this.views.i32, block, this.#tell, this.#place.bucket);
    return true;
  }

  pair(tag: number, slot: number, views: Views, at: number): void {
    const place = this.#place;
    const { bucket, block } = place;
    place.slot = slot;
    const home = homeOf(tag);
    if (!this.#rules.mayLieIn(home, bucket, block >= 0)) {
      this.#tell(`it holds a row whose home is bucket ${home}`);
    }
    const mask = 2 ** this.#shardDepth - 1;
    if ((tag & mask) !== (this.#bits & mask)) {
      const hash = `its hash is ${tag >>> 0}, at depth ${this.#shardDepth}`;
      this.#tell(`it holds a row of another shard: ${hash}`);
    }
    this.#lookAtRow(tag, views, at);
  }

  close(used: number): boolean {
    const { bucket, block } = this.#place;
    this.#place.at(bucket, block);
    if (block < 0) {
      this.#inBuckets += used;
    } else {
      this.#inChains += used;
      if (used === 0) this.#tell("it is empty, and should have been freed");
      else if (block > 0 && used < this.#geometry.block.slots) {
        this.#tell("it has room behind a first block");
      }
    }
    this.#rules.holder?.(this.views.i32, block, used, this.#tell);
    return true;
  }

  leave(blocks: number): void {
    const { bucket } = this.#place;
    this.#place.at(bucket);
    this.#rules.chain?.(bucket, blocks, this.#tell);
    if (blocks === 0) return;
    this.#chains++;
    this.#blocks += blocks;
    this.#longest = Math.max(this.#longest, blocks);
  }

  #lookAtRow(tag: number, holder: Views, at: number): void {
    const { inline, slotWords } = this.#geometry;
    const { problems } = this.#reader;
    let views = holder;
    let rowAt = at;
    let words = slotWords;
    if (!inline) {
      const { i32 } = holder;
      const rowReader = this.#rowReader;
      if (!rowReader.read(this.#place, i32[at] - 1, i32[at + 1], i32[at + 2])) return;
      ({ views, at: rowAt, words } = rowReader);
      this.#rules.rowObject?.(i32, at, words, this.#tell);
    }
    const row = soundRow(problems, this.#place, this.#rows, views, rowAt, words);
    if (row === undefined) return;
    const hash = stagedKey(problems, this.#place, () =>
      this.#rows.codec.stageKeyOf(row, this.#seed),
    );
    if (hash === NO_STAGE) return;
    const key = this.#rows.showKey(row);
    if (hash === tag) this.#rows.each(row);
    else this.#tell(`its tag is ${tag}, the hash of its row's key ${key} is ${hash}`);
    if (this.#keys.has(key)) this.#tell(`it holds a second row with the key ${key}`);
    this.#keys.add(key);
  }
}
