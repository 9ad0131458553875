/**
 * TAO's calls with what callers pass to them: names become numbers, data becomes words, and what cannot be is refused
 * with a code before anything is read. All of a caller's values are read here, so that no code of theirs runs while
 * an operation does.
 */

import type { Transaction as EngineTransaction } from "../../../engine/transaction.ts";
import { wallClockMs } from "../../../runtime/clock.ts";
import { SituError } from "../../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../../runtime/known-options.ts";
import { MAX_EDGE_DATA_BYTES, MAX_EDGES_READ } from "../../../runtime/limits.ts";
import { show } from "../../../runtime/show.ts";
import type { FoundEdge, Wanted } from "../../../stores/graph/lock-free.ts";
import type { ObjectIndex } from "../../../stores/graph/objects.ts";
import type { AssociationType, GraphDefinition, Kind } from "../../../tables/graph/definition.ts";
import type {
  DeletedObject,
  EdgesOfDeleted,
  GraphOperations,
} from "../../../tables/graph/operations.ts";

/** An operation, ready to be run in a transaction. */
export type Operation<T> = (tx: EngineTransaction, index: ObjectIndex) => T;

/** Numbers for new objects. */
export interface Ids {
  take(): number;
  skip(inUse: number): void;
  pass(id: number): void;
}

/** What a graph calls its kinds and types. */
export class GraphNames {
  readonly graph: string;
  readonly definition: GraphDefinition;

  constructor(graph: string, definition: GraphDefinition) {
    this.graph = graph;
    this.definition = definition;
  }

  kindOf(name: unknown): Kind {
    return (
      this.definition.kindsByName.get(name as string) ??
      this.#undeclared("kind of objects", name, [...this.definition.kindsByName.keys()])
    );
  }

  typeOf(name: unknown): AssociationType {
    return (
      this.definition.typesByName.get(name as string) ??
      this.#undeclared("association", name, [...this.definition.typesByName.keys()])
    );
  }

  /** What a number in an object stands for; what was declared elsewhere, later, is not known here. */
  shown(kind: number, id: number, data: unknown): unknown {
    const { name } = this.definition.kinds[kind] ?? {};
    if (name !== undefined) return { id, kind: name, data };
    throw new SituError(
      "SITU_SCHEMA",
      `object ${id} of graph ${this.graph} is of a kind that was declared after it was opened here: open it again`,
    );
  }

  #undeclared(what: string, name: unknown, known: readonly string[]): never {
    throw new SituError(
      "SITU_TYPE",
      `graph ${this.graph} has no ${what} ${show(name)}; declared are ${known.join(", ") || "none"}`,
    );
  }
}

export class GraphCalls extends GraphNames {
  readonly operations: GraphOperations;
  readonly #ids: () => Ids;

  constructor(
    graph: string,
    definition: GraphDefinition,
    operations: GraphOperations,
    ids: () => Ids,
  ) {
    super(graph, definition);
    this.operations = operations;
    this.#ids = ids;
  }

  objGet(kindName: unknown, given: unknown): Operation<unknown> {
    if (given === undefined && typeof kindName === "number") {
      const id = checkedId(kindName);
      return (tx, index) => {
        const found = this.operations.objGet(tx, index, id);
        return found && this.shown(found.kind, id, found.data);
      };
    }
    const kind = this.kindOf(kindName);
    const id = checkedId(given);
    return (tx, index) => {
      const found = this.operations.objGet(tx, index, id);
      return found?.kind === kind.number ? found.data : undefined;
    };
  }

  objAdd(kindName: unknown, data: unknown, options: unknown = {}): Operation<number> {
    const kind = this.kindOf(kindName);
    refuseUnknownOptions("objAdd", options as object, ["id"]);
    const { id: given } = options as { id?: unknown };
    const chosen = given === undefined ? undefined : checkedId(given);
    const words = kind.codec.encode(data);
    const copy = kind.codec.scratch.i32.slice(0, words);
    return (tx, index) => {
      const ids = this.#ids();
      for (let inUse = 0; ; inUse++) {
        const id = chosen ?? ids.take();
        kind.codec.scratch.i32.set(copy);
        if (this.operations.objAdd(tx, index, kind, id, words)) {
          if (chosen !== undefined) ids.pass(chosen);
          return id;
        }
        if (chosen !== undefined) {
          throw new SituError("SITU_EXISTS", `graph ${this.graph} has an object ${chosen} already`);
        }
        ids.skip(inUse);
      }
    };
  }

