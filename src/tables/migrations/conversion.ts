/**
 * From one type of a field to another. Widening loses nothing: every value of the old type is one of
 * the new type. All other changes are narrowing, and succeed only if the values of all rows allow it.
 */

import { SituError } from "../../runtime/errors.ts";
import { knownField } from "../field-text.ts";
import type { Field } from "../fields.ts";

/** Types that take every value of another one. */
const WIDER: Readonly<Record<string, readonly string[]>> = {
  u8: ["u16", "u32", "i32", "u53", "i53", "f64", "u64", "i64"],
  u16: ["u32", "i32", "u53", "i53", "f64", "u64", "i64"],
  u32: ["u53", "i53", "f64", "u64", "i64"],
  i32: ["i53", "f64", "i64"],
  u53: ["i53", "f64", "u64", "i64"],
  i53: ["f64", "i64"],
};
const NUMBERS = new Set(["u8", "u16", "u32", "i32", "u53", "i53", "f64"]);
const BIGINTS = new Set(["u64", "i64"]);
const TEXTS = new Set(["str", "bytes"]);

/** Whether every value of a field, both given as in a schema, is also one of another field. */
export function isWidening(from: string, to: string): boolean {
  if (from === to) return true;
  const [a, b] = [knownField(from), knownField(to)];
  if (a === undefined || b === undefined) return false;
  if (isNullable(a) && !isNullable(b)) return false;
  const [kindA, kindB] = [String(a.kind), String(b.kind)];
  if (kindA !== kindB) return Object.hasOwn(WIDER, kindA) && WIDER[kindA].includes(kindB);
  if (TEXTS.has(kindA)) return b.max === undefined || (a.max !== undefined && a.max <= b.max);
  return sameValues(a, b);
}

/** Whether the values of both are written the same: not one as numbers, the other as BigInts. */
export function isSameForm(from: string, to: string): boolean {
  const isBigInt = (text: string): boolean => BIGINTS.has(String(knownField(text)?.kind));
  return isBigInt(from) === isBigInt(to);
}

/** Whether values of one type can become values of the other at all. */
export function isConvertible(from: string, to: string): boolean {
  const [a, b] = [knownField(from), knownField(to)];
  if (a === undefined || b === undefined) return false;
  const [kindA, kindB] = [String(a.kind), String(b.kind)];
  const isNumeric = (kind: string): boolean => NUMBERS.has(kind) || BIGINTS.has(kind);
  return kindA === kindB || (isNumeric(kindA) && isNumeric(kindB));
}

export function isNullable(field: Field<unknown>): boolean {
  return (field as { readonly nullable?: unknown }).nullable === true;
}

/** Of two fields of one kind without a length: the same, or one is nullable, or has more values. */
function sameValues(a: Field<unknown>, b: Field<unknown>): boolean {
  const valuesOf = (field: Field<unknown>): readonly unknown[] | undefined =>
    (field as { readonly values?: readonly unknown[] }).values;
  const [from, to] = [valuesOf(a), valuesOf(b)];
  if (from === undefined || to === undefined) return from === to;
  // An enum keeps the numbers of its values: new ones come behind.
  return from.every((value, i) => value === to[i]);
}

/** A value of a row as a value of another type; its range is left to the codec. */
export function converted(value: unknown, kind: string, what: () => string): unknown {
  if (typeof value === "number" && BIGINTS.has(kind)) {
    if (Number.isInteger(value)) return BigInt(value);
    throw new SituError("SITU_TYPE", `${what()}: ${value} is not a whole number`);
  }
  if (typeof value === "bigint" && NUMBERS.has(kind)) {
    const number = Number(value);
    if (BigInt(number) === value) return number;
    throw new SituError("SITU_TYPE", `${what()}: ${value}n does not fit a number`);
  }
  return value;
}
