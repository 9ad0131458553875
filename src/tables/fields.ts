/** The types that a field of a row can have. */

import type { Pointer } from "../memory/pointer.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_ENUM_VALUES, MAX_INLINE_FIELD_BYTES, MAX_VALUE_BYTES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import type { Invalid } from "./invalid.ts";

export type FieldKind =
  | "u8"
  | "u16"
  | "u32"
  | "i32"
  | "u53"
  | "i53"
  | "f64"
  | "bool"
  | "u64"
  | "i64"
  | "str"
  | "bytes"
  | "json"
  | "pointer"
  | "timestamp"
  | "uuid"
  | "enum";

declare const valueType: unique symbol;

/**
 * The type of a field: what `u32()` and the other functions below return. `T` is what a row has in
 * it, and `Input` what may be written to it.
 */
export interface Field<T = unknown, Kind extends FieldKind = FieldKind, Input = T> {
  readonly kind: Kind;
  /** For strings and bytes: the maximum length in bytes, if declared. */
  readonly max: number | undefined;
  /** Whether the field may be null. */
  readonly nullable?: true;
  /** For enums: the values, in their order. */
  readonly values?: readonly string[];
  /** For keys: whether `insert` fills the field in when it is left out. */
  readonly autoIncrement?: true;
  /** For timestamps: rows have numbers in place of Dates. Says nothing about what is stored. */
  readonly as?: "number";
  /** Only for the type checker. */
  readonly [valueType]?: { readonly value: T; readonly input: Input };
}

function field<T, Kind extends FieldKind, Input = T>(
  kind: Kind,
  max?: number,
): Field<T, Kind, Input> {
  return Object.freeze({ kind, max });
}

function refuse(why: string): never {
  throw new SituError("SITU_SCHEMA", why);
}

function declaredMax(kind: FieldKind, max: number | undefined): number | undefined {
  if (max === undefined) return undefined;
  if (Number.isInteger(max) && max >= 1 && max <= MAX_VALUE_BYTES) return max;
  return refuse(
    `${kind}(${max}): the length must be a whole number of bytes from 1 to ${MAX_VALUE_BYTES}`,
  );
}

/** A whole number from 0 to 255. */
export const u8 = (): Field<number, "u8"> => field("u8");
/** A whole number from 0 to 65,535. */
export const u16 = (): Field<number, "u16"> => field("u16");
/** A whole number from 0 to 4,294,967,295. */
export const u32 = (): Field<number, "u32"> => field("u32");
/** A whole number from -2,147,483,648 to 2,147,483,647. */
export const i32 = (): Field<number, "i32"> => field("i32");
/** A whole number from 0 to 2^53 - 1: all that a `number` holds exactly. */
export const u53 = (): Field<number, "u53"> => field("u53");
/** A whole number from -(2^53 - 1) to 2^53 - 1: all that a `number` holds exactly. */
export const i53 = (): Field<number, "i53"> => field("i53");
/** Any number: a double. */
export const f64 = (): Field<number, "f64"> => field("f64");
/** true or false. */
export const bool = (): Field<boolean, "bool"> => field("bool");
/** A BigInt from 0 to 2^64 - 1. */
export const u64 = (): Field<bigint, "u64"> => field("u64");
/** A BigInt from -2^63 to 2^63 - 1. */
export const i64 = (): Field<bigint, "i64"> => field("i64");
/** A string of at most `max` bytes in UTF-8; without `max`, up to 1 MiB. */
export const str = (max?: number): Field<string, "str"> => field("str", declaredMax("str", max));
/** Bytes, at most `max` of them; without `max`, up to 1 MiB. */
export const bytes = (max?: number): Field<Uint8Array, "bytes"> =>
  field("bytes", declaredMax("bytes", max));
