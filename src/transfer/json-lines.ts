/** JSON lines: one row on each line, as a JSON object. */

import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";
import type { Format, RowReader, RowWriter } from "./format.ts";
import { asItIs, type FieldText } from "./value-text.ts";

export const JSON_LINES: Format = {
  extension: "jsonl",
  writer: (fields) => new JsonLinesWriter(fields),
  reader: (fields) => new JsonLinesReader(fields),
};

type Row = Readonly<Record<string, never>>;

class JsonLinesWriter implements RowWriter {
  readonly head = "";
  readonly #fields: readonly FieldText[];
  /** What stands before each value. */
  readonly #before: readonly string[];

  constructor(fields: readonly FieldText[]) {
    this.#fields = fields;
    this.#before = fields.map(({ name }, i) => `${i === 0 ? "{" : ","}${JSON.stringify(name)}:`);
  }

  line(row: object): string {
    const fields = this.#fields;
    let line = "";
    for (let i = 0; i < fields.length; i++) {
      line += this.#before[i] + fields[i].toJson((row as Row)[fields[i].name]);
    }
    return `${line}}\n`;
  }
}

class JsonLinesReader implements RowReader {
  /** The fields whose values JSON has no type for. */
  readonly #fields: readonly FieldText[];

  constructor(fields: readonly FieldText[]) {
    this.#fields = fields.filter(({ fromJson }) => fromJson !== asItIs);
  }

  readHead(): number {
    return 0;
  }

  /** Where the line that begins at `from` ends. */
  next(text: string, from: number, isLast: boolean): number {
    const end = text.indexOf("\n", from);
    if (end >= 0) return end + 1;
    return isLast ? text.length : -1;
  }

  row(text: string, from: number, end: number): object | undefined {
    const line = text.slice(from, end);
    const value: unknown = line.trim() === "" ? undefined : JSON.parse(line);
    if (value === undefined) return undefined;
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw new SituError("SITU_TYPE", `a row is a JSON object, not ${show(value)}`);
    }
    const row = value as Record<string, unknown>;
    for (const { name, fromJson } of this.#fields) {
      if (Object.hasOwn(row, name)) row[name] = fromJson(row[name]);
    }
    return row;
  }
}
