/**
 * From the bounds of a scan, as the caller writes them, to a range of keys in their ordered form.
 * A bound is a list of values for the first fields of the key, and compares on these fields only:
 * all keys that begin with these values lie between the words of the list and the next sequence
 * of words that does not begin with them.
 */

import { isBytes } from "../runtime/bytes.ts";
import { SituError } from "../runtime/errors.ts";
import type { KeyRange } from "../stores/store.ts";
import { isUuid, msOf, orderWhole, writeUuid } from "./codec/conversions.ts";
import { expectedOf } from "./codec/field-code.ts";
import { maxOf } from "./codec/key-code.ts";
import {
  keyTooLong,
  MAX_ORDERED_KEY_WORDS,
  orderBytes,
  orderedWordsOf,
  orderLong,
  orderNull,
  orderText,
  valueWordsOf,
} from "./codec/ordered.ts";
import { bytesIn, checkLength, textBytes, wrongType } from "./codec/values.ts";
import type { Field } from "./fields.ts";

export interface Bounds {
  readonly eq?: unknown;
  readonly gte?: unknown;
  readonly gt?: unknown;
  readonly lte?: unknown;
  readonly lt?: unknown;
  readonly prefix?: unknown;
}

/** A field of a key, in the key's order. */
export interface KeyField {
  readonly name: string;
  readonly field: Field;
}

/** Nothing is less than the key without words. */
const NOTHING: KeyRange = { from: undefined, to: new Int32Array(0) };

const ordered = new Int32Array(MAX_ORDERED_KEY_WORDS + 8);

/**
 * The range that all given bounds allow. `what` is the table or index, for messages; `single` says
 * that bounds are plain values and not lists.
 */
export function rangeOf(
  what: string,
  fields: readonly KeyField[],
  single: boolean,
  bounds: Bounds,
): KeyRange {
  let from: Int32Array | undefined;
  let to: Int32Array | undefined;
  let isEmpty = false;
  const notBelow = (key: Int32Array | undefined): void => {
    // Above the last key that there can be.
    if (key === undefined) isEmpty = true;
    else if (from === undefined || compare(from, key) < 0) from = key;
  };
  const below = (key: Int32Array | undefined): void => {
    if (key !== undefined && (to === undefined || compare(key, to) < 0)) to = key;
  };
  const keyOf = (name: keyof Bounds): Int32Array =>
    orderedBound(what, name, fields, single, bounds[name]);

  if (bounds.eq !== undefined) {
    const key = keyOf("eq");
    notBelow(key);
    below(next(key));
  }
  if (bounds.gte !== undefined) notBelow(keyOf("gte"));
  if (bounds.gt !== undefined) notBelow(next(keyOf("gt")));
  if (bounds.lte !== undefined) below(next(keyOf("lte")));
  if (bounds.lt !== undefined) below(keyOf("lt"));
  if (bounds.prefix !== undefined) {
    notBelow(keyOf("prefix"));
    const values = single ? [bounds.prefix] : (bounds.prefix as readonly unknown[]);
    below(afterBeginning(what, fields, values));
  }
  return isEmpty || (from !== undefined && to !== undefined && compare(from, to) >= 0)
    ? NOTHING
    : { from, to };
}

/** The ordered form of a bound. */
function orderedBound(
  what: string,
  name: keyof Bounds,
  fields: readonly KeyField[],
  single: boolean,
  bound: unknown,
): Int32Array {
  const [first] = fields;
  let values: readonly unknown[];
  if (single) {
    if (name === "prefix" && first.field.kind !== "str" && first.field.kind !== "bytes") {
      throw new SituError(
        "SITU_TYPE",
        `${what}: prefix is for text and bytes, and ${first.name} is a ${first.field.kind} field; ` +
          `use eq, gte, gt, lte or lt`,
      );
    }
    if (name === "prefix" && bound === null) {
      wrongType(`${what}: prefix of ${first.name}`, "the beginning of a value", bound);
    }
    values = [bound];
  } else {
    const names = fields.map((each) => each.name).join(", ");
    if (!Array.isArray(bound) || bound.length === 0 || bound.length > fields.length) {
      const most = fields.length === 1 ? "1 value" : `1 to ${fields.length} values`;
      wrongType(`${what}: ${name}`, `a list of ${most} (${names})`, bound);
    }
    values = bound as readonly unknown[];
  }
  let top = 0;
  for (let i = 0; i < values.length; i++) {
    const { field } = fields[i];
    const where = `${what}.${fields[i].name}`;
    if (!isOfType(field, values[i])) {
      wrongType(`${what}: ${name} of ${fields[i].name}`, expectedOf(field), values[i]);
    }
    top = order(top, field, values[i], where);
  }
  if (top > MAX_ORDERED_KEY_WORDS) keyTooLong(what, top);
  return ordered.slice(0, top);
}

