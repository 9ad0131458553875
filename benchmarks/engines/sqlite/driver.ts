// SQLite, through better-sqlite3. It answers within the call, so it runs one transaction after the
// other, however many are asked for.
import type { Table } from "situ";
import type { LinkStore } from "../../../workloads/linkbench/store.ts";
import type { TpccStore } from "../../../workloads/tpcc/store.ts";
import type { InitialRow } from "../../../workloads/workload.ts";
import { loadPeer, needPeer, type Peer } from "../../harness/peers.ts";
import type { Engine, EngineDriver, EngineHost, OpenOptions, Place } from "../engine.ts";
import { columnsOf } from "../tables.ts";
import { Connection } from "./connection.ts";
import { sqliteLinks } from "./linkbench.ts";
import type { SqliteModule } from "./module.ts";
import { sqliteObjects } from "./objects.ts";
import { describeSettings, pageBytes, pathFor, pragmasFor } from "./settings.ts";
import { sqliteSmallBank } from "./smallbank.ts";
import { sqliteTatp } from "./tatp.ts";
import { sqliteTpcc } from "./tpcc.ts";
import { sqliteYcsb } from "./ycsb.ts";

/** better-sqlite3's default, and more than the longest checkpoint. */
const BUSY_TIMEOUT_MS = 5_000;
const LOAD_BATCH = 10_000;

export const sqliteDriver: EngineDriver = {
  name: "sqlite",

  async start(options): Promise<Peer<EngineHost>> {
    const peer = loadPeer<SqliteModule>("better-sqlite3");
    if (!peer.available) return peer;
    const { path, remove } = pathFor(options);
    const value: EngineHost = {
      settings: describeSettings(options),
      place: { path },
      stop: async () => remove(),
    };
    return { ...peer, value };
  },

  async open(place: Place, options: OpenOptions): Promise<Engine> {
    const Sqlite = needPeer<SqliteModule>("better-sqlite3");
    const db = new Sqlite(String(place.path), { timeout: BUSY_TIMEOUT_MS });
    // Before there is anything in the file.
    if (options.isFirst) db.pragma(`page_size = ${pageBytes(options.tables)}`);
    for (const pragma of pragmasFor(options)) db.pragma(pragma);
    const connection = new Connection(db, options.processes > 1);
    if (options.isFirst) connection.create(options.tables);
    return new SqliteEngine(connection);
  },
};

class SqliteEngine implements Engine {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async load(rows: Iterable<InitialRow>): Promise<void> {
    const insertions = new Map<string, ReturnType<Connection["insertion"]>>();
    const insert = this.#connection.writing((batch: readonly InitialRow[]) => {
      for (const { table, row } of batch) {
        let insertion = insertions.get(table.name);
        if (insertion === undefined) {
          insertion = this.#connection.insertion(table);
          insertions.set(table.name, insertion);
        }
        insertion(row as Readonly<Record<string, unknown>>);
      }
    });
    let batch: InitialRow[] = [];
    for (const row of rows) {
      batch.push(row);
      if (batch.length < LOAD_BATCH) continue;
      insert(batch);
      batch = [];
    }
    insert(batch);
    // For the planner, after a bulk load (sqlite.org/lang_analyze.html).
    this.#connection.db.exec("ANALYZE");
  }

  readonly rows = (table: Table): AsyncIterable<Readonly<Record<string, unknown>>> =>
    readAll(this.#connection, table);

  readonly ycsb: Engine["ycsb"] = (table) => sqliteYcsb(this.#connection, table);

  readonly smallbank: Engine["smallbank"] = () => sqliteSmallBank(this.#connection);

  readonly tatp: Engine["tatp"] = () => sqliteTatp(this.#connection);

  readonly tpcc = (): TpccStore => sqliteTpcc(this.#connection);

  readonly linkbench = (): LinkStore => sqliteLinks(this.#connection);

  readonly objects: Engine["objects"] = (table) => sqliteObjects(this.#connection, table);

  retries(): number {
    return this.#connection.busy;
  }

  async close(): Promise<void> {
    this.#connection.db.close();
  }
}

async function* readAll(
  connection: Connection,
  table: Table,
): AsyncIterable<Readonly<Record<string, unknown>>> {
  const booleans = columnsOf(table).filter(({ kind }) => kind === "bool");
  for (const each of connection.selection(table).iterate()) {
    const row = each as Record<string, unknown>;
    for (const { name } of booleans) row[name] = row[name] !== 0;
    yield row;
  }
}
