/**
 * What Tab offers: statements, tables, the words of a scan, indexes, fields inside a row, and keys,
 * as far as a few rows from where the typed beginning would be are enough to know them.
 */

import type { Table } from "../../../tables/table.ts";
import type { ShellSession } from "./session.ts";
import { shownBytes } from "./show.ts";
import { SCAN_WORDS, STATEMENT_NAMES } from "./statements.ts";
import type { Row } from "./target.ts";
import { splitStatements, type Word, wordsOf } from "./words.ts";

/** Rows that are looked at for keys. */
const MOST_KEYS = 30;
const WITH_TABLE = [
  "describe",
  "get",
  "scan",
  "count",
  "insert",
  "put",
  "update",
  "delete",
  "inspect",
];
const WITH_KEY = ["get", "update", "delete"];
const WITH_ROW = ["insert", "put", "update"];

/** As readline wants it: what fits, and the part of the line that it is for. */
export type Completion = [matches: string[], part: string];

export function complete(line: string, session: ShellSession): Completion {
  const { rest, text } = lastStatement(line);
  if (rest !== undefined) return fieldCompletion(rest, session);
  const part = /[^\s]*$/.exec(text)![0];
  const before = wordsBefore(text.slice(0, text.length - part.length));
  if (before === undefined) return [[], part];
  const fits = (names: readonly string[]): Completion => [
    names.filter((name) => name.startsWith(part)).map((name) => `${name} `),
    part,
  ];
  const [name, tableName] = before.map((word) => word.text);
  if (before.length === 0 || name === "help") return fits(STATEMENT_NAMES);
  if (!WITH_TABLE.includes(name)) return [[], part];
  if (before.length === 1) return fits([...session.tables.keys()].map(quoted));
  const table = session.tables.get(tableName);
  if (table === undefined) return [[], part];
  if (before.at(-1)!.text === "index") return fits(table.indexes.map((index) => index.name));
  if (name === "scan" || name === "count") {
    const isBound = ["from", "after", "to", "before", "prefix"].includes(before.at(-1)!.text);
    const words = SCAN_WORDS.filter((word) => !before.some(({ text: each }) => each === word));
    return isBound ? fits(keysOf(table, part, session)) : fits(words);
  }
  if (WITH_KEY.includes(name) && before.length === 2) return fits(keysOf(table, part, session));
  return [[], part];
}

/** The statement that the cursor is in; as `rest` if a bracket or quote of it is open. */
function lastStatement(line: string): { text: string; rest?: string } {
  const { statements, rest } = splitStatements(line);
  if (rest !== "") return { text: rest, rest };
  if (/[;\n]\s*$/.test(line)) return { text: "" };
  const last = statements.at(-1) ?? "";
  return { text: line.slice(line.lastIndexOf(last)) };
}

function wordsBefore(text: string): Word[] | undefined {
  try {
    return wordsOf(text);
  } catch {
    return undefined;
  }
}

/** Inside of { … }: names of fields that are not there yet. */
function fieldCompletion(text: string, session: ShellSession): Completion {
  const part = /[\w$]*$/.exec(text)![0];
  const found = /^\s*(\w+)\s+(\S+)[^{]*\{(.*)$/s.exec(text);
  if (found === null || !WITH_ROW.includes(found[1])) return [[], part];
  const table = session.tables.get(found[2]);
  const inside = found[3].slice(0, found[3].length - part.length);
  // Only where a name is to come: at the beginning, or behind a comma.
  if (table === undefined || !/(^|,)\s*$/.test(inside)) return [[], part];
  const there = [...inside.matchAll(/([\w$]+)\s*:/g)].map(([, name]) => name);
  const isFree = (name: string): boolean =>
    !there.includes(name) && !(found[1] === "update" && table.key.includes(name));
  const names = Object.keys(table.fields).filter((name) => name.startsWith(part) && isFree(name));
  return [names.map((name) => `${name}: `), part];
}

/** The first field of keys that begin so. */
function keysOf(table: Table, part: string, session: ShellSession): string[] {
  const [first] = table.key;
  const { kind } = table.fields[first];
  const isText = kind === "str" || kind === "bytes";
  const bound = kind === "str" ? part : new Uint8Array(Buffer.from(part));
  const isPrefix = table.ordered && isText && part !== "";
  const start = { prefix: table.key.length === 1 ? bound : [bound] };
  try {
    const rows = session.db.scan(table, { limit: MOST_KEYS, ...(isPrefix ? start : {}) }).toArray();
    return [...new Set(rows.map((row) => keyText((row as Row)[first])))];
  } catch {
    // Nothing to offer is no error: somebody may be just changing all of it.
    return [];
  }
}

function keyText(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  if (!(value instanceof Uint8Array)) return String(value);
  const text = shownBytes(value);
  return text.includes("\\") ? JSON.stringify(text).replaceAll("\\\\", "\\") : quoted(text);
}

/** With quotes if it would not be one word without. */
function quoted(text: string): string {
  return /^[^\s;"'{[\\]+$/.test(text) ? text : JSON.stringify(text);
}
