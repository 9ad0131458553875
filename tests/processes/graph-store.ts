/** The graph of the storm, and what must hold in it. */

import { type Database, type DurabilityMode, graph, open, str, u32 } from "../../src/index.ts";

export const IDS = 40;
/** The storm of large lists has so many objects in the middle, with up to two edges to and from each of the others. */
export const HUBS = 2;
export const SPOKES = 700;

export const openGraph = (db: Database) =>
  graph(db, {
    objects: { user: { name: str() } },
    associations: {
      follows: { from: "user", to: "user", inverse: "followedBy", data: { n: u32() } },
      blocks: { from: "user", to: "user", inverse: "blockedBy", data: { n: u32() } },
    },
  });
export type StormGraph = ReturnType<typeof openGraph>;

export const openStore = (path: string, durability: DurabilityMode = "none"): Promise<Database> =>
  open({ path, memoryBytes: 64 * 2 ** 20, durability, timeoutMs: 60_000 });

/** Adds a hub unless it is there, and the edges to and from its spokes, some to a transaction. */
export function fillHub(db: Database, g: StormGraph, hub: number, perTransaction = 50): void {
  try {
    g.objAdd("user", { name: `hub ${hub}` }, { id: hub });
  } catch (error) {
    if ((error as { code?: string }).code !== "SITU_EXISTS") throw error;
  }
  for (let first = HUBS + 1; first <= HUBS + SPOKES; first += perTransaction) {
    db.transactSync((tx) => {
      const inside = g.in(tx);
      const end = Math.min(first + perTransaction, HUBS + SPOKES + 1);
      for (let spoke = first; spoke < end; spoke++) {
        inside.assocAdd(hub, "follows", spoke, (spoke * 37) % 1_000, { n: spoke });
        inside.assocAdd(spoke, "follows", hub, (spoke * 53) % 1_000, { n: spoke });
      }
    });
  }
}

const PAIRS = [
  ["follows", "followedBy"],
  ["followedBy", "follows"],
  ["blocks", "blockedBy"],
  ["blockedBy", "blocks"],
] as const;

type Reads = Pick<StormGraph, "objGet" | "assocGet" | "assocCount" | "assocRange">;

/** Both directions of every edge, counts and order. Of objects that are being deleted only one end is looked at. */
export function graphProblems(reads: Reads, ids: Iterable<number>): string[] {
  const problems: string[] = [];
  for (const id of ids) {
    const isThere = reads.objGet("user", id) !== undefined;
    for (const [type, inverse] of PAIRS) {
      const edges = reads.assocRange(id, type, 0, 10_000);
      if (edges.length !== reads.assocCount(id, type)) {
        problems.push(
          `${id} ${type}: ${edges.length} edges, counted ${reads.assocCount(id, type)}`,
        );
      }
      if (!isThere && edges.length > 0)
        problems.push(`${id} is gone and has ${edges.length} edges`);
      for (const [i, edge] of edges.entries()) {
        if (i > 0 && edge.time > edges[i - 1].time) problems.push(`${id} ${type}: out of order`);
        const back = reads.assocGet(edge.id2, inverse, id);
        if (back?.time !== edge.time || back.data.n !== edge.data.n) {
          problems.push(`${id} ${type} ${edge.id2} at ${edge.time}: its inverse is ${back?.time}`);
        }
      }
    }
  }
  return problems;
}
