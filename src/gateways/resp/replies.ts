/**
 * Replies, written one behind the other into one buffer: all forms of RESP2 and RESP3.
 *
 * Where the protocols differ, `protocol` decides: a map is an array of twice as many elements in
 * RESP2, a double or a verbatim string is a bulk string, a boolean an integer (networking.c).
 *
 * What was written last can be taken back with `rewind`: a transaction that is run again replies
 * again. Nothing is allocated for a small reply. `buffer` and `length` are open for hot paths, which
 * `reserve` room and write in place.
 *
 * Sessions of one thread can share one of these if each takes what it has written before another
 * one's turn.
 */

import { formatDouble } from "./doubles.ts";

/** Replies that would take more memory than their limit. What was written ends anywhere. */
export class OutputLimitError extends Error {
  constructor(limit: number) {
    super(`replies of more than ${limit} bytes`);
    this.name = "OutputLimitError";
  }
}

const SMALL_BYTES = 1024;
/** A larger buffer is given back when it is empty. */
const KEPT_BYTES = 64 * 1024;
/** From here on a buffer that is half full is handed over instead of copied. */
const HANDED_OVER_BYTES = 16 * 1024;
/** Up to here a loop copies faster than the runtime: `set` takes 25 ns, a part's view 50 more. */
const LOOP_BYTES = 12;
const LOOP_PART_BYTES = 32;
/** Up to here a loop is the faster way to write a text. */
const LOOP_TEXT = 64;

const CARRIAGE_RETURN = 13;
const LINE_FEED = 10;
const SPACE = 32;
const HASH = 35;
const DOLLAR = 36;
const PERCENT = 37;
const OPENING = 40;
const ASTERISK = 42;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const ZERO = 48;
const COLON = 58;
const EQUALS = 61;
const ANGLE = 62;
const UNDERSCORE = 95;
const LOWER_F = 102;
const LOWER_T = 116;
const TILDE = 126;

/** A sign and the digits of 2^53, or of a 64-bit number. */
const NUMBER_BYTES = 20;
/** A type, a number, "\r\n". */
const HEADER_BYTES = NUMBER_BYTES + 3;

const OK = Buffer.from("+OK\r\n");
const NIL_2 = Buffer.from("$-1\r\n");
const NIL_ARRAY_2 = Buffer.from("*-1\r\n");

export class Replies {
  protocol: 2 | 3 = 2;
  buffer: Buffer;
  /** Bytes written. */
  length = 0;
  /** A buffer that would have to be larger is an OutputLimitError; `isOver` sees less. */
  limit = Number.POSITIVE_INFINITY;

  constructor(bytes: number = SMALL_BYTES) {
    this.buffer = Buffer.allocUnsafeSlow(bytes);
  }

  /** Makes room for so many more bytes. */
  reserve(bytes: number): Buffer {
    if (this.length + bytes > this.buffer.length) this.#grow(this.length + bytes);
    return this.buffer;
  }

  /** Takes back what was written since `length` had this value. */
  rewind(length: number): void {
    this.length = length;
  }

  /** What was written, in memory that is the caller's; the next reply is the first one again. */
  take(): Buffer {
    const { buffer, length } = this;
    this.length = 0;
    if (length >= HANDED_OVER_BYTES && length * 2 >= buffer.length) {
      this.buffer = Buffer.allocUnsafeSlow(SMALL_BYTES);
      return buffer.subarray(0, length);
    }
    const taken = Buffer.allocUnsafe(length);
    buffer.copy(taken, 0, 0, length);
    this.#keepIfSmall();
    return taken;
  }

  /** Forgets all that was written. */
  clear(): void {
    this.length = 0;
    this.#keepIfSmall();
  }

  ok(): void {
    this.#constant(OK);
  }

  /** Line ends in the text would end the reply, and become spaces, as in Redis. */
  simple(text: string): void {
    this.#line(PLUS, text, "utf8");
  }

  /** With its code: "ERR syntax error". Latin-1 keeps bytes that are not UTF-8 as they came. */
  error(text: string, encoding: "utf8" | "latin1" = "utf8"): void {
    this.#line(MINUS, text, encoding);
  }

