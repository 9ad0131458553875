/**
 * TAO's calls in a transaction of the engine. What a caller gave is checked first, then all that is needed is read, and
 * only then the first word is written: an operation that fails has changed nothing. Should memory run out in between,
 * the attempt ends (`failHalfWay`).
 *
 * An edge and its inverse are two entries in lists of two objects, written by the same transaction. An edge whose type
 * has no inverse is known to its source only: those that lead to an object stay when it is deleted.
 */

import type { Transaction } from "../../engine/transaction.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_EDGE_DATA_BYTES, MAX_EDGES_DELETED_AT_ONCE } from "../../runtime/limits.ts";
import { LEAVING, OBJECT_SLOTS, PRESENT, SHELL, SLOT_WORDS } from "../../stores/graph/layout.ts";
import { EdgeList } from "../../stores/graph/lists.ts";
import type { FoundEdge, FoundObject, Wanted } from "../../stores/graph/lock-free.ts";
import { GraphObject, type ObjectIndex, type Places } from "../../stores/graph/objects.ts";
import { type AssociationType, type GraphDefinition, graphTag, type Kind } from "./definition.ts";

/** What becomes of the edges of an object that is deleted. */
export type EdgesOfDeleted = "remove" | "keep";

/** What was deleted. */
export interface DeletedObject {
  /** Whether there was an object. */
  readonly deleted: boolean;
  /** Edges from it that were removed; those that led to it as their inverses went with them. */
  readonly edges: number;
}

/** Lists that a new object has room for, if its kind may have as many. */
const LISTS_AT_FIRST = 2;

// One for the thread: no operation runs code of the caller's once it has begun to read.
const source = new GraphObject();
const target = new GraphObject();
const edgeData = new Int32Array(MAX_EDGE_DATA_BYTES / 4);

export class GraphOperations {
  readonly #graph: string;
  readonly #tag: number;
  readonly #places: Places;
  #definition: GraphDefinition;

  constructor(graph: string, definition: GraphDefinition, places: Places) {
    this.#graph = graph;
    this.#tag = graphTag(graph);
    this.#definition = definition;
    this.#places = places;
  }

  /** Others may have declared more. */
  set definition(definition: GraphDefinition) {
    this.#definition = definition;
  }

