/** What all kinds of indexes have in common: entries made from rows, and keys made from entries. */

import type { Transaction } from "../../engine/transaction.ts";
import type { Views } from "../../memory/views.ts";
import { isBytes } from "../../runtime/bytes.ts";
import { RowError, SituError } from "../../runtime/errors.ts";
import type { Cursor } from "../../stores/store.ts";
import { compile } from "../codec/compile.ts";
import type { Table } from "../table.ts";
import type { IndexDefinition, IndexState } from "./definition.ts";
import type { CheckedScan } from "./read-options.ts";
import { publicName } from "./replaced-names.ts";
import type { RowValues } from "./structure.ts";

export interface Index {
  readonly definition: IndexDefinition;
  readonly state: IndexState;
  /** Whether a row may be refused: by `check`, or because its values are taken. */
  readonly mayRefuse: boolean;
  /** Fails if the values of a row are too long to be indexed. */
  check(row: RowValues): void;
  /** The key of the row that has the same values as this one, if the index is unique. */
  holderOf(tx: Transaction, row: RowValues): unknown;
  /** Adds the row's entry. Of an index that is not ready, it may be there already. */
  add(tx: Transaction, row: RowValues): void;
  /** The same for a row that is encoded; undefined if an entry is more than a copy of some fields. */
  readonly addEncoded?: ((tx: Transaction, row: Views) => void) | undefined;
  /** Removes the row's entry. Of an index that is not ready, it may be missing. */
  remove(tx: Transaction, row: RowValues): void;
  /** The key of the row with these values, given as a caller writes them; unique indexes only. */
  find(tx: Transaction, values: unknown): unknown;
  /** Checks the bounds of a scan and says how to walk over the keys it finds. */
  walk(scan: CheckedScan): () => KeyWalk;
  maintain(): void;
}

/**
 * Walks over the keys of rows. Looking and moving on are two steps: the rows are read in between,
 * and if that fails the same keys come again, read anew.
 */
export interface KeyWalk {
  /** Replaces `keys` by the next ones, `most` of them at most; false if there are no more. */
  look(tx: Transaction, keys: unknown[], most: number): boolean;
  /** Moves on behind the keys that were looked at last. */
  moveOn(): void;
  /** For one who only counts: passes over the next ones and says how many; 0 at the end. */
  skip(tx: Transaction): number;
}

/** The rows of keys that an index leads to. */
export class IndexCursor<Row> implements Cursor<Row> {
  readonly #walk: KeyWalk;
  readonly #read: (tx: Transaction, key: unknown) => Row | undefined;
  readonly #keys: unknown[] = [];

  constructor(walk: KeyWalk, read: (tx: Transaction, key: unknown) => Row | undefined) {
    this.#walk = walk;
    this.#read = read;
  }

  next(tx: Transaction, rows: Row[], most: number): boolean {
    rows.length = 0;
    if (!this.#walk.look(tx, this.#keys, most)) return false;
    for (const key of this.#keys) {
      rows.push(this.#read(tx, key) ?? withoutRow(tx));
    }
    this.#walk.moveOn();
    return true;
  }

  skip(tx: Transaction): number {
    return this.#walk.skip(tx);
  }
}

/**
 * An entry without its row. In a transaction the two were read at different moments, and it cannot
 * commit; what a snapshot sees is of one moment.
 */
export function withoutRow(tx: Transaction): never {
  if (tx.snapshot === undefined || !tx.readsOnly) return tx.conflict(-1);
  throw new SituError(
    "SITU_CORRUPT",
    `an index entry leads to no row while working on ${tx.subject}: run verify`,
  );
}

export function project(row: RowValues, names: readonly string[]): RowValues {
  const values: RowValues = {};
  for (let i = 0; i < names.length; i++) values[names[i]] = row[names[i]];
  return values;
}

/** The same for one who does it with each row: objects of one shape, made by generated code. */
export function projector(names: readonly string[]): (row: RowValues) => RowValues {
  const fields = names.map((name) => JSON.stringify(name));
  const literal = fields.map((name) => `${name}: row[${name}]`).join(", ");
  const make = compile(`"use strict"; return (row) => ({ ${literal} });`, []);
  return make() as (row: RowValues) => RowValues;
}

/** The values of some fields as a key is written: one as it is, or a list of them. */
export function keyIn(row: RowValues, names: readonly string[], single: boolean): unknown {
  return single ? row[names[0]] : names.map((name) => row[name]);
}

/** Dates are the same as their milliseconds. */
export function sameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || a === null) return b instanceof Date && a === b.getTime();
  if (a instanceof Date) return sameValue(a.getTime(), b);
  return isBytes(a) && isBytes(b) && Buffer.compare(a, b) === 0;
}

export function sameValues(a: RowValues, b: RowValues, names: readonly string[]): boolean {
  for (let i = 0; i < names.length; i++) {
    if (!sameValue(a[names[i]], b[names[i]])) return false;
  }
  return true;
}

/** A value out of a row, for messages; two that are not the same read differently. */
export function shownValue(value: unknown): string {
  if (value instanceof Uint8Array) return `0x${Buffer.from(value).toString("hex")}`;
  if (Array.isArray(value)) return `[${value.map(shownValue).join(", ")}]`;
  return typeof value === "bigint" ? `${value}n` : JSON.stringify(value);
}

/** The error for two rows with the same values. */
export function notUnique(
  table: Table,
  definition: IndexDefinition,
  row: RowValues,
  holder: unknown,
): RowError {
  const { on } = definition;
  const name = publicName(definition.name);
  const values = on.map((name) => `${name} ${shownValue(row[name])}`).join(", ");
  const key = keyIn(row, table.key, table.singleKey);
  return new RowError(
    "SITU_UNIQUE",
    `unique index ${name} of table ${table.name}: row ${shownValue(key)} would have ` +
      `${values}, but row ${shownValue(holder)} has it`,
    { table: table.name, index: name, key: keyIn(row, on, on.length === 1) },
  );
}
