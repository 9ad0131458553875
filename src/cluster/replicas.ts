/**
 * Which nodes have a partition, and since when: state that the configuration carries (FaRM §5.1), for
 * a node that joins has no data yet and cannot be computed into place. Without it, partitions lie where
 * consistent hashing puts them (placement.ts).
 *
 *   primary, backups   the copies. All of them log each commit; any of them can become the primary
 *   filling            nodes that copy the partition: they log, too, but do not count as copies yet
 *   primarySince       the configuration that made `primary` the primary (FaRM: LastPrimaryChange)
 *   replicasSince      the configuration that changed any of the three last (LastReplicaChange)
 *
 * A partition whose copies are all gone is lost until one of them returns: it keeps the names of the
 * last ones, which are no members of the configuration any more.
 */

import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";
import { MAX_NODES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";

export interface Replicas {
  readonly primary: NodeId;
  readonly backups: readonly NodeId[];
  readonly filling: readonly NodeId[];
  readonly primarySince: ConfigurationId;
  readonly replicasSince: ConfigurationId;
}

/** In JSON, for a configuration with many partitions is a long text. */
type PackedReplicas = readonly [
  primary: NodeId,
  backups: readonly NodeId[],
  filling: readonly NodeId[],
  primarySince: ConfigurationId,
  replicasSince: ConfigurationId,
];

export function packReplicas(replicas: Replicas): PackedReplicas {
  const { primary, backups, filling, primarySince, replicasSince } = replicas;
  return [primary, backups, filling, primarySince, replicasSince];
}

/** Whether no member of the configuration has a copy. */
export function isLost(
  { primary }: Pick<Replicas, "primary">,
  members: ReadonlySet<NodeId>,
): boolean {
  return !members.has(primary);
}

/** Whether a node has no copy of any partition, and makes none. */
export function hasNothing(placement: readonly Replicas[], node: NodeId): boolean {
  return placement.every(
    ({ primary, backups, filling }) =>
      primary !== node && !backups.includes(node) && !filling.includes(node),
  );
}

/** What the replicas of a configuration are checked against. */
export interface ReplicaBounds {
  readonly members: ReadonlySet<NodeId>;
  readonly backups: number;
  readonly configurationId: ConfigurationId;
}

/** Checks the replicas of one partition, packed or not; `refuse` is told what is wrong with them. */
export function replicasOf(
  given: unknown,
  { members, backups: most, configurationId }: ReplicaBounds,
  refuse: (why: string) => never,
): Replicas {
  const values = unpacked(given);
  if (values === undefined) {
    return refuse(`needs { primary, backups, filling, primarySince, replicasSince }`);
  }
  const { primary, backups, filling = [], primarySince, replicasSince } = values;
  if (!isNodeId(primary)) return refuse(`primary is the id of a node, not ${show(primary)}`);
  if (!isNodeList(backups)) return refuse(`backups is a list of node ids, not ${show(backups)}`);
  if (!isNodeList(filling)) return refuse(`filling is a list of node ids, not ${show(filling)}`);
  const all = [primary, ...backups, ...filling];
  if (new Set(all).size !== all.length) refuse(`a node occurs twice in ${all.join(", ")}`);
  // One more while a copy moves from one node to another.
  if (backups.length > most + 1) refuse(`has ${backups.length} backups, more than ${most}`);
  const strangers = all.filter((node) => !members.has(node));
  // All of them are members; or the partition is lost, and none is.
  if (strangers.length > 0 && (strangers.length < all.length || filling.length > 0)) {
    refuse(`names ${strangers.join(", ")}, which the configuration has not`);
  }
  const isSince = (value: unknown): value is ConfigurationId =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= configurationId;
  if (!isSince(primarySince) || !isSince(replicasSince) || replicasSince < primarySince) {
    return refuse(
      `needs 1 <= primarySince <= replicasSince <= ${configurationId}, ` +
        `not ${show(primarySince)} and ${show(replicasSince)}`,
    );
  }
  return { primary, backups, filling, primarySince, replicasSince };
}

function unpacked(given: unknown): Record<string, unknown> | undefined {
  if (typeof given !== "object" || given === null) return undefined;
  if (!Array.isArray(given)) return given as Record<string, unknown>;
  const [primary, backups, filling, primarySince, replicasSince] = given as unknown[];
  return { primary, backups, filling, primarySince, replicasSince };
}

function isNodeId(value: unknown): value is NodeId {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) < MAX_NODES;
}

function isNodeList(value: unknown): value is readonly NodeId[] {
  return Array.isArray(value) && value.every(isNodeId);
}