/** Any value that JSON can represent. */
export const json = <T = unknown>(): Field<T, "json"> => field("json");
/** A pointer to an object allocated with `tx.alloc`, or null. */
export const pointer = (): Field<Pointer | null, "pointer"> => field("pointer");
/** A UUID, as a string such as "0188d3c4-7a1e-7bb0-8f0c-0123456789ab"; stored in 16 bytes. */
export const uuid = (): Field<string, "uuid"> => field("uuid");

/** What `timestamp` takes. */
export interface TimestampOptions<As extends "Date" | "number"> {
  /** What rows have: a Date, the default, or a number of milliseconds since 1970. */
  readonly as?: As;
}

/**
 * A moment, to the millisecond. Takes a Date or a number of milliseconds since 1970. Rows have Dates,
 * or with `{ as: "number" }` numbers.
 */
export function timestamp<As extends "Date" | "number" = "Date">(
  options: TimestampOptions<As> = {},
): Field<As extends "number" ? number : Date, "timestamp", Date | number> {
  const { as = "Date" } = options;
  if (as === "Date") return field("timestamp");
  if (as !== "number") refuse(`timestamp: as is "Date" or "number", not ${show(as)}`);
  return Object.freeze({ kind: "timestamp", max: undefined, as: "number" });
}

/** One of some strings, stored as a number. Keys and indexes order them as they are declared. */
export function enumOf<const RowValues extends readonly [string, ...string[]]>(
  ...values: RowValues
): Field<RowValues[number], "enum"> {
  if (values.length === 0) refuse('enumOf needs its values, as in enumOf("draft", "sent")');
  if (values.length > MAX_ENUM_VALUES) refuse(`enumOf: at most ${MAX_ENUM_VALUES} values`);
  for (const value of values as readonly unknown[]) {
    if (typeof value !== "string") refuse(`enumOf: the values are strings, not ${show(value)}`);
  }
  if (new Set(values).size < values.length) refuse("enumOf names a value twice");
  return Object.freeze({ kind: "enum", max: undefined, values: Object.freeze([...values]) });
}

type NullableCheck<Kind> = Kind extends "json"
  ? Invalid<"json() holds null already, and cannot be nullable">
  : Kind extends "pointer"
    ? Invalid<"pointer() may be null already, and cannot be nullable">
    : unknown;

/**
 * A field that may be null. In a row that is inserted it can be left out. Indexes order null before
 * all values.
 */
export function nullable<T, Kind extends FieldKind, Input>(
  field: Field<T, Kind, Input> & NullableCheck<Kind>,
): Field<T | null, Kind, Input | null | undefined> {
  if (typeof field?.kind !== "string") refuse("nullable takes a field, as in nullable(u32())");
  if (field.kind === "json" || field.kind === "pointer") {
    refuse(`${field.kind}() may hold null already, and cannot be nullable`);
  }
  if (field.autoIncrement) refuse("autoIncrement() is for keys, and keys cannot be null");
  return Object.freeze({ ...(field as Field), nullable: true }) as Field<never, Kind, never>;
}

/**
 * A key that `insert` fills in when it is left out, with a number that no other row of the table has
 * had. Numbers grow, with gaps. By default it is a `u53()`; pass `u32()` for a shorter one.
 */
export function autoIncrement<Kind extends "u32" | "u53" = "u53">(
  field?: Field<number, Kind>,
): Field<number, Kind> & { readonly autoIncrement: true } {
  const given = field ?? u53();
  const isOne = given.kind === "u32" || given.kind === "u53";
  if (!isOne || given.nullable) refuse("autoIncrement takes u32() or u53()");
  return Object.freeze({ ...given, autoIncrement: true }) as Field<number, Kind> & {
    readonly autoIncrement: true;
  };
}

/** Whether the field has no fixed place in its row: only offset and length are there. */
export function isVariable({ kind, max }: Field): boolean {
  if (kind === "json") return true;
  return (
    (kind === "str" || kind === "bytes") && (max === undefined || max > MAX_INLINE_FIELD_BYTES)
  );
}
