/** What the generated codecs call: checks with a clear error, and the values that need a loop. */

import type { Views } from "../../memory/views.ts";
import { byteLength, isGone } from "../../runtime/bytes.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_VALUE_BYTES } from "../../runtime/limits.ts";
import { SHORT_TEXT_BYTES, SHORT_WRITE_BYTES, shortText, writeShortText } from "./short-text.ts";

/** For messages: says something of whatever it is, also of a proxy that refuses to be looked at. */
function shown(value: unknown): string {
  try {
    return described(value);
  } catch {
    return `an ${typeof value}`;
  }
}

function described(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return `the string ${JSON.stringify(value.slice(0, 40))}`;
  if (typeof value === "bigint") return `the bigint ${value}n`;
  if (typeof value === "number" || typeof value === "boolean")
    return `the ${typeof value} ${value}`;
  if (value === null) return "null";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  const name = value.constructor?.name ?? typeof value;
  return /^[AEIOU]/i.test(name) ? `an ${name}` : `a ${name}`;
}

export function wrongType(where: string, expected: string, value: unknown): never {
  throw new SituError("SITU_TYPE", `${where}: expected ${expected}, got ${shown(value)}`);
}

export function unknownField(where: string, name: string): never {
  throw new SituError("SITU_TYPE", `${where}: there is no field ${JSON.stringify(name)}`);
}

export function keyField(where: string, name: string): never {
  throw new SituError(
    "SITU_TYPE",
    `${where}: ${name} is part of the key and cannot be updated; delete the row and insert it anew`,
  );
}

export function tooLong(where: string, bytes: number, max: number): never {
  throw new SituError("SITU_TOO_LARGE", `${where}: ${bytes} bytes, at most ${max} are allowed`);
}

/** Bytes in UTF-8. A lone surrogate has none: it would come back as another character. */
export function textBytes(value: string, where: string): number {
  const length = Buffer.byteLength(value);
  if (length !== value.length && !value.isWellFormed()) wrongType(where, "well-formed text", value);
  return length;
}

/** The length of bytes, as it is now. */
export function bytesIn(value: Uint8Array, where: string): number {
  const length = byteLength(value);
  if (length === 0 && isGone(value)) {
    throw new SituError(
      "SITU_TYPE",
      `${where}: the memory of these bytes was transferred to another thread, or has shrunk; ` +
        `pass a copy instead`,
    );
  }
  return length;
}

export function checkLength(bytes: number, max: number, where: string): void {
  if (bytes > max) tooLong(where, bytes, max);
}

/** Buffer's own functions, without the checks of `toString` and `write` before them. */
interface NativeText {
  utf8Slice(start: number, end: number): string;
  utf8Write(text: string, at: number, bytes: number): number;
}

/** A short text or byte value in its fixed place; bounded, whatever lies there. */
export function readInlineString(views: Views, at: number, max: number): string {
  return text(views, at + 1, Math.min(views.u8[at], max));
}

/** Up to here, clearing bytes one by one beats the call into native code. */
const CLEAR_LOOP_BYTES = 48;

function clear(u8: Uint8Array, from: number, to: number): void {
  if (to - from > CLEAR_LOOP_BYTES) u8.fill(0, from, to);
  else for (let i = from; i < to; i++) u8[i] = 0;
}

function text(views: Views, at: number, length: number): string {
  // Beyond the memory there are no bytes, which would count as zeroes.
  if (length > SHORT_TEXT_BYTES || at + length > views.u8.length)
    return utf8(views, at, at + length);
  return shortText(views.u8, at, length) ?? utf8(views, at, at + length);
}

/** Torn offsets may lead beyond the memory: whoever reads then looks again. */
function utf8(views: Views, start: number, end: number): string {
  if (end > views.bytes.length) return "";
  return (views.bytes as unknown as NativeText).utf8Slice(start, end);
}

/**
 * All texts of a row that lie side by side, with the bytes between them, in one call: the texts are
 * then cut out of it by their offsets, which V8 does without copying. That is right if it has as many
 * characters as bytes, for then all of it is ASCII: characters of several bytes make it shorter, and a
 * byte of length above 127 becomes one other character.
 */
