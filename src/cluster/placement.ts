/**
 * Which nodes have which partition: consistent hashing over k virtual rings (FaRM §3.3). A node has
 * a position on every ring; a partition has a ring and a position on it, and lies on the nodes that
 * follow: the first is its primary, the next f its backups. With many rings the partitions of a
 * node that fails have many different successors, so that many take part in its recovery; and a
 * node that joins or leaves moves only what it has itself.
 *
 * A key's partition depends on nothing but the key, the table and the number of partitions, so it
 * never changes.
 */

import type { NodeId } from "../fabric/fabric.ts";
import { hash3, hashText, type Placement } from "../tables/partitions.ts";
import type { Configuration } from "./configuration.ts";

export class RingPlacement implements Placement {
  readonly partitions: number;
  readonly #primaries: Int32Array;
  readonly #backups: (readonly NodeId[])[] = [];

  constructor({ nodes, rings, partitions, backups, cluster }: Configuration) {
    this.partitions = partitions;
    this.#primaries = new Int32Array(partitions);
    const seed = hashText(cluster);
    const used = Math.min(rings, partitions);
    const orders: { id: NodeId; position: number }[][] = [];
    for (let ring = 0; ring < used; ring++) {
      // By the node's id and not by its address: a node that moves keeps what it has.
      const order = nodes.map(({ id }) => ({ id, position: hash3(seed, ring, id + 1) }));
      orders.push(order.sort((a, b) => a.position - b.position || a.id - b.id));
    }
    for (let partition = 0; partition < partitions; partition++) {
      const ring = orders[partition % used];
      const position = hash3(seed, 0x9e3779b9, partition);
      const found = ring.findIndex((node) => node.position >= position);
      const first = Math.max(found, 0);
      const replicas = Array.from(
        { length: backups + 1 },
        (_, i) => ring[(first + i) % ring.length].id,
      );
      this.#primaries[partition] = replicas[0];
      this.#backups.push(replicas.slice(1));
    }
  }

  primaryOf(partition: number): NodeId {
    return this.#primaries[partition];
  }

  backupsOf(partition: number): readonly NodeId[] {
    return this.#backups[partition];
  }
}
