/** Objects and edges that were read from text into a graph (graph-lines.ts), by the calls that every program has. */

import type { LocalGraph } from "../database/local/graph/local-graph.ts";
import type { SyncTransaction } from "../database/local/sync-transaction.ts";
import type { Transaction } from "../database/transaction.ts";
import { SituError } from "../runtime/errors.ts";
import { show } from "../runtime/show.ts";
import type { GraphLine } from "./graph-lines.ts";
import type { OnConflict, RowSink } from "./load-table.ts";

/** The calls that a load writes with: they check what they are given. */
interface Calls {
  objGet(id: unknown): { readonly kind: string } | undefined;
  objAdd(kind: unknown, data: unknown, options: { readonly id: unknown }): number;
  objUpdate(kind: unknown, id: unknown, data: unknown): void;
  assocGet(id1: unknown, type: unknown, id2: unknown): unknown;
  assocAdd(id1: unknown, type: unknown, id2: unknown, time: unknown, data: unknown): boolean;
}

export class GraphSink implements RowSink {
  readonly subject: string;
  readonly #graph: LocalGraph;

  constructor(graph: LocalGraph) {
    this.subject = `graph ${graph.name}`;
    this.#graph = graph;
  }

  add(tx: Transaction, row: object, onConflict: OnConflict): boolean {
    const line = row as GraphLine;
    const calls = this.#graph.in(tx) as Calls;
    if (Object.hasOwn(line, "type")) return this.#addEdge(calls, line, onConflict);
    if (line.deleted !== undefined) return this.#addShell(tx, line, onConflict);
    return this.#addObject(calls, line, onConflict);
  }

  #addObject(calls: Calls, { id, kind, data = {} }: GraphLine, onConflict: OnConflict): boolean {
    // A number, or objGet would take it for the name of a kind.
    const found = typeof id === "number" ? calls.objGet(id) : undefined;
    if (found !== undefined && onConflict === "skip") return false;
    if (found?.kind === kind && onConflict === "replace") calls.objUpdate(kind, id, data);
    else calls.objAdd(kind, data, { id: id ?? null });
    return true;
  }

  #addShell(tx: Transaction, { id, kind, deleted }: GraphLine, onConflict: OnConflict): boolean {
    if (deleted !== true) {
      throw new SituError("SITU_TYPE", `deleted is true or not there, not ${show(deleted)}`);
    }
    if (this.#graph.addShell(tx as unknown as SyncTransaction, kind, id)) return true;
    if (onConflict !== "fail") return false;
    throw new SituError("SITU_EXISTS", `${this.subject} has an object ${show(id)} already`);
  }

  #addEdge(calls: Calls, line: GraphLine, onConflict: OnConflict): boolean {
    const { from, type, to, time = null, data } = line;
    if (onConflict !== "replace" && typeof to === "number") {
      const isThere = calls.assocGet(from, type, to) !== undefined;
      if (isThere && onConflict === "skip") return false;
      if (isThere) {
        throw new SituError(
          "SITU_EXISTS",
          `${this.subject} has an edge ${show(type)} from ${show(from)} to ${to} already`,
        );
      }
    }
    calls.assocAdd(from, type, to, time, data);
    return true;
  }
}