export function readTexts(views: Views, at: number, bytes: number): string {
  return utf8(views, at, at + bytes);
}

export function readInlineBytes(views: Views, at: number, max: number): Uint8Array {
  const length = Math.min(views.u8[at], max);
  return views.u8.slice(at + 1, at + 1 + length);
}

/** Writes into zeroed or earlier space: what is left behind the value is zeroed. */
export function writeInlineString(
  views: Views,
  at: number,
  value: string,
  max: number,
  where: string,
): void {
  if (value.length <= max && writeShortText(views.u8, at + 1, value)) {
    views.u8[at] = value.length;
    clear(views.u8, at + 1 + value.length, at + 1 + max);
    return;
  }
  const bytes = textBytes(value, where);
  checkLength(bytes, max, where);
  (views.bytes as unknown as NativeText).utf8Write(value, at + 1, max);
  views.u8[at] = bytes;
  clear(views.u8, at + 1 + bytes, at + 1 + max);
}

export function writeInlineBytes(
  views: Views,
  at: number,
  value: Uint8Array,
  max: number,
  where: string,
): void {
  const length = bytesIn(value, where);
  checkLength(length, max, where);
  views.u8.fill(0, at, at + 1 + max);
  views.u8[at] = length;
  views.u8.set(value, at + 1);
}

/** Whether a value without a place of its own lies in its row of so many words; torn words may say otherwise. */
function isInside(offset: number, length: number, words: number): boolean {
  return offset >= 0 && length >= 0 && offset + length <= words * 4;
}

export function readString(views: Views, row: number, at: number, words: number): string {
  const offset = views.i32[at];
  const length = views.i32[at + 1];
  return isInside(offset, length, words) ? text(views, row * 4 + offset, length) : "";
}

export function readBytes(views: Views, row: number, at: number, words: number): Uint8Array {
  const offset = views.i32[at];
  const length = views.i32[at + 1];
  if (!isInside(offset, length, words)) return new Uint8Array(0);
  return views.u8.slice(row * 4 + offset, row * 4 + offset + length);
}

export function readJson(views: Views, row: number, at: number, words: number): unknown {
  const text = readString(views, row, at, words);
  try {
    return JSON.parse(text);
  } catch {
    // Torn by a writer: the version check that follows every read throws this row away.
    return undefined;
  }
}

/** The value of a json field that was turned into text, or was not turned into a value, by Situ. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** For a row that will be written again with other fields changed. */
export function readJsonText(views: Views, row: number, at: number, words: number): JsonText {
  return new JsonText(readString(views, row, at, words));
}

export function jsonText(value: unknown, where: string): string {
  if (value instanceof JsonText) return value.text;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    // What the caller's own code throws is the caller's, but for what JSON says of the value.
    if (!(cause instanceof TypeError || cause instanceof RangeError)) throw cause;
    throw new SituError("SITU_TYPE", `${where}: ${cause.message}`, { cause });
  }
  return text ?? wrongType(where, "a value that JSON can hold", value);
}

/** Appends a value behind the fixed part; returns where the next one goes, in bytes. */
export function appendString(
  views: Views,
  at: number,
  end: number,
  value: string,
  max: number | undefined,
  where: string,
): number {
  const isShort =
    value.length <= (max ?? MAX_VALUE_BYTES) &&
    end + value.length <= largestOf(views) &&
    writeShortText(views.u8, end, value);
  const length = isShort ? value.length : appendLongText(views, end, value, max, where);
  views.i32[at] = end;
  views.i32[at + 1] = length;
  return end + length;
}

function appendLongText(
  views: Views,
  end: number,
  value: string,
  max: number | undefined,
  where: string,
): number {
  const length = textBytes(value, where);
  checkLength(length, max ?? MAX_VALUE_BYTES, where);
  ensure(views, end + length, where);
  views.bytes.write(value, end, "utf8");
  return length;
}

