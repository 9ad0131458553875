/**
 * Reads of a graph outside of transactions: one look at one object, written nowhere (FaRM §4.4). `objGet` and
 * `assocCount` look at the object, the other calls at the head of a list, where its newest edges are; either is found
 * by a fat pointer that this process remembers. A head that has been replaced, or freed, has another incarnation: then
 * the object is asked, and if that has moved, the index. What the head does not hold, the caller reads in a transaction.
 */

import type { Executor } from "../../engine/executor.ts";
import { regionIdOf, wordOf } from "../../memory/address.ts";
import {
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockMode,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import type { Region } from "../../memory/store-memory.ts";
import type { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import { LOOKUP_ATTEMPTS } from "../../runtime/limits.ts";
import {
  FIRST_ENTRY,
  KEY_WORDS,
  LAST_TIME,
  LEAVING,
  LENGTH_SHIFT,
  MARK,
  numberAt,
  OBJECT_SLOTS,
  PRESENT,
  SLOT_WORDS,
  SPREAD,
  SPREAD_FIRST_ENTRY,
} from "./layout.ts";
import type { IndexRow } from "./objects.ts";
import { RememberedPlaces } from "./places.ts";

/** An edge of a list. */
export interface FoundEdge {
  readonly id2: number;
  readonly time: number;
  readonly data: unknown;
}

/** An object that was found. */
export interface FoundObject {
  readonly kind: number;
  readonly data: unknown;
}

/** Decodes the data of an edge of one type, or of an object of one kind. */
export type Decode = (views: Views, at: number, words: number) => unknown;

/** Which edges of a list are wanted: from this position on, not newer than `high`, not older than `low`. */
export interface Wanted {
  readonly position: number;
  readonly limit: number;
  readonly high: number;
  readonly low: number;
  /** The only targets that count, if they do not all; `limit` is how many they are. */
  readonly targets: readonly number[] | undefined;
}

/** Data words of an object that no cell can hold. */
const TOO_MANY_WORDS = 1 << 18;

export class LockFreeReads {
  readonly objects: RememberedPlaces;
  readonly #heads: (RememberedPlaces | undefined)[] = [];
  readonly #executor: Executor;
  readonly #find: (id: number) => IndexRow | undefined;
  /** Objects and heads that were looked at, for those who count reads. */
  reads = 0;

  constructor(executor: Executor, find: (id: number) => IndexRow | undefined) {
    this.#executor = executor;
    this.#find = find;
    this.objects = new RememberedPlaces(executor.slabs.blocks);
  }

  /** The object with an id; undefined if there is none. */
  object(id: number, codecs: readonly { readonly decode: Decode }[]): FoundObject | undefined {
    const { objects } = this;
    for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
      if (!objects.recall(id) && !this.#ask(id)) return undefined;
      const region = this.#executor.memory.region(objects.regionId);
      const { word } = objects;
      const { i32 } = region;
      const high = this.#look(region, word);
      const low = i32[word + VERSION_LOW];
      if (!this.#isObject(i32, word, id)) {
        objects.forget(id);
        continue;
      }
      const at = word + HEADER_WORDS;
      const header = i32[at];
      const kind = header & 0xff;
      const state = (header >>> 16) & 0xff;
      const dataAt = at + OBJECT_SLOTS + ((header >>> 8) & 0xff) * SLOT_WORDS;
      const words = i32[at + 1];
      let data: unknown;
      if (state === PRESENT && words >>> 0 < TOO_MANY_WORDS && dataAt + words <= i32.length) {
        data = codecs[kind]?.decode(region, dataAt, words);
      }
      if (!unchanged(i32, word, high, low) || !objects.isBlock()) continue;
      return state === PRESENT ? { kind, data } : undefined;
    }
    return kept(id);
  }

  /** The edges of a type that an object has. */
  count(id: number, type: number): number {
    return this.#slot(id, type, false);
  }

  /** Edges of a list; undefined if its head does not hold all that are wanted. */
  edges(id: number, type: number, wanted: Wanted, decode: Decode): FoundEdge[] | undefined {
    const heads = this.#headsOf(type);
    for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
      if (!heads.recall(id)) {
        if (this.#slot(id, type, true) === 0) return [];
        if (!heads.recall(id)) continue;
      }
      const region = this.#executor.memory.region(heads.regionId);
      const { word } = heads;
      const { i32 } = region;
      const high = this.#look(region, word);
      const low = i32[word + VERSION_LOW];
      if (i32[word + INCARNATION] !== heads.incarnation) {
        heads.forget(id);
        continue;
      }
      const found: FoundEdge[] = [];
      const isWhole = collect(region, word + HEADER_WORDS, wanted, decode, found);
      if (!unchanged(i32, word, high, low) || !heads.isBlock()) continue;
      return isWhole ? found : undefined;
    }
    return undefined;
  }

  /** The edge to a target; null if there is none, undefined if the head cannot tell. */
  edge(id: number, type: number, id2: number, decode: Decode): FoundEdge | null | undefined {
    const heads = this.#headsOf(type);
    for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
      if (!heads.recall(id)) {
        if (this.#slot(id, type, true) === 0) return null;
        if (!heads.recall(id)) continue;
      }
      const region = this.#executor.memory.region(heads.regionId);
      const { word } = heads;
      const { i32 } = region;
      const high = this.#look(region, word);
      const low = i32[word + VERSION_LOW];
      if (i32[word + INCARNATION] !== heads.incarnation) {
        heads.forget(id);
        continue;
      }
      const at = word + HEADER_WORDS;
      const end = endOf(i32, at, id2);
      const edge = end < 0 ? null : edgeAt(region, end, decode);
      const isSpread = (i32[at] & SPREAD) !== 0;
      if (!unchanged(i32, word, high, low) || !heads.isBlock()) continue;
      return edge === null && isSpread ? undefined : edge;
    }
    return undefined;
  }

  #headsOf(type: number): RememberedPlaces {
    this.#heads[type] ??= new RememberedPlaces(this.#executor.slabs.blocks);
    return this.#heads[type];
  }

  /** The count of a list, 0 if there is none; and remembers its head, if that is wanted. */
  #slot(id: number, type: number, remembers: boolean): number {
    const { objects } = this;
    for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
      if (!objects.recall(id) && !this.#ask(id)) return 0;
      const region = this.#executor.memory.region(objects.regionId);
      const { word } = objects;
      const { i32 } = region;
      const high = this.#look(region, word);
      const low = i32[word + VERSION_LOW];
      if (!this.#isObject(i32, word, id)) {
        objects.forget(id);
        continue;
      }
      const at = word + HEADER_WORDS;
      const header = i32[at];
      const isLeaving = ((header >>> 16) & 0xff) === LEAVING;
      const end = at + OBJECT_SLOTS + ((header >>> 8) & 0xff) * SLOT_WORDS;
      let slot = at + OBJECT_SLOTS;
      while (slot < end && i32[slot] >>> 16 !== type) slot += SLOT_WORDS;
      const found = slot < end && !isLeaving;
      const regionId = (i32[slot] & 0xffff) - 1;
      const headWord = i32[slot + 1];
      const incarnation = i32[slot + 2];
      const count = found ? i32[slot + 3] : 0;
      if (!unchanged(i32, word, high, low) || !objects.isBlock()) continue;
      if (found && remembers) this.#headsOf(type).remember(id, regionId, headWord, incarnation);
      return count;
    }
    return kept(id);
  }

  #isObject(i32: Int32Array, word: number, id: number): boolean {
    const at = word + HEADER_WORDS;
    return (
      i32[word + INCARNATION] === this.objects.incarnation &&
      i32[at] >>> 24 === MARK &&
      numberAt(i32, at + 2) === id
    );
  }

  /** The first look at an object; the upper half of its version. */
  #look(region: Region, word: number): number {
    this.reads++;
    const { i32 } = region;
    if (lockMode(loadAcquire(i32, word + LOCK)) === INSTALLING) {
      this.#executor.awaitReadable(region, word);
    }
    const high = loadAcquire(i32, word + VERSION_HIGH);
    loadAcquire(i32, word + VERSION_LOW);
    return high;
  }

  /** Asks the index where an object is. */
  #ask(id: number): boolean {
    const row = this.#find(id);
    if (row === undefined || row.at === null) return false;
    const { address, incarnation } = row.at;
    this.objects.remember(id, regionIdOf(address), wordOf(address), incarnation);
    return this.objects.recall(id);
  }
}

