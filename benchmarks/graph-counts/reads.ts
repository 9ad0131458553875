// Reads of memory per lock-free operation of a graph on a cluster, as FaRM counts them (§4.4): TAO's mix on LinkBench's graph, on
// three simulated nodes whose protocol reads by verb, by one client that remembers where rows lie. Virtual time: the load
// of this machine does not matter.
import { graph, type RemoteDatabase, str, u32, u53 } from "situ";
import { SimulatedClient } from "../../simulation/cluster/client.ts";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { graph as openGraph } from "../../src/database/local/graph/open-graph.ts";
import type { RemoteGraph } from "../../src/database/remote/graph/remote-graph.ts";
import { linkbench } from "../../workloads/linkbench/linkbench.ts";
import { Link, LinkNode, type LinkStore } from "../../workloads/linkbench/store.ts";
import { counted } from "../harness/figures.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "../trust/measure.ts";

const BAR = { atMost: 1.05 };
const NODES = 3;
const OBJECTS = 400;
/** Operations before those that are counted: what a client remembers. */
const WARM_UP = 12_000;
const COUNTED = 12_000;
const DRAWS = 32_768;
const TYPES = ["link0", "link1"] as const;
const KEEP = { edges: "keep" } as const;

const data = { version: u32(), data: str() };
const definition = {
  objects: { node: { version: u32(), time: u53(), data: str() } },
  associations: { link0: { data }, link1: { data } },
};
const typed = (db: RemoteDatabase) => graph(db, definition);
type Links = Awaited<ReturnType<typeof typed>>;

export const reads: TrustMeasure = {
  name: "reads",
  async run({ options }: TrustContext): Promise<TrustResult> {
    const fabric = new SimulatedFabric({ seed: options.seed });
    const members = Array.from({ length: NODES }, (_, id) => ({ id, host: "simulated", port: id }));
    const configuration = configurationOf({ nodes: members, backups: 1 }, "graph");
    const nodes = members.map(({ id }) => new SimulatedNode(fabric, id, configuration));
    const client = new SimulatedClient(fabric, {
      number: 0,
      configuration,
      timeoutMs: 60_000,
      protocol: "one-sided",
    });
    const workload = linkbench("tao", OBJECTS, { draws: DRAWS });
    const running = count();
    const { perOperation, operations } = await settled(fabric, running);
    for (const node of nodes) await node.close();
    return {
      figures: [
        counted("reads of memory per lock-free operation of a graph", BAR, perOperation, "reads"),
      ],
      notes: [
        `reads: ${operations.toLocaleString("en")} operations of TAO's mix on ${workload.scale}, ${NODES} simulated nodes; FaRM has 1.02`,
      ],
    };

    async function count() {
      await client.arrive([]);
      const g = (await openGraph(client.db as never, definition as never)) as unknown as Links;
      for (const { table, row } of workload.rows()) await load(g, table, row as never);
      const session = workload.session(storeOf(g), { seed: options.seed, lane: 0, lanes: 1 });
      for (let i = 0; i < WARM_UP; i++) await session.next();
      const { objects, lists } = g as unknown as RemoteGraph;
      const before = [objects.reads + lists.reads, objects.lookups + lists.lookups];
      for (let i = 0; i < COUNTED; i++) await session.next();
      const operations = objects.lookups + lists.lookups - before[1];
      return { operations, perOperation: (objects.reads + lists.reads - before[0]) / operations };
    }
  },
};

/** Virtual time goes on while a program waits. */
async function settled<T>(fabric: SimulatedFabric, running: Promise<T>): Promise<T> {
  let isOver = false;
  const watched = running.finally(() => {
    isOver = true;
  });
  watched.catch(() => {});
  while (!(await fabric.settle(() => isOver))) await new Promise(setImmediate);
  return watched;
}

async function load(
  g: Links,
  table: unknown,
  row: Record<string, number> & { readonly data: string },
): Promise<void> {
  const { version, time } = row;
  if (table === LinkNode) {
    await g.objAdd("node", { version, time, data: row.data }, { id: row.id });
  } else if (table === Link) {
    await g.assocAdd(row.id1, TYPES[row.link_type], row.id2, time, { version, data: row.data });
  }
}

function storeOf(g: Links): LinkStore {
  const isFound = async (update: Promise<void>): Promise<boolean> => {
    try {
      await update;
      return true;
    } catch (error) {
      if ((error as { code?: unknown }).code === "SITU_MISSING") return false;
      throw error;
    }
  };
  return {
    getNode: async (id) => (await g.objGet("node", id)) !== undefined,
    async addNode(id, time, text) {
      await g.objAdd("node", { version: 1, time, data: text }, { id });
    },
    updateNode: (id, time, text) => isFound(g.objUpdate("node", id, { time, data: text })),
    deleteNode: async (id) => (await g.objDelete("node", id, KEEP)).deleted,
    addLink: (id1, type, id2, time, text) =>
      g.assocAdd(id1, TYPES[type], id2, time, { version: 1, data: text }),
    deleteLink: (id1, type, id2) => g.assocDelete(id1, TYPES[type], id2),
    changeType: async (id1, type, id2, newType) =>
      (await g.assocChangeType(id1, TYPES[type], id2, TYPES[newType])) ? 1 : 0,
    countLinks: (id1, type) => g.assocCount(id1, TYPES[type]),
    getLinks: (id1, type, ids) => g.assocGet(id1, TYPES[type], ids),
    getList: (id1, type, limit) => g.assocRange(id1, TYPES[type], 0, limit),
    getTimeRange: (id1, type, high, low, limit) =>
      g.assocTimeRange(id1, TYPES[type], high, low, limit),
  };
}
