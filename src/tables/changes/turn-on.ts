/** Turns the recording of a table's changes on and off: see format.ts for the steps. */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly, runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { SCHEMA_GENERATION } from "../../memory/control.ts";
import { readSchema, writeSchema } from "../catalogue.ts";
import type { TableStore } from "../indexes/table-store.ts";
import { type StoredChanges, withFormat } from "./format.ts";

/** What the catalogue says of a table's changes; undefined if none are recorded. */
export function changesOf(executor: Executor, { position }: TableStore): StoredChanges | undefined {
  const read = (tx: Transaction) => readSchema(tx, position).changes;
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
): StoredChanges {
  const tx = new Transaction(executor);
  const changes = runSync(
    executor,
    tx,
    timeoutMs,
    () => {
      tx.subject = `table ${table.name}`;
      const schema = readSchema(tx, position);
      if (schema.changes !== undefined) return schema.changes;
      const since = executor.epochs.current();
      const watched = withFormat({ ...schema, changes: { since, formats: [] } });
      writeSchema(tx, position, watched);
      return watched.changes!;
    },
    undefined,
  );
  // Also if another has turned it on: it may have died before it told the others.
  Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
  return changes;
}

/** Has changes no longer recorded. Whether they were. */
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
  Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
  return wasOn;
}
