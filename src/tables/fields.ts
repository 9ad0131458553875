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

export interface Field<T> {
  readonly kind: FieldKind;
  /** For strings and bytes: the most bytes, in UTF-8, if declared. */
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
    `${kind}(${max}): the length is a whole number of bytes from 1 to ${MAX_VALUE_BYTES}`,
  );
}

export const u8 = (): Field<number> => field("u8");
export const u16 = (): Field<number> => field("u16");
export const u32 = (): Field<number> => field("u32");
export const i32 = (): Field<number> => field("i32");
export const f64 = (): Field<number> => field("f64");
export const bool = (): Field<boolean> => field("bool");
export const u64 = (): Field<bigint> => field("u64");
export const i64 = (): Field<bigint> => field("i64");
/** Text of at most `max` bytes in UTF-8; without `max`, up to 1 MiB. */
export const str = (max?: number): Field<string> => field("str", declaredMax("str", max));
export const bytes = (max?: number): Field<Uint8Array> => field("bytes", declaredMax("bytes", max));
/** Any value that JSON can hold. */
export const json = <T = unknown>(): Field<T> => field("json");
/** A pointer to an object made with `tx.alloc`, or null. */
export const pointer = (): Field<Pointer | null> => field("pointer");

/** Whether the field has no fixed place in its row: only offset and length are there. */
export function isVariable({ kind, max }: Field<unknown>): boolean {
  if (kind === "json") return true;
  return (
    (kind === "str" || kind === "bytes") && (max === undefined || max > MAX_INLINE_FIELD_BYTES)
  );
}
