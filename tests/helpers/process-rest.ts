/** What must hold when all processes of a storm are gone; and whether indexes and rows agree. */

import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { ACTIVE, IDLE, STATUS } from "../../src/engine/slot.ts";
import type { Database, Table } from "../../src/index.ts";
import type { AnyCountOptions, AnyScanOptions } from "../../src/tables/indexes/read-options.ts";

/** At rest no slot has a commit under way or a transaction announced: so no lock has an owner. */
export async function slotProblems(path: string): Promise<string[]> {
  const problems: string[] = [];
  await attach(settingsOf({ path }), ({ executor }) => {
    const { control } = executor.memory;
    for (let slot = 0; slot < control.geometry.slots; slot++) {
      const at = control.slotAt(slot);
      const status = Atomics.load(control.i32, at + STATUS);
      const active = Atomics.load(control.i32, at + ACTIVE);
      if (status !== IDLE || active !== 0) {
        problems.push(`slot ${slot} at rest: status ${status}, active ${active}`);
      }
    }
    executor.close();
  });
  return problems;
}

/** Nobody else is listed, no snapshot is open any more, no old version is kept. */
export async function restProblems(db: Database, withinMs: number): Promise<string[]> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const { executors, snapshots } = db.stats();
    const others = executors.filter(({ pid }) => pid !== process.pid);
    if (others.length === 0 && snapshots.open === 0 && snapshots.versionBytes === 0) return [];
    if (performance.now() > deadline) {
      return [`after ${withinMs} ms: ${JSON.stringify({ others, snapshots })}`];
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

type Row = Record<string, unknown>;

/** What of a transaction, snapshot or database is needed here. */
export interface RowReader {
  scan(table: Table, options?: AnyScanOptions): Iterable<unknown>;
  count(table: Table, options?: AnyCountOptions): number;
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "bigint" ? `${part}n` : part,
  );
}

function sorted(rows: Iterable<unknown>): string[] {
  return Array.from(rows, shown).sort();
}

/**
 * Compares a table's indexes with its rows, both ways, as tests/helpers/indexes.ts does, for
 * programs that run outside of vitest. `gone` are values that no row has: nothing may be found.
 */
export function indexProblems(
  reader: RowReader,
  table: Table,
  gone: Readonly<Record<string, readonly unknown[]>> = {},
): string[] {
  const problems: string[] = [];
  const rows = [...reader.scan(table)] as Row[];
  const complain = (what: string): void => {
    if (problems.length < 10) problems.push(`${table.name}: ${what}`);
  };
  if (reader.count(table) !== rows.length) {
    complain(`${rows.length} rows, counted as ${reader.count(table)}`);
  }
  for (const { name, on, unique, kind } of table.indexes) {
    const groups = new Map<string, { values: unknown; rows: Row[] }>();
    for (const row of rows) {
      const values = on.length === 1 ? row[on[0]] : on.map((field) => row[field]);
      const group = groups.get(shown(values)) ?? { values, rows: [] };
      group.rows.push(row);
      groups.set(shown(values), group);
    }
    for (const values of gone[name] ?? []) {
      if (!groups.has(shown(values))) groups.set(shown(values), { values, rows: [] });
    }
    for (const { values, rows: expected } of groups.values()) {
      const what = `${name} ${shown(values)}`;
      const found = sorted(reader.scan(table, { index: name, eq: values }));
      if (found.join() !== sorted(expected).join()) {
        complain(`${what} leads to ${found.join()} and not to ${sorted(expected).join()}`);
      }
      const counted = reader.count(table, { index: name, eq: values });
      if (counted !== expected.length) complain(`${what}: counted ${counted}`);
      if (unique && expected.length > 1) complain(`${what} is there ${expected.length} times`);
    }
    if (kind !== "ordered") continue;
    const all = sorted(reader.scan(table, { index: name }));
    if (all.join() !== sorted(rows).join()) complain(`${name} has ${all.length} entries in all`);
    if (reader.count(table, { index: name }) !== rows.length) complain(`${name}: wrong count`);
  }
  return problems;
}
