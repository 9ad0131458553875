/**
 * Which shard of another node's table is responsible for a hash: as ../hopscotch/directory.ts, but
 * from afar, and so with a cache that costs as few reads as can be. Each head that was read is
 * kept, with the places of the shards split off from it. A bucket whose depth is another one than
 * its shard had says that the shard has been split since: then only that shard's head is read again.
 *
 * Neither heads nor buckets are ever freed, so a place that is known stays one.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_SHARD_DEPTH } from "../../runtime/limits.ts";
import type { Reading, RemoteTable, Trail } from "../remote/remote.ts";
import { HEAD_BUCKETS, HEAD_DEPTH, HEAD_SIBLINGS, HEAD_WORDS } from "./layout.ts";

/** Answers are found at once for up to 2^20 shards; in a larger table the tree of heads is walked. */
const MAX_CACHED_DEPTH = 20;
const UNKNOWN = -1;

export class RemoteShard {
  readonly headRegion: number;
  readonly headWord: number;
  /** The low bits of all hashes that it was ever responsible for, and how many they are. */
  readonly bits: number;
  readonly known: number;
  /** How many bits it is now, UNKNOWN if its head must be read; and where its buckets begin. */
  depth = UNKNOWN;
  regionId = 0;
  base = 0;
  readonly siblings: (RemoteShard | undefined)[] = [];

  constructor(headRegion: number, headWord: number, bits: number, known: number) {
    this.headRegion = headRegion;
    this.headWord = headWord;
    this.bits = bits;
    this.known = known;
  }

  isFor(hash: number): boolean {
    return this.depth !== UNKNOWN && lowBits(hash, this.depth) === this.bits;
  }

  /** The first bit of a hash that leads to another shard; the depth if it stays here. */
  firstBit(hash: number): number {
    let bit = this.known;
    while (bit < this.depth && ((hash >>> bit) & 1) === 0) bit++;
    return bit;
  }

  /** Takes over what its head says. */
  learn(i32: Int32Array): void {
    const depth = i32[HEAD_DEPTH];
    if (depth < this.known || depth > MAX_SHARD_DEPTH) {
      throw new SituError("SITU_PROTOCOL", `a node shows the head of a shard with depth ${depth}`);
    }
    this.depth = depth;
    this.regionId = i32[HEAD_BUCKETS] - 1;
    this.base = i32[HEAD_BUCKETS + 1];
    for (let bit = this.known; bit < depth; bit++) {
      const at = HEAD_SIBLINGS + 2 * bit;
      const bits = (this.bits | (1 << bit)) >>> 0;
      this.siblings[bit] ??= new RemoteShard(i32[at] - 1, i32[at + 1], bits, bit + 1);
    }
  }
}

export class RemoteDirectory {
  readonly #root: RemoteShard;
  /** By the low bits of a hash, the shard that was last found for them. */
  #places: (RemoteShard | undefined)[] = [undefined];
  /** How many heads were read. */
  heads = 0;

  constructor(table: RemoteTable) {
    this.#root = new RemoteShard(table.rootRegion, table.rootWord, 0, 0);
  }

  /** The shard that is responsible, as far as is known here; undefined if its head must be read. */
  recall(hash: number): RemoteShard | undefined {
    const shard = this.#places[hash & (this.#places.length - 1)];
    return shard?.isFor(hash) === true ? shard : undefined;
  }

  /** A bucket says another depth than the shard had: its head must be read again. */
  forget(shard: RemoteShard, depth: number): void {
    // Unless another lookup has done so since.
    if (shard.depth === depth) shard.depth = UNKNOWN;
  }

  /** Finds the shard by reading heads; undefined if one of them is locked. */
  *locate(hash: number, trail: Trail): Reading<RemoteShard | undefined> {
    let shard = this.#places[hash & (this.#places.length - 1)];
    if (shard === undefined || lowBits(hash, shard.known) !== shard.bits) shard = this.#root;
    for (;;) {
      if (shard.depth === UNKNOWN) {
        trail.count(1);
        this.heads++;
        const { headRegion: regionId, headWord: word } = shard;
        const [head] = yield [{ regionId, word, dataWords: HEAD_WORDS }];
        if (head.isLocked || head.data === undefined) return undefined;
        shard.learn(head.data.i32);
      }
      const bit = shard.firstBit(hash);
      if (bit >= shard.depth) break;
      shard = shard.siblings[bit]!;
    }
    this.#remember(hash, shard);
    return shard;
  }

  #remember(hash: number, shard: RemoteShard): void {
    if (shard.depth > MAX_CACHED_DEPTH) return;
    while (this.#places.length < 2 ** shard.depth)
      this.#places = [...this.#places, ...this.#places];
    const step = 2 ** shard.depth;
    const { length } = this.#places;
    for (let at = lowBits(hash, shard.depth); at < length; at += step) this.#places[at] = shard;
  }
}

function lowBits(hash: number, bits: number): number {
  return (hash & (2 ** bits - 1)) >>> 0;
}
