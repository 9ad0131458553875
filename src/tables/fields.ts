/** The types that a field of a row can have. */

import type { Pointer } from "../memory/pointer.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_INLINE_FIELD_BYTES, MAX_VALUE_BYTES } from "../runtime/limits.ts";

export type FieldKind =
  | "u8"
  | "u16"
  | "u32"
  | "i32"
  | "f64"
  | "bool"
  | "u64"
  | "i64"
  | "str"
  | "bytes"
  | "json"
  | "pointer";

declare const valueType: unique symbol;

/** The type of a field: what `u32()` and the other functions below return. */
export interface Field<T> {
  readonly kind: FieldKind;
  /** For strings and bytes: the maximum length in bytes, if declared. */
  readonly max: number | undefined;
  /** Only for the type checker. */
  readonly [valueType]?: T;
}

function field<T>(kind: FieldKind, max?: number): Field<T> {
  return Object.freeze({ kind, max });
}

function declaredMax(kind: FieldKind, max: number | undefined): number | undefined {
  if (max === undefined) return undefined;
  if (Number.isInteger(max) && max >= 1 && max <= MAX_VALUE_BYTES) return max;
  throw new SituError(
    "SITU_SCHEMA",
    `${kind}(${max}): the length must be a whole number of bytes from 1 to ${MAX_VALUE_BYTES}`,
  );
}

/** A whole number from 0 to 255. */
export const u8 = (): Field<number> => field("u8");
/** A whole number from 0 to 65,535. */
export const u16 = (): Field<number> => field("u16");
/** A whole number from 0 to 4,294,967,295. */
export const u32 = (): Field<number> => field("u32");
/** A whole number from -2,147,483,648 to 2,147,483,647. */
export const i32 = (): Field<number> => field("i32");
/** Any number: a double. */
export const f64 = (): Field<number> => field("f64");
/** true or false. */
export const bool = (): Field<boolean> => field("bool");
/** A BigInt from 0 to 2^64 - 1. */
export const u64 = (): Field<bigint> => field("u64");
/** A BigInt from -2^63 to 2^63 - 1. */
export const i64 = (): Field<bigint> => field("i64");
/** A string of at most `max` bytes in UTF-8; without `max`, up to 1 MiB. */
export const str = (max?: number): Field<string> => field("str", declaredMax("str", max));
/** Bytes, at most `max` of them; without `max`, up to 1 MiB. */
export const bytes = (max?: number): Field<Uint8Array> => field("bytes", declaredMax("bytes", max));
/** Any value that JSON can represent. */
export const json = <T = unknown>(): Field<T> => field("json");
/** A pointer to an object allocated with `tx.alloc`, or null. */
export const pointer = (): Field<Pointer | null> => field("pointer");

/** Whether the field has no fixed place in its row: only offset and length are there. */
export function isVariable({ kind, max }: Field<unknown>): boolean {
  if (kind === "json") return true;
  return (
    (kind === "str" || kind === "bytes") && (max === undefined || max > MAX_INLINE_FIELD_BYTES)
  );
}
