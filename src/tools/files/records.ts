/**
 * The records of a batch (engine/journal.ts tells their layout), for people who look into a log,
 * and for the check whether they make sense. A batch has a checksum, so what makes none was written
 * so.
 */

import {
  CHANGE_DELETE,
  CHANGE_INSERT,
  CHANGE_REGION,
  CHANGE_UPDATE,
} from "../../engine/changes.ts";
import {
  CLASS_SHIFT,
  EDITED,
  RECORD_ENTRY_WORDS,
  RECORD_WORDS,
  REGION_MASK,
} from "../../engine/journal.ts";
import { epochOf, isLater, sequenceOf, slotOf } from "../../engine/tid.ts";
import type { BatchContent } from "../../log/segments/format.ts";
import type { Geometry } from "../../memory/control.ts";
import { ALLOCATED, HEADER_WORDS } from "../../memory/object.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";

export interface RecordedObject {
  readonly regionId: number;
  /** Of its header, in the region. */
  readonly word: number;
  /** Bytes of the cell that was allocated; null if it was there before. */
  readonly cellBytes: number | null;
  readonly isFreed: boolean;
  readonly incarnation: number;
  /** The data words that were changed; if the record has edits instead, 0, and the words of these. */
  readonly firstWord: number;
  readonly words: number;
  /** Whether the record says how the words have changed, instead of the words (engine/edits.ts). */
  readonly isEdited: boolean;
}

/** What a transaction did to a row of a watched table. */
export interface RecordedChange {
  /** The number of the table in the catalogue. */
  readonly table: number;
  readonly type: string;
  /** Words of the row. */
  readonly words: number;
}

export interface LogRecord {
  readonly tid: { readonly epoch: number; readonly sequence: number; readonly slot: number };
  readonly bytes: number;
  readonly objects: readonly RecordedObject[];
  /** Left out if no table that it changes is watched. */
  readonly changes?: readonly RecordedChange[];
}

const CHANGE_TYPES: Readonly<Record<number, string>> = {
  [CHANGE_INSERT]: "insert",
  [CHANGE_UPDATE]: "update",
  [CHANGE_DELETE]: "delete",
};

/** The records of a payload that `recordsFault` has nothing to say about. */
export function decodeRecords(words: Int32Array): LogRecord[] {
  const records: LogRecord[] = [];
  for (let at = 0; at < words.length; at += words[at]) {
    const [high, low] = [words[at + 2], words[at + 3]];
    const objects: RecordedObject[] = [];
    const changes: RecordedChange[] = [];
    for (let entry = at + RECORD_WORDS; entry < at + words[at]; ) {
      if (words[entry] === CHANGE_REGION) changes.push(decodeChange(words, entry));
      else objects.push(decodeObject(words, entry));
      entry += RECORD_ENTRY_WORDS + words[entry + 4];
    }
    const tid = { epoch: epochOf(high, low), sequence: sequenceOf(low), slot: slotOf(low) };
    const told = changes.length === 0 ? {} : { changes };
    records.push({ tid, bytes: 4 * words[at], objects, ...told });
  }
  return records;
}

function decodeChange(words: Int32Array, at: number): RecordedChange {
  return { table: words[at + 1], type: CHANGE_TYPES[words[at + 2]], words: words[at + 4] };
}

function decodeObject(words: Int32Array, at: number): RecordedObject {
  const shape = words[at] >>> CLASS_SHIFT;
  const incarnation = words[at + 2];
  return {
    regionId: words[at] & REGION_MASK,
    word: words[at + 1],
    cellBytes: shape === 0 ? null : CELL_BYTES[shape - 1],
    isFreed: (incarnation & ALLOCATED) === 0,
    incarnation,
    firstWord: words[at + 3] === EDITED ? 0 : words[at + 3],
    words: words[at + 4],
    isEdited: words[at + 3] === EDITED,
  };
}

/** What makes no sense about the records of a batch, or undefined. */
export function recordsFault(
  words: Int32Array,
  { after, last, records }: BatchContent,
  geometry: Geometry,
): string | undefined {
  /** The last TID of each slot. */
  const lasts = new Map<number, { high: number; low: number }>();
  let count = 0;
  for (let at = 0; at < words.length; count++) {
    const length = words[at];
    const where = `its record ${count}`;
    if (length < RECORD_WORDS || length > words.length - at) {
      return `${where} has ${length} words, and ${words.length - at} are left`;
    }
    const [high, low] = [words[at + 2], words[at + 3]];
    const epoch = epochOf(high, low);
    if (epoch <= after || epoch > last) {
      return `${where} is of epoch ${epoch}, the batch of those after ${after} up to ${last}`;
    }
    const before = lasts.get(slotOf(low));
    if (before !== undefined && !isLater(high, low, before.high, before.low)) {
      return `${where} of slot ${slotOf(low)} is not later than the one before it`;
    }
    lasts.set(slotOf(low), { high, low });
    const fault = objectsFault(words, at, geometry);
    if (fault !== undefined) return `${where}: ${fault}`;
    at += length;
  }
  return count === records ? undefined : `it has ${count} records, its header says ${records}`;
}

function objectsFault(words: Int32Array, record: number, geometry: Geometry): string | undefined {
  const end = record + words[record];
  const entries = words[record + 1];
  let at = record + RECORD_WORDS;
  for (let entry = 0; entry < entries; entry++) {
    if (at + RECORD_ENTRY_WORDS > end) return `it ends within object ${entry} of ${entries}`;
    const fault = objectFault(words, at, geometry);
    if (fault !== undefined) return `object ${entry}: ${fault}`;
    at += RECORD_ENTRY_WORDS + words[at + 4];
    if (at > end) return `it ends within object ${entry} of ${entries}`;
  }
  return at === end ? undefined : `its ${entries} objects end at word ${at - record}`;
}

function objectFault(words: Int32Array, at: number, geometry: Geometry): string | undefined {
  if (words[at] === CHANGE_REGION) return changeFault(words, at);
  const regionId = words[at] & REGION_MASK;
  const shape = words[at] >>> CLASS_SHIFT;
  const isEdited = words[at + 3] === EDITED;
  const word = words[at + 1];
  const first = isEdited ? 0 : words[at + 3];
  const count = isEdited ? 0 : words[at + 4];
  if (isEdited && words[at + 4] < 0) return `its edits have ${words[at + 4]} words`;
  if (regionId >= geometry.regions) return `it lies in region ${regionId} of ${geometry.regions}`;
  if (shape > CELL_BYTES.length) return `its size class is ${shape - 1}`;
  const isInside =
    word >= 0 &&
    first >= 0 &&
    count >= 0 &&
    word + HEADER_WORDS + first + count <= geometry.regionBytes / 4;
  return isInside ? undefined : `its words ${first} to ${first + count} at ${word} are nowhere`;
}

function changeFault(words: Int32Array, at: number): string | undefined {
  if (CHANGE_TYPES[words[at + 2]] === undefined) return `it is a change of kind ${words[at + 2]}`;
  return words[at + 4] >= 0 ? undefined : `it is a change with ${words[at + 4]} words`;
}
