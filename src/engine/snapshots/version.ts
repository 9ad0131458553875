/**
 * An old version of an object, as it lies in a ring or in the overflow area, in units of eight
 * words:
 *
 *   word 0       units
 *   word 1       its own place: whoever follows an outdated index finds another number here
 *   word 2       the next one with the same hash
 *   words 3–4    the object: region id (-1: only filling; with EARLY, see below), word of its header
 *   words 5–6    the TID of this version
 *   words 7–8    the TID of its successor: snapshots between the two need it
 *   word 9       incarnation word
 *   word 10      data words, which follow from word 12 on
 *   word 11      in the overflow area: the generation of the chunk it was written in
 *
 * A version is written once and never changed but for word 2. It may be there twice: whoever keeps
 * it and dies before the commit leaves a copy, the same words with a shorter span.
 *
 * EARLY in the region id marks what only snapshots of a cluster see (docs/decisions/0071): the *new* version of an
 * object, from the epoch in which its transaction is visible in the cluster up to the TID that it has here.
 */

import { INCARNATION as HEADER_INCARNATION, HEADER_WORDS } from "../../memory/object.ts";
import { copyWords } from "../journal.ts";
import { isLater } from "../tid.ts";
import type { Limits } from "./registry.ts";

export const UNIT_WORDS = 8;
export const UNITS = 0;
export const PLACE = 1;
export const NEXT = 2;
export const REGION_ID = 3;
export const WORD = 4;
export const VERSION_HIGH = 5;
export const VERSION_LOW = 6;
export const SUCCESSOR_HIGH = 7;
export const SUCCESSOR_LOW = 8;
export const INCARNATION = 9;
export const DATA_WORDS = 10;
export const STAMP = 11;
export const DATA = 12;
export const FILLING = -1;
/** Beyond all region ids. */
export const EARLY = 1 << 20;

export function unitsFor(dataWords: number): number {
  return Math.ceil((DATA + dataWords) / UNIT_WORDS);
}

/** Units of the version at a place, of which `most` are left; `most` if the word makes no sense. */
export function unitsAt(i32: Int32Array, at: number, most: number): number {
  const units = i32[at + UNITS];
  return units > 0 && units <= most ? units : most;
}

/** What is to be kept: an object that is locked, and about to get a new version. */
export class Kept {
  i32: Int32Array = new Int32Array(0);
  regionId = 0;
  word = 0;
  versionHigh = 0;
  versionLow = 0;
  successorHigh = 0;
  successorLow = 0;
  dataWords = 0;

  write(to: Int32Array, at: number, place: number, next: number): void {
    to[at + UNITS] = unitsFor(this.dataWords);
    to[at + PLACE] = place;
    to[at + NEXT] = next;
    to[at + REGION_ID] = this.regionId;
    to[at + WORD] = this.word;
    to[at + VERSION_HIGH] = this.versionHigh;
    to[at + VERSION_LOW] = this.versionLow;
    to[at + SUCCESSOR_HIGH] = this.successorHigh;
    to[at + SUCCESSOR_LOW] = this.successorLow;
    to[at + INCARNATION] = this.i32[this.word + HEADER_INCARNATION];
    to[at + DATA_WORDS] = this.dataWords;
    copyWords(this.i32, this.word + HEADER_WORDS, to, at + DATA, this.dataWords);
  }
}

/** The same for what an object is about to become: its data as it is, with what the transaction changes. */
export class KeptEarly extends Kept {
  /** Changes the copy of the data, which begins at a word. */
  change: (to: Int32Array, at: number) => void = () => {};
  incarnation = 0;

  override write(to: Int32Array, at: number, place: number, next: number): void {
    super.write(to, at, place, next);
    this.change(to, at + DATA);
    to[at + INCARNATION] = this.incarnation;
  }
}

export function isNeeded(i32: Int32Array, at: number, limits: Limits): boolean {
  return limits.need(
    i32[at + VERSION_HIGH],
    i32[at + VERSION_LOW],
    i32[at + SUCCESSOR_HIGH],
    i32[at + SUCCESSOR_LOW],
  );
}

/** Whether this is the version of an object that a snapshot with this limit sees. */
export function isSeenBy(
  i32: Int32Array,
  at: number,
  regionId: number,
  word: number,
  limitHigh: number,
  limitLow: number,
): boolean {
  return (
    i32[at + WORD] === word &&
    i32[at + REGION_ID] === regionId &&
    !isLater(i32[at + VERSION_HIGH], i32[at + VERSION_LOW], limitHigh, limitLow) &&
    isLater(i32[at + SUCCESSOR_HIGH], i32[at + SUCCESSOR_LOW], limitHigh, limitLow)
  );
}
