/**
 * Copies fields from one encoded row to another that has some of its fields, in a layout of its own: an index entry is
 * made from the words of its row, without values, objects and checks in between.
 */

import type { Views } from "../../memory/views.ts";
import { isVariable } from "../fields.ts";
import { compile } from "./compile.ts";
import { type FieldLayout, type RowLayout, widthOf } from "./layout.ts";

/** Fills the words of an encoded row at the beginning of `to` from the one at the beginning of `from`. */
export type FieldCopy = (from: Views, to: Views) => void;

/** Undefined if some field has no place of its own, or may be null: its bit would have to move. */
export function fieldCopyOf(from: RowLayout, to: RowLayout): FieldCopy | undefined {
  const places = new Map(from.fields.map((place) => [place.name, place]));
  const copies: string[] = [];
  for (const place of to.fields) {
    const source = places.get(place.name);
    if (source === undefined || place.field.nullable || isVariable(place.field)) return undefined;
    copies.push(copyOf(source, place));
  }
  // What fills the row up is zero.
  const zeroes: string[] = [];
  for (let word = to.usedBytes >> 2; word < to.fixedBytes >> 2; word++) {
    zeroes.push(`to.i32[${word}] = 0;`);
  }
  const source = `"use strict"; return (from, to) => { ${[...zeroes, ...copies].join(" ")} };`;
  return compile(source, [])() as FieldCopy;
}

function copyOf(from: FieldLayout, to: FieldLayout): string {
  const width = widthOf(to.field);
  const both = from.offset | to.offset | width;
  if ((both & 3) === 0) return copied("i32", from.offset >> 2, to.offset >> 2, width >> 2);
  if ((both & 1) === 0) return copied("u16", from.offset >> 1, to.offset >> 1, width >> 1);
  return copied("u8", from.offset, to.offset, width);
}

/** A statement for each element of a number, a loop for those of a text. */
function copied(view: string, from: number, to: number, count: number): string {
  if (count > 4) {
    return `for (let i = 0; i < ${count}; i++) to.${view}[${to} + i] = from.${view}[${from} + i];`;
  }
  const each = [...Array(count).keys()];
  return each.map((i) => `to.${view}[${to + i}] = from.${view}[${from + i}];`).join(" ");
}
