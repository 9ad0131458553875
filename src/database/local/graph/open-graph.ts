/** Opens graphs of a local database: their tables, and what the store says about their kinds and types. */

import { SituError } from "../../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../../runtime/known-options.ts";
import { show } from "../../../runtime/show.ts";
import type { IndexRow } from "../../../stores/graph/objects.ts";
import {
  type AssociationTypes,
  type DeclaredGraph,
  declaredGraph,
  definitionOf,
  mergedGraph,
  NO_GRAPH,
  type ObjectKinds,
  type StoredGraph,
} from "../../../tables/graph/definition.ts";
import { declarationOf } from "../../../tables/graph/stored.ts";
import type { Table } from "../../../tables/table.ts";
import type { Database, RemoteDatabase } from "../../database.ts";
import type { Graph, GraphOptions, RemoteGraph } from "../../graph.ts";
import { LocalDatabase } from "../local-database.ts";
import type { LocalSnapshot } from "../local-snapshot.ts";
import { graphsTable, indexTable, leavingTable } from "./graph-tables.ts";
import { LocalGraph } from "./local-graph.ts";

/** The tables that a database has open for its graphs. */
interface GraphTables {
  readonly graphs: ReturnType<typeof graphsTable>;
  readonly leaving: ReturnType<typeof leavingTable>;
  readonly indexes: Map<string, Table<IndexRow, number>>;
}

const opened = new WeakMap<LocalDatabase, GraphTables>();

/**
 * Opens a graph of objects and typed edges in a store, or creates it:
 *
 *     const social = graph(db, {
 *       objects: { user: { name: str(40) } },
 *       associations: { follows: { from: "user", to: "user", inverse: "followedBy" } },
 *     });
 *
 * Kinds and associations that the store does not know yet are added to it; those that it knows must be declared with
 * the same fields (SITU_SCHEMA).
 */
export function graph<O extends ObjectKinds, const A>(
  db: Database,
  options: GraphOptions<O, A>,
): Graph<O, A>;
/** Opens a graph of a cluster, or creates it; its calls are promises. */
export function graph<O extends ObjectKinds, const A>(
  db: RemoteDatabase,
  options: GraphOptions<O, A>,
): Promise<RemoteGraph<O, A>>;
export function graph<O extends ObjectKinds, const A>(
  db: Database | RemoteDatabase,
  options: GraphOptions<O, A>,
): Graph<O, A> | Promise<RemoteGraph<O, A>> {
  if (typeof options !== "object" || options === null) {
    throw new SituError("SITU_TYPE", `graph takes { objects, associations }, not ${show(options)}`);
  }
  refuseUnknownOptions("graph", options, ["name", "objects", "associations"]);
  const { name = "graph", objects } = options;
  const associations = options.associations as AssociationTypes;
  if (db instanceof LocalDatabase) return openLocal(db, name, objects, associations) as never;
  const remote = db as unknown as Partial<OpensGraphs> | null;
  if (typeof remote?.openGraph === "function") {
    return remote.openGraph(name, objects, associations) as never;
  }
  throw new SituError("SITU_TYPE", `graph takes a database that open returned, not ${show(db)}`);
}

/** A database on a cluster: its code is loaded by those who connect to one. */
interface OpensGraphs {
  openGraph(name: string, objects: ObjectKinds, associations: AssociationTypes): Promise<unknown>;
}

function openLocal(
  db: LocalDatabase,
  name: string,
  objects: ObjectKinds,
  associations: AssociationTypes,
): LocalGraph {
  const made = openDeclared(db, name, declaredGraph(name, objects, associations));
  void made.resumeDeletions();
  return made;
}

/** The graphs of a store, with all that it has of them, to be read: deletions that are under way stay so. */
export function storedGraphs(
  db: LocalDatabase,
): { readonly definition: StoredGraph; readonly graph: LocalGraph }[] {
  return db
    .scan(tablesOf(db).graphs)
    .toArray()
    .map(({ name, definition }) => ({ definition, graph: restoredGraph(db, name, definition) }));
}

/** What a snapshot knows of a graph. */
export function definitionAt(
  db: LocalDatabase,
  snapshot: Pick<LocalSnapshot, "get">,
  name: string,
): StoredGraph | undefined {
  return snapshot.get(tablesOf(db).graphs, name)?.definition;
}

/** A graph that is declared as another store had it. */
export function restoredGraph(db: LocalDatabase, name: string, stored: StoredGraph): LocalGraph {
  return openDeclared(db, name, declarationOf(name, stored));
}

function openDeclared(db: LocalDatabase, name: string, declared: DeclaredGraph): LocalGraph {
  const tables = tablesOf(db);
  let index = tables.indexes.get(name);
  if (index === undefined) {
    index = indexTable(name) as unknown as Table<IndexRow, number>;
    db.openTables([index]);
    tables.indexes.set(name, index);
  }
  const stored = db.transactSync((tx): { definition: StoredGraph } => {
    const before = tx.get(tables.graphs, name)?.definition ?? NO_GRAPH;
    const definition = mergedGraph(name, before, declared);
    if (definition !== before) tx.put(tables.graphs, { name, definition });
    return { definition };
  });
  const definition = definitionOf(name, stored.definition, declared);
  return new LocalGraph(name, db, definition, index, tables.leaving);
}

function tablesOf(db: LocalDatabase): GraphTables {
  const found = opened.get(db);
  if (found !== undefined) return found;
  const made = { graphs: graphsTable(), leaving: leavingTable(), indexes: new Map() };
  db.openTables([made.graphs, made.leaving]);
  opened.set(db, made);
  return made;
}
