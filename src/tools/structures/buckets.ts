/**
 * Checks a bucket store (layout.ts tells its shape) in any state, sound or not:
 *
 *   shards    from the first head, for every bit of its depth a head that was split off there; so
 *             every hash has one shard. All buckets say the depth of their head.
 *   pairs     in their main bucket or its chain; the tag is the hash of the row's key, and the
 *             shard is responsible for it. So a lookup finds what is there.
 *   chains    only a full bucket has one; only its first block has room, no block is empty, and
 *             each says how many there are from it on
 *   versions  none below a main bucket is later than that of the bucket, which stands for all
 *   rows      every row makes sense, and no key is there twice. Row objects are what the pointers
 *             in their slots were made for, and of the size that these tell.
 */

import { classFor } from "../../engine/cells.ts";
import { isLater } from "../../engine/tid.ts";
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
import { MAX_SHARD_DEPTH, SHARD_BUCKETS } from "../../runtime/limits.ts";
import {
  CHAIN_BLOCKS,
  DEPTH,
  Geometry,
  NEXT,
  POINTER_ROW_WORDS,
  TAGS,
} from "../../stores/buckets/layout.ts";
import {
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SEED,
  HEAD_SIBLINGS,
  HEAD_WORDS,
  homeOf,
} from "../../stores/hopscotch/layout.ts";
import {
  type Check,
  type CheckedRows,
  NO_STAGE,
  type StructureFigures,
  soundRow,
  stagedKey,
} from "./check.ts";
import type { Place } from "./problems.ts";
import type { ObjectReader } from "./reader.ts";
import { RowReader } from "./rows.ts";

export interface BucketsFigures extends StructureFigures {
  readonly kind: "buckets";
  readonly shards: number;
  /** The most bits of a hash that choose a shard. */
  readonly depth: number;
  readonly buckets: number;
  readonly slots: number;
  /** The part of the main buckets' slots that hold a row. */
  readonly occupancy: number;
  /** Buckets with an overflow chain, their blocks, the rows in these, and the longest chain. */
  readonly chains: number;
  readonly chainBlocks: number;
  readonly chainRows: number;
  readonly longestChain: number;
}

/** Where the check is: a shard is named by its number in the walk. */
class BucketPlace implements Place {
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

/** A shard to be looked at: its head, and the hash bits that lead to it. */
interface Head {
  readonly regionId: number;
  readonly word: number;
  readonly bits: number;
  readonly known: number;
}

export class BucketsCheck<Row> {
  readonly #reader: ObjectReader;
  readonly #rows: CheckedRows<Row>;
  readonly #geometry: Geometry;
  /** Of the hash, from the first head. */
  #seed = 0;
  readonly #rowReader: RowReader;
  readonly #place = new BucketPlace();
  readonly #heads: Head[];
  readonly #head = new Views(new ArrayBuffer(HEAD_WORDS * 4));
  /** The bucket or block that is looked at. */
  readonly #object: Views;
  /** By tag, the keys of the rows of one main bucket: two with one key are in one bucket. */
  readonly #keys = new Map<number, Set<string>>();
  /** The version of the main bucket that is looked at. */
  #mainHigh = 0;
  #mainLow = 0;
  #shards = 0;
  #depth = 0;
  #inBuckets = 0;
  #inChains = 0;
  #chains = 0;
  #blocks = 0;
  #longest = 0;

  constructor(reader: ObjectReader, rows: CheckedRows<Row>, root: Address) {
    this.#reader = reader;
    this.#rows = rows;
    this.#geometry = new Geometry(rows.codec.fixedWords);
    this.#rowReader = new RowReader(reader, rows.codec.fixedWords);
    this.#heads = [{ regionId: regionIdOf(root), word: wordOf(root), bits: 0, known: 0 }];
    this.#object = new Views(new ArrayBuffer(this.#geometry.bucketWords * 4));
  }

  *run(): Check<BucketsFigures> {
    for (let head = this.#heads.pop(); head !== undefined; head = this.#heads.pop()) {
      const depth = this.#readHead(head);
      if (depth >= 0) yield* this.#lookAtBuckets(head.bits, depth);
      this.#shards++;
      this.#place.shard = this.#shards;
      yield;
    }
    const buckets = this.#shards * SHARD_BUCKETS;
    const { slots } = this.#geometry;
    return {
      kind: "buckets",
      rows: this.#inBuckets + this.#inChains,
      rowObjects: this.#rowReader.objects,
      cutRows: this.#rowReader.cut,
      memoryBytes: this.#reader.memoryBytes,
      shards: this.#shards,
      depth: this.#depth,
      buckets,
      slots,
      occupancy: this.#inBuckets / (buckets * slots),
      chains: this.#chains,
      chainBlocks: this.#blocks,
      chainRows: this.#inChains,
      longestChain: this.#longest,
    };
  }

