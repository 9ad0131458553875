/**
 * Keys in their ordered form: words that compare as the keys do (stores/store.ts). Field by field:
 *
 *   u8 u16 u32 bool      one word
 *   enum                 one word: the position in the declaration
 *   i32                  one word, sign bit flipped
 *   u53 i53 timestamp    two words, the upper one first; with a sign, its sign bit flipped
 *   uuid                 four words
 *   u64 i64              two words, the upper one first; for i64 its sign bit flipped
 *   str(n) bytes(n)      up to n = 28: the bytes, zero behind them, then a word with their number,
 *                        so that "a" comes before "a\0"
 *   other str, bytes     the bytes with 0x00 written as 0x00 0xFF, then 0x00 0x00 (FoundationDB's
 *                        tuples do so), zero up to a whole word
 *   nullable             one word more before it: 0 for null, so that it comes first, else 1. Where
 *                        all values take as many words, as many zeroes follow a null
 *
 * Bytes fill words from the top, so that comparing words compares bytes. No form of a field is the
 * beginning of another one, so keys of several fields compare field by field.
 */

import { isPointer, writePointer } from "../../memory/pointer.ts";
import { isBytes } from "../../runtime/bytes.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  MAX_FIXED_KEY_WORDS,
  MAX_FIXED_TEXT_BYTES,
  MAX_KEY_BYTES,
  MAX_ORDERED_KEY_BYTES,
} from "../../runtime/limits.ts";
import type { OrderedCodec } from "../../stores/store.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { changeParts, stageChanges } from "./change-code.ts";
import { codecOf } from "./codec.ts";
import { compile } from "./compile.ts";
import * as conversions from "./conversions.ts";
import { enumCode, whereOf } from "./field-code.ts";
import {
  encodedNull,
  encodedText,
  encodedWord,
  isWide,
  keyParts,
  keyPlaces,
  maxOf,
  rowKeyParts,
  type Stager,
  stageParts,
} from "./key-code.ts";
import { type FieldLayout, layoutOf, type RowLayout } from "./layout.ts";
import * as values from "./values.ts";
import { checkLength, textBytes } from "./values.ts";

export const MAX_ORDERED_KEY_WORDS = MAX_ORDERED_KEY_BYTES / 4;

/** Words of a field's ordered form if all its values take as many, else 0. */
export function orderedWordsOf(field: Field): number {
  const words = valueWordsOf(field);
  return words > 0 && field.nullable ? words + 1 : words;
}

/** The same without the word that says whether there is one. */
export function valueWordsOf(field: Field): number {
  const { kind, max } = field;
  if (isWide(field)) return 2;
  if (kind === "uuid") return 4;
  if (kind !== "str" && kind !== "bytes") return 1;
  return max !== undefined && max <= MAX_FIXED_TEXT_BYTES ? Math.ceil(max / 4) + 1 : 0;
}

/** Words of a key's ordered form if all keys take as many, and not too many; else 0. */
function wordsOfKey(fields: readonly Field[]): number {
  const words = fields.map(orderedWordsOf);
  const sum = words.reduce((a, b) => a + b, 0);
  return words.includes(0) || sum > MAX_FIXED_KEY_WORDS ? 0 : sum;
}

/** The most words that a key's ordered form can take. */
function mostWordsOfKey(fields: readonly Field[]): number {
  const words = fields.map((field) => orderedWordsOf(field) || mostTextWordsOf(field));
  return Math.min(
    words.reduce((a, b) => a + b, 0),
    MAX_ORDERED_KEY_WORDS,
  );
}

/** Each byte may be a zero, which becomes two; then the end, and perhaps the word of a null. */
function mostTextWordsOf({ max, nullable }: Field): number {
  if (max === undefined) return MAX_ORDERED_KEY_WORDS;
  return Math.ceil((2 * max + 2) / 4) + (nullable ? 1 : 0);
}

const long = new BigInt64Array(1);
const longWords = new Int32Array(long.buffer);
/** The UTF-8 of the text that is being ordered. */
const text = Buffer.alloc(MAX_KEY_BYTES + 4);

export function orderLong(ordered: Int32Array, top: number, value: bigint, flip: number): number {
  long[0] = value;
  ordered[top] = longWords[1] ^ flip;
  ordered[top + 1] = longWords[0];
  return top + 2;
}

