/**
 * A log in memory that two threads see: a NIC appends records, its host applies them (Xenic §4.2, step 7). One ring of words:
 *
 *   word 0   up to where records may be applied: written by the NIC
 *   word 1   up to where they are applied: written by the host, and all that acknowledges them
 *   then     records: how many words, and then as below
 *
 * COMMIT records may be applied at once. LOG records may when their transactions are over, in their order, so the NIC moves
 * word 0 over them when it knows (host.ts says why). The NIC remembers its records until they are applied: that is how it knows which rows
 * to unpin. What finds no room in the ring waits in the NIC's memory, since a LOG that waited for room could wait for
 * ever (decision 0130); how much that can be is bounded by what is under way.
 */

import { Reader, Writer } from "../../fabric/wire.ts";
import { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import { Name } from "../names.ts";
import type { LogRecord } from "./host.ts";
import { decodeItem, encodeItem, type Item } from "./message.ts";

const MAY_APPLY = 0;
const APPLIED = 1;
const HEADER_WORDS = 2;

export function makeSharedLog(bytes: number): SharedArrayBuffer {
  assert(Number.isInteger(Math.log2(bytes)), "positions go round in a ring");
  return new SharedArrayBuffer(HEADER_WORDS * 4 + bytes);
}

interface Kept {
  readonly record: LogRecord;
  /** Where it ends in the ring; undefined while it waits for room. */
  end: number | undefined;
}

/** The NIC's side. */
export class LogWriter {
  readonly #words: Int32Array;
  readonly #capacity: number;
  readonly #out = new Writer();
  /** Records that are not applied; those before #first are. */
  #kept: Kept[] = [];
  #first = 0;
  /** The first that has no place in the ring, and the first that may not be applied. */
  #unplaced = 0;
  #unready = 0;
  #tail = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
    this.#capacity = this.#words.length - HEADER_WORDS;
  }

  /** Records that are not applied. */
  get length(): number {
    return this.#kept.length - this.#first;
  }

  push(record: LogRecord): void {
    this.#kept.push({ record, end: undefined });
    this.#place();
  }

  /** Lets records be applied, up to the first that is not ready. Whether there are any more than before. */
  release(isReady: (record: LogRecord) => boolean): boolean {
    let end: number | undefined;
    while (this.#unready < this.#unplaced && isReady(this.#kept[this.#unready].record)) {
      end = this.#kept[this.#unready++].end;
    }
    if (end === undefined) return false;
    Atomics.store(this.#words, MAY_APPLY, end);
    return true;
  }

  /** What the host has applied since this was asked last. */
  takeApplied(): LogRecord[] {
    const applied = Atomics.load(this.#words, APPLIED);
    const taken: LogRecord[] = [];
    while (this.#first < this.#unready) {
      const { record, end } = this.#kept[this.#first];
      if (((applied - (end as number)) | 0) < 0) break;
      taken.push(record);
      this.#first++;
    }
    if (taken.length === 0) return taken;
    if (this.#first * 2 > this.#kept.length) {
      this.#kept = this.#kept.slice(this.#first);
      this.#unplaced -= this.#first;
      this.#unready -= this.#first;
      this.#first = 0;
    }
    this.#place();
    return taken;
  }

  /** Puts what waits into the ring, as far as there is room. */
  #place(): void {
    while (this.#unplaced < this.#kept.length) {
      const kept = this.#kept[this.#unplaced];
      const { name, items, isKept } = kept.record;
      const out = this.#out;
      out.clear();
      out.word(isKept ? 0 : items.length);
      name.encode(out);
      if (!isKept) for (const item of items) encodeItem(out, item);
      const words = out.at + 1;
      assert(words <= this.#capacity, "a record fits the ring");
      const applied = Atomics.load(this.#words, APPLIED);
      if (((this.#tail - applied) | 0) + words > this.#capacity) return;
      this.#put(this.#tail, words);
      const from = out.views.i32;
      for (let i = 0; i < out.at; i++) this.#put((this.#tail + 1 + i) | 0, from[i]);
      this.#tail = (this.#tail + words) | 0;
      kept.end = this.#tail;
      this.#unplaced++;
    }
  }

  #put(position: number, word: number): void {
    this.#words[HEADER_WORDS + (position & (this.#capacity - 1))] = word;
  }
}

/** A record as the host sees it. */
export interface AppliedRecord {
  readonly name: Name;
  readonly items: readonly Item[];
}

/** The host's side. */
export class LogReader {
  readonly #words: Int32Array;
  readonly #capacity: number;
  readonly #views = new Views(new ArrayBuffer(1024));
  #at = 0;

  constructor(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory);
    this.#capacity = this.#words.length - HEADER_WORDS;
  }

  get isEmpty(): boolean {
    return Atomics.load(this.#words, MAY_APPLY) === this.#at;
  }

  /** Applies up to so many records, and says so. How many there were. */
  apply(most: number, each: (record: AppliedRecord) => void): number {
    const end = Atomics.load(this.#words, MAY_APPLY);
    let count = 0;
    for (; this.#at !== end && count < most; count++) {
      const words = this.#word(this.#at);
      if (words * 4 > this.#views.u8.length) this.#views.reset(new ArrayBuffer(words * 8));
      const { i32 } = this.#views;
      for (let i = 1; i < words; i++) i32[i - 1] = this.#word((this.#at + i) | 0);
      const body = new Reader(this.#views).reset(this.#views, 0, words - 1);
      const items: Item[] = [];
      const left = body.word();
      const name = new Name().decode(body);
      for (let i = 0; i < left; i++) items.push(decodeItem(body));
      each({ name, items });
      this.#at = (this.#at + words) | 0;
    }
    if (count > 0) Atomics.store(this.#words, APPLIED, this.#at);
    return count;
  }

  #word(position: number): number {
    return this.#words[HEADER_WORDS + (position & (this.#capacity - 1))];
  }
}
