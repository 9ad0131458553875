// A named database per table, and one per unique index. Values are whole rows, their keys included.
// Keys are numbers and texts, which lmdb orders as Situ does. A key of several numbers is packed into
// one: measured as quick as `keyEncoding: "uint32"`, and no slower than lists.
import type { Table } from "situ";
import { columnsOf } from "../tables.ts";
import type { Environment, LmdbDatabase, LmdbKey } from "./module.ts";
import { indexOptions, tableOptions } from "./settings.ts";

export type AnyRow = Readonly<Record<string, unknown>>;

/** Room for a u8 in a packed key. Beside a u32 there is room for two of them in 2 ** 53. */
const SMALL = 256;
const MOST_SMALL = 2;

export function packTwo(first: number, second: number): number {
  return first * SMALL + second;
}

export function packThree(first: number, second: number, third: number): number {
  return (first * SMALL + second) * SMALL + third;
}

interface OpenIndex {
  readonly on: string;
  readonly database: LmdbDatabase<LmdbKey>;
}

export interface OpenTable {
  readonly database: LmdbDatabase<AnyRow>;
  readonly keyOf: (row: AnyRow) => LmdbKey;
  readonly indexes: readonly OpenIndex[];
}

export class LmdbTables {
  readonly env: Environment;
  readonly #tables = new Map<string, OpenTable>();

  constructor(env: Environment, tables: readonly Table[]) {
    this.env = env;
    for (const table of tables) this.#tables.set(table.name, openTable(env, table));
  }

  table(table: Table): OpenTable {
    const found = this.#tables.get(table.name);
    if (found === undefined) throw new Error(`lmdb was opened without table ${table.name}`);
    return found;
  }

  rows<Row>(table: Table<Row>): LmdbDatabase<Row> {
    return this.table(table).database as unknown as LmdbDatabase<Row>;
  }

  index<Key extends LmdbKey>(table: Table, field: string): LmdbDatabase<Key> {
    const found = this.table(table).indexes.find(({ on }) => on === field);
    if (found === undefined) throw new Error(`table ${table.name} has no index on ${field}`);
    return found.database as unknown as LmdbDatabase<Key>;
  }
}

/** In a transaction. */
export function putRow({ database, keyOf, indexes }: OpenTable, row: AnyRow): void {
  const key = keyOf(row);
  database.putSync(key, row);
  for (const index of indexes) index.database.putSync(row[index.on] as LmdbKey, key);
}

function openTable(env: Environment, table: Table): OpenTable {
  const indexes = table.indexes.map(({ name, on, unique }): OpenIndex => {
    if (!unique || on.length !== 1) throw new Error(`index ${name}: unique, on one field`);
    return { on: on[0], database: env.openDB(indexOptions(`${table.name}_${name}`)) };
  });
  return { database: env.openDB(tableOptions(table.name)), keyOf: keyOfTable(table), indexes };
}

function keyOfTable(table: Table): (row: AnyRow) => LmdbKey {
  const [first, ...others] = table.key;
  if (others.length === 0) return (row) => row[first] as LmdbKey;
  const kinds = new Map(columnsOf(table).map(({ name, kind }) => [name, kind]));
  const packs = others.length <= MOST_SMALL && others.every((name) => kinds.get(name) === "u8");
  if (kinds.get(first) !== "u32" || !packs) {
    throw new Error(`table ${table.name}: a key is one field, or a u32 and up to two u8`);
  }
  const [second, third] = others;
  if (third === undefined) return (row) => packTwo(row[first] as number, row[second] as number);
  return (row) => packThree(row[first] as number, row[second] as number, row[third] as number);
}
