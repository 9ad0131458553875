/**
 * What is to be done with one table: its steps are played through on its fields, then it is compared with its declaration.
 *
 * Steps are given again and again (plan.ts), so each of them looks ahead: one whose field a later step renames or
 * drops has been done if that one has. Steps that would find something to do again when all is done, such as two that
 * undo each other, are refused: they would copy the table over and over.
 */

import { SituError } from "../../runtime/errors.ts";
import { defaultKind } from "../../stores/kinds.ts";
import { EXPIRY_INDEX } from "../expiry/expiry.ts";
import { knownField } from "../field-text.ts";
import { describeIndex, type IndexDefinition, sameDefinition } from "../indexes/definition.ts";
import { isForChange, nextName, publicName } from "../indexes/replaced-names.ts";
import type { CatalogueTable } from "../indexes/table-store.ts";
import { isOnDevice, type Schema, type StoredSchema, schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { type Action, type CopyTarget, refusal } from "./action.ts";
import { isConvertible, isNullable, isWidening } from "./conversion.ts";
import type { MigrationStep } from "./steps.ts";
import type { FieldSource } from "./stored.ts";
import type { StoredValue } from "./stored-value.ts";

/** A field of the schema that is being planned. */
interface PlannedField {
  readonly type: string;
  readonly source: FieldSource;
}

export class TablePlan {
  readonly #table: CatalogueTable;
  readonly #name: string;
  readonly #stored: StoredSchema;
  readonly #declared: Table | undefined;
  readonly #wanted: Schema | undefined;
  readonly #steps: readonly MigrationStep[];
  readonly #fields: Map<string, PlannedField>;
  readonly #defaults: Map<string, StoredValue>;
  readonly #former: Map<string, string>;
  readonly #dropped = new Set<string>();
  readonly #droppedIndexes = new Set<string>();
  /** Indexes that get another definition. */
  readonly #changed = new Set<string>();
  #key: readonly string[];
  /** Whether its rows are to expire no longer. */
  #keepsRows = false;
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
    this.#declared = declared;
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
    const actions = this.#actions();
    for (const action of actions) if (action.what === "copy") this.#refuseEndless(action.target);
    return actions;
  }

  #actions(): Action[] {
    this.#steps.forEach((step, at) => {
      this.#take(step, this.#steps.slice(at + 1));
    });
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
    // A copy has its indexes from the start.
    const lines = [...this.#lines, ...this.#indexActions.flatMap((each) => each.lines)];
    return [{ what: "copy", table, lines, target }];
  }

  /** With the table as it is to be, nothing must be left to be done. */
  #refuseEndless({ schema }: CopyTarget): void {
    const indexes = schema.indexes.map((index) => ({
      ...index,
      state: "ready" as const,
      roots: [],
      build: "",
    }));
    const { expires: _, ...before } = this.#stored;
    const table = { ...this.#table, schema: { ...before, ...schema, indexes } };
    const after = new TablePlan(table, this.#name, this.#declared, this.#steps).#outcome();
    if (after === "") return;
    this.#refuse(`its steps would be done over and over; after all of them: ${after}`);
  }

  /** What is to be done, or why it cannot be, as one text. */
  #outcome(): string {
    try {
      return this.#actions()
        .flatMap((each) => each.lines)
        .join("; ");
    } catch (error) {
      if (error instanceof SituError) return error.message;
      throw error;
    }
  }

  #refuse(why: string): never {
    throw refusal(this.#name, why);
  }

  #line(text: string): void {
    this.#lines.push(`${this.#name}: ${text}`);
  }

  #take(step: MigrationStep, later: readonly MigrationStep[]): void {
    switch (step.step) {
      case "add field":
        if (this.#fields.has(step.field) || this.#isTakenFurther(step.field, later)) return;
        this.#add(step.field, step.type, step.value);
        return;
      case "drop field":
        if (this.#wanted && Object.hasOwn(this.#wanted.fields, step.field)) {
          this.#refuse(`field ${step.field} is declared here, and a step drops it`);
        }
        if (this.#fields.has(step.field)) this.#drop(step.field);
        return;
      case "rename field":
        this.#rename(step.field, step.to, later);
        return;
      case "narrow field": {
        const field = this.#fields.get(step.field);
        if (field !== undefined && field.type !== step.type) {
          this.#retype(step.field, field, step.type);
        } else if (field === undefined && !this.#isTakenFurther(step.field, later)) {
          this.#refuse(`there is no field ${step.field} to be narrowed`);
        }
        return;
      }
      case "change key":
        this.#setKey(step.key);
        return;
      case "keep rows":
        if (this.#wanted?.expires !== undefined) {
          this.#refuse(
            `its rows are declared to expire by field ${this.#wanted.expires} here, and a step ends that`,
          );
        }
        if (this.#stored.expires === undefined) return;
        this.#keepsRows = true;
        this.#line("let its rows expire no longer");
        return;
      case "drop index": {
        if (this.#wanted?.indexes.some(({ name }) => name === step.index)) {
          this.#refuse(`index ${step.index} is declared here, and a step drops it`);
        }
        const isThere = this.#stored.indexes.some(({ name }) => name === step.index);
        if (isThere) this.#dropIndex(step.index, `drop index ${step.index}`);
        return;
      }
      default:
    }
  }

  /** Whether later steps rename a field to one that is there, or drop it: then it was there once. */
  #isTakenFurther(field: string, later: readonly MigrationStep[]): boolean {
    let name = field;
    for (const step of later) {
      if (step.step === "drop field" && step.field === name) return true;
      if (step.step === "rename field" && step.field === name) name = step.to;
    }
    return name !== field && this.#fields.has(name);
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

  #rename(from: string, to: string, later: readonly MigrationStep[]): void {
    const field = this.#fields.get(from);
    if (field === undefined) {
      const isDone = this.#fields.has(to) || this.#former.has(from);
      if (isDone || this.#isTakenFurther(to, later)) return;
      this.#refuse(`there is no field ${from} to be renamed`);
    }
    // Another field that got the name after this one had left it.
    const isAnother = later.some((each) => each.step === "add field" && each.field === from);
    if (isAnother && this.#fields.has(to)) return;
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
    this.#compareIndexes(wanted.indexes);
  }

  #compareIndexes(wanted: readonly IndexDefinition[]): void {
    for (const declared of wanted) {
      const { name } = declared;
      const index = this.#inPlan(declared);
      const other = this.#stored.indexes.find((each) => each.name === name);
      const begun = this.#stored.indexes.find((each) => each.name === nextName(name));
      const on = other?.on.map((field) => this.#nameNow(field)) ?? [];
      const isSame = other !== undefined && sameDefinition({ ...other, on }, index);
      if (name === EXPIRY_INDEX && !isSame) {
        // Comes with the field, which is told.
        this.#changed.add(name);
      } else if (other === undefined) {
        this.#indexAction("build index", index, `build index ${name}: ${describeIndex(index)}`);
      } else if (!isSame) {
        if (begun !== undefined && !sameDefinition(begun, index)) this.#dropBegun(begun);
        const how = `${describeIndex(other)} to ${describeIndex(index)}`;
        this.#changed.add(name);
        this.#indexAction("replace index", index, `build index ${name} anew: ${how}`);
      } else {
        if (begun !== undefined) this.#dropBegun(begun);
        if (other.state === "ready") continue;
        this.#indexAction("build index", index, `build index ${name}: ${describeIndex(index)}`);
      }
    }
  }

  #indexAction(what: "build index" | "replace index", index: IndexDefinition, text: string): void {
    this.#indexActions.push({ what, table: this.#table, index, lines: [`${this.#name}: ${text}`] });
  }

  /** What was built to take an index's place, and is not what is wanted now. */
  #dropBegun({ name }: IndexDefinition): void {
    this.#dropIndex(name, `drop what was begun of index ${publicName(name)}`);
  }

  /** A declared index with the names that its fields have in the plan. */
  #inPlan({ name, on, unique, kind }: IndexDefinition): IndexDefinition {
    const present = on.map((field) =>
      this.#fields.has(field) ? field : (this.#former.get(field) ?? field),
    );
    return { name, on: present, unique, kind };
  }

  /** What a field of the store is called in the plan. */
  #nameNow(name: string): string {
    for (const [now, { source }] of this.#fields) {
      if ("from" in source && source.from === name) return now;
    }
    return name;
  }

  /** The declaration of a table that was migrated may be one of before its rows expired: it leaves that as it is. */
  #expiresNow(): string | undefined {
    const { expires } = this.#stored;
    if (expires === undefined || this.#keepsRows) return undefined;
    const step = `keepRows(${JSON.stringify(this.#name)})`;
    if (this.#dropped.has(expires)) {
      this.#refuse(`its rows expire by field ${expires}, which is dropped: add ${step}`);
    }
    const isNew = (this.#stored.migrations ?? 0) === 0;
    if (isNew && this.#wanted !== undefined && this.#wanted.expires === undefined) {
      this.#refuse(`its rows expire by field ${expires}: declare that, or end it with ${step}`);
    }
    return this.#nameNow(expires);
  }

  #indexes(): IndexDefinition[] {
    const kept = this.#stored.indexes
      .filter(({ name }) => !this.#droppedIndexes.has(name) && !this.#changed.has(name))
      .filter(({ name }) => !isForChange(name))
      .filter(({ name }) => name !== EXPIRY_INDEX || !this.#keepsRows)
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
    return [...kept, ...added.map((each) => this.#inPlan(each))];
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
