/**
 * What a migration is told to do. Adding, widening and indexes follow from the declared tables; the steps
 * below say what a declaration cannot tell, or what loses data. Each can be given again when it has been
 * done: a service may keep its steps for as long as stores exist that need them.
 */

import { SituError } from "../../runtime/errors.ts";
import { show } from "../../runtime/show.ts";
import { schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { type StoredValue, storeValue } from "./stored-value.ts";

/** A step of a migration: what `addField` and the other functions return. */
export type MigrationStep =
  | {
      readonly step: "add field";
      readonly table: string;
      readonly field: string;
      readonly type: string;
      readonly value: StoredValue;
    }
  | { readonly step: "drop field"; readonly table: string; readonly field: string }
  | {
      readonly step: "rename field";
      readonly table: string;
      readonly field: string;
      readonly to: string;
    }
  | {
      readonly step: "narrow field";
      readonly table: string;
      readonly field: string;
      readonly type: string;
    }
  | { readonly step: "change key"; readonly table: string; readonly key: readonly string[] }
  | { readonly step: "drop index"; readonly table: string; readonly index: string }
  | { readonly step: "keep rows"; readonly table: string }
  | { readonly step: "rename table"; readonly table: string; readonly to: string }
  | { readonly step: "drop table"; readonly table: string };

type FieldName<Row> = keyof Row & string;

/** Adds a field of the declared table. All rows get the default, and so do those of older programs. */
export function addField<Row, Name extends FieldName<Row>>(
  table: Table<Row>,
  field: Name,
  options: { readonly default: Row[Name] },
): MigrationStep {
  const type = typeOf("addField", table, field);
  if (typeof options !== "object" || options === null || options.default === undefined) {
    refuse(`addField(${table.name}, ${show(field)}, …) needs a default: { default: 0 }`);
  }
  const value = storeValue(options.default);
  return { step: "add field", table: table.name, field, type, value };
}

/** Drops a field, and its values in all rows. */
export function dropField(table: string, field: string): MigrationStep {
  return { step: "drop field", table: nameOf("dropField", table), field };
}

/** Renames a field. Older programs still find it by its old name. */
export function renameField(table: string, field: string, to: string): MigrationStep {
  return { step: "rename field", table: nameOf("renameField", table), field, to };
}

/**
 * Gives a field the type that the table declares, where that does not take all values of the old one.
 * Fails, and changes nothing, if a row has a value that does not fit.
 */
export function narrowField<Row>(table: Table<Row>, field: FieldName<Row>): MigrationStep {
  const type = typeOf("narrowField", table, field);
  return { step: "narrow field", table: table.name, field, type };
}

/** Gives a table the key that it declares. Fails, and changes nothing, if two rows would share one. */
export function changeKey(table: Table): MigrationStep {
  if (!Array.isArray(table?.key)) refuse("changeKey takes what table() returns");
  return { step: "change key", table: table.name, key: table.key };
}

/** Drops an index. */
export function dropIndex(table: string, index: string): MigrationStep {
  return { step: "drop index", table: nameOf("dropIndex", table), index };
}

/**
 * Has the rows of a table expire no longer. Rows that have ended before stay away; one that ends while the table is
 * copied may stay.
 */
export function keepRows(table: string): MigrationStep {
  return { step: "keep rows", table: nameOf("keepRows", table) };
}

/** Renames a table. Older programs still find it by its old name. */
export function renameTable(table: string, to: string): MigrationStep {
  return { step: "rename table", table: nameOf("renameTable", table), to };
}

/** Drops a table with all of its rows. */
export function dropTable(table: string): MigrationStep {
  return { step: "drop table", table: nameOf("dropTable", table) };
}

function refuse(why: string): never {
  throw new SituError("SITU_CONFIG", why);
}

function nameOf(call: string, table: unknown): string {
  if (typeof table === "string" && table !== "") return table;
  const name = (table as Partial<Table> | undefined)?.name;
  return typeof name === "string" ? name : refuse(`${call} takes the name of a table`);
}

function typeOf(call: string, table: Table, field: string): string {
  if (typeof table?.ordinal !== "number") refuse(`${call} takes what table() returns`);
  const { fields } = schemaOf(table);
  if (Object.hasOwn(fields, field)) return fields[field];
  return refuse(`${call}: table ${table.name} does not declare a field ${show(field)}`);
}
