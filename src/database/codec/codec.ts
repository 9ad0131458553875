/**
 * Turns rows into words and back, with code generated for each table. A generated decoder builds
 * its object as one literal, so every row has the same hidden class and no field is looked up by
 * name (docs/decisions/0004). Names go into the code as JSON strings only.
 */

import { Pointer, readPointer, writePointer } from "../../memory/pointer.ts";
import { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_KEY_BYTES, MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { hashWords, mix } from "./hash.ts";
import { type FieldLayout, layoutOf, type RowLayout, widthOf } from "./layout.ts";
import * as values from "./values.ts";

/** One for the thread: a row is copied out of it before the next one is encoded. */
const scratch = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

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
      return `!(${value} instanceof Uint8Array)`;
    case "pointer":
      return `${value} !== null && !(${value} instanceof Pointer)`;
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

/** A statement that refuses a text that does not fit its fixed place. */
function lengthCheck(table: Table, { name, field }: FieldLayout, value: string): string {
  const where = JSON.stringify(`${table.name}.${name}`);
  if (field.kind === "str")
    return `checkLength(textBytes(${value}, ${where}), ${field.max}, ${where});`;
  if (field.kind === "bytes") return `checkLength(${value}.length, ${field.max}, ${where});`;
  return "";
}

/** Texts in fixed places that lie side by side: cheaper to read at once than one by one. */
interface TextRun {
  readonly offset: number;
  readonly bytes: number;
}

/** A text that short is built by characters, without a native call that one for all could save. */
const SHORT_TEXT_BYTES = 10;
/** More than this is not read for the few texts that it may hold. */
const MAX_TEXT_RUN_BYTES = 4_096;

/**
 * The fixed texts of the fields that are read, if there is something to gain. Such fields lie side by
 * side behind the others, sorted by name, bytes among them.
 */
function textRunOf({ fields }: RowLayout, names: ReadonlySet<string>): TextRun | undefined {
  const inline = fields.filter(
    ({ field, variable }) => !variable && (field.kind === "str" || field.kind === "bytes"),
  );
  const wanted = inline.filter(({ name }) => names.has(name));
  const long = wanted.filter(({ field }) => field.max! > SHORT_TEXT_BYTES);
  if (long.length < 2) return undefined;
  const { offset } = wanted[0];
  const last = wanted[wanted.length - 1];
  const bytes = last.offset + widthOf(last.field) - offset;
  const between = inline.filter((each) => each.offset >= offset && each.offset <= last.offset);
  if (bytes > MAX_TEXT_RUN_BYTES || between.some(({ field }) => field.kind === "bytes")) {
    return undefined;
  }
  return { offset, bytes };
}

/** An expression that cuts a text out of the run that was read. */
function textReader({ field, offset }: FieldLayout, run: TextRun, alone: string): string {
  const start = offset - run.offset + 1;
  const length = `Math.min(views.u8[at * 4 + ${offset}], ${field.max})`;
  return `isAscii ? texts.substring(${start}, ${start} + ${length}) : ${alone}`;
}

/** An expression that reads a field of the row at word `at`. */
function reader({ field, offset, variable }: FieldLayout): string {
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

/** The same as `writer` for a value that `checkChanges` has checked. */
function patcher(table: Table, place: FieldLayout, value: string): string {
  const { field, offset } = place;
  if (field.kind !== "str") return writer(table, place, value);
  return `patchInlineString(views, at * 4 + ${offset}, ${value}, ${field.max});`;
}

/** A statement that writes `value` to a field of the row at word `at`. */
function writer(
  table: Table,
  { name, field, offset, variable }: FieldLayout,
  value: string,
): string {
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  const where = JSON.stringify(`${table.name}.${name}`);
  if (variable) {
    const append = field.kind === "bytes" ? "appendBytes" : "appendString";
    const text = field.kind === "json" ? `jsonText(${value}, ${where})` : value;
    return `end = ${append}(views, ${word}, end, ${text}, ${field.max}, ${where});`;
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

/** Statements that stage one part of a key at the words of `stage`; numbers take one word. */
function stager(field: Field<unknown>, value: string, where: string): string {
  const max = Math.min(field.max ?? MAX_KEY_BYTES, MAX_KEY_BYTES);
  switch (field.kind) {
    case "str":
      return `top = stageText(stage, top, ${value}, ${max}, ${where});`;
    case "bytes":
      return `top = stageBytes(stage, top, ${value}, ${max}, ${where});`;
    case "i64":
    case "u64":
      return `stage.i32[top] = 0; top = (top + 1) & ~1; stage.i64[top >> 1] = BigInt.asIntN(64, ${value}); top += 2;`;
    case "bool":
      return `stage.i32[top++] = ${value} ? 1 : 0;`;
    default:
      return `stage.i32[top++] = ${value};`;
  }
}

/** Statements that compare one part of the key with the row, moving along the stage. */
function matcher(layout: FieldLayout): string {
  const { field, offset, variable } = layout;
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  const advance = `top += 1 + ((stage.i32[top] + 3) >> 2);`;
  if (field.kind === "str" || field.kind === "bytes") {
    if (variable) {
      return `if (!sameText(views, at, ${word}, stage, top)) return false; ${advance}`;
    }
    return (
      `if (views.u8[${byte}] !== stage.i32[top] || ` +
      `!sameBytes(views, ${byte} + 1, stage, top * 4 + 4, stage.i32[top])) return false; ${advance}`
    );
  }
  if (field.kind === "i64" || field.kind === "u64") {
    return (
      `top = (top + 1) & ~1; if (views.i32[${word}] !== stage.i32[top] || ` +
      `views.i32[${word} + 1] !== stage.i32[top + 1]) return false; top += 2;`
    );
  }
  const read = field.kind === "u32" ? `views.i32[${word}]` : reader(layout);
  const staged = field.kind === "bool" ? "(stage.i32[top++] === 1)" : "stage.i32[top++]";
  return `if (${read} !== ${staged}) return false;`;
}

interface Generated<Row, Key> {
  stageKey(key: Key, seed?: number): number;
  stageKeyOf(row: Row, seed?: number): number;
  matches(views: Views, at: number): boolean;
  encode(row: Row): number;
  decode(views: Views, at: number, words: number): Row;
  checkChanges(changes: Partial<Row>): number;
  patch(views: Views, at: number, changes: Partial<Row>): void;
  merge(row: Row, changes: Partial<Row>): Row;
}

/** The source of a table's codec: a function body that returns its functions. */
export function codecSource(table: Table, layout: RowLayout): string {
  const byName = new Map(layout.fields.map((field) => [field.name, field]));
  const names = Object.keys(table.fields);
  const prop = (name: string): string => JSON.stringify(name);
  const keyParts = table.key.map((name) => byName.get(name)!);
  const label = JSON.stringify(`table ${table.name}`);

  const run = textRunOf(layout, new Set(names));
  const readerOf = (place: FieldLayout): string => {
    const { field, variable } = place;
    const inRun = run !== undefined && field.kind === "str" && !variable;
    return inRun ? textReader(place, run, reader(place)) : reader(place);
  };

  const stage = (partOf: (name: string, index: number) => string): string => {
    const parts = table.key.map((name, index) => {
      const { field } = byName.get(name)!;
      const value = `key${index}`;
      const where = JSON.stringify(`${table.name}.${name}`);
      return (
        `const ${value} = ${partOf(name, index)};` +
        `${check(table, name, field, value)} ${stager(field, value, where)}`
      );
    });
    const [only] = keyParts;
    const oneWord =
      keyParts.length === 1 && ["u8", "u16", "u32", "i32", "bool"].includes(only.field.kind);
    const hash = oneWord ? "mix(stage.i32[0] ^ seed)" : "hashWords(stage.i32, 0, top, seed)";
    return `let top = 0; ${parts.join(" ")} return ${hash} || 1;`;
  };

  return `"use strict";
return {
  stageKey(key, seed = 0) {
    ${table.singleKey ? "" : `if (!Array.isArray(key) || key.length !== ${table.key.length}) wrongType(${label}, "a key of ${table.key.length} values", key);`}
    ${stage((_, index) => (table.singleKey ? "key" : `key[${index}]`))}
  },
  stageKeyOf(row, seed = 0) {
    ${stage((name) => `row[${prop(name)}]`)}
  },
  matches(views, at) {
    let top = 0;
    ${keyParts.map(matcher).join("\n    ")}
    return true;
  },
  encode(row) {
    if (typeof row !== "object" || row === null) wrongType(${label}, "a row", row);
    for (const name in row) if (!known.has(name)) unknownField(${label}, name);
    const views = scratch, at = 0;
    let end = ${layout.fixedBytes};
    views.i32.fill(0, 0, ${layout.fixedBytes / 4});
    ${layout.fields
      .map((field, index) => {
        const value = `value${index}`;
        return (
          `const ${value} = row[${prop(field.name)}];` +
          `${check(table, field.name, field.field, value)} ${writer(table, field, value)}`
        );
      })
      .join("\n    ")}
    return ${layout.hasVariable ? "finish(views, end)" : layout.fixedBytes / 4};
  },
  decode(views, at, words) {
    ${run === undefined ? "" : `const texts = readTexts(views, at * 4 + ${run.offset}, ${run.bytes}), isAscii = texts.length === ${run.bytes};`}
    return { ${names.map((name) => `${prop(name)}: ${readerOf(byName.get(name)!)}`).join(", ")} };
  },
  merge(row, changes) {
    if (typeof changes !== "object" || changes === null) wrongType(${label}, "the fields to change", changes);
    for (const name in changes) if (keys.has(name)) keyField(${label}, name);
    return { ...row, ...changes };
  },
  checkChanges(changes) {
    if (typeof changes !== "object" || changes === null) wrongType(${label}, "the fields to change", changes);
    const views = scratch, at = 0;
    let from = ${layout.fixedBytes / 4}, to = 0, count = 0;
    for (const name in changes) {
      const value = changes[name];
      switch (name) {
        ${layout.fields
          .map((place) => {
            const { name, field, variable, offset } = place;
            if (table.key.includes(name)) {
              return `case ${prop(name)}: keyField(${label}, name); break;`;
            }
            if (variable) return "";
            const first = offset >> 2;
            const last = Math.ceil((offset + widthOf(field)) / 4);
            const tooLong = lengthCheck(table, place, "value");
            // A field that shares its words with others can only be written over the old row.
            const whole = offset % 4 === 0 && widthOf(field) % 4 === 0;
            const write = whole ? patcher(table, place, "value") : "";
            return (
              `case ${prop(name)}: ${check(table, name, field, "value")} ${tooLong} ` +
              `${write} count += ${whole ? 1 : 2}; ` +
              `if (${first} < from) from = ${first}; if (${last} > to) to = ${last}; break;`
            );
          })
          .join("\n        ")}
        default: unknownField(${label}, name);
      }
    }
    if (count === 0) return 0;
    return (from << 16) | (to << 1) | (count === 1 ? 1 : 0);
  },
  patch(views, at, changes) {
    for (const name in changes) {
      const value = changes[name];
      switch (name) {
        ${layout.fields
          .filter(({ name, variable }) => !variable && !table.key.includes(name))
          .map((place) => `case ${prop(place.name)}: ${patcher(table, place, "value")} break;`)
          .join("\n        ")}
      }
    }
  },
};`;
}

/** The codec of a table; or, with the layout of another, of some fields of that one's rows. */
export function codecOf<Row, Key>(
  table: Table<Row, Key>,
  layout: RowLayout = layoutOf(table),
): RowCodec<Row, Key> {
  const library = {
    ...values,
    mix,
    hashWords,
    readPointer,
    writePointer,
    Pointer,
    scratch,
    stage: new Views(new ArrayBuffer(table.key.length * (MAX_KEY_BYTES + 16) + 16)),
    known: new Set(Object.keys(table.fields)),
    keys: new Set(table.key),
  };
  const make = compile(codecSource(table, layout), Object.keys(library));
  const generated = make(...Object.values(library)) as Generated<Row, Key>;
  const fixedWords = layout.hasVariable ? 0 : layout.fixedBytes / 4;
  return { ...generated, fixedWords, scratch };
}

/** Makes a function of generated source. */
export function compile(
  source: string,
  names: readonly string[],
): (...values: unknown[]) => unknown {
  try {
    return new Function(...names, source) as (...values: unknown[]) => unknown;
  } catch (cause) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "Situ generates code for each table and this process does not allow that: start it " +
        "without --disallow-code-generation-from-strings",
      { cause },
    );
  }
}
