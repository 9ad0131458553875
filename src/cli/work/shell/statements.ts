/** The statements of the shell: what each is called, how it is written, and what it does. */

import { SituError } from "../../../runtime/errors.ts";
import { didYouMean } from "../../../runtime/nearest.ts";
import type { AnyScanOptions } from "../../../tables/indexes/read-options.ts";
import type { Table } from "../../../tables/table.ts";
import { keyFor, rowFor } from "./fields.ts";
import type { DataStatement } from "./outcome.ts";
import type { ShellSession } from "./session.ts";
import { type Word, wordsOf } from "./words.ts";

/** How statements are written, and what they are for. */
export const STATEMENTS = {
  tables: ["tables", "the tables of the store"],
  describe: ["describe TABLE", "fields, key and indexes of a table"],
  get: ["get TABLE [index NAME] KEY", "a row by its key, or by a unique index"],
  scan: [
    "scan TABLE [index NAME [KEY]] [from KEY] [to KEY] [reverse] [limit N]",
    "rows in key order; after and before exclude the bound, prefix matches strings",
  ],
  count: [
    "count TABLE [index NAME [KEY]] [from KEY] [to KEY]",
    "the number of rows that scan would return",
  ],
  insert: ["insert TABLE { field: value, … }", "adds a row; fails if the key exists"],
  put: ["put TABLE { field: value, … }", "adds or replaces a row"],
  update: ["update TABLE KEY { field: value, … }", "changes fields of an existing row"],
  delete: ["delete TABLE KEY", "deletes a row"],
  begin: ["begin", "starts a transaction"],
  commit: ["commit", "commits the transaction"],
  rollback: ["rollback", "undoes the transaction"],
  repeat: ["repeat", "starts over with the statements of a transaction that had a conflict"],
  stats: ["stats", "memory, log, snapshots, counters"],
  inspect: ["inspect TABLE", "structures and memory of a table"],
  verify: ["verify", "checks every structure and index"],
  help: ["help [STATEMENT]", "this text"],
  exit: ["exit", "leaves the shell (also quit, or Ctrl-D)"],
} as const satisfies Readonly<Record<string, readonly [usage: string, what: string]>>;

export type StatementName = keyof typeof STATEMENTS;
export const STATEMENT_NAMES = Object.keys(STATEMENTS) as readonly StatementName[];

export const VALUES_HELP = [
  'Keys and values: 7, 12345678901234567890, 3n (a bigint), ada, "with spaces", 0x00ff or "a\\x00"',
  "(bytes), true, null, { json: [1, 2] }. Write the fields of a composite key one after the other:",
  "get seat 12 3.",
];

/** Words of `scan` that begin a part of it. */
export const SCAN_WORDS = [
  "index",
  "from",
  "after",
  "to",
  "before",
  "prefix",
  "reverse",
  "limit",
] as const;
type ScanWord = (typeof SCAN_WORDS)[number];
const BOUNDS = { from: "gte", after: "gt", to: "lte", before: "lt", prefix: "prefix" } as const;

const isScanWord = ({ kind, text }: Word): boolean =>
  kind === "bare" && (SCAN_WORDS as readonly string[]).includes(text);

/** The name of a statement and the words behind it. */
export interface Typed {
  readonly name: StatementName;
  readonly line: string;
  readonly words: readonly Word[];
}

export function typed(line: string): Typed {
  const [first, ...words] = wordsOf(line);
  const said = first.text.toLowerCase();
  const name = said === "quit" || said === "\\q" ? "exit" : said === "?" ? "help" : said;
  const found = STATEMENT_NAMES.find((each) => each === name);
  if (found !== undefined) return { name: found, line, words };
  const hint = didYouMean(name, STATEMENT_NAMES, "; type help");
  throw new SituError("SITU_TYPE", `unknown statement ${first.text}${hint}`);
}

/** Refuses words that a statement has no use for. */
export function expectWords({ name, words }: Typed, most: number): void {
  if (words.length <= most) return;
  const extra = words[most].text;
  throw new SituError("SITU_TYPE", `${extra} is unexpected: ${STATEMENTS[name][0]}`);
}

