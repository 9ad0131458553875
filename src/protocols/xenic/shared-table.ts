/**
 * A host's table of one shard in memory that two threads see: the host's, which alone writes it, and its NIC's, which reads it
 * without asking the host, as a DMA engine would (Xenic §4.1.2). Robin Hood hashing by the rules of stores/robinhood/line.ts,
 * with a chain for each segment.
 *
 *   words 0 to 2   sequence, odd while the host writes;  generation;  rows
 *   words 3 and 4  places of chains: the first that was freed, + 1;  how many were ever used
 *   then           for each segment the first place of its chain + 1
 *   then           slots:             0 words of the value + 1, 0 if free;  1–2 key;  3–4 version;  5… value
 *   then           places of chains:  the same, and the next place + 1 behind it
 *
 * Readers compare the sequence before and after, and read again if it has changed. They never wait: whoever finds it odd is told
 * so, and does something else first. A table has room for so many rows and does not grow. Who would add one to a full
 * table is refused before the commit (`isFull`), since what is committed must find room; those that are under way at that
 * moment find it in a reserve. Places of chains are as many as rows, so no set of keys can use them up; what is never
 * touched costs no memory.
 */

import { loadAcquire, loadAfterLoads } from "../../memory/ordering.ts";
import { assert } from "../../runtime/assert.ts";
import { MAX_DISPLACEMENT, SEGMENT_SLOTS, XENIC_RESERVE_ROWS } from "../../runtime/limits.ts";
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
import type { HostRow, HostTableShape } from "./host-table.ts";

const SEQUENCE = 0;
const GENERATION = 1;
const ROWS = 2;
const FREED = 3;
const EVER_USED = 4;
const HEADER_WORDS = 5;

const LENGTH = 0;
const KEY = 1;
const VERSION = 3;
const VALUE = 5;

const HALF = 2 ** 32;

interface Layout {
  readonly homes: number;
  readonly slots: number;
  readonly segments: number;
  readonly places: number;
  readonly slotWords: number;
  readonly slotsAt: number;
  readonly placesAt: number;
  readonly words: number;
}

function layoutOf({ rows, valueWords }: HostTableShape): Layout {
  const homes = Math.ceil(Math.max(rows, SEGMENT_SLOTS) / 0.9);
  const slots = homes + MAX_DISPLACEMENT;
  const segments = Math.ceil(homes / SEGMENT_SLOTS);
  const places = rows + XENIC_RESERVE_ROWS;
  const slotWords = VALUE + valueWords;
  const slotsAt = HEADER_WORDS + segments;
  const placesAt = slotsAt + slots * slotWords;
  const words = placesAt + places * (slotWords + 1);
  return { homes, slots, segments, places, slotWords, slotsAt, placesAt, words };
}

/** What the memory of such a table takes, if all of it is used. */
export function sharedTableBytes(shape: HostTableShape): number {
  return layoutOf(shape).words * 4;
}

export class SharedTable implements SlotLine {
  readonly homes: number;
  readonly slots: number;
  readonly segments: number;
  readonly valueWords: number;
  readonly keyWords = 2;
  readonly memory: SharedArrayBuffer;
  readonly #capacity: number;
  readonly #layout: Layout;
  readonly #words: Int32Array;

  /** With the memory of a table, that table; else a new one. */
  constructor(shape: HostTableShape, memory?: SharedArrayBuffer) {
    const layout = layoutOf(shape);
    this.#layout = layout;
    this.#capacity = shape.rows;
    this.homes = layout.homes;
    this.slots = layout.slots;
    this.segments = layout.segments;
    this.valueWords = shape.valueWords;
    this.memory = memory ?? new SharedArrayBuffer(layout.words * 4);
    this.#words = new Int32Array(this.memory);
  }

