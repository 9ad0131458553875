/** The tables that graphs keep in their store: what they are, which objects they have, which are on their way out. */

import { autoIncrement, json, pointer, str, u8, u53 } from "../../../tables/fields.ts";
import type { StoredGraph } from "../../../tables/graph/definition.ts";
import { GRAPHS, graphIndexName, LEAVING_OBJECTS } from "../../../tables/own-tables.ts";
import { table } from "../../../tables/table.ts";

/** Kinds and types of each graph, by its name. */
export const graphsTable = () =>
  table(GRAPHS, { name: str(100), definition: json<StoredGraph>() }, { key: "name" });

/** Objects that are being deleted in several steps. */
export const leavingTable = () =>
  table(LEAVING_OBJECTS, { graph: str(100), id: u53() }, { key: ["graph", "id"], ordered: true });
export type LeavingTable = ReturnType<typeof leavingTable>;

/** Where the objects of a graph are. */
export const indexTable = (graph: string) =>
  table(
    graphIndexName(graph),
    { id: autoIncrement(), kind: u8(), state: u8(), at: pointer() },
    { key: "id" },
  );
