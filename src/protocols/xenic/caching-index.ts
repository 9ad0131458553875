/**
 * The NIC's caching index (Xenic §4.1.3): what a NIC knows of the rows of its node, in memory of its own that has a bound.
 * It is a cache in front of a Robin Hood table, and the only place where locks are. For each segment of the host's table
 * there is an *index entry*:
 *
 *   known displacement   the largest one that was seen of a row of this segment: where the host need not be asked twice
 *   overflow             whether rows of the segment were seen in its chain
 *   pages                slots for rows; a page more is chained as it is needed
 *
 * Words of the memory: all entries (two words each), then pages of PAGE_SLOTS slots.
 *
 *   entry   0 displacement, OVERFLOWS above it;  1 first page + 1
 *   page    0 segment + 1, 0 if it is free;      1 next page + 1;  then the slots
 *   slot    0 state, pins above it;  1–2 who has locked it, 0 for nobody;  3–4 version;  5… key, then value
 *
 * A slot is there because its row was read lately, because it is locked, or because it is *pinned*: a commit has been told
 * and logged, and the host has not applied it yet. Until then the host's table has an older row, so the slot is the truth
 * (§4.2, step 6), and each commit that is not applied is a pin of its own. Rows that are neither locked nor pinned are
 * dropped when there is no room: pages are looked at in turn, and one that was used since the last look is spared once.
 * If all are held, there is no room for another row: whoever wants one must wait until the host has applied some.
 * A lock or a pin is never dropped.
 *
 * That a row does not exist is known like a row: a slot without a value.
 */

import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_DISPLACEMENT, NIC_PAGE_SLOTS } from "../../runtime/limits.ts";

/** In place of a slot: there is none, or no room for one. */
export const NO_SLOT = 0;

const ENTRY_WORDS = 2;
const FIRST_PAGE = 1;
const DISPLACEMENT_MASK = 0xff;
const OVERFLOWS = 0x100;

const PAGE_HEADER_WORDS = 2;
const SEGMENT = 0;
const NEXT = 1;

const STATE = 0;
const OWNER = 1;
const VERSION = 3;
const KEY = 5;

const USED = 1;
/** Its version, and its value or that there is none, are known. */
const KNOWN = 2;
const HAS_VALUE = 4;
/** Used since the page was looked at last. */
const REFERENCED = 8;
const ONE_PIN = 1 << 8;

export interface IndexOptions {
  /** All that it may use. */
  readonly memoryBytes: number;
  /** Segments of the host's table. */
  readonly segments: number;
  readonly keyWords: number;
  readonly valueWords: number;
}

export interface IndexCounters {
  /** Lookups, and those that found what is known of the row. */
  lookups: number;
  hits: number;
  /** Rows that were dropped for others. */
  evictions: number;
  /** Rows that found no room. */
  refusals: number;
}

/** Two words: of a transaction's name, or of a version. */
export interface TwoWords {
  readonly high: number;
  readonly low: number;
}

export class CachingIndex {
  readonly counters: IndexCounters = { lookups: 0, hits: 0, evictions: 0, refusals: 0 };
  /** How many slots are locked, and pins that are held. */
  locked = 0;
  pins = 0;
  readonly #words: Int32Array;
  readonly #keyWords: number;
  readonly #valueWords: number;
  readonly #slotWords: number;
  readonly #pageWords: number;
  readonly #segments: number;
  readonly #pages: number;
  readonly #pagesAt: number;
  /** The first free page + 1; free pages are linked by NEXT. */
  #free = 0;
  /** The page that is looked at next. */
  #hand = 0;

