/**
 * A graph on a cluster is made of rows (docs/decisions/0150): what nodes replicate, recover and copy are rows, so a graph
 * needs nothing of its own for that. All tables but the first are collocated (../partitions.ts): what begins with the id of an
 * object is at that object's node.
 *
 *   graphs    what each graph of the cluster declares
 *   objects   id → kind, state, data
 *   lists     id, type → how many edges there are, and the newest ones: the head
 *   edges     id, type, order, id2 → data, of the edges behind the head, newest first; `order` is LAST_TIME less the time
 *   finder    id, type, id2 → order, of the same edges
 *   leaving   ids of objects that are being deleted in several steps
 *
 * A head is edges one after the other, newest first, each as four words and its data: words of the edge (11 bits) and
 * upper half of its order (21), lower half; its target. All that is in the head comes before what is behind it.
 *
 * Objects and lists have a `tag`, a number that is drawn when the row is made, and that nobody but Situ sees. Those who
 * remember where a row lies tell by it that they have found the row again, and not memory that looks like it.
 */

import { Views } from "../../memory/views.ts";
import { bytes, json, str, u8, u53 } from "../fields.ts";
import { collocatedName } from "../partitions.ts";
import { type InferRow, table } from "../table.ts";
import type { StoredGraph } from "./definition.ts";

const HALF = 2 ** 32;
const LENGTH_SHIFT = 21;
const UPPER_MASK = (1 << LENGTH_SHIFT) - 1;
const KEY_WORDS = 4;

export const LAST_TIME = Number.MAX_SAFE_INTEGER;

/** States of an object; a list has the last one with its object. */
export const PRESENT = 0;
export const SHELL = 1;
export const LEAVING = 2;

export const clusterGraphs = () =>
  table("@graphs", { name: str(100), definition: json<StoredGraph>() }, { key: "name" });

/** The tables of one graph. */
export function graphRows(graph: string) {
  return {
    objects: table(
      collocatedName("objects", graph),
      { id: u53(), kind: u8(), state: u8(), tag: u53(), data: bytes() },
      { key: "id", layout: "hopscotch" },
    ),
    lists: table(
      collocatedName("lists", graph),
      { id: u53(), type: u8(), state: u8(), tag: u53(), edges: u53(), head: bytes() },
      { key: ["id", "type"], layout: "hopscotch" },
    ),
    edges: table(
      collocatedName("edges", graph),
      { id: u53(), type: u8(), order: u53(), id2: u53(), data: bytes() },
      { key: ["id", "type", "order", "id2"], ordered: true },
    ),
    finder: table(
      collocatedName("finder", graph),
      { id: u53(), type: u8(), id2: u53(), order: u53() },
      { key: ["id", "type", "id2"] },
    ),
    leaving: table(collocatedName("leaving", graph), { id: u53() }, { key: "id" }),
  };
}

export type GraphRows = ReturnType<typeof graphRows>;
export type ObjectRow = InferRow<GraphRows["objects"]>;
export type ListRow = InferRow<GraphRows["lists"]>;

/** An edge with its data in words. */
export interface PackedEdge {
  readonly order: number;
  readonly id2: number;
  readonly data: Int32Array;
}

export function unpackHead(head: Uint8Array): PackedEdge[] {
  const { i32 } = viewsOf(head);
  const found: PackedEdge[] = [];
  for (let at = 0; at + KEY_WORDS <= i32.length; ) {
    const words = i32[at] >>> LENGTH_SHIFT;
    if (words < KEY_WORDS || at + words > i32.length) break;
    found.push({
      order: (i32[at] & UPPER_MASK) * HALF + (i32[at + 1] >>> 0),
      id2: i32[at + 2] * HALF + (i32[at + 3] >>> 0),
      data: i32.slice(at + KEY_WORDS, at + words),
    });
    at += words;
  }
  return found;
}

export function packHead(edges: readonly PackedEdge[]): Uint8Array {
  const words = new Int32Array(packedBytes(edges) / 4);
  let at = 0;
  for (const { order, id2, data } of edges) {
    words[at] = ((KEY_WORDS + data.length) << LENGTH_SHIFT) | Math.floor(order / HALF);
    words[at + 1] = order | 0;
    words[at + 2] = Math.floor(id2 / HALF);
    words[at + 3] = id2 | 0;
    words.set(data, at + KEY_WORDS);
    at += KEY_WORDS + data.length;
  }
  return new Uint8Array(words.buffer);
}

export function packedBytes(edges: readonly PackedEdge[]): number {
  return edges.reduce((sum, { data }) => sum + 4 * (KEY_WORDS + data.length), 0);
}

/** Words from bytes of a row, which need not be aligned. */
export function wordsOf(data: Uint8Array): Int32Array {
  return viewsOf(data).i32.slice(0, data.length / 4);
}

export function bytesOf(words: Int32Array): Uint8Array {
  return new Uint8Array(words.slice().buffer);
}

/** A copy of bytes that codecs can read from. */
export function viewsOf(data: Uint8Array): Views {
  const views = new Views(new ArrayBuffer(Math.ceil(data.length / 8) * 8));
  views.u8.set(data);
  return views;
}

/** Whether an edge comes before another one in its list. */
export function isBefore(
  one: Pick<PackedEdge, "order" | "id2">,
  other: Pick<PackedEdge, "order" | "id2">,
): boolean {
  return one.order < other.order || (one.order === other.order && one.id2 < other.id2);
}