export function appendBytes(
  views: Views,
  at: number,
  end: number,
  value: Uint8Array,
  max: number | undefined,
  where: string,
): number {
  const length = bytesIn(value, where);
  checkLength(length, max ?? MAX_VALUE_BYTES, where);
  ensure(views, end + length, where);
  views.u8.set(value, end);
  views.i32[at] = end;
  views.i32[at + 1] = length;
  return end + length;
}

function largestOf(views: Views): number {
  return views.u8.length - 8;
}

/** The scratch area is as large as the largest row: what does not fit is too large. */
function ensure(views: Views, bytes: number, where: string): void {
  const largest = largestOf(views);
  if (bytes > largest) {
    throw new SituError("SITU_TOO_LARGE", `${where}: the row has more than ${largest} bytes`);
  }
}

/** Rounds a row up to whole pairs of words, zeroed. */
export function finish(views: Views, end: number): number {
  const words = Math.ceil(end / 8) * 2;
  clear(views.u8, end, words * 4);
  return words;
}

export function stageText(
  stage: Views,
  at: number,
  value: string,
  max: number,
  where: string,
): number {
  if (value.length <= SHORT_WRITE_BYTES && value.length <= max) {
    const next = stageAscii(stage, at, value);
    if (next > 0) return next;
  }
  const length = textBytes(value, where);
  checkLength(length, max, where);
  const words = Math.ceil(length / 4);
  if (words > 0) stage.i32[at + words] = 0;
  stage.i32[at] = length;
  stage.bytes.write(value, at * 4 + 4, "utf8");
  return at + 1 + words;
}

/** 0 if the text is not ASCII. */
function stageAscii(stage: Views, at: number, value: string): number {
  const words = (value.length + 3) >> 2;
  if (words > 0) stage.i32[at + words] = 0;
  if (!writeShortText(stage.u8, at * 4 + 4, value)) return 0;
  stage.i32[at] = value.length;
  return at + 1 + words;
}

export function stageBytes(
  stage: Views,
  at: number,
  value: Uint8Array,
  max: number,
  where: string,
): number {
  const length = bytesIn(value, where);
  checkLength(length, max, where);
  const words = Math.ceil(length / 4);
  if (words > 0) stage.i32[at + words] = 0;
  stage.i32[at] = length;
  stage.u8.set(value, at * 4 + 4);
  return at + 1 + words;
}

/** The same for a string or bytes of a row that was encoded. */
export function stageEncodedText(
  stage: Views,
  at: number,
  row: Views,
  from: number,
  length: number,
  max: number,
  where: string,
): number {
  checkLength(length, max, where);
  const words = (length + 3) >> 2;
  if (words > 0) stage.i32[at + words] = 0;
  stage.i32[at] = length;
  copyBytes(row, from, stage, at * 4 + 4, length);
  return at + 1 + words;
}

/** Up to here a loop beats the call into native code. */
const COPY_LOOP_BYTES = 48;

export function copyBytes(
  source: Views,
  from: number,
  target: Views,
  to: number,
  length: number,
): void {
  if (length > COPY_LOOP_BYTES) {
    source.bytes.copy(target.bytes, to, from, from + length);
    return;
  }
  const a = source.u8;
  const b = target.u8;
  for (let i = 0; i < length; i++) b[to + i] = a[from + i];
}

/** Whether `length` bytes at two places are the same. */
export function sameBytes(
  views: Views,
  at: number,
  stage: Views,
  stageAt: number,
  length: number,
): boolean {
  const a = views.u8;
  const b = stage.u8;
  for (let i = 0; i < length; i++) if (a[at + i] !== b[stageAt + i]) return false;
  return true;
}

/** The same for a value behind the fixed part of a row. */
export function sameText(
  views: Views,
  row: number,
  at: number,
  stage: Views,
  stageAt: number,
): boolean {
  const offset = views.i32[at];
  const length = views.i32[at + 1];
  if (length !== stage.i32[stageAt] || offset < 0) return false;
  return sameBytes(views, row * 4 + offset, stage, stageAt * 4 + 4, length);
}
