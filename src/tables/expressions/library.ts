/**
 * What generated code calls. The numbers in it are checked where they could go wrong: a whole number beyond 2^53 - 1, a division
 * by zero, a value that does not fit its field end the operation with SITU_ARITHMETIC, before anything has changed.
 */

import type { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";

const MAX_SAFE = Number.MAX_SAFE_INTEGER;
const MAX_TIME_MS = 8.64e15;

function wrong(why: string): never {
  throw new SituError("SITU_ARITHMETIC", why);
}

/** A whole number, if it is one that a number holds exactly. No negative zero. */
export function whole(value: number): number {
  if (value > MAX_SAFE || value < -MAX_SAFE) {
    wrong(`a whole number is out of range: ${value} is beyond 2 ** 53 - 1`);
  }
  return value + 0;
}

export function time(ms: number): number {
  if (ms > MAX_TIME_MS || ms < -MAX_TIME_MS) wrong(`a timestamp is out of range: ${ms} ms`);
  return ms;
}

export function divideWhole(a: number, b: number): number {
  if (b === 0) wrong(`division by zero: ${a} / 0`);
  // Exact, which a rounded quotient need not be.
  return (a - (a % b)) / b + 0;
}

export function divideDouble(a: number, b: number): number {
  if (b === 0) wrong(`division by zero: ${a} / 0`);
  return a / b;
}

export function divideBig(a: bigint, b: bigint): bigint {
  if (b === 0n) wrong(`division by zero: ${a}n / 0n`);
  return a / b;
}

/** A value that is to be stored in a field with this range. */
export function inRange<T extends number | bigint>(value: T, least: T, most: T, where: string): T {
  if (value < least || value > most) {
    wrong(`${where}: ${value} is out of range, which is ${least} to ${most}`);
  }
  return value;
}

export function notNull(where: string): never {
  throw new SituError("SITU_TYPE", `${where} is not nullable, and would be set to null`);
}

/** Compares two strings by their code points, which is the order of their bytes in UTF-8. */
export function compareText(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  for (let i = 0; i < most; i++) {
    const one = a.charCodeAt(i);
    const other = b.charCodeAt(i);
    if (one === other) continue;
    // Halves of characters beyond 2^16 are less than some of those below.
    return (one >= 0xd800 && one < 0xe000 ? one + 0x10000 : one) <
      (other >= 0xd800 && other < 0xe000 ? other + 0x10000 : other)
      ? -1
      : 1;
  }
  return a.length - b.length;
}

export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  return Buffer.compare(a, b);
}

export function bytesStartWith(a: Uint8Array, prefix: Uint8Array): boolean {
  if (a.length < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (a[i] !== prefix[i]) return false;
  return true;
}

/** Bytes as a text, which a Set or a Map can tell apart by value. */
export function bytesKey(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/** Whether the bytes from `at` on are these. Bounded, whatever lies there. */
function sameFrom(u8: Uint8Array, at: number, wanted: Uint8Array): boolean {
  for (let i = 0; i < wanted.length; i++) if (u8[at + i] !== wanted[i]) return false;
  return true;
}

/** The same for a value in its fixed place in a row, with its length before it. */
export function inlineIs(u8: Uint8Array, at: number, wanted: Uint8Array): boolean {
  return u8[at] === wanted.length && sameFrom(u8, at + 1, wanted);
}

export function inlineStartsWith(u8: Uint8Array, at: number, wanted: Uint8Array): boolean {
  return u8[at] >= wanted.length && sameFrom(u8, at + 1, wanted);
}

/** The same for a value behind the fixed part of the row at word `row`. */
export function variableIs(views: Views, row: number, at: number, wanted: Uint8Array): boolean {
  return views.i32[at + 1] === wanted.length && sameFrom(views.u8, row * 4 + views.i32[at], wanted);
}

export function variableStartsWith(
  views: Views,
  row: number,
  at: number,
  wanted: Uint8Array,
): boolean {
  return views.i32[at + 1] >= wanted.length && sameFrom(views.u8, row * 4 + views.i32[at], wanted);
}

/** A timestamp of a row, as a number. */
export function msIn(value: unknown): number {
  return value instanceof Date ? value.getTime() : (value as number);
}

/** What went wrong with a row. Told only when it is known that the row was not torn by a writer. */
export class Failure {
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}
