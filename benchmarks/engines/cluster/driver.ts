// Situ across machines, as far as loopback is one: three nodes, three copies of each row, and worker
// processes that are clients. All transactions are asynchronous, also one at a time.
import { open, type RemoteDatabase, type Table } from "situ";
import { calledObjects } from "../../../workloads/objects/procedures.ts";
import { situObjectsAsync } from "../../../workloads/objects/situ.ts";
import { calledSmallBank } from "../../../workloads/smallbank/procedures.ts";
import { situSmallBankAsync } from "../../../workloads/smallbank/situ-async.ts";
import { clusterTatp } from "../../../workloads/tatp/situ-async.ts";
import { clusterTpcc } from "../../../workloads/tpcc/situ-async.ts";
import type { TpccStore } from "../../../workloads/tpcc/store.ts";
import type { InitialRow, ReadRows } from "../../../workloads/workload.ts";
import { situYcsbAsync } from "../../../workloads/ycsb/situ.ts";
import { firstLine, missingPeer } from "../../harness/peers.ts";
import type { Engine, EngineDriver, EngineHost, StartOptions } from "../engine.ts";
import { situVersion } from "../situ/version.ts";
import { loadCluster } from "./load.ts";
import { nodeCount, startNodes } from "./nodes.ts";
import { clusterRows, clusterTable, clusterTables } from "./tables.ts";

/** Three nodes, their clients and the suite share few cores: what is slow is not to be an error. */
const timeoutMs = 30_000;
const readsAtOnce = 256;

interface ClusterPlace {
  readonly cluster: string;
  readonly connect: readonly string[];
}

export const clusterDriver: EngineDriver = {
  name: "cluster",
  async start(options) {
    try {
      return { available: true, version: situVersion(), value: await startCluster(options) };
    } catch (error) {
      return missingPeer(`situ node did not start: ${firstLine(error)}`);
    }
  },
  async open(place, { tables, protocol, size, calls, isFirst }) {
    const { cluster, connect } = place as unknown as ClusterPlace;
    const own = clusterTables(tables);
    const hints = { extents: Object.fromEntries(own.map(({ name }) => [name, { rows: size }])) };
    const isSized = protocol === "xenic" && size !== undefined;
    const settings = { connect, cluster, timeoutMs, tables: own, ...(isSized && hints) };
    const db = await open(settings as Parameters<typeof open>[0] & { connect: readonly string[] });
    // Nodes that have run another workload still have its rows; those at a NIC cannot be scanned.
    if (isFirst && protocol !== "xenic") {
      for (const table of own) await db.deleteWhere(table, { where: "all" });
    }
    return new ClusterEngine(db, protocol !== "xenic", calls ?? false);
  },
};

async function startCluster(options: StartOptions): Promise<EngineHost> {
  const { cluster, connect, stop } = await startNodes(options);
  return {
    settings:
      `${nodeCount} nodes on loopback, ${nodeCount} copies of each row, ${options.protocol ?? "rpc"}, ` +
      `durability "${options.durability}"`,
    place: { cluster, connect },
    stop,
  };
}

class ClusterEngine implements Engine {
  readonly #db: RemoteDatabase;
  readonly #scans: boolean;
  readonly #calls: boolean;
  /** Of tables that cannot be scanned: the keys that were loaded. */
  readonly #loaded = new Map<Table, unknown[]>();

  constructor(db: RemoteDatabase, scans: boolean, calls: boolean) {
    this.#db = db;
    this.#scans = scans;
    this.#calls = calls;
  }

  load(rows: Parameters<Engine["load"]>[0]): Promise<void> {
    return loadCluster(this.#db, this.#scans ? clusterRows(rows) : this.#noted(clusterRows(rows)));
  }

  readonly rows: ReadRows = (table: Table) =>
    this.#scans
      ? (this.#db.scan(clusterTable(table)) as ReturnType<ReadRows>)
      : this.#byKeys(clusterTable(table));

  ycsb: Engine["ycsb"] = (table) => situYcsbAsync(this.#db, table);
  smallbank: Engine["smallbank"] = () =>
    this.#calls ? calledSmallBank(this.#db) : situSmallBankAsync(this.#db);
  tatp: Engine["tatp"] = () => clusterTatp(this.#db);
  tpcc = (): TpccStore => clusterTpcc(this.#db);
  objects: Engine["objects"] = (table) =>
    this.#calls ? calledObjects(this.#db, table) : situObjectsAsync(this.#db, table);

  /** A client does not count them. */
  retries(): number {
    return 0;
  }

  close(): Promise<void> {
    return this.#db.close();
  }

  *#noted(rows: Iterable<InitialRow>): Iterable<InitialRow> {
    for (const each of rows) {
      const { table, row } = each;
      const [name] = table.key;
      const keys = this.#loaded.get(table);
      const key = (row as Record<string, unknown>)[name];
      if (keys === undefined) this.#loaded.set(table, [key]);
      else keys.push(key);
      yield each;
    }
  }

  /** Of tables at rest, to which no row was added. */
  async *#byKeys(table: Table): AsyncGenerator<Readonly<Record<string, unknown>>> {
    const keys = this.#loaded.get(table) ?? [];
    for (let first = 0; first < keys.length; first += readsAtOnce) {
      const found = await this.#db.getMany(table, keys.slice(first, first + readsAtOnce));
      for (const row of found) if (row !== undefined) yield row as Record<string, unknown>;
    }
  }
}
