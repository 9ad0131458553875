/**
 * Which shard is responsible for a hash. The truth is in the shard heads: from the first shard,
 * follow for each bit of the hash that is set the shard that was split off at that depth. This
 * caches the answers, as a table over the low bits, for one executor. A cached answer may be old;
 * the bucket it leads to says so, for its depth is then another one.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../memory/address.ts";
import { damagedAt } from "../../memory/damage.ts";
import { HEADER_WORDS } from "../../memory/object.ts";
import type { Region, StoreMemory } from "../../memory/store-memory.ts";
import { MAX_SHARD_DEPTH } from "../../runtime/limits.ts";
import { HEAD_BUCKETS, HEAD_DEPTH, HEAD_SIBLINGS } from "./layout.ts";

/** Answers are cached for up to 2^20 shards; a larger table walks the last bits each time. */
const MAX_CACHED_DEPTH = 20;

export function regionIdIn(shard: number): number {
  return (shard >>> 8) - 1;
}

export function depthIn(shard: number): number {
  return shard & 0xff;
}

export class Directory {
  readonly #memory: StoreMemory;
  readonly #rootRegionId: number;
  readonly #rootWord: number;
  mask = 0;
  /**
   * The cache: for each value of the low bits two words side by side, so that a look-up touches one
   * cache line: region id + 1 above eight bits of depth (0: not known), and the first bucket.
   */
  places = new Int32Array(2);
  /** What `recall` or `locate` found. */
  region: Region | undefined;
  base = 0;
  depth = 0;
  headRegion: Region | undefined;
  headWord = 0;

  constructor(memory: StoreMemory, root: Address) {
    this.#memory = memory;
    this.#rootRegionId = regionIdOf(root);
    this.#rootWord = wordOf(root);
  }

  /** The cached answer; false if there is none. */
  recall(hash: number): boolean {
    const place = 2 * (hash & this.mask);
    const shard = this.places[place];
    if (shard === 0) return false;
    this.region = this.#memory.region(regionIdIn(shard));
    this.base = this.places[place + 1];
    this.depth = depthIn(shard);
    return true;
  }

  /** Finds the shard as this transaction sees it, and remembers it if everybody sees it so. */
  locate(tx: Transaction, hash: number): void {
    let region = this.#memory.region(this.#rootRegionId);
    let word = this.#rootWord;
    let from = 0;
    let shared = true;
    for (;;) {
      const entry = tx.open(region, word);
      const { i32 } = tx.views;
      const at = tx.at;
      const depth = i32[at + HEAD_DEPTH];
      let bit = from;
      while (bit < depth && bit < MAX_SHARD_DEPTH && ((hash >>> bit) & 1) === 0) bit++;
      const last = bit >= depth;
      if (depth >>> 0 > MAX_SHARD_DEPTH || from > MAX_SHARD_DEPTH) {
        if (tx.settle(entry))
          throw damagedAt(region, word, `the head of a shard says depth ${depth}`);
        continue;
      }
      const found = last ? at + HEAD_BUCKETS : at + HEAD_SIBLINGS + 2 * bit;
      const nextRegion = i32[found] - 1;
      const nextWord = i32[found + 1];
      if (!tx.settle(entry)) continue;
      if (at !== word + HEADER_WORDS || tx.views !== region) shared = false;
      if (last) {
        this.region = this.#memory.region(nextRegion);
        this.base = nextWord;
        this.depth = depth;
        this.headRegion = region;
        this.headWord = word;
        if (shared) this.#remember(hash);
        return;
      }
      region = this.#memory.region(nextRegion);
      word = nextWord;
      from = bit + 1;
    }
  }

  #remember(hash: number): void {
    if (this.depth > MAX_CACHED_DEPTH) return;
    while (this.mask + 1 < 2 ** this.depth) this.#double();
    const step = 2 ** this.depth;
    const shard = ((this.region!.id + 1) << 8) | this.depth;
    for (let place = hash & (step - 1); place <= this.mask; place += step) {
      this.places[2 * place] = shard;
      this.places[2 * place + 1] = this.base;
    }
  }

  #double(): void {
    const before = this.places;
    this.places = new Int32Array(2 * before.length);
    this.places.set(before);
    this.places.set(before, before.length);
    this.mask = 2 * this.mask + 1;
  }
}
