/**
 * One iteration of a scan over all nodes. Each node gives its rows in the order of the scan, some at
 * a time; here they become one stream: of an ordered scan, always the least of all nodes' next
 * rows, otherwise whatever has arrived. Nodes that are running out of rows are asked for more with
 * one message each, side by side.
 *
 * Nodes do not know what the transaction has written. A row of theirs that it has written too is
 * passed over, and its own one comes in the place that is now its place. As in a local transaction,
 * what the body writes before the scan begins is seen; what it changes behind the scan's place does
 * not come again, unless an index moves it ahead.
 *
 * To fetch and to read are two steps: in a transaction, operations that were issued earlier are
 * carried out between the two, and `read` must see what they have written.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Reader } from "../../fabric/wire.ts";
import { SCAN_BATCH_ROWS } from "../../runtime/limits.ts";
import { compareKeys } from "../../stores/btree/keys.ts";
import type { OrderedCodec } from "../../stores/store.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { AtSnapshot } from "../phases/read.ts";
import { Scan } from "../phases/scan.ts";
import type { Part } from "../writes.ts";
import type { Entry } from "./remote-access-set.ts";
import type { RemotePlan } from "./remote-scan-plan.ts";
import { keyText, type RemoteTable } from "./remote-table.ts";

/** What scans and counts need of their transaction. */
export interface ScanSource {
  readonly nodes: readonly NodeId[];
  /** What they read from, if not from what is there now. */
  readonly snapshot?: AtSnapshot | undefined;
  /** What the transaction has read at a node. */
  partAt(node: NodeId): Part;
  /** Sends steps, side by side. False if one of them kept meeting locks. */
  send(steps: readonly Scan[]): Promise<boolean>;
  /** Fails if the transaction holds locks that its own steps would meet. */
  check(table: RemoteTable): void;
  /** All rows of a table that the transaction has written; without a row, one it has deleted. */
  writtenOf(table: RemoteTable): readonly Entry[];
}

/** The rows of one node that have arrived and were not given out yet. */
class NodeRows {
  readonly node: NodeId;
  rows: RowValues[] = [];
  at = 0;
  place: Int32Array | undefined;
  isDone = false;
  /** Where the next row is in the order, once somebody has asked. */
  #order: Int32Array | undefined;

  constructor(node: NodeId) {
    this.node = node;
  }

  get left(): number {
    return this.rows.length - this.at;
  }

  get next(): RowValues {
    return this.rows[this.at];
  }

  orderOf(codec: OrderedCodec<RowValues, unknown>): Int32Array {
    this.#order ??= orderedOf(codec, this.next);
    return this.#order;
  }

  moveOn(): void {
    this.#order = undefined;
    if (++this.at < this.rows.length) return;
    this.rows = [];
    this.at = 0;
  }
}

export class RemoteRows {
  /** What the last `read` has found. */
  batch: RowValues[] = [];
  readonly #plan: RemotePlan;
  readonly #source: ScanSource;
  readonly #nodes: readonly NodeRows[];
  #left: number;
  /** Of an ordered scan: where the last row that was given out is in the order. */
  #passed: Int32Array | undefined;
  /** Of another one: own rows from before it began that no node has mentioned yet, by key. */
  #unmet: Map<string, Entry> | undefined;

  constructor(plan: RemotePlan, source: ScanSource) {
    this.#plan = plan;
    this.#source = source;
    this.#left = plan.limit;
    const { partition, table } = plan;
    const nodes = partition === undefined ? source.nodes : [table.primaryOf(partition)];
    this.#nodes = nodes.map((node) => new NodeRows(node));
  }

