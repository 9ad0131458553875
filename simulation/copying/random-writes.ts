/**
 * Transactions that put and remove rows of two tables, at random, and what must be there in the end: of each row the
 * last write that was committed, as far as times say which one that is.
 */

import type { NodeId } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { bytes, str, table, u32 } from "../../src/index.ts";
import { COMMITTED } from "../../src/protocols/coordinator.ts";
import { keyText, RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { Part, WriteList } from "../../src/protocols/writes.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { RowValues } from "../../src/tables/indexes/structure.ts";
import type { Placement } from "../../src/tables/partitions.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import type { Table } from "../../src/tables/table.ts";
import { primaryRows } from "../cluster/rest.ts";
import type { SimulatedNode } from "../cluster/sim-node.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";

const Hashed = table(
  "hashed",
  { id: u32(), version: u32(), group: u32(), payload: bytes() },
  {
    key: "id",
    indexes: { byGroup: { on: ["group"] }, byVersion: { on: ["version"], kind: "ordered" } },
  },
) as unknown as Table;

const Sorted = table(
  "sorted",
  { name: str(12), number: u32(), version: u32(), group: u32(), payload: bytes() },
  { key: ["name", "number"], ordered: true, indexes: { byGroup: { on: ["group"] } } },
) as unknown as Table;

const Small = table(
  "small",
  { id: u32(), version: u32(), group: u32() },
  { key: "id" },
) as unknown as Table;

export const TABLES: readonly Table[] = [Hashed, Sorted, Small];

const LONG_MS = 60_000;
const GROUPS = 7;

/** What a committed transaction has made of a row; undefined if it removed it. */
interface Write {
  readonly version: number | undefined;
  readonly startUs: number;
  endUs: number;
}

export class RandomWrites {
  running = 0;
  committed = 0;
  refused = 0;
  readonly #fabric: SimulatedFabric;
  readonly #random: Random;
  readonly #keys: number;
  readonly #payloadBytes: number;
  readonly #writes = new Map<string, Write[]>();
  /**
   * Rows that transactions under way write, and how many do. A row that is removed is one that is there, and is
   * written by nobody else: what removes a row that is not there locks nothing at the primary.
   */
  readonly #busy = new Map<string, number>();
  readonly #present = new Set<string>();
  #versions = 0;

  constructor(fabric: SimulatedFabric, random: Random, keys: number, payloadBytes: number) {
    this.#fabric = fabric;
    this.#random = random;
    this.#keys = keys;
    this.#payloadBytes = payloadBytes;
  }

  /** Opens the tables at some nodes; others hear of them as they need them. */
  open(nodes: readonly SimulatedNode[]): void {
    for (const { tables } of nodes) {
      for (const each of TABLES) tables.open(JSON.stringify(schemaOf(each)));
    }
  }

  /** Puts all rows once, a few at a time. */
  fill(nodes: readonly SimulatedNode[], placement: Placement): void {
    for (const each of TABLES) {
      for (let key = 0; key < this.#keys; key += 4) {
        const keys = [key, key + 1, key + 2, key + 3].filter((one) => one < this.#keys);
        this.#run(
          nodes,
          placement,
          keys.map((one) => [each, one, false] as const),
        );
        this.#fabric.run(this.#fabric.nowUs + 2_000);
      }
    }
  }

  /** Begins a transaction that writes a few rows. */
  begin(nodes: readonly SimulatedNode[], placement: Placement): void {
    const random = this.#random;
    const rows = new Map<string, readonly [Table, number, boolean]>();
    for (let left = 1 + random.below(3); left > 0; left--) {
      const each = TABLES[random.below(TABLES.length)];
      const key = random.below(this.#keys);
      const name = `${each.name} ${key}`;
      const writers = this.#busy.get(name) ?? 0;
      if (writers === Number.POSITIVE_INFINITY) continue;
      const canBeRemoved = writers === 0 && this.#present.has(name);
      rows.set(name, [each, key, canBeRemoved && random.below(3) > 0]);
    }
    if (rows.size > 0) this.#run(nodes, placement, [...rows.values()]);
  }

  #run(
    nodes: readonly SimulatedNode[],
    placement: Placement,
    rows: readonly (readonly [Table, number, boolean])[],
  ): void {
    const parts = new Map<NodeId, Part>();
    const made: [string, Write][] = [];
    const startUs = this.#fabric.nowUs;
    for (const [each, number, isRemoved] of rows) {
      const remote = new RemoteTable(each, placement);
      const row = this.#rowOf(each, number);
      const key = remote.keyOf(row);
      const partition = remote.partitionOf(key);
      const list = new WriteList(new Writer());
      if (isRemoved) list.remove(remote.id, partition, remote.sent(key));
      else list.put(remote.id, partition, remote.codec.scratch.i32, 0, remote.codec.encode(row));
      const primary = placement.primaryOf(partition);
      const part = new Part(list.words(), list.count);
      parts.set(primary, parts.get(primary)?.with(part) ?? part);
      const version = isRemoved ? undefined : (row.version as number);
      made.push([
        `${each.name} ${keyText(key)}`,
        { version, startUs, endUs: Number.POSITIVE_INFINITY },
      ]);
    }
    const { service } = nodes[this.#random.below(nodes.length)];
    for (const [each, number, isRemoved] of rows) {
      const name = `${each.name} ${number}`;
      const more = isRemoved ? Number.POSITIVE_INFINITY : 1;
      this.#busy.set(name, (this.#busy.get(name) ?? 0) + more);
    }
    this.running++;
    service.driver.run(
      service.coordinator.commit(parts),
      LONG_MS,
      (outcome) => {
        this.running--;
        this.#ended(rows, outcome === COMMITTED);
        if (outcome !== COMMITTED) {
          this.refused++;
          return;
        }
        this.committed++;
        for (const [text, write] of made) {
          write.endUs = this.#fabric.nowUs;
          this.#writes.set(text, [...(this.#writes.get(text) ?? []), write]);
        }
      },
      (error) => {
        throw error;
      },
    );
  }

  #ended(rows: readonly (readonly [Table, number, boolean])[], isCommitted: boolean): void {
    for (const [each, number, isRemoved] of rows) {
      const name = `${each.name} ${number}`;
      const writers = this.#busy.get(name)! - 1;
      if (isRemoved || writers === 0) this.#busy.delete(name);
      else this.#busy.set(name, writers);
      if (!isCommitted) continue;
      if (isRemoved) this.#present.delete(name);
      else this.#present.add(name);
    }
  }

  #rowOf({ name }: Table, number: number): RowValues {
    const version = ++this.#versions;
    const group = version % GROUPS;
    if (name === Small.name) return { id: number, version, group };
    const payload = new Uint8Array(this.#random.below(this.#payloadBytes)).fill(version);
    if (name === Hashed.name) return { id: number, version, group, payload };
    return { name: `row ${number % 5}`, number, version, group, payload };
  }

  /** Sentences about rows that are not as the last writes left them. */
  problems(nodes: readonly SimulatedNode[], placement: Placement): string[] {
    const found: string[] = [];
    for (const each of TABLES) {
      const rows = primaryRows(nodes, each, placement);
      const prefix = `${each.name} `;
      for (const [text, writes] of this.#writes) {
        if (!text.startsWith(prefix)) continue;
        const now = rows.get(text.slice(prefix.length))?.version as number | undefined;
        const lastStartUs = Math.max(...writes.map(({ startUs }) => startUs));
        const possible = writes.filter(({ endUs }) => endUs >= lastStartUs);
        if (possible.some(({ version }) => version === now)) continue;
        const wanted = possible.map(({ version }) => version ?? "removed").join(" or ");
        found.push(`${text} is ${now ?? "removed"}, not ${wanted}`);
      }
    }
    return found.slice(0, 5);
  }
}
