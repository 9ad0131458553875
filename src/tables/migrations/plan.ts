/**
 * From what the store has, the declared tables and the steps to what is to be done, in order. The plan is
 * made anew after each action, from what the catalogue says then: another process may have done some of
 * it, and then it is not to be done again.
 */

import { SituError } from "../../runtime/errors.ts";
import { defaultKind } from "../../stores/kinds.ts";
import { findTable } from "../catalogue.ts";
import { knownField } from "../field-text.ts";
import { describeIndex, type IndexDefinition, sameDefinition } from "../indexes/definition.ts";
import type { CatalogueTable } from "../indexes/table-store.ts";
import { isOwnTable } from "../own-tables.ts";
import { isOnDevice, type Schema, type StoredSchema, schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { isConvertible, isNullable, isWidening } from "./conversion.ts";
import type { MigrationStep } from "./steps.ts";
import type { FieldSource, SchemaHistory } from "./stored.ts";
import type { StoredValue } from "./stored-value.ts";

/** The schema that a table gets, and where its fields come from. */
export interface CopyTarget {
  readonly schema: Schema & SchemaHistory;
  readonly sources: Readonly<Record<string, FieldSource>>;
}

export type Action = { readonly table: CatalogueTable; readonly lines: readonly string[] } & (
  | { readonly what: "finish" }
  | { readonly what: "copy"; readonly target: CopyTarget }
  | { readonly what: "drop index"; readonly index: string }
  | { readonly what: "rename table"; readonly to: string }
  | { readonly what: "drop table" }
);

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
  const renames = new Map<string, string>();
  const actions: Action[] = [];
  const dropped = new Set<string>();
  for (const step of steps) {
    if (step.step === "rename table") planRename(tables, step, renames, actions);
    if (step.step === "drop table") {
      dropped.add(step.table);
      const table = byName(tables, step.table);
      if (table !== undefined) {
        actions.push({ what: "drop table", table, lines: [`${step.table}: drop the table`] });
      }
    }
  }
  for (const table of tables) {
    if (table.schema.state !== undefined) continue;
    const { name: nameBefore } = table.schema;
    const name = renames.get(nameBefore) ?? nameBefore;
    const wanted = declared.find(
      (each) => each.name === name || findTable(tables, each.name) === table,
    );
    if (dropped.has(nameBefore)) {
      if (wanted === undefined) continue;
      throw refusal(name, "it is declared here, and a step drops it");
    }
    const own = steps.filter((step) => step.table === name || step.table === nameBefore);
    actions.push(...new TablePlan(table, name, wanted, own).actions());
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

function byName(tables: readonly CatalogueTable[], name: string): CatalogueTable | undefined {
  return tables.find(({ schema }) => schema.name === name && schema.state === undefined);
}

function planRename(
  tables: readonly CatalogueTable[],
  { table: from, to }: { readonly table: string; readonly to: string },
  renames: Map<string, string>,
  actions: Action[],
): void {
  const table = byName(tables, from);
  const other = byName(tables, to);
  if (table === undefined && other !== undefined) return;
  if (table === undefined) throw refusal(from, `there is no such table to be renamed to ${to}`);
  if (other !== undefined) throw refusal(from, `there is already a table ${to}`);
  renames.set(from, to);
  actions.push({ what: "rename table", table, to, lines: [`${from}: rename the table to ${to}`] });
}

function refusal(table: string, why: string): SituError {
  return new SituError("SITU_SCHEMA", `table ${table} cannot be migrated: ${why}`);
}

/** A field of the schema that is being planned. */
interface PlannedField {
  readonly type: string;
  readonly source: FieldSource;
}

class TablePlan {
  readonly #table: CatalogueTable;
  readonly #name: string;
  readonly #stored: StoredSchema;
  readonly #wanted: Schema | undefined;
  readonly #steps: readonly MigrationStep[];
  readonly #fields: Map<string, PlannedField>;
  readonly #defaults: Map<string, StoredValue>;
  readonly #former: Map<string, string>;
  readonly #dropped = new Set<string>();
  readonly #droppedIndexes = new Set<string>();
  #key: readonly string[];
  readonly #lines: string[] = [];
  readonly #indexActions: Action[] = [];

  constructor(
    table: CatalogueTable,
    name: string,
    declared: Table | undefined,
    steps: readonly MigrationStep[],
  ) {
    this.#table = table;
    this.#name = name;
    const stored = table.schema;
    this.#stored = stored;
    this.#wanted = declared && schemaOf(declared);
    this.#steps = steps;
    this.#fields = new Map(
      Object.entries(stored.fields).map(([each, type]) => [each, { type, source: { from: each } }]),
    );
    this.#key = stored.key;
    this.#defaults = new Map(Object.entries(stored.defaults ?? {}));
    this.#former = new Map(Object.entries(stored.formerFields ?? {}));
  }

  actions(): Action[] {
    for (const step of this.#steps) this.#take(step);
    if (this.#wanted !== undefined) this.#compare(this.#wanted);
    const target = this.#target();
    const table = this.#table;
    if (this.#lines.length === 0) return this.#indexActions;
    if (isOnDevice(this.#stored) || isOnDevice(target.schema)) {
      throw new SituError(
        "SITU_UNSUPPORTED",
        `rows of a table on the device cannot be migrated yet, only its indexes: dump the table, drop it, and ` +
          `load it into the new one\n  ${this.#lines.join("\n  ")}`,
      );
    }
    return [{ what: "copy", table, lines: this.#lines, target }];
  }

  #refuse(why: string): never {
    throw refusal(this.#name, why);
  }

  #line(text: string): void {
    this.#lines.push(`${this.#name}: ${text}`);
  }

  #take(step: MigrationStep): void {
    switch (step.step) {
      case "add field":
        if (!this.#fields.has(step.field)) this.#add(step.field, step.type, step.value);
        return;
      case "drop field":
        if (this.#wanted && Object.hasOwn(this.#wanted.fields, step.field)) {
          this.#refuse(`field ${step.field} is declared here, and a step drops it`);
        }
        if (this.#fields.has(step.field)) this.#drop(step.field);
        return;
      case "rename field":
        this.#rename(step.field, step.to);
        return;
      case "narrow field": {
        const field = this.#fields.get(step.field);
        if (field === undefined) this.#refuse(`there is no field ${step.field} to be narrowed`);
        else if (field.type !== step.type) this.#retype(step.field, field, step.type);
        return;
      }
      case "change key":
        this.#setKey(step.key);
        return;
      case "drop index": {
        const isThere = this.#stored.indexes.some(({ name }) => name === step.index);
        if (isThere) this.#dropIndex(step.index, `drop index ${step.index}`);
        return;
      }
      default:
    }
  }

  #add(name: string, type: string, value: StoredValue): void {
    this.#fields.set(name, { type, source: { value } });
    this.#defaults.set(name, value);
    this.#former.delete(name);
    const shown = typeof value === "object" && value !== null ? value.text : JSON.stringify(value);
    this.#line(`add field ${name}: ${type}, ${shown} in all rows`);
  }

  #drop(name: string): void {
    if (this.#key.includes(name)) {
      this.#refuse(`field ${name} is part of its key: change the key first`);
    }
    this.#fields.delete(name);
    this.#defaults.delete(name);
    this.#dropped.add(name);
    for (const [former, present] of this.#former) {
      if (present === name) this.#former.delete(former);
    }
    this.#line(`drop field ${name}`);
  }

  #rename(from: string, to: string): void {
    const field = this.#fields.get(from);
    if (field === undefined && this.#fields.has(to)) return;
    if (field === undefined) this.#refuse(`there is no field ${from} to be renamed`);
    if (this.#fields.has(to)) this.#refuse(`field ${from} cannot be renamed: ${to} is there, too`);
    this.#fields.delete(from);
    this.#fields.set(to, field);
    this.#key = this.#key.map((each) => (each === from ? to : each));
    const value = this.#defaults.get(from);
    this.#defaults.delete(from);
    if (value !== undefined) this.#defaults.set(to, value);
    for (const [former, present] of this.#former)
      if (present === from) this.#former.set(former, to);
    this.#former.delete(to);
    this.#former.set(from, to);
    this.#line(`rename field ${from} to ${to}`);
  }

  #retype(name: string, field: PlannedField, type: string): void {
    if (!isConvertible(field.type, type)) {
      this.#refuse(`field ${name}: values of type ${field.type} do not become ${type}`);
    }
    this.#fields.set(name, { ...field, type });
    const how = isWidening(field.type, type) ? "widen" : "narrow";
    this.#line(`${how} field ${name}: ${field.type} to ${type}`);
  }

  #setKey(key: readonly string[]): void {
    if (JSON.stringify(key) === JSON.stringify(this.#key)) return;
    this.#line(`change the key: ${this.#key.join(", ")} to ${key.join(", ")}`);
    this.#key = key;
  }

  #dropIndex(index: string, text: string): void {
    this.#droppedIndexes.add(index);
    const lines = [`${this.#name}: ${text}`];
    this.#indexActions.push({ what: "drop index", table: this.#table, index, lines });
  }

  /** What follows from the declaration alone, and loses nothing. */
  #compare(wanted: Schema): void {
    for (const [name, type] of Object.entries(wanted.fields)) {
      const field = this.#fields.get(name);
      if (field === undefined) {
        if (this.#former.has(name)) continue;
        const made = knownField(type);
        if (made !== undefined && isNullable(made)) this.#add(name, type, null);
        else {
          const step = `addField(Table, ${JSON.stringify(name)}, { default: … })`;
          this.#refuse(`field ${name} is new: say which value all rows get, with ${step}`);
        }
      } else if (field.type !== type && isWidening(field.type, type)) {
        this.#retype(name, field, type);
      } else if (field.type !== type && !isWidening(type, field.type)) {
        const step = `narrowField(Table, ${JSON.stringify(name)})`;
        this.#refuse(`field ${name} is ${field.type}, ${type} here: say so with ${step}`);
      }
    }
    const hasSameFields = [...wanted.key].sort().join() === [...this.#key].sort().join();
    if (hasSameFields) this.#setKey(wanted.key);
    const layout = wanted.layout ?? defaultKind(wanted.ordered);
    if (layout !== (this.#stored.layout ?? defaultKind(this.#stored.ordered))) {
      this.#line(`keep its rows in the layout ${layout}`);
    }
    const { expires } = wanted;
    if (expires !== undefined && expires !== this.#expiresNow()) {
      this.#line(`let its rows expire by field ${expires}`);
    }
    for (const index of wanted.indexes) {
      const other = this.#stored.indexes.find(({ name }) => name === index.name);
      if (other === undefined || this.#droppedIndexes.has(index.name)) continue;
      const on = other.on.map((name) => this.#nameNow(name));
      if (sameDefinition({ ...other, on }, index)) continue;
      const how = `${describeIndex(other)} to ${describeIndex(index)}`;
      this.#dropIndex(index.name, `build index ${index.name} anew: ${how}`);
    }
  }

  /** What a field of the store is called in the plan. */
  #nameNow(name: string): string {
    for (const [now, { source }] of this.#fields) {
      if ("from" in source && source.from === name) return now;
    }
    return name;
  }

  /** A declaration that does not say that rows expire leaves it as it is. */
  #expiresNow(): string | undefined {
    const { expires } = this.#stored;
    if (expires === undefined) return undefined;
    if (this.#dropped.has(expires)) this.#refuse(`its rows expire by field ${expires}`);
    return this.#nameNow(expires);
  }

  #indexes(): IndexDefinition[] {
    const kept = this.#stored.indexes
      .filter(({ name }) => !this.#droppedIndexes.has(name))
      .map(({ name, on, unique, kind }) => {
        const lost = on.find((field) => this.#dropped.has(field));
        if (lost !== undefined) {
          const step = `dropIndex(${JSON.stringify(this.#name)}, ${JSON.stringify(name)})`;
          this.#refuse(`index ${name} is on field ${lost}, which is dropped: add ${step}`);
        }
        return { name, on: on.map((field) => this.#nameNow(field)), unique, kind };
      });
    const names = new Set(kept.map(({ name }) => name));
    const added = (this.#wanted?.indexes ?? []).filter(({ name }) => !names.has(name));
    return [...kept, ...added];
  }

  #target(): CopyTarget {
    const from = this.#wanted ?? this.#stored;
    const { ordered, layout } = from;
    const expires = this.#wanted?.expires ?? this.#expiresNow();
    const names = [...this.#fields.keys()].sort();
    const target = {
      // A table is renamed by an action of its own.
      name: this.#stored.name,
      fields: Object.fromEntries(names.map((name) => [name, this.#fields.get(name)!.type])),
      key: this.#key,
      ordered,
      ...(layout === undefined ? {} : { layout }),
      indexes: this.#indexes(),
      ...(expires === undefined ? {} : { expires }),
      migrations: (this.#stored.migrations ?? 0) + 1,
      defaults: Object.fromEntries(this.#defaults),
      formerFields: Object.fromEntries(this.#former),
      ...(this.#stored.formerNames === undefined ? {} : { formerNames: this.#stored.formerNames }),
    };
    if (this.#lines.length > 0) this.#check(target);
    const sources = Object.fromEntries(names.map((name) => [name, this.#fields.get(name)!.source]));
    return { schema: target, sources };
  }

  /** Refuses a schema that no table can have, and a key that two rows could share unnoticed. */
  #check(target: Schema): void {
    try {
      tableFromSchema(target);
    } catch (error) {
      this.#refuse((error as Error).message);
    }
    const lost = this.#stored.key.find((name) => this.#dropped.has(name));
    if (lost !== undefined) this.#refuse(`field ${lost} is part of its key: drop it afterwards`);
  }
}
