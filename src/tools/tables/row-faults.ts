/**
 * Whether the words of a row can be what a codec has written: every length within its bounds, every
 * text well-formed, values without a place of their own one behind the other as they were encoded,
 * and zeroes where nothing is, or a null. Numbers may be any that the field takes.
 */

import { isUtf8 } from "node:buffer";
import { POINTER_WORDS } from "../../memory/pointer.ts";
import type { Views } from "../../memory/views.ts";
import { MAX_VALUE_BYTES } from "../../runtime/limits.ts";
import { type FieldLayout, layoutOf, widthOf } from "../../tables/codec/layout.ts";
import type { Table } from "../../tables/table.ts";

/** What is wrong with the row at a word, or undefined. */
export type RowFault = (views: Views, at: number, words: number) => string | undefined;

export function rowFaultOf(table: Table): RowFault {
  const { fields, fixedBytes, usedBytes, hasVariable } = layoutOf(table);
  const fixed = fields.filter(({ variable }) => !variable);
  const variable = fields.filter((field) => field.variable);
  const looks = fixed.flatMap((field) => nullLook(field) ?? fixedLook(field) ?? []);
  return (views, at, words) => {
    if (words * 4 < fixedBytes || (!hasVariable && words * 4 !== fixedBytes)) {
      return `its row has ${words * 4} bytes, its fields take ${fixedBytes}`;
    }
    for (let i = 0; i < looks.length; i++) {
      const fault = looks[i](views, at);
      if (fault !== undefined) return fault;
    }
    if (!isZero(views, at * 4 + usedBytes, at * 4 + fixedBytes)) return "its padding is not zero";
    return hasVariable ? variableFault(variable, fixedBytes, views, at, words) : undefined;
  };
}

type Look = (views: Views, at: number) => string | undefined;

function isNull({ nullByte, nullBit }: FieldLayout, { u8 }: Views, at: number): boolean {
  return (u8[at * 4 + nullByte] & nullBit) !== 0;
}

function nullLook(place: FieldLayout): Look | undefined {
  const { name, field, offset } = place;
  if (!field.nullable) return undefined;
  const look = fixedLook(place);
  return (views, at) => {
    if (!isNull(place, views, at)) return look?.(views, at);
    const start = at * 4 + offset;
    if (isZero(views, start, start + widthOf(field))) return undefined;
    return `field ${name} is null, and its place not zero`;
  };
}

function fixedLook({ name, field, offset }: FieldLayout): Look | undefined {
  const max = field.max ?? 0;
  switch (field.kind) {
    case "enum":
      return (views, at) => {
        const code = views.u8[at * 4 + offset];
        return code < field.values!.length ? undefined : `field ${name} has no value ${code}`;
      };
    case "u53":
    case "i53":
    case "timestamp":
      return (views, at) => {
        const value = views.f64[(at >> 1) + (offset >> 3)];
        const isWhole = Number.isSafeInteger(value) && (value >= 0 || field.kind !== "u53");
        return isWhole ? undefined : `field ${name} is a whole number of ${value}`;
      };
    case "bool":
      return (views, at) => {
        const value = views.u8[at * 4 + offset];
        return value <= 1 ? undefined : `field ${name} is a boolean of ${value}`;
      };
    case "pointer":
      return (views, at) =>
        views.i32[at + offset / 4 + POINTER_WORDS - 1] === 0
          ? undefined
          : `field ${name} is no pointer`;
    case "str":
    case "bytes":
      return (views, at) => {
        const start = at * 4 + offset;
        const length = views.u8[start];
        if (length > max) return `field ${name} has ${length} bytes, at most ${max} are allowed`;
        const end = start + 1 + length;
        if (field.kind === "str" && !isText(views, start + 1, end)) return notText(name);
        if (isZero(views, end, start + 1 + max)) return undefined;
        return `field ${name} is not zero behind its value`;
      };
    default:
      return undefined;
  }
}

function variableFault(
  fields: readonly FieldLayout[],
  fixedBytes: number,
  views: Views,
  at: number,
  words: number,
): string | undefined {
  let end = fixedBytes;
  for (let i = 0; i < fields.length; i++) {
    const { name, field, offset } = fields[i];
    if (field.nullable && isNull(fields[i], views, at)) {
      if (isZero(views, at * 4 + offset, at * 4 + offset + 8)) continue;
      return `field ${name} is null, and its place not zero`;
    }
    const from = views.i32[at + offset / 4];
    const length = views.i32[at + offset / 4 + 1];
    if (from !== end) return `field ${name} begins at byte ${from} of its row, not at ${end}`;
    const most = field.max ?? MAX_VALUE_BYTES;
    if (length < 0 || length > most || from + length > words * 4) {
      return `field ${name} has ${length} bytes, in a row of ${words * 4}`;
    }
    end = from + length;
    if (field.kind === "bytes") continue;
    if (!isText(views, at * 4 + from, at * 4 + end)) return notText(name);
    if (field.kind === "json" && !isJson(views.bytes.toString("utf8", at * 4 + from, at * 4 + end)))
      return `field ${name} is not JSON`;
  }
  if (Math.ceil(end / 8) * 2 !== words) {
    return `its row has ${words * 4} bytes, its fields end at ${end}`;
  }
  return isZero(views, at * 4 + end, (at + words) * 4) ? undefined : "its padding is not zero";
}

function notText(name: string): string {
  return `field ${name} is not UTF-8`;
}

function isText({ u8 }: Views, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (u8[i] >= 0x80) return isUtf8(u8.subarray(i, to));
  return true;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isZero({ u8 }: Views, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (u8[i] !== 0) return false;
  return true;
}
