/** A graph in local memory: what `graph` returns (../../graph.ts says what each call is for). */

import { readObject } from "../../../engine/objects.ts";
import { runReadOnly } from "../../../engine/run.ts";
import { Transaction as EngineTransaction } from "../../../engine/transaction.ts";
import { isPointer, type Pointer } from "../../../memory/pointer.ts";
import { Views } from "../../../memory/views.ts";
import { passOver } from "../../../runtime/background-errors.ts";
import { SituError } from "../../../runtime/errors.ts";
import { show } from "../../../runtime/show.ts";
import {
  LEAVING,
  MARK,
  numberAt,
  OBJECT_SLOTS,
  PRESENT,
  SLOT_WORDS,
  TAG,
} from "../../../stores/graph/layout.ts";
import { type FoundEdge, LockFreeReads, type Wanted } from "../../../stores/graph/lock-free.ts";
import type { IndexRow } from "../../../stores/graph/objects.ts";
import {
  type DataCodec,
  type GraphDefinition,
  graphTag,
  type Kind,
} from "../../../tables/graph/definition.ts";
import { type DeletedObject, GraphOperations } from "../../../tables/graph/operations.ts";
import type { Table } from "../../../tables/table.ts";
import { transactionBehind } from "../../run/interactive.ts";
import type { SyncResult } from "../../transact-options.ts";
import { LocalAsyncTransaction } from "../async-transaction.ts";
import type { LocalDatabase } from "../local-database.ts";
import { LocalSnapshot } from "../local-snapshot.ts";
import { SyncTransaction } from "../sync-transaction.ts";
import {
  checkedId,
  checkedTargets,
  edgesOption,
  edgesTo,
  GraphCalls,
  newestFirst,
  type Operation,
  rangeOf,
  timeRangeOf,
} from "./calls.ts";
import type { LeavingTable } from "./graph-tables.ts";

/** Runs operations where their results are wanted: at once, or as promises. */
type Run = <T>(operation: Operation<T>, key: unknown, changes: boolean) => unknown;

/** The calls of a graph, carried out by `run`. */
class BoundCalls {
  readonly #calls: GraphCalls;
  readonly #run: Run;

  constructor(calls: GraphCalls, run: Run) {
    this.#calls = calls;
    this.#run = run;
  }

  objGet(kind: unknown, id?: unknown): unknown {
    return this.#run(this.#calls.objGet(kind, id), id ?? kind, false);
  }

  assocGet(id1: unknown, type: unknown, ids: unknown): unknown {
    return this.#run(this.#calls.assocGet(id1, type, ids), id1, false);
  }

  assocCount(id1: unknown, type: unknown): unknown {
    return this.#run(this.#calls.assocCount(id1, type), id1, false);
  }

  assocRange(id1: unknown, type: unknown, position: unknown, limit: unknown): unknown {
    return this.#run(this.#calls.assocEdges(id1, type, rangeOf(position, limit)), id1, false);
  }

  assocTimeRange(
    id1: unknown,
    type: unknown,
    high: unknown,
    low: unknown,
    limit: unknown,
  ): unknown {
    const wanted = timeRangeOf(high, low, limit);
    return this.#run(this.#calls.assocEdges(id1, type, wanted), id1, false);
  }

  objAdd(kind: unknown, data: unknown, options?: unknown): unknown {
    return this.#run(this.#calls.objAdd(kind, data, options), undefined, true);
  }

  objUpdate(kind: unknown, id: unknown, changes: unknown): unknown {
    return this.#run(this.#calls.objUpdate(kind, id, changes), id, true);
  }

  objDelete(kind: unknown, id: unknown, options?: unknown): unknown {
    return this.#run(this.#calls.objDelete(kind, id, options), id, true);
  }

  assocAdd(id1: unknown, type: unknown, id2: unknown, time?: unknown, data?: unknown): unknown {
    return this.#run(this.#calls.assocAdd(id1, type, id2, time, data), id1, true);
  }

