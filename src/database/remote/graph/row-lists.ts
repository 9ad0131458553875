/**
 * One edge list of a graph on a cluster, in a transaction (tables/graph/row-tables.ts says what it is made of). It is read
 * as a whole but for what lies behind the head, changed here, and written by `save`: one row, and two for each edge that goes behind
 * the head or comes from there.
 */

import { MAX_ELEMENT_BYTES } from "../../../runtime/limits.ts";
import {
  bytesOf,
  type GraphRows,
  isBefore,
  type ListRow,
  type PackedEdge,
  PRESENT,
  packedBytes,
  packHead,
  unpackHead,
  wordsOf,
} from "../../../tables/graph/row-tables.ts";
import type { AsyncTransaction } from "../../async-transaction.ts";

/** What reading takes of a transaction or a snapshot. */
export type RowReads = Pick<AsyncTransaction, "get" | "getMany" | "scan">;
export type RowTransaction = RowReads & Pick<AsyncTransaction, "put" | "delete">;

/** Edges that come back to a head that has none. */
const REFILLED = 16;

export class RowList {
  readonly #rows: GraphRows;
  readonly #id: number;
  readonly #type: number;
  #row: ListRow | undefined;
  #head: PackedEdge[];
  #count: number;

  constructor(rows: GraphRows, id: number, type: number, row: ListRow | undefined) {
    this.#rows = rows;
    this.#id = id;
    this.#type = type;
    this.#row = row;
    this.#head = row === undefined ? [] : unpackHead(row.head);
    this.#count = row?.edges ?? 0;
  }

  static async load(tx: RowReads, rows: GraphRows, id: number, type: number): Promise<RowList> {
    return new RowList(rows, id, type, await tx.get(rows.lists, [id, type]));
  }

  get type(): number {
    return this.#type;
  }

  get count(): number {
    return this.#count;
  }

  get state(): number {
    return this.#row?.state ?? PRESENT;
  }

  /** Whether there are edges behind the head. */
  get #isLong(): boolean {
    return this.#count > this.#head.length;
  }

  /** The edge to a target. */
  async find(tx: RowReads, id2: number): Promise<PackedEdge | undefined> {
    const found = this.#head.find((edge) => edge.id2 === id2);
    if (found !== undefined || !this.#isLong) return found;
    const place = await tx.get(this.#rows.finder, [this.#id, this.#type, id2]);
    if (place === undefined) return undefined;
    const key = [this.#id, this.#type, place.order, id2] as const;
    const row = await tx.get(this.#rows.edges, key);
    return row === undefined ? undefined : { order: place.order, id2, data: wordsOf(row.data) };
  }

  /** The edges whose order is at least `from`, after so many of them: up to `limit`, as long as `takes` says. */
  async range(
    tx: RowReads,
    from: number,
    skip: number,
    limit: number,
    takes: (edge: PackedEdge) => boolean,
  ): Promise<PackedEdge[]> {
    const found: PackedEdge[] = [];
    let left = skip;
    const isOver = (edge: PackedEdge): boolean => {
      if (edge.order < from) return false;
      if (left > 0) {
        left--;
        return false;
      }
      if (!takes(edge)) return true;
      found.push(edge);
      return found.length === limit;
    };
    if (limit === 0 || this.#head.some(isOver) || !this.#isLong) return found;
    for await (const edge of this.#behind(tx)) if (isOver(edge)) break;
    return found;
  }

  async *#behind(tx: RowReads, limit?: number): AsyncGenerator<PackedEdge> {
    const eq: [number, number] = [this.#id, this.#type];
    const options = limit === undefined ? { eq } : { eq, limit };
    for await (const { order, id2, data } of tx.scan(this.#rows.edges, options)) {
      yield { order, id2, data: wordsOf(data) };
    }
  }

  /** Adds an edge, or replaces the one to the same target. Whether it is new. */
  async add(tx: RowTransaction, edge: PackedEdge): Promise<boolean> {
    const before = await this.#take(tx, edge.id2);
    this.#count++;
    const at = this.#head.findIndex((each) => isBefore(edge, each));
    // `#isLong` counts the edge itself, which is in neither place yet.
    const isBehind = at < 0 && this.#count > this.#head.length + 1;
    if (isBehind) await this.#putBehind(tx, edge);
    else this.#head.splice(at < 0 ? this.#head.length : at, 0, edge);
    if (packedBytes(this.#head) > MAX_ELEMENT_BYTES) {
      const older = this.#head.splice(Math.ceil(this.#head.length / 2));
      await Promise.all(older.map((each) => this.#putBehind(tx, each)));
    }
    return before === undefined;
  }

  /** Removes the edge to a target and says what it was. */
  async remove(tx: RowTransaction, id2: number): Promise<PackedEdge | undefined> {
    return this.#take(tx, id2);
  }

  async #take(tx: RowTransaction, id2: number): Promise<PackedEdge | undefined> {
    const edge = await this.find(tx, id2);
    if (edge === undefined) return undefined;
    const at = this.#head.indexOf(edge);
    if (at >= 0) this.#head.splice(at, 1);
    else await this.#takeBehind(tx, edge);
    this.#count--;
    if (this.#head.length === 0 && this.#count > 0) await this.#refill(tx);
    return edge;
  }

  async #refill(tx: RowTransaction): Promise<void> {
    const edges: PackedEdge[] = [];
    for await (const edge of this.#behind(tx, REFILLED)) {
      if (packedBytes(edges) + packedBytes([edge]) > MAX_ELEMENT_BYTES) break;
      edges.push(edge);
    }
    await Promise.all(edges.map((edge) => this.#takeBehind(tx, edge)));
    this.#head = edges;
  }

  async #putBehind(tx: RowTransaction, { order, id2, data }: PackedEdge): Promise<void> {
    const key = { id: this.#id, type: this.#type, order, id2 };
    await Promise.all([
      tx.put(this.#rows.edges, { ...key, data: bytesOf(data) }),
      tx.put(this.#rows.finder, key),
    ]);
  }

  async #takeBehind(
    tx: RowTransaction,
    { order, id2 }: Pick<PackedEdge, "order" | "id2">,
  ): Promise<void> {
    await Promise.all([
      tx.delete(this.#rows.edges, [this.#id, this.#type, order, id2]),
      tx.delete(this.#rows.finder, [this.#id, this.#type, id2]),
    ]);
  }

  /** Writes the list's row. `tag` is for one that is new. */
  async save(tx: RowTransaction, tag: number, state = this.state): Promise<void> {
    const key = [this.#id, this.#type] as const;
    if (this.#count === 0) {
      if (this.#row !== undefined) await tx.delete(this.#rows.lists, key);
      this.#row = undefined;
      return;
    }
    this.#row = {
      id: this.#id,
      type: this.#type,
      state,
      tag: this.#row?.tag ?? tag,
      edges: this.#count,
      head: packHead(this.#head),
    };
    await tx.put(this.#rows.lists, this.#row);
  }
}
