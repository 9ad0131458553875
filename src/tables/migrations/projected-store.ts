/**
 * A table through a declaration that is not the store's own (declaration.ts says which ones are
 * harmless). Rows are shown with the declared fields only. A row that is inserted gets the store's
 * defaults for the others; one that is put over another keeps what that one has.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Cursor, KeyRange, Store } from "../../stores/store.ts";
import { ownKey } from "../copied-key.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues } from "../indexes/structure.ts";
import type { Table } from "../table.ts";
import { converted } from "./conversion.ts";
import { type KnownSchema, storedField } from "./declaration.ts";
import { loadValue } from "./stored-value.ts";

interface FieldPair {
  readonly declared: string;
  readonly stored: string;
  readonly declaredKind: string;
  readonly storedKind: string;
}

/** Translates rows between a declaration and the store. */
export class Projection {
  readonly #table: Table;
  readonly #stored: Table;
  readonly #pairs: readonly FieldPair[];
  readonly #byDeclared: ReadonlyMap<string, FieldPair>;
  readonly #defaults: RowValues = {};

  constructor(declared: Table, stored: Table, schema: KnownSchema) {
    this.#table = declared;
    this.#stored = stored;
    this.#pairs = Object.keys(declared.fields).map((name) => {
      const source = storedField(schema, name)!;
      return {
        declared: name,
        stored: source,
        declaredKind: declared.fields[name].kind,
        storedKind: stored.fields[source].kind,
      };
    });
    this.#byDeclared = new Map(this.#pairs.map((pair) => [pair.declared, pair]));
    const known = new Set(this.#pairs.map((pair) => pair.stored));
    const { defaults = {} } = schema;
    for (const name of Object.keys(stored.fields)) {
      if (known.has(name)) continue;
      this.#defaults[name] = Object.hasOwn(defaults, name) ? loadValue(defaults[name]) : null;
    }
  }

  toDeclared(row: RowValues): RowValues {
    const shown: RowValues = {};
    for (const { declared, stored } of this.#pairs) {
      shown[declared] = shownValueOf(this.#table, declared, row[stored]);
    }
    return shown;
  }

  /** A row to insert. */
  toStored(row: RowValues): RowValues {
    if (typeof row !== "object" || row === null) return row;
    return { ...this.#defaults, ...this.#take(row) };
  }

  /** What is not declared stays as it was before. */
  keep(row: RowValues, before: RowValues): void {
    for (const name of Object.keys(this.#defaults)) row[name] = before[name];
  }

  changesToStored(changes: Partial<RowValues>): Partial<RowValues> {
    return typeof changes === "object" && changes !== null ? this.#take(changes) : changes;
  }

  hasKey(row: RowValues): boolean {
    return this.#stored.key.every((name) => row?.[name] !== undefined);
  }

  keyOf(row: RowValues): unknown {
    return keyIn(row, this.#stored.key, this.#stored.singleKey);
  }

  #take(given: Partial<RowValues>): RowValues {
    const taken: RowValues = {};
    for (const name in given) {
      const pair = this.#byDeclared.get(name);
      if (pair === undefined) {
        throw new SituError("SITU_TYPE", `table ${this.#table.name}: there is no field ${name}`);
      }
      const value = given[name];
      taken[pair.stored] =
        pair.declaredKind === pair.storedKind
          ? value
          : converted(value, pair.storedKind, () => `field ${name} of table ${this.#table.name}`);
    }
    return taken;
  }
}

/** A value of the store as the declared field has it. */
export function shownValueOf(table: Table, name: string, value: unknown): unknown {
  const { kind, as } = table.fields[name] as { readonly kind: string; readonly as?: unknown };
  // The store does not know which of the two a program wants.
  if (value instanceof Date) return as === "number" ? value.getTime() : value;
  if (typeof value !== "number" && typeof value !== "bigint") return value;
  try {
    return converted(value, kind, () => "");
  } catch (cause) {
    throw new SituError(
      "SITU_SCHEMA",
      `field ${name} of table ${table.name} was widened in the store, and ${String(value)} ` +
        `does not fit the ${kind} that is declared here: use the new declaration`,
      { cause },
    );
  }
}

export class ProjectedStore implements Store<RowValues, unknown> {
  readonly #store: Store<RowValues, unknown>;
  readonly #projection: Projection;

  constructor(store: Store<RowValues, unknown>, projection: Projection) {
    this.#store = store;
    this.#projection = projection;
  }

  get(key: unknown): RowValues | undefined {
    const row = this.#store.get(key);
    return row && this.#projection.toDeclared(row);
  }

  read(tx: Transaction, key: unknown): RowValues | undefined {
    const row = this.#store.read(tx, key);
    return row && this.#projection.toDeclared(row);
  }

  touch(tx: Transaction, key: unknown): void {
    this.#store.touch(tx, key);
  }

  has(tx: Transaction, key: unknown): boolean {
    return this.#store.has(tx, key);
  }

  insert(tx: Transaction, row: RowValues): boolean {
    return this.#store.insert(tx, this.#projection.toStored(row));
  }

  put(tx: Transaction, given: RowValues): void {
    const row = this.#projection.toStored(given);
    // What is no key of a row is left to the codec to refuse.
    const before = this.#projection.hasKey(row)
      ? this.#store.read(tx, this.#projection.keyOf(row))
      : undefined;
    if (before !== undefined) this.#projection.keep(row, before);
    this.#store.put(tx, row);
  }

  update(tx: Transaction, key: unknown, changes: Partial<RowValues>): boolean {
    return this.#store.update(tx, key, this.#projection.changesToStored(changes));
  }

  remove(tx: Transaction, key: unknown): boolean {
    return this.#store.remove(tx, key);
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<RowValues> {
    return new ProjectedCursor(this.#store.cursor(range, reverse), this.#projection);
  }

  maintain(): void {
    this.#store.maintain();
  }
}

class ProjectedCursor implements Cursor<RowValues> {
  readonly #cursor: Cursor<RowValues>;
  readonly #projection: Projection;

  constructor(cursor: Cursor<RowValues>, projection: Projection) {
    this.#cursor = cursor;
    this.#projection = projection;
  }

  next(tx: Transaction, rows: RowValues[], most: number): boolean {
    if (!this.#cursor.next(tx, rows, most)) return false;
    for (let i = 0; i < rows.length; i++) rows[i] = this.#projection.toDeclared(rows[i]);
    return true;
  }

  skip(tx: Transaction): number {
    return this.#cursor.skip(tx);
  }
}

/**
 * A table whose successor has all rows, and is about to take its place. The successor is what counts:
 * some may know already that it is the table, and change nothing else. The table itself follows, for
 * those who do not know yet that they should not read from it.
 */
export class SwitchingStore implements Store<RowValues, unknown> {
  readonly #next: Store<RowValues, unknown>;
  readonly #old: Store<RowValues, unknown>;

  constructor(next: Store<RowValues, unknown>, old: Store<RowValues, unknown>) {
    this.#next = next;
    this.#old = old;
  }

  get(key: unknown): RowValues | undefined {
    return this.#next.get(key);
  }

  read(tx: Transaction, key: unknown): RowValues | undefined {
    return this.#next.read(tx, key);
  }

  touch(tx: Transaction, key: unknown): void {
    this.#next.touch(tx, key);
  }

  has(tx: Transaction, key: unknown): boolean {
    return this.#next.has(tx, key);
  }

  insert(tx: Transaction, given: RowValues): boolean {
    // Both read it, and the caller's getters may say something else each time.
    const row = ownRow(given);
    if (!this.#next.insert(tx, row)) return false;
    this.#follow(tx, () => this.#old.put(tx, row));
    return true;
  }

  put(tx: Transaction, given: RowValues): void {
    const row = ownRow(given);
    this.#next.put(tx, row);
    this.#follow(tx, () => this.#old.put(tx, row));
  }

  update(tx: Transaction, givenKey: unknown, given: Partial<RowValues>): boolean {
    const changes = ownRow(given);
    const key = ownKey(givenKey);
    if (!this.#next.update(tx, key, changes)) return false;
    this.#follow(tx, () => this.#old.update(tx, key, changes));
    return true;
  }

  remove(tx: Transaction, givenKey: unknown): boolean {
    const key = ownKey(givenKey);
    if (!this.#next.remove(tx, key)) return false;
    this.#follow(tx, () => this.#old.remove(tx, key));
    return true;
  }

  cursor(range: KeyRange, reverse: boolean): Cursor<RowValues> {
    return this.#next.cursor(range, reverse);
  }

  maintain(): void {
    this.#next.maintain();
    this.#old.maintain();
  }

  #follow(tx: Transaction, change: () => unknown): void {
    try {
      change();
    } catch (error) {
      tx.failHalfWay(error);
    }
  }
}

/** The same values in an object of Situ's own. What is no object is left for the codec to refuse. */
function ownRow<T extends Partial<RowValues>>(given: T): T {
  if (typeof given !== "object" || given === null) return given;
  const own: Partial<RowValues> = {};
  for (const name in given) own[name] = given[name];
  return own as T;
}

/** A table that cannot be used as it is declared: every call fails, and says why. */
export class RefusedStore implements Store<RowValues, unknown> {
  readonly #why: () => SituError;

  constructor(why: () => SituError) {
    this.#why = why;
  }

  get(): never {
    throw this.#why();
  }

  read(): never {
    throw this.#why();
  }

  touch(): void {}

  has(): never {
    throw this.#why();
  }

  insert(): never {
    throw this.#why();
  }

  put(): never {
    throw this.#why();
  }

  update(): never {
    throw this.#why();
  }

  remove(): never {
    throw this.#why();
  }

  cursor(): never {
    throw this.#why();
  }

  maintain(): void {}
}
