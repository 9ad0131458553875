/**
 * The code that is generated for the key of a table. A key comes from the caller (`stageKey`), from
 * a row that Situ itself has made (`stageKeyOf`), or out of the scratch area, where `encode` has
 * left a row (`stageEncoded`): so the key that a row is filed under is the one that it holds,
 * whatever a getter would say when it is asked again.
 *
 * All parts of a caller's key are read before the first of them is staged, because reading one may
 * run the caller's code, and that may stage another key.
 */

import { MAX_KEY_BYTES } from "../../runtime/limits.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { check } from "./field-code.ts";
import type { FieldLayout, RowLayout } from "./layout.ts";

/** Statements that refuse what is not a key, and read its parts into `key0`, `key1`, …. */
export function keyParts(table: Table): string {
  if (table.singleKey) return "const key0 = key;";
  const { length } = table.key;
  const label = JSON.stringify(`table ${table.name}`);
  return (
    `if (!Array.isArray(key) || key.length !== ${length}) ` +
    `wrongType(${label}, "a key of ${length} values", key); ` +
    table.key.map((_, index) => `const key${index} = key[${index}];`).join(" ")
  );
}

/** The same for the key inside a row. */
export function rowKeyParts(table: Table): string {
  return table.key
    .map((name, index) => `const key${index} = row[${JSON.stringify(name)}];`)
    .join(" ");
}

/** Statements that check the parts of a key, and then stage each of them. */
export function stageParts(
  table: Table,
  { fields }: RowLayout,
  stager: (field: Field<unknown>, value: string, where: string) => string,
): string {
  // Of the layout: a codec for some fields of a table need not have those of the key.
  const places = table.key.map((name) => fields.find((field) => field.name === name)!);
  const each = (make: (place: FieldLayout, value: string) => string): string =>
    places.map((place, index) => make(place, `key${index}`)).join(" ");
  const checks = each(({ name, field }, value) => check(table, name, field, value));
  const stages = each(({ name, field }, value) =>
    stager(field, value, JSON.stringify(`${table.name}.${name}`)),
  );
  return `let top = 0; ${checks} ${stages}`;
}

/** The longest that a string or bytes of this field may be in a key. */
export function maxOf(field: Field<unknown>): number {
  return Math.min(field.max ?? MAX_KEY_BYTES, MAX_KEY_BYTES);
}

/** Statements that stage one part of a key at the words of `stage`; numbers take one word. */
export function stager(field: Field<unknown>, value: string, where: string): string {
  switch (field.kind) {
    case "str":
      return `top = stageText(stage, top, ${value}, ${maxOf(field)}, ${where});`;
    case "bytes":
      return `top = stageBytes(stage, top, ${value}, ${maxOf(field)}, ${where});`;
    case "i64":
    case "u64":
      return `stage.i32[top] = 0; top = (top + 1) & ~1; stage.i64[top >> 1] = BigInt.asIntN(64, ${value}); top += 2;`;
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
  if (field.kind === "u8" || field.kind === "bool") return `scratch.u8[${offset}]`;
  if (field.kind === "u16") return `scratch.u16[${offset >> 1}]`;
  return `scratch.i32[${offset >> 2}]`;
}

/** The same as `stager` for a part of the key in the scratch area. */
export function encodedStager(table: Table, place: FieldLayout): string {
  const { name, field, offset } = place;
  if (field.kind === "str" || field.kind === "bytes") {
    const { from, length } = encodedText(place);
    const where = JSON.stringify(`${table.name}.${name}`);
    return `top = stageEncodedText(stage, top, scratch, ${from}, ${length}, ${maxOf(field)}, ${where});`;
  }
  if (field.kind === "i64" || field.kind === "u64") {
    const word = offset >> 2;
    return (
      `stage.i32[top] = 0; top = (top + 1) & ~1; ` +
      `stage.i32[top] = scratch.i32[${word}]; stage.i32[top + 1] = scratch.i32[${word + 1}]; top += 2;`
    );
  }
  return `stage.i32[top++] = ${encodedWord(place)};`;
}