  assocDelete(id1: unknown, type: unknown, id2: unknown): unknown {
    return this.#run(this.#calls.assocDelete(id1, type, id2), id1, true);
  }

  assocChangeType(id1: unknown, type: unknown, id2: unknown, newType: unknown): unknown {
    return this.#run(this.#calls.assocChangeType(id1, type, id2, newType), id1, true);
  }
}

/** More targets than this are found by key, and not by looking through the head for each. */
const TARGETS_IN_HEAD = 64;

/** An object, one that was deleted and whose edges were kept, or one that is being deleted in several steps. */
export interface GraphEntry {
  readonly id: number;
  readonly kind: Kind;
  readonly isThere: boolean;
  readonly isLeaving: boolean;
}

const READS = ["objGet", "assocGet", "assocCount", "assocRange", "assocTimeRange"] as const;

export class LocalGraph {
  readonly name: string;
  readonly #db: LocalDatabase;
  readonly #calls: GraphCalls;
  readonly #index: Table<IndexRow, number>;
  readonly #leaving: LeavingTable;
  readonly #reads: LockFreeReads;
  readonly #reader: EngineTransaction;
  readonly #codecs: readonly DataCodec[];
  readonly #tag: number;
  readonly #bound: BoundCalls;

  constructor(
    name: string,
    db: LocalDatabase,
    definition: GraphDefinition,
    index: Table<IndexRow, number>,
    leaving: LeavingTable,
  ) {
    this.name = name;
    this.#db = db;
    this.#index = index;
    this.#leaving = leaving;
    this.#reader = new EngineTransaction(db.executor);
    this.#reads = new LockFreeReads(db.executor, (id) => db.get(index, id));
    const operations = new GraphOperations(name, definition, this.#reads.objects);
    this.#calls = new GraphCalls(name, definition, operations, () => db.sequenceOf(index));
    this.#tag = graphTag(name);
    this.#codecs = definition.kinds.map(({ codec }) => codec);
    this.#bound = new BoundCalls(this.#calls, (operation, key, changes) =>
      db.transactSync(
        (tx) =>
          (tx as unknown as SyncTransaction).operate(
            index,
            operation,
            key,
            changes,
          ) as SyncResult<unknown>,
      ),
    );
  }

  objGet(kindName: unknown, given?: unknown): unknown {
    this.#db.checkRead();
    if (given === undefined && typeof kindName === "number") {
      const id = checkedId(kindName);
      const found = this.#reads.object(id, this.#codecs);
      return found && this.#calls.shown(found.kind, id, found.data);
    }
    const kind = this.#calls.kindOf(kindName);
    const found = this.#reads.object(checkedId(given), this.#codecs);
    return found !== undefined && found.kind === kind.number ? found.data : undefined;
  }

  assocGet(id1: unknown, typeName: unknown, ids: unknown): unknown {
    this.#db.checkRead();
    const type = this.#calls.typeOf(typeName);
    const from = checkedId(id1);
    if (typeof ids === "number") {
      const edge = this.#reads.edge(from, type.number, checkedId(ids), type.codec.decode);
      if (edge !== undefined) return edge ?? undefined;
      return this.#read(this.#calls.assocGet(id1, typeName, ids));
    }
    const targets = checkedTargets(ids);
    if (targets.length <= TARGETS_IN_HEAD) {
      const found = this.#reads.edges(from, type.number, edgesTo(targets), type.codec.decode);
      if (found !== undefined) return found;
    }
    return newestFirst(this.#read(this.#calls.assocGet(id1, typeName, targets)) as FoundEdge[]);
  }

  assocCount(id1: unknown, typeName: unknown): number {
    this.#db.checkRead();
    return this.#reads.count(checkedId(id1), this.#calls.typeOf(typeName).number);
  }

  assocRange(id1: unknown, typeName: unknown, position: unknown, limit: unknown): FoundEdge[] {
    return this.#edges(id1, typeName, rangeOf(position, limit));
  }

  assocTimeRange(
    id1: unknown,
    typeName: unknown,
    high: unknown,
    low: unknown,
    limit: unknown,
  ): FoundEdge[] {
    return this.#edges(id1, typeName, timeRangeOf(high, low, limit));
  }

  #edges(id1: unknown, typeName: unknown, wanted: Wanted): FoundEdge[] {
    this.#db.checkRead();
    const type = this.#calls.typeOf(typeName);
    const found = this.#reads.edges(checkedId(id1), type.number, wanted, type.codec.decode);
    return found ?? this.#read(this.#calls.assocEdges(id1, typeName, wanted));
  }

