/**
 * A graph of a cluster: what `graph` returns for a database on other machines (../../graph.ts says what each call is for).
 * Reads outside of transactions look at one row, of the object or of the head of a list. Where the protocol reads by verb, that
 * is one read of memory whose place is remembered (protocols/execute/remembered-rows.ts), and no program of the other node takes part.
 * What a head does not hold is read in a transaction. Changes are distributed transactions.
 */

import type { RememberedRows } from "../../../protocols/execute/remembered-rows.ts";
import { passOver } from "../../../runtime/background-errors.ts";
import { wallClockMs } from "../../../runtime/clock.ts";
import { SituError } from "../../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../../runtime/known-options.ts";
import { show } from "../../../runtime/show.ts";
import type { FoundEdge, Wanted } from "../../../stores/graph/lock-free.ts";
import type { AssociationType } from "../../../tables/graph/definition.ts";
import type { DeletedObject } from "../../../tables/graph/operations.ts";
import {
  LEAVING,
  type ListRow,
  type ObjectRow,
  PRESENT,
} from "../../../tables/graph/row-tables.ts";
import type { Table } from "../../../tables/table.ts";
import {
  checkedId,
  checkedTargets,
  checkedTime,
  edgesOption,
  encodedEdge,
  GraphNames,
  hasSameData,
  newestFirst,
  rangeOf,
  timeRangeOf,
} from "../../local/graph/calls.ts";
import { transactionBehind } from "../../run/interactive.ts";
import type { AsyncScan } from "../../scan.ts";
import { RemoteSnapshot } from "../remote-snapshot.ts";
import { RemoteTransaction } from "../remote-transaction.ts";
import type { RowReads, RowTransaction } from "./row-lists.ts";
import type { RowOperations } from "./row-operations.ts";

/** What a graph needs of its database. */
export interface GraphHost {
  transact<T>(body: (tx: RemoteTransaction) => T | PromiseLike<T>): Promise<Awaited<T>>;
  /** Reads a row outside of transactions; by verb, if the protocol reads so. */
  recall(rows: RememberedRows, table: Table, key: unknown): Promise<unknown>;
  scan<Row, Key>(table: Table<Row, Key>): AsyncScan<Row>;
}

/** Carries an operation out in the transaction that it belongs to. */
type Run<Tx> = <T>(operation: (tx: Tx) => Promise<T>) => Promise<T>;

/** The reading calls. */
class RowReadCalls<Tx extends RowReads> {
  readonly names: GraphNames;
  readonly operations: RowOperations;
  readonly run: Run<Tx>;

  constructor(operations: RowOperations, run: Run<Tx>) {
    this.names = new GraphNames(operations.graph, operations.definition);
    this.operations = operations;
    this.run = run;
  }

  async objGet(kindName: unknown, given?: unknown): Promise<unknown> {
    const isAny = given === undefined && typeof kindName === "number";
    const kind = isAny ? undefined : this.names.kindOf(kindName);
    const id = checkedId(isAny ? kindName : given);
    const found = await this.run((tx) => this.operations.objGet(tx, id));
    if (found === undefined) return undefined;
    if (kind === undefined) return this.names.shown(found.kind, id, found.data);
    return found.kind === kind.number ? found.data : undefined;
  }

  async assocGet(id1: unknown, typeName: unknown, ids: unknown): Promise<unknown> {
    const type = this.names.typeOf(typeName);
    const from = checkedId(id1);
    const isOne = typeof ids === "number";
    const targets = isOne ? [checkedId(ids)] : checkedTargets(ids);
    const found = await this.run((tx) => this.operations.assocGet(tx, type, from, targets));
    return isOne ? found[0] : newestFirst(found);
  }

  async assocCount(id1: unknown, typeName: unknown): Promise<number> {
    const type = this.names.typeOf(typeName);
    const from = checkedId(id1);
    return this.run((tx) => this.operations.assocCount(tx, type, from));
  }

  async assocRange(
    id1: unknown,
    typeName: unknown,
    position: unknown,
    limit: unknown,
  ): Promise<FoundEdge[]> {
    return this.edges(checkedId(id1), this.names.typeOf(typeName), rangeOf(position, limit));
  }

  async assocTimeRange(
    id1: unknown,
    typeName: unknown,
    high: unknown,
    low: unknown,
    limit: unknown,
  ): Promise<FoundEdge[]> {
    const wanted = timeRangeOf(high, low, limit);
    return this.edges(checkedId(id1), this.names.typeOf(typeName), wanted);
  }

