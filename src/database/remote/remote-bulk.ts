/**
 * Bulk operations across machines: the rows are scanned as `scan` does it, and the program runs here, on objects. All rows are
 * found before the first is changed, and every change is checked before the first is made, so an operation that
 * fails has changed nothing.
 *
 * Of a table on other machines nothing is counted: the path is chosen by what the condition says.
 */

import { programsOf } from "../../tables/bulk/cursor.ts";
import { pathsOf } from "../../tables/bulk/paths.ts";
import { type Choice, choose } from "../../tables/bulk/plan.ts";
import type { Taken } from "../../tables/bulk/runs.ts";
import { resultsOf } from "../../tables/expressions/accumulate.ts";
import { Failure } from "../../tables/expressions/library.ts";
import type { Program } from "../../tables/expressions/program.ts";
import type { Table } from "../../tables/table.ts";
import type { AsyncScan } from "../scan.ts";

/** What is needed of a transaction. */
export interface RemoteOperations {
  getMany(table: Table, keys: readonly unknown[]): Promise<unknown[]>;
  scan(table: Table, options: object): AsyncScan<unknown>;
  update(table: Table, key: unknown, changes: object): Promise<void>;
  delete(table: Table, key: unknown): Promise<boolean>;
  /** Fails if one of these cannot be stored. */
  check(table: Table, changes: object): void;
}

/** Rows that are accumulated at a time. */
const BATCH_ROWS = 256;
/** Changes that are issued at a time. */
const BATCH_CHANGES = 256;

/** How the rows of a program are found. */
export function remoteChoice(table: Table, program: Program, tellsAll: boolean): Choice {
  // Unique indexes are not kept across machines.
  const indexes = table.indexes.filter(({ unique }) => !unique);
  return choose(program, pathsOf(table, indexes, program.where), undefined, tellsAll);
}

async function* rowsOf(
  tx: RemoteOperations,
  table: Table,
  program: Program,
): AsyncGenerator<unknown, undefined> {
  const { path } = remoteChoice(table, program, false);
  if (path.by !== "index" && path.keys !== undefined) {
    for (const row of await tx.getMany(table, path.keys)) if (row !== undefined) yield row;
    return;
  }
  for (const bounds of path.ranges) {
    const options = path.index === undefined ? bounds : { index: path.index, ...bounds };
    yield* tx.scan(table, options);
  }
}

/** What the program makes of each row that matches. */
export async function* takenRows(
  tx: RemoteOperations,
  table: Table,
  program: Program,
): AsyncGenerator<unknown, undefined> {
  const { take } = programsOf(table).forRows(program);
  for await (const row of rowsOf(tx, table, program)) {
    const taken = take(row as object);
    if (taken instanceof Failure) throw taken.error;
    if (taken !== false) yield taken;
  }
}

/** Changes all rows that match. */
export async function changeRows(
  tx: RemoteOperations,
  table: Table,
  program: Program,
): Promise<{ matched: number; changed: number }> {
  let matched = 0;
  const found: Taken[] = [];
  for await (const taken of takenRows(tx, table, program)) {
    matched++;
    if (taken !== true) found.push(taken as Taken);
  }
  for (const { changes } of found) if (changes !== undefined) tx.check(table, changes);
  for (let from = 0; from < found.length; from += BATCH_CHANGES) {
    const some = found.slice(from, from + BATCH_CHANGES);
    await Promise.all(
      some.map(({ key, changes }) =>
        changes === undefined ? tx.delete(table, key) : tx.update(table, key, changes),
      ),
    );
  }
  return { matched, changed: found.length };
}

/** Aggregates all rows that match. */
export async function aggregateRows(
  tx: RemoteOperations,
  table: Table,
  program: Program,
): Promise<unknown> {
  const task = program.task as Program["task"] & { kind: "aggregate" };
  const { take, add, accumulated, context } = programsOf(table).forRows(program);
  let some: unknown[] = [];
  const accumulate = (): void => {
    add(some, some.length);
    some = [];
    context.next = 0;
  };
  for await (const row of rowsOf(tx, table, program)) {
    some.push(take(row as object));
    if (some.length === BATCH_ROWS) accumulate();
  }
  accumulate();
  const results = resultsOf(table, task, accumulated);
  return task.groupBy.length === 0 ? results[0] : results;
}
