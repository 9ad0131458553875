/**
 * The ring of one slot: the old versions that its executor has kept last (NAM-DB §5.1). Only the
 * owner appends, so keeping a version takes no lock and no compare-and-swap. Places count units and
 * only grow; they are compared in a circle.
 *
 *   word 0    head: where the next version goes. Written by the owner
 *   word 1    tail: the first version that is still here. Written by whoever is the keeper
 *   word 64…  the index: for each hash the place of the last version with it
 *   then      the ring
 *
 * A version is written, then the head moves, then the index leads to it: an owner who dies in between
 * leaves words that nobody is led to. The tail moves before any word behind it is written anew,
 * so a reader who finds the tail still at or before its version has read what was there.
 */

import { placeHash } from "../../memory/address.ts";
import { loadAcquire, loadAfterLoads, storeRelease } from "../../memory/ordering.ts";
import type { Views } from "../../memory/views.ts";
import { RING_HEADER_BYTES, VERSION_RING_BUCKETS } from "../../runtime/limits.ts";
import {
  FILLING,
  isSeenBy,
  type Kept,
  NEXT,
  PLACE,
  REGION_ID,
  UNIT_WORDS,
  UNITS,
  unitsFor,
} from "./version.ts";

const HEAD = 0;
const TAIL = 1;
const INDEX = 64;
const RING = RING_HEADER_BYTES / 4;
const BUCKET_MASK = VERSION_RING_BUCKETS - 1;

export class VersionRing {
  readonly i32: Int32Array;
  /** Units that the ring holds, a power of two. */
  readonly capacity: number;
  /** The place of the version that `find` found. */
  foundPlace = 0;

  constructor(views: Views) {
    this.i32 = views.i32;
    this.capacity = (views.i32.length - RING) / UNIT_WORDS;
  }

  get head(): number {
    return loadAcquire(this.i32, HEAD);
  }

  get tail(): number {
    return loadAcquire(this.i32, TAIL);
  }

  get usedUnits(): number {
    return (this.head - this.tail) | 0;
  }

  /** Where a place lies. */
  at(place: number): number {
    return RING + (place & (this.capacity - 1)) * UNIT_WORDS;
  }

  /** Appends a version; false if there is no room. Only for the owner. */
  append(kept: Kept): boolean {
    const { i32, capacity } = this;
    const units = unitsFor(kept.dataWords);
    let head = i32[HEAD];
    const toEnd = capacity - (head & (capacity - 1));
    const filling = units > toEnd ? toEnd : 0;
    if (((head - loadAcquire(i32, TAIL)) | 0) + filling + units > capacity) return false;
    if (filling > 0) {
      const at = this.at(head);
      i32[at + UNITS] = filling;
      i32[at + REGION_ID] = FILLING;
      head = (head + filling) | 0;
      storeRelease(i32, HEAD, head);
    }
    const bucket = INDEX + (placeHash(kept.regionId, kept.word) & BUCKET_MASK);
    kept.write(i32, this.at(head), head, i32[bucket]);
    storeRelease(i32, HEAD, (head + units) | 0);
    storeRelease(i32, bucket, head);
    return true;
  }

  /**
   * Where the version of an object lies that a snapshot with this limit sees; -1 if it is not
   * here. What is read there must be confirmed with `isHere(foundPlace)`.
   */
  find(regionId: number, word: number, limitHigh: number, limitLow: number): number {
    const { i32 } = this;
    let place = loadAcquire(i32, INDEX + (placeHash(regionId, word) & BUCKET_MASK));
    // Each step goes to an earlier place; there are at most as many as units.
    for (let step = 0; step < this.capacity && this.isHere(place); step++) {
      const at = this.at(place);
      const next = i32[at + NEXT];
      const found = isSeenBy(i32, at, regionId, word, limitHigh, limitLow);
      if (i32[at + PLACE] !== place || !this.isHere(place)) return -1;
      if (found) {
        this.foundPlace = place;
        return at;
      }
      if (((place - next) | 0) <= 0) return -1;
      place = next;
    }
    return -1;
  }

  /** Whether the version at this place has not been given up. */
  isHere(place: number): boolean {
    const tail = loadAfterLoads(this.i32, TAIL);
    return ((place - tail) | 0) >= 0 && ((this.head - place) | 0) > 0;
  }

  /** Gives up all that lies before a place. Only for the keeper. */
  giveUp(to: number): void {
    Atomics.store(this.i32, TAIL, to);
  }
}
