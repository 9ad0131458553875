/**
 * What must hold after a run of YCSB. Its updates leave no sum behind, so the check looks at every
 * row: all records are there, and those that lanes say they have inserted, each once and no others;
 * and each field has the value that its record began with, or one that is written to this field.
 */

import type { Table } from "situ";
import type { ReadRows, Tally } from "../workload.ts";
import { insertedKey, keysOf } from "./keys.ts";
import { LANE_INSERTS } from "./session.ts";
import { FIELD_COUNT, type YcsbRow } from "./store.ts";
import { fieldNames, initialRow } from "./values.ts";

/** Where things go wrong, the first few say enough. */
const EXAMPLES = 5;

export interface YcsbContents {
  readonly table: Table;
  readonly records: number;
  readonly pool: readonly string[];
}

export async function checkYcsb(
  { table, records, pool }: YcsbContents,
  read: ReadRows,
  tally: Tally,
): Promise<string[]> {
  const problems = new Problems();
  const numbers = new Map<string, number>();
  for (const [number, key] of keysOf(records).entries()) numbers.set(key, number);
  const inserted = insertedKeys(records, tally);
  const pooled = fieldNames.map((_, field) => new Set(everyTenth(pool, field)));
  let rows = 0;
  let changed = 0;
  for await (const found of read(table)) {
    const row = found as unknown as YcsbRow;
    rows++;
    const number = numbers.get(row.key);
    // Taken away when it is met, so a second row with the same key is one that nobody wrote.
    if (number !== undefined) numbers.delete(row.key);
    else if (!inserted.delete(row.key)) problems.add("rows that nobody wrote", row.key);
    const initial = number === undefined ? undefined : initialRow(number, row.key);
    for (let field = 0; field < FIELD_COUNT; field++) {
      const name = fieldNames[field];
      const value = row[name];
      if (initial !== undefined && value === initial[name]) continue;
      if (pooled[field].has(value)) changed += initial === undefined ? 0 : 1;
      else problems.add("fields with a value that nobody wrote to them", `${row.key} ${name}`);
    }
  }
  for (const key of numbers.keys()) problems.add("records that are missing", key);
  for (const key of inserted) problems.add("inserted records that are missing", key);
  const expected = records + (tally.inserts ?? 0);
  if (rows !== expected) problems.say(`${rows} rows where there should be ${expected}`);
  checkTally(tally, changed, problems);
  return problems.sentences();
}

/** The rows together can show fewer updates than there were, but not more, and not none. */
function checkTally(tally: Tally, changed: number, problems: Problems): void {
  const { updates = 0, missing = 0, wrong = 0 } = tally;
  if (changed > updates) problems.say(`${changed} fields were changed by ${updates} updates`);
  if (updates > 0 && changed === 0) problems.say(`none of ${updates} updates has left a trace`);
  if (missing > 0) problems.say(`${missing} operations did not find their row`);
  if (wrong > 0) problems.say(`${wrong} operations found a row with another key`);
}

function insertedKeys(records: number, tally: Tally): Set<string> {
  const keys = new Set<string>();
  for (const [name, count] of Object.entries(tally)) {
    if (!name.startsWith(LANE_INSERTS)) continue;
    const lane = Number(name.slice(LANE_INSERTS.length));
    for (let insert = 0; insert < count; insert++) keys.add(insertedKey(records, lane, insert));
  }
  return keys;
}

function* everyTenth(pool: readonly string[], first: number): Iterable<string> {
  for (let index = first; index < pool.length; index += FIELD_COUNT) yield pool[index];
}

/** One sentence for each kind of problem, with how many there are and a few of them. */
class Problems {
  readonly #said: string[] = [];
  readonly #kinds = new Map<string, { count: number; readonly examples: string[] }>();

  say(sentence: string): void {
    this.#said.push(sentence);
  }

  add(kind: string, example: string): void {
    let found = this.#kinds.get(kind);
    if (found === undefined) {
      found = { count: 0, examples: [] };
      this.#kinds.set(kind, found);
    }
    found.count++;
    if (found.examples.length < EXAMPLES) found.examples.push(example);
  }

  sentences(): string[] {
    const kinds = [...this.#kinds].map(
      ([kind, { count, examples }]) => `${count} ${kind}: ${examples.join(", ")}`,
    );
    return [...this.#said, ...kinds];
  }
}
