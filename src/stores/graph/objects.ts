/**
 * Objects of a graph in a transaction (layout.ts). A table of the store, the _index_, leads from ids to places. An
 * object keeps its place until it outgrows its cell; then it moves, and the index, which everybody asks who finds the
 * old cell freed, says where.
 */

import { dataCapacity } from "../../engine/cells.ts";
import { moveWords, spliceMove, spliceWord, spliceWrite } from "../../engine/splices.ts";
import type { Transaction } from "../../engine/transaction.ts";
import { type Address, addressOf, NO_ADDRESS, regionIdOf, wordOf } from "../../memory/address.ts";
import { Pointer } from "../../memory/pointer.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_CELL_BYTES } from "../../runtime/limits.ts";
import type { Store } from "../store.ts";
import {
  headerWord,
  lowerHalf,
  MARK,
  MAX_LISTS,
  numberAt,
  OBJECT_SLOTS,
  SLOT_WORDS,
  TAG,
  upperHalf,
} from "./layout.ts";

/** A row of the index. */
export interface IndexRow {
  id: number;
  kind: number;
  state: number;
  at: Pointer | null;
}

export type ObjectIndex = Store<IndexRow, number>;

/** Where objects are remembered to be; a place that is told must be checked against the object. */
export interface Places {
  recall(id: number): boolean;
  readonly regionId: number;
  readonly word: number;
  readonly incarnation: number;
}

/** Larger objects are changed in the arena (engine/edits.ts). */
const MAX_SPLICED_WORDS = 8_192;

const slotWords = new Int32Array(SLOT_WORDS);

export class GraphObject {
  /** The words before the data. */
  readonly head = new Int32Array(OBJECT_SLOTS + MAX_LISTS * SLOT_WORDS);
  regionId = 0;
  word = 0;
  entry = -1;

  get kind(): number {
    return this.head[0] & 0xff;
  }

  get lists(): number {
    return (this.head[0] >>> 8) & 0xff;
  }

  get state(): number {
    return (this.head[0] >>> 16) & 0xff;
  }

  get dataWords(): number {
    return this.head[1];
  }

  get id(): number {
    return numberAt(this.head, 2);
  }

  get capacity(): number {
    return this.head[4];
  }

  get dataAt(): number {
    return OBJECT_SLOTS + this.lists * SLOT_WORDS;
  }

  get used(): number {
    return this.dataAt + this.dataWords;
  }

  get address(): Address {
    return addressOf(this.regionId, this.word);
  }

  /** The object with this id, as part of what the transaction has read; false if there is none. */
  load(tx: Transaction, index: ObjectIndex, id: number, places: Places | undefined): boolean {
    if (tx.snapshot === undefined && places?.recall(id)) {
      const { regionId, word, incarnation } = places;
      if (this.#open(tx, regionId, word, incarnation) && this.id === id) {
        tx.depend(this.entry);
        return true;
      }
    }
    const row = index.read(tx, id);
    if (row === undefined || row.at === null) return false;
    const { at } = row;
    if (!this.#open(tx, regionIdOf(at.address), wordOf(at.address), at.incarnation)) {
      // The index was read before the object moved.
      tx.conflict(this.entry);
    }
    tx.depend(this.entry);
    return true;
  }