/** A statement about rows; undefined if it is another one. */
export async function dataStatement(
  given: Typed,
  session: ShellSession,
): Promise<DataStatement | undefined> {
  const { name, line, words } = given;
  const table = async (): Promise<Table> => session.table(words[0]?.text);
  switch (name) {
    case "get":
      return getStatement(await table(), given);
    case "scan":
      return scanStatement(await table(), given, session.options.mostRows);
    case "count": {
      const found = await table();
      const options = scanOptions(found, words.slice(1), "count");
      const carryOut: DataStatement["carryOut"] = async (target) => ({
        kind: "count",
        count: await target.count(found, options),
      });
      return { line, carryOut };
    }
    case "insert":
    case "put": {
      expectWords(given, 2);
      const found = await table();
      const row = rowFor(found, words[1]);
      const carryOut: DataStatement["carryOut"] = async (target) => {
        await target[name](found, row);
        return { kind: "done", did: name, text: name === "put" ? "put" : "inserted" };
      };
      return { line, carryOut };
    }
    case "update": {
      const found = await table();
      const changes = rowFor(found, words.at(-1));
      const key = keyFor(found, found.key, words.slice(1, -1), `the key of ${found.name}`);
      const carryOut: DataStatement["carryOut"] = async (target) => {
        await target.update(found, key, changes);
        return { kind: "done", did: name, text: "updated" };
      };
      return { line, carryOut };
    }
    case "delete": {
      const found = await table();
      const key = keyFor(found, found.key, words.slice(1), `the key of ${found.name}`);
      const carryOut: DataStatement["carryOut"] = async (target) => {
        const was = await target.delete(found, key);
        return {
          kind: "done",
          did: was ? "delete" : "nothing",
          text: was ? "deleted" : "no such row",
        };
      };
      return { line, carryOut };
    }
    default:
      return undefined;
  }
}

function indexOf(table: Table, name: string | undefined): { name: string; on: readonly string[] } {
  const found = table.indexes.find((index) => index.name === name);
  if (found !== undefined) return found;
  const names = table.indexes.map((index) => index.name);
  const all = names.length === 0 ? "; it has none" : `; it has ${names.join(", ")}`;
  const hint = name === undefined ? all : didYouMean(name, names, all);
  const what = `table ${table.name} has no index ${name ?? "without a name"}${hint}`;
  throw new SituError("SITU_UNKNOWN_INDEX", what);
}

function getStatement(table: Table, { line, words }: Typed): DataStatement {
  const isIndexed = words[1]?.kind === "bare" && words[1].text === "index" && words.length > 3;
  const index = isIndexed ? indexOf(table, words[2].text) : undefined;
  const key =
    index === undefined
      ? keyFor(table, table.key, words.slice(1), `the key of ${table.name}`)
      : keyFor(table, index.on, words.slice(3), `the key of index ${index.name}`);
  return {
    line,
    carryOut: async (target) => ({
      kind: "row",
      table,
      row: await target.get(table, key, index?.name),
    }),
  };
}

function scanStatement(table: Table, { line, words }: Typed, mostRows: number): DataStatement {
  const options = scanOptions(table, words.slice(1), "scan");
  const isImplied = options.limit === undefined && Number.isFinite(mostRows);
  const asked = isImplied ? { ...options, limit: mostRows + 1 } : options;
  const most = isImplied ? mostRows : Number.POSITIVE_INFINITY;
  return {
    line,
    carryOut: async (target) => ({
      kind: "rows",
      table,
      rows: target.scan(table, asked),
      most,
    }),
  };
}

/** The parts of a scan, each with the words up to the next part. */
function partsOf(words: readonly Word[], call: string): Map<ScanWord, readonly Word[]> {
  const parts = new Map<ScanWord, Word[]>();
  let part: Word[] | undefined;
  for (const word of words) {
    if (isScanWord(word)) {
      part = [];
      if (parts.has(word.text as ScanWord)) refuse(`${word.text} is given twice`);
      parts.set(word.text as ScanWord, part);
    } else if (part === undefined) {
      const hint = didYouMean(word.text, SCAN_WORDS, `; ${call} has ${SCAN_WORDS.join(", ")}`);
      refuse(`${word.text} is unexpected${hint}`);
    } else part.push(word);
  }
  return parts;
}

function scanOptions(table: Table, words: readonly Word[], call: "scan" | "count"): AnyScanOptions {
  const options: Record<string, unknown> = {};
  const parts = partsOf(words, call);
  const named = parts.get("index");
  const index = named === undefined ? undefined : indexOf(table, named[0]?.text);
  const names = index?.on ?? table.key;
  const bound = (values: readonly Word[], what: string): unknown =>
    keyFor(table, names, values, what, false);
  if (index !== undefined) {
    options.index = index.name;
    if (named!.length > 1) options.eq = bound(named!.slice(1), `the key of index ${index.name}`);
  }
  for (const [word, option] of Object.entries(BOUNDS)) {
    const values = parts.get(word as ScanWord);
    if (values !== undefined) options[option] = bound(values, word);
  }
  const extra = parts.get("reverse")?.[0];
  if (extra !== undefined) refuse(`${extra.text} is unexpected after reverse`);
  if (call === "count" && (parts.has("reverse") || parts.has("limit"))) {
    refuse("count takes neither reverse nor limit");
  }
  if (parts.has("reverse")) options.reverse = true;
  if (parts.has("limit")) options.limit = limitOf(parts.get("limit")!);
  return options;
}

function limitOf(words: readonly Word[]): number {
  const [word] = words;
  if (words.length === 1 && /^\d{1,15}$/.test(word.text)) return Number(word.text);
  return refuse("limit must be an integer");
}

function refuse(why: string): never {
  throw new SituError("SITU_TYPE", why);
}