  objAdd(kind: unknown, data: unknown, options?: unknown): unknown {
    return this.#bound.objAdd(kind, data, options);
  }

  objUpdate(kind: unknown, id: unknown, changes: unknown): unknown {
    return this.#bound.objUpdate(kind, id, changes);
  }

  assocAdd(id1: unknown, type: unknown, id2: unknown, time?: unknown, data?: unknown): unknown {
    return this.#bound.assocAdd(id1, type, id2, time, data);
  }

  assocDelete(id1: unknown, type: unknown, id2: unknown): unknown {
    return this.#bound.assocDelete(id1, type, id2);
  }

  assocChangeType(id1: unknown, type: unknown, id2: unknown, newType: unknown): unknown {
    return this.#bound.assocChangeType(id1, type, id2, newType);
  }

  async objDelete(kindName: unknown, given: unknown, options?: unknown): Promise<DeletedObject> {
    const kind = this.#calls.kindOf(kindName);
    const id = checkedId(given);
    const edges = edgesOption(options);
    const { operations } = this.#calls;
    let isLarge = false;
    const first = await this.#transact((tx) =>
      this.#operate(tx, id, (engine, index) => {
        isLarge = edges === "remove" && operations.isLarge(engine, index, kind, id);
        if (!isLarge) return operations.objDelete(engine, index, kind, id, edges);
        const deleted = operations.beginDeletion(engine, index, kind, id);
        tx.put(this.#leaving, { graph: this.name, id });
        return { deleted, edges: 0 };
      }),
    );
    return isLarge ? { ...first, edges: await this.#finishDeletion(id) } : first;
  }

  /** Removes what is left of an object that is being deleted. Others may do the same meanwhile. */
  async #finishDeletion(id: number): Promise<number> {
    const { operations } = this.#calls;
    for (let edges = 0; ; ) {
      const removed = await this.#transact((tx) =>
        this.#operate(tx, id, (engine, index) => {
          const some = operations.continueDeletion(engine, index, id);
          if (some < 0) tx.delete(this.#leaving, [this.name, id]);
          return some;
        }),
      );
      if (removed < 0) return edges;
      edges += removed;
    }
  }

  /** Goes on with deletions that somebody has begun, and perhaps not finished. */
  async resumeDeletions(): Promise<void> {
    try {
      for (const { id } of this.#db.scan(this.#leaving, { eq: [this.name] }).toArray()) {
        await this.#finishDeletion(id as number);
      }
    } catch (error) {
      passOver(error, `deleting objects of graph ${this.name}`);
    }
  }

  #transact<T>(body: (tx: SyncTransaction) => T): Promise<T> {
    return this.#db.transact((tx) =>
      (tx as LocalAsyncTransaction).operate(body),
    ) as unknown as Promise<T>;
  }

  #operate<T>(tx: SyncTransaction, key: unknown, operation: Operation<T>): T {
    return tx.operate(this.#index, operation, key, true);
  }

  in(given: unknown): unknown {
    const found = typeof given === "object" && given !== null ? given : {};
    const index = this.#index;
    if (found instanceof LocalSnapshot) {
      const run: Run = (operation) => found.operate(index, operation);
      const bound = new BoundCalls(this.#calls, run);
      return Object.fromEntries(
        READS.map((name) => [name, (bound[name] as () => unknown).bind(bound)]),
      );
    }
    if (found instanceof SyncTransaction) {
      return new BoundCalls(this.#calls, (operation, key, changes) =>
        found.operate(index, operation, key, changes),
      );
    }
    const tx = found instanceof LocalAsyncTransaction ? found : transactionBehind(found);
    if (tx instanceof LocalAsyncTransaction) {
      return new BoundCalls(this.#calls, (operation, key, changes) =>
        tx.operate((inner) => inner.operate(index, operation, key, changes)),
      );
    }
    throw new SituError(
      "SITU_TYPE",
      `pass a transaction or a snapshot of this graph's database, not ${show(given)}`,
    );
  }

  *ids(): Iterable<number> {
    for (const { id, state } of this.#db.scan(this.#index)) if (state === PRESENT) yield id;
  }

  /** For those who copy graphs: what there is, of which names. */
  get definition(): GraphDefinition {
    return this.#calls.definition;
  }

  /** For those who copy graphs: all objects of a snapshot, those without data included. */
  *entries(snapshot: LocalSnapshot): Iterable<GraphEntry> {
    for (const { id, kind, state } of snapshot.scan(this.#index)) {
      yield {
        id,
        kind: this.definition.kinds[kind],
        isThere: state === PRESENT,
        isLeaving: state === LEAVING,
      };
    }
  }

  /** For those who copy graphs: an object that was deleted, and whose edges were kept; false if the id is in use. */
  addShell(tx: SyncTransaction, kindName: unknown, given: unknown): boolean {
    const kind = this.#calls.kindOf(kindName);
    const id = checkedId(given);
    return this.#operate(tx, id, (engine, index) =>
      this.#calls.operations.addShell(engine, index, kind, id),
    );
  }

  pointerTo(given: unknown): Pointer | undefined {
    this.#db.checkRead();
    const row = this.#db.get(this.#index, checkedId(given));
    return row !== undefined && row.state === PRESENT && row.at !== null ? row.at : undefined;
  }

  readBy(pointer: unknown): unknown {
    this.#db.checkRead();
    if (!isPointer(pointer)) {
      throw new SituError("SITU_TYPE", `expected a Pointer, got ${show(pointer)}`);
    }
    const bytes = readObject(this.#db.executor, pointer);
    // Aligned, as the fields of an object are.
    const views = new Views(new ArrayBuffer(Math.ceil(bytes.length / 8) * 8));
    views.u8.set(bytes);
    const { i32 } = views;
    const header = i32[0];
    const dataAt = OBJECT_SLOTS + ((header >>> 8) & 0xff) * SLOT_WORDS;
    const words = i32[1];
    const isObject = i32.length >= OBJECT_SLOTS && header >>> 24 === MARK;
    const fits = words >= 0 && dataAt + words <= i32.length;
    const id = isObject ? numberAt(i32, 2) : 0;
    if (!isObject || !fits || !this.#isOwn(i32[TAG], id, pointer)) {
      // One that has no tag may have moved since it was read: that is another error.
      readObject(this.#db.executor, pointer);
      throw new SituError("SITU_TYPE", `${pointer} leads to no object of graph ${this.name}`);
    }
    if (((header >>> 16) & 0xff) !== PRESENT) return undefined;
    const kind = header & 0xff;
    return this.#calls.shown(kind, id, this.#codecs[kind]?.decode(views, dataAt, words));
  }

  /** Whether an object with this tag and id, where a pointer leads to, is one of this graph. */
  #isOwn(tag: number, id: number, { address, incarnation }: Pointer): boolean {
    if (tag !== 0) return tag === this.#tag;
    const at = this.#db.get(this.#index, id)?.at;
    return at?.address === address && at.incarnation === incarnation;
  }

  #read<T>(operation: Operation<T>): T {
    const read = (tx: EngineTransaction): T => operation(tx, this.#db.storeOf(this.#index));
    return runReadOnly(this.#db.executor, this.#reader, read, undefined);
  }
}