  integer(value: number | bigint): void {
    if (typeof value === "bigint") this.#ascii(COLON, value.toString());
    else this.#header(COLON, value);
  }

  /** [start, end) of the bytes, as a bulk string. */
  bulk(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    const size = end - start;
    const buffer = this.reserve(size + HEADER_BYTES + 2);
    this.#header(DOLLAR, size);
    const whole = size === bytes.length;
    if (size <= (whole ? LOOP_BYTES : LOOP_PART_BYTES))
      copy(bytes, start, end, buffer, this.length);
    else if (whole) buffer.set(bytes, this.length);
    else buffer.set(new Uint8Array(bytes.buffer, bytes.byteOffset + start, size), this.length);
    const at = this.length + size;
    buffer[at] = CARRIAGE_RETURN;
    buffer[at + 1] = LINE_FEED;
    this.length = at + 2;
  }

  /** A string, as a bulk string in UTF-8. */
  text(text: string): void {
    const size = text.length;
    if (size > LOOP_TEXT || !this.#asciiBulk(text, size)) this.#utf8(DOLLAR, "", text);
  }

  nil(): void {
    if (this.protocol === 2) this.#constant(NIL_2);
    else this.#null();
  }

  nilArray(): void {
    if (this.protocol === 2) this.#constant(NIL_ARRAY_2);
    else this.#null();
  }

  array(count: number): void {
    this.#header(ASTERISK, count);
  }

  /** So many pairs follow. */
  map(pairs: number): void {
    if (this.protocol === 2) this.#header(ASTERISK, 2 * pairs);
    else this.#header(PERCENT, pairs);
  }

  set(count: number): void {
    this.#header(this.protocol === 2 ? ASTERISK : TILDE, count);
  }

  push(count: number): void {
    this.#header(this.protocol === 2 ? ASTERISK : ANGLE, count);
  }

  double(value: number): void {
    const text = formatDouble(value);
    if (this.protocol === 2) this.text(text);
    else this.#ascii(COMMA, text);
  }

  boolean(value: boolean): void {
    if (this.protocol === 2) this.#header(COLON, value ? 1 : 0);
    else this.#letter(HASH, value ? LOWER_T : LOWER_F);
  }

  /** A text for people, with its format of three letters: "txt" or "mkd". */
  verbatim(format: string, text: string): void {
    if (this.protocol === 2) this.text(text);
    else this.#utf8(EQUALS, `${format.slice(0, 3).padEnd(3)}:`, text);
  }

  /** A whole number of any size, in decimal. */
  bigNumber(text: string): void {
    if (this.protocol === 2) this.text(text);
    else this.#ascii(OPENING, text);
  }

  /** Bytes that are replies already. */
  raw(bytes: Uint8Array): void {
    this.reserve(bytes.length).set(bytes, this.length);
    this.length += bytes.length;
  }

  #null(): void {
    const buffer = this.reserve(3);
    const at = this.length;
    buffer[at] = UNDERSCORE;
    buffer[at + 1] = CARRIAGE_RETURN;
    buffer[at + 2] = LINE_FEED;
    this.length = at + 3;
  }

