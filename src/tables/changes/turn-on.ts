/** Turns the recording of a table's changes on and off: see format.ts for the steps. */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly, runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { SCHEMA_GENERATION } from "../../memory/control.ts";
import { readSchema, writeSchema } from "../catalogue.ts";
import type { TableStore } from "../indexes/table-store.ts";
import { withFormat } from "./format.ts";
import { type WatchedChanges, watchedChanges } from "./watched-changes.ts";

/** What the catalogue says of a table's changes; undefined if none are recorded. */
export function changesOf(executor: Executor, position: number): WatchedChanges | undefined {
  const read = (tx: Transaction) => watchedChanges(readSchema(tx, position));
  return runReadOnly(executor, new Transaction(executor), read, undefined);
}

/**
 * Has changes recorded from now on, if they are not. Transactions that have begun in other processes may
 * not know of it: `everyoneKnows` waits for them.
 */
export function turnOnChanges(
  executor: Executor,
  { position, table }: TableStore,
  timeoutMs: number,
): WatchedChanges {
  const tx = new Transaction(executor);
  const changes = runSync(
    executor,
    tx,
    timeoutMs,
    () => {
      tx.subject = `table ${table.name}`;
      const schema = readSchema(tx, position);
      const known = watchedChanges(schema);
      if (known !== undefined) return known;
      const since = executor.epochs.current();
      const watched = withFormat({ ...schema, changes: { since, formats: [] } });
      writeSchema(tx, position, watched);
      return watchedChanges(watched)!;
    },
    undefined,
  );
  // Also if another has turned it on: it may have died before it told the others.
  Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
  return changes;
}

/**
 * Has changes no longer recorded. Whether they were. Recording that is turned on again later begins in a later epoch than
 * any change that was recorded before: so no position of before is taken for one of after.
 */
export function turnOffChanges(
  executor: Executor,
  { position, table }: TableStore,
  timeoutMs: number,
): boolean {
  const tx = new Transaction(executor);
  const wasOn = runSync(
    executor,
    tx,
    timeoutMs,
    () => {
      tx.subject = `table ${table.name}`;
      const { changes, ...schema } = readSchema(tx, position);
      if (changes !== undefined) writeSchema(tx, position, schema);
      return changes !== undefined;
    },
    undefined,
  );
  if (wasOn) executor.mark();
  Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
  return wasOn;
}
