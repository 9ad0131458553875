/**
 * Gives an index another definition. The new one is built beside the one that is there, under a name of its own
 * (indexes/replaced-names.ts), and takes its place when it is complete:
 *
 *   byX            (next) byX
 *   ready          announced, building, ready     as every index that is built online
 *   (former) byX   byX
 *   retired        ready                          in one transaction; then the former one is dropped
 *
 * Those who know of the old state find rows by the old index, which the others still maintain while it is retired; those
 * who know of the new one find them by the new index, which has been maintained for long. If the rows do not allow the new
 * one, it is taken out, and nothing has changed. A process that dies leaves one of these states, and the
 * next one that migrates goes on from there.
 */

import { readTable, writeSchema } from "../catalogue.ts";
import { announceChange } from "../everyone-knows.ts";
import { buildIndexes } from "../indexes/build.ts";
import { type IndexDefinition, sameDefinition } from "../indexes/definition.ts";
import { formerName, nextName } from "../indexes/replaced-names.ts";
import { type CatalogueTable, TableStore } from "../indexes/table-store.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { type MigrationContext, transact } from "./context.ts";

/** Builds one index, of which nothing, a part or all may be there; false if the table is being migrated. */
export async function buildIndex(
  { executor, timeoutMs, source }: MigrationContext,
  table: CatalogueTable,
  index: IndexDefinition,
): Promise<boolean> {
  const declared = tableFromSchema({ ...table.schema, indexes: [index] });
  const opened = new TableStore(executor, declared, table);
  return await buildIndexes({ executor, table: opened, timeoutMs, source });
}

export async function replaceIndex(
  context: MigrationContext,
  table: CatalogueTable,
  index: IndexDefinition,
  drop: (context: MigrationContext, position: number, name: string) => Promise<void>,
): Promise<void> {
  const next = { ...index, name: nextName(index.name) };
  if (!(await buildIndex(context, table, next))) return;
  if (takePlace(context, table.position, next, index.name)) {
    announceChange(context.executor);
    await drop(context, table.position, formerName(index.name));
  }
}

/** False if the table, or the index, is no longer as it was planned. */
function takePlace(
  context: MigrationContext,
  position: number,
  next: IndexDefinition,
  name: string,
): boolean {
  return transact(context, `changing index ${name}`, (tx) => {
    const { schema } = readTable(tx, position);
    if (schema.successor !== undefined || schema.state !== undefined) return false;
    const built = schema.indexes.find((each) => each.name === next.name);
    if (built?.state !== "ready" || !sameDefinition(built, next)) return false;
    // Two that were begun by different programs must not both be called that.
    if (schema.indexes.some((each) => each.name === formerName(name))) return false;
    const indexes = schema.indexes.map((each) => {
      if (each === built) return { ...each, name };
      return each.name === name
        ? { ...each, name: formerName(name), state: "retired" as const }
        : each;
    });
    writeSchema(tx, position, { ...schema, indexes });
    return true;
  });
}
