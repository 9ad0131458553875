/**
 * Inline commands: a line of words, for people with telnet. Words may be quoted, by the rules of
 * Redis (sds.c, sdssplitargs): in double quotes \n \r \t \b \a, \xHH and any other character after
 * a backslash; in single quotes only \'. A closing quote ends the word, so a space or the end of the
 * line must follow; an opening one may stand in the middle of a word.
 *
 * A word without its quotes is never longer than with them, so it is written where it stood.
 *
 * For Redis a line ends at a NUL byte, as a C string does, and it then waits for ever for the end of
 * the line. Here NUL is a byte like others.
 */

import type { Request } from "./request.ts";

const TAB = 9;
const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const DOUBLE_QUOTE = 34;
const SINGLE_QUOTE = 39;
const BACKSLASH = 92;
const LOWER_A = 97;
const LOWER_B = 98;
const LOWER_N = 110;
const LOWER_R = 114;
const LOWER_T = 116;
const LOWER_X = 120;

/** As isspace: vertical tab and form feed are spaces between words, but do not end one. */
function isSpace(byte: number): boolean {
  return byte === SPACE || (byte >= TAB && byte <= CARRIAGE_RETURN);
}

function endsWord(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === LINE_FEED || byte === CARRIAGE_RETURN;
}

/** 0 to 15, or −1. */
function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const lower = byte | 32;
  return lower >= LOWER_A && lower <= LOWER_A + 5 ? lower - LOWER_A + 10 : -1;
}

function unescaped(byte: number): number {
  if (byte === LOWER_N) return LINE_FEED;
  if (byte === LOWER_R) return CARRIAGE_RETURN;
  if (byte === LOWER_T) return TAB;
  if (byte === LOWER_B) return 8;
  if (byte === LOWER_A) return 7;
  return byte;
}

class Line {
  bytes: Buffer;
  end: number;
  /** Where reading goes on, and where the next byte of the word is written. */
  at: number;
  to = 0;

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  skipSpace(): void {
    while (this.at < this.end && isSpace(this.bytes[this.at])) this.at++;
  }

  /** Reads one word and leaves `to` at its end; false: its quotes are not in order. */
  word(): boolean {
    const { bytes, end } = this;
    this.to = this.at;
    while (this.at < end) {
      const byte = bytes[this.at++];
      if (endsWord(byte)) return true;
      if (byte === DOUBLE_QUOTE) return this.#doubleQuoted();
      if (byte === SINGLE_QUOTE) return this.#singleQuoted();
      bytes[this.to++] = byte;
    }
    return true;
  }

  #doubleQuoted(): boolean {
    const { bytes, end } = this;
    while (this.at < end) {
      const byte = bytes[this.at++];
      if (byte === DOUBLE_QUOTE) return this.#closed();
      if (byte !== BACKSLASH || this.at === end) bytes[this.to++] = byte;
      else bytes[this.to++] = this.#escaped();
    }
    return false;
  }

  #escaped(): number {
    const { bytes } = this;
    const byte = bytes[this.at++];
    if (byte !== LOWER_X || this.at + 2 > this.end) return unescaped(byte);
    const high = hexDigit(bytes[this.at]);
    const low = hexDigit(bytes[this.at + 1]);
    if (high < 0 || low < 0) return byte;
    this.at += 2;
    return high * 16 + low;
  }

  #singleQuoted(): boolean {
    const { bytes, end } = this;
    while (this.at < end) {
      let byte = bytes[this.at++];
      if (byte === SINGLE_QUOTE) return this.#closed();
      if (byte === BACKSLASH && this.at < end && bytes[this.at] === SINGLE_QUOTE) {
        byte = SINGLE_QUOTE;
        this.at++;
      }
      bytes[this.to++] = byte;
    }
    return false;
  }

  #closed(): boolean {
    return this.at === this.end || isSpace(this.bytes[this.at]);
  }
}

/** The words of [start, end) become the arguments; false: the quotes are not in order. */
export function splitInline(request: Request, bytes: Buffer, start: number, end: number): boolean {
  const line = new Line(bytes, start, end);
  let count = 0;
  for (;;) {
    line.skipSpace();
    if (line.at === end) break;
    const from = line.at;
    if (!line.word()) return false;
    if (count === request.starts.length) {
      request.count = count;
      request.grow();
    }
    request.starts[count] = from;
    request.ends[count] = line.to;
    count++;
  }
  request.bytes = bytes;
  request.count = count;
  return true;
}
