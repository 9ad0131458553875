/**
 * The code that is generated for `update`. The caller's key and changes are read first, all of them,
 * into local variables; then they are checked and staged: the key for the search, the changes at
 * their places in the scratch area. `changed` says which they are:
 *
 *   0      the words of the row that they lie in: the first (16 bits), the one after the last
 *          (15 bits), and a bit that says that these words are all of one field, so that they can
 *          be copied from the scratch area as they are
 *   1…     a bit for each field, in the order of the layout
 *
 * `patch` copies these fields into a row. Nothing of the caller's is looked at after the first word
 * was staged, so a getter or proxy can do what it wants, also with the same transaction.
 */

import type { Table } from "../table.ts";
import { check, convert, expectedOf, lengthCheck, whereOf, writer } from "./field-code.ts";
import { type FieldLayout, type RowLayout, widthOf } from "./layout.ts";

/** Words of `changed` for a layout of so many fields. */
export function changedWords(fields: number): number {
  return 1 + Math.ceil(fields / 32);
}

const bitOf = (index: number): number => (1 << (index & 31)) | 0;
const maskOf = (index: number): string => `mask${index >> 5}`;

function masks({ fields }: RowLayout): number[] {
  return Array.from({ length: changedWords(fields.length) - 1 }, (_, i) => i);
}

/** Fields of a fixed size that may be changed, with their numbers. */
function patchable(table: Table, { fields }: RowLayout): [FieldLayout, number][] {
  return fields
    .map((place, index): [FieldLayout, number] => [place, index])
    .filter(([{ name, variable }]) => !variable && !table.key.includes(name));
}

const prop = (name: string): string => JSON.stringify(name);

function refuseNonObject(table: Table): string {
  const label = prop(`table ${table.name}`);
  return (
    `if (typeof changes !== "object" || changes === null) ` +
    `wrongType(${label}, "the fields to change", changes);`
  );
}

/** One case for each field of the key: it cannot be changed. */
function keyCases(table: Table, value: string): string {
  const label = prop(`table ${table.name}`);
  return table.key
    .map(
      (name) => `case ${prop(name)}: if (${value} !== undefined) keyField(${label}, name); break;`,
    )
    .join(" ");
}

/**
 * Statements that read the changes into `change0`, `change1`, …, and say in `mask0`, … which. A field
 * that is undefined is left as it is.
 */
export function changeParts(table: Table, layout: RowLayout): string {
  const label = prop(`table ${table.name}`);
  const all = patchable(table, layout);
  return `${refuseNonObject(table)}
    let ${masks(layout)
      .map((i) => `mask${i} = 0`)
      .join(", ")};
    ${all.map(([, index]) => `let change${index};`).join(" ")}
    for (const name in changes) {
      const value = changes[name];
      switch (name) {
        ${all
          .map(
            ([{ name }, index]) =>
              `case ${prop(name)}: if (value !== undefined) { change${index} = value; ` +
              `${maskOf(index)} |= ${bitOf(index)}; } break;`,
          )
          .join("\n        ")}
        ${keyCases(table, "value")}
        default: unknownField(${label}, name);
      }
    }`;
}

/** Statements that check these, and write them to the scratch area. */
export function stageChanges(table: Table, layout: RowLayout): string {
  const each = patchable(table, layout).map(([place, index]) => {
    const { field, offset, nullByte } = place;
    const value = `change${index}`;
    const nullWord = field.nullable ? nullByte >> 2 : offset >> 2;
    const first = Math.min(offset >> 2, nullWord);
    const last = Math.max(Math.ceil((offset + widthOf(field)) / 4), nullWord + 1);
    // A field that shares its words with others can only be copied into the old row.
    const whole = offset % 4 === 0 && widthOf(field) % 4 === 0 && !field.nullable;
    return (
      `if ((${maskOf(index)} & ${bitOf(index)}) !== 0) { ${convert(table, place, value)} ` +
      `${check(table, place, value)} ${writer(table, place, value)} ` +
      `count += ${whole ? 1 : 2}; ` +
      `if (${first} < from) from = ${first}; if (${last} > to) to = ${last}; }`
    );
  });
  return `const views = scratch, at = 0;
    let from = ${layout.fixedBytes / 4}, to = 0, count = 0;
    ${each.join("\n    ")}
    changed[0] = count === 0 ? 0 : (from << 16) | (to << 1) | (count === 1 ? 1 : 0);
    ${masks(layout)
      .map((i) => `changed[${i + 1}] = mask${i};`)
      .join(" ")}`;
}

