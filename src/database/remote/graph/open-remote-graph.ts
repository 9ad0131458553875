/** Opens graphs of a cluster: their tables, and what the cluster says about their kinds and types. */

import { RememberedRows } from "../../../protocols/execute/remembered-rows.ts";
import type { RemoteTable } from "../../../protocols/execute/remote-table.ts";
import {
  type AssociationTypes,
  declaredGraph,
  definitionOf,
  mergedGraph,
  NO_GRAPH,
  type ObjectKinds,
  type StoredGraph,
} from "../../../tables/graph/definition.ts";
import { type clusterGraphs, type GraphRows, graphRows } from "../../../tables/graph/row-tables.ts";
import type { Table } from "../../../tables/table.ts";
import { type GraphHost, RemoteGraph } from "./remote-graph.ts";
import { RowOperations } from "./row-operations.ts";

export type ClusterGraphs = ReturnType<typeof clusterGraphs>;

/** A database that graphs are opened in. */
export interface OpeningHost extends GraphHost {
  openTables(tables: readonly Table[]): Promise<void>;
  tableOf(table: Table): RemoteTable;
}

/** The tables that a database has open for its graphs. */
const opened = new WeakMap<OpeningHost, Map<string, Promise<GraphRows>>>();

export async function openRemoteGraph(
  host: OpeningHost,
  graphs: ClusterGraphs,
  name: string,
  objects: ObjectKinds,
  associations: AssociationTypes,
): Promise<RemoteGraph> {
  const declared = declaredGraph(name, objects, associations);
  const rows = await rowsOf(host, name);
  const stored = await host.transact(async (tx): Promise<StoredGraph> => {
    const before = (await tx.get(graphs, name))?.definition ?? NO_GRAPH;
    const definition = mergedGraph(name, before, declared);
    if (definition !== before) await tx.put(graphs, { name, definition });
    return definition;
  });
  const definition = definitionOf(name, stored, declared);
  const remembered = (table: Table): RememberedRows => new RememberedRows(host.tableOf(table));
  const made = new RemoteGraph(
    new RowOperations(name, definition, rows, graphs),
    host,
    remembered(rows.objects),
    remembered(rows.lists),
  );
  void made.resumeDeletions();
  return made;
}

function rowsOf(host: OpeningHost, name: string): Promise<GraphRows> {
  const all = opened.get(host) ?? new Map<string, Promise<GraphRows>>();
  opened.set(host, all);
  const found = all.get(name) ?? openRows(host, name);
  all.set(name, found);
  // One that has failed may be tried again.
  found.catch(() => all.delete(name));
  return found;
}

async function openRows(host: OpeningHost, name: string): Promise<GraphRows> {
  const rows = graphRows(name);
  await host.openTables(Object.values(rows));
  return rows;
}
