/**
 * Where the fields of a row lie. Fields are sorted by alignment, widest first, then by name, so
 * the same fields give the same layout in whatever order they were declared:
 *
 *   f64 u64 i64          8 bytes, aligned
 *   u53 i53 timestamp    8 bytes, aligned: doubles
 *   pointer              24 bytes
 *   u32 i32              4 bytes
 *   uuid                 16 bytes
 *   str bytes json       without a small max: byte offset and byte length in the row, 4 + 4 bytes
 *   u16                  2 bytes
 *   u8 bool enum         1 byte
 *   nulls                one bit for each nullable field, in their order here: 1 if it is null
 *   str(n) bytes(n)      up to n = 255: one byte of length, n bytes, zero behind the value
 *
 * The place of a field that is null is zero.
 * Values without a place of their own follow behind, in the order of their fields. A row is a
 * multiple of eight bytes.
 */

import { POINTER_WORDS } from "../../memory/pointer.ts";
import { type Field, isVariable } from "../fields.ts";
import type { Table } from "../table.ts";

const UUID_WORDS = 4;

export interface FieldLayout {
  readonly name: string;
  readonly field: Field;
  readonly variable: boolean;
  /** Byte offset in the row. */
  readonly offset: number;
  /** Its position among the fields of the layout. */
  readonly index: number;
  /** The byte and the bit that say that the field is null; no bit if it cannot be. */
  readonly nullByte: number;
  readonly nullBit: number;
}

export interface RowLayout {
  readonly fields: readonly FieldLayout[];
  /** Bytes before the values that have no place of their own; all of the row if there are none. */
  readonly fixedBytes: number;
  /** The same without what fills them up. */
  readonly usedBytes: number;
  readonly hasVariable: boolean;
}

function alignmentOf(field: Field): number {
  if (isVariable(field)) return 4;
  switch (field.kind) {
    case "f64":
    case "u64":
    case "i64":
    case "u53":
    case "i53":
    case "timestamp":
    case "pointer":
      return 8;
    case "u32":
    case "i32":
    case "uuid":
      return 4;
    case "u16":
      return 2;
    default:
      return 1;
  }
}

export function widthOf(field: Field): number {
  if (isVariable(field)) return 8;
  if (field.kind === "pointer") return 4 * POINTER_WORDS;
  if (field.kind === "uuid") return 4 * UUID_WORDS;
  if (field.kind === "str" || field.kind === "bytes") return 1 + field.max!;
  return alignmentOf(field);
}

/** Inline text comes after the single bytes: it has no alignment and no power-of-two width. */
function rankOf(field: Field): number {
  const text = (field.kind === "str" || field.kind === "bytes") && !isVariable(field);
  return text ? 0 : alignmentOf(field);
}

export function layoutOf(table: Table): RowLayout {
  const sorted = Object.entries(table.fields).sort(
    ([a, fieldA], [b, fieldB]) => rankOf(fieldB) - rankOf(fieldA) || (a < b ? -1 : 1),
  );
  const nullables = sorted.filter(([, field]) => field.nullable).map(([name]) => name);
  const before = sorted.filter(([, field]) => rankOf(field) > 0);
  const nullsAt = before.reduce((bytes, [, field]) => bytes + widthOf(field), 0);
  let offset = 0;
  const fields = sorted.map(([name, field], index) => {
    // The bits of the nulls lie before the texts, behind all else.
    if (index === before.length) offset += Math.ceil(nullables.length / 8);
    const position = nullables.indexOf(name);
    const nullByte = position < 0 ? 0 : nullsAt + (position >> 3);
    const nullBit = position < 0 ? 0 : 1 << (position & 7);
    const layout = { name, field, variable: isVariable(field), offset, index, nullByte, nullBit };
    offset += widthOf(field);
    return layout;
  });
  if (before.length === sorted.length) offset += Math.ceil(nullables.length / 8);
  return {
    fields,
    fixedBytes: Math.ceil(offset / 8) * 8,
    usedBytes: offset,
    hasVariable: fields.some(({ variable }) => variable),
  };
}
