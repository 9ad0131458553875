/** Which regions a store must have before it is rebuilt: they are created by one, for all threads. */

import { CHANGE_REGION } from "../../src/engine/changes.ts";
import { RECORD_ENTRY_WORDS, RECORD_WORDS, REGION_MASK } from "../../src/engine/journal.ts";
import { ENTRY_UNIT, ENTRY_WORDS } from "../../src/log/checkpoint/format.ts";
import type { Checkpoint } from "../../src/log/checkpoint/reader.ts";
import { UNIT_BYTES } from "../../src/runtime/limits.ts";

/** The highest region id that the records of a batch speak of; -1 if there are none. */
export function highestRegionIn(words: Int32Array): number {
  let highest = -1;
  for (let record = 0; record < words.length; ) {
    const length = words[record];
    // What is wrong with a record is for the one to say who applies it.
    if (!(length >= RECORD_WORDS && length <= words.length - record)) break;
    const end = record + length;
    for (let at = record + RECORD_WORDS; at + RECORD_ENTRY_WORDS <= end; ) {
      if (words[at] !== CHANGE_REGION) highest = Math.max(highest, words[at] & REGION_MASK);
      at += RECORD_ENTRY_WORDS + Math.max(words[at + 4], 0);
    }
    record = end;
  }
  return highest;
}

/** The highest region id in which a checkpoint has a block; -1 if it has none. */
export function highestRegionOf(checkpoint: Checkpoint): number {
  const { words, entries, info } = checkpoint;
  if (entries === 0) return -1;
  // The index is in order.
  const unit = words[(entries - 1) * ENTRY_WORDS + ENTRY_UNIT];
  return Math.floor((unit * UNIT_BYTES) / info.geometry.regionBytes);
}
