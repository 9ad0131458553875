/**
 * Values as they are shown in tables. What could move the cursor or change colours is shown as an
 * escape: rows may hold whatever somebody has put there.
 */

import { Pointer } from "../../../memory/pointer.ts";
import type { FieldKind } from "../../../tables/fields.ts";
import type { Table } from "../../../tables/table.ts";
import { toJson } from "../../screen.ts";
import type { Column } from "../../text-table.ts";

const NUMBERS: ReadonlySet<FieldKind> = new Set([
  "u8",
  "u16",
  "u32",
  "i32",
  "u53",
  "i53",
  "f64",
  "u64",
  "i64",
]);
/** Control characters, those that change the direction of text, and line separators. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is them that are looked for
const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const ESCAPES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
/** Bytes of which so many are no text are shown as 0x… */
const MOST_ESCAPES = 1 / 4;

export function safeText(text: string): string {
  return text.replace(UNSAFE, (character) => {
    const code = character.charCodeAt(0);
    const hex = code.toString(16);
    return (
      ESCAPES[character] ??
      (code < 0x100 ? `\\x${hex.padStart(2, "0")}` : `\\u${hex.padStart(4, "0")}`)
    );
  });
}

/** Text with \x escapes where most of it is text, else 0x… */
export function shownBytes(bytes: Uint8Array): string {
  const asText = decoded(bytes);
  if (asText !== undefined) return asText;
  let escaped = 0;
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte < 0x7f && byte !== 0x5c;
    if (!isPlain) escaped++;
    text += isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, "0")}`;
  }
  // Text that begins with 0x would be taken for the same thing.
  if (escaped > bytes.length * MOST_ESCAPES || text.startsWith("0x"))
    return `0x${Buffer.from(bytes).toString("hex")}`;
  return text;
}

/** Undefined if it is no text, or one that would be taken for something else. */
function decoded(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    UNSAFE.lastIndex = 0;
    return UNSAFE.test(text) || text.includes("\\") || text.startsWith("0x") ? undefined : text;
  } catch {
    return undefined;
  }
}

export function shownValue(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value === "string") return safeText(value);
  if (typeof value === "bigint") return `${value}n`;
  if (value instanceof Uint8Array) return shownBytes(value);
  if (typeof value === "number" || typeof value === "boolean" || value === null)
    return String(value);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "?" : value.toISOString();
  const text = value instanceof Pointer ? String(value) : toJson(value);
  return safeText(text);
}

/** The key's fields first, the others as they are declared. */
export function fieldNames({ key, fields }: Table): string[] {
  return [...key, ...Object.keys(fields).filter((name) => !key.includes(name))];
}

export function columnsOf(table: Table): Column[] {
  return fieldNames(table).map((name) => ({
    head: name,
    isRight: NUMBERS.has(table.fields[name].kind),
  }));
}

export function cellsOf(table: Table, row: unknown): string[] {
  const values = row as Readonly<Record<string, unknown>>;
  return fieldNames(table).map((name) => shownValue(values[name]));
}
