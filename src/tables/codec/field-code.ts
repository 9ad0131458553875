/**
 * The code that is generated for one field: statements that convert, check and write a value, and an
 * expression that reads it. Values are in local variables by then: nothing here runs code of the
 * caller's, but for `toJSON`, and for the messages of a value that is refused.
 *
 * A field that may be null has these inside of a condition; undefined becomes null first.
 */

import { MAX_VALUE_BYTES } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { TIME_EXPECTED, UUID_EXPECTED } from "./conversions.ts";
import { type FieldLayout, type RowLayout, widthOf } from "./layout.ts";

const MAX_SAFE = Number.MAX_SAFE_INTEGER;

/** What a field of each kind takes, for messages. */
const EXPECTED: Record<string, string> = {
  u8: "a whole number from 0 to 255",
  u16: "a whole number from 0 to 65535",
  u32: "a whole number from 0 to 4294967295",
  i32: "a whole number from -2147483648 to 2147483647",
  u53: "a whole number from 0 to 2 ** 53 - 1",
  i53: "a whole number from -(2 ** 53 - 1) to 2 ** 53 - 1",
  f64: "a number",
  bool: "a boolean",
  u64: "a bigint from 0n to 2n ** 64n - 1n",
  i64: "a bigint from -(2n ** 63n) to 2n ** 63n - 1n",
  str: "a string",
  bytes: "a Uint8Array",
  pointer: "a Pointer or null",
  timestamp: TIME_EXPECTED,
  uuid: UUID_EXPECTED,
};
/** More values of an enum are not listed in a message. */
const LISTED_VALUES = 8;

export function expectedOf({ kind, values, nullable }: Field): string {
  const expected = values === undefined ? EXPECTED[kind] : `one of ${listed(values)}`;
  return nullable ? `${expected}, or null` : expected;
}

function listed(values: readonly string[]): string {
  const first = values.slice(0, LISTED_VALUES).map(show).join(", ");
  return values.length > LISTED_VALUES ? `${first}, …` : first;
}

const NUMBER_KINDS = ["u8", "u16", "u32", "i32", "u53", "i53"];

