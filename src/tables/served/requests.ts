/**
 * Requests to a table: the contract of a store that can be shipped. They are plain data, so that
 * they can be executed where the rows are: by another thread, at another node, in a device. What
 * `Store` (stores/store.ts) is for code beside the memory, these are for code that only sends words:
 * a place that can execute them (ServedTable in contract.ts) can hold a table.
 *
 *   read     table, partition, key
 *   put      table, partition, row, as it lies in a store
 *   remove   table, partition, key
 *   scan     table, then a step: what is scanned, how much of it, and from where on
 *
 * How they travel is told here and nowhere else. Keys are values (fabric/wire.ts). A read is its
 * three parts. A write begins at an even word, so that those who pass writes on (coordinators,
 * backups) copy words and look at nothing but the first four:
 *
 *     word 0   words of the write, an even number, these included
 *     word 1   PUT or REMOVE          word 2  the table's id      word 3  the partition
 *     PUT:     word 4 words of the row, word 5 unused, then the row
 *     REMOVE:  the key
 *
 * A scan step is flags, the most rows wanted, and as the flags say: the name of an index, the range
 * (each bound: words, and the key in its ordered form), the values of a hash index; then its place.
 */

import type { Reader, Writer } from "../../fabric/wire.ts";
import type { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_ORDERED_KEY_BYTES, SCAN_STEP_ROWS } from "../../runtime/limits.ts";
import type { KeyRange } from "../../stores/store.ts";

export interface ReadRequest {
  readonly table: number;
  readonly partition: number;
  readonly key: unknown;
}

export const PUT = 1;
export const REMOVE = 2;
export const WRITE_WORDS = 4;
const PUT_WORDS = 6;

/** Adds or replaces a row, which lies at word `at` of `views`. */
export interface PutRequest {
  readonly code: typeof PUT;
  readonly table: number;
  readonly partition: number;
  readonly views: Views;
  readonly at: number;
  readonly words: number;
}

export interface RemoveRequest {
  readonly code: typeof REMOVE;
  readonly table: number;
  readonly partition: number;
  readonly key: unknown;
}

export type WriteRequest = PutRequest | RemoveRequest;

/** What is scanned; the same for all steps. */
export interface ScanWay {
  /** Without one, the rows themselves. */
  readonly index: string | undefined;
  readonly range: KeyRange;
  readonly reverse: boolean;
  /** Of a hash index: the values. */
  readonly equal: unknown;
}

export interface ScanStep extends ScanWay {
  /** Only the number of rows is wanted. */
  readonly counts: boolean;
  readonly most: number;
  /** Where it begins: what the step before has told, empty for the first one. */
  readonly place: Int32Array;
}

export function encodeRead(out: Writer, { table, partition, key }: ReadRequest): void {
  out.word(table);
  out.word(partition);
  out.value(key);
}

export function decodeRead(body: Reader): ReadRequest {
  return { table: body.word(), partition: body.word(), key: body.value() };
}

export function encodePut(
  out: Writer,
  table: number,
  partition: number,
  row: Int32Array,
  at: number,
  words: number,
): void {
  assert((words & 1) === 0, "a row has an even number of words");
  out.word(PUT_WORDS + words);
  out.word(PUT);
  out.word(table);
  out.word(partition);
  out.word(words);
  out.word(0);
  out.words(row, at, words);
}

export function encodeRemove(out: Writer, table: number, partition: number, key: unknown): void {
  const start = out.at;
  out.word(0);
  out.word(REMOVE);
  out.word(table);
  out.word(partition);
  out.value(key);
  out.align();
  out.views.i32[start] = out.at - start;
}

/** Reads a write, which may be garbage, and leaves the reader behind it. None reaches beyond `end`. */
export function decodeWrite(body: Reader, end: number): WriteRequest {
  const start = body.at;
  const length = body.count(end - start);
  if (length < WRITE_WORDS || (length & 1) !== 0) throw nonsense();
  const code = body.word();
  const table = body.word();
  const partition = body.word();
  let request: WriteRequest;
  if (code === PUT) {
    const words = body.count(length - PUT_WORDS);
    request = { code, table, partition, views: body.views, at: start + PUT_WORDS, words };
  } else if (code === REMOVE) {
    request = { code, table, partition, key: body.value() };
  } else throw nonsense();
  body.at = start + length;
  return request;
}

/** The partition of the write that begins at `at`. */
export function partitionAt(writes: Int32Array, at: number): number {
  return writes[at + 3];
}

/** Where the next one begins. */
export function nextWrite(writes: Int32Array, at: number): number {
  const words = writes[at];
  if (words < WRITE_WORDS || (words & 1) !== 0 || at + words > writes.length) throw nonsense();
  return at + words;
}

export function nonsense(): SituError {
  return new SituError("SITU_PROTOCOL", "the writes of a message make no sense");
}

const REVERSE = 1;
const COUNTS = 2;
const INDEX = 4;
const FROM = 8;
const TO = 16;
const EQUAL = 32;

/** A bound may be a word longer than a key: what comes right behind it. */
const MAX_BOUND_WORDS = MAX_ORDERED_KEY_BYTES / 4 + 2;

export function encodeStep(out: Writer, step: ScanStep): void {
  const { index, range, reverse, equal, counts, most, place } = step;
  out.word(
    (reverse ? REVERSE : 0) |
      (counts ? COUNTS : 0) |
      (index === undefined ? 0 : INDEX) |
      (range.from === undefined ? 0 : FROM) |
      (range.to === undefined ? 0 : TO) |
      (equal === undefined ? 0 : EQUAL),
  );
  out.word(most);
  if (index !== undefined) out.text(index);
  if (range.from !== undefined) encodeWords(out, range.from);
  if (range.to !== undefined) encodeWords(out, range.to);
  if (equal !== undefined) out.value(equal);
  encodeWords(out, place);
}

export function decodeStep(body: Reader): ScanStep {
  const flags = body.word();
  const most = body.count(SCAN_STEP_ROWS);
  const index = (flags & INDEX) === 0 ? undefined : body.text();
  const from = (flags & FROM) === 0 ? undefined : decodeWords(body);
  const to = (flags & TO) === 0 ? undefined : decodeWords(body);
  const equal = (flags & EQUAL) === 0 ? undefined : body.value();
  const place = decodeWords(body);
  return {
    index,
    range: { from, to },
    reverse: (flags & REVERSE) !== 0,
    equal,
    counts: (flags & COUNTS) !== 0,
    most,
    place,
  };
}

/** A bound, or a place: where a step goes on. */
export function encodeWords(out: Writer, words: Int32Array): void {
  out.word(words.length);
  out.words(words, 0, words.length);
}

export function decodeWords(body: Reader): Int32Array {
  const length = body.count(MAX_BOUND_WORDS);
  const from = body.skip(length);
  return body.views.i32.slice(from, from + length);
}
