// Tables in PostgreSQL, and how they are filled: COPY, then VACUUM ANALYZE, as the manual advises
// for bulk loads (14.4).
import type { Table } from "situ";
import type { InitialRow } from "../../../workloads/workload.ts";
import type { Durability } from "../engine.ts";
import { type Column, columnNames, columnsOf, createTableSql, type SqlDialect } from "../tables.ts";
import type { PgClient, PgConnection, Submittable } from "./module.ts";

/** Leaves room in each page for the next versions of its rows (manual, 73.7: heap-only tuples). */
const fillFactor = 70;
const copyBytes = 1 << 20;
const rowsPerFetch = 5_000;

const dialect: SqlDialect = {
  type: typeOf,
  suffix: () => `WITH (fillfactor = ${fillFactor})`,
};

function typeOf({ kind, isKey }: Column): string {
  switch (kind) {
    case "u8":
      return "smallint";
    case "u16":
    case "i32":
      return "integer";
    case "u32":
      // Keys of all workloads are below 2^31. Other numbers, such as TATP's locations, are not.
      return isKey ? "integer" : "bigint";
    case "u53":
    case "i53":
      return "bigint";
    case "f64":
      return "double precision";
    case "bool":
      return "boolean";
    case "str":
      // The cluster has locale C: texts compare by their bytes.
      return "text";
    default:
      throw new Error(`postgres: no workload has a column of ${kind}`);
  }
}

export async function createTables(
  client: PgClient,
  tables: readonly Table[],
  durability: Durability,
): Promise<void> {
  for (const table of tables) {
    await client.query(`DROP TABLE IF EXISTS ${table.name}`);
    for (const sql of createTableSql(table, dialect)) {
      // Unlogged: without log, and empty after a crash (manual, 14.5).
      const isUnlogged = durability === "none" && sql.startsWith("CREATE TABLE");
      await client.query(isUnlogged ? sql.replace("TABLE", "UNLOGGED TABLE") : sql);
    }
  }
}

/** In one transaction, by which PostgreSQL spares the log of tables that are new. */
export async function copyRows(client: PgClient, rows: Iterable<InitialRow>): Promise<void> {
  const copies = new Map<Table, TableCopy>();
  await client.query("BEGIN");
  for (const { table, row } of rows) {
    let copy = copies.get(table);
    if (copy === undefined) {
      copy = new TableCopy(client, table);
      copies.set(table, copy);
      await client.query(`TRUNCATE ${table.name}`);
    }
    copy.add(row as Readonly<Record<string, unknown>>);
    if (copy.isFull) await copy.send();
  }
  for (const copy of copies.values()) await copy.send();
  await client.query("COMMIT");
  for (const table of copies.keys()) await client.query(`VACUUM (ANALYZE) ${table.name}`);
}

export async function* readTable(
  client: PgClient,
  table: Table,
): AsyncIterable<Readonly<Record<string, unknown>>> {
  await client.query("BEGIN READ ONLY");
  await client.query(
    `DECLARE every NO SCROLL CURSOR FOR SELECT ${columnNames(table)} FROM ${table.name}`,
  );
  for (;;) {
    const { rows } = await client.query(`FETCH ${rowsPerFetch} FROM every`);
    if (rows.length === 0) break;
    yield* rows;
  }
  await client.query("COMMIT");
}

/** Rows in COPY's text format: columns between tabs. */
class TableCopy {
  readonly #client: PgClient;
  readonly #sql: string;
  readonly #names: readonly string[];
  #text = "";

  constructor(client: PgClient, table: Table) {
    this.#client = client;
    this.#sql = `COPY ${table.name} (${columnNames(table)}) FROM STDIN WITH (FREEZE)`;
    this.#names = columnsOf(table).map(({ name }) => name);
  }

  get isFull(): boolean {
    return this.#text.length >= copyBytes;
  }

  add(row: Readonly<Record<string, unknown>>): void {
    for (let index = 0; index < this.#names.length; index++) {
      if (index > 0) this.#text += "\t";
      const value = row[this.#names[index]];
      if (value === null) this.#text += "\\N";
      else this.#text += typeof value === "string" ? escaped(value) : String(value);
    }
    this.#text += "\n";
  }

  send(): Promise<void> {
    const chunk = Buffer.from(this.#text);
    this.#text = "";
    return new Promise((resolve, reject) => {
      void this.#client.query(new Copy(this.#sql, chunk, resolve, reject));
    });
  }
}

/** A request of our own, as pg-copy-streams makes it. */
class Copy implements Submittable {
  readonly #sql: string;
  readonly #chunk: Buffer;
  readonly #resolve: () => void;
  readonly handleError: (error: Error) => void;

  constructor(sql: string, chunk: Buffer, resolve: () => void, reject: (error: Error) => void) {
    this.#sql = sql;
    this.#chunk = chunk;
    this.#resolve = resolve;
    this.handleError = reject;
  }

  submit(connection: PgConnection): void {
    connection.query(this.#sql);
  }

  handleCopyInResponse(connection: PgConnection): void {
    connection.sendCopyFromChunk(this.#chunk);
    connection.endCopyFrom();
  }

  handleCommandComplete(): void {}

  handleReadyForQuery(): void {
    this.#resolve();
  }
}

const special = /[\\\t\n\r]/g;
const escapes: Readonly<Record<string, string>> = {
  "\\": "\\\\",
  "\t": "\\t",
  "\n": "\\n",
  "\r": "\\r",
};

function escaped(text: string): string {
  return text.replace(special, (character) => escapes[character]);
}
