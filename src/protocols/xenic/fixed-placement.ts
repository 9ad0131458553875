/**
 * Where rows lie in a cluster of fixed nodes: there are as many shards as nodes, each has its primary at one of them and its backups
 * at the next ones. A row's shard depends on its key alone, so rows of different tables with the same key are at one node.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Placement } from "./ports.ts";

export interface FixedPlacement extends Placement {
  readonly shards: number;
  /** Shards of which a node has a copy. */
  shardsAt(node: NodeId): number[];
}

export function fixedPlacement(
  nodes: readonly NodeId[],
  backups: number,
  configurationId: number,
): FixedPlacement {
  const order = [...nodes].sort((a, b) => a - b);
  const shards = order.length;
  const copies = order.map((_, shard) =>
    Array.from({ length: backups + 1 }, (_each, i) => order[(shard + i) % shards]),
  );
  return {
    configurationId,
    shards,
    shardOf: (_table, key) => mix(key) % shards,
    primaryOf: (shard) => copies[shard][0],
    backupsOf: (shard) => copies[shard].slice(1),
    shardsAt: (node) => order.map((_, i) => i).filter((shard) => copies[shard].includes(node)),
  };
}

/** Another one than that of the tables: the rows of a shard must not be close to each other there. */
function mix(key: number): number {
  let hash = Math.imul((key | 0) ^ Math.floor(key / 2 ** 32), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca77);
  return (hash ^ (hash >>> 13)) >>> 0;
}