/** The ordered form of a string; `isFixed` says which of the two forms the field has. */
export function orderText(
  ordered: Int32Array,
  top: number,
  value: string,
  max: number,
  where: string,
  isFixed: boolean,
): number {
  const length = textBytes(value, where);
  // Of one that is too long, what fits is written, and it is refused below.
  text.write(value, 0, "utf8");
  return orderBytes(ordered, top, text, 0, length, max, where, isFixed);
}

/** The same for bytes, or the UTF-8 of a string, that lie in a larger array from `from` on. */
export function orderBytes(
  ordered: Int32Array,
  top: number,
  bytes: Uint8Array,
  from: number,
  length: number,
  max: number,
  where: string,
  isFixed: boolean,
): number {
  checkLength(length, max, where);
  return isFixed
    ? orderFixed(ordered, top, bytes, from, length, max)
    : orderEscaped(ordered, top, bytes, from, length);
}

function orderFixed(
  ordered: Int32Array,
  top: number,
  bytes: Uint8Array,
  from: number,
  length: number,
  max: number,
): number {
  const end = top + Math.ceil(max / 4);
  const stop = from + length;
  let at = top;
  let byte = from;
  for (; byte + 3 < stop; byte += 4) {
    ordered[at++] =
      (bytes[byte] << 24) | (bytes[byte + 1] << 16) | (bytes[byte + 2] << 8) | bytes[byte + 3];
  }
  if (byte < stop) {
    let word = 0;
    for (let shift = 24; byte < stop; shift -= 8) word |= bytes[byte++] << shift;
    ordered[at++] = word;
  }
  while (at < end) ordered[at++] = 0;
  ordered[end] = length;
  return end + 1;
}

function orderEscaped(
  ordered: Int32Array,
  top: number,
  bytes: Uint8Array,
  from: number,
  length: number,
): number {
  const stop = from + length;
  let at = top;
  let word = 0;
  let filled = 0;
  for (let i = from; i < stop; i++) {
    const byte = bytes[i];
    word = (word << 8) | byte;
    if (++filled === 4) {
      ordered[at++] = word;
      filled = 0;
    }
    if (byte !== 0) continue;
    word = (word << 8) | 0xff;
    if (++filled === 4) {
      ordered[at++] = word;
      filled = 0;
    }
  }
  // Two zero bytes and what is missing to a whole word: zeroes all of them.
  ordered[at++] = filled === 0 ? 0 : word << (32 - 8 * filled);
  if (filled === 3) ordered[at++] = 0;
  return at;
}

export function keyTooLong(label: string, words: number): never {
  throw new SituError(
    "SITU_TOO_LARGE",
    `${label}: the key takes ${words * 4} bytes in an ordered table or index, at most ` +
      `${MAX_ORDERED_KEY_BYTES} are allowed`,
  );
}

/** A null, where all values take so many words, or each its own number of them. */
export function orderNull(ordered: Int32Array, top: number, valueWords: number): number {
  const end = top + 1 + valueWords;
  ordered.fill(0, top, end);
  return end;
}

function nullOr({ field }: FieldLayout, isNull: string, statement: string): string {
  if (!field.nullable) return statement;
  return (
    `if (${isNull}) top = orderNull(ordered, top, ${valueWordsOf(field)}); ` +
    `else { ordered[top++] = 1; ${statement} }`
  );
}

/** Statements that order one part of a key. */
const orderer: Stager = (table, place, value) =>
  nullOr(place, `${value} === null`, valueOrderer(table, place, value));

function valueOrderer(table: Table, place: FieldLayout, value: string): string {
  const { field } = place;
  const where = whereOf(table, place);
  const rest = `${maxOf(field)}, ${where}, ${orderedWordsOf(field) > 0}`;
  switch (field.kind) {
    case "bool":
      return `ordered[top++] = ${value} ? 1 : 0;`;
    case "i32":
      return `ordered[top++] = ${value} ^ 0x80000000;`;
    case "i64":
      return `top = orderLong(ordered, top, ${value}, 0x80000000);`;
    case "u64":
      return `top = orderLong(ordered, top, BigInt.asIntN(64, ${value}), 0);`;
    case "u53":
      return `top = orderWhole(ordered, top, ${value}, 0);`;
    case "i53":
    case "timestamp":
      return `top = orderWhole(ordered, top, ${value}, 0x80000000);`;
    case "uuid":
      return `writeUuid(ordered, top, ${value}, ${where}); top += 4;`;
    case "str":
      return `top = orderText(ordered, top, ${value}, ${rest});`;
    case "bytes":
      return `top = orderBytes(ordered, top, ${value}, 0, bytesIn(${value}, ${where}), ${rest});`;
    default:
      return `ordered[top++] = ${value};`;
  }
}

