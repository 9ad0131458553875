/**
 * Which transactions a new configuration leaves in doubt, and who settles each (FaRM SOSP'15 §5.3,
 * steps 3 and 6). A transaction that began under an earlier configuration goes on as if nothing had
 * happened, unless a node that it needs is gone: its coordinator, a replica of what it writes, or the
 * primary of what it has read.
 *
 * All who have a record of it come to the same answer, whichever configurations they have met before
 * this one: it follows from the record, which names the written partitions and the configuration, and
 * from the present configuration, which says since when each thing is as it is. A node that came
 * back is a member since then, and not the one that it was. What was read only the
 * coordinator knows: it aborts by itself what it cannot validate any more.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { hash3, type Placement } from "../../tables/partitions.ts";
import { COORDINATORS_PER_NODE } from "../names.ts";

/** What a configuration says of its own past. */
export interface Changes {
  readonly nodes: readonly NodeId[];
  /** The configuration that took in this life of a member; undefined for others. */
  memberSince(node: NodeId): ConfigurationId | undefined;
  readonly placement: Pick<Placement, "primaryOf" | "primarySince" | "replicasSince">;
}

/** What decides whether a transaction is recovering: the head of its record (records.ts). */
export interface Doubtful {
  readonly name: { readonly coordinator: number; readonly sequence: number };
  /** The configuration in which its commit began. */
  readonly configurationId: ConfigurationId;
  /** The partitions that it writes. */
  readonly partitions: readonly number[];
}

export function isRecovering(
  doubtful: Doubtful,
  changes: Changes,
  read: readonly number[] = [],
): boolean {
  const { configurationId, partitions } = doubtful;
  const { placement, nodes } = changes;
  // A partition whose copies are all lost keeps their names, and the number since when they had it.
  const isLost = (partition: number): boolean => !nodes.includes(placement.primaryOf(partition));
  return (
    !hasCoordinator(doubtful, changes) ||
    partitions.some(
      (partition) => placement.replicasSince(partition) > configurationId || isLost(partition),
    ) ||
    read.some((partition) => placement.primarySince(partition) > configurationId)
  );
}

/**
 * The node that decides a recovering transaction: its coordinator's if that is still the same, else one
 * by a hash of the name, so that what a lost node leaves is spread over all that remain.
 */
export function settlerOf(doubtful: Doubtful, changes: Changes): NodeId {
  const { coordinator, sequence } = doubtful.name;
  if (hasCoordinator(doubtful, changes)) return nodeOf(coordinator);
  const { nodes } = changes;
  const high = Math.floor(sequence / 2 ** 32);
  return nodes[hash3(coordinator, high, sequence | 0) % nodes.length];
}

/** Whether the coordinator is still in the life in which it began the transaction. */
function hasCoordinator({ name, configurationId }: Doubtful, changes: Changes): boolean {
  const since = changes.memberSince(nodeOf(name.coordinator));
  return since !== undefined && since <= configurationId;
}

export function nodeOf(coordinator: number): NodeId {
  return Math.floor(coordinator / COORDINATORS_PER_NODE);
}