  protected edges(id1: number, type: AssociationType, wanted: Wanted): Promise<FoundEdge[]> {
    return this.run((tx) => this.operations.assocEdges(tx, type, id1, wanted));
  }
}

/** All calls in a transaction. */
class RowCalls extends RowReadCalls<RowTransaction> {
  async objAdd(kindName: unknown, data: unknown, options: unknown = {}): Promise<number> {
    const kind = this.names.kindOf(kindName);
    refuseUnknownOptions("objAdd", options as object, ["id"]);
    const { id: given } = options as { id?: unknown };
    const chosen = given === undefined ? undefined : checkedId(given);
    const { codec } = kind;
    const words = codec.scratch.i32.slice(0, codec.encode(data));
    return this.run(async (tx) => {
      for (;;) {
        const id = chosen ?? this.operations.draw();
        if (await this.operations.objAdd(tx, kind, id, words)) return id;
        if (chosen === undefined) continue;
        const { graph } = this.names;
        throw new SituError("SITU_EXISTS", `graph ${graph} has an object ${chosen} already`);
      }
    });
  }

  async objUpdate(kindName: unknown, given: unknown, changes: unknown): Promise<void> {
    const kind = this.names.kindOf(kindName);
    const id = checkedId(given);
    if (typeof changes !== "object" || changes === null) {
      throw new SituError("SITU_TYPE", `changes are an object, not ${show(changes)}`);
    }
    const own = kind.codec.takeChanges(changes) as object;
    await this.run((tx) => this.operations.objUpdate(tx, kind, id, own));
  }

  async objDelete(kindName: unknown, given: unknown, options?: unknown): Promise<DeletedObject> {
    const kind = this.names.kindOf(kindName);
    const id = checkedId(given);
    const edges = edgesOption(options);
    return this.run((tx) => this.operations.objDelete(tx, kind, id, edges));
  }

  async assocAdd(
    id1: unknown,
    typeName: unknown,
    id2: unknown,
    given?: unknown,
    data?: unknown,
  ): Promise<boolean> {
    const type = this.names.typeOf(typeName);
    const from = checkedId(id1);
    const to = checkedId(id2);
    const time = given === undefined ? wallClockMs() : checkedTime("time", given);
    const words = type.codec.scratch.i32.slice(0, encodedEdge(type, data));
    return this.run((tx) => this.operations.assocAdd(tx, type, from, to, time, words));
  }

  async assocDelete(id1: unknown, typeName: unknown, id2: unknown): Promise<boolean> {
    const type = this.names.typeOf(typeName);
    const from = checkedId(id1);
    const to = checkedId(id2);
    return this.run((tx) => this.operations.assocDelete(tx, type, from, to));
  }

  async assocChangeType(
    id1: unknown,
    typeName: unknown,
    id2: unknown,
    newName: unknown,
  ): Promise<boolean> {
    const type = this.names.typeOf(typeName);
    const newType = this.names.typeOf(newName);
    if (!hasSameData(type, newType)) {
      throw new SituError(
        "SITU_TYPE",
        `association ${newType.name} has other fields than ${type.name}: delete the edge and add another one`,
      );
    }
    const from = checkedId(id1);
    const to = checkedId(id2);
    return this.run((tx) => this.operations.assocChangeType(tx, type, from, to, newType));
  }
}

export class RemoteGraph extends RowCalls {
  readonly name: string;
  readonly #host: GraphHost;
  readonly objects: RememberedRows;
  readonly lists: RememberedRows;

  constructor(
    operations: RowOperations,
    host: GraphHost,
    objects: RememberedRows,
    lists: RememberedRows,
  ) {
    super(operations, async (operation) => host.transact(operation) as never);
    this.name = operations.graph;
    this.#host = host;
    this.objects = objects;
    this.lists = lists;
  }

  override async objGet(kindName: unknown, given?: unknown): Promise<unknown> {
    const isAny = given === undefined && typeof kindName === "number";
    const kind = isAny ? undefined : this.names.kindOf(kindName);
    const id = checkedId(isAny ? kindName : given);
    const { rows } = this.operations;
    const row = await this.#host.recall(this.objects, rows.objects, id);
    const found = this.operations.shown(row as ObjectRow | undefined);
    if (found === undefined) return undefined;
    if (kind === undefined) return this.names.shown(found.kind, id, found.data);
    return found.kind === kind.number ? found.data : undefined;
  }

