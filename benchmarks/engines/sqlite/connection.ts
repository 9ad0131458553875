// One connection, its tables, and what happens when another process holds the write lock: SQLite's
// own busy handler sleeps and tries again, as its makers advise (sqlite.org/c3ref/busy_timeout.html).
// Trying again at once, in a loop, did less with two processes in nearly all runs of SmallBank and
// TATP (on a busy machine; YCSB-A went either way). What is still locked is tried again, and counted.
import type { Table } from "situ";
import {
  columnNames,
  columnsOf,
  createTableSql,
  declaredBytes,
  type SqlDialect,
} from "../tables.ts";
import type { Sqlite, Statement, Value } from "./module.ts";

const types = {
  u8: "INTEGER",
  u16: "INTEGER",
  u32: "INTEGER",
  i32: "INTEGER",
  u53: "INTEGER",
  i53: "INTEGER",
  bool: "INTEGER",
  f64: "REAL",
  str: "TEXT",
} as const;

const dialect: SqlDialect = {
  type({ name, kind }) {
    if (!(kind in types)) throw new Error(`column ${name}: no type for ${kind}`);
    return types[kind as keyof typeof types];
  },
  /**
   * A single number is the rowid itself. Small rows with a longer key lie in the tree of their key:
   * measured a third quicker. Rows of YCSB are too large for that, and two to three times slower
   * ("WITHOUT ROWID tables work best when individual rows are not too large", withoutrowid.html §4),
   * except for scans, with pages in which they fit (`pageBytes`). So are TPC-C's customers and stocks.
   */
  suffix: (table) => (isClustered(table) ? "STRICT, WITHOUT ROWID" : "STRICT"),
};

/** "Less than about 1/20th the size of a database page" (withoutrowid.html §4). */
const MOST_CLUSTERED_BYTES = 4_096 / 20;

function isClustered(table: Table): boolean {
  return table.ordered || (table.key.length > 1 && declaredBytes(table) <= MOST_CLUSTERED_BYTES);
}

/** Each waits for the busy timeout: after so many something is wrong. */
const MOST_ATTEMPTS = 12;

type Five = [unknown?, unknown?, unknown?, unknown?, unknown?];

export class Connection {
  readonly db: Sqlite;
  readonly #shared: boolean;
  /** How often the busy timeout passed, or a single statement had read what was changed meanwhile. */
  busy = 0;

  constructor(db: Sqlite, shared: boolean) {
    this.db = db;
    this.#shared = shared;
  }

  create(tables: readonly Table[]): void {
    for (const table of tables) {
      for (const sql of createTableSql(table, dialect)) this.db.exec(sql);
    }
  }

  insertion(table: Table): (row: Readonly<Record<string, unknown>>) => void {
    const columns = columnsOf(table);
    const marks = columns.map(() => "?").join(", ");
    const insert = this.db.prepare(
      `INSERT INTO ${table.name} (${columnNames(table)}) VALUES (${marks})`,
    );
    return (row) => {
      insert.run(...columns.map(({ name }) => toSql(row[name])));
    };
  }

  selection(table: Table): Statement {
    return this.db.prepare(`SELECT ${columnNames(table)} FROM ${table.name}`);
  }

  /** A statement, or several in a transaction; again until the lock is free. */
  retried<A extends unknown[], R>(call: (...parameters: A) => R): (...parameters: A) => R {
    if (!this.#shared) return call;
    const attempt = call as unknown as (...parameters: Five) => R;
    const retrying = (...[a, b, c, d, e]: Five): R => {
      for (let attempts = 1; ; attempts++) {
        try {
          return attempt(a, b, c, d, e);
        } catch (error) {
          if (!isBusy(error) || attempts === MOST_ATTEMPTS) throw error;
          this.busy++;
        }
      }
    };
    return retrying as unknown as (...parameters: A) => R;
  }

  /** Several statements that read one state. */
  reading<A extends unknown[], R>(body: (...parameters: A) => R): (...parameters: A) => R {
    return this.retried(this.db.transaction(body));
  }

  /** Takes the write lock at once: nobody has to give up what it has read (BEGIN IMMEDIATE). */
  writing<A extends unknown[], R>(body: (...parameters: A) => R): (...parameters: A) => R {
    return this.retried(this.db.transaction(body).immediate);
  }
}

export function toSql(value: unknown): Value {
  if (typeof value === "boolean") return value ? 1 : 0;
  return value as Value;
}

/** Also SQLITE_BUSY_SNAPSHOT: a single statement read before another process's commit. */
function isBusy(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return typeof code === "string" && code.startsWith("SQLITE_BUSY");
}
