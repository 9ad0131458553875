/**
 * The keys of YCSB's records: "user" and the hash of the record's number (CoreWorkload.buildKeyName
 * with insertorder=hashed). So records that follow each other in number are anywhere in key order.
 *
 * Records that are inserted in a run have numbers of their own in each lane: lanes in several
 * processes then never insert the same key, and know nothing of each other.
 */

import { writeFnv64 } from "../random/fnv.ts";

/** How many records a lane can insert before it would meet the numbers of the next one. */
const NUMBERS_PER_LANE = 2 ** 28;

const scratch = Buffer.alloc(32);
const PREFIX_LENGTH = scratch.write("user", "latin1");

export function keyOf(number: number): string {
  // Through a buffer: what + makes is a pair of strings, to be joined when it is first used.
  return scratch.toString("latin1", 0, writeFnv64(number, scratch, PREFIX_LENGTH));
}

/** The key of a lane's insert; inserts of a lane count from 0. */
export function insertedKey(records: number, lane: number, insert: number): string {
  return keyOf(records + lane * NUMBERS_PER_LANE + insert);
}

export function keysOf(records: number): readonly string[] {
  const keys = new Array<string>(records);
  for (let number = 0; number < records; number++) keys[number] = keyOf(number);
  return keys;
}
