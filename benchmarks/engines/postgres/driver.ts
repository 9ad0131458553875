// PostgreSQL, through node-postgres ("pg"): measured against postgres.js, its pipeline mode is the
// faster one.
import type { Table } from "situ";
import type { LinkStore } from "../../../workloads/linkbench/store.ts";
import type { TpccStore } from "../../../workloads/tpcc/store.ts";
import type { InitialRow } from "../../../workloads/workload.ts";
import { diskFolder } from "../../durable/disk.ts";
import { firstLine, loadPeer, missingPeer, needPeer, type Peer } from "../../harness/peers.ts";
import {
  createCluster,
  findPostgres,
  type PostgresPrograms,
} from "../../harness/postgres-server.ts";
import type {
  Durability,
  Engine,
  EngineDriver,
  EngineHost,
  OpenOptions,
  Place,
  StartOptions,
} from "../engine.ts";
import { plainClient } from "./connection.ts";
import { Database, writerCount } from "./database.ts";
import { postgresLinks } from "./linkbench.ts";
import type { PgClient, PgModule } from "./module.ts";
import { postgresObjects } from "./objects.ts";
import { postgresSmallBank } from "./smallbank.ts";
import { copyRows, createTables, readTable } from "./tables.ts";
import { postgresTatp } from "./tatp.ts";
import { postgresTpcc } from "./tpcc.ts";
import { createTpccFunctions, isTpcc, tpccSettings } from "./tpcc-functions.ts";
import { postgresYcsb } from "./ycsb.ts";

/** In memory: what need not survive needs no disk. */
const memoryFolder = process.env.SITU_MEMORY_DIR ?? "/dev/shm";

const persistence: Readonly<Record<Durability, string>> = {
  none: "unlogged tables in memory, fsync off",
  lazy: "synchronous_commit off",
  sync: "synchronous_commit on",
};

export const postgresDriver: EngineDriver = {
  name: "postgres",

  async start(options): Promise<Peer<EngineHost>> {
    const client = loadPeer<PgModule>("pg");
    if (!client.available) return client;
    const programs = findPostgres();
    if (!programs.available) return programs;
    try {
      const value = await startCluster(programs.value, options, client.version);
      return { ...programs, value };
    } catch (error) {
      return missingPeer(firstLine(error));
    }
  },

  async open(place: Place, options: OpenOptions): Promise<Engine> {
    const pg = needPeer<PgModule>("pg");
    const host = String(place.host);
    const { durability, inFlight, isFirst, tables } = options;
    const newClient = (): PgClient => plainClient(pg, host);
    if (isFirst) {
      await withClient(newClient, async (client) => {
        await createTables(client, tables, durability);
        if (isTpcc(tables)) await createTpccFunctions(client);
      });
    }
    const settings = isTpcc(tables) ? tpccSettings : "";
    const database = await Database.open(pg, host, durability, inFlight, settings);
    return new PostgresEngine(database, newClient);
  },
};

async function startCluster(
  programs: PostgresPrograms,
  options: StartOptions,
  clientVersion: string,
): Promise<EngineHost> {
  const { durability } = options;
  const parent = durability === "none" ? memoryFolder : diskFolder();
  const settings = ["workloads.conf", `${durability}.conf`];
  const cluster = await createCluster(programs, parent, settings);
  try {
    await (await cluster.start()).close();
  } catch (error) {
    await cluster.remove();
    throw error;
  }
  return {
    settings: describeSettings(clientVersion, options),
    place: { host: cluster.socketFolder },
    stop: () => cluster.remove(),
  };
}

function describeSettings(clientVersion: string, { durability, inFlight }: StartOptions): string {
  const writers = writerCount(durability, inFlight);
  const connections =
    inFlight === 1
      ? "one connection per process"
      : `${writers} writing and 1 reading connection per process, ${inFlight} statements pipelined`;
  return [
    persistence[durability],
    "serializable (TPC-C: read committed)",
    `pg ${clientVersion} over a unix socket`,
    connections,
    "each transaction one prepared statement",
  ].join(", ");
}

class PostgresEngine implements Engine {
  readonly #database: Database;
  readonly #newClient: () => PgClient;

  constructor(database: Database, newClient: () => PgClient) {
    this.#database = database;
    this.#newClient = newClient;
  }

  load(rows: Iterable<InitialRow>): Promise<void> {
    return withClient(this.#newClient, (client) => copyRows(client, rows));
  }

  readonly rows = (table: Table): AsyncIterable<Readonly<Record<string, unknown>>> =>
    rowsOf(this.#newClient, table);

  readonly ycsb: Engine["ycsb"] = (table) => postgresYcsb(this.#database, table);

  readonly smallbank: Engine["smallbank"] = () => postgresSmallBank(this.#database);

  readonly tatp: Engine["tatp"] = () => postgresTatp(this.#database);

  readonly tpcc = (): TpccStore => postgresTpcc(this.#database);

  readonly linkbench = (): LinkStore => postgresLinks(this.#database);

  readonly objects: Engine["objects"] = (table) => postgresObjects(this.#database, table);

  retries(): number {
    return this.#database.retries;
  }

  close(): Promise<void> {
    return this.#database.close();
  }
}

async function withClient(
  newClient: () => PgClient,
  use: (client: PgClient) => Promise<void>,
): Promise<void> {
  const client = newClient();
  await client.connect();
  try {
    await use(client);
  } finally {
    await client.end();
  }
}

async function* rowsOf(
  newClient: () => PgClient,
  table: Table,
): AsyncIterable<Readonly<Record<string, unknown>>> {
  const client = newClient();
  await client.connect();
  try {
    yield* readTable(client, table);
  } finally {
    await client.end();
  }
}