/** Statements that copy the changed fields from the scratch area to the row at word `at`. */
export function patchCode(table: Table, layout: RowLayout): string {
  const each = patchable(table, layout).map(
    ([place, index]) => `if ((${maskOf(index)} & ${bitOf(index)}) !== 0) { ${copier(place)} }`,
  );
  return `const ${masks(layout)
    .map((i) => `mask${i} = changed[${i + 1}]`)
    .join(", ")};
    ${each.join("\n    ")}`;
}

function copier(place: FieldLayout): string {
  const { field, nullByte, nullBit } = place;
  if (!field.nullable) return valueCopier(place);
  const bits = `views.u8[at * 4 + ${nullByte}]`;
  return (
    `${valueCopier(place)} ` +
    `${bits} = (${bits} & ~${nullBit}) | (scratch.u8[${nullByte}] & ${nullBit});`
  );
}

function valueCopier({ field, offset }: FieldLayout): string {
  const width = widthOf(field);
  if (width === 1) return `views.u8[at * 4 + ${offset}] = scratch.u8[${offset}];`;
  if (width === 2) return `views.u16[at * 2 + ${offset >> 1}] = scratch.u16[${offset >> 1}];`;
  const isText = field.kind === "str" || field.kind === "bytes";
  if (isText) return `copyBytes(scratch, ${offset}, views, at * 4 + ${offset}, ${width});`;
  const copies: string[] = [];
  for (let word = offset >> 2; word < (offset + width) >> 2; word++) {
    copies.push(`views.i32[at + ${word}] = scratch.i32[${word}];`);
  }
  return copies.join(" ");
}

/** An expression for a copy of a changed value, as rows have it. Checks what `check` does not. */
function taken(table: Table, place: FieldLayout, value: string): string {
  const { field, index } = place;
  const where = whereOf(table, place);
  switch (field.kind) {
    case "json":
      return `new JsonText(jsonText(${value}, ${where}))`;
    case "bytes":
      return `new Uint8Array(${value})`;
    case "timestamp":
      return `timeOf(${value}, ${where})`;
    case "uuid":
      return `uuidText(${value}, ${where})`;
    case "enum":
      return `names${index}[codeOf(codes${index}, ${value}, ${where}, ${prop(expectedOf(field))})]`;
    default:
      return value;
  }
}

/**
 * The body of `takeChanges`: the changes as an object of Situ's own, checked. A timestamp is a number
 * there: `encode` takes both.
 */
export function takeCode(table: Table, layout: RowLayout): string {
  const label = prop(`table ${table.name}`);
  const cases = layout.fields
    .filter(({ name }) => !table.key.includes(name))
    .map((place) => {
      const { name, field } = place;
      const own = `own[${prop(name)}]`;
      const copied = taken(table, place, "value");
      return (
        `case ${prop(name)}: { if (value === undefined) break; ` +
        `${check(table, place, "value")} ${lengthCheck(table, place, "value")} ` +
        `${own} = ${field.nullable ? `value === null ? null : ${copied}` : copied}; break; }`
      );
    });
  return `${refuseNonObject(table)}
    const own = {};
    for (const name in changes) {
      const value = changes[name];
      switch (name) {
        ${cases.join("\n        ")}
        ${keyCases(table, "value")}
        default: unknownField(${label}, name);
      }
    }
    return own;`;
}