  /** Changes whenever a row moves. */
  get generation(): number {
    return loadAcquire(this.#words, GENERATION);
  }

  get rows(): number {
    return loadAcquire(this.#words, ROWS);
  }

  get isFull(): boolean {
    return this.rows >= this.#capacity;
  }

  homeOf(key: number): number {
    // The finalizer of MurmurHash3, over both halves of the key.
    const high = Math.floor(key / HALF);
    let hash = (key | 0) ^ (high === 0 || high === -1 ? 0 : Math.imul(high, 0x9e3779b1));
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    return ((hash ^ (hash >>> 16)) >>> 0) % this.homes;
  }

  segmentOf(home: number): number {
    return Math.floor(home / SEGMENT_SLOTS);
  }

  homeAt(slot: number): number {
    const at = this.#slotAt(slot);
    return this.#words[at + LENGTH] === 0 ? -1 : this.homeOf(this.#keyAt(at));
  }

  /** At the NIC: what is in memory now; undefined if the host was writing. */
  read(
    read: HostRead,
    key: number,
  ): (HostAnswer & { readonly row: HostRow | undefined }) | undefined {
    const words = this.#words;
    const before = loadAcquire(words, SEQUENCE);
    if ((before & 1) !== 0) return undefined;
    const answer = this.#read(read, key);
    return loadAfterLoads(words, SEQUENCE) === before ? answer : undefined;
  }

  /** At the host. */
  get(key: number): HostRow | undefined {
    const slot = this.#slotOf(key);
    if (slot >= 0) return this.#rowAt(this.#slotAt(slot));
    const place = this.#inChain(key);
    return place === 0 ? undefined : this.#rowAt(this.#placeAt(place - 1));
  }

  /** At the host: writes a row, or removes it. */
  apply(key: number, version: TwoWords, value: Int32Array | null): void {
    const words = this.#words;
    const sequence = words[SEQUENCE];
    // A read-modify-write: what follows is not seen before it.
    Atomics.add(words, SEQUENCE, 1);
    this.#apply(key, version, value);
    Atomics.store(words, SEQUENCE, (sequence + 2) | 0);
  }

  #apply(key: number, version: TwoWords, value: Int32Array | null): void {
    const slot = this.#slotOf(key);
    const place = slot >= 0 ? 0 : this.#inChain(key);
    if (value === null) {
      if (slot < 0 && place === 0) return;
      this.#words[ROWS]--;
      if (slot >= 0) this.#remove(slot);
      else this.#unlink(this.segmentOf(this.homeOf(key)), place);
      return;
    }
    if (slot >= 0) this.#write(this.#slotAt(slot), key, version, value);
    else if (place > 0) this.#write(this.#placeAt(place - 1), key, version, value);
    else {
      this.#words[ROWS]++;
      this.#insert(key, version, value);
    }
  }

  #read(read: HostRead, key: number): HostAnswer & { readonly row: HostRow | undefined } {
    const home = this.homeOf(key);
    const hasChain = this.#chainOf(home) !== 0;
    if (read.kind === "chain") {
      const place = this.#inChain(key);
      const row = place === 0 ? undefined : this.#rowAt(this.#placeAt(place - 1));
      return { found: place === 0 ? -1 : 0, isOver: true, hasChain, row };
    }
    for (let i = 0; i < read.count; i++) {
      const at = this.#slotAt(read.from + i);
      const isUsed = this.#words[at + LENGTH] !== 0;
      const found = isUsed ? this.#keyAt(at) : 0;
      if (isUsed && found === key)
        return { found: i, isOver: true, hasChain, row: this.#rowAt(at) };
      // A free slot, or one of a later home, ends the search.
      if (!isUsed || this.homeOf(found) > home) {
        return { found: -1, isOver: true, hasChain, row: undefined };
      }
    }
    return { found: -1, isOver: false, hasChain, row: undefined };
  }

  #slotOf(key: number): number {
    const home = this.homeOf(key);
    for (let slot = home; slot < home + MAX_DISPLACEMENT; slot++) {
      const at = this.#slotAt(slot);
      if (this.#words[at + LENGTH] === 0) return -1;
      const found = this.#keyAt(at);
      if (found === key) return slot;
      if (this.homeOf(found) > home) return -1;
    }
    return -1;
  }

  /** The place of a key in the chain of its segment, + 1; 0 if it is not there. */
  #inChain(key: number): number {
    const { places, slotWords } = this.#layout;
    let place = this.#chainOf(this.homeOf(key));
    // What the host is changing may lead in a circle, or nowhere.
    for (let left = places; place > 0 && place <= places && left > 0; left--) {
      const at = this.#placeAt(place - 1);
      if (this.#keyAt(at) === key) return place;
      place = this.#words[at + slotWords];
    }
    return 0;
  }

  #chainOf(home: number): number {
    return this.#words[HEADER_WORDS + this.segmentOf(home)];
  }