  /** Brings what the next `read` needs; undefined if all of it is here. False: met locks. */
  fetch(): Promise<boolean> | undefined {
    if (this.#left === 0) return undefined;
    const open = this.#nodes.filter(({ isDone }) => !isDone);
    const lacking = open.filter(({ left }) => left === 0);
    const isEnough =
      this.#plan.order === undefined
        ? this.#nodes.some(({ left }) => left > 0)
        : lacking.length === 0;
    if (open.length === 0 || isEnough) return undefined;
    const most = Math.min(this.#left, SCAN_BATCH_ROWS);
    const asked = open.filter(({ left }) => left < most / 2);
    return this.#ask(asked, most);
  }

  async #ask(nodes: readonly NodeRows[], most: number): Promise<boolean> {
    const { table, way } = this.#plan;
    this.#source.check(table);
    const steps = nodes.map((each) => {
      const take = (reply: Reader, words: number): void => {
        each.rows.push(table.codec.decode(reply.views, reply.at, words));
      };
      return new Scan(
        each.node,
        table.id,
        way,
        most,
        each.place,
        this.#source.partAt(each.node),
        take,
        this.#source.snapshot,
      );
    });
    if (!(await this.#source.send(steps))) return false;
    steps.forEach(({ place, isDone }, i) => {
      nodes[i].place = place;
      nodes[i].isDone = isDone;
    });
    return true;
  }

  /** Replaces `batch` by the next rows, perhaps by none; false at the end. */
  read(): boolean {
    this.batch = [];
    const own = new Map<string, Entry>();
    for (const each of this.#source.writtenOf(this.#plan.table)) own.set(keyText(each.key), each);
    const isOver =
      this.#plan.order === undefined
        ? this.#readAny(own)
        : this.#readOrdered(own, this.#plan.order);
    return !isOver || this.batch.length > 0;
  }

  /** True if there are no rows but those in the batch. */
  #readOrdered(own: ReadonlyMap<string, Entry>, order: OrderedCodec<RowValues, unknown>): boolean {
    const ownRows = this.#ownAhead(own, order);
    let ownAt = 0;
    while (this.#left > 0) {
      let least: NodeRows | undefined;
      for (const each of this.#nodes) {
        if (each.left === 0 && !each.isDone) return false;
        if (each.left === 0) continue;
        if (least === undefined || this.#compare(each.orderOf(order), least.orderOf(order)) < 0) {
          least = each;
        }
      }
      const ownRow = ownRows[ownAt];
      if (least === undefined && ownRow === undefined) return true;
      if (
        least === undefined ||
        (ownRow !== undefined && this.#compare(ownRow.place, least.orderOf(order)) <= 0)
      ) {
        ownAt++;
        this.#give({ ...ownRow.row }, ownRow.place);
      } else {
        if (!this.#isOwn(own, least.next)) this.#give(least.next, least.orderOf(order));
        least.moveOn();
      }
    }
    return true;
  }

  /** Own rows that belong to the scan and that it has not passed yet, in its order. */
  #ownAhead(
    own: ReadonlyMap<string, Entry>,
    order: OrderedCodec<RowValues, unknown>,
  ): { readonly row: RowValues; readonly place: Int32Array }[] {
    const ahead: { readonly row: RowValues; readonly place: Int32Array }[] = [];
    for (const { row } of own.values()) {
      if (row === undefined || !this.#plan.holds(row)) continue;
      const place = orderedOf(order, row);
      if (this.#passed !== undefined && this.#compare(place, this.#passed) <= 0) continue;
      ahead.push({ row, place });
    }
    return ahead.sort((a, b) => this.#compare(a.place, b.place));
  }

  #readAny(own: ReadonlyMap<string, Entry>): boolean {
    this.#unmet ??= new Map(own);
    for (const each of this.#nodes) {
      while (each.left > 0) {
        if (this.#left === 0) return true;
        const row = each.next;
        each.moveOn();
        const key = own.size === 0 ? undefined : this.#keyOf(row);
        const ownRow = key === undefined ? undefined : own.get(key);
        if (key === undefined || ownRow === undefined) {
          this.#give(row);
          continue;
        }
        this.#unmet.delete(key);
        this.#giveOwn(ownRow);
      }
    }
    if (this.#nodes.some(({ isDone }) => !isDone)) return false;
    for (const key of this.#unmet.keys()) {
      if (this.#left === 0) break;
      this.#giveOwn(own.get(key));
    }
    this.#unmet.clear();
    return true;
  }

  #giveOwn(own: Entry | undefined): void {
    if (own?.row !== undefined && this.#plan.holds(own.row)) this.#give({ ...own.row });
  }

  #give(row: RowValues, place?: Int32Array): void {
    this.batch.push(row);
    this.#left--;
    this.#passed = place;
  }

  #isOwn(own: ReadonlyMap<string, Entry>, row: RowValues): boolean {
    return own.size > 0 && own.has(this.#keyOf(row));
  }

  #keyOf(row: RowValues): string {
    return keyText(this.#plan.table.keyOf(row));
  }

  #compare(a: Int32Array, b: Int32Array): number {
    const order = compareKeys(a, 0, a.length, b, b.length);
    return this.#plan.way.reverse ? -order : order;
  }
}

function orderedOf(codec: OrderedCodec<RowValues, unknown>, row: RowValues): Int32Array {
  const words = codec.stageOrderedOf(row);
  return codec.ordered.slice(0, words);
}
