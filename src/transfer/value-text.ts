/**
 * The values of fields as text: in JSON lines and in CSV. Whatever `dump` writes, `load` reads back to the
 * same value.
 *
 *   kind           JSON                                     CSV
 *   u8 … i53, f64  number; "NaN", "Infinity", "-0" …        the same without quotes
 *   u64, i64       string of digits: JSON's numbers end     digits
 *                  at 2^53
 *   bool           true, false                              true, false
 *   str            string                                   text
 *   bytes          base64                                   base64
 *   json           as it is                                 JSON text
 *   timestamp      as Date.toISOString has it; milliseconds are read, too
 *   uuid, enum     string                                   text
 *   null           null                                     nothing, without quotes
 *
 * A pointer means nothing outside of its store, so tables that have one cannot be dumped.
 */

import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";
import type { FieldKind } from "../tables/fields.ts";
import type { Table } from "../tables/table.ts";

/** How the values of one kind of field are written and read. */
interface KindText {
  /** As part of a JSON line. */
  toJson(value: never): string;
  /** From what JSON.parse made of it. What makes no sense passes: the table refuses it with a reason. */
  fromJson(value: unknown): unknown;
  /** In CSV, before quoting. */
  toCsv(value: never): string;
  fromCsv(text: string): unknown;
}

const plainNumber: KindText = {
  toJson: (value: number) => `${value}`,
  fromJson: asItIs,
  toCsv: (value: number) => `${value}`,
  fromCsv: numberOf,
};

const double: KindText = {
  toJson: (value: number) =>
    Number.isFinite(value) && !Object.is(value, -0) ? `${value}` : `"${shownDouble(value)}"`,
  fromJson: (value) => (typeof value === "string" ? numberOf(value) : value),
  toCsv: shownDouble,
  fromCsv: numberOf,
};

const big: KindText = {
  toJson: (value: bigint) => `"${value}"`,
  fromJson: (value) =>
    typeof value === "string" || Number.isSafeInteger(value)
      ? bigOf(value as string | number)
      : value,
  toCsv: (value: bigint) => `${value}`,
  fromCsv: bigOf,
};

const text: KindText = {
  toJson: (value: string) => JSON.stringify(value),
  fromJson: asItIs,
  toCsv: (value: string) => value,
  fromCsv: (value) => value,
};

const KIND_TEXTS: Readonly<Record<Exclude<FieldKind, "pointer">, KindText>> = {
  u8: plainNumber,
  u16: plainNumber,
  u32: plainNumber,
  i32: plainNumber,
  u53: plainNumber,
  i53: plainNumber,
  f64: double,
  bool: {
    toJson: (value: boolean) => `${value}`,
    fromJson: asItIs,
    toCsv: (value: boolean) => `${value}`,
    fromCsv: (value) => (value === "true" ? true : value === "false" ? false : value),
  },
  u64: big,
  i64: big,
  str: text,
  uuid: text,
  enum: text,
  timestamp: {
    toJson: (value: Date | number) => `"${new Date(value).toISOString()}"`,
    fromJson: (value) => (typeof value === "string" ? dateOf(value) : value),
    toCsv: (value: Date | number) => new Date(value).toISOString(),
    fromCsv: dateOf,
  },
  bytes: {
    toJson: (value: Uint8Array) => `"${base64Of(value)}"`,
    fromJson: (value) => (typeof value === "string" ? bytesOf(value) : value),
    toCsv: base64Of,
    fromCsv: bytesOf,
  },
  json: {
    toJson: (value: unknown) => JSON.stringify(value),
    fromJson: asItIs,
    toCsv: (value: unknown) => JSON.stringify(value),
    fromCsv: (value) => JSON.parse(value) as unknown,
  },
};

/** A field of a table with its text. */
export interface FieldText extends KindText {
  readonly name: string;
}

/** The fields of a table, those of the key first. */
export function fieldTexts({ name: table, key, fields }: Table): FieldText[] {
  const names = [...key, ...Object.keys(fields).filter((each) => !key.includes(each))];
  return names.map((name) => {
    const { kind, nullable } = fields[name];
    if (kind === "pointer") {
      throw new SituError(
        "SITU_UNSUPPORTED",
        `table ${table} cannot be dumped or loaded: the pointers in its field ${name} mean nothing ` +
          `outside of their store`,
      );
    }
    const text = KIND_TEXTS[kind];
    return nullable ? { name, ...orNull(text) } : { name, ...text };
  });
}

function orNull(text: KindText): KindText {
  return {
    ...text,
    toJson: (value) => (value === null ? "null" : text.toJson(value)),
    fromJson:
      text.fromJson === asItIs ? asItIs : (value) => (value === null ? null : text.fromJson(value)),
  };
}

/** For fields whose values JSON has a type for. */
export function asItIs(value: unknown): unknown {
  return value;
}

function shownDouble(value: number): string {
  return Object.is(value, -0) ? "-0" : `${value}`;
}

const NUMBER = /^(?:NaN|-?Infinity|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/;

/**
 * Decimal numbers only: what else `Number` takes, such as spaces or 0x10, is a mistake in a file. The text itself if it
 * is no number: the table then says what it expects.
 */
function numberOf(value: string): number | string {
  return NUMBER.test(value) ? Number(value) : value;
}

function bigOf(value: string | number): bigint | string {
  if (typeof value === "string" && !/^-?\d{1,20}$/.test(value)) return value;
  return BigInt(value);
}

/** Milliseconds, or what Date understands; the text itself otherwise, for the table to refuse. */
function dateOf(value: string): Date | string {
  const date = new Date(/^-?\d+$/.test(value) ? Number(value) : value);
  return Number.isNaN(date.getTime()) ? value : date;
}

function base64Of(value: Uint8Array): string {
  return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
}

/** Node skips what is no base64; here that is a mistake. */
function bytesOf(value: string): Uint8Array {
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(value)) {
    throw new SituError("SITU_TYPE", `bytes are written in base64, and ${show(value)} is not`);
  }
  return Buffer.from(value, "base64");
}
