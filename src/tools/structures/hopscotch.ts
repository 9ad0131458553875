/**
 * Checks a hash table (layout.ts tells its shape) in any state, sound or not:
 *
 *   shards    from the first head, for every bit of its depth a head that was split off there; so
 *             every hash has one shard. All buckets say the depth of their head.
 *   pairs     in their home bucket, the next one, or the home's chain; the tag is the hash of the
 *             row's key, and the shard is responsible for it. So a lookup finds what is there.
 *   chains    only homes have one; only its first block has room, and no block is empty
 *   rows      every row makes sense, and no key is there twice. Row objects are what the pointers
 *             in their slots were made for.
 *
 * Two rows with the same key have the same hash, so they are in one shard: it is enough to compare
 * the keys of those rows of a shard whose tags are the same.
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
import {
  BUCKET_SLOTS,
  MAX_SHARD_DEPTH,
  OVERFLOW_SLOTS,
  SHARD_BUCKETS,
} from "../../runtime/limits.ts";
import {
  BLOCK_ROWS,
  BLOCK_TAGS,
  BUCKET_ROWS,
  BUCKET_TAGS,
  DEPTH,
  Geometry,
  HEAD_BUCKETS,
  HEAD_DEPTH,
  HEAD_SEED,
  HEAD_SIBLINGS,
  HEAD_WORDS,
  homeOf,
  NEXT,
  OVERFLOW,
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

const BUCKETS = SHARD_BUCKETS + 1;

export interface HopscotchFigures extends StructureFigures {
  readonly kind: "hopscotch";
  readonly shards: number;
  /** The most bits of a hash that choose a shard. */
  readonly depth: number;
  readonly buckets: number;
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

/** A shard to be looked at: its head, and the hash bits that lead to it. */
interface Head {
  readonly regionId: number;
  readonly word: number;
  readonly bits: number;
  readonly known: number;
}

/** A bucket or block with slots, in the copy of the shard. */
interface Holder {
  readonly bucket: number;
  readonly block: number;
  readonly tagsAt: number;
  readonly rowsAt: number;
  readonly slots: number;
}

