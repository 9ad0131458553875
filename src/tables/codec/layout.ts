/**
 * Where the fields of a row lie. Fields are sorted by alignment, widest first, then by name, so
 * the same fields give the same layout in whatever order they were declared:
 *
 *   f64 u64 i64          8 bytes, aligned
 *   pointer              24 bytes
 *   u32 i32              4 bytes
 *   str bytes json       without a small max: byte offset and byte length in the row, 4 + 4 bytes
 *   u16, then u8 bool    2 and 1 bytes
 *   str(n) bytes(n)      up to n = 255: one byte of length, n bytes, zero behind the value
 *
 * Values without a place of their own follow behind, in the order of their fields. A row is a
 * multiple of eight bytes.
 */

import { POINTER_WORDS } from "../../memory/pointer.ts";
import { type Field, isVariable } from "../fields.ts";
import type { Table } from "../table.ts";

export interface FieldLayout {
  readonly name: string;
  readonly field: Field<unknown>;
  readonly variable: boolean;
  /** Byte offset in the row. */
  readonly offset: number;
}

export interface RowLayout {
  readonly fields: readonly FieldLayout[];
  /** Bytes before the values that have no place of their own; all of the row if there are none. */
  readonly fixedBytes: number;
  readonly hasVariable: boolean;
}

function alignmentOf(field: Field<unknown>): number {
  if (isVariable(field)) return 4;
  switch (field.kind) {
    case "f64":
    case "u64":
    case "i64":
    case "pointer":
      return 8;
    case "u32":
    case "i32":
      return 4;
    case "u16":
      return 2;
    default:
      return 1;
  }
}

export function widthOf(field: Field<unknown>): number {
  if (isVariable(field)) return 8;
  if (field.kind === "pointer") return 4 * POINTER_WORDS;
  if (field.kind === "str" || field.kind === "bytes") return 1 + field.max!;
  return alignmentOf(field);
}

/** Inline text comes after the single bytes: it has no alignment and no power-of-two width. */
function rankOf(field: Field<unknown>): number {
  const text = (field.kind === "str" || field.kind === "bytes") && !isVariable(field);
  return text ? 0 : alignmentOf(field);
}

export function layoutOf(table: Table): RowLayout {
  const sorted = Object.entries(table.fields).sort(
    ([a, fieldA], [b, fieldB]) => rankOf(fieldB) - rankOf(fieldA) || (a < b ? -1 : 1),
  );
  let offset = 0;
  const fields = sorted.map(([name, field]) => {
    const layout = { name, field, variable: isVariable(field), offset };
    offset += widthOf(field);
    return layout;
  });
  return {
    fields,
    fixedBytes: Math.ceil(offset / 8) * 8,
    hasVariable: fields.some(({ variable }) => variable),
  };
}
