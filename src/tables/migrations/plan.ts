/**
 * From what the store has, the declared tables and the steps to what is to be done, in order. The plan is
 * made anew after each action, from what the catalogue says then: another process may have done some of
 * it, and then it is not to be done again.
 *
 * Programs keep their steps from release to release, and give them to stores of every age. A step that finds
 * nothing to do was done before: by an earlier run, or because the table was created as it is now. Where that cannot
 * be told from a mistake, it is refused.
 */

import { findTable } from "../catalogue.ts";
import type { CatalogueTable } from "../indexes/table-store.ts";
import { isOwnTable } from "../own-tables.ts";
import type { Table } from "../table.ts";
import { type Action, refusal } from "./action.ts";
import type { MigrationStep } from "./steps.ts";
import { TablePlan } from "./table-plan.ts";

/** Tables of the Redis gateway. */
const REDIS = "redis:";

/** All that is to be done, the first thing first. */
export function planOf(
  tables: readonly CatalogueTable[],
  declared: readonly Table[],
  steps: readonly MigrationStep[],
): Action[] {
  const unfinished = tables.filter(isUnfinished);
  if (unfinished.length > 0) {
    return unfinished.map((table) => ({ what: "finish", table, lines: [finishLine(table)] }));
  }
  const names = new TableNames(tables);
  const actions = names.take(steps);
  for (const [table, name] of names.present) {
    const wanted = declared.find(
      (each) => each.name === name || findTable(tables, each.name) === table,
    );
    const own = steps.filter((step) => names.isMeant(step.table, table));
    actions.push(...new TablePlan(table, name, wanted, own).actions());
  }
  for (const table of names.dropped) {
    const { name } = table.schema;
    if (declared.some((each) => findTable(tables, each.name) === table)) {
      throw refusal(name, "it is declared here, and a step drops it");
    }
  }
  for (const { lines, table } of actions) {
    const { name } = table.schema;
    if (!isOwnTable(name) && !name.startsWith(REDIS)) continue;
    throw refusal(name, `it belongs to Situ itself, and is not migrated (${lines[0]})`);
  }
  return actions;
}

/** Whether something was begun with a table that is to be finished first. */
export function isUnfinished({ schema }: CatalogueTable): boolean {
  return (
    schema.successor !== undefined ||
    schema.state === "retired" ||
    schema.indexes.some(({ state }) => state === "retired")
  );
}

function finishLine({ schema: { name, successor, state } }: CatalogueTable): string {
  if (successor !== undefined) return `${name}: finish the migration that has begun`;
  return state === "retired" ? `${name}: drop the table` : `${name}: drop an index`;
}

/** What the tables are called after each step that renames or drops one. */
class TableNames {
  /** The tables that stay, each with its name. */
  readonly present: Map<CatalogueTable, string>;
  readonly dropped: CatalogueTable[] = [];
  /** All names that a table has in the course of the steps. */
  readonly #names: Map<CatalogueTable, Set<string>>;

  constructor(tables: readonly CatalogueTable[]) {
    const there = tables.filter(({ schema }) => schema.state === undefined);
    this.present = new Map(there.map((table) => [table, table.schema.name]));
    this.#names = new Map(there.map((table) => [table, new Set([table.schema.name])]));
  }

  take(steps: readonly MigrationStep[]): Action[] {
    const actions: Action[] = [];
    steps.forEach((step, at) => {
      if (step.step === "rename table") {
        actions.push(...this.#rename(step.table, step.to, steps.slice(at + 1)));
      } else if (step.step === "drop table") {
        const table = this.#named(step.table);
        if (table === undefined) return;
        this.present.delete(table);
        this.dropped.push(table);
        actions.push({ what: "drop table", table, lines: [`${step.table}: drop the table`] });
      }
    });
    return actions;
  }

  /** Whether a step for `name` is for this table: it has the name, gets it, or once had it and nobody has it now. */
  isMeant(name: string, table: CatalogueTable): boolean {
    if (this.#names.get(table)!.has(name)) return true;
    if (table.schema.formerNames?.includes(name) !== true) return false;
    return [...this.#names.values()].every((names) => !names.has(name));
  }

  #named(name: string): CatalogueTable | undefined {
    for (const [table, each] of this.present) if (each === name) return table;
    return undefined;
  }

  #rename(from: string, to: string, later: readonly MigrationStep[]): Action[] {
    const table = this.#named(from);
    const other = this.#named(to);
    if (table === undefined) {
      if (other !== undefined || this.#isDone(from, to, later)) return [];
      throw refusal(from, `there is no such table to be renamed to ${to}`);
    }
    if (other !== undefined) throw refusal(from, `there is already a table ${to}`);
    this.present.set(table, to);
    this.#names.get(table)!.add(to);
    const lines = [`${from}: rename the table to ${to}`];
    return [{ what: "rename table", table, to, lines }];
  }

  /** Neither is there: a later step took the table further, it once had the name, or the store is new. */
  #isDone(from: string, to: string, later: readonly MigrationStep[]): boolean {
    const isTaken = later.some(
      ({ step, table }) => table === to && (step === "rename table" || step === "drop table"),
    );
    if (isTaken) return true;
    const tables = [...this.#names.keys()];
    if (tables.some(({ schema }) => schema.formerNames?.includes(from))) return true;
    return tables.every(({ schema }) => isOwnTable(schema.name));
  }
}
