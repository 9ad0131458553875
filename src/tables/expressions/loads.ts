/**
 * How generated code reads a field: out of the words of a stored row, or out of a row object. The first is for tables in
 * the memory of this machine: a filter touches the fields that it names, and nothing else of the row. The second is
 * for rows that come from another machine, or through a declaration that is not the store's own.
 *
 * In words, a string that is compared with a constant is not read at all: its bytes are compared.
 */

import { nullIn, valueReader } from "../codec/field-code.ts";
import { type FieldLayout, layoutOf } from "../codec/layout.ts";
import type { Fields, Table } from "../table.ts";

export interface Loads {
  /** The parameters of functions that read a row. */
  readonly parameters: string;
  /** An expression for a field that is not null: an enum's position, a timestamp's milliseconds. */
  value(name: string): string;
  isNull(name: string): string;
  /** The value as rows have it, or null. */
  shown(name: string): string;
  /** Whether a string or bytes are, or begin with, some bytes; undefined if they have to be read. */
  bytesAre(name: string, bytes: string, isPrefix: boolean): string | undefined;
  /** Whether a UUID is one of four words. */
  uuidIs(name: string, words: string): string | undefined;
}

const prop = (name: string): string => JSON.stringify(name);

/** The same fields, with timestamps as numbers. */
function withNumbers(fields: Fields): Fields {
  return Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      field.kind === "timestamp" ? { ...field, as: "number" as const } : field,
    ]),
  );
}

/** Reads the words of a row of the table. */
export function wordLoads(table: Table): Loads {
  const { fields } = layoutOf({ ...table, fields: withNumbers(table.fields) });
  const places = new Map(fields.map((place) => [place.name, place]));
  const place = (name: string): FieldLayout => places.get(name)!;
  const value = (name: string): string => {
    const at = place(name);
    if (at.field.kind === "enum") return `views.u8[at * 4 + ${at.offset}]`;
    return `(${valueReader(at)})`;
  };
  const isNull = (name: string): string => {
    const at = place(name);
    if (at.field.kind === "json")
      return `(readJsonText(views, at, at + ${at.offset >> 2}, words).text === "null")`;
    if (at.field.kind === "pointer") return `(${valueReader(at)} === null)`;
    return at.field.nullable ? `(${nullIn(at)})` : "false";
  };
  return {
    parameters: "views, at, words",
    value,
    isNull,
    shown: (name) => {
      const at = place(name);
      const isDate = at.field.kind === "timestamp" && table.fields[name].as !== "number";
      const shown =
        at.field.kind === "enum"
          ? `names[${prop(name)}][${value(name)}]`
          : isDate
            ? `new Date(${valueReader(at)})`
            : valueReader(at);
      return at.field.nullable ? `(${isNull(name)} ? null : ${shown})` : shown;
    },
    bytesAre: (name, bytes, isPrefix) => {
      const { variable, offset } = place(name);
      if (!variable) {
        return `${isPrefix ? "inlineStartsWith" : "inlineIs"}(views.u8, at * 4 + ${offset}, ${bytes})`;
      }
      const same = isPrefix ? "variableStartsWith" : "variableIs";
      return `${same}(views, at, at + ${offset >> 2}, ${bytes})`;
    },
    uuidIs: (name, words) => {
      const word = place(name).offset >> 2;
      const each = [0, 1, 2, 3].map((i) => `views.i32[at + ${word + i}] === ${words}[${i}]`);
      return `(${each.join(" && ")})`;
    },
  };
}

/** Reads row objects. */
export function rowLoads(table: Table): Loads {
  return {
    parameters: "row",
    value: (name) => {
      const { kind } = table.fields[name];
      if (kind === "enum") return `codes[${prop(name)}].get(row[${prop(name)}])`;
      return kind === "timestamp" ? `msIn(row[${prop(name)}])` : `row[${prop(name)}]`;
    },
    isNull: (name) => `(row[${prop(name)}] === null)`,
    shown: (name) => `row[${prop(name)}]`,
    bytesAre: () => undefined,
    uuidIs: () => undefined,
  };
}
