/**
 * CSV as RFC 4180 has it: a line with the names of the fields, then one record for each row. A value that
 * contains a comma, a quote or a line break is quoted, and quotes in it are doubled. An empty value without
 * quotes is null, and "" is an empty text, as in PostgreSQL.
 */

import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";
import type { Format, RowReader, RowWriter } from "./format.ts";
import type { FieldText } from "./value-text.ts";

export const CSV: Format = {
  extension: "csv",
  writer: (fields) => new CsvWriter(fields),
  reader: (fields) => new CsvReader(fields),
};

const MUST_BE_QUOTED = /[",\r\n]|^\s|\s$|^$/;
const QUOTE = 34;

function quoted(text: string): string {
  return MUST_BE_QUOTED.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

class CsvWriter implements RowWriter {
  readonly head: string;
  readonly #fields: readonly FieldText[];

  constructor(fields: readonly FieldText[]) {
    this.#fields = fields;
    this.head = `${fields.map(({ name }) => quoted(name)).join(",")}\n`;
  }

  line(row: object): string {
    const fields = this.#fields;
    let line = "";
    for (let i = 0; i < fields.length; i++) {
      const value = (row as Readonly<Record<string, never>>)[fields[i].name];
      line += `${i === 0 ? "" : ","}${value === null ? "" : quoted(fields[i].toCsv(value))}`;
    }
    return `${line}\n`;
  }
}

class CsvReader implements RowReader {
  readonly #fields: readonly FieldText[];
  /** In the order of the file. */
  #columns: readonly FieldText[] = [];

  constructor(fields: readonly FieldText[]) {
    this.#fields = fields;
  }

  readHead(text: string, isLast: boolean): number {
    const end = this.next(text, 0, isLast);
    if (end < 0) return -1;
    const names = recordIn(text, 0, end);
    if (names.length === 1 && names[0] === null) {
      throw new SituError("SITU_TYPE", "there must be a first line with the names of the fields");
    }
    this.#columns = names.map((name) => {
      const field = this.#fields.find((each) => each.name === name);
      if (field !== undefined) return field;
      const known = this.#fields.map((each) => each.name).join(", ");
      throw new SituError(
        "SITU_TYPE",
        `the first line names a field ${show(name)}, which the table does not have; it has ${known}`,
      );
    });
    if (new Set(names).size < names.length) {
      throw new SituError("SITU_TYPE", "the first line names a field twice");
    }
    return end;
  }

  /** A line break inside of quotes is part of a value. */
  next(text: string, from: number, isLast: boolean): number {
    let isQuoted = false;
    for (let at = from; ; ) {
      const end = text.indexOf("\n", at);
      const quote = text.indexOf('"', at);
      if (quote >= 0 && (isQuoted || end < 0 || quote < end)) {
        isQuoted = !isQuoted;
        at = quote + 1;
        continue;
      }
      if (isQuoted || end < 0) return isLast ? text.length : -1;
      return end + 1;
    }
  }

  row(text: string, from: number, end: number): object | undefined {
    const values = recordIn(text, from, end);
    if (values.length === 1 && values[0] === null && this.#columns.length > 1) return undefined;
    if (values.length !== this.#columns.length) {
      throw new SituError(
        "SITU_TYPE",
        `it has ${values.length} values, and the first line names ${this.#columns.length} fields`,
      );
    }
    const row: Record<string, unknown> = {};
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      row[this.#columns[i].name] = value === null ? null : this.#columns[i].fromCsv(value);
    }
    return row;
  }
}

/** The values of one record; null for an empty one without quotes. */
function recordIn(text: string, from: number, lineEnd: number): (string | null)[] {
  let end = lineEnd;
  if (text[end - 1] === "\n") end--;
  if (text[end - 1] === "\r") end--;
  const values: (string | null)[] = [];
  for (let at = from; ; ) {
    if (text.charCodeAt(at) === QUOTE && at < end) {
      const [value, after] = quotedIn(text, at, end);
      values.push(value);
      if (after < end && text[after] !== ",") {
        throw new SituError("SITU_TYPE", `after a closing quote there must be a comma`);
      }
      at = after;
    } else {
      const comma = text.indexOf(",", at);
      const stop = comma < 0 || comma > end ? end : comma;
      const value = text.slice(at, stop);
      if (value.includes('"')) {
        throw new SituError(
          "SITU_TYPE",
          `a value with a quote in it must be quoted, and the quote doubled`,
        );
      }
      values.push(stop === at ? null : value);
      at = stop;
    }
    if (at >= end) return values;
    at++;
    if (at === end) return [...values, null];
  }
}

/** The value that begins with the quote at `from`, and where its closing quote was. */
function quotedIn(text: string, from: number, end: number): [value: string, after: number] {
  let value = "";
  for (let at = from + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0 || quote >= end) throw new SituError("SITU_TYPE", "a quote is not closed");
    value += text.slice(at, quote);
    if (text.charCodeAt(quote + 1) !== QUOTE || quote + 1 >= end) return [value, quote + 1];
    value += '"';
    at = quote + 2;
  }
}
