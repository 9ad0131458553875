/**
 * The code that is generated for the key of a table. A key comes from the caller (`stageKey`), from
 * a row that Situ itself has made (`stageKeyOf`), or out of the scratch area, where `encode` has
 * left a row (`stageEncoded`): so the key that a row is filed under is the one that it holds,
 * whatever a getter would say when it is asked again.
 *
 * All parts of a caller's key are read before the first of them is staged, because reading one may
 * run the caller's code, and that may stage another key.
 *
 * Keys of tables are never null, but those of the hidden tables of an index can be. Such a part has a
 * word of its own before the value: 0 if it is null, and then nothing follows, else 1.
 */

import { MAX_KEY_BYTES } from "../../runtime/limits.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { check, convert, nullIn, whereOf } from "./field-code.ts";
import type { FieldLayout, RowLayout } from "./layout.ts";

/** The places of the key's fields. Of the layout: a codec for some fields need not have those. */
export function keyPlaces(table: Table, { fields }: RowLayout): FieldLayout[] {
  return table.key.map((name) => fields.find((field) => field.name === name)!);
}

/** Statements that refuse what is not a key, and read its parts into `key0`, `key1`, …. */
export function keyParts(table: Table, layout: RowLayout): string {
  const converted = conversions(table, layout);
  if (table.singleKey) return `let key0 = key; ${converted}`;
  const { length } = table.key;
  const label = JSON.stringify(`table ${table.name}`);
  return (
    `if (!Array.isArray(key) || key.length !== ${length}) ` +
    `wrongType(${label}, "a key of ${length} values", key); ` +
    table.key.map((_, index) => `let key${index} = key[${index}];`).join(" ") +
    converted
  );
}

/** The same for the key inside a row. */
export function rowKeyParts(table: Table, layout: RowLayout): string {
  const parts = table.key.map((name, index) => `let key${index} = row[${JSON.stringify(name)}];`);
  return parts.join(" ") + conversions(table, layout);
}

function conversions(table: Table, layout: RowLayout): string {
  return keyPlaces(table, layout)
    .map((place, index) => convert(table, place, `key${index}`))
    .join(" ");
}

/** Makes the statements that stage one part of a key. */
export type Stager = (table: Table, place: FieldLayout, value: string) => string;

/** Statements that check the parts of a key, and then stage each of them. */
export function stageParts(table: Table, layout: RowLayout, stage: Stager): string {
  const places = keyPlaces(table, layout);
  const each = (make: Stager): string =>
    places.map((place, index) => make(table, place, `key${index}`)).join(" ");
  return `let top = 0; ${each(check)} ${each(stage)}`;
}

/** The longest that a string or bytes of this field may be in a key. */
export function maxOf(field: Field): number {
  return Math.min(field.max ?? MAX_KEY_BYTES, MAX_KEY_BYTES);
}

/** Statements that stage one part of a key at the words of `stage`; most numbers take one word. */
export const stager: Stager = (table, place, value) => {
  const staged = valueStager(table, place, value);
  if (!place.field.nullable) return staged;
  return `if (${value} === null) stage.i32[top++] = 0; else { stage.i32[top++] = 1; ${staged} }`;
};

const ALIGN = "stage.i32[top] = 0; top = (top + 1) & ~1;";

function valueStager(table: Table, place: FieldLayout, value: string): string {
  const { field } = place;
  const where = whereOf(table, place);
  switch (field.kind) {
    case "str":
      return `top = stageText(stage, top, ${value}, ${maxOf(field)}, ${where});`;
    case "bytes":
      return `top = stageBytes(stage, top, ${value}, ${maxOf(field)}, ${where});`;
    case "i64":
    case "u64":
      return `${ALIGN} stage.i64[top >> 1] = BigInt.asIntN(64, ${value}); top += 2;`;
    case "u53":
    case "i53":
    case "timestamp":
      return `${ALIGN} stage.f64[top >> 1] = ${value} + 0; top += 2;`;
    case "uuid":
      return `writeUuid(stage.i32, top, ${value}, ${where}); top += 4;`;
    case "bool":
      return `stage.i32[top++] = ${value} ? 1 : 0;`;
    default:
      return `stage.i32[top++] = ${value};`;
  }
}

