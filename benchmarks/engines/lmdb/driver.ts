// lmdb, through lmdb-js: one environment, which all processes open.
import type { Table } from "situ";
import type { InitialRow } from "../../../workloads/workload.ts";
import { loadPeer, needPeer, type Peer } from "../../harness/peers.ts";
import type {
  Durability,
  Engine,
  EngineDriver,
  EngineHost,
  OpenOptions,
  Place,
  StartOptions,
} from "../engine.ts";
import { loadRows } from "./load.ts";
import type { LmdbModule } from "./module.ts";
import { lmdbObjects } from "./objects.ts";
import { environmentOptions, folderFor } from "./settings.ts";
import { lmdbSmallBank } from "./smallbank.ts";
import { type AnyRow, LmdbTables, type OpenTable } from "./tables.ts";
import { lmdbTatp } from "./tatp.ts";
import { type InTransaction, manyInFlight, oneAfterTheOther } from "./transactions.ts";
import { lmdbYcsb } from "./ycsb.ts";

const durabilityWords: Readonly<Record<Durability, string>> = {
  none: "/dev/shm, noSync, useWritemap",
  lazy: "on disk, noMetaSync: a crash may undo the last commit",
  sync: "on disk, synced in the commit (no overlappingSync)",
};

export const lmdbDriver: EngineDriver = {
  name: "lmdb",

  async start(options): Promise<Peer<EngineHost>> {
    const peer = loadPeer<LmdbModule>("lmdb");
    if (!peer.available) return peer;
    const { path, remove } = folderFor(options.durability);
    const value: EngineHost = {
      settings: describe(options),
      place: { path },
      stop: async () => remove(),
    };
    return { ...peer, value };
  },

  async open(place: Place, options: OpenOptions): Promise<Engine> {
    const lmdb = needPeer<LmdbModule>("lmdb");
    const env = lmdb.open(environmentOptions(String(place.path), options));
    const inTransaction = options.inFlight === 1 ? oneAfterTheOther(env) : manyInFlight(env);
    return new LmdbEngine(new LmdbTables(env, options.tables), inTransaction);
  },
};

function describe(options: StartOptions): string {
  const transactions =
    options.inFlight === 1
      ? "transactionSync"
      : "transaction(), those of a turn committed together";
  return `${durabilityWords[options.durability]}; ${transactions}; msgpack, shared structures`;
}

class LmdbEngine implements Engine {
  readonly #tables: LmdbTables;
  readonly #inTransaction: InTransaction;

  constructor(tables: LmdbTables, inTransaction: InTransaction) {
    this.#tables = tables;
    this.#inTransaction = inTransaction;
  }

  async load(rows: Iterable<InitialRow>): Promise<void> {
    loadRows(this.#tables, rows);
  }

  readonly rows = (table: Table): AsyncIterable<AnyRow> => readAll(this.#tables.table(table));

  readonly ycsb: Engine["ycsb"] = (table) => lmdbYcsb(this.#tables, this.#inTransaction, table);

  readonly smallbank: Engine["smallbank"] = () => lmdbSmallBank(this.#tables, this.#inTransaction);

  readonly tatp: Engine["tatp"] = () => lmdbTatp(this.#tables, this.#inTransaction);

  readonly objects: Engine["objects"] = (table) =>
    lmdbObjects(this.#tables, this.#inTransaction, table);

  /** There is one writer at a time: the others wait, and nothing is undone. */
  retries(): number {
    return 0;
  }

  close(): Promise<void> {
    return this.#tables.env.close();
  }
}

async function* readAll({ database }: OpenTable): AsyncIterable<AnyRow> {
  for (const { value } of database.getRange({})) yield value;
}
