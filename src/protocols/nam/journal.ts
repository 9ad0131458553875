/**
 * The journal of a thread (NAM-DB §6.2): what the transaction that it is about to commit writes, and where. It goes
 * to more than one memory server before the first lock is taken, so that everything that a dead thread may have
 * locked or installed is known. The next transaction writes over it: the one before is published then, or
 * everything of it is undone.
 *
 *   word 0      commit timestamp
 *   word 1      slot
 *   words 2, 3  checksum, as in a body
 *   word 4      words in all
 *   word 5      how many records
 *   word 6      incarnation of the pair that wrote it: tells one who asks later whether it is its own
 *   word 7      0
 *   then, for each: table, range and cell within it, header before (two words), and the new body
 *
 * The paper writes statements with their parameters, which a recovering server runs again. The values themselves are as long, and
 * need nobody who knows the statements.
 */

import { SituError } from "../../runtime/errors.ts";
import { type CellPlace, isWhole, type NamTable, sign } from "./layout.ts";

const WORDS_AT = 4;
const COUNT_AT = 5;
const INCARNATION_AT = 6;
const FIRST_RECORD_AT = 8;
const RECORD_WORDS = 5;

/** What tells of when a journal is. */
export const JOURNAL_HEAD_WORDS = FIRST_RECORD_AT;

/** By its first words; it may be torn all the same. */
export function lengthOfJournal(head: Int32Array): number {
  return head[WORDS_AT];
}

export interface JournalRecord {
  readonly table: NamTable;
  /** Its primary. */
  readonly server: number;
  readonly cell: number;
  /** Its other copies. */
  readonly others: readonly CellPlace[];
  /** The header that the record had, unlocked; both 0 if it is new. */
  readonly beforeLow: number;
  readonly beforeHigh: number;
  readonly body: Int32Array;
}

export interface Journal {
  readonly timestamp: number;
  readonly slot: number;
  readonly incarnation: number;
  readonly records: readonly JournalRecord[];
}

/** Throws if records of these tables do not fit a journal. */
export function checkJournal(tables: readonly NamTable[], most: number): void {
  let words = FIRST_RECORD_AT;
  for (const { bodyWords } of tables) words += RECORD_WORDS + bodyWords;
  if (words <= most) return;
  throw new SituError(
    "SITU_TOO_LARGE",
    `a transaction writes ${words * 4} bytes, and a journal has room for ${most * 4}`,
  );
}

export function encodeJournal({ timestamp, slot, incarnation, records }: Journal): Int32Array {
  let words = FIRST_RECORD_AT;
  for (const { body } of records) words += RECORD_WORDS + body.length;
  const out = new Int32Array(words);
  out[0] = timestamp;
  out[1] = slot;
  out[WORDS_AT] = words;
  out[COUNT_AT] = records.length;
  out[INCARNATION_AT] = incarnation;
  let at = FIRST_RECORD_AT;
  for (const { table, server, cell, beforeLow, beforeHigh, body } of records) {
    const place = table.rangeOf({ server, cell });
    out.set([table.id, place.range, place.cell, beforeLow, beforeHigh], at);
    out.set(body, at + RECORD_WORDS);
    at += RECORD_WORDS + body.length;
  }
  sign(out, 0, words);
  return out;
}

/** Undefined if it was not written to its end, or never. Throws if it is about a table that is not known here. */
export function decodeJournal(words: Int32Array, tables: readonly NamTable[]): Journal | undefined {
  const length = words[WORDS_AT];
  if (length < FIRST_RECORD_AT || length > words.length || !isWhole(words, 0, length)) {
    return undefined;
  }
  const records: JournalRecord[] = [];
  let at = FIRST_RECORD_AT;
  for (let left = words[COUNT_AT]; left > 0; left--) {
    const [id, range, cell, beforeLow, beforeHigh] = words.subarray(at, at + RECORD_WORDS);
    const table = tables[id];
    if (table === undefined) {
      throw new SituError(
        "SITU_UNKNOWN_TABLE",
        `a journal is about table ${id}, which is not known here`,
      );
    }
    const body = words.slice(at + RECORD_WORDS, at + RECORD_WORDS + table.bodyWords);
    const [primary, ...others] = table.placesOf(range, cell);
    records.push({ table, ...primary, others, beforeLow, beforeHigh, body });
    at += RECORD_WORDS + table.bodyWords;
  }
  return { timestamp: words[0] >>> 0, slot: words[1], incarnation: words[INCARNATION_AT], records };
}
