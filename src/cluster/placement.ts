/**
 * Which nodes have which partition: as the configuration says (replicas.ts), or, in a cluster whose nodes
 * are fixed, by consistent hashing over k virtual rings (FaRM §3.3). There a node has a position on
 * every ring; a partition has a ring and a position on it, and lies on the nodes that follow: the first
 * is its primary, the next f its backups. With many rings, the backups of a node's partitions are many
 * different nodes.
 *
 * A key's partition depends on nothing but the key, the table and the number of partitions, so it
 * never changes.
 */

import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";
import { hash3, hashText, type Placement } from "../tables/partitions.ts";
import type { Configuration } from "./configuration.ts";
import type { Replicas } from "./replicas.ts";

export class ClusterPlacement implements Placement {
  readonly partitions: number;
  readonly #replicas: readonly Replicas[];
  readonly #primaries: Int32Array;
  readonly #backups: readonly (readonly NodeId[])[];

  constructor(configuration: Configuration) {
    this.partitions = configuration.partitions;
    this.#replicas = configuration.placement ?? ringReplicas(configuration);
    this.#primaries = Int32Array.from(this.#replicas, ({ primary }) => primary);
    this.#backups = this.#replicas.map(({ backups, filling }) =>
      filling.length === 0 ? backups : [...backups, ...filling],
    );
  }

  primaryOf(partition: number): NodeId {
    return this.#primaries[partition];
  }

  backupsOf(partition: number): readonly NodeId[] {
    return this.#backups[partition];
  }

  copiesOf(partition: number): readonly NodeId[] {
    const { primary, backups } = this.#replicas[partition];
    return [primary, ...backups];
  }

  fillingOf(partition: number): readonly NodeId[] {
    return this.#replicas[partition].filling;
  }

  primarySince(partition: number): ConfigurationId {
    return this.#replicas[partition].primarySince;
  }

  replicasSince(partition: number): ConfigurationId {
    return this.#replicas[partition].replicasSince;
  }
}

/** Where consistent hashing puts the partitions. */
export function ringReplicas(configuration: Configuration): readonly Replicas[] {
  const { nodes, rings, partitions, backups, cluster } = configuration;
  const seed = hashText(cluster);
  const used = Math.min(rings, partitions);
  const orders: { id: NodeId; position: number }[][] = [];
  for (let ring = 0; ring < used; ring++) {
    // By the node's id and not by its address: a node that moves keeps what it has.
    const order = nodes.map(({ id }) => ({ id, position: hash3(seed, ring, id + 1) }));
    orders.push(order.sort((a, b) => a.position - b.position || a.id - b.id));
  }
  return Array.from({ length: partitions }, (_, partition) => {
    const ring = orders[partition % used];
    const position = hash3(seed, 0x9e3779b9, partition);
    const found = ring.findIndex((node) => node.position >= position);
    const first = Math.max(found, 0);
    const [primary, ...others] = Array.from(
      { length: backups + 1 },
      (_, i) => ring[(first + i) % ring.length].id,
    );
    return { primary, backups: others, filling: [], primarySince: 1, replicasSince: 1 };
  });
}
