/**
 * A fat pointer (FaRM §3.5): address, size and expected incarnation of an object, or of an array
 * of `count` objects of that size. It stays valid until the object is freed, in every process, and
 * can be stored in a `pointer()` field. Following it after that fails, it never finds other data.
 */

import { SituError } from "../runtime/errors.ts";
import type { Address } from "./address.ts";
import { addressOf, regionIdOf, wordOf } from "./address.ts";
import { ALLOCATED, ARRAY, ARRAY_HEADER_WORDS, HEADER_WORDS } from "./object.ts";

export const POINTER_WORDS = 6;

export function wordsFor(bytes: number): number {
  return Math.ceil(bytes / 8) * 2;
}

/** A reference to an object or an array that `tx.alloc` or `tx.allocArray` has allocated. */
export class Pointer {
  /** Only what the constructor has made has it: `instanceof` believes any prototype. */
  readonly #isPointer = true;
  readonly address: Address;
  /** Bytes of the object, or of each element. */
  readonly size: number;
  readonly incarnation: number;
  /** Elements of an array; 0 for a single object. */
  readonly count: number;

  constructor(address: Address, size: number, incarnation: number, count = 0) {
    this.address = address;
    this.size = size;
    this.incarnation = incarnation;
    this.count = count;
    Object.freeze(this);
  }

  /** Whether a value is a pointer. */
  static is(value: unknown): value is Pointer {
    return typeof value === "object" && value !== null && #isPointer in value;
  }

  /** A pointer to one element of an array. */
  at(index: number): Pointer {
    if (!Number.isInteger(index) || index < 0 || index >= this.count) {
      throw new SituError("SITU_TYPE", `element ${index} of an array of ${this.count}`);
    }
    const stride = HEADER_WORDS + wordsFor(this.size);
    const word = wordOf(this.address) + ARRAY_HEADER_WORDS + index * stride;
    const incarnation = (this.incarnation & ~ARRAY) | ALLOCATED;
    return new Pointer(addressOf(regionIdOf(this.address), word), this.size, incarnation);
  }

  /** For a pointer inside an object: 24 bytes that `fromBytes` understands in any process. */
  toBytes(): Uint8Array {
    const bytes = new Uint8Array(Pointer.BYTES);
    writePointer(new Int32Array(bytes.buffer), 0, this);
    return bytes;
  }

  /** Reads what `toBytes` has written; null for zeroes, as in an object that was just allocated. */
  static fromBytes(bytes: Uint8Array, offset = 0): Pointer | null {
    if (offset < 0 || offset + Pointer.BYTES > bytes.length) {
      throw new SituError("SITU_TYPE", `a pointer has ${Pointer.BYTES} bytes, from ${offset} on`);
    }
    const copy = bytes.slice(offset, offset + Pointer.BYTES);
    return readPointer(new Int32Array(copy.buffer), 0);
  }

  static readonly BYTES = 4 * POINTER_WORDS;

  /** For messages and logs. */
  toString(): string {
    const shape = this.count > 0 ? `${this.count} × ${this.size}` : `${this.size}`;
    return `pointer(${regionIdOf(this.address)}:${wordOf(this.address) * 4}, ${shape} bytes)`;
  }
}

export function isPointer(value: unknown): value is Pointer {
  return Pointer.is(value);
}

/** Stores a pointer, or its absence, at a word. */
export function writePointer(i32: Int32Array, at: number, pointer: Pointer | null): void {
  if (pointer === null) {
    i32.fill(0, at, at + POINTER_WORDS);
    return;
  }
  i32[at] = regionIdOf(pointer.address) + 1;
  i32[at + 1] = wordOf(pointer.address);
  i32[at + 2] = pointer.incarnation;
  i32[at + 3] = pointer.size;
  i32[at + 4] = pointer.count;
  i32[at + 5] = 0;
}

export function readPointer(i32: Int32Array, at: number): Pointer | null {
  const region = i32[at];
  if (region === 0) return null;
  return new Pointer(addressOf(region - 1, i32[at + 1]), i32[at + 3], i32[at + 2], i32[at + 4]);
}