export class HopscotchCheck<Row> {
  readonly #reader: ObjectReader;
  readonly #rows: CheckedRows<Row>;
  readonly #geometry: Geometry;
  /** Of the hash, from the first head. */
  #seed = 0;
  readonly #rowReader: RowReader;
  readonly #place = new ShardPlace();
  readonly #heads: Head[];
  readonly #head = new Views(new ArrayBuffer(HEAD_WORDS * 4));
  readonly #object: Views;
  /** All buckets and blocks of one shard, one after the other. */
  #copy: Views;
  #top = 0;
  readonly #holders: Holder[] = [];
  /** By tag, the keys of the shard's rows that have it, where several have. */
  readonly #sameTag = new Map<number, Set<string>>();
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
    const { bucketWords } = this.#geometry;
    this.#object = new Views(new ArrayBuffer(bucketWords * 4));
    this.#copy = new Views(new ArrayBuffer(2 * BUCKETS * bucketWords * 4));
  }

  *run(): Check<HopscotchFigures> {
    for (let head = this.#heads.pop(); head !== undefined; head = this.#heads.pop()) {
      const depth = this.#readHead(head);
      if (depth >= 0 && this.#readBuckets(depth)) yield* this.#lookAtRows(head.bits, depth);
      this.#shards++;
      this.#place.shard = this.#shards;
      yield;
    }
    const buckets = this.#shards * BUCKETS;
    return {
      kind: "hopscotch",
      rows: this.#inBuckets + this.#inChains,
      rowObjects: this.#rowReader.objects,
      cutRows: this.#rowReader.cut,
      memoryBytes: this.#reader.memoryBytes,
      shards: this.#shards,
      depth: this.#depth,
      buckets,
      occupancy: this.#inBuckets / (buckets * BUCKET_SLOTS),
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
        const place = { regionId: i32[at] - 1, word: i32[at + 1] };
        this.#heads.push({ ...place, bits: sibling, known: bit + 1 });
      } else {
        this.#tell(`its head has no shard split off at bit ${bit}, at depth ${depth}`);
      }
    }
    return depth;
  }

  /** Copies all buckets of the shard whose head was read, and their chains. */
  #readBuckets(depth: number): boolean {
    const { stride, bucketWords } = this.#geometry;
    const reader = this.#reader;
    const regionId = this.#head.i32[HEAD_BUCKETS] - 1;
    const base = this.#head.i32[HEAD_BUCKETS + 1];
    const ownBytes = ARRAY_HEADER_BYTES - HEADER_BYTES;
    const sizeClass = classFor(ownBytes + BUCKETS * stride * 4);
    const expected = { sizeClass, incarnation: undefined, isArray: true };
    const cell = base - ARRAY_HEADER_WORDS;
    this.#holders.length = 0;
    this.#top = 0;
    const place = this.#place.at(-1);
    if (!reader.readCell(place, regionId, cell, expected, ownBytes / 4, this.#object)) return false;
    const elementWords = this.#object.i32[ELEMENT_WORDS - HEADER_WORDS];
    const elements = this.#object.i32[ELEMENT_COUNT - HEADER_WORDS];
    if (elementWords !== bucketWords || elements !== BUCKETS) {
      this.#tell(
        `its array says ${elements} buckets of ${elementWords} words, and should have ${BUCKETS} ` +
          `of ${bucketWords}`,
      );
    }
    const { incarnation } = reader;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      const word = base + bucket * stride;
      const into = this.#object;
      this.#place.at(bucket);
      if (!reader.readElement(this.#place, regionId, word, incarnation, bucketWords, into))
        continue;
      const found = into.i32[DEPTH];
      if (found !== depth) this.#tell(`it says depth ${found}, its shard's head ${depth}`);
      const at = this.#keep(bucketWords);
      const tagsAt = at + BUCKET_TAGS;
      this.#holders.push({
        bucket,
        block: -1,
        tagsAt,
        rowsAt: at + BUCKET_ROWS,
        slots: BUCKET_SLOTS,
      });
      this.#readChain(bucket);
    }
    return true;
  }

  /** Copies the overflow blocks of the bucket that was read last. */
  #readChain(bucket: number): void {
    const { blockWords } = this.#geometry;
    const reader = this.#reader;
    const { i32 } = this.#object;
    const sizeClass = classFor(blockWords * 4);
    let pointerAt = OVERFLOW;
    let block = 0;
    while (i32[pointerAt] !== 0) {
      const place = this.#place.at(bucket, block);
      const expected = { sizeClass, incarnation: i32[pointerAt + 2] };
      const [regionId, word] = [i32[pointerAt] - 1, i32[pointerAt + 1]];
      // A chain that goes round in a circle ends here: what was reached before is not read again.
      if (!reader.readCell(place, regionId, word, expected, blockWords, this.#object)) break;
      const at = this.#keep(blockWords);
      const tagsAt = at + BLOCK_TAGS;
      this.#holders.push({ bucket, block, tagsAt, rowsAt: at + BLOCK_ROWS, slots: OVERFLOW_SLOTS });
      this.#lookAtBlock(block, tagsAt);
      pointerAt = NEXT;
      block++;
    }
    if (block === 0) return;
    this.#place.at(bucket);
    if (bucket === SHARD_BUCKETS) this.#tell("it is no home, and has a chain");
    this.#chains++;
    this.#blocks += block;
    this.#longest = Math.max(this.#longest, block);
  }

  #lookAtBlock(block: number, tagsAt: number): void {
    let used = 0;
    for (let slot = 0; slot < OVERFLOW_SLOTS; slot++) {
      if (this.#copy.i32[tagsAt + slot] !== 0) used++;
    }
    if (used === 0) this.#tell("it is empty, and should have been freed");
    else if (block > 0 && used < OVERFLOW_SLOTS) this.#tell("it has room behind a first block");
  }

  /** Appends the object that was read last to the shard's copy; returns where. */
  #keep(words: number): number {
    const at = this.#top;
    this.#top += words;
    if (this.#top > this.#copy.i32.length) {
      const before = this.#copy.i32;
      this.#copy = new Views(new ArrayBuffer(2 * 4 * this.#top));
      this.#copy.i32.set(before);
    }
    for (let i = 0; i < words; i++) this.#copy.i32[at + i] = this.#object.i32[i];
    return at;
  }

  *#lookAtRows(bits: number, depth: number): Generator<void, void> {
    this.#findSameTags();
    for (const { bucket, block, tagsAt, rowsAt, slots } of this.#holders) {
      for (let slot = 0; slot < slots; slot++) {
        const tag = this.#copy.i32[tagsAt + slot];
        if (tag === 0) continue;
        if (block < 0) this.#inBuckets++;
        else this.#inChains++;
        this.#place.at(bucket, block, slot);
        this.#lookAtTag(tag, bucket, block, bits, depth);
        this.#lookAtRow(tag, rowsAt + slot * this.#geometry.slotWords);
        if (!this.#geometry.inline) yield;
      }
    }
  }

  #lookAtTag(tag: number, bucket: number, block: number, bits: number, depth: number): void {
    const home = homeOf(tag);
    if (home !== bucket && (block >= 0 || home !== bucket - 1)) {
      this.#tell(`it holds a row whose home is bucket ${home}`);
    }
    const mask = 2 ** depth - 1;
    if ((tag & mask) !== (bits & mask)) {
      this.#tell(`it holds a row of another shard: its hash is ${tag >>> 0}, at depth ${depth}`);
    }
  }

  #lookAtRow(tag: number, at: number): void {
    const { inline, slotWords } = this.#geometry;
    const { problems } = this.#reader;
    let views = this.#copy;
    let rowAt = at;
    let words = slotWords;
    if (!inline) {
      const { i32 } = views;
      const rowReader = this.#rowReader;
      if (!rowReader.read(this.#place, i32[at] - 1, i32[at + 1], i32[at + 2])) return;
      ({ views, at: rowAt, words } = rowReader);
    }
    const row = soundRow(problems, this.#place, this.#rows, views, rowAt, words);
    if (row === undefined) return;
    const hash = stagedKey(problems, this.#place, () =>
      this.#rows.codec.stageKeyOf(row, this.#seed),
    );
    if (hash === NO_STAGE) return;
    if (hash === tag) {
      this.#rows.each(row);
    } else {
      const key = this.#rows.showKey(row);
      this.#tell(`its tag is ${tag}, the hash of its row's key ${key} is ${hash}`);
    }
    const keys = this.#sameTag.get(tag);
    if (keys === undefined) return;
    const key = this.#rows.showKey(row);
    if (keys.has(key)) this.#tell(`it holds a second row with the key ${key}`);
    keys.add(key);
  }

  #findSameTags(): void {
    const once = new Set<number>();
    this.#sameTag.clear();
    for (const { tagsAt, slots } of this.#holders) {
      for (let slot = 0; slot < slots; slot++) {
        const tag = this.#copy.i32[tagsAt + slot];
        if (tag === 0) continue;
        if (once.has(tag)) this.#sameTag.set(tag, new Set());
        once.add(tag);
      }
    }
  }

  #tell(what: string): void {
    this.#reader.problems.add(this.#place, what);
  }
}