  objGet(tx: Transaction, index: ObjectIndex, id: number): FoundObject | undefined {
    if (!this.#load(tx, index, source, id) || source.state !== PRESENT) return undefined;
    const { codec } = this.#definition.kinds[source.kind] ?? this.#unknownKind(source.kind);
    const words = source.dataWords;
    const data = source.readData(tx, (views, at) => codec.decode(views, at, words));
    return { kind: source.kind, data };
  }

  /** Adds an object whose data was encoded just now; false if its id is in use. */
  objAdd(tx: Transaction, index: ObjectIndex, kind: Kind, id: number, words: number): boolean {
    const { i32 } = kind.codec.scratch;
    // Reading the index stages a key, and leaves the encoded data alone.
    if (this.#load(tx, index, source, id)) {
      if (source.state !== SHELL) return false;
      if (source.kind !== kind.number) this.#checkKept(kind, id);
      return whole(tx, () => {
        source.replaceData(tx, index, i32, words);
        source.setIdentity(tx, index, kind.number, PRESENT);
        return true;
      });
    }
    return whole(tx, () => {
      const lists = Math.min(LISTS_AT_FIRST, this.#typesFrom(kind.number));
      const at = source.create(tx, this.#tag, id, kind.number, i32, words, lists, PRESENT);
      index.insert(tx, { id, kind: kind.number, state: PRESENT, at });
      return true;
    });
  }

  /** Adds an object that has no data and may have edges; false if its id is in use. */
  addShell(tx: Transaction, index: ObjectIndex, kind: Kind, id: number): boolean {
    if (this.#load(tx, index, source, id)) return false;
    return whole(tx, () => {
      const lists = Math.min(LISTS_AT_FIRST, this.#typesFrom(kind.number));
      const at = source.create(tx, this.#tag, id, kind.number, new Int32Array(0), 0, lists, SHELL);
      index.insert(tx, { id, kind: kind.number, state: SHELL, at });
      return true;
    });
  }

  /** Changes fields of an object. `changes` are the codec's own. */
  objUpdate(tx: Transaction, index: ObjectIndex, kind: Kind, id: number, changes: object): void {
    if (!this.#isThere(tx, index, source, id, kind.number)) throw this.#missing(kind.name, id);
    const { codec } = kind;
    const words = source.dataWords;
    const before = source.readData(tx, (views, at) => codec.decodeToMerge(views, at, words));
    const encoded = codec.encode(codec.merge(before, changes));
    whole(tx, () => source.replaceData(tx, index, codec.scratch.i32, encoded));
  }

  /**
   * Deletes an object and, unless they are kept, its edges: all in this transaction, or SITU_TOO_LARGE. Edges that were
   * kept when the object was deleted are removed as well.
   */
  objDelete(
    tx: Transaction,
    index: ObjectIndex,
    kind: Kind,
    id: number,
    edges: EdgesOfDeleted,
  ): DeletedObject {
    if (!this.#isKnown(tx, index, kind, id)) return { deleted: false, edges: 0 };
    const deleted = source.state === PRESENT;
    if (edges === "keep") {
      if (!deleted) return { deleted, edges: 0 };
      whole(tx, () => {
        source.setIdentity(tx, index, source.kind, SHELL);
        source.replaceData(tx, index, new Int32Array(0), 0);
      });
      return { deleted: true, edges: 0 };
    }
    const count = edgesOf(source);
    if (count > MAX_EDGES_DELETED_AT_ONCE) {
      throw new SituError(
        "SITU_TOO_LARGE",
        `object ${id} has ${count} edges, and one transaction removes up to ${MAX_EDGES_DELETED_AT_ONCE}: ` +
          `delete it with objDelete of the graph, which takes several`,
      );
    }
    whole(tx, () => {
      this.#removeEdges(tx, index, id, count);
      this.#free(tx, index, id);
    });
    return { deleted, edges: count };
  }

  /**
   * The first step of a deletion that takes several: from here on the object is not there for others, and gets no
   * further edges. Whether there was one.
   */
  beginDeletion(tx: Transaction, index: ObjectIndex, kind: Kind, id: number): boolean {
    if (!this.#isKnown(tx, index, kind, id)) return false;
    const deleted = source.state === PRESENT;
    whole(tx, () => {
      source.setIdentity(tx, index, source.kind, LEAVING);
      for (const type of typesOf(source)) new EdgeList(tx, source, type).moveHead(tx, index);
    });
    return deleted;
  }

  /** A further step: removes some edges, or the object if it has none. Says how many, -1 if all is done. */
  continueDeletion(tx: Transaction, index: ObjectIndex, id: number): number {
    if (!this.#load(tx, index, source, id) || source.state !== LEAVING) return -1;
    return whole(tx, () => {
      const removed = this.#removeEdges(tx, index, id, MAX_EDGES_DELETED_AT_ONCE);
      if (removed > 0) return removed;
      this.#free(tx, index, id);
      return -1;
    });
  }

  /** Whether an object has more edges than one transaction removes. */
  isLarge(tx: Transaction, index: ObjectIndex, kind: Kind, id: number): boolean {
    if (!this.#isKnown(tx, index, kind, id)) return false;
    return edgesOf(source) > MAX_EDGES_DELETED_AT_ONCE;
  }

  /** Adds an edge whose data was encoded just now, or replaces the one to the same target. Whether it is new. */
  assocAdd(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
    time: number,
    words: number,
  ): boolean {
    const { i32 } = type.codec.scratch;
    for (let i = 0; i < words; i++) edgeData[i] = i32[i];
    this.#checkEnds(tx, index, type, id1, id2);
    return whole(tx, () => this.#add(tx, index, type, id1, id2, time, words));
  }

  assocDelete(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
  ): boolean {
    if (!this.#load(tx, index, source, id1) || source.state === LEAVING) return false;
    return whole(tx, () => this.#remove(tx, index, type, id1, id2) >= 0);
  }

  assocChangeType(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
    to: AssociationType,
  ): boolean {
    if (!this.#load(tx, index, source, id1) || source.state === LEAVING) return false;
    if (new EdgeList(tx, source, type.number).timeOf(tx, id2) < 0) return false;
    if (type === to) return true;
    this.#checkEnds(tx, index, to, id1, id2);
    return whole(tx, () => {
      this.#load(tx, index, source, id1);
      const edge = new EdgeList(tx, source, type.number).remove(tx, index, id2);
      if (edge === undefined) tx.conflict(-1);
      edgeData.set(edge.data.subarray(0, edge.dataWords));
      this.#removeInverse(tx, index, type, id1, id2);
      this.#add(tx, index, to, id1, id2, edge.time, edge.dataWords);
      return true;
    });
  }

  assocGet(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    ids: readonly number[],
  ): FoundEdge[] {
    const found: FoundEdge[] = [];
    const list = this.#list(tx, index, type, id1);
    if (list === undefined) return found;
    for (const each of ids) {
      list.visit(tx, each, (id2, time, views, at, words) => {
        found.push({ id2, time, data: type.codec.decode(views, at, words) });
        return true;
      });
    }
    return found;
  }

  assocCount(tx: Transaction, index: ObjectIndex, type: AssociationType, id1: number): number {
    if (!this.#load(tx, index, source, id1) || source.state === LEAVING) return 0;
    const slot = source.slotOf(type.number);
    return slot < 0 ? 0 : source.head[slot + 3];
  }

  /** Edges from a position or from a time on, newest first. */
  assocEdges(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    { position, limit, high, low }: Wanted,
  ): FoundEdge[] {
    const found: FoundEdge[] = [];
    if (limit === 0) return found;
    const list = this.#list(tx, index, type, id1);
    if (list === undefined) return found;
    const visit: Parameters<EdgeList["range"]>[2] = (id2, time, views, at, words) => {
      if (time < low) return false;
      found.push({ id2, time, data: type.codec.decode(views, at, words) });
      return found.length < limit;
    };
    if (high === Number.POSITIVE_INFINITY) list.range(tx, position, visit);
    else list.timeRange(tx, high, visit);
    return found;
  }

  #list(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
  ): EdgeList | undefined {
    if (!this.#load(tx, index, source, id1) || source.state === LEAVING) return undefined;
    return new EdgeList(tx, source, type.number);
  }

  #load(tx: Transaction, index: ObjectIndex, object: GraphObject, id: number): boolean {
    return object.load(tx, index, id, this.#places);
  }

  #isThere(
    tx: Transaction,
    index: ObjectIndex,
    object: GraphObject,
    id: number,
    kind: number,
  ): boolean {
    return this.#load(tx, index, object, id) && object.state === PRESENT && object.kind === kind;
  }

  /** Whether there is an object of this kind, or edges of one that was deleted. Loads it. */
  #isKnown(tx: Transaction, index: ObjectIndex, { number }: Kind, id: number): boolean {
    return this.#load(tx, index, source, id) && source.state !== LEAVING && source.kind === number;
  }

  /** Fails if the edges of the shell that was loaded are none that an object of this kind may have. */
  #checkKept(kind: Kind, id: number): void {
    for (const number of typesOf(source)) {
      const type = this.#definition.types[number] ?? this.#unknownType(number);
      if (type.from !== undefined && !type.from.has(kind.number)) {
        throw this.#wrongEnd(type, "from", kind.number, id);
      }
    }
  }

  /** Fails unless both ends of an edge are there, as far as that matters. */
  #checkEnds(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
  ): void {
    if (!this.#load(tx, index, source, id1) || source.state === LEAVING) {
      throw this.#missing("the source of an edge", id1);
    }
    if (type.from !== undefined && !type.from.has(source.kind)) {
      throw this.#wrongEnd(type, "from", source.kind, id1);
    }
    if (type.to === undefined && type.inverse < 0) return;
    // Its row in the index, and not the object: that changes with each edge of it.
    const row = index.read(tx, id2);
    if (row === undefined || row.state === LEAVING || (row.state === SHELL && type.inverse < 0)) {
      throw this.#missing("the target of an edge", id2);
    }
    if (type.to !== undefined && !type.to.has(row.kind)) {
      throw this.#wrongEnd(type, "to", row.kind, id2);
    }
  }

  #add(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
    time: number,
    words: number,
  ): boolean {
    this.#load(tx, index, source, id1);
    const isNew = new EdgeList(tx, source, type.number).add(tx, index, id2, time, edgeData, words);
    if (!hasInverse(type, id1, id2)) return isNew;
    if (!this.#load(tx, index, target, id2)) tx.conflict(-1);
    new EdgeList(tx, target, type.inverse).add(tx, index, id1, time, edgeData, words);
    return isNew;
  }

  /** Removes an edge of the source that was loaded, and its inverse. Says how many words of data it had, or -1. */
  #remove(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
  ): number {
    const edge = new EdgeList(tx, source, type.number).remove(tx, index, id2);
    if (edge === undefined) return -1;
    this.#removeInverse(tx, index, type, id1, id2);
    return edge.dataWords;
  }

  #removeInverse(
    tx: Transaction,
    index: ObjectIndex,
    type: AssociationType,
    id1: number,
    id2: number,
  ): void {
    if (!hasInverse(type, id1, id2) || !this.#load(tx, index, target, id2)) return;
    new EdgeList(tx, target, type.inverse).remove(tx, index, id1);
  }

  /** Removes edges of the source that was loaded, up to so many, with their inverses. */
  #removeEdges(tx: Transaction, index: ObjectIndex, id: number, most: number): number {
    let removed = 0;
    while (removed < most && source.lists > 0) {
      const number = typesOf(source)[0];
      const type = this.#definition.types[number] ?? this.#unknownType(number);
      const targets: number[] = [];
      new EdgeList(tx, source, number).range(tx, 0, (id2) => targets.push(id2) < most - removed);
      // One who has read what does not belong together must not go round for ever.
      if (targets.length === 0) tx.conflict(-1);
      for (const id2 of targets) {
        this.#remove(tx, index, type, id, id2);
        removed++;
        // Its own inverse may be another list of the same object.
        this.#load(tx, index, source, id);
      }
    }
    return removed;
  }

  #free(tx: Transaction, index: ObjectIndex, id: number): void {
    this.#load(tx, index, source, id);
    source.free(tx);
    index.remove(tx, id);
  }

  #typesFrom(kind: number): number {
    const { types } = this.#definition;
    return types.filter(({ from }) => from === undefined || from.has(kind)).length;
  }

  #missing(what: string, id: number): SituError {
    return new SituError("SITU_MISSING", `graph ${this.#graph} has no object ${id} (${what})`);
  }

  #wrongEnd(type: AssociationType, end: "from" | "to", kind: number, id: number): SituError {
    const { kinds } = this.#definition;
    const names = [...(type[end] ?? [])].map((each) => kinds[each].name).join(" or ");
    return new SituError(
      "SITU_TYPE",
      `association ${type.name} leads ${end} a ${names}, and object ${id} is a ${kinds[kind]?.name}`,
    );
  }

  #unknownKind(number: number): never {
    throw new SituError(
      "SITU_SCHEMA",
      `graph ${this.#graph} has an object of kind ${number}, which was declared after it was opened here: open it again`,
    );
  }

  #unknownType(number: number): never {
    throw new SituError(
      "SITU_SCHEMA",
      `graph ${this.#graph} has edges of type ${number}, which was declared after it was opened here: open it again`,
    );
  }
}

/** The types of the lists that an object has. */
function typesOf({ head, lists }: GraphObject): number[] {
  return Array.from({ length: lists }, (_, i) => head[OBJECT_SLOTS + i * SLOT_WORDS] >>> 16);
}

function edgesOf({ head, lists }: GraphObject): number {
  let sum = 0;
  for (let i = 0; i < lists; i++) sum += head[OBJECT_SLOTS + i * SLOT_WORDS + 3];
  return sum;
}

/** Of an object to itself, the inverse of a symmetric edge is the edge. */
function hasInverse({ number, inverse }: AssociationType, id1: number, id2: number): boolean {
  return inverse >= 0 && (inverse !== number || id1 !== id2);
}

/** All of it, or the end of the transaction. */
function whole<T>(tx: Transaction, change: () => T): T {
  try {
    return change();
  } catch (error) {
    return tx.failHalfWay(error);
  }
}