  /** Reads a shard's head, notes the shards split off from it, and returns its depth, or -1. */
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
        const sibling = bits | (1 << bit);
        const from = { regionId: i32[at] - 1, word: i32[at + 1] };
        this.#heads.push({ ...from, bits: sibling, known: bit + 1 });
      } else {
        this.#tell(`its head has no shard split off at bit ${bit}, at depth ${depth}`);
      }
    }
    return depth;
  }

  /** Looks at all buckets of the shard whose head was read, one after the other. */
  *#lookAtBuckets(bits: number, depth: number): Generator<void, void> {
    const { stride, bucketWords } = this.#geometry;
    const reader = this.#reader;
    const regionId = this.#head.i32[HEAD_BUCKETS] - 1;
    const base = this.#head.i32[HEAD_BUCKETS + 1];
    const ownBytes = ARRAY_HEADER_BYTES - HEADER_BYTES;
    const sizeClass = classFor(ownBytes + SHARD_BUCKETS * stride * 4);
    const expected = { sizeClass, incarnation: undefined, isArray: true };
    const cell = base - ARRAY_HEADER_WORDS;
    const into = this.#object;
    const place = this.#place.at(-1);
    if (!reader.readCell(place, regionId, cell, expected, ownBytes / 4, into)) return;
    const elementWords = into.i32[ELEMENT_WORDS - HEADER_WORDS];
    const elements = into.i32[ELEMENT_COUNT - HEADER_WORDS];
    if (elementWords !== bucketWords || elements !== SHARD_BUCKETS) {
      this.#tell(
        `its array says ${elements} buckets of ${elementWords} words, and should have ` +
          `${SHARD_BUCKETS} of ${bucketWords}`,
      );
    }
    const { incarnation } = reader;
    for (let bucket = 0; bucket < SHARD_BUCKETS; bucket++) {
      this.#place.at(bucket);
      const word = base + bucket * stride;
      if (!reader.readElement(this.#place, regionId, word, incarnation, bucketWords, into))
        continue;
      const found = into.i32[DEPTH];
      if (found !== depth) this.#tell(`it says depth ${found}, its shard's head ${depth}`);
      this.#keys.clear();
      this.#mainHigh = reader.versionHigh;
      this.#mainLow = reader.versionLow;
      const used = this.#lookAtSlots(bucket, -1, bits, depth);
      this.#inBuckets += used;
      this.#lookAtChain(bucket, used, bits, depth);
      if (!this.#geometry.inline) yield;
    }
  }

  /** Looks at the overflow blocks of the bucket that was read last. */
  #lookAtChain(bucket: number, used: number, bits: number, depth: number): void {
    const { bucketWords, slots } = this.#geometry;
    const reader = this.#reader;
    const { i32 } = this.#object;
    const sizeClass = classFor(bucketWords * 4);
    let block = 0;
    let promised = 0;
    while (i32[NEXT] !== 0) {
      if (block === 0 && used < slots) this.#tell("it has room, and a chain");
      const place = this.#place.at(bucket, block);
      const expected = { sizeClass, incarnation: i32[NEXT + 2] };
      // A chain that goes round in a circle ends here: what was reached before is not read again.
      if (
        !reader.readCell(place, i32[NEXT] - 1, i32[NEXT + 1], expected, bucketWords, this.#object)
      )
        break;
      this.#lookAtVersion("it");
      const blocks = i32[CHAIN_BLOCKS];
      if (block === 0) promised = blocks;
      else if (blocks !== promised - block) {
        this.#tell(`it says ${blocks} blocks from it on, the first one ${promised}`);
      }
      const here = this.#lookAtSlots(bucket, block, bits, depth);
      this.#place.at(bucket, block);
      if (here === 0) this.#tell("it is empty, and should have been freed");
      else if (block > 0 && here < slots) this.#tell("it has room behind a first block");
      this.#inChains += here;
      block++;
    }
    this.#place.at(bucket);
    if (block !== promised) this.#tell(`its chain has ${block} blocks, and says ${promised}`);
    if (block === 0) return;
    this.#chains++;
    this.#blocks += block;
    this.#longest = Math.max(this.#longest, block);
  }

  /** Looks at the pairs of a bucket or block, and returns how many there are. */
  #lookAtSlots(bucket: number, block: number, bits: number, depth: number): number {
    const { i32 } = this.#object;
    const { slots } = this.#geometry;
    const mask = 2 ** depth - 1;
    let used = 0;
    for (let slot = 0; slot < slots; slot++) {
      const tag = i32[TAGS + slot];
      if (tag === 0) continue;
      used++;
      this.#place.at(bucket, block, slot);
      const home = homeOf(tag);
      if (home !== bucket) this.#tell(`it holds a row whose bucket is ${home}`);
      if ((tag & mask) !== (bits & mask)) {
        this.#tell(`it holds a row of another shard: its hash is ${tag >>> 0}, at depth ${depth}`);
      }
      this.#lookAtRow(tag, this.#geometry.slotAt(slot));
    }
    return used;
  }

  #lookAtRow(tag: number, at: number): void {
    const { inline, slotWords } = this.#geometry;
    const { problems } = this.#reader;
    let views = this.#object;
    let rowAt = at;
    let words = slotWords;
    if (!inline) {
      const { i32 } = views;
      const rowReader = this.#rowReader;
      if (!rowReader.read(this.#place, i32[at] - 1, i32[at + 1], i32[at + 2])) return;
      ({ views, at: rowAt, words } = rowReader);
      this.#lookAtVersion("its row");
      const told = i32[at + POINTER_ROW_WORDS];
      if (told !== words) this.#tell(`it says that its row has ${told} words, it has ${words}`);
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
    const keys = this.#keys.get(tag);
    if (keys === undefined) this.#keys.set(tag, new Set([key]));
    else if (keys.has(key)) this.#tell(`it holds a second row with the key ${key}`);
    else keys.add(key);
  }

  /** The object that was read last hangs on the main bucket, whose version stands for its own. */
  #lookAtVersion(what: string): void {
    const { versionHigh, versionLow } = this.#reader;
    if (!isLater(versionHigh, versionLow, this.#mainHigh, this.#mainLow)) return;
    this.#tell(`${what} has a later version than the main bucket that stands for it`);
  }

  #tell(what: string): void {
    this.#reader.problems.add(this.#place, what);
  }
}