  /** Reads the object at a place, if there is one of this incarnation. */
  #open(tx: Transaction, regionId: number, word: number, incarnation: number): boolean {
    const region = tx.executor.memory.region(regionId);
    const { head } = this;
    this.regionId = regionId;
    this.word = word;
    for (;;) {
      const entry = tx.openIfThere(region, word);
      this.entry = entry;
      if (entry < 0) return false;
      const { i32 } = tx.views;
      const { at } = tx;
      head[0] = i32[at];
      const words = this.dataAt;
      for (let i = 1; i < words; i++) head[i] = i32[at + i];
      if (!tx.settle(entry)) continue;
      return tx.incarnationOf(entry) === incarnation && head[0] >>> 24 === MARK;
    }
  }

  /** Calls `read` with the place of the data, until what it returns is consistent. */
  readData<T>(tx: Transaction, read: (views: Transaction["views"], at: number) => T): T {
    for (;;) {
      tx.open(tx.executor.memory.region(this.regionId), this.word);
      const result = read(tx.views, tx.at + this.dataAt);
      if (tx.settle(this.entry)) return result;
    }
  }

  /** Makes an object of the graph with this tag, with room for so many lists more. */
  create(
    tx: Transaction,
    tag: number,
    id: number,
    kind: number,
    source: Int32Array,
    words: number,
    lists: number,
    state: number,
  ): Pointer {
    const { head } = this;
    head[0] = headerWord(kind, 0, state);
    head[1] = words;
    head[2] = upperHalf(id);
    head[3] = lowerHalf(id);
    head[TAG] = tag;
    return this.#allocate(tx, source, 0, OBJECT_SLOTS + words + lists * SLOT_WORDS, NO_ADDRESS);
  }

  #allocate(
    tx: Transaction,
    source: Int32Array,
    from: number,
    wanted: number,
    near: Address,
  ): Pointer {
    if (wanted * 4 > MAX_CELL_BYTES - 16) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `an object of a graph with ${wanted * 4} bytes, its list heads included, is larger than ${MAX_CELL_BYTES - 16}`,
      );
    }
    const { head } = this;
    const bytes = dataCapacity(wanted * 4);
    head[4] = bytes / 4;
    const { dataAt, dataWords } = this;
    const entry = tx.allocate(bytes, near);
    const { set } = tx;
    const at = set.bufferOf(entry);
    const { i32 } = set.arena;
    for (let i = 0; i < dataAt; i++) i32[at + i] = head[i];
    i32.set(source.subarray(from, from + dataWords), at + dataAt);
    set.markDirty(entry, 0, this.used);
    this.entry = entry;
    this.regionId = set.regionIdOf(entry);
    this.word = set.wordOf(entry);
    return new Pointer(this.address, bytes, set.incarnationOf(entry));
  }

  /** Moves the object to a larger cell, with its head as it is now and other data. */
  #move(tx: Transaction, index: ObjectIndex, data: Int32Array, from: number, wanted: number): void {
    const near = this.address;
    tx.free(this.entry);
    const at = this.#allocate(tx, data, from, wanted, near);
    index.update(tx, this.id, { at });
  }

  #dataOf(tx: Transaction): Int32Array {
    return this.readData(tx, (views, at) => views.i32.slice(at, at + this.dataWords));
  }

  /** Replaces the data. */
  replaceData(tx: Transaction, index: ObjectIndex, source: Int32Array, words: number): void {
    const { head, dataAt } = this;
    head[1] = words;
    const { used } = this;
    if (used > this.capacity || used < this.capacity / 4) {
      this.#move(tx, index, source, 0, used);
      return;
    }
    this.#write(tx, dataAt, source, words);
    this.#write(tx, 1, head.subarray(1, 2), 1);
  }

  setIdentity(tx: Transaction, index: ObjectIndex, kind: number, state: number): void {
    const { head } = this;
    head[0] = headerWord(kind, this.lists, state);
    this.#write(tx, 0, head, 1);
    index.update(tx, this.id, { kind, state });
  }

  /** Where the slot of a list is, or -1. */
  slotOf(type: number): number {
    const { head, dataAt } = this;
    for (let at = OBJECT_SLOTS; at < dataAt; at += SLOT_WORDS) {
      if (head[at] >>> 16 === type) return at;
    }
    return -1;
  }

  /** Says where a list begins and how many edges it has; without edges, it has no slot. */
  setSlot(
    tx: Transaction,
    index: ObjectIndex,
    type: number,
    headRegionId: number,
    headWord: number,
    incarnation: number,
    count: number,
  ): void {
    const slot = this.slotOf(type);
    if (count === 0) {
      if (slot >= 0) this.#removeSlot(tx, slot);
      return;
    }
    slotWords[0] = (type << 16) | (headRegionId + 1);
    slotWords[1] = headWord;
    slotWords[2] = incarnation;
    slotWords[3] = count;
    if (slot < 0) this.#addSlot(tx, index);
    else {
      this.head.set(slotWords, slot);
      this.#write(tx, slot, slotWords, SLOT_WORDS);
    }
  }

  #addSlot(tx: Transaction, index: ObjectIndex): void {
    const { head, dataAt, dataWords, kind, lists, state } = this;
    const fits = this.used + SLOT_WORDS <= this.capacity;
    const data = fits ? undefined : this.#dataOf(tx);
    head.set(slotWords, dataAt);
    head[0] = headerWord(kind, lists + 1, state);
    if (data !== undefined) {
      this.#move(tx, index, data, 0, this.used);
      return;
    }
    if (this.#splices(tx)) {
      spliceMove(tx.set, this.entry, dataAt, dataAt + SLOT_WORDS, dataWords);
      spliceWrite(tx.set, this.entry, dataAt, slotWords, SLOT_WORDS);
      spliceWord(tx.set, this.entry, 0, head[0]);
      return;
    }
    const at = tx.writable(this.entry, this.capacity);
    const { i32 } = tx.set.arena;
    moveWords(i32, at + dataAt, at + dataAt + SLOT_WORDS, dataWords);
    i32.set(slotWords, at + dataAt);
    i32[at] = head[0];
    tx.set.markDirty(this.entry, 0, this.used);
  }

  #removeSlot(tx: Transaction, slot: number): void {
    const { head, used, kind, lists, state } = this;
    const behind = used - slot - SLOT_WORDS;
    head.copyWithin(slot, slot + SLOT_WORDS, this.dataAt);
    head[0] = headerWord(kind, lists - 1, state);
    if (this.#splices(tx)) {
      spliceMove(tx.set, this.entry, slot + SLOT_WORDS, slot, behind);
      spliceWord(tx.set, this.entry, 0, head[0]);
      return;
    }
    const at = tx.writable(this.entry, this.capacity);
    const { i32 } = tx.set.arena;
    moveWords(i32, at + slot + SLOT_WORDS, at + slot, behind);
    i32[at] = head[0];
    tx.set.markDirty(this.entry, 0, slot + behind);
  }

  #splices(tx: Transaction): boolean {
    return this.capacity <= MAX_SPLICED_WORDS && tx.splice(this.entry, this.capacity);
  }

  #write(tx: Transaction, at: number, source: Int32Array, words: number): void {
    if (words === 0) return;
    if (this.#splices(tx)) {
      spliceWrite(tx.set, this.entry, at, source, words);
      return;
    }
    const base = tx.writable(this.entry, this.capacity);
    const { i32 } = tx.set.arena;
    for (let i = 0; i < words; i++) i32[base + at + i] = source[i];
    tx.set.markDirty(this.entry, at, at + words);
  }

  free(tx: Transaction): void {
    tx.free(this.entry);
  }
}