  constructor({ memoryBytes, segments, keyWords, valueWords }: IndexOptions) {
    this.#keyWords = keyWords;
    this.#valueWords = valueWords;
    this.#slotWords = KEY + keyWords + valueWords;
    this.#pageWords = PAGE_HEADER_WORDS + NIC_PAGE_SLOTS * this.#slotWords;
    this.#segments = segments;
    this.#pagesAt = segments * ENTRY_WORDS;
    const words = Math.floor(memoryBytes / 4);
    this.#pages = Math.floor((words - this.#pagesAt) / this.#pageWords);
    if (this.#pages < 1) {
      const least = (this.#pagesAt + this.#pageWords) * 4;
      throw new SituError(
        "SITU_CONFIG",
        `the NIC's index of ${segments} segments needs at least ${least} bytes, and has ${memoryBytes}`,
      );
    }
    this.#words = new Int32Array(this.#pagesAt + this.#pages * this.#pageWords);
    for (let page = this.#pages - 1; page >= 0; page--) {
      this.#words[this.#pageAt(page) + NEXT] = this.#free;
      this.#free = page + 1;
    }
  }

  get pages(): number {
    return this.#pages;
  }

  /** Rows that there is room for. */
  get capacity(): number {
    return this.#pages * NIC_PAGE_SLOTS;
  }

  /** The largest displacement that is known of a row of the segment. */
  knownDisplacement(segment: number): number {
    return this.#words[this.#entryAt(segment)] & DISPLACEMENT_MASK;
  }

  /** Whether rows of the segment are known to lie in its chain. */
  overflows(segment: number): boolean {
    return (this.#words[this.#entryAt(segment)] & OVERFLOWS) !== 0;
  }

  /** A row of the segment was seen so far from its home; MAX_DISPLACEMENT if it was in the chain. */
  learn(segment: number, displacement: number): void {
    const at = this.#entryAt(segment);
    const before = this.#words[at];
    if (displacement >= MAX_DISPLACEMENT) {
      // How far the others lie from their homes is not changed by it.
      this.#words[at] = before | OVERFLOWS;
      return;
    }
    const known = Math.max(before & DISPLACEMENT_MASK, displacement);
    this.#words[at] = known | (before & OVERFLOWS);
  }

  /** What is known of a row; NO_SLOT if nothing. Good until the next call that may need room. */
  find(segment: number, key: Int32Array): number {
    this.counters.lookups++;
    const slot = this.#search(segment, key);
    if (slot === NO_SLOT) return NO_SLOT;
    this.#words[slot + STATE] |= REFERENCED;
    if (this.isKnown(slot)) this.counters.hits++;
    return slot;
  }

  /** The slot of a row, made if there is none; NO_SLOT if there is no room, which pins or locks then have. */
  claim(segment: number, key: Int32Array): number {
    const found = this.#search(segment, key);
    if (found !== NO_SLOT) {
      this.#words[found + STATE] |= REFERENCED;
      return found;
    }
    const slot = this.#roomIn(segment);
    if (slot === NO_SLOT) {
      this.counters.refusals++;
      return NO_SLOT;
    }
    const words = this.#words;
    words.fill(0, slot, slot + this.#slotWords);
    words[slot + STATE] = USED | REFERENCED;
    words.set(key.subarray(0, this.#keyWords), slot + KEY);
    return slot;
  }

  isKnown(slot: number): boolean {
    return (this.#words[slot + STATE] & KNOWN) !== 0;
  }

  /** Whether the row exists, of one that is known. */
  hasValue(slot: number): boolean {
    return (this.#words[slot + STATE] & HAS_VALUE) !== 0;
  }

  isLocked(slot: number): boolean {
    return this.#words[slot + OWNER] !== 0 || this.#words[slot + OWNER + 1] !== 0;
  }

  isLockedBy(slot: number, { high, low }: TwoWords): boolean {
    return this.#words[slot + OWNER] === high && this.#words[slot + OWNER + 1] === low;
  }

  isPinned(slot: number): boolean {
    return this.#words[slot + STATE] >= ONE_PIN;
  }

  versionOf(slot: number): TwoWords {
    return { high: this.#words[slot + VERSION], low: this.#words[slot + VERSION + 1] };
  }

  isOfVersion(slot: number, { high, low }: TwoWords): boolean {
    return this.#words[slot + VERSION] === high && this.#words[slot + VERSION + 1] === low;
  }

  /** Copies the value of a row that exists. */
  copyValue(slot: number, to: Int32Array, at: number): void {
    const from = slot + KEY + this.#keyWords;
    to.set(this.#words.subarray(from, from + this.#valueWords), at);
  }

  /** False if another has it. Twice by the same one is once. */
  lock(slot: number, owner: TwoWords): boolean {
    if (this.isLockedBy(slot, owner)) return true;
    if (this.isLocked(slot)) return false;
    this.#words[slot + OWNER] = owner.high;
    this.#words[slot + OWNER + 1] = owner.low;
    this.locked++;
    return true;
  }

  /** Nothing happens if it is not this one's. */
  unlock(segment: number, key: Int32Array, owner: TwoWords): void {
    const slot = this.#search(segment, key);
    if (slot !== NO_SLOT && this.isLocked(slot) && this.isLockedBy(slot, owner)) this.#unlock(slot);
  }

  /** What was read in the host's table, undefined if there is no such row. Not of a row that is known already. */
  note(slot: number, value: Int32Array | undefined, version: TwoWords): void {
    if (!this.isKnown(slot)) this.#write(slot, value, version);
  }

  /** What a commit has made of a row that its owner has locked: pinned, and unlocked. */
  commit(
    segment: number,
    key: Int32Array,
    owner: TwoWords,
    value: Int32Array | undefined,
    version: TwoWords,
  ): void {
    const slot = this.#search(segment, key);
    assert(slot !== NO_SLOT && this.isLockedBy(slot, owner), "who commits a row has locked it");
    this.#write(slot, value, version);
    this.#words[slot + STATE] += ONE_PIN;
    this.pins++;
    this.#unlock(slot);
  }

  /** The host has applied one of the commits of a row. */
  applied(segment: number, key: Int32Array): void {
    const slot = this.#search(segment, key);
    assert(
      slot !== NO_SLOT && this.isPinned(slot),
      "a row is pinned until the host has applied it",
    );
    this.#words[slot + STATE] -= ONE_PIN;
    this.pins--;
  }

  #write(slot: number, value: Int32Array | undefined, { high, low }: TwoWords): void {
    const words = this.#words;
    words[slot + STATE] |= KNOWN;
    words[slot + VERSION] = high;
    words[slot + VERSION + 1] = low;
    if (value === undefined) {
      words[slot + STATE] &= ~HAS_VALUE;
      return;
    }
    words[slot + STATE] |= HAS_VALUE;
    words.set(value.subarray(0, this.#valueWords), slot + KEY + this.#keyWords);
  }

  #unlock(slot: number): void {
    this.#words[slot + OWNER] = 0;
    this.#words[slot + OWNER + 1] = 0;
    this.locked--;
  }

  #search(segment: number, key: Int32Array): number {
    const words = this.#words;
    let page = words[this.#entryAt(segment) + FIRST_PAGE] - 1;
    while (page >= 0) {
      const at = this.#pageAt(page);
      for (let i = 0; i < NIC_PAGE_SLOTS; i++) {
        const slot = at + PAGE_HEADER_WORDS + i * this.#slotWords;
        if ((words[slot + STATE] & USED) !== 0 && this.#hasKey(slot, key)) return slot;
      }
      page = words[at + NEXT] - 1;
    }
    return NO_SLOT;
  }

  #hasKey(slot: number, key: Int32Array): boolean {
    for (let i = 0; i < this.#keyWords; i++) {
      if (this.#words[slot + KEY + i] !== key[i]) return false;
    }
    return true;
  }

  /** A slot that nobody uses: a free one of the segment's pages, one of a new page, or that of a row that is dropped. */
  #roomIn(segment: number): number {
    const words = this.#words;
    const entry = this.#entryAt(segment);
    for (let page = words[entry + FIRST_PAGE] - 1; page >= 0; ) {
      const at = this.#pageAt(page);
      for (let i = 0; i < NIC_PAGE_SLOTS; i++) {
        const slot = at + PAGE_HEADER_WORDS + i * this.#slotWords;
        if ((words[slot + STATE] & USED) === 0) return slot;
      }
      page = words[at + NEXT] - 1;
    }
    if (this.#free === 0) this.#freePage();
    if (this.#free === 0) return this.#dropOneOf(segment);
    const page = this.#free - 1;
    const at = this.#pageAt(page);
    this.#free = words[at + NEXT];
    words[at + SEGMENT] = segment + 1;
    words[at + NEXT] = words[entry + FIRST_PAGE];
    words[entry + FIRST_PAGE] = page + 1;
    words.fill(0, at + PAGE_HEADER_WORDS, at + this.#pageWords);
    return at + PAGE_HEADER_WORDS;
  }

  /** Frees a page that holds nothing that must stay, if there is one: at most two rounds over all of them. */
  #freePage(): void {
    const words = this.#words;
    for (let look = 0; look < 2 * this.#pages; look++) {
      const page = this.#hand;
      this.#hand = (page + 1) % this.#pages;
      const at = this.#pageAt(page);
      let isHeld = false;
      let isSpared = false;
      let rows = 0;
      for (let i = 0; i < NIC_PAGE_SLOTS; i++) {
        const slot = at + PAGE_HEADER_WORDS + i * this.#slotWords;
        if ((words[slot + STATE] & USED) === 0) continue;
        rows++;
        if (this.isLocked(slot) || this.isPinned(slot)) isHeld = true;
        if ((words[slot + STATE] & REFERENCED) !== 0) isSpared = true;
        words[slot + STATE] &= ~REFERENCED;
      }
      if (isHeld || isSpared) continue;
      this.counters.evictions += rows;
      this.#unlink(page);
      words[at + SEGMENT] = 0;
      words[at + NEXT] = this.#free;
      this.#free = page + 1;
      return;
    }
  }

  /** All pages hold something that must stay: a slot of the segment's own pages, of a row that need not. */
  #dropOneOf(segment: number): number {
    const words = this.#words;
    for (let page = words[this.#entryAt(segment) + FIRST_PAGE] - 1; page >= 0; ) {
      const at = this.#pageAt(page);
      for (let i = 0; i < NIC_PAGE_SLOTS; i++) {
        const slot = at + PAGE_HEADER_WORDS + i * this.#slotWords;
        if (this.isLocked(slot) || this.isPinned(slot)) continue;
        this.counters.evictions++;
        return slot;
      }
      page = words[at + NEXT] - 1;
    }
    return NO_SLOT;
  }

  #unlink(page: number): void {
    const words = this.#words;
    const segment = words[this.#pageAt(page) + SEGMENT] - 1;
    let link = this.#entryAt(segment) + FIRST_PAGE;
    while (words[link] !== page + 1) link = this.#pageAt(words[link] - 1) + NEXT;
    words[link] = words[this.#pageAt(page) + NEXT];
  }

  #entryAt(segment: number): number {
    assert(segment >= 0 && segment < this.#segments, "the index has an entry for each segment");
    return segment * ENTRY_WORDS;
  }

  #pageAt(page: number): number {
    return this.#pagesAt + page * this.#pageWords;
  }
}