/** Where the bytes of a string or of bytes lie in the row in the scratch area, and how many. */
export function encodedText({ offset, variable }: FieldLayout): { from: string; length: string } {
  const word = offset >> 2;
  return variable
    ? { from: `scratch.i32[${word}]`, length: `scratch.i32[${word + 1}]` }
    : { from: `${offset + 1}`, length: `scratch.u8[${offset}]` };
}

/** The word of a number or boolean in the row in the scratch area. */
export function encodedWord({ field, offset }: FieldLayout): string {
  if (["u8", "bool", "enum"].includes(field.kind)) return `scratch.u8[${offset}]`;
  if (field.kind === "u16") return `scratch.u16[${offset >> 1}]`;
  return `scratch.i32[${offset >> 2}]`;
}

/** Whether a part of the key in the scratch area is null. */
export function encodedNull(place: FieldLayout): string {
  return nullIn(place, "scratch", "0");
}

/** Whether values of the field take two words, on an even one. */
export function isWide({ kind }: Field): boolean {
  return ["i64", "u64", "u53", "i53", "timestamp"].includes(kind);
}

/** The same as `stager` for a part of the key in the scratch area. */
export function encodedStager(table: Table, place: FieldLayout): string {
  const staged = encodedValueStager(table, place);
  if (!place.field.nullable) return staged;
  const isNull = encodedNull(place);
  return `if (${isNull}) stage.i32[top++] = 0; else { stage.i32[top++] = 1; ${staged} }`;
}

function encodedValueStager(table: Table, place: FieldLayout): string {
  const { field, offset } = place;
  const word = offset >> 2;
  if (field.kind === "str" || field.kind === "bytes") {
    const { from, length } = encodedText(place);
    const where = whereOf(table, place);
    return `top = stageEncodedText(stage, top, scratch, ${from}, ${length}, ${maxOf(field)}, ${where});`;
  }
  if (isWide(field)) {
    return `${ALIGN} ${copyWords(word, 2)}`;
  }
  if (field.kind === "uuid") return copyWords(word, 4);
  return `stage.i32[top++] = ${encodedWord(place)};`;
}

function copyWords(word: number, count: number): string {
  const copies = Array.from(
    { length: count },
    (_, i) => `stage.i32[top + ${i}] = scratch.i32[${word + i}];`,
  );
  return `${copies.join(" ")} top += ${count};`;
}

/** Statements that compare one part of the key with the row, moving along the stage. */
export function matcher(place: FieldLayout): string {
  const match = valueMatcher(place);
  if (!place.field.nullable) return match;
  return (
    `if ((${nullIn(place)}) !== (stage.i32[top++] === 0)) return false; ` +
    `if (stage.i32[top - 1] !== 0) { ${match} }`
  );
}

function valueMatcher({ field, offset, variable }: FieldLayout): string {
  const word = `at + ${offset >> 2}`;
  const byte = `at * 4 + ${offset}`;
  const advance = `top += 1 + ((stage.i32[top] + 3) >> 2);`;
  const same = (count: number): string => {
    const each = Array.from(
      { length: count },
      (_, i) => `views.i32[${word} + ${i}] !== stage.i32[top + ${i}]`,
    );
    return `if (${each.join(" || ")}) return false; top += ${count};`;
  };
  switch (field.kind) {
    case "str":
    case "bytes":
      if (variable) {
        return `if (!sameText(views, at, ${word}, stage, top)) return false; ${advance}`;
      }
      return (
        `if (views.u8[${byte}] !== stage.i32[top] || ` +
        `!sameBytes(views, ${byte} + 1, stage, top * 4 + 4, stage.i32[top])) return false; ${advance}`
      );
    case "i64":
    case "u64":
    case "u53":
    case "i53":
    case "timestamp":
      return `top = (top + 1) & ~1; ${same(2)}`;
    case "uuid":
      return same(4);
    case "u16":
      return `if (views.u16[at * 2 + ${offset >> 1}] !== stage.i32[top++]) return false;`;
    case "u32":
    case "i32":
      return `if (views.i32[${word}] !== stage.i32[top++]) return false;`;
    case "bool":
      return `if ((views.u8[${byte}] === 1) !== (stage.i32[top++] === 1)) return false;`;
    default:
      return `if (views.u8[${byte}] !== stage.i32[top++]) return false;`;
  }
}