function kept(id: number): never {
  throw new SituError("SITU_CONFLICT", `object ${id} kept changing while it was read`);
}

/** Where the entries of the element at `at` end, whatever lies there. */
function usedEnd(i32: Int32Array, at: number): number {
  return Math.min(at + (i32[at + 1] & 0xffff), i32.length);
}

/** Collects the edges that are wanted; false if the element ends before, and the list may go on. */
function collect(
  region: Region,
  at: number,
  { position, limit, high, low, targets }: Wanted,
  decode: Decode,
  found: FoundEdge[],
): boolean {
  const { i32 } = region;
  const isSpread = (i32[at] & SPREAD) !== 0;
  const least = at + (isSpread ? SPREAD_FIRST_ENTRY : FIRST_ENTRY);
  let skip = position;
  for (let end = usedEnd(i32, at); end - KEY_WORDS >= least; ) {
    if (found.length === limit) return true;
    const key = end - KEY_WORDS;
    const length = i32[key] >>> LENGTH_SHIFT;
    if (length < KEY_WORDS || end - length < least) break;
    const time = LAST_TIME - numberAt(i32, key);
    if (time < low) return true;
    const id2 = numberAt(i32, key + 2);
    if (time <= high && (targets === undefined || targets.includes(id2))) {
      if (skip > 0) skip--;
      else {
        const data = decode(region, end - length, length - KEY_WORDS);
        found.push({ id2, time, data });
      }
    }
    end -= length;
  }
  return !isSpread || found.length === limit;
}

/** Where the entry of the edge to a target ends, or -1. */
function endOf(i32: Int32Array, at: number, id2: number): number {
  const least = at + ((i32[at] & SPREAD) !== 0 ? SPREAD_FIRST_ENTRY : FIRST_ENTRY);
  for (let end = usedEnd(i32, at); end - KEY_WORDS >= least; ) {
    const key = end - KEY_WORDS;
    const length = i32[key] >>> LENGTH_SHIFT;
    if (length < KEY_WORDS || end - length < least) return -1;
    if (numberAt(i32, key + 2) === id2) return end;
    end -= length;
  }
  return -1;
}

function edgeAt(region: Region, end: number, decode: Decode): FoundEdge {
  const { i32 } = region;
  const key = end - KEY_WORDS;
  const length = i32[key] >>> LENGTH_SHIFT;
  const data = decode(region, end - length, length - KEY_WORDS);
  return { id2: numberAt(i32, key + 2), time: LAST_TIME - numberAt(i32, key), data };
}
