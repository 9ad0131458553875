/**
 * The tails of all journals: what has been committed and is not in the log yet. A journal is read
 * from its tail to its head, record by record, up to the epoch that is being closed; later records
 * stay for the next batch. What is found is not copied: the batch is written from the journals
 * themselves, whose owners do not touch it before the tail has moved.
 */

import { ENTRIES, FILLING, LENGTH, RECORD_WORDS } from "../engine/journal.ts";
import { LARGE_RECORD, LargeRecord } from "../engine/large-record.ts";
import { HEAD, slotsInUse, TAIL } from "../engine/slot.ts";
import { epochOf } from "../engine/tid.ts";
import { loadAcquire } from "../memory/ordering.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import type { Views } from "../memory/views.ts";
import { assert } from "../runtime/assert.ts";

export class Tails {
  /** The records that were gathered, in pieces: those of one journal lie in one or two. */
  readonly parts: Uint8Array[] = [];
  records = 0;
  bytes = 0;
  readonly #memory: StoreMemory;
  readonly #journals: (Views | undefined)[] = [];
  /** Where the tails will be when what was gathered is in the log. */
  readonly #ends: number[] = [];
  /** By slot: large records whose place in the journal will be behind the tail then. */
  readonly #larges = new Map<number, LargeRecord>();

  constructor(memory: StoreMemory) {
    this.#memory = memory;
  }

  /** Whether anything lies in a journal. */
  get hasAny(): boolean {
    const { control } = this.#memory;
    const slots = slotsInUse(control);
    for (let slot = 0; slot < slots; slot++) {
      const at = control.slotAt(slot);
      if (control.i32[at + HEAD] !== control.i32[at + TAIL]) return true;
    }
    return false;
  }

  /** Gathers the records of epochs after `after`, up to `last`. All these have been passed on. */
  gather(after: number, last: number): void {
    this.parts.length = 0;
    this.records = 0;
    this.bytes = 0;
    this.#ends.length = 0;
    const { control } = this.#memory;
    const slots = slotsInUse(control);
    for (let slot = 0; slot < slots; slot++) {
      const at = control.slotAt(slot);
      const tail = control.i32[at + TAIL];
      const head = loadAcquire(control.i32, at + HEAD);
      if (head === tail) this.#attachAhead(slot);
      this.#ends.push(head === tail ? tail : this.#gatherFrom(slot, tail, head, after, last));
    }
  }

  /** What was gathered is in the log: the journals' owners may write there. */
  release(): void {
    const { control } = this.#memory;
    // Before the tails move: then their owners may make the next ones.
    for (const large of this.#larges.values()) large.empty();
    this.#larges.clear();
    for (let slot = 0; slot < this.#ends.length; slot++) {
      Atomics.store(control.i32, control.slotAt(slot) + TAIL, this.#ends[slot]);
    }
  }

  #gatherFrom(slot: number, tail: number, head: number, after: number, last: number): number {
    const { i32, u8 } = this.#journal(slot);
    const mask = i32.length - 1;
    let position = tail;
    /** The piece that is being gathered: words of the ring. */
    let from = tail & mask;
    let to = from;
    while (position !== head) {
      const at = position & mask;
      const length = i32[at + LENGTH];
      const fills = length < RECORD_WORDS || i32[at + ENTRIES] === FILLING;
      assert(length > 0 && ((head - position) | 0) >= length, "a journal is whole records");
      const epoch = fills ? 0 : epochOf(i32[at + 2], i32[at + 3]);
      if (epoch > last) break;
      const isWanted = !fills && epoch > after;
      const isLarge = !fills && i32[at + ENTRIES] === LARGE_RECORD;
      if (isWanted && !isLarge) {
        to = at + length;
      } else {
        // The piece ends before it, and the next one begins after it.
        this.#add(u8, from, to);
        if (isLarge) this.#addLarge(slot, isWanted);
        from = (at + length) & mask;
        to = from;
      }
      if (isWanted) this.records++;
      position = (position + length) | 0;
      if ((position & mask) === 0) {
        this.#add(u8, from, to);
        from = 0;
        to = 0;
      }
    }
    this.#add(u8, from, to);
    return position;
  }

  /** A piece of a ring. */
  #add(u8: Uint8Array, from: number, to: number): void {
    if (to <= from) return;
    this.parts.push(u8.subarray(4 * from, 4 * to));
    this.bytes += 4 * (to - from);
  }

  /** A record in a segment of its own. What is in the log already is not read again. */
  #addLarge(slot: number, isWanted: boolean): void {
    let large = this.#larges.get(slot);
    if (large === undefined) {
      large = new LargeRecord(this.#memory, slot);
      this.#larges.set(slot, large);
    }
    if (!isWanted) return;
    const record = large.read();
    assert(record !== undefined, "a large record is kept until the log has it");
    this.parts.push(new Uint8Array(record.buffer, record.byteOffset, 4 * record[0]));
    this.bytes += 4 * record[0];
  }

  /**
   * Before there is anything in it: should the memory's files be removed, a journal that is not mapped
   * could not be read any more, and what its owner had committed would be missing in the log.
   */
  #attachAhead(slot: number): void {
    if (this.#journals[slot] !== undefined || !this.#memory.hasJournal(slot)) return;
    try {
      this.#journal(slot);
    } catch {
      // It is tried again when it is needed, and its failure told then.
    }
  }

  #journal(slot: number): Views {
    let journal = this.#journals[slot];
    if (journal === undefined) {
      journal = this.#memory.attachJournal(slot);
      while (this.#journals.length <= slot) this.#journals.push(undefined);
      this.#journals[slot] = journal;
    }
    return journal;
  }
}
