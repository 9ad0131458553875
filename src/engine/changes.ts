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

import { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import { KEPT_ARENA_BYTES, MAX_ARENA_BYTES } from "../runtime/limits.ts";

/** No region has this id: see the relations in runtime/limits.ts. */
export const CHANGE_REGION = 0xffff;
const CHANGE_HEADER_WORDS = 5;

export const CHANGE_INSERT = 1;
export const CHANGE_UPDATE = 2;
export const CHANGE_DELETE = 3;

const FIRST_BYTES = 4_096;

/** The changes of one transaction, as they will lie in its record, in the order of its operations. */
export class ChangeList {
  readonly views = new Views(new ArrayBuffer(0));
  /** Words in use. */
  end = 0;
  count = 0;
  /** Words of the row that was taken last. */
  #rowWords = 0;

  /**
   * Copies the row of the next change, and returns where it lies in `views`: it may be patched there. It is
   * no change before `add`; until then another row may take its place.
   */
  take({ i32: from }: Views, at: number, rowWords: number): number {
    const to = this.end + CHANGE_HEADER_WORDS;
    if (to + rowWords > this.views.i32.length) this.#grow(to + rowWords);
    const { i32 } = this.views;
    for (let i = 0; i < rowWords; i++) i32[to + i] = from[at + i];
    this.#rowWords = rowWords;
    return to;
  }

  /** Adds a change with the row that was taken. */
  add(table: number, kind: number, format: number): void {
    const at = this.end;
    const { i32 } = this.views;
    i32[at] = CHANGE_REGION;
    i32[at + 1] = table;
    i32[at + 2] = kind;
    i32[at + 3] = format;
    i32[at + 4] = this.#rowWords;
    this.end = at + CHANGE_HEADER_WORDS + this.#rowWords;
    this.count++;
  }

  clear(): void {
    this.end = 0;
    this.count = 0;
    if (this.views.i32.length * 4 > KEPT_ARENA_BYTES) this.views.clear();
  }

  #grow(words: number): void {
    if (words * 4 > MAX_ARENA_BYTES) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `the transaction changes rows of watched tables by more than ${MAX_ARENA_BYTES} bytes: split ` +
          `it into smaller ones`,
      );
    }
    let bytes = Math.max(8 * this.views.i32.length, FIRST_BYTES);
    while (bytes < words * 4) bytes *= 2;
    const before = this.views.i32;
    this.views.reset(new ArrayBuffer(bytes));
    this.views.i32.set(before.subarray(0, this.end));
  }
}
