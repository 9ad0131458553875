/** Carries a migration out: one action after the other, each planned from what the catalogue says then. */

import { SituError } from "../../runtime/errors.ts";
import { uniqueId } from "../../runtime/random.ts";
import { readSchemas, readTable, writeSchema } from "../catalogue.ts";
import { announceChange, everyoneKnows } from "../everyone-knows.ts";
import type { CatalogueTable } from "../indexes/table-store.ts";
import { BACKUP_LOG } from "../own-tables.ts";
import type { StoredSchema } from "../schema.ts";
import type { Table } from "../table.ts";
import type { Action } from "./action.ts";
import { type MigrationContext, transact } from "./context.ts";
import { announceSuccessor, countRows, finishSuccessor } from "./copy.ts";
import { ownerIn } from "./owner.ts";
import { isUnfinished, planOf } from "./plan.ts";
import { buildIndex, replaceIndex } from "./replace-index.ts";
import type { MigrationStep } from "./steps.ts";
import type { Remains } from "./stored.ts";

/** What is to be done, and whether rows are copied for it. */
export interface MigrationPlan {
  readonly actions: readonly {
    readonly table: string;
    /** What changes, one line for each change. */
    readonly changes: readonly string[];
    /** Whether the rows of the table are copied, which takes memory for both copies. */
    readonly copies: boolean;
  }[];
  /** The same as text; empty if nothing is to be done. */
  toString(): string;
}

export function planMigration(
  { executor }: MigrationContext,
  tables: readonly Table[],
  steps: readonly MigrationStep[],
): MigrationPlan {
  const found = readSchemas(executor);
  const planned = planOf(found, tables, steps);
  if (planned.length > 0) refuseNode(found);
  const actions = planned.map(({ table, lines, what }) => ({
    table: table.schema.name,
    changes: lines,
    copies: what === "copy" || (what === "finish" && table.schema.successor !== undefined),
  }));
  const text = actions
    .map(({ changes, copies }) => changes.join("\n") + (copies ? "\n  (copies all rows)" : ""))
    .join("\n");
  return { actions, toString: () => text };
}

/** Brings the store's tables to the declared ones, and carries the steps out. */
export async function runMigration(
  context: MigrationContext,
  tables: readonly Table[],
  steps: readonly MigrationStep[],
): Promise<void> {
  for (;;) {
    context.check();
    const found = readSchemas(context.executor);
    const [action] = planOf(found, tables, steps);
    if (action === undefined) return;
    refuseNode(found);
    await perform(context, action);
  }
}

/** Finishes what others have begun and left, or are doing now. */
export async function finishMigrations(
  context: MigrationContext,
  positions: readonly number[],
): Promise<void> {
  for (const position of positions) {
    for (;;) {
      const table = readSchemas(context.executor)[position];
      if (!isUnfinished(table)) break;
      await finish(context, table);
    }
  }
}

async function perform(context: MigrationContext, action: Action): Promise<void> {
  const { table } = action;
  switch (action.what) {
    case "finish":
      return await finish(context, table);
    case "copy":
      if (table.schema.indexes.some(({ state }) => state !== "ready")) {
        return await buildAll(context, table);
      }
      if (announceSuccessor(context, table, action.target, await countRows(context, table))) {
        await finishSuccessor(context, table.position);
      }
      return;
    case "build index":
      await buildIndex(context, table, action.index);
      return;
    case "replace index":
      return await replaceIndex(context, table, action.index, dropIndex);
    case "drop index":
      return await dropIndex(context, table.position, action.index);
    case "drop table":
      return await dropTable(context, table.position);
    case "rename table":
      return rename(context, table, action.to);
  }
}

async function finish(context: MigrationContext, table: CatalogueTable): Promise<void> {
  const { schema, position } = table;
  if (schema.successor !== undefined) return await finishSuccessor(context, position);
  if (schema.state === "retired") return await dropTable(context, position);
  const retired = schema.indexes.find(({ state }) => state === "retired");
  if (retired !== undefined) await dropIndex(context, position, retired.name);
}

/** Builds the indexes that somebody has begun to build: the successor is to have what they promise. */
async function buildAll(context: MigrationContext, table: CatalogueTable): Promise<void> {
  for (const index of table.schema.indexes) await buildIndex(context, table, index);
}

async function dropIndex(context: MigrationContext, position: number, name: string): Promise<void> {
  const { executor, timeoutMs } = context;
  const subject = `dropping index ${name}`;
  const change = (make: (schema: StoredSchema) => StoredSchema): void =>
    transact(context, subject, (tx) => {
      const { schema } = readTable(tx, position);
      if (!schema.indexes.some((each) => each.name === name)) return;
      if (schema.successor === undefined) writeSchema(tx, position, make(schema));
    });
  change((schema) => ({
    ...schema,
    indexes: schema.indexes.map((each) =>
      each.name === name ? { ...each, state: "retired" } : each,
    ),
  }));
  await everyoneKnows(executor, timeoutMs, subject);
  change((schema) => {
    const dropped = schema.indexes.filter((each) => each.name === name);
    if (dropped[0].state !== "retired") return schema;
    return {
      ...schema,
      indexes: schema.indexes.filter((each) => each.name !== name),
      remains: [...(schema.remains ?? []), remainsOf(context, { ...schema, indexes: dropped })],
    };
  });
  announceChange(executor);
}

async function dropTable(context: MigrationContext, position: number): Promise<void> {
  const { executor, timeoutMs } = context;
  const subject = "dropping a table";
  transact(context, subject, (tx) => {
    const { schema } = readTable(tx, position);
    if (schema.state !== undefined) return;
    writeSchema(tx, position, { ...schema, state: "retired" });
  });
  await everyoneKnows(executor, timeoutMs, subject);
  transact(context, subject, (tx) => {
    const { schema, root } = readTable(tx, position);
    if (schema.state !== "retired") return;
    const all = { ...schema, indexes: [...schema.indexes, ...schema.leftovers] };
    const remains = [...(schema.remains ?? []), { ...remainsOf(context, all), root }];
    const { successor: _, ...rest } = schema;
    const gone = { indexes: [], leftovers: [], state: "dropped" as const, remains };
    writeSchema(tx, position, { ...rest, ...gone });
  });
  announceChange(executor);
}

function remainsOf(
  { executor }: MigrationContext,
  { name, fields, key, ordered, layout, indexes }: StoredSchema,
): Remains {
  return {
    build: uniqueId(),
    owner: ownerIn(executor),
    schema: {
      name,
      fields,
      key,
      ordered,
      ...(layout === undefined ? {} : { layout }),
      indexes,
    },
  };
}

function rename(context: MigrationContext, planned: CatalogueTable, to: string): void {
  const from = planned.schema.name;
  transact(context, `renaming table ${from}`, (tx) => {
    const { schema } = readTable(tx, planned.position);
    if (schema.name !== from) return;
    const formerNames = [...(schema.formerNames ?? []).filter((name) => name !== to), from];
    writeSchema(tx, planned.position, { ...schema, name: to, formerNames });
  });
  announceChange(context.executor);
}

/** The nodes of a cluster would not learn of it. */
function refuseNode(tables: readonly CatalogueTable[]): void {
  if (!tables.some(({ schema }) => schema.name === BACKUP_LOG)) return;
  throw new SituError(
    "SITU_UNSUPPORTED",
    "this store belongs to a node of a cluster, whose tables cannot be migrated yet",
  );
}
