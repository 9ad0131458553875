/**
 * Where a new pair goes, and what becomes of the slot of one that leaves (layout.ts has the order, line.ts the rules).
 * Works on any transaction's view of a shard, so that splitting can use it as well as inserting.
 *
 * Pairs are moved from the free end on. Inside a transaction that is a matter of taste: nobody sees a half of it.
 */

import type { Transaction } from "../../engine/transaction.ts";
import type { Region } from "../../memory/store-memory.ts";
import { MAX_DISPLACEMENT, SEGMENT_SLOTS } from "../../runtime/limits.ts";
import { TAGS } from "../shards/layout.ts";
import { type HeldSlot, OverflowChains } from "../shards/overflow-chains.ts";
import type { ShardSearch, ShardSlots } from "../shards/sharded-store.ts";
import { type Geometry, homeSlotOf, placeInSegment, SHARD_SLOTS, segmentOf } from "./layout.ts";
import { findFree, findPlace, fitsInto, lastToShift, NO_PLACE, type SlotLine } from "./line.ts";

/** Where a search has found a pair: the slot of the shard, below 0 in a chain. */
export interface FoundSlot {
  readonly slot: number;
  readonly region: Region;
  readonly base: number;
}

export class Placement implements ShardSlots {
  readonly #geometry: Geometry;
  readonly #search: FoundSlot;
  readonly #chains: OverflowChains;
  readonly #line: ShardLine;
  holder = -1;
  slotAt = 0;
  chainBlocks = 0;

  constructor(geometry: Geometry, search: FoundSlot) {
    this.#geometry = geometry;
    this.#search = search;
    this.#chains = new OverflowChains(geometry.segmentWords, geometry.slotWords);
    this.#line = new ShardLine(geometry);
  }

  take(tx: Transaction, region: Region, base: number, hash: number): void {
    this.chainBlocks = 0;
    const home = homeSlotOf(hash);
    const line = this.#line.begin(tx, region, base);
    const free = findFree(line, home, MAX_DISPLACEMENT);
    if (free === NO_PLACE) {
      const chains = this.#chains;
      chains.add(tx, line.entryOf(home), hash);
      this.holder = chains.holder;
      this.slotAt = chains.slotAt;
      this.chainBlocks = chains.chainBlocks;
      return;
    }
    const place = findPlace(line, home, free);
    for (let slot = free; slot > place; slot--) line.move(slot - 1, slot);
    line.setTag(place, hash);
    this.holder = line.entryOf(place);
    this.slotAt = this.#geometry.slotAt(place);
  }

  giveBack(tx: Transaction, found: ShardSearch): void {
    const { bucket: home } = found;
    const { slot, region, base } = this.#search;
    const chains = this.#chains;
    if (slot < 0) {
      chains.giveBack(tx, home, found);
      return;
    }
    const line = this.#line.begin(tx, region, base);
    const chained = chains.find(tx, home, (tag) =>
      fitsInto(line, slot, homeSlotOf(tag), MAX_DISPLACEMENT),
    );
    if (chained !== undefined) {
      // What is in the chain depends on the home segment, which may be another than the slot's.
      tx.depend(home);
      line.fill(slot, chained);
      chains.giveBack(tx, home, chained);
      return;
    }
    const last = lastToShift(line, slot);
    for (let to = slot; to < last; to++) line.move(to + 1, to);
    line.setTag(last, 0);
  }

  /** Every object has its own version. */
  settle(tx: Transaction, _bucket: number, entry: number): void {
    if (!tx.settle(entry)) tx.conflict(entry);
    tx.depend(entry);
  }
}

/**
 * The slots of a shard, as a transaction sees them before it moves any. Whatever is looked at becomes part of its read
 * set.
 */
class ShardLine implements SlotLine {
  readonly slots = SHARD_SLOTS;
  readonly #geometry: Geometry;
  #tx!: Transaction;
  #region!: Region;
  #base = 0;
  /** Homes of the slots, of segments that were looked at. */
  readonly #homes = new Int32Array(SHARD_SLOTS);
  readonly #isKnown: Uint8Array;

  constructor(geometry: Geometry) {
    this.#isKnown = new Uint8Array(geometry.buckets);
    this.#geometry = geometry;
  }

  begin(tx: Transaction, region: Region, base: number): this {
    this.#tx = tx;
    this.#region = region;
    this.#base = base;
    this.#isKnown.fill(0);
    return this;
  }

  homeAt(slot: number): number {
    if (this.#isKnown[segmentOf(slot)] === 0) this.#look(slot);
    return this.#homes[slot];
  }

  #look(slot: number): void {
    const tx = this.#tx;
    const entry = this.#open(slot);
    const { i32 } = tx.views;
    const first = slot - placeInSegment(slot);
    for (let place = 0; place < SEGMENT_SLOTS; place++) {
      const tag = i32[tx.at + TAGS + place];
      this.#homes[first + place] = tag === 0 ? -1 : homeSlotOf(tag);
    }
    if (!tx.settle(entry)) tx.conflict(entry);
    tx.depend(entry);
    this.#isKnown[segmentOf(slot)] = 1;
  }

  /** The entry of the segment of a slot, in the read set. */
  entryOf(slot: number): number {
    const entry = this.#open(slot);
    this.#tx.depend(entry);
    return entry;
  }

  setTag(slot: number, tag: number): void {
    const { set } = this.#tx;
    const entry = this.#writable(slot);
    const tagAt = TAGS + placeInSegment(slot);
    set.arena.i32[set.bufferOf(entry) + tagAt] = tag;
    set.markDirty(entry, tagAt, tagAt + 1);
  }

  /** Copies a pair from one slot to another. */
  move(from: number, to: number): void {
    this.fill(to, {
      holder: this.entryOf(from),
      holderWords: this.#geometry.segmentWords,
      tagAt: TAGS + placeInSegment(from),
      slotAt: this.#geometry.slotAt(from),
    });
  }

  /** Copies a pair into a slot, from a segment or a block. */
  fill(slot: number, from: HeldSlot): void {
    const { set } = this.#tx;
    const { slotWords } = this.#geometry;
    const target = this.#writable(slot);
    this.#tx.writable(from.holder, from.holderWords);
    const { i32 } = set.arena;
    const source = set.bufferOf(from.holder);
    const at = set.bufferOf(target);
    const tagAt = TAGS + placeInSegment(slot);
    const slotAt = this.#geometry.slotAt(slot);
    i32[at + tagAt] = i32[source + from.tagAt];
    for (let word = 0; word < slotWords; word++) {
      i32[at + slotAt + word] = i32[source + from.slotAt + word];
    }
    set.markDirty(target, tagAt, tagAt + 1);
    set.markDirty(target, slotAt, slotAt + slotWords);
  }

  #writable(slot: number): number {
    const tx = this.#tx;
    const entry = this.entryOf(slot);
    tx.writable(entry, this.#geometry.segmentWords);
    return entry;
  }

  #open(slot: number): number {
    return this.#tx.open(this.#region, this.#base + segmentOf(slot) * this.#geometry.stride);
  }
}