  #letter(type: number, letter: number): void {
    const buffer = this.reserve(4);
    const at = this.length;
    buffer[at] = type;
    buffer[at + 1] = letter;
    buffer[at + 2] = CARRIAGE_RETURN;
    buffer[at + 3] = LINE_FEED;
    this.length = at + 4;
  }

  #constant(bytes: Buffer): void {
    const buffer = this.reserve(bytes.length);
    let at = this.length;
    for (let i = 0; i < bytes.length; i++) buffer[at++] = bytes[i];
    this.length = at;
  }

  /** A type, a whole number, "\r\n". */
  #header(type: number, value: number): void {
    const buffer = this.reserve(HEADER_BYTES);
    let at = this.length;
    buffer[at++] = type;
    if (value >= 0 && value <= 9) buffer[at++] = ZERO + value;
    else at = writeNumber(buffer, at, value);
    buffer[at] = CARRIAGE_RETURN;
    buffer[at + 1] = LINE_FEED;
    this.length = at + 2;
  }

  /** A type and a text of digits and such, on one line. */
  #ascii(type: number, text: string): void {
    const size = text.length;
    const buffer = this.reserve(size + 3);
    let at = this.length;
    buffer[at++] = type;
    for (let i = 0; i < size; i++) buffer[at++] = text.charCodeAt(i);
    buffer[at] = CARRIAGE_RETURN;
    buffer[at + 1] = LINE_FEED;
    this.length = at + 2;
  }

  /** A type and a text on one line: "\r" and "\n" in it become spaces. */
  #line(type: number, text: string, encoding: "utf8" | "latin1"): void {
    const size = text.length;
    // A character is at most three bytes: four-byte ones are two characters in a string.
    const buffer = this.reserve(3 * size + 3);
    const start = this.length + 1;
    buffer[start - 1] = type;
    let at = start;
    if (size <= LOOP_TEXT) {
      for (let i = 0; i < size; i++) {
        const code = text.charCodeAt(i);
        if (code > 127) break;
        buffer[at++] = code === CARRIAGE_RETURN || code === LINE_FEED ? SPACE : code;
      }
    }
    if (at - start < size) {
      const end = start + buffer.write(text, start, encoding);
      for (at = start; at < end; at++) {
        if (buffer[at] === CARRIAGE_RETURN || buffer[at] === LINE_FEED) buffer[at] = SPACE;
      }
    }
    buffer[at] = CARRIAGE_RETURN;
    buffer[at + 1] = LINE_FEED;
    this.length = at + 2;
  }

  /** Most texts are ASCII, and as many bytes as characters; false, and nothing written, if not. */
  #asciiBulk(text: string, size: number): boolean {
    const begin = this.length;
    const buffer = this.reserve(size + HEADER_BYTES + 2);
    this.#header(DOLLAR, size);
    let at = this.length;
    for (let i = 0; i < size; i++) {
      const code = text.charCodeAt(i);
      if (code > 127) {
        this.length = begin;
        return false;
      }
      buffer[at++] = code;
    }
    buffer[at] = CARRIAGE_RETURN;
    buffer[at + 1] = LINE_FEED;
    this.length = at + 2;
    return true;
  }

  #utf8(type: number, prefix: string, text: string): void {
    const size = prefix.length + Buffer.byteLength(text);
    const buffer = this.reserve(size + HEADER_BYTES + 2);
    this.#header(type, size);
    let at = this.length;
    at += buffer.write(prefix, at, "latin1");
    at += buffer.write(text, at, "utf8");
    buffer[at] = CARRIAGE_RETURN;
    buffer[at + 1] = LINE_FEED;
    this.length = at + 2;
  }

  #grow(needed: number): void {
    if (needed > this.limit) throw new OutputLimitError(this.limit);
    let capacity = Math.max(SMALL_BYTES, this.buffer.length * 2);
    while (capacity < needed) capacity *= 2;
    const buffer = Buffer.allocUnsafeSlow(Math.min(capacity, this.limit));
    this.buffer.copy(buffer, 0, 0, this.length);
    this.buffer = buffer;
  }

  #keepIfSmall(): void {
    if (this.buffer.length > KEPT_BYTES) this.buffer = Buffer.allocUnsafeSlow(SMALL_BYTES);
  }
}

function copy(from: Uint8Array, start: number, end: number, to: Buffer, at: number): void {
  let i = start;
  for (; i + 3 < end; i += 4, at += 4) {
    to[at] = from[i];
    to[at + 1] = from[i + 1];
    to[at + 2] = from[i + 2];
    to[at + 3] = from[i + 3];
  }
  for (; i < end; i++) to[at++] = from[i];
}

/** A whole number in decimal; where it ends. */
function writeNumber(buffer: Buffer, at: number, value: number): number {
  if (value < 0 || value > 0x7fffffff) {
    const text = String(value);
    for (let i = 0; i < text.length; i++) buffer[at++] = text.charCodeAt(i);
    return at;
  }
  let end = at;
  for (let left = value | 0; left > 0; left = (left / 10) | 0) end++;
  let left = value | 0;
  for (let i = end - 1; i >= at; i--) {
    const rest = (left / 10) | 0;
    buffer[i] = ZERO + left - rest * 10;
    left = rest;
  }
  return end;
}
