/** Compares the indexes of a table with its rows, both ways. */

import { expect } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { AnyCountOptions, AnyScanOptions } from "../../src/tables/indexes/read-options.ts";
import type { Table } from "../../src/tables/table.ts";

type Row = Record<string, unknown>;

/** What of a transaction, snapshot or database is needed here. */
export interface Reader {
  scan(table: Table, options?: AnyScanOptions): Iterable<unknown>;
  count(table: Table, options?: AnyCountOptions): number;
  get(table: Table, key: unknown, options: never): unknown;
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return `${part}n`;
    if (part instanceof Uint8Array) return `0x${Buffer.from(part).toString("hex")}`;
    return part;
  });
}

/**
 * Every row has exactly its entries and every entry its row: what each index finds is compared
 * with what the rows say, for all values that occur. Reads through one transaction, or `reader`.
 */
export function compareIndexes(db: Database, table: Table, reader?: Reader): number {
  if (reader === undefined) {
    return db.transactSync((tx) => compareIndexes(db, table, tx as unknown as Reader));
  }
  const rows = [...reader.scan(table)] as Row[];
  expect(reader.count(table), `rows of ${table.name}`).toBe(rows.length);
  for (const index of table.indexes) {
    const { name, on, unique, kind } = index;
    const valuesOf = (row: Row): unknown =>
      on.length === 1 ? row[on[0]] : on.map((field) => row[field]);
    const groups = new Map<string, { values: unknown; rows: string[] }>();
    for (const row of rows) {
      const values = valuesOf(row);
      const group = groups.get(shown(values)) ?? { values, rows: [] };
      group.rows.push(shown(row));
      groups.set(shown(values), group);
    }
    for (const { values, rows } of groups.values()) {
      const found = [...reader.scan(table, { index: name, eq: values })] as Row[];
      const what = `${table.name}.${name} ${shown(values)}`;
      expect(found.map(shown).sort(), what).toEqual([...rows].sort());
      expect(reader.count(table, { index: name, eq: values }), what).toBe(rows.length);
      if (!unique) continue;
      expect(rows.length, what).toBe(1);
      expect(shown(reader.get(table, values, { index: name } as never)), what).toBe(rows[0]);
    }
    // An ordered index can be walked as a whole: then nothing else is in it either.
    if (kind !== "ordered") continue;
    const all = [...reader.scan(table, { index: name })] as Row[];
    expect(all.map(shown).sort(), name).toEqual(rows.map(shown).sort());
    expect(reader.count(table, { index: name }), name).toBe(rows.length);
  }
  return rows.length;
}
