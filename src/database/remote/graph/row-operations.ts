/**
 * TAO's operations on a graph of a cluster, in a transaction over rows. They do what those on one machine do
 * (tables/graph/operations.ts), and fail as those do. Rows that an operation needs for certain are asked for together:
 * one message to the node of each end.
 */

import { SituError } from "../../../runtime/errors.ts";
import { MAX_EDGES_DELETED_AT_ONCE } from "../../../runtime/limits.ts";
import { uniqueNumber } from "../../../runtime/random.ts";
import type { FoundEdge, FoundObject, Wanted } from "../../../stores/graph/lock-free.ts";
import type { AssociationType, GraphDefinition, Kind } from "../../../tables/graph/definition.ts";
import type { DeletedObject, EdgesOfDeleted } from "../../../tables/graph/operations.ts";
import {
  bytesOf,
  type clusterGraphs,
  type GraphRows,
  LAST_TIME,
  LEAVING,
  type ObjectRow,
  type PackedEdge,
  PRESENT,
  SHELL,
  viewsOf,
} from "../../../tables/graph/row-tables.ts";
import { RowList, type RowReads, type RowTransaction } from "./row-lists.ts";

export class RowOperations {
  readonly graph: string;
  readonly definition: GraphDefinition;
  readonly rows: GraphRows;
  readonly #graphs: ReturnType<typeof clusterGraphs>;

  constructor(
    graph: string,
    definition: GraphDefinition,
    rows: GraphRows,
    graphs: ReturnType<typeof clusterGraphs>,
  ) {
    this.graph = graph;
    this.definition = definition;
    this.rows = rows;
    this.#graphs = graphs;
  }

  /** A number that nobody can guess: a tag, or the id of a new object. */
  draw(): number {
    return 1 + Number(uniqueNumber() >> 12n);
  }

  async objGet(tx: RowReads, id: number): Promise<FoundObject | undefined> {
    return this.shown(await tx.get(this.rows.objects, id));
  }

  /** What a row of an object says. */
  shown(row: ObjectRow | undefined): FoundObject | undefined {
    if (row === undefined || row.state !== PRESENT) return undefined;
    const kind = this.definition.kinds[row.kind] ?? this.#unknown("an object of kind", row.kind);
    const data = kind.codec.decode(viewsOf(row.data), 0, row.data.length / 4);
    return { kind: row.kind, data };
  }

  /** False if its id is in use. */
  async objAdd(tx: RowTransaction, kind: Kind, id: number, data: Int32Array): Promise<boolean> {
    const before = await tx.get(this.rows.objects, id);
    if (before !== undefined && before.state !== SHELL) return false;
    if (before !== undefined && before.kind !== kind.number) {
      // Edges of the object that was deleted become this one's.
      for (const { type } of await this.#lists(tx, id)) {
        this.#checkEnd(this.definition.types[type], "from", kind.number, id);
      }
    }
    const tag = before?.tag ?? this.draw();
    const row = { id, kind: kind.number, state: PRESENT, tag, data: bytesOf(data) };
    await tx.put(this.rows.objects, row);
    return true;
  }

  async objUpdate(tx: RowTransaction, kind: Kind, id: number, changes: object): Promise<void> {
    const row = await this.#present(tx, kind, id);
    if (row === undefined) throw this.#missing(kind.name, id);
    const { codec } = kind;
    const before = codec.decodeToMerge(viewsOf(row.data), 0, row.data.length / 4);
    const words = codec.encode(codec.merge(before, changes));
    await tx.put(this.rows.objects, {
      ...row,
      data: bytesOf(codec.scratch.i32.subarray(0, words)),
    });
  }

