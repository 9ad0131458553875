/**
 * A small set of nothing but 64-bit integers, in ascending order, as Redis's intset:
 *
 *   bytes 0–7    INTEGERS, bytes of each integer (2, 4 or 8), two zeros, how many there are
 *   then each    the integer, of the width that the largest of them needs
 *
 * The width only grows. A member is its decimal text, which an integer has only one of.
 */

import type { Replies } from "../../resp/replies.ts";
import { type Int64, parseInt64 } from "../numbers.ts";
import { COUNT_AT, type Form, HEAD_BYTES, INTEGERS, NO_VALUE } from "./form.ts";

const WIDTH_AT = 1;

export class Integers implements Form {
  #bytes: Buffer;
  #size: number;
  #width: number;
  #position = 0;
  /** What `find` looked for last, and the place where it belongs. */
  #sought: Int64 = 0;

  /** Takes over the bytes. */
  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#size = bytes.readUInt32LE(COUNT_AT);
    this.#width = bytes[WIDTH_AT];
  }

  static empty(): Integers {
    const bytes = Buffer.alloc(HEAD_BYTES);
    bytes[0] = INTEGERS;
    bytes[WIDTH_AT] = 2;
    return new Integers(bytes);
  }

  get size(): number {
    return this.#size;
  }

  find(member: Uint8Array): boolean {
    const sought = parseInt64(member);
    if (sought === undefined) return false;
    this.#sought = sought;
    let from = 0;
    let to = this.#size;
    while (from < to) {
      const middle = (from + to) >> 1;
      const found = this.#at(middle);
      if (found < sought) from = middle + 1;
      else to = middle;
    }
    this.#position = from;
    // Loosely: a number here may be a bigint there.
    // biome-ignore lint/suspicious/noDoubleEquals: 1 and 1n are the same integer
    return from < this.#size && this.#at(from) == sought;
  }

  go(position: number): void {
    this.#position = position;
  }

  get member(): Uint8Array {
    return Buffer.from(this.#at(this.#position).toString(), "latin1");
  }

  get value(): Uint8Array {
    return NO_VALUE;
  }

  replyMember(replies: Replies): void {
    replies.text(this.#at(this.#position).toString());
  }

  replyValue(replies: Replies): void {
    replies.bulk(NO_VALUE);
  }

  /** The member is an integer. */
  add(): void {
    const width = widthOf(this.#sought);
    this.#makeRoom(Math.max(width, this.#width));
    this.#size++;
    const from = HEAD_BYTES + this.#position * this.#width;
    const end = HEAD_BYTES + (this.#size - 1) * this.#width;
    this.#bytes.copyWithin(from + this.#width, from, end);
    write(this.#bytes, this.#width, this.#position, this.#sought);
  }

  change(): void {}

  remove(): void {
    const from = HEAD_BYTES + this.#position * this.#width;
    this.#bytes.copyWithin(from, from + this.#width, HEAD_BYTES + this.#size * this.#width);
    this.#size--;
  }

  row(): Uint8Array {
    this.#bytes.writeUInt32LE(this.#size, COUNT_AT);
    return this.#bytes.subarray(0, HEAD_BYTES + this.#size * this.#width);
  }

  #at(position: number): Int64 {
    return read(this.#bytes, this.#width, position);
  }

  /** For one more, of this width. */
  #makeRoom(width: number): void {
    const size = this.#size;
    const needed = HEAD_BYTES + (size + 1) * width;
    if (width === this.#width && needed <= this.#bytes.length) return;
    const bytes = Buffer.allocUnsafe(needed + (size >> 1) * width);
    bytes.set(this.#bytes.subarray(0, HEAD_BYTES));
    if (width === this.#width) {
      bytes.set(this.#bytes.subarray(0, HEAD_BYTES + size * width));
    } else {
      bytes[WIDTH_AT] = width;
      for (let i = 0; i < size; i++) write(bytes, width, i, this.#at(i));
    }
    this.#bytes = bytes;
    this.#width = width;
  }
}

function widthOf(value: Int64): number {
  if (value >= -0x8000 && value <= 0x7fff) return 2;
  return value >= -0x80000000 && value <= 0x7fffffff ? 4 : 8;
}

function read(bytes: Buffer, width: number, position: number): Int64 {
  const at = HEAD_BYTES + position * width;
  if (width === 2) return bytes.readInt16LE(at);
  return width === 4 ? bytes.readInt32LE(at) : bytes.readBigInt64LE(at);
}

function write(bytes: Buffer, width: number, position: number, value: Int64): void {
  const at = HEAD_BYTES + position * width;
  if (width === 2) bytes.writeInt16LE(Number(value), at);
  else if (width === 4) bytes.writeInt32LE(Number(value), at);
  else bytes.writeBigInt64LE(BigInt(value), at);
}