  override async assocCount(id1: unknown, typeName: unknown): Promise<number> {
    const row = await this.#list(checkedId(id1), this.names.typeOf(typeName));
    return row === undefined || row.state === LEAVING ? 0 : row.edges;
  }

  override async assocGet(id1: unknown, typeName: unknown, ids: unknown): Promise<unknown> {
    const type = this.names.typeOf(typeName);
    const from = checkedId(id1);
    const isOne = typeof ids === "number";
    const targets = isOne ? [checkedId(ids)] : checkedTargets(ids);
    const found = await this.#inHead(from, type, (head) =>
      this.operations.assocGet(head, type, from, targets),
    );
    if (found === undefined) return super.assocGet(id1, typeName, ids);
    return isOne ? found[0] : newestFirst(found);
  }

  protected override async edges(
    id1: number,
    type: AssociationType,
    wanted: Wanted,
  ): Promise<FoundEdge[]> {
    const found = await this.#inHead(id1, type, (head) =>
      this.operations.assocEdges(head, type, id1, wanted),
    );
    return found ?? super.edges(id1, type, wanted);
  }

  async #list(id1: number, { number }: AssociationType): Promise<ListRow | undefined> {
    const { lists } = this.operations.rows;
    const row = await this.#host.recall(this.lists, lists, [id1, number]);
    return row as ListRow | undefined;
  }

  /** Reads what the head of a list can tell; undefined if more of the list is needed. */
  async #inHead<T>(
    id1: number,
    type: AssociationType,
    read: (head: RowReads) => Promise<T>,
  ): Promise<T | undefined> {
    const row = await this.#list(id1, type);
    const { lists } = this.operations.rows;
    const behind = (): never => {
      throw BEHIND;
    };
    const get = async (table: Table): Promise<unknown> =>
      table === (lists as Table) ? row : behind();
    try {
      return await read({ get, getMany: behind, scan: behind } as unknown as RowReads);
    } catch (error) {
      if (error === BEHIND) return undefined;
      throw error;
    }
  }

  /** The object is gone at once; if it has many edges, these are removed in several transactions. */
  override async objDelete(
    kindName: unknown,
    given: unknown,
    options?: unknown,
  ): Promise<DeletedObject> {
    const kind = this.names.kindOf(kindName);
    const id = checkedId(given);
    const edges = edgesOption(options);
    const { isLarge, ...first } = await this.run(async (tx) => {
      const deleted =
        edges === "remove" ? await this.operations.beginDeletion(tx, kind, id) : undefined;
      if (deleted !== undefined) return { deleted, edges: 0, isLarge: true };
      return { ...(await this.operations.objDelete(tx, kind, id, edges)), isLarge: false };
    });
    return isLarge ? { ...first, edges: await this.#finishDeletion(id) } : first;
  }

  /** Others may do the same meanwhile. */
  async #finishDeletion(id: number): Promise<number> {
    for (let edges = 0; ; ) {
      const removed = await this.run((tx) => this.operations.continueDeletion(tx, id));
      if (removed < 0) return edges;
      edges += removed;
    }
  }

  /** Goes on with deletions that somebody has begun, and perhaps not finished. */
  async resumeDeletions(): Promise<void> {
    try {
      const leaving: number[] = [];
      for await (const { id } of this.#host.scan(this.operations.rows.leaving)) leaving.push(id);
      for (const id of leaving) await this.#finishDeletion(id);
    } catch (error) {
      passOver(error, `deleting objects of graph ${this.name}`);
    }
  }

  in(given: unknown): unknown {
    const found = typeof given === "object" && given !== null ? given : {};
    if (found instanceof RemoteSnapshot) {
      return new RowReadCalls<RowReads>(this.operations, (operation) => operation(found));
    }
    const tx = found instanceof RemoteTransaction ? found : transactionBehind(found);
    if (tx instanceof RemoteTransaction) {
      return new RowCalls(this.operations, (operation) => operation(tx));
    }
    throw new SituError(
      "SITU_TYPE",
      `pass a transaction or a snapshot of this graph's database, not ${show(given)}`,
    );
  }

  async *ids(): AsyncGenerator<number> {
    for await (const { id, state } of this.#host.scan(this.operations.rows.objects)) {
      if (state === PRESENT) yield id;
    }
  }
}

/** Says that a read outside of transactions needs more than the head of a list. */
const BEHIND = new Error("behind the head");