  #insert(key: number, version: TwoWords, value: Int32Array): void {
    this.#moved();
    const home = this.homeOf(key);
    const free = findFree(this, home, MAX_DISPLACEMENT);
    if (free === NO_PLACE) {
      this.#link(this.segmentOf(home), key, version, value);
      return;
    }
    const place = findPlace(this, home, free);
    const { slotWords } = this.#layout;
    this.#words.copyWithin(
      this.#slotAt(place) + slotWords,
      this.#slotAt(place),
      this.#slotAt(free),
    );
    this.#write(this.#slotAt(place), key, version, value);
  }

  #remove(slot: number): void {
    this.#moved();
    const { slotWords } = this.#layout;
    const words = this.#words;
    const segment = this.segmentOf(this.homeAt(slot));
    for (let place = words[HEADER_WORDS + segment]; place > 0; ) {
      const at = this.#placeAt(place - 1);
      if (fitsInto(this, slot, this.homeOf(this.#keyAt(at)), MAX_DISPLACEMENT)) {
        words.copyWithin(this.#slotAt(slot), at, at + slotWords);
        this.#unlink(segment, place);
        return;
      }
      place = words[at + slotWords];
    }
    const last = lastToShift(this, slot);
    words.copyWithin(this.#slotAt(slot), this.#slotAt(slot + 1), this.#slotAt(last + 1));
    words[this.#slotAt(last) + LENGTH] = 0;
  }

  #link(segment: number, key: number, version: TwoWords, value: Int32Array): void {
    const words = this.#words;
    const { places, slotWords } = this.#layout;
    const freed = words[FREED];
    const place = freed === 0 ? ++words[EVER_USED] : freed;
    assert(place <= places, "whoever adds a row to a full table is refused before");
    const at = this.#placeAt(place - 1);
    if (freed !== 0) words[FREED] = words[at + slotWords];
    this.#write(at, key, version, value);
    words[at + slotWords] = words[HEADER_WORDS + segment];
    words[HEADER_WORDS + segment] = place;
  }

  #unlink(segment: number, place: number): void {
    this.#moved();
    const words = this.#words;
    const { slotWords } = this.#layout;
    let link = HEADER_WORDS + segment;
    while (words[link] !== place) link = this.#placeAt(words[link] - 1) + slotWords;
    const at = this.#placeAt(place - 1);
    words[link] = words[at + slotWords];
    words[at + LENGTH] = 0;
    words[at + slotWords] = words[FREED];
    words[FREED] = place;
  }

  #write(at: number, key: number, version: TwoWords, value: Int32Array): void {
    const words = this.#words;
    assert(value.length <= this.valueWords, "a value fits its slot");
    words[at + LENGTH] = value.length + 1;
    words[at + KEY] = key | 0;
    words[at + KEY + 1] = Math.floor(key / HALF);
    words[at + VERSION] = version.high;
    words[at + VERSION + 1] = version.low;
    words.set(value, at + VALUE);
  }

  #rowAt(at: number): HostRow {
    const words = this.#words;
    // While the host writes, anything may be there: the reader finds out afterwards.
    const length = Math.min(Math.max(words[at + LENGTH] - 1, 0), this.valueWords);
    const version = { high: words[at + VERSION], low: words[at + VERSION + 1] };
    return { key: this.#keyAt(at), version, value: words.slice(at + VALUE, at + VALUE + length) };
  }

  #keyAt(at: number): number {
    const low = this.#words[at + KEY];
    const high = this.#words[at + KEY + 1];
    return high === -1 ? low : high * HALF + (low >>> 0);
  }

  #slotAt(slot: number): number {
    return this.#layout.slotsAt + slot * this.#layout.slotWords;
  }

  #placeAt(place: number): number {
    return this.#layout.placesAt + place * (this.#layout.slotWords + 1);
  }

  #moved(): void {
    this.#words[GENERATION] = (this.#words[GENERATION] + 1) | 0;
  }
}
