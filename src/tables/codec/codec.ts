/**
 * Turns rows into words and back, with code generated for each table. A generated decoder builds
 * its object as one literal, so every row has the same hidden class and no field is looked up by
 * name (docs/decisions/0004). Names go into the code as JSON strings only.
 *
 * Reading a row, a key or changes of the caller's may run the caller's code: a getter, a proxy, a
 * `toJSON`. That code may use the same transaction, and with it the scratch area and the stages of
 * the codecs, of which there is one for the thread. So every function here reads all that it needs
 * into local variables, json as text, before it writes the first word; from then on until the store
 * has taken the words over, no code but Situ's own is run.
 */

import { isPointer, readPointer, writePointer } from "../../memory/pointer.ts";
import { Views } from "../../memory/views.ts";
import { isBytes } from "../../runtime/bytes.ts";
import { MAX_KEY_BYTES, MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import type { Table } from "../table.ts";
import { changedWords, changeParts, patchCode, stageChanges, takeCode } from "./change-code.ts";
import { compile } from "./compile.ts";
import * as conversions from "./conversions.ts";
import { check, convert, enumCode, reader, valueReader, writer } from "./field-code.ts";
import { hashWords, mix } from "./hash.ts";
import {
  encodedStager,
  keyParts,
  keyPlaces,
  matcher,
  rowKeyParts,
  stageParts,
  stager,
} from "./key-code.ts";
import { type FieldLayout, layoutOf, type RowLayout, widthOf } from "./layout.ts";
import { SHORT_TEXT_BYTES } from "./short-text.ts";
import * as values from "./values.ts";

/** One for the thread: a row is copied out of it before the next one is encoded. */
const scratch = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

/** Texts in fixed places that lie side by side: cheaper to read at once than one by one. */
interface TextRun {
  readonly offset: number;
  readonly bytes: number;
}

/** More than this is not read for the few texts that it may hold. */
const MAX_TEXT_RUN_BYTES = 4_096;
/** Up to here, clearing words one by one beats the call into native code. */
const CLEAR_LOOP_WORDS = 32;

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
function textReader(place: FieldLayout, run: TextRun): string {
  const { field, offset } = place;
  const start = offset - run.offset + 1;
  const length = `Math.min(views.u8[at * 4 + ${offset}], ${field.max})`;
  const cut = `texts.substring(${start}, ${start} + ${length})`;
  return reader(place, `isAscii ? ${cut} : ${valueReader(place)}`);
}

function clearCode(words: number): string {
  if (words > CLEAR_LOOP_WORDS) return `views.i32.fill(0, 0, ${words});`;
  return `for (let word = 0; word < ${words}; word++) views.i32[word] = 0;`;
}

type Generated<Row, Key> = Omit<RowCodec<Row, Key>, "fixedWords" | "scratch" | "changed">;

/** The source of a table's codec: a function body that returns its functions. */
export function codecSource(table: Table, layout: RowLayout): string {
  const byName = new Map(layout.fields.map((field) => [field.name, field]));
  const names = Object.keys(table.fields);
  const prop = (name: string): string => JSON.stringify(name);
  const places = keyPlaces(table, layout);
  const label = JSON.stringify(`table ${table.name}`);

  const run = textRunOf(layout, new Set(names));
  const readerOf = (place: FieldLayout): string => {
    const { field, variable } = place;
    const inRun = run !== undefined && field.kind === "str" && !variable;
    return inRun ? textReader(place, run) : reader(place);
  };
  const decoded = (readOne: (place: FieldLayout) => string): string => `${
    run === undefined
      ? ""
      : `const texts = readTexts(views, at * 4 + ${run.offset}, ${run.bytes}), isAscii = texts.length === ${run.bytes};`
  }
    return { ${names.map((name) => `${prop(name)}: ${readOne(byName.get(name)!)}`).join(", ")} };`;

  const [only] = places;
  const oneWord =
    places.length === 1 &&
    !only.field.nullable &&
    ["u8", "u16", "u32", "i32", "bool", "enum"].includes(only.field.kind);
  const hash = `${oneWord ? "mix(stage.i32[0] ^ seed)" : "hashWords(stage.i32, 0, top, seed)"} || 1`;
  const stage = stageParts(table, layout, stager);
  const eachField = (make: (place: FieldLayout, value: string) => string): string =>
    layout.fields.map((place, index) => make(place, `value${index}`)).join("\n    ");

  return `"use strict";
${enumCode(layout)}
return {
  stageKey(key, seed = 0) {
    ${keyParts(table, layout)}
    ${stage}
    return ${hash};
  },
  stageKeyOf(row, seed = 0) {
    ${rowKeyParts(table, layout)}
    ${stage}
    return ${hash};
  },
  stageEncoded(seed = 0) {
    let top = 0;
    ${places.map((place) => encodedStager(table, place)).join(" ")}
    return ${hash};
  },
  matches(views, at) {
    let top = 0;
    ${places.map(matcher).join("\n    ")}
    return true;
  },
  encode(row) {
    if (typeof row !== "object" || row === null) wrongType(${label}, "a row", row);
    let place = 0;
    for (const name in row) if (name !== names[place++] && !known.has(name)) unknownField(${label}, name);
    ${eachField((place, value) => `let ${value} = row[${prop(place.name)}]; ${convert(table, place, value)}`)}
    ${eachField((place, value) => check(table, place, value))}
    const views = scratch, at = 0;
    let end = ${layout.fixedBytes};
    ${clearCode(layout.fixedBytes / 4)}
    ${eachField((place, value) => writer(table, place, value))}
    return ${layout.hasVariable ? "finish(views, end)" : layout.fixedBytes / 4};
  },
  decode(views, at, words) {
    ${decoded(readerOf)}
  },
  decodeToMerge(views, at, words) {
    ${decoded((place) =>
      place.field.kind === "json"
        ? `readJsonText(views, at, at + ${place.offset >> 2}, words)`
        : readerOf(place),
    )}
  },
  takeChanges(changes) {
    ${takeCode(table, layout)}
  },
  merge(row, changes) {
    return { ...row, ...changes };
  },
  stageUpdate(key, changes, seed = 0) {
    ${keyParts(table, layout)}
    ${changeParts(table, layout)}
    ${stage}
    ${stageChanges(table, layout)}
    return ${hash};
  },
  patch(views, at) {
    ${patchCode(table, layout)}
  },
};`;
}

/** What every codec's code may use, and what is the codec's own. */
const LIBRARY = {
  ...values,
  ...conversions,
  mix,
  hashWords,
  isBytes,
  isPointer,
  readPointer,
  writePointer,
  scratch,
};
const SHARED = Object.values(LIBRARY);
const NAMES = [...Object.keys(LIBRARY), "changed", "stage", "known", "names"];

/** The codec of a table; or, with the layout of another, of some fields of that one's rows. */
export function codecOf<Row, Key>(
  table: Table<Row, Key>,
  layout: RowLayout = layoutOf(table),
): RowCodec<Row, Key> {
  const changed = new Int32Array(changedWords(layout.fields.length));
  const stage = new Views(new ArrayBuffer(table.key.length * (MAX_KEY_BYTES + 16) + 16));
  // Most rows have their fields in the order of the declaration; others are looked up.
  const names = Object.keys(table.fields);
  const known = new Set(names);
  const make = compile(codecSource(table, layout), NAMES);
  const generated = make(...SHARED, changed, stage, known, names) as Generated<Row, Key>;
  const fixedWords = layout.hasVariable ? 0 : layout.fixedBytes / 4;
  return { ...generated, fixedWords, scratch, changed };
}
