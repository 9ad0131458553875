// Situ across machines, as far as loopback is one: three nodes, three copies of each row, and worker
// processes that are clients. All transactions are asynchronous, also one at a time.
import { open, type RemoteDatabase, type Table } from "situ";
import { situObjectsAsync } from "../../../workloads/objects/situ.ts";
import { situSmallBankAsync } from "../../../workloads/smallbank/situ-async.ts";
import { clusterTatp } from "../../../workloads/tatp/situ-async.ts";
import { clusterTpcc } from "../../../workloads/tpcc/situ-async.ts";
import type { TpccStore } from "../../../workloads/tpcc/store.ts";
import type { ReadRows } from "../../../workloads/workload.ts";
import { situYcsbAsync } from "../../../workloads/ycsb/situ.ts";
import { firstLine, missingPeer } from "../../harness/peers.ts";
import type { Engine, EngineDriver, EngineHost, StartOptions } from "../engine.ts";
import { situVersion } from "../situ/version.ts";
import { loadCluster } from "./load.ts";
import { nodeCount, startNodes } from "./nodes.ts";
import { clusterRows, clusterTable, clusterTables } from "./tables.ts";

/** Three nodes, their clients and the suite share few cores: what is slow is not to be an error. */
const timeoutMs = 30_000;

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
  async open(place, { tables, isFirst }) {
    const { cluster, connect } = place as unknown as ClusterPlace;
    const own = clusterTables(tables);
    const db = await open({ connect, cluster, timeoutMs, tables: own });
    // Nodes that have run another workload still have its rows.
    if (isFirst) for (const table of own) await db.deleteWhere(table, { where: "all" });
    return new ClusterEngine(db);
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

  constructor(db: RemoteDatabase) {
    this.#db = db;
  }

  load(rows: Parameters<Engine["load"]>[0]): Promise<void> {
    return loadCluster(this.#db, clusterRows(rows));
  }

  readonly rows: ReadRows = (table: Table) =>
    this.#db.scan(clusterTable(table)) as ReturnType<ReadRows>;

  ycsb: Engine["ycsb"] = (table) => situYcsbAsync(this.#db, table);
  smallbank: Engine["smallbank"] = () => situSmallBankAsync(this.#db);
  tatp: Engine["tatp"] = () => clusterTatp(this.#db);
  tpcc = (): TpccStore => clusterTpcc(this.#db);
  objects: Engine["objects"] = (table) => situObjectsAsync(this.#db, table);

  /** A client does not count them. */
  retries(): number {
    return 0;
  }

  close(): Promise<void> {
    return this.#db.close();
  }
}
