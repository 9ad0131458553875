/**
 * The objects and edges of a graph as text, piece by piece, all of one snapshot. Objects come first: an edge can be
 * loaded once both of its ends are there. An object that is being deleted is gone, and so are its edges, of which
 * some may still be seen from their other end.
 */

import type { LocalGraph } from "../database/local/graph/local-graph.ts";
import type { LocalSnapshot } from "../database/local/local-snapshot.ts";
import { nowMs, turn } from "../runtime/clock.ts";
import { MAX_EDGES_READ, SCAN_YIELD_MS } from "../runtime/limits.ts";
import type { AssociationType } from "../tables/graph/definition.ts";
import type { DumpTableOptions } from "./dump-table.ts";
import { type EdgeOfList, GraphLinesWriter } from "./graph-lines.ts";

/** Characters of a piece of text. */
const PIECE_LENGTH = 64 * 1024;

/** The calls that a dump reads with. */
interface Reads {
  objGet(id: number): { readonly data: unknown } | undefined;
  assocCount(id: number, type: string): number;
  assocRange(id: number, type: string, position: number, limit: number): EdgeOfList[];
}

export async function* dumpGraph(
  graph: LocalGraph,
  snapshot: LocalSnapshot,
  { signal, onProgress }: Pick<DumpTableOptions, "signal" | "onProgress">,
): AsyncGenerator<string, void, void> {
  const subject = `graph ${graph.name}`;
  let rows = 0;
  let turnMs = nowMs();
  let piece = "";
  for (const line of linesOf(graph, snapshot)) {
    piece += line;
    rows++;
    if (piece.length < PIECE_LENGTH) continue;
    signal?.throwIfAborted();
    yield piece;
    piece = "";
    if (nowMs() - turnMs < SCAN_YIELD_MS) continue;
    onProgress?.({ subject, rows });
    await turn();
    turnMs = nowMs();
  }
  if (piece !== "") yield piece;
  onProgress?.({ subject, rows });
}

function* linesOf(graph: LocalGraph, snapshot: LocalSnapshot): Iterable<string> {
  const { definition } = graph;
  const writer = new GraphLinesWriter();
  const reads = graph.in(snapshot) as Reads;
  const leaving = new Set<number>();
  for (const { id, kind, isThere, isLeaving } of graph.entries(snapshot)) {
    if (isLeaving) leaving.add(id);
    else if (isThere) yield writer.object(kind, id, reads.objGet(id)?.data);
    else yield writer.shell(kind, id);
  }
  for (const { id, isLeaving } of graph.entries(snapshot)) {
    if (isLeaving) continue;
    for (const type of definition.types) {
      // The inverse of one that comes earlier.
      if (type.inverse >= 0 && type.inverse < type.number) continue;
      for (const edge of edgesOf(reads, id, type)) {
        if (type.inverse >= 0 && leaving.has(edge.id2)) continue;
        // A symmetric one is in the lists of both of its ends.
        if (type.inverse === type.number && edge.id2 < id) continue;
        yield writer.edge(type, id, edge);
      }
    }
  }
}

function* edgesOf(reads: Reads, id: number, { name }: AssociationType): Iterable<EdgeOfList> {
  const count = reads.assocCount(id, name);
  for (let position = 0; position < count; position += MAX_EDGES_READ) {
    yield* reads.assocRange(id, name, position, MAX_EDGES_READ);
  }
}
