/** LinkBench on a graph of Situ's: links are edges of two types, whose targets need not exist. */

import { type Database, type Graph, graph, str, u32, u53 } from "situ";
import type { InitialRow, ReadRows } from "../workload.ts";
import { LINK_TYPES } from "./parameters.ts";
import { Link, LinkCount, LinkNode, type LinkStore } from "./store.ts";

const objects = { node: { version: u32(), time: u53(), data: str() } };
const data = { version: u32(), data: str() };
const associations = { link0: { data }, link1: { data } };
type Links = Graph<typeof objects, typeof associations>;

const TYPES = ["link0", "link1"] as const;
const KEEP = { edges: "keep" } as const;

export const linkGraph = (db: Database): Links => graph(db, { objects, associations });

const ROWS_AT_ONCE = 256;

/** Fills a graph with LinkBench's rows; counts come by themselves. */
export function loadLinks(db: Database, rows: Iterable<InitialRow>): void {
  const g = linkGraph(db);
  let batch: InitialRow[] = [];
  const load = (): void => {
    db.transactSync((tx) => {
      const inside = g.in(tx);
      for (const { table, row } of batch) {
        const each = row as Record<string, number> & { readonly data: string };
        if (table === LinkNode) {
          const { id, version, time } = each;
          inside.objAdd("node", { version, time, data: each.data }, { id });
        } else if (table === Link) {
          const { id1, link_type, id2, time, version } = each;
          inside.assocAdd(id1, TYPES[link_type], id2, time, { version, data: each.data });
        }
      }
    });
    batch = [];
  };
  for (const row of rows) {
    batch.push(row);
    if (batch.length === ROWS_AT_ONCE) load();
  }
  load();
}

/** The graph as LinkBench's rows. Lists of deleted nodes are still there: their ids are among the first. */
export function linkRowsOf(db: Database): ReadRows {
  const g = linkGraph(db);
  return async function* (table) {
    const ids = new Set(g.ids());
    if (table === LinkNode) {
      for (const id of ids) yield { id, ...g.objGet("node", id) };
      return;
    }
    let highest = 0;
    for (const id of ids) highest = Math.max(highest, id);
    for (let id = 1; id <= highest; id++) {
      for (let type = 0; type < LINK_TYPES; type++) {
        const links = g.assocCount(id, TYPES[type]);
        if (links === 0) continue;
        if (table === LinkCount) yield { id1: id, link_type: type, links };
        else yield* edgesOf(g, id, type, links);
      }
    }
  };
}

function* edgesOf(g: Links, id1: number, type: number, links: number) {
  for (let position = 0; position < links; position += 10_000) {
    for (const { id2, time, data: fields } of g.assocRange(id1, TYPES[type], position, 10_000)) {
      yield { id1, link_type: type, id2, time, ...fields };
    }
  }
}

/** One operation after the other. */
export function situLinks(db: Database): LinkStore {
  const g = linkGraph(db);
  return {
    ...readsOf(g),
    addNode(id, time, text) {
      g.objAdd("node", { version: 1, time, data: text }, { id });
    },
    updateNode: (id, time, text) =>
      db.transactSync((tx) => {
        const inside = g.in(tx);
        const before = inside.objGet("node", id);
        if (before === undefined) return false;
        inside.objUpdate("node", id, { version: before.version + 1, time, data: text });
        return true;
      }),
    deleteNode: (id) => db.transactSync((tx) => g.in(tx).objDelete("node", id, KEEP).deleted),
    addLink: (id1, type, id2, time, text) =>
      db.transactSync((tx) => {
        const inside = g.in(tx);
        const version = 1 + (inside.assocGet(id1, TYPES[type], id2)?.data.version ?? 0);
        return inside.assocAdd(id1, TYPES[type], id2, time, { version, data: text });
      }),
    deleteLink: (id1, type, id2) => g.assocDelete(id1, TYPES[type], id2),
    changeType: (id1, type, id2, newType) =>
      db.transactSync((tx) => {
        const inside = g.in(tx);
        const isThere = inside.assocGet(id1, TYPES[newType], id2) !== undefined;
        if (!inside.assocChangeType(id1, TYPES[type], id2, TYPES[newType])) return 0;
        return isThere ? -1 : 1;
      }),
  };
}

/** Several in flight: commits that wait for the disk wait together. */
export function situLinksAsync(db: Database): LinkStore {
  const g = linkGraph(db);
  return {
    ...readsOf(g),
    async addNode(id, time, text) {
      await db.transact((tx) => g.in(tx).objAdd("node", { version: 1, time, data: text }, { id }));
    },
    updateNode: (id, time, text) =>
      db.transact(async (tx) => {
        const inside = g.in(tx);
        const before = await inside.objGet("node", id);
        if (before === undefined) return false;
        await inside.objUpdate("node", id, { version: before.version + 1, time, data: text });
        return true;
      }),
    deleteNode: async (id) =>
      (await db.transact((tx) => g.in(tx).objDelete("node", id, KEEP))).deleted,
    addLink: (id1, type, id2, time, text) =>
      db.transact(async (tx) => {
        const inside = g.in(tx);
        const before = await inside.assocGet(id1, TYPES[type], id2);
        const version = 1 + (before?.data.version ?? 0);
        return inside.assocAdd(id1, TYPES[type], id2, time, { version, data: text });
      }),
    deleteLink: (id1, type, id2) =>
      db.transact((tx) => g.in(tx).assocDelete(id1, TYPES[type], id2)),
    changeType: (id1, type, id2, newType) =>
      db.transact(async (tx) => {
        const inside = g.in(tx);
        const isThere = (await inside.assocGet(id1, TYPES[newType], id2)) !== undefined;
        if (!(await inside.assocChangeType(id1, TYPES[type], id2, TYPES[newType]))) return 0;
        return isThere ? -1 : 1;
      }),
  };
}

type LinkReads = Pick<
  LinkStore,
  "getNode" | "countLinks" | "getLinks" | "getList" | "getTimeRange"
>;

function readsOf(g: Links): LinkReads {
  return {
    getNode: (id) => g.objGet("node", id) !== undefined,
    countLinks: (id1, type) => g.assocCount(id1, TYPES[type]),
    getLinks: (id1, type, ids) => g.assocGet(id1, TYPES[type], ids),
    getList: (id1, type, limit) => g.assocRange(id1, TYPES[type], 0, limit),
    getTimeRange: (id1, type, high, low, limit) =>
      g.assocTimeRange(id1, TYPES[type], high, low, limit),
  };
}
