/**
 * Which partition a key belongs to. It depends on the key, the name of the table and the number of partitions alone, so it never
 * changes. Tables of a graph are partitioned together.
 */

import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";

/** Which nodes have a partition. */
export interface Placement {
  readonly partitions: number;
  primaryOf(partition: number): NodeId;
  /** All who must log what the primary commits: backups, and nodes that copy the partition. */
  backupsOf(partition: number): readonly NodeId[];
  /** Those that have all of it: the primary and the backups that have been filled. */
  copiesOf(partition: number): readonly NodeId[];
  /** Those that copy it, and do not count as copies yet. */
  fillingOf(partition: number): readonly NodeId[];
  /** The configuration that made the primary the primary. */
  primarySince(partition: number): ConfigurationId;
  /** The configuration that changed the primary, the backups or the filling nodes last. */
  replicasSince(partition: number): ConfigurationId;
}

/** Tables are known by this number everywhere, without asking anyone. */
export function tableId(name: string): number {
  return hashText(name);
}

/** The partition of a key with this hash. Not its low bits: those place it inside of a node. */
export function partitionOf(table: number, keyHash: number, partitions: number): number {
  return mix(keyHash ^ Math.imul(table, 0x85ebca6b)) % partitions;
}

/**
 * Tables of a graph have such names: `@graph edges social` is the table `edges` of the graph `social`. Their keys begin with the id of an
 * object, a u53, and rows with the same id are in the same partition, whatever table they are in: edges lie with their source.
 */
const COLLOCATED = "@graph ";

export function collocatedName(what: string, group: string): string {
  return `${COLLOCATED}${what} ${group}`;
}

/** Tells the partition of keys and rows of one table. */
export class Partitioner {
  readonly #id: number;
  readonly #first: string;
  readonly #isCollocated: boolean;
  readonly #partitions: number;

  constructor({ name, key, fields }: PlacedTable, partitions: number) {
    const group = name.startsWith(COLLOCATED)
      ? name.slice(name.indexOf(" ", COLLOCATED.length))
      : "";
    this.#first = key[0];
    this.#isCollocated = group.length > 1 && fields[key[0]]?.kind === "u53";
    this.#id = tableId(this.#isCollocated ? COLLOCATED + group : name);
    this.#partitions = partitions;
  }

  /** Of a key, as callers write it, with this hash. */
  ofKey(key: unknown, hash: number): number {
    return this.#of(Array.isArray(key) ? key[0] : key, hash);
  }

  /** Of a row, or of the fields of its key alone. */
  ofRow(row: Readonly<Record<string, unknown>>, hash: number): number {
    return this.#of(row[this.#first], hash);
  }

  /** Of all keys that begin with this value; undefined if they are in several. */
  ofFirst(first: unknown): number | undefined {
    if (!this.#isCollocated) return undefined;
    const number = Number(first);
    return partitionOf(this.#id, hash3(number | 0, number / 2 ** 32, 0), this.#partitions);
  }

  #of(first: unknown, hash: number): number {
    return this.ofFirst(first) ?? partitionOf(this.#id, hash, this.#partitions);
  }
}

interface PlacedTable {
  readonly name: string;
  readonly key: readonly string[];
  readonly fields: Readonly<Record<string, { readonly kind: string } | undefined>>;
}

/** Mixes three numbers into one. */
export function hash3(a: number, b: number, c: number): number {
  return mix(mix(mix(a) ^ b) ^ Math.imul(c, 0xc2b2ae35));
}

/** The finalizer of MurmurHash3. */
function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** FNV-1a, over the bytes of a name. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return mix(hash) | 0;
}
