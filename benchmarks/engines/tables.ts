// What peers need to know of a Situ table: its columns, its key, and the SQL that creates it.
import type { Field, Table } from "situ";

export type ColumnKind = Field<unknown>["kind"];

export interface Column {
  readonly name: string;
  readonly kind: ColumnKind;
  /** For texts and bytes: the most bytes, if declared. */
  readonly max: number | undefined;
  readonly isNullable: boolean;
  readonly isKey: boolean;
}

/** What differs between the databases that speak SQL. */
export interface SqlDialect {
  /** The type of a column, with whatever belongs to it, such as a collation. */
  type(column: Column): string;
  /** After the closing parenthesis of CREATE TABLE, if anything. */
  suffix(table: Table): string;
}

/** In the order of the table's declaration, which is also the order of columns in SQL. */
export function columnsOf(table: Table): readonly Column[] {
  return Object.entries(table.fields).map(([name, { kind, max, nullable }]) => ({
    name,
    kind,
    max,
    isNullable: nullable === true,
    isKey: table.key.includes(name),
  }));
}

/** A number, or a text that does not say how long it may be, counts as this. */
const NUMBER_BYTES = 8;

/** What a row takes at most, roughly. */
export function declaredBytes(table: Table): number {
  return columnsOf(table).reduce((sum, { max = NUMBER_BYTES }) => sum + max, 0);
}

/** "key, field0, field1": for SELECT and INSERT. */
export function columnNames(table: Table): string {
  return Object.keys(table.fields).join(", ");
}

/** Statements that create the table and its indexes; ordered by its key, whatever Situ does. */
export function createTableSql(table: Table, dialect: SqlDialect): readonly string[] {
  const columns = columnsOf(table).map(
    (each) => `${each.name} ${dialect.type(each)}${each.isNullable ? "" : " NOT NULL"}`,
  );
  const parts = [...columns, `PRIMARY KEY (${table.key.join(", ")})`];
  const create = `CREATE TABLE ${table.name} (${parts.join(", ")}) ${dialect.suffix(table)}`;
  return [create.trimEnd(), ...table.indexes.map((index) => createIndexSql(table, index))];
}

function createIndexSql(table: Table, { name, on, unique }: Table["indexes"][number]): string {
  const kind = unique ? "UNIQUE INDEX" : "INDEX";
  return `CREATE ${kind} ${table.name}_${name} ON ${table.name} (${on.join(", ")})`;
}
