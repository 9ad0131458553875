/**
 * The code that is generated for one field: an expression that reads it, statements that check and
 * write a value. Values are in local variables by then: nothing here runs code of the caller's, but
 * for the messages of a value that is refused.
 */

import { MAX_VALUE_BYTES } from "../../runtime/limits.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import type { FieldLayout } from "./layout.ts";

/** What a field of each kind takes, for messages. */
export const EXPECTED: Record<string, string> = {
  u8: "a whole number from 0 to 255",
  u16: "a whole number from 0 to 65535",
  u32: "a whole number from 0 to 4294967295",
  i32: "a whole number from -2147483648 to 2147483647",
  f64: "a number",
  bool: "a boolean",
  u64: "a bigint from 0n to 2n ** 64n - 1n",
  i64: "a bigint from -(2n ** 63n) to 2n ** 63n - 1n",
  str: "a string",
  bytes: "a Uint8Array",
  pointer: "a Pointer or null",
};

/** An expression that is true if `value` is not of the field's type. */
function isWrong(field: Field<unknown>, value: string): string {
  switch (field.kind) {
    case "u8":
      return `(${value} & 0xff) !== ${value}`;
    case "u16":
      return `(${value} & 0xffff) !== ${value}`;
    case "u32":
      return `(${value} >>> 0) !== ${value}`;
    case "i32":
      return `(${value} | 0) !== ${value}`;
    case "f64":
      return `typeof ${value} !== "number"`;
    case "bool":
      return `typeof ${value} !== "boolean"`;
    case "u64":
      return `typeof ${value} !== "bigint" || BigInt.asUintN(64, ${value}) !== ${value}`;
    case "i64":
      return `typeof ${value} !== "bigint" || BigInt.asIntN(64, ${value}) !== ${value}`;
    case "str":
      return `typeof ${value} !== "string"`;
    case "bytes":
      return `!isBytes(${value})`;
    case "pointer":
      return `${value} !== null && !isPointer(${value})`;
    default:
      return "false";
  }
}

/** A statement that refuses a value of the wrong type. */
export function check(table: Table, name: string, field: Field<unknown>, value: string): string {
  if (field.kind === "json") return "";
  // A bigint where a number belongs would throw in the bit operations, with no name in sight.
  const number = ["u8", "u16", "u32", "i32"].includes(field.kind);
  const guard = number ? `typeof ${value} !== "number" || ` : "";
  const where = JSON.stringify(`${table.name}.${name}`);
  return (
    `if (${guard}${isWrong(field, value)}) ` +
    `wrongType(${where}, ${JSON.stringify(EXPECTED[field.kind])}, ${value});`
  );
}

/** A statement that refuses a string or bytes that are longer than declared. */
export function lengthCheck(table: Table, { name, field }: FieldLayout, value: string): string {
  const where = JSON.stringify(`${table.name}.${name}`);
  if (field.kind === "str")
    return `checkLength(textBytes(${value}, ${where}), ${field.max ?? MAX_VALUE_BYTES}, ${where});`;
  if (field.kind === "bytes")
    return `checkLength(bytesIn(${value}, ${where}), ${field.max ?? MAX_VALUE_BYTES}, ${where});`;
  return "";
}

/** An expression that reads a field of the row at word `at`. */
export function reader({ field, offset, variable }: FieldLayout): string {
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  if (variable) {
    const read = { str: "readString", bytes: "readBytes", json: "readJson" }[field.kind as "str"];
    return `${read}(views, at, ${word}, words)`;
  }
  switch (field.kind) {
    case "u8":
      return `views.u8[${byte}]`;
    case "bool":
      return `views.u8[${byte}] === 1`;
    case "u16":
      return `views.u16[at * 2 + ${offset >> 1}]`;
    case "u32":
      return `views.i32[${word}] >>> 0`;
    case "i32":
      return `views.i32[${word}]`;
    case "f64":
      return `views.f64[(at >> 1) + ${offset >> 3}]`;
    case "i64":
      return `views.i64[(at >> 1) + ${offset >> 3}]`;
    case "u64":
      return `views.u64[(at >> 1) + ${offset >> 3}]`;
    case "pointer":
      return `readPointer(views.i32, ${word})`;
    case "str":
      return `readInlineString(views, ${byte}, ${field.max})`;
    default:
      return `readInlineBytes(views, ${byte}, ${field.max})`;
  }
}

/** The expression for a value of a row or of changes: the one step that runs the caller's code. */
export function taken(table: Table, name: string, field: Field<unknown>, value: string): string {
  if (field.kind !== "json") return value;
  return `jsonText(${value}, ${JSON.stringify(`${table.name}.${name}`)})`;
}

/** A statement that writes `value`, as `taken` has it, to a field of the row at word `at`. */
export function writer(
  table: Table,
  { name, field, offset, variable }: FieldLayout,
  value: string,
): string {
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  const where = JSON.stringify(`${table.name}.${name}`);
  if (variable) {
    const append = field.kind === "bytes" ? "appendBytes" : "appendString";
    return `end = ${append}(views, ${word}, end, ${value}, ${field.max}, ${where});`;
  }
  switch (field.kind) {
    case "u8":
      return `views.u8[${byte}] = ${value};`;
    case "bool":
      return `views.u8[${byte}] = ${value} ? 1 : 0;`;
    case "u16":
      return `views.u16[at * 2 + ${offset >> 1}] = ${value};`;
    case "u32":
    case "i32":
      return `views.i32[${word}] = ${value};`;
    case "f64":
      return `views.f64[(at >> 1) + ${offset >> 3}] = ${value};`;
    case "i64":
      return `views.i64[(at >> 1) + ${offset >> 3}] = ${value};`;
    case "u64":
      return `views.u64[(at >> 1) + ${offset >> 3}] = ${value};`;
    case "pointer":
      return `writePointer(views.i32, ${word}, ${value});`;
    case "str":
      return `writeInlineString(views, ${byte}, ${value}, ${field.max}, ${where});`;
    default:
      return `writeInlineBytes(views, ${byte}, ${value}, ${field.max}, ${where});`;
  }
}