function isOfType({ kind, nullable, values }: Field, value: unknown): boolean {
  if (value === null) return nullable === true;
  const isIntegerIn = (least: number, most: number): boolean =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
  switch (kind) {
    case "u8":
      return isIntegerIn(0, 0xff);
    case "u16":
      return isIntegerIn(0, 0xffff);
    case "u32":
      return isIntegerIn(0, 0xffffffff);
    case "i32":
      return isIntegerIn(-0x80000000, 0x7fffffff);
    case "bool":
      return typeof value === "boolean";
    case "u64":
      return typeof value === "bigint" && BigInt.asUintN(64, value) === value;
    case "i64":
      return typeof value === "bigint" && BigInt.asIntN(64, value) === value;
    case "u53":
      return Number.isSafeInteger(value) && (value as number) >= 0;
    case "i53":
      return Number.isSafeInteger(value);
    case "timestamp":
      return msOf(value) !== undefined;
    case "uuid":
      return isUuid(value);
    case "enum":
      return values!.includes(value as string);
    case "str":
      return typeof value === "string";
    default:
      return isBytes(value);
  }
}

function order(top: number, field: Field, value: unknown, where: string): number {
  if (!field.nullable) return orderValue(top, field, value, where);
  if (value === null) return orderNull(ordered, top, valueWordsOf(field));
  ordered[top] = 1;
  return orderValue(top + 1, field, value, where);
}

function orderValue(top: number, field: Field, value: unknown, where: string): number {
  const isFixed = orderedWordsOf(field) > 0;
  switch (field.kind) {
    case "i64":
      return orderLong(ordered, top, value as bigint, 0x80000000);
    case "u64":
      return orderLong(ordered, top, BigInt.asIntN(64, value as bigint), 0);
    case "i32":
      ordered[top] = (value as number) ^ 0x80000000;
      return top + 1;
    case "u53":
      return orderWhole(ordered, top, value as number, 0);
    case "i53":
      return orderWhole(ordered, top, value as number, 0x80000000);
    case "timestamp":
      return orderWhole(ordered, top, msOf(value)!, 0x80000000);
    case "uuid":
      writeUuid(ordered, top, value, where);
      return top + 4;
    case "enum":
      ordered[top] = field.values!.indexOf(value as string);
      return top + 1;
    case "str":
      return orderText(ordered, top, value as string, maxOf(field), where, isFixed);
    case "bytes": {
      const bytes = value as Uint8Array;
      const length = bytesIn(bytes, where);
      return orderBytes(ordered, top, bytes, 0, length, maxOf(field), where, isFixed);
    }
    default:
      ordered[top] = Number(value);
      return top + 1;
  }
}

/** The first key behind all that have these values, of which the last, if a text, is a beginning. */
function afterBeginning(
  what: string,
  fields: readonly KeyField[],
  values: readonly unknown[],
): Int32Array | undefined {
  const last = values.length - 1;
  const { kind, nullable } = fields[last].field;
  if ((kind !== "str" && kind !== "bytes") || values[last] === null) {
    return next(orderedBound(what, "prefix", fields, false, values));
  }
  const after = afterPrefix(what, fields[last], values[last]);
  if (last === 0 && !nullable) return after;
  const earlier =
    last === 0 ? [] : orderedBound(what, "prefix", fields, false, values.slice(0, last));
  // The word that says that there is a value belongs to what all of them begin with.
  const before = Int32Array.from(nullable ? [...earlier, 1] : earlier);
  if (after === undefined) return next(before);
  const both = new Int32Array(before.length + after.length);
  both.set(before);
  both.set(after, before.length);
  return both;
}

/**
 * The first key behind all that begin with some bytes; undefined if there is none. Only the last
 * byte that can grow counts: what is behind it is left out, as zeroes.
 */
function afterPrefix(
  what: string,
  { name, field }: KeyField,
  prefix: unknown,
): Int32Array | undefined {
  const where = `${what}.${name}`;
  const bytes = typeof prefix === "string" ? Buffer.from(prefix) : (prefix as Uint8Array);
  if (typeof prefix === "string") textBytes(prefix, where);
  checkLength(bytes.length, maxOf(field), where);
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0xff) end--;
  if (end === 0) return undefined;
  const escaped: number[] = [];
  for (const byte of bytes.subarray(0, end)) {
    escaped.push(byte);
    if (byte === 0 && orderedWordsOf(field) === 0) escaped.push(0xff);
  }
  // An escaped zero ends with 0xff: then it is the zero before it that grows.
  while (escaped[escaped.length - 1] === 0xff) escaped.pop();
  escaped[escaped.length - 1]++;
  const words = new Int32Array(Math.ceil(escaped.length / 4));
  escaped.forEach((byte, i) => {
    words[i >> 2] |= byte << (24 - 8 * (i & 3));
  });
  return words;
}

/** The first sequence of words behind all that begin with these; undefined if there is none. */
function next(key: Int32Array): Int32Array | undefined {
  let words = key.length;
  while (words > 0 && key[words - 1] === -1) words--;
  if (words === 0) return undefined;
  const after = key.slice(0, words);
  after[words - 1]++;
  return after;
}

function compare(a: Int32Array, b: Int32Array): number {
  const most = Math.min(a.length, b.length);
  for (let i = 0; i < most; i++) {
    if (a[i] !== b[i]) return a[i] >>> 0 < b[i] >>> 0 ? -1 : 1;
  }
  return a.length - b.length;
}
