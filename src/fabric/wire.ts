/**
 * What goes over a fabric: words. A frame is four words of header and a body, an even number of
 * words in all, so that rows and 64-bit numbers in it are aligned as in a store's memory, and can
 * be decoded where they lie:
 *
 *   word 0  words of the frame, these four included
 *   word 1  kind of message, eight bits; above it FLAG_REPLY, FLAG_ERROR, FLAG_ONE_WAY
 *   word 2  id of the request, chosen by its sender; the reply has the same
 *   word 3  configuration number of the sender
 *
 * A `Writer` appends to a buffer that grows; a `Reader` walks over words that may be garbage, and
 * throws SITU_PROTOCOL before it reads beyond them.
 */

import { Views } from "../memory/views.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_FRAME_BYTES, MAX_VALUE_DEPTH } from "../runtime/limits.ts";

export const FRAME_HEADER_WORDS = 4;
export const FRAME_LENGTH = 0;
export const FRAME_KIND = 1;
export const FRAME_ID = 2;
export const FRAME_CONFIGURATION = 3;

export const KIND_MASK = 0xff;
export const FLAG_REPLY = 0x100;
export const FLAG_ERROR = 0x200;
/** A message that nobody answers. */
export const FLAG_ONE_WAY = 0x400;

export const MAX_FRAME_WORDS = MAX_FRAME_BYTES / 4;

/** Values that keys and arguments are made of. */
const UNDEFINED = 0;
const NULL = 1;
const FALSE = 2;
const TRUE = 3;
const INTEGER = 4;
const NUMBER = 5;
const BIGINT = 6;
const TEXT = 7;
const BYTES = 8;
const LIST = 9;
const OBJECT = 10;

const FIRST_WORDS = 1024;

export class Writer {
  readonly views = new Views(new ArrayBuffer(FIRST_WORDS * 4));
  /** Where the next word goes. */
  at = 0;
  /** Nothing is written from here on: what grows beyond it is refused before memory is taken. */
  limit = Number.POSITIVE_INFINITY;

  clear(): void {
    this.at = 0;
  }

  /** Makes room for so many words at `at`. */
  reserve(words: number): void {
    const wanted = this.at + words;
    if (wanted <= this.views.i32.length) return;
    if (wanted > this.limit) throw tooLong();
    const before = this.views.i32;
    // An even number of words, as all views must fit it.
    const room = (Math.max(wanted, 2 * before.length) + 3) & ~1;
    this.views.reset(new ArrayBuffer(room * 4));
    this.views.i32.set(before.subarray(0, this.at));
  }

  word(value: number): void {
    if (this.at >= this.views.i32.length) this.reserve(1);
    this.views.i32[this.at++] = value;
  }

  /** A whole number up to 2^53, or any other float64, on an even word. */
  wide(value: number): void {
    this.reserve(3);
    this.align();
    this.views.f64[this.at >> 1] = value;
    this.at += 2;
  }

  /** So that what follows begins at an even word. */
  align(): void {
    if ((this.at & 1) !== 0) this.word(0);
  }

  words(source: Int32Array, from: number, count: number): void {
    this.reserve(count);
    const { i32 } = this.views;
    if (count <= 32) {
      for (let i = 0; i < count; i++) i32[this.at + i] = source[from + i];
    } else {
      i32.set(source.subarray(from, from + count), this.at);
    }
    this.at += count;
  }

  bytes(source: Uint8Array): void {
    const words = (source.length + 3) >> 2;
    this.reserve(words + 1);
    this.views.i32[this.at++] = source.length;
    if (words > 0) this.views.i32[this.at + words - 1] = 0;
    this.views.u8.set(source, this.at * 4);
    this.at += words;
  }

  text(value: string): void {
    let most = (3 * value.length + 3) >> 2;
    // To count the bytes takes time; so only where it matters.
    if (this.at + most >= this.limit) most = (Buffer.byteLength(value) + 3) >> 2;
    this.reserve(most + 1);
    const start = this.at + 1;
    const length = this.views.bytes.write(value, start * 4, "utf8");
    this.views.i32[this.at] = length;
    const words = (length + 3) >> 2;
    this.views.u8.fill(0, start * 4 + length, (start + words) * 4);
    this.at = start + words;
  }

