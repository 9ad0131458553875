/**
 * The changes in a batch, in the order of their commits. The records of a batch are of whole epochs, and TIDs
 * agree with every dependency (engine/tid.ts), so batch after batch, and by TIDs within each, is an
 * order in which the transactions may be thought to have run one after the other.
 */

import { CHANGE_REGION } from "../../engine/changes.ts";
import { RECORD_ENTRY_WORDS, RECORD_WORDS } from "../../engine/journal.ts";
import { RecordMerge } from "../recovery/merge.ts";

const TID_HIGH = 2;
const TID_LOW = 3;

export class BatchChanges {
  /** The change that `next` has found. */
  table = 0;
  kind = 0;
  format = 0;
  /** Where its row lies among the words of the batch, and its words. */
  rowAt = 0;
  rowWords = 0;
  high = 0;
  low = 0;
  /** Counts the changes of a record, of all tables. */
  change = 0;
  words: Int32Array = new Int32Array(0);
  readonly #merge = new RecordMerge();
  #isOrdered = true;
  /** The record that is read, its next entry, and its end. */
  #record = 0;
  #entry = 0;
  #end = 0;

  begin(words: Int32Array): void {
    this.words = words;
    this.#merge.begin(words);
    this.#isOrdered = this.#merge.isOrdered;
    this.#record = -1;
    this.#entry = 0;
    this.#end = 0;
  }

  /** The batch is not needed any more. */
  clear(): void {
    this.begin(new Int32Array(0));
  }

  next(): boolean {
    const { words } = this;
    for (;;) {
      while (this.#entry < this.#end) {
        const at = this.#entry;
        this.#entry = at + RECORD_ENTRY_WORDS + words[at + 4];
        if (words[at] !== CHANGE_REGION) continue;
        this.table = words[at + 1];
        this.kind = words[at + 2];
        this.format = words[at + 3];
        this.rowWords = words[at + 4];
        this.rowAt = at + RECORD_ENTRY_WORDS;
        this.change++;
        return true;
      }
      const record = this.#nextRecord();
      if (record < 0) return false;
      this.#record = record;
      this.#entry = record + RECORD_WORDS;
      this.#end = record + words[record];
      this.high = words[record + TID_HIGH];
      this.low = words[record + TID_LOW];
      this.change = -1;
    }
  }

  #nextRecord(): number {
    if (!this.#isOrdered) return this.#merge.next();
    const next = this.#record < 0 ? 0 : this.#end;
    return next < this.words.length ? next : -1;
  }
}
