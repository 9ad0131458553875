/**
 * A host's table of one shard, as its NIC's DMA reads see it (Xenic §4.1.2): Robin Hood hashing on a row of slots, with a
 * limit and a chain for each segment. The rules are those of stores/robinhood/line.ts. Only the host's workers write
 * it; `generation` changes whenever a row moves, so that a lookup of several reads can tell that it must begin again.
 */

import { MAX_DISPLACEMENT, SEGMENT_SLOTS } from "../../runtime/limits.ts";
import {
  findFree,
  findPlace,
  fitsInto,
  lastToShift,
  NO_PLACE,
  type SlotLine,
} from "../../stores/robinhood/line.ts";
import type { TwoWords } from "./caching-index.ts";
import type { HostAnswer, HostRead } from "./host-lookup.ts";

export interface HostRow {
  readonly key: number;
  readonly version: TwoWords;
  readonly value: Int32Array;
}

export interface HostTableShape {
  /** Rows that it is made for, at nine tenths. */
  readonly rows: number;
  readonly valueWords: number;
}

export class HostTable implements SlotLine {
  readonly slots: number;
  readonly homes: number;
  readonly segments: number;
  readonly valueWords: number;
  readonly keyWords = 1;
  /** Its chains have no limit. */
  readonly isFull = false;
  generation = 0;
  readonly #rows: (HostRow | undefined)[];
  readonly #chains = new Map<number, HostRow[]>();

  constructor({ rows, valueWords }: HostTableShape) {
    this.valueWords = valueWords;
    this.homes = Math.ceil(Math.max(rows, SEGMENT_SLOTS) / 0.9);
    this.slots = this.homes + MAX_DISPLACEMENT;
    this.segments = Math.ceil(this.homes / SEGMENT_SLOTS);
    this.#rows = new Array(this.slots).fill(undefined);
  }

  homeOf(key: number): number {
    // The finalizer of MurmurHash3.
    let hash = key | 0;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) % this.homes;
  }

  segmentOf(home: number): number {
    return Math.floor(home / SEGMENT_SLOTS);
  }

  homeAt(slot: number): number {
    const row = this.#rows[slot];
    return row === undefined ? -1 : this.homeOf(row.key);
  }

  get(key: number): HostRow | undefined {
    const slot = this.#slotOf(key);
    if (slot >= 0) return this.#rows[slot];
    return this.#chainOf(key).find((row) => row.key === key);
  }

  /** Writes a row, or removes it. */
  apply(key: number, version: TwoWords, value: Int32Array | null): void {
    const slot = this.#slotOf(key);
    const chain = this.#chainOf(key);
    const linked = chain.findIndex((row) => row.key === key);
    if (value === null) {
      if (slot >= 0) this.#remove(slot);
      else if (linked >= 0) this.#unlink(this.segmentOf(this.homeOf(key)), linked);
      return;
    }
    const row = { key, version, value };
    if (slot >= 0) this.#rows[slot] = row;
    else if (linked >= 0) chain[linked] = row;
    else this.#insert(row);
  }

  /** What a DMA read finds, and the row if it is among what was read. */
  read(read: HostRead, key: number): HostAnswer & { readonly row: HostRow | undefined } {
    const home = this.homeOf(key);
    const hasChain = this.#chainOf(key).length > 0;
    if (read.kind === "chain") {
      const chain = this.#chainOf(key);
      const found = chain.findIndex((row) => row.key === key);
      return { found, isOver: true, hasChain, row: chain[found] };
    }
    for (let i = 0; i < read.count; i++) {
      const row = this.#rows[read.from + i];
      if (row?.key === key) return { found: i, isOver: true, hasChain, row };
      // A free slot, or one of a later home, ends the search.
      if (row === undefined || this.homeOf(row.key) > home) {
        return { found: -1, isOver: true, hasChain, row: undefined };
      }
    }
    return { found: -1, isOver: false, hasChain, row: undefined };
  }

  *rows(): IterableIterator<HostRow> {
    for (const row of this.#rows) if (row !== undefined) yield row;
    for (const chain of this.#chains.values()) yield* chain;
  }

  #slotOf(key: number): number {
    const home = this.homeOf(key);
    for (let slot = home; slot < home + MAX_DISPLACEMENT; slot++) {
      const row = this.#rows[slot];
      if (row === undefined || this.homeOf(row.key) > home) return -1;
      if (row.key === key) return slot;
    }
    return -1;
  }

  #chainOf(key: number): HostRow[] {
    return this.#chains.get(this.segmentOf(this.homeOf(key))) ?? NO_ROWS;
  }

  #insert(row: HostRow): void {
    this.generation++;
    const home = this.homeOf(row.key);
    const free = findFree(this, home, MAX_DISPLACEMENT);
    if (free === NO_PLACE) {
      const segment = this.segmentOf(home);
      const chain = this.#chains.get(segment);
      if (chain === undefined) this.#chains.set(segment, [row]);
      else chain.push(row);
      return;
    }
    const place = findPlace(this, home, free);
    // From the free end on, so that no row is ever absent (§4.1.2).
    for (let slot = free; slot > place; slot--) this.#rows[slot] = this.#rows[slot - 1];
    this.#rows[place] = row;
  }

  #remove(slot: number): void {
    this.generation++;
    const segment = this.segmentOf(this.homeAt(slot));
    const chain = this.#chains.get(segment) ?? NO_ROWS;
    const fitting = chain.findIndex(({ key }) =>
      fitsInto(this, slot, this.homeOf(key), MAX_DISPLACEMENT),
    );
    if (fitting >= 0) {
      this.#rows[slot] = chain[fitting];
      this.#unlink(segment, fitting);
      return;
    }
    const last = lastToShift(this, slot);
    for (let each = slot; each < last; each++) this.#rows[each] = this.#rows[each + 1];
    this.#rows[last] = undefined;
  }

  #unlink(segment: number, at: number): void {
    this.generation++;
    const chain = this.#chains.get(segment) as HostRow[];
    chain.splice(at, 1);
    if (chain.length === 0) this.#chains.delete(segment);
  }
}

const NO_ROWS: HostRow[] = [];
