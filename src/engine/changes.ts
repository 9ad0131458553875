/**
 * The row changes of a transaction, for those who follow a table (docs/WATCH.md). Records in the journal
 * say which words of memory a commit writes; what that means for rows cannot be told from them. So a
 * table that is watched adds its changes to the record, as entries behind those of the objects:
 *
 *   word 0  CHANGE_REGION, where an object's entry has its region
 *   word 1  number of the table in the catalogue
 *   word 2  kind: CHANGE_INSERT, CHANGE_UPDATE, CHANGE_DELETE
 *   word 3  format: the fields that the row was encoded by (tables/changes/format.ts)
 *   word 4  words of the row, and these: the row after the change, or the one that was deleted
 *
 * These entries have the shape of the others, so journal and log carry them unseen. They are the same
 * record as the objects: a change is in the log if and only if its commit is. Whoever locks, installs, rolls
 * forward or redoes a record passes over them; no step of a commit depends on them, so they add no crash
 * point.
 */

import { SituError } from "../runtime/errors.ts";
import { KEPT_ARENA_BYTES, MAX_ARENA_BYTES } from "../runtime/limits.ts";

/** No region has this id: see the relations in runtime/limits.ts. */
export const CHANGE_REGION = 0xffff;
const CHANGE_HEADER_WORDS = 5;

export const CHANGE_INSERT = 1;
export const CHANGE_UPDATE = 2;
export const CHANGE_DELETE = 3;

const FIRST_WORDS = 1_024;

/** The changes of one transaction, as they will lie in its record, in the order of its operations. */
export class ChangeList {
  words = new Int32Array(0);
  /** Words in use. */
  end = 0;
  count = 0;

  /** Adds a change whose row lies in the first words of `row`. */
  add(table: number, kind: number, format: number, row: Int32Array, rowWords: number): void {
    const at = this.end;
    const end = at + CHANGE_HEADER_WORDS + rowWords;
    if (end > this.words.length) this.#grow(end);
    const { words } = this;
    words[at] = CHANGE_REGION;
    words[at + 1] = table;
    words[at + 2] = kind;
    words[at + 3] = format;
    words[at + 4] = rowWords;
    for (let i = 0; i < rowWords; i++) words[at + CHANGE_HEADER_WORDS + i] = row[i];
    this.end = end;
    this.count++;
  }

  clear(): void {
    this.end = 0;
    this.count = 0;
    if (this.words.length * 4 > KEPT_ARENA_BYTES) this.words = new Int32Array(0);
  }

  #grow(needed: number): void {
    if (needed * 4 > MAX_ARENA_BYTES) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `the transaction changes rows of watched tables by more than ${MAX_ARENA_BYTES} bytes: split ` +
          `it into smaller ones`,
      );
    }
    let length = Math.max(2 * this.words.length, FIRST_WORDS);
    while (length < needed) length *= 2;
    const larger = new Int32Array(length);
    larger.set(this.words.subarray(0, this.end));
    this.words = larger;
  }
}
