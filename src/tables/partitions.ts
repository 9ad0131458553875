/** Which partition a key belongs to. It depends on the key, the table and the number of partitions alone, so it never changes. */

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
