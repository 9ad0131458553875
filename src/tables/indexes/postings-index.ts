/**
 * A hash index whose values may be shared by many rows, with every operation in constant time.
 * The rows with the same values are numbered from 0 on, in three hash tables:
 *
 *   counts    values             → how many rows
 *   entries   values, position   → the row's key
 *   places    values, row's key  → its position
 *
 * Removing a row moves the last one into its place. A walk goes from the last position down, so
 * that one who deletes the rows he meets misses none.
 */

import type { Executor } from "../../engine/executor.ts";
import type { Transaction } from "../../engine/transaction.ts";
import type { Store } from "../../stores/store.ts";
import type { Table } from "../table.ts";
import type { IndexDefinition, IndexState, StoredIndex } from "./definition.ts";
import { type Index, type KeyWalk, keyIn, project } from "./entries.ts";
import type { CheckedScan } from "./read-options.ts";
import {
  hiddenStructure,
  pick,
  positionName,
  type RowValues,
  restOfKey,
  type Structure,
} from "./structure.ts";

export function postingsStructures(
  table: Table,
  definition: IndexDefinition,
): Structure<RowValues, unknown>[] {
  const { on } = definition;
  const rest = restOfKey(table, definition);
  const name = positionName(table);
  const position = { [name]: { kind: "u32", max: undefined } } as const;
  const all = { ...pick(table.fields, [...on, ...rest]), ...position };
  const counts = { ...pick(table.fields, on), ...position };
  return [
    hiddenStructure(table, definition, counts, on),
    hiddenStructure(table, definition, all, [...on, name]),
    hiddenStructure(table, definition, all, [...on, ...rest]),
  ];
}

export class PostingsIndex implements Index {
  readonly definition: IndexDefinition;
  readonly state: IndexState;
  readonly mayRefuse = true;
  readonly #table: Table;
  readonly #structures: readonly Structure<RowValues, unknown>[];
  readonly #counts: Store<RowValues, unknown>;
  readonly #entries: Store<RowValues, unknown>;
  readonly #places: Store<RowValues, unknown>;
  readonly #position: string;
  /** The fields of an entry, but for the position. */
  readonly #names: readonly string[];
  readonly #placeKey: readonly string[];

  constructor(executor: Executor, table: Table, stored: StoredIndex) {
    this.definition = stored;
    this.state = stored.state;
    this.#table = table;
    this.#structures = postingsStructures(table, stored);
    const [counts, entries, places] = this.#structures.map((structure, index) =>
      structure.open(executor, stored.roots[index]),
    );
    this.#counts = counts;
    this.#entries = entries;
    this.#places = places;
    this.#position = positionName(table);
    this.#placeKey = this.#structures[2].table.key;
    this.#names = [...new Set([...stored.on, ...table.key])];
  }

  check(row: RowValues): void {
    this.#structures[2].checkKeyOf(project(row, this.#names));
  }

  holderOf(): undefined {
    return undefined;
  }

  add(tx: Transaction, row: RowValues): void {
    const entry = project(row, this.#names);
    const count = this.#countOf(tx, this.#valuesOf(row));
    entry[this.#position] = count;
    if (!this.#places.insert(tx, entry)) {
      if (this.state === "ready") tx.conflict(-1);
      return;
    }
    if (!this.#entries.insert(tx, entry)) tx.conflict(-1);
    this.#setCount(tx, row, count + 1);
  }

  remove(tx: Transaction, row: RowValues): void {
    const place = this.#places.read(tx, this.#placeOf(row));
    if (place === undefined) {
      if (this.state === "ready") tx.conflict(-1);
      return;
    }
    const position = place[this.#position] as number;
    const last = this.#countOf(tx, this.#valuesOf(row)) - 1;
    if (position < last) {
      const moved = this.#entries.read(tx, this.#entryKey(row, last));
      if (moved === undefined) tx.conflict(-1);
      const there = { ...moved, [this.#position]: position };
      this.#entries.put(tx, there);
      this.#places.put(tx, there);
    }
    const isWhole =
      this.#entries.remove(tx, this.#entryKey(row, last)) &&
      this.#places.remove(tx, this.#placeOf(row));
    // The parts belong to different moments, or the count is wrong: a retry will see.
    if (!isWhole || last < 0) tx.conflict(-1);
    this.#setCount(tx, row, last);
  }

  find(): undefined {
    return undefined;
  }

  walk({ bounds }: CheckedScan): () => KeyWalk {
    this.#structures[0].codec.stageKey(bounds.eq);
    const values = bounds.eq;
    const parts = this.definition.on.length === 1 ? [values] : [...(values as unknown[])];
    const keyAt = (tx: Transaction, position: number): unknown => {
      const entry = this.#entries.read(tx, [...parts, position]);
      if (entry === undefined) tx.conflict(-1);
      return keyIn(entry, this.#table.key, this.#table.singleKey);
    };
    return () => new PostingsWalk((tx) => this.#countOf(tx, values), keyAt);
  }

  maintain(): void {
    this.#counts.maintain();
    this.#entries.maintain();
    this.#places.maintain();
  }

  #valuesOf(row: RowValues): unknown {
    const { on } = this.definition;
    return keyIn(row, on, on.length === 1);
  }

  #placeOf(row: RowValues): unknown {
    return keyIn(row, this.#placeKey, this.#placeKey.length === 1);
  }

  #entryKey(row: RowValues, position: number): unknown {
    return [...this.definition.on.map((name) => row[name]), Math.max(position, 0)];
  }

  #countOf(tx: Transaction, values: unknown): number {
    return (this.#counts.read(tx, values)?.[this.#position] as number | undefined) ?? 0;
  }

  #setCount(tx: Transaction, row: RowValues, count: number): void {
    if (count === 0) {
      this.#counts.remove(tx, this.#valuesOf(row));
      return;
    }
    const values = project(row, this.definition.on);
    values[this.#position] = count;
    this.#counts.put(tx, values);
  }
}

class PostingsWalk implements KeyWalk {
  readonly #count: (tx: Transaction) => number;
  readonly #keyAt: (tx: Transaction, position: number) => unknown;
  /** Positions below this one are still to come; undefined before the first look. */
  #end: number | undefined;
  #next = 0;

  constructor(
    count: (tx: Transaction) => number,
    keyAt: (tx: Transaction, position: number) => unknown,
  ) {
    this.#count = count;
    this.#keyAt = keyAt;
  }

  look(tx: Transaction, keys: unknown[], most: number): boolean {
    keys.length = 0;
    // Others may have been removed since; what was moved down to fill their places comes again.
    const end = Math.min(this.#end ?? Number.POSITIVE_INFINITY, this.#count(tx));
    this.#next = Math.max(0, end - most);
    for (let position = end - 1; position >= this.#next; position--) {
      keys.push(this.#keyAt(tx, position));
    }
    return keys.length > 0;
  }

  moveOn(): void {
    this.#end = this.#next;
  }

  skip(tx: Transaction): number {
    const count =
      this.#end === 0 ? 0 : Math.min(this.#end ?? Number.POSITIVE_INFINITY, this.#count(tx));
    this.#end = 0;
    return count;
  }
}
