/**
 * The rows of the table of keys without objects in between: the key comes from where it lies in the
 * client's request, and a value goes straight into the reply. The layout is that of the ordinary
 * codec (tables/codec/layout.ts), which others use on the same rows.
 *
 * A row that is read while another changes it makes no sense, and its reader looks again; so nothing
 * here believes a length, and what `decode` has written to a reply is overwritten by the next try.
 */

import { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import { MAX_KEY_BYTES, MAX_VALUE_BYTES } from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import { hashWords } from "../../tables/codec/hash.ts";
import { layoutOf } from "../../tables/codec/layout.ts";
import { tooLong } from "../../tables/codec/values.ts";
import type { Replies } from "../resp/replies.ts";
import { LARGE } from "./collections/large.ts";
import { RedisKeys, STRING } from "./tables.ts";

/** Bytes that lie in a larger buffer: a key or value where the client's request has it. */
export class Slice {
  bytes: Uint8Array = NOTHING;
  start = 0;
  end = 0;

  set(bytes: Uint8Array, start: number, end: number): void {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }
}

const NOTHING = new Uint8Array(0);

/** One for the thread: a key's row as it is read, or is to be written. */
export class Entry {
  readonly key = new Slice();
  type = 0;
  expires = 0;
  /** To be written, or of one that was read whole: a copy. */
  readonly value = new Slice();
}

/** What becomes of the value of a row that is read. */
export const VALUE_SKIPPED = 0;
/** A new copy of it, in `entry.value`. */
export const VALUE_COPIED = 1;
/** If it is a string, it is written to `replies` as the reply. */
export const VALUE_REPLIED = 2;

const places = new Map(layoutOf(RedisKeys).fields.map(({ name, offset }) => [name, offset]));
const EXPIRES_F64 = places.get("expires")! >> 3;
const KEY_WORD = places.get("key")! >> 2;
const VALUE_WORD = places.get("value")! >> 2;
const TYPE_BYTE = places.get("type")!;
const { fixedBytes: FIXED_BYTES } = layoutOf(RedisKeys);
const FIXED_WORDS = FIXED_BYTES >> 2;
// What the code below relies on: numbers lie in little-endian order, the type has a word of its own
// with nothing else in it, and the key follows right behind the fixed fields.
assert(
  (TYPE_BYTE & 3) === 0 &&
    KEY_WORD < VALUE_WORD &&
    new Uint8Array(Int32Array.of(1).buffer)[0] === 1,
  "the layout of redis keys",
);

/** Enough of a collection's value to know where its members are. */
const HEAD_BYTES = 16;

/** Up to here a loop beats the call into native code. */
const LOOP_BYTES = 48;

export class EntryCodec implements RowCodec<Entry, Slice> {
  readonly fixedWords = 0;
  readonly scratch = new Views(new ArrayBuffer(FIXED_BYTES + MAX_KEY_BYTES + MAX_VALUE_BYTES + 16));
  readonly entry = new Entry();
  /** See VALUE_SKIPPED and the others. */
  reads = VALUE_SKIPPED;
  replies: Replies | undefined;
  /** Where the reply begins: a row that is read again is written there again. */
  replyAt = 0;
  /** Of the row that matched last: its type, 0 if none did since it was set to that. */
  matchedType = 0;
  matchedExpires = 0;
  /** And the first bytes of its value, if it is a large collection: where its members are. */
  matchedHead: Uint8Array = NOTHING;
  #encoded = this.entry;
  readonly changed = new Int32Array(1);
  readonly #stage = new Views(new ArrayBuffer(MAX_KEY_BYTES + 16));

  stageKey(key: Slice, seed = 0): number {
    const { bytes, start, end } = key;
    const length = end - start;
    if (length > MAX_KEY_BYTES) tooLong("redis.key", length, MAX_KEY_BYTES);
    const { i32 } = this.#stage;
    i32[0] = length;
    return hashWords(i32, 0, copyToWords(bytes, start, end, i32, 1), seed) || 1;
  }

  stageKeyOf(entry: Entry, seed = 0): number {
    return this.stageKey(entry.key, seed);
  }

  stageEncoded(seed = 0): number {
    return this.stageKey(this.#encoded.key, seed);
  }

  matches(views: Views, at: number): boolean {
    const { i32 } = views;
    const stage = this.#stage.i32;
    const length = stage[0];
    if (i32[at + KEY_WORD + 1] !== length || i32[at + KEY_WORD] !== FIXED_BYTES) return false;
    const words = length >> 2;
    const keyAt = at + FIXED_WORDS;
    for (let i = 0; i < words; i++) if (i32[keyAt + i] !== stage[1 + i]) return false;
    // The bytes of the value follow at once: of the last word, only some are the key's.
    const rest = length & 3;
    if (rest !== 0 && (i32[keyAt + words] ^ stage[1 + words]) << (32 - 8 * rest) !== 0)
      return false;
    this.matchedType = views.u8[at * 4 + TYPE_BYTE];
    this.matchedExpires = views.f64[(at >> 1) + EXPIRES_F64];
    if (this.matchedType > STRING) this.#keepHead(views, at);
    return true;
  }

  #keepHead(views: Views, at: number): void {
    const start = at * 4 + views.i32[at + VALUE_WORD];
    const isLarge = views.u8[start] === LARGE;
    this.matchedHead = isLarge ? views.u8.slice(start, start + HEAD_BYTES) : NOTHING;
  }

  encode(entry: Entry): number {
    this.#encoded = entry;
    const { key, value } = entry;
    const keyBytes = key.end - key.start;
    const valueBytes = value.end - value.start;
    if (valueBytes > MAX_VALUE_BYTES) tooLong("redis.value", valueBytes, MAX_VALUE_BYTES);
    if (keyBytes > MAX_KEY_BYTES) tooLong("redis.key", keyBytes, MAX_KEY_BYTES);
    const { i32, f64, u8 } = this.scratch;
    const valueAt = FIXED_BYTES + keyBytes;
    const words = ((valueAt + valueBytes + 7) >> 3) << 1;
    // What is left behind the value is zero.
    i32[words - 1] = 0;
    i32[words - 2] = 0;
    i32[FIXED_WORDS - 1] = 0;
    i32[TYPE_BYTE >> 2] = entry.type;
    f64[EXPIRES_F64] = entry.expires;
    i32[KEY_WORD] = FIXED_BYTES;
    i32[KEY_WORD + 1] = keyBytes;
    i32[VALUE_WORD] = valueAt;
    i32[VALUE_WORD + 1] = valueBytes;
    copyToWords(key.bytes, key.start, key.end, i32, FIXED_WORDS);
    if (valueBytes > LOOP_BYTES) u8.set(value.bytes.subarray(value.start, value.end), valueAt);
    else if ((valueAt & 3) === 0)
      copyToWords(value.bytes, value.start, value.end, i32, valueAt >> 2);
    else copyBytes(value, u8, valueAt);
    return words;
  }

  decode(views: Views, at: number, words: number): Entry {
    const { entry } = this;
    entry.type = views.u8[at * 4 + TYPE_BYTE];
    entry.expires = views.f64[(at >> 1) + EXPIRES_F64];
    if (this.reads !== VALUE_SKIPPED) this.#read(views, at, words);
    return entry;
  }

  #read(views: Views, at: number, words: number): void {
    const offset = views.i32[at + VALUE_WORD];
    const length = views.i32[at + VALUE_WORD + 1];
    const fits = offset >= 0 && length >= 0 && offset + length <= words * 4;
    const start = fits ? at * 4 + offset : 0;
    const end = fits ? start + length : 0;
    if (this.reads === VALUE_COPIED) {
      const length = end - start;
      // From Node's pool: an ArrayBuffer of its own costs more than a short value.
      const copy = Buffer.allocUnsafe(length);
      if (length <= LOOP_BYTES) for (let i = 0; i < length; i++) copy[i] = views.u8[start + i];
      else views.bytes.copy(copy, 0, start, end);
      this.entry.value.set(copy, 0, length);
      return;
    }
    const replies = this.replies!;
    replies.rewind(this.replyAt);
    if (this.entry.type === STRING) replies.bulk(views.bytes, start, end);
  }

  decodeToMerge(): Entry {
    return refuse();
  }

  takeChanges(): Partial<Entry> {
    return refuse();
  }

  merge(): Entry {
    return refuse();
  }

  stageUpdate(): number {
    return refuse();
  }

  patch(): void {
    refuse();
  }
}

/** Bytes as words, the last one filled up with zeros; returns the word after it. */
function copyToWords(
  bytes: Uint8Array,
  start: number,
  end: number,
  words: Int32Array,
  at: number,
): number {
  let from = start;
  let to = at;
  for (; from + 3 < end; from += 4) {
    words[to++] =
      bytes[from] | (bytes[from + 1] << 8) | (bytes[from + 2] << 16) | (bytes[from + 3] << 24);
  }
  if (from === end) return to;
  let last = 0;
  for (let shift = 0; from < end; shift += 8) last |= bytes[from++] << shift;
  words[to++] = last;
  return to;
}

function copyBytes({ bytes, start, end }: Slice, u8: Uint8Array, at: number): void {
  for (let i = start, to = at; i < end; i++, to++) u8[to] = bytes[i];
}

function refuse(): never {
  assert(false, "entries are put whole");
  throw new Error("unreachable");
}
