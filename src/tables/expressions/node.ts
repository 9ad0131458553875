/**
 * Expressions as data: a tree of nodes, each with the type of its value and whether that may be null. A tree
 * holds no function of the caller's, so it can be stored, sent to another thread, and compiled there.
 *
 *   bool                true or false
 *   whole               u8 to i53: exact, and an error beyond 2^53 - 1
 *   double              f64
 *   big                 u64 and i64: a bigint of any size, checked when it is stored
 *   str uuid enum       strings; in generated code an enum is the position of its value
 *   time                milliseconds since 1970
 *   bytes               bytes, compared one by one
 *   json pointer        only whether they are null
 *
 * Null means that a value is not known. An operation on null is null; `and` and `or` are null only where the other
 * side does not decide. A row matches a condition that is true: one that is null does not match.
 */

import { SituError } from "../../runtime/errors.ts";
import type { Field, FieldKind } from "../fields.ts";

export type ValueType =
  | "bool"
  | "whole"
  | "double"
  | "big"
  | "str"
  | "uuid"
  | "enum"
  | "time"
  | "bytes"
  | "json"
  | "pointer";

export const OPERATORS = [
  "eq",
  "ne",
  "lt",
  "lte",
  "gt",
  "gte",
  "in",
  "startsWith",
  "isNull",
  "and",
  "or",
  "not",
  "plus",
  "minus",
  "times",
  "dividedBy",
  "concat",
  "lower",
  "upper",
  "length",
  "text",
] as const;

export type Operator = (typeof OPERATORS)[number];

export interface Node {
  readonly op: Operator | "field" | "constant";
  readonly type: ValueType;
  readonly nullable: boolean;
  readonly args: readonly Node[];
  /** Of a field: its name. */
  readonly name?: string;
  /** Of a constant: its value, an enum's as text, a time's as milliseconds, json as text. */
  readonly value?: unknown;
  /** Of an enum: its values in their order. */
  readonly values?: readonly string[];
  /** Nodes in this tree, and how deep it is. */
  readonly size: number;
  readonly depth: number;
}

const TYPES: Record<FieldKind, ValueType> = {
  u8: "whole",
  u16: "whole",
  u32: "whole",
  i32: "whole",
  u53: "whole",
  i53: "whole",
  f64: "double",
  bool: "bool",
  u64: "big",
  i64: "big",
  str: "str",
  bytes: "bytes",
  json: "json",
  pointer: "pointer",
  timestamp: "time",
  uuid: "uuid",
  enum: "enum",
};

/** What an expression calls the values of a field. */
export function typeOf(field: Field): ValueType {
  return TYPES[field.kind];
}

/** Whether a field of this type may be null. */
export function mayBeNull(field: Field): boolean {
  return field.nullable === true || field.kind === "json" || field.kind === "pointer";
}

/** How messages call the values of a type. */
export const TYPE_NAMES: Record<ValueType, string> = {
  bool: "a boolean",
  whole: "a whole number",
  double: "a number",
  big: "a bigint",
  str: "a string",
  uuid: "a UUID",
  enum: "an enum",
  time: "a timestamp",
  bytes: "bytes",
  json: "json",
  pointer: "a pointer",
};

/** Refuses an expression that has no meaning. */
export function refuse(why: string): never {
  throw new SituError("SITU_TYPE", why);
}

export const isText = ({ type }: Node): boolean =>
  type === "str" || type === "uuid" || type === "enum";
export const isNumber = ({ type }: Node): boolean => type === "whole" || type === "double";
