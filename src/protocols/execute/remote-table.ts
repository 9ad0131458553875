/** A table of a cluster, as one client has it open: how rows travel, and where they lie. */

import type { NodeId } from "../../fabric/fabric.ts";
import { openRemote } from "../../stores/remote/open.ts";
import type { RemoteStore, RemoteTable as RemoteStorePlace } from "../../stores/remote/remote.ts";
import type { RowCodec } from "../../stores/store.ts";
import { canonicalKey } from "../../tables/copied-key.ts";
import { type RowValues, Structure } from "../../tables/indexes/structure.ts";
import type { Placement } from "../../tables/partitions.ts";
import { Partitioner, tableId } from "../../tables/partitions.ts";
import type { Table } from "../../tables/table.ts";

export class RemoteTable {
  readonly table: Table;
  readonly id: number;
  readonly codec: RowCodec<RowValues, unknown>;
  readonly #placement: Placement;
  readonly #partitioner: Partitioner;
  readonly #stores = new Map<NodeId, RemoteStore<unknown>>();
  /** A key of one field that the caller writes as a list: a value for all others. */
  readonly #isListOfOne: boolean;

  constructor(table: Table, placement: Placement) {
    this.table = table;
    this.id = tableId(table.name);
    this.codec = codecOf(table);
    this.#placement = placement;
    this.#partitioner = new Partitioner(table, placement.partitions);
    this.#isListOfOne = !table.singleKey && table.key.length === 1;
  }

  /** For lookups by verb: what a node has told of the table. Ordered ones are asked by message. */
  openPlace(node: NodeId, told: string): void {
    const place = JSON.parse(told) as RemoteStorePlace | null;
    if (place !== null) this.#stores.set(node, openRemote(place, this.codec));
  }

  /** The node was started anew: the table lies elsewhere now. */
  closePlace(node: NodeId): void {
    this.#stores.delete(node);
  }

  /** The table at a node, to be looked into by verb. */
  storeAt(node: NodeId): RemoteStore<unknown> | undefined {
    return this.#stores.get(node);
  }

  /** A caller's key as our own, in a form that tells keys apart. */
  keptKey(given: unknown): unknown {
    return canonicalKey(this.table, given);
  }

  /** Checks the key's type. */
  partitionOf(key: unknown): number {
    return this.#partitioner.ofKey(key, this.codec.stageKey(key));
  }

  /** The partition of all rows whose keys begin with these values, if they are in one. */
  partitionWithin(prefix: unknown): number | undefined {
    const first = Array.isArray(prefix) ? prefix[0] : prefix;
    return first === undefined ? undefined : this.#partitioner.ofFirst(first);
  }

  primaryOf(partition: number): NodeId {
    return this.#placement.primaryOf(partition);
  }

  /** The key inside a row, as the caller would write it. */
  keyOf(row: RowValues): unknown {
    const { key, singleKey } = this.table;
    return singleKey ? row[key[0]] : key.map((name) => row[name]);
  }

  /** The key as nodes know it: their tables come from schemas, which do not know lists of one. */
  sent(key: unknown): unknown {
    return this.#isListOfOne ? (key as unknown[])[0] : key;
  }
}

/** The codec of a table is generated code: all connections of this thread share it. */
function codecOf(table: Table): RowCodec<RowValues, unknown> {
  let codec = codecs.get(table);
  if (codec === undefined) {
    codec = new Structure(table as Table<RowValues>).codec as RowCodec<RowValues, unknown>;
    codecs.set(table, codec);
  }
  return codec;
}

const codecs = new WeakMap<Table, RowCodec<RowValues, unknown>>();

/** Tells keys apart. */
export function keyText(key: unknown): string {
  if (typeof key === "number") return `n${key}`;
  if (typeof key === "string") return `s${key.length}:${key}`;
  if (Array.isArray(key)) return key.map(keyText).join(",");
  if (key instanceof Uint8Array) return `b${Buffer.from(key).toString("hex")}`;
  return `${typeof key}${String(key)}`;
}