  objUpdate(kindName: unknown, given: unknown, changes: unknown): Operation<void> {
    const kind = this.kindOf(kindName);
    const id = checkedId(given);
    if (typeof changes !== "object" || changes === null) {
      throw new SituError("SITU_TYPE", `changes are an object, not ${show(changes)}`);
    }
    const own = kind.codec.takeChanges(changes) as object;
    return (tx, index) => this.operations.objUpdate(tx, index, kind, id, own);
  }

  objDelete(kindName: unknown, given: unknown, options: unknown): Operation<DeletedObject> {
    const kind = this.kindOf(kindName);
    const id = checkedId(given);
    const edges = edgesOption(options);
    return (tx, index) => this.operations.objDelete(tx, index, kind, id, edges);
  }

  assocAdd(
    id1: unknown,
    typeName: unknown,
    id2: unknown,
    given: unknown,
    data: unknown,
  ): Operation<boolean> {
    const type = this.typeOf(typeName);
    const from = checkedId(id1);
    const to = checkedId(id2);
    const time = given === undefined ? wallClockMs() : checkedTime("time", given);
    const words = encodedEdge(type, data);
    const copy = words === 0 ? undefined : type.codec.scratch.i32.slice(0, words);
    return (tx, index) => {
      if (copy !== undefined) type.codec.scratch.i32.set(copy);
      return this.operations.assocAdd(tx, index, type, from, to, time, words);
    };
  }

  assocDelete(id1: unknown, typeName: unknown, id2: unknown): Operation<boolean> {
    const type = this.typeOf(typeName);
    const from = checkedId(id1);
    const to = checkedId(id2);
    return (tx, index) => this.operations.assocDelete(tx, index, type, from, to);
  }

  assocChangeType(
    id1: unknown,
    typeName: unknown,
    id2: unknown,
    newName: unknown,
  ): Operation<boolean> {
    const type = this.typeOf(typeName);
    const newType = this.typeOf(newName);
    if (!hasSameData(type, newType)) {
      throw new SituError(
        "SITU_TYPE",
        `association ${newType.name} has other fields than ${type.name}: delete the edge and add another one`,
      );
    }
    const from = checkedId(id1);
    const to = checkedId(id2);
    return (tx, index) => this.operations.assocChangeType(tx, index, type, from, to, newType);
  }

  assocGet(
    id1: unknown,
    typeName: unknown,
    ids: unknown,
  ): Operation<FoundEdge | FoundEdge[] | undefined> {
    const type = this.typeOf(typeName);
    const from = checkedId(id1);
    if (typeof ids === "number") {
      const to = [checkedId(ids)];
      return (tx, index) => this.operations.assocGet(tx, index, type, from, to)[0];
    }
    const targets = checkedTargets(ids);
    return (tx, index) => newestFirst(this.operations.assocGet(tx, index, type, from, targets));
  }

  assocCount(id1: unknown, typeName: unknown): Operation<number> {
    const type = this.typeOf(typeName);
    const from = checkedId(id1);
    return (tx, index) => this.operations.assocCount(tx, index, type, from);
  }

  assocEdges(id1: unknown, typeName: unknown, wanted: Wanted): Operation<FoundEdge[]> {
    const type = this.typeOf(typeName);
    const from = checkedId(id1);
    return (tx, index) => this.operations.assocEdges(tx, index, type, from, wanted);
  }
}

/** Encodes the data of an edge; how many words it has. */
export function encodedEdge({ codec }: AssociationType, data: unknown): number {
  const words = codec.encode(data);
  if (words * 4 <= MAX_EDGE_DATA_BYTES) return words;
  throw new SituError(
    "SITU_TOO_LARGE",
    `the data of an edge has up to ${MAX_EDGE_DATA_BYTES} bytes, not ${words * 4}`,
  );
}

