/**
 * From what was typed to the values of a table's fields. The kind of the field decides: 7 is a
 * number for one field, a bigint for another and a text for a third. Whatever does not fit is left
 * as it is, so that the table itself says what it expected.
 */

import { SituError } from "../../../runtime/errors.ts";
import { didYouMean } from "../../../runtime/nearest.ts";
import type { Field, FieldKind } from "../../../tables/fields.ts";
import type { Table } from "../../../tables/table.ts";
import { parseLiteral } from "./literals.ts";
import type { Word } from "./words.ts";

/** What need have no quotes. */
const TEXTS: ReadonlySet<FieldKind> = new Set(["str", "bytes", "uuid", "enum"]);
const HEX = /^0x(?:[0-9a-f]{2})*$/i;

/** A value that was parsed, as its field has it. */
export function valueFor({ kind }: Field<unknown>, value: unknown): unknown {
  if (kind === "u64" || kind === "i64") {
    if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
    // As --json shows them.
    return typeof value === "string" && /^-?\d{1,20}$/.test(value) ? BigInt(value) : value;
  }
  if (kind === "bytes" && typeof value === "string") {
    return HEX.test(value) ? hexBytes(value) : new Uint8Array(Buffer.from(value));
  }
  if (kind === "timestamp" && typeof value === "string") return dateOf(value);
  if (kind === "str" && value instanceof Uint8Array) return textOf(value);
  if (kind === "json") return withoutBytes(value);
  return value;
}

function hexBytes(text: string): Uint8Array {
  return new Uint8Array(Buffer.from(text.slice(2), "hex"));
}

/** A moment as --json and tables show it. What is none is left for the table to refuse. */
function dateOf(text: string): unknown {
  const date = new Date(text);
  return /^[+-]?\d{4,6}-\d\d/.test(text) && !Number.isNaN(date.getTime()) ? date : text;
}

function textOf(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new SituError("SITU_TYPE", "these bytes are not valid UTF-8");
  }
}

/** JSON has neither bytes nor bigints: a text with \x escapes is a text there. */
function withoutBytes(value: unknown): unknown {
  if (value instanceof Uint8Array) return textOf(value);
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return value.map(withoutBytes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, withoutBytes(each)]),
  );
}

/** A single word: a bare one need have no quotes where the field is a text. */
export function wordFor(field: Field<unknown>, { kind, text }: Word): unknown {
  if (kind === "bare" && text === "null" && field.nullable) return null;
  const isText =
    TEXTS.has(field.kind) || (field.kind === "timestamp" && /^[+-]?\d{4,6}-/.test(text));
  if (kind === "bare" && isText) {
    return valueFor(field, field.kind === "bytes" && HEX.test(text) ? hexBytes(text) : text);
  }
  return valueFor(field, parseLiteral(text));
}

/** A row, or changes of one, as `{ id: 7, owner: "ada" }`. */
export function rowFor(table: Table, word: Word | undefined): Record<string, unknown> {
  const example = `{ ${Object.keys(table.fields).slice(0, 2).join(": …, ")}: … }`;
  if (word?.kind !== "group" || !word.text.startsWith("{")) {
    throw new SituError("SITU_TYPE", `write the row as ${example}`);
  }
  const given = parseLiteral(word.text) as Record<string, unknown>;
  const names = Object.keys(table.fields);
  const row: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(table.fields, name)) {
      const hint = didYouMean(name, names, `; it has ${names.join(", ")}`);
      throw new SituError("SITU_TYPE", `table ${table.name} has no field ${name}${hint}`);
    }
    row[name] = valueFor(table.fields[name], value);
  }
  return row;
}

/**
 * The values of a key, or of the first fields of one, as words (12 3) or as one list ([12, 3]). A
 * single field is a value, several are a list.
 */
export function keyFor(
  table: Table,
  names: readonly string[],
  words: readonly Word[],
  what: string,
  isWhole = true,
): unknown {
  const fields = names.map((name) => table.fields[name]);
  const values = keyValues(fields, words);
  const isRight = isWhole ? values.length === names.length : values.length <= names.length;
  if (!isRight || values.length === 0) {
    const wanted = `${isWhole ? "" : "one or more of "}${names.join(" ")}`;
    throw new SituError("SITU_TYPE", `${what} must be ${wanted}, not ${shown(words)}`);
  }
  return names.length === 1 ? values[0] : values;
}

function keyValues(fields: readonly Field<unknown>[], words: readonly Word[]): unknown[] {
  const [only] = words;
  if (words.length === 1 && only.kind === "group" && only.text.startsWith("[")) {
    const list = parseLiteral(only.text) as unknown[];
    return list.map((value, i) => (fields[i] === undefined ? value : valueFor(fields[i], value)));
  }
  return words.map((word, i) => (fields[i] === undefined ? word.text : wordFor(fields[i], word)));
}

function shown(words: readonly Word[]): string {
  return words.length === 0 ? "nothing" : words.map(({ text }) => text).join(" ");
}