  /** All in this transaction, or SITU_TOO_LARGE. Also removes edges that were kept when the object was deleted. */
  async objDelete(
    tx: RowTransaction,
    kind: Kind,
    id: number,
    edges: EdgesOfDeleted,
  ): Promise<DeletedObject> {
    const row = await this.#known(tx, kind, id);
    if (row === undefined) return { deleted: false, edges: 0 };
    const deleted = row.state === PRESENT;
    if (edges === "keep") {
      if (!deleted) return { deleted, edges: 0 };
      await tx.put(this.rows.objects, { ...row, state: SHELL, data: new Uint8Array(0) });
      return { deleted: true, edges: 0 };
    }
    const count = await this.edgesOf(tx, id);
    if (count > MAX_EDGES_DELETED_AT_ONCE) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `object ${id} has ${count} edges, and one transaction removes up to ${MAX_EDGES_DELETED_AT_ONCE}: ` +
          `delete it with objDelete of the graph, which takes several`,
      );
    }
    await this.#removeEdges(tx, id, count);
    await tx.delete(this.rows.objects, id);
    return { deleted, edges: count };
  }

  /** The first step of a deletion that takes several: whether there was an object; undefined if one step will do. */
  async beginDeletion(tx: RowTransaction, kind: Kind, id: number): Promise<boolean | undefined> {
    const row = await this.#known(tx, kind, id);
    if (row === undefined || (await this.edgesOf(tx, id)) <= MAX_EDGES_DELETED_AT_ONCE)
      return undefined;
    await tx.put(this.rows.objects, { ...row, state: LEAVING });
    for (const list of await this.#lists(tx, id)) await list.save(tx, 0, LEAVING);
    await tx.put(this.rows.leaving, { id });
    return row.state === PRESENT;
  }

  /** A further step: removes some edges, or the object if it has none. Says how many, -1 if all is done. */
  async continueDeletion(tx: RowTransaction, id: number): Promise<number> {
    const row = await tx.get(this.rows.objects, id);
    const isLeaving = row?.state === LEAVING;
    const isEmpty = !isLeaving || (await this.edgesOf(tx, id)) === 0;
    if (!isEmpty) return this.#removeEdges(tx, id, EDGES_OF_A_STEP);
    if (isLeaving) await tx.delete(this.rows.objects, id);
    await tx.delete(this.rows.leaving, id);
    return -1;
  }

  async edgesOf(tx: RowReads, id: number): Promise<number> {
    return (await this.#lists(tx, id)).reduce((sum, { count }) => sum + count, 0);
  }

  async assocAdd(
    tx: RowTransaction,
    type: AssociationType,
    id1: number,
    id2: number,
    time: number,
    data: Int32Array,
  ): Promise<boolean> {
    await this.#prepare(tx, type, id1, id2);
    return this.#add(tx, type, id1, id2, { order: LAST_TIME - time, id2, data });
  }

  async assocDelete(
    tx: RowTransaction,
    type: AssociationType,
    id1: number,
    id2: number,
  ): Promise<boolean> {
    const list = await this.#listOf(tx, id1, type.number);
    if (list.state === LEAVING) return false;
    return (await this.#remove(tx, type, id1, id2)) !== undefined;
  }

  async assocChangeType(
    tx: RowTransaction,
    type: AssociationType,
    id1: number,
    id2: number,
    to: AssociationType,
  ): Promise<boolean> {
    const list = await this.#listOf(tx, id1, type.number);
    const edge = list.state === LEAVING ? undefined : await list.find(tx, id2);
    if (edge === undefined) return false;
    if (type === to) return true;
    await this.#prepare(tx, to, id1, id2);
    await this.#remove(tx, type, id1, id2);
    await this.#add(tx, to, id1, id2, edge);
    return true;
  }

  async assocGet(
    tx: RowReads,
    type: AssociationType,
    id1: number,
    ids: readonly number[],
  ): Promise<FoundEdge[]> {
    const list = await this.#listOf(tx, id1, type.number);
    if (list.state === LEAVING) return [];
    const found = await Promise.all(ids.map((id2) => list.find(tx, id2)));
    return found.filter((edge) => edge !== undefined).map((edge) => shownEdge(type, edge));
  }

  async assocCount(tx: RowReads, type: AssociationType, id1: number): Promise<number> {
    const { state, count } = await this.#listOf(tx, id1, type.number);
    return state === LEAVING ? 0 : count;
  }

  async assocEdges(
    tx: RowReads,
    type: AssociationType,
    id1: number,
    wanted: Wanted,
  ): Promise<FoundEdge[]> {
    return this.edgesIn(tx, type, await this.#listOf(tx, id1, type.number), wanted);
  }

  /** Edges of a list that was read, newest first. */
  async edgesIn(
    tx: RowReads,
    type: AssociationType,
    list: RowList,
    { position, limit, high, low }: Wanted,
  ): Promise<FoundEdge[]> {
    if (list.state === LEAVING) return [];
    const from = high === Number.POSITIVE_INFINITY ? 0 : LAST_TIME - high;
    const last = LAST_TIME - low;
    const edges = await list.range(tx, from, position, limit, ({ order }) => order <= last);
    return edges.map((edge) => shownEdge(type, edge));
  }

  #listOf(tx: RowReads, id: number, type: number): Promise<RowList> {
    return RowList.load(tx, this.rows, id, type);
  }

  /** The lists that an object has. Fails if it may have some of types that are not known here. */
  async #lists(tx: RowReads, id: number): Promise<RowList[]> {
    const stored = (await tx.get(this.#graphs, this.graph))?.definition.types.length ?? 0;
    if (stored > this.definition.types.length) this.#unknown("edges of type", stored - 1);
    const keys = this.definition.types.map(({ number }) => [id, number] as const);
    const found = await tx.getMany(this.rows.lists, keys);
    return found.flatMap((row) =>
      row === undefined ? [] : [new RowList(this.rows, id, row.type, row)],
    );
  }

  async #present(tx: RowReads, kind: Kind, id: number): Promise<ObjectRow | undefined> {
    const row = await tx.get(this.rows.objects, id);
    return row?.state === PRESENT && row.kind === kind.number ? row : undefined;
  }

  /** The row of an object of this kind, also of one that was deleted and whose edges were kept. */
  async #known(tx: RowReads, kind: Kind, id: number): Promise<ObjectRow | undefined> {
    const row = await tx.get(this.rows.objects, id);
    return row?.state === LEAVING || row?.kind !== kind.number ? undefined : row;
  }

  /** Brings what adding an edge needs, and fails unless both ends are there, as far as that matters. */
  async #prepare(
    tx: RowTransaction,
    type: AssociationType,
    id1: number,
    id2: number,
  ): Promise<void> {
    const { objects, lists } = this.rows;
    const needsTarget = type.to !== undefined || type.inverse >= 0;
    const [source, target] = await Promise.all([
      tx.get(objects, id1),
      needsTarget ? tx.get(objects, id2) : undefined,
      tx.get(lists, [id1, type.number]),
      type.inverse >= 0 ? tx.get(lists, [id2, type.inverse]) : undefined,
    ]);
    if (source === undefined || source.state === LEAVING) {
      throw this.#missing("the source of an edge", id1);
    }
    this.#checkEnd(type, "from", source.kind, id1);
    if (!needsTarget) return;
    const isShell = target?.state === SHELL && type.inverse < 0;
    if (target === undefined || target.state === LEAVING || isShell) {
      throw this.#missing("the target of an edge", id2);
    }
    this.#checkEnd(type, "to", target.kind, id2);
  }

  async #add(
    tx: RowTransaction,
    type: AssociationType,
    id1: number,
    id2: number,
    edge: PackedEdge,
  ): Promise<boolean> {
    const isNew = await this.#addTo(tx, id1, type.number, edge);
    if (hasInverse(type, id1, id2)) await this.#addTo(tx, id2, type.inverse, { ...edge, id2: id1 });
    return isNew;
  }

  async #addTo(tx: RowTransaction, id: number, type: number, edge: PackedEdge): Promise<boolean> {
    const list = await this.#listOf(tx, id, type);
    const isNew = await list.add(tx, edge);
    await list.save(tx, this.draw());
    return isNew;
  }

  async #remove(
    tx: RowTransaction,
    type: AssociationType,
    id1: number,
    id2: number,
  ): Promise<PackedEdge | undefined> {
    const edge = await this.#removeFrom(tx, id1, type.number, id2);
    if (edge !== undefined && hasInverse(type, id1, id2)) {
      await this.#removeFrom(tx, id2, type.inverse, id1);
    }
    return edge;
  }

  async #removeFrom(
    tx: RowTransaction,
    id: number,
    type: number,
    id2: number,
  ): Promise<PackedEdge | undefined> {
    const list = await this.#listOf(tx, id, type);
    const edge = await list.remove(tx, id2);
    if (edge !== undefined) await list.save(tx, 0);
    return edge;
  }

  /** Removes edges of an object, up to so many, with their inverses. */
  async #removeEdges(tx: RowTransaction, id: number, most: number): Promise<number> {
    let removed = 0;
    for (const type of this.definition.types) {
      if (removed === most) break;
      const list = await this.#listOf(tx, id, type.number);
      const edges = await list.range(tx, 0, 0, most - removed, () => true);
      // The other ends, with one message to each node; below they are known.
      if (type.inverse >= 0) {
        const ends = edges.map(({ id2 }) => [id2, type.inverse] as const);
        await tx.getMany(this.rows.lists, ends);
      }
      for (const { id2 } of edges) {
        // An edge to itself may have gone with its inverse.
        if ((await this.#remove(tx, type, id, id2)) !== undefined) removed++;
      }
    }
    return removed;
  }

  #checkEnd(type: AssociationType, end: "from" | "to", kind: number, id: number): void {
    const allowed = type[end];
    if (allowed === undefined || allowed.has(kind)) return;
    const { kinds } = this.definition;
    const names = [...allowed].map((each) => kinds[each].name).join(" or ");
    throw new SituError(
      "SITU_TYPE",
      `association ${type.name} leads ${end} a ${names}, and object ${id} is a ${kinds[kind]?.name}`,
    );
  }

  #missing(what: string, id: number): SituError {
    return new SituError("SITU_MISSING", `graph ${this.graph} has no object ${id} (${what})`);
  }

  #unknown(what: string, number: number): never {
    throw new SituError(
      "SITU_SCHEMA",
      `graph ${this.graph} has ${what} ${number}, which was declared after it was opened here: open it again`,
    );
  }
}

/** Each has an end at some other node: fewer than on one machine. */
const EDGES_OF_A_STEP = 200;

function shownEdge({ codec }: AssociationType, { order, id2, data }: PackedEdge): FoundEdge {
  const decoded = codec.decode(viewsOf(bytesOf(data)), 0, data.length);
  return { id2, time: LAST_TIME - order, data: decoded };
}

/** Of an object to itself, the inverse of a symmetric edge is the edge. */
function hasInverse({ number, inverse }: AssociationType, id1: number, id2: number): boolean {
  return inverse >= 0 && (inverse !== number || id1 !== id2);
}