export function checkedId(id: unknown): number {
  if (Number.isSafeInteger(id) && (id as number) > 0) return id as number;
  throw new SituError(
    "SITU_TYPE",
    `the id of an object is a whole number from 1 on, not ${show(id)}`,
  );
}

export function checkedTime(what: string, time: unknown): number {
  if (Number.isSafeInteger(time) && (time as number) >= 0) return time as number;
  throw new SituError("SITU_TYPE", `${what} is a whole number of milliseconds, not ${show(time)}`);
}

function checkedLimit(limit: unknown): number {
  if (!Number.isSafeInteger(limit) || (limit as number) < 0) {
    throw new SituError("SITU_TYPE", `a limit is a whole number from 0 on, not ${show(limit)}`);
  }
  if ((limit as number) <= MAX_EDGES_READ) return limit as number;
  throw new SituError(
    "SITU_TOO_LARGE",
    `one call reads up to ${MAX_EDGES_READ} edges, not ${limit}`,
  );
}

/** The edges that `assocRange` reads. */
export function rangeOf(position: unknown, limit: unknown): Wanted {
  if (!Number.isSafeInteger(position) || (position as number) < 0) {
    throw new SituError(
      "SITU_TYPE",
      `a position is a whole number from 0 on, not ${show(position)}`,
    );
  }
  return {
    position: position as number,
    limit: checkedLimit(limit),
    high: Number.POSITIVE_INFINITY,
    low: 0,
    targets: undefined,
  };
}

/** The edges that `assocTimeRange` reads. */
export function timeRangeOf(high: unknown, low: unknown, limit: unknown): Wanted {
  return {
    position: 0,
    limit: checkedLimit(limit),
    high: checkedTime("the latest time", high),
    low: checkedTime("the earliest time", low),
    targets: undefined,
  };
}

/** The edges to some targets. */
export function edgesTo(targets: readonly number[]): Wanted {
  return {
    position: 0,
    limit: targets.length,
    high: Number.POSITIVE_INFINITY,
    low: 0,
    targets,
  };
}

export function checkedTargets(ids: unknown): number[] {
  if (Array.isArray(ids) && ids.length <= FEW_TARGETS) return fewTargets(ids);
  if (typeof ids !== "object" || ids === null || !(Symbol.iterator in ids)) {
    throw new SituError("SITU_TYPE", `expected an id or several, not ${show(ids)}`);
  }
  const targets = new Set<number>();
  for (const each of ids as Iterable<unknown>) {
    targets.add(checkedId(each));
    if (targets.size > MAX_EDGES_READ) checkedLimit(targets.size);
  }
  return [...targets];
}

/** Up to here, looking through a list beats a set. */
const FEW_TARGETS = 16;

function fewTargets(ids: readonly unknown[]): number[] {
  const targets: number[] = [];
  for (let i = 0; i < ids.length; i++) {
    const id = checkedId(ids[i]);
    if (!targets.includes(id)) targets.push(id);
  }
  return targets;
}

export function edgesOption(options: unknown = {}): EdgesOfDeleted {
  refuseUnknownOptions("objDelete", options as object, ["edges"]);
  const { edges = "remove" } = options as { edges?: unknown };
  if (edges === "remove" || edges === "keep") return edges;
  throw new SituError("SITU_TYPE", `edges is "remove" or "keep", not ${show(edges)}`);
}

export function newestFirst(edges: FoundEdge[]): FoundEdge[] {
  return edges.sort((one, other) => other.time - one.time || one.id2 - other.id2);
}

export function hasSameData({ fields }: AssociationType, other: AssociationType): boolean {
  const names = Object.keys(fields);
  return (
    names.length === Object.keys(other.fields).length &&
    names.every((name) => {
      const [one, another] = [fields[name], other.fields[name]];
      return (
        another !== undefined &&
        one.kind === another.kind &&
        one.max === another.max &&
        one.nullable === another.nullable &&
        String(one.values) === String(another.values)
      );
    })
  );
}