/** The same for a part of the key of the row in the scratch area. */
function encodedOrderer(table: Table, place: FieldLayout): string {
  return nullOr(place, encodedNull(place), encodedValueOrderer(table, place));
}

function encodedValueOrderer(table: Table, place: FieldLayout): string {
  const { field, offset } = place;
  const word = offset >> 2;
  switch (field.kind) {
    case "u53":
      return `top = orderWhole(ordered, top, scratch.f64[${offset >> 3}], 0);`;
    case "i53":
    case "timestamp":
      return `top = orderWhole(ordered, top, scratch.f64[${offset >> 3}], 0x80000000);`;
    case "uuid":
      return `${[0, 1, 2, 3].map((i) => `ordered[top++] = scratch.i32[${word + i}];`).join(" ")}`;
    case "i32":
      return `ordered[top++] = scratch.i32[${word}] ^ 0x80000000;`;
    case "i64":
    case "u64": {
      const flip = field.kind === "i64" ? " ^ 0x80000000" : "";
      return (
        `ordered[top] = scratch.i32[${word + 1}]${flip}; ` +
        `ordered[top + 1] = scratch.i32[${word}]; top += 2;`
      );
    }
    case "str":
    case "bytes": {
      const { from, length } = encodedText(place);
      const rest = `${maxOf(field)}, ${whereOf(table, place)}, ${orderedWordsOf(field) > 0}`;
      return `top = orderBytes(ordered, top, scratch.u8, ${from}, ${length}, ${rest});`;
    }
    default:
      return `ordered[top++] = ${encodedWord(place)};`;
  }
}

type Generated<Row, Key> = Pick<
  OrderedCodec<Row, Key>,
  "stageOrdered" | "stageOrderedOf" | "stageOrderedEncoded" | "stageOrderedUpdate"
>;

function orderedSource(table: Table, layout: RowLayout, fixed: boolean): string {
  const label = JSON.stringify(`table ${table.name}`);
  const places = keyPlaces(table, layout);
  const limit = fixed ? "" : `if (top > ${MAX_ORDERED_KEY_WORDS}) keyTooLong(${label}, top);`;
  const stage = `${stageParts(table, layout, orderer)} ${limit}`;
  return `"use strict";
${enumCode(layout)}
return {
  stageOrdered(key) {
    ${keyParts(table, layout)}
    ${stage}
    return top;
  },
  stageOrderedOf(row) {
    ${rowKeyParts(table, layout)}
    ${stage}
    return top;
  },
  stageOrderedEncoded() {
    let top = 0;
    ${places.map((place) => encodedOrderer(table, place)).join(" ")} ${limit}
    return top;
  },
  stageOrderedUpdate(key, changes) {
    ${keyParts(table, layout)}
    ${changeParts(table, layout)}
    ${stage}
    ${stageChanges(table, layout)}
    return top;
  },
};`;
}

const LIBRARY = {
  ...values,
  ...conversions,
  isBytes,
  isPointer,
  writePointer,
  keyTooLong,
  orderNull,
  orderLong,
  orderText,
  orderBytes,
};
const SHARED = Object.values(LIBRARY);
const NAMES = [...Object.keys(LIBRARY), "scratch", "changed", "ordered"];

/** The codec of a table that is kept in the order of its keys. */
export function orderedCodecOf<Row, Key>(table: Table<Row, Key>): OrderedCodec<Row, Key> {
  const fields = table.key.map((name) => table.fields[name]);
  const orderedWords = wordsOfKey(fields);
  const mostOrderedWords = mostWordsOfKey(fields);
  // What a key that is too long writes behind the end is dropped, then the key is refused.
  const ordered = new Int32Array(MAX_ORDERED_KEY_WORDS + 8);
  const layout = layoutOf(table);
  const codec = codecOf(table, layout);
  const make = compile(orderedSource(table, layout, orderedWords > 0), NAMES);
  const generated = make(...SHARED, codec.scratch, codec.changed, ordered) as Generated<Row, Key>;
  return { ...codec, ...generated, orderedWords, mostOrderedWords, ordered };
}
