/**
 * A small hash or set as one piece of bytes, which is the value of its key's row:
 *
 *   bytes 0–7    PACKED_HASH or PACKED_SET, three zeros, how many members there are (form.ts)
 *   then each    the member's length and its bytes, and in a hash the value's length and its bytes
 *
 * A length below 255 is one byte; else it is 255 and four bytes. Members are in the order in which
 * they were added, as in Redis's listpacks. With the few that there are, looking at one after the
 * other is quicker than anything that would have to be built first.
 */

import type { Replies } from "../../resp/replies.ts";
import { COUNT_AT, copyBytes, type Form, HEAD_BYTES, NO_VALUE, PACKED_HASH } from "./form.ts";

/** A length that does not fit into one byte. */
const LONG = 255;
const LONG_BYTES = 5;
/** Room for what comes next, when there is none. */
const SPARE_BYTES = 64;

export class Packed implements Form {
  #bytes: Buffer;
  /** Of the bytes that are used. */
  #end: number;
  #size: number;
  readonly #hasValues: boolean;
  // The current entry.
  #start = 0;
  #memberStart = 0;
  #memberEnd = 0;
  #valueStart = 0;
  #next = 0;
  /** Where each entry starts, once someone asked by position. */
  #starts: Int32Array | undefined;

  /** Takes over the bytes. */
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#end = bytes.length;
    this.#size = bytes.readUInt32LE(COUNT_AT);
    this.#hasValues = bytes[0] === PACKED_HASH;
  }

  static empty(form: number): Packed {
    const bytes = Buffer.alloc(HEAD_BYTES);
    bytes[0] = form;
    return new Packed(bytes);
  }

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#end;
  }

  find(member: Uint8Array): boolean {
    const { length } = member;
    const end = this.#end;
    for (let at = HEAD_BYTES; at < end; at = this.#next) {
      this.#read(at);
      if (this.#memberEnd - this.#memberStart === length && this.#isMember(member)) return true;
    }
    return false;
  }

  go(position: number): void {
    this.#starts ??= this.#index();
    this.#read(this.#starts[position]);
  }

  get member(): Uint8Array {
    return this.#bytes.subarray(this.#memberStart, this.#memberEnd);
  }

  get value(): Uint8Array {
    if (!this.#hasValues) return NO_VALUE;
    return this.#bytes.subarray(this.#valueStart, this.#next);
  }

  replyMember(replies: Replies): void {
    replies.bulk(this.#bytes, this.#memberStart, this.#memberEnd);
  }

  replyValue(replies: Replies): void {
    replies.bulk(this.#bytes, this.#valueStart, this.#next);
  }

  add(member: Uint8Array, value: Uint8Array): void {
    const needed = member.length + value.length + 2 * LONG_BYTES;
    if (this.#end + needed > this.#bytes.length) this.#grow(needed);
    let at = writeLength(this.#bytes, this.#end, member.length);
    copyBytes(member, this.#bytes, at);
    at += member.length;
    if (this.#hasValues) {
      at = writeLength(this.#bytes, at, value.length);
      copyBytes(value, this.#bytes, at);
      at += value.length;
    }
    this.#end = at;
    this.#size++;
    this.#starts = undefined;
  }

  change(value: Uint8Array): void {
    const { length } = value;
    const before = this.#next - this.#memberEnd;
    const after = lengthBytes(length) + length;
    if (after !== before) this.#shift(this.#next, after - before);
    const at = writeLength(this.#bytes, this.#memberEnd, length);
    copyBytes(value, this.#bytes, at);
    this.#valueStart = at;
    this.#next = at + length;
  }

  remove(): void {
    this.#shift(this.#next, this.#start - this.#next);
    this.#size--;
  }

  row(): Uint8Array {
    this.#bytes.writeUInt32LE(this.#size, COUNT_AT);
    return this.#bytes.subarray(0, this.#end);
  }

  /** Makes the entry at a place the current one. */
  #read(start: number): void {
    const bytes = this.#bytes;
    this.#start = start;
    let at = start;
    let length = bytes[at++];
    if (length === LONG) {
      length = bytes.readUInt32LE(at);
      at += 4;
    }
    this.#memberStart = at;
    at += length;
    this.#memberEnd = at;
    if (this.#hasValues) {
      length = bytes[at++];
      if (length === LONG) {
        length = bytes.readUInt32LE(at);
        at += 4;
      }
      this.#valueStart = at;
      at += length;
    }
    this.#next = at;
  }

  #isMember(member: Uint8Array): boolean {
    const bytes = this.#bytes;
    const start = this.#memberStart;
    for (let i = 0; i < member.length; i++) if (bytes[start + i] !== member[i]) return false;
    return true;
  }

  #index(): Int32Array {
    const starts = new Int32Array(this.#size);
    for (let i = 0, at = HEAD_BYTES; i < starts.length; i++, at = this.#next) {
      this.#read(at);
      starts[i] = at;
    }
    return starts;
  }

  /** Moves what lies from a place on. */
  #shift(from: number, by: number): void {
    if (this.#end + by > this.#bytes.length) this.#grow(by);
    this.#bytes.copyWithin(from + by, from, this.#end);
    this.#end += by;
    this.#starts = undefined;
  }

  #grow(needed: number): void {
    const bytes = Buffer.allocUnsafe(this.#end + needed + Math.max(SPARE_BYTES, this.#end >> 1));
    bytes.set(this.#bytes.subarray(0, this.#end));
    this.#bytes = bytes;
  }
}

function lengthBytes(length: number): number {
  return length < LONG ? 1 : LONG_BYTES;
}

/** Returns where the bytes go. */
function writeLength(bytes: Buffer, at: number, length: number): number {
  if (length < LONG) {
    bytes[at] = length;
    return at + 1;
  }
  bytes[at] = LONG;
  return bytes.writeUInt32LE(length, at + 1);
}
