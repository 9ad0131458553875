/**
 * Values that are stored in another form than callers have them: timestamps, UUIDs, enums, and whole
 * numbers of more than 32 bits in their ordered form. None of these functions runs code of the
 * caller's: a Date is read by the methods of Date itself, whatever its own say.
 *
 *   u53 i53 timestamp   a double, which holds such numbers exactly
 *   uuid                four words, of which the first has the first four bytes, the first of them on
 *                       top: so words compare as the texts do
 *   enum                the position of the value in the declaration, one byte
 */

import { wrongType } from "./values.ts";

/** The largest distance from 1970 that a Date can have, in milliseconds. */
const MAX_TIME_MS = 8.64e15;
const UUID_CHARACTERS = 36;
const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export const TIME_EXPECTED = "a Date or a whole number of milliseconds";
export const UUID_EXPECTED = "a UUID, as in crypto.randomUUID()";

const getTime = Date.prototype.getTime;

/** The milliseconds of a Date; NaN for what is none, and for an invalid one. */
export function msOfDate(value: object): number {
  try {
    return getTime.call(value);
  } catch {
    return Number.NaN;
  }
}

/** The milliseconds of a moment, as a caller writes it; undefined if it is none. */
export function msOf(value: unknown): number | undefined {
  const ms = typeof value === "object" && value !== null ? msOfDate(value) : value;
  const isTime = Number.isInteger(ms) && Math.abs(ms as number) <= MAX_TIME_MS;
  // No negative zero: it would be another key.
  return isTime ? (ms as number) + 0 : undefined;
}

/** The same; what is no moment is refused. */
export function timeOf(value: unknown, where: string): number {
  return msOf(value) ?? wrongType(where, TIME_EXPECTED, value);
}

/** The position of a value in an enum. */
export function codeOf(
  codes: ReadonlyMap<unknown, number>,
  value: unknown,
  where: string,
  expected: string,
): number {
  return codes.get(value) ?? wrongType(where, expected, value);
}

/** The ordered form of a whole number of up to 53 bits; `flip` is the sign bit if it has a sign. */
export function orderWhole(ordered: Int32Array, top: number, value: number, flip: number): number {
  ordered[top] = Math.floor(value / 0x1_0000_0000) ^ flip;
  ordered[top + 1] = value;
  return top + 2;
}

/** The value of each hexadecimal digit by its character code; 255 for all others. */
const DIGITS = new Uint8Array(128).fill(255);
for (let digit = 0; digit < 16; digit++) {
  const character = digit.toString(16);
  DIGITS[character.charCodeAt(0)] = digit;
  DIGITS[character.toUpperCase().charCodeAt(0)] = digit;
}
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const DASH = 0x2d;

/** Writes a UUID as four words, or refuses what is none. */
export function writeUuid(words: Int32Array, at: number, value: unknown, where: string): void {
  if (typeof value !== "string" || value.length !== UUID_CHARACTERS) {
    wrongType(where, UUID_EXPECTED, value);
  }
  let digits = 0;
  let word = 0;
  // Or-ed digits and character codes: one that is too large shows in the end.
  let all = 0;
  for (let i = 0; i < UUID_CHARACTERS; i++) {
    const code = value.charCodeAt(i);
    if (i === 8 || i === 13 || i === 18 || i === 23) {
      if (code !== DASH) all = 255;
      continue;
    }
    const digit = code < 128 ? DIGITS[code] : 255;
    all |= digit;
    word = (word << 4) | digit;
    if ((++digits & 7) === 0) words[at + (digits >> 3) - 1] = word;
  }
  if (all > 15) wrongType(where, UUID_EXPECTED, value);
}

function shownWord(word: number, withDash: boolean): string {
  const upper = HEX[word >>> 24] + HEX[(word >>> 16) & 0xff];
  const lower = HEX[(word >>> 8) & 0xff] + HEX[word & 0xff];
  return withDash ? `${upper}-${lower}` : upper + lower;
}

/** The text of the UUID that lies in four words, in lower case. */
export function readUuid(words: Int32Array, at: number): string {
  return `${shownWord(words[at], false)}-${shownWord(words[at + 1], true)}-${shownWord(
    words[at + 2],
    true,
  )}${shownWord(words[at + 3], false)}`;
}

/** A UUID of the caller's as rows have it. */
export function uuidText(value: unknown, where: string): string {
  if (!isUuid(value)) wrongType(where, UUID_EXPECTED, value);
  return (value as string).toLowerCase();
}

export function isUuid(value: unknown): value is string {
  return typeof value === "string" && UUID_PATTERN.test(value);
}