  /** A value that JSON knows, or undefined, a bigint, or bytes. */
  value(value: unknown, depth = 0): void {
    if (depth > MAX_VALUE_DEPTH) {
      throw new SituError("SITU_TOO_LARGE", `values are nested up to ${MAX_VALUE_DEPTH} deep`);
    }
    if (typeof value === "number") {
      if ((value | 0) === value && !Object.is(value, -0)) {
        this.word(INTEGER);
        this.word(value);
      } else {
        this.word(NUMBER);
        this.wide(value);
      }
    } else if (typeof value === "string") {
      this.word(TEXT);
      this.text(value);
    } else if (typeof value === "bigint") {
      // As text: values of 64 bits with and without a sign differ, and nobody sends many.
      this.word(BIGINT);
      this.text(value.toString());
    } else if (value === undefined) this.word(UNDEFINED);
    else if (value === null) this.word(NULL);
    else if (typeof value === "boolean") this.word(value ? TRUE : FALSE);
    else if (value instanceof Uint8Array) {
      this.word(BYTES);
      this.bytes(value);
    } else if (Array.isArray(value)) {
      this.word(LIST);
      this.word(value.length);
      for (const each of value) this.value(each, depth + 1);
    } else if (typeof value === "object") {
      const entries = Object.entries(value);
      this.word(OBJECT);
      this.word(entries.length);
      for (const [name, each] of entries) {
        this.text(name);
        this.value(each, depth + 1);
      }
    } else {
      throw new SituError("SITU_TYPE", `a ${typeof value} cannot be sent to another machine`);
    }
  }
}

export class Reader {
  views: Views;
  at = 0;
  end = 0;

  constructor(views: Views) {
    this.views = views;
  }

  /** Reads the words [at, end) of `views` from now on. */
  reset(views: Views, at: number, end: number): this {
    this.views = views;
    this.at = at;
    this.end = end;
    return this;
  }

  get left(): number {
    return this.end - this.at;
  }

  word(): number {
    if (this.at >= this.end) throw tooShort();
    return this.views.i32[this.at++];
  }

  /** A word that counts something: at least 0, at most `most`. */
  count(most: number): number {
    const value = this.word();
    if (value < 0 || value > most) {
      throw new SituError("SITU_PROTOCOL", `a message says ${value}, where ${most} is the most`);
    }
    return value;
  }

  wide(): number {
    this.align();
    if (this.at + 2 > this.end) throw tooShort();
    const value = this.views.f64[this.at >> 1];
    this.at += 2;
    return value;
  }

  align(): void {
    if ((this.at & 1) !== 0) this.at++;
  }

  /** Passes over so many words and says where they begin. */
  skip(words: number): number {
    const from = this.at;
    if (words < 0 || from + words > this.end) throw tooShort();
    this.at = from + words;
    return from;
  }

  bytes(): Uint8Array {
    const length = this.count(this.left * 4);
    const from = this.skip((length + 3) >> 2) * 4;
    return this.views.u8.slice(from, from + length);
  }

  text(): string {
    const length = this.count(this.left * 4);
    const from = this.skip((length + 3) >> 2) * 4;
    return this.views.bytes.toString("utf8", from, from + length);
  }

  value(depth = 0): unknown {
    if (depth > MAX_VALUE_DEPTH) throw new SituError("SITU_PROTOCOL", "a value is nested too deep");
    const tag = this.word();
    switch (tag) {
      case UNDEFINED:
        return undefined;
      case NULL:
        return null;
      case FALSE:
        return false;
      case TRUE:
        return true;
      case INTEGER:
        return this.word();
      case NUMBER:
        return this.wide();
      case BIGINT:
        return bigintOf(this.text());
      case TEXT:
        return this.text();
      case BYTES:
        return this.bytes();
      case LIST: {
        const list: unknown[] = [];
        for (let left = this.count(this.left); left > 0; left--) list.push(this.value(depth + 1));
        return list;
      }
      case OBJECT: {
        const entries: [string, unknown][] = [];
        for (let left = this.count(this.left); left > 0; left--) {
          entries.push([this.text(), this.value(depth + 1)]);
        }
        return Object.fromEntries(entries);
      }
      default:
        throw new SituError("SITU_PROTOCOL", `there is no kind of value ${tag}`);
    }
  }
}

function bigintOf(text: string): bigint {
  if (!/^-?\d{1,20}$/.test(text)) throw new SituError("SITU_PROTOCOL", "a bigint is none");
  return BigInt(text);
}

export function tooLong(): SituError {
  return new SituError("SITU_TOO_LARGE", `a message has at most ${MAX_FRAME_BYTES} bytes`);
}

function tooShort(): SituError {
  return new SituError("SITU_PROTOCOL", "a message ends too early");
}