/** An expression that is true if `value` is not of the field's type. */
function isWrong(field: Field, value: string): string {
  switch (field.kind) {
    case "u8":
      return `(${value} & 0xff) !== ${value}`;
    case "u16":
      return `(${value} & 0xffff) !== ${value}`;
    case "u32":
      return `(${value} >>> 0) !== ${value}`;
    case "i32":
      return `(${value} | 0) !== ${value}`;
    case "u53":
      return `!(${value} >= 0 && ${value} <= ${MAX_SAFE} && Math.floor(${value}) === ${value})`;
    case "i53":
      return `!(${value} >= -${MAX_SAFE} && ${value} <= ${MAX_SAFE} && Math.floor(${value}) === ${value})`;
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

/** What is checked when it is converted or written. */
const CHECKED_LATER = ["json", "timestamp", "enum", "uuid"];

export const whereOf = (table: Table, { name }: FieldLayout): string =>
  JSON.stringify(`${table.name}.${name}`);

/** `statement`, for values other than null. */
function unlessNull({ field }: FieldLayout, value: string, statement: string): string {
  if (!field.nullable || statement === "") return statement;
  return `if (${value} !== null) { ${statement} }`;
}

/** Declares the names and positions of enums, as the code for such fields uses them. */
export function enumCode({ fields }: RowLayout): string {
  return fields
    .filter(({ field }) => field.kind === "enum")
    .map(({ field, index }) => {
      const codes = field.values!.map((value, code) => [value, code]);
      return (
        `const names${index} = ${JSON.stringify(field.values)}, ` +
        `codes${index} = new Map(${JSON.stringify(codes)});`
      );
    })
    .join("\n");
}

/**
 * Statements that turn the variable `value`, as it was read from the caller, into what the others
 * here work on. Of json this runs the caller's code.
 */
export function convert(table: Table, place: FieldLayout, value: string): string {
  const { field, index } = place;
  const where = whereOf(table, place);
  const expected = JSON.stringify(expectedOf(field));
  const converted = {
    json: `${value} = jsonText(${value}, ${where});`,
    timestamp: `${value} = timeOf(${value}, ${where});`,
    enum: `${value} = codeOf(codes${index}, ${value}, ${where}, ${expected});`,
  }[field.kind as string];
  if (!field.nullable) return converted ?? "";
  const otherwise = converted === undefined ? "" : ` else { ${converted} }`;
  return `if (${value} === undefined || ${value} === null) ${value} = null;${otherwise}`;
}

/** A statement that refuses a value of the wrong type. */
export function check(table: Table, place: FieldLayout, value: string): string {
  const { field } = place;
  if (CHECKED_LATER.includes(field.kind)) return "";
  // A bigint where a number belongs would throw in the bit operations, with no name in sight.
  const guard = NUMBER_KINDS.includes(field.kind) ? `typeof ${value} !== "number" || ` : "";
  const expected = JSON.stringify(expectedOf(field));
  const statement =
    `if (${guard}${isWrong(field, value)}) ` +
    `wrongType(${whereOf(table, place)}, ${expected}, ${value});`;
  return unlessNull(place, value, statement);
}

/** A statement that refuses a string or bytes that are longer than declared. */
export function lengthCheck(table: Table, place: FieldLayout, value: string): string {
  const { kind, max = MAX_VALUE_BYTES } = place.field;
  const where = whereOf(table, place);
  const measure = { str: "textBytes", bytes: "bytesIn" }[kind as string];
  if (measure === undefined) return "";
  const statement = `checkLength(${measure}(${value}, ${where}), ${max}, ${where});`;
  return unlessNull(place, value, statement);
}

/** An expression that is true if the field of the row at word `at` is null. */
export function nullIn({ nullByte, nullBit }: FieldLayout, views = "views", at = "at * 4"): string {
  return `(${views}.u8[${at} + ${nullByte}] & ${nullBit}) !== 0`;
}

/** An expression that reads a field of the row at word `at`. */
export function reader(place: FieldLayout, read: string = valueReader(place)): string {
  return place.field.nullable ? `${nullIn(place)} ? null : (${read})` : read;
}

/** The same for a value that is not null. */
export function valueReader({ field, offset, variable, index }: FieldLayout): string {
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  const double = `views.f64[(at >> 1) + ${offset >> 3}]`;
  if (variable) {
    const read = { str: "readString", bytes: "readBytes", json: "readJson" }[field.kind as "str"];
    return `${read}(views, at, ${word}, words)`;
  }
  switch (field.kind) {
    case "u8":
      return `views.u8[${byte}]`;
    case "bool":
      return `views.u8[${byte}] === 1`;
    case "enum":
      return `names${index}[views.u8[${byte}]]`;
    case "u16":
      return `views.u16[at * 2 + ${offset >> 1}]`;
    case "u32":
      return `views.i32[${word}] >>> 0`;
    case "i32":
      return `views.i32[${word}]`;
    case "f64":
    case "u53":
    case "i53":
      return double;
    case "timestamp":
      return field.as === "number" ? double : `new Date(${double})`;
    case "i64":
      return `views.i64[(at >> 1) + ${offset >> 3}]`;
    case "u64":
      return `views.u64[(at >> 1) + ${offset >> 3}]`;
    case "uuid":
      return `readUuid(views.i32, ${word})`;
    case "pointer":
      return `readPointer(views.i32, ${word})`;
    case "str":
      return `readInlineString(views, ${byte}, ${field.max})`;
    default:
      return `readInlineBytes(views, ${byte}, ${field.max})`;
  }
}

/** A statement that writes `value`, as `convert` has left it, to a field of the row at word `at`. */
export function writer(table: Table, place: FieldLayout, value: string): string {
  const write = valueWriter(table, place, value);
  const { field, offset, nullByte, nullBit } = place;
  if (!field.nullable) return write;
  const bits = `views.u8[at * 4 + ${nullByte}]`;
  return (
    `if (${value} === null) { ${bits} |= ${nullBit}; ` +
    `views.u8.fill(0, at * 4 + ${offset}, at * 4 + ${offset + widthOf(field)}); } ` +
    `else { ${bits} &= ~${nullBit}; ${write} }`
  );
}

function valueWriter(table: Table, place: FieldLayout, value: string): string {
  const { field, offset, variable } = place;
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  const where = whereOf(table, place);
  if (variable) {
    const append = field.kind === "bytes" ? "appendBytes" : "appendString";
    return `end = ${append}(views, ${word}, end, ${value}, ${field.max}, ${where});`;
  }
  switch (field.kind) {
    case "u8":
    case "enum":
      return `views.u8[${byte}] = ${value};`;
    case "bool":
      return `views.u8[${byte}] = ${value} ? 1 : 0;`;
    case "u16":
      return `views.u16[at * 2 + ${offset >> 1}] = ${value};`;
    case "u32":
    case "i32":
      return `views.i32[${word}] = ${value};`;
    case "f64":
    case "timestamp":
      return `views.f64[(at >> 1) + ${offset >> 3}] = ${value};`;
    case "u53":
    case "i53":
      // No negative zero: it would be another key.
      return `views.f64[(at >> 1) + ${offset >> 3}] = ${value} + 0;`;
    case "i64":
      return `views.i64[(at >> 1) + ${offset >> 3}] = ${value};`;
    case "u64":
      return `views.u64[(at >> 1) + ${offset >> 3}] = ${value};`;
    case "uuid":
      return `writeUuid(views.i32, ${word}, ${value}, ${where});`;
    case "pointer":
      return `writePointer(views.i32, ${word}, ${value});`;
    case "str":
      return `writeInlineString(views, ${byte}, ${value}, ${field.max}, ${where});`;
    default:
      return `writeInlineBytes(views, ${byte}, ${value}, ${field.max}, ${where});`;
  }
}
