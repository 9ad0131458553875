/**
 * What the next configuration of a cluster is: after nodes have failed, joined, been filled or are to
 * leave, and when data could be placed better. All of it is computed from the present configuration and
 * nothing else, so any node can do it; which one may is decided by the swap in etcd.
 *
 * What holds of every configuration planned here: a primary has all data of its partition, because only a
 * copy is ever promoted; and no partition has fewer copies than before, except by failures.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { HANDED_OVER_AT_ONCE, MOVED_AT_ONCE } from "../../runtime/limits.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";
import { isLost, type Replicas } from "../replicas.ts";
import { dropFailed, dropSurplus, moveCopies, restoreCopies } from "./copies.ts";
import { Draft } from "./draft.ts";
import { balancePrimaries } from "./primaries.ts";

/** A configuration whose placement is state. */
export interface PlacedConfiguration extends Configuration {
  readonly placement: readonly Replicas[];
}

/** The placement of a cluster that has no data yet. */
export function initialPlacement(
  nodes: readonly NodeAddress[],
  partitions: number,
  backups: number,
): readonly Replicas[] {
  const nobody = -1;
  const empty: Replicas = {
    primary: nobody,
    backups: [],
    filling: [],
    primarySince: 1,
    replicasSince: 1,
  };
  const draft = new Draft(nodes, Array<Replicas>(partitions).fill(empty));
  for (const partition of draft.partitions.keys()) {
    for (let copy = 0; copy <= backups; copy++) {
      const node = draft.bestTaker(partition, draft.partitions[partition].backups);
      if (node !== undefined) draft.addCopy(partition, node);
    }
    const primary = draft.fewestPrimaries(draft.partitions[partition].backups);
    if (primary === undefined) throw new SituError("SITU_CONFIG", "a cluster needs a node");
    draft.promote(partition, primary);
    draft.drop(partition, nobody);
  }
  balancePrimaries(draft, Number.POSITIVE_INFINITY);
  return draft.replicas(1);
}

/** After the failure of all that are not among `survivors`: backups take over, and copies are restored. */
export function afterFailures(
  configuration: PlacedConfiguration,
  survivors: ReadonlySet<NodeId>,
  manager: NodeId,
): PlacedConfiguration {
  const nodes = configuration.nodes.filter(({ id }) => survivors.has(id));
  const draft = new Draft(nodes, configuration.placement);
  dropFailed(draft);
  restoreCopies(draft, configuration.backups + 1);
  return { ...next(configuration, draft, nodes), manager };
}

/**
 * With a node that has joined. It has nothing at first, and gets what is missing elsewhere. But if it comes
 * back with its data, lost partitions whose last copies it had are there again: each of these copies has
 * all that was ever acknowledged, for nothing has been since.
 */
export function withNode(
  configuration: PlacedConfiguration,
  node: NodeAddress,
  hasItsData: boolean,
): PlacedConfiguration {
  const { id } = node;
  const since = configuration.configurationId + 1;
  const nodes = [...configuration.nodes, { ...node, since }].sort((a, b) => a.id - b.id);
  if (configuration.nodes.some((each) => each.id === id)) {
    throw new SituError("SITU_CONFIG", `the cluster has a node ${id} already`);
  }
  const draft = new Draft(nodes, configuration.placement);
  const wasLost = lostPartitions(configuration).filter((partition) =>
    draft.copiesOf(partition).includes(id),
  );
  if (wasLost.length > 0 && !hasItsData) {
    const why = `node ${id} had the last copies of ${wasLost.length} partitions, and comes back without`;
    throw new SituError("SITU_CONFIG", `${why}; bring its store back, or give it another id`);
  }
  for (const partition of wasLost) {
    if (draft.partitions[partition].primary !== id) draft.promote(partition, id);
    for (const other of draft.partitions[partition].backups) draft.drop(partition, other);
  }
  restoreCopies(draft, configuration.backups + 1);
  return next(configuration, draft, nodes);
}

/** A partition that a node has copied. */
export interface Filled {
  readonly partition: number;
  readonly node: NodeId;
}

/**
 * What has been filled counts as a copy. Where it has moved from, it is given up by the next step: so no
 * node is filled and becomes the primary by one and the same configuration.
 */
export function withFilled(
  configuration: PlacedConfiguration,
  filled: readonly Filled[],
): PlacedConfiguration {
  const draft = new Draft(configuration.nodes, configuration.placement);
  for (const { partition, node } of filled) {
    if (draft.partitions[partition]?.filling.includes(node)) draft.fill(partition, node);
  }
  return next(configuration, draft, configuration.nodes);
}

/**
 * The next step towards a better placement, or undefined if there is none: primaries that are handed
 * over, or a few partitions that begin to move. A step is worth a configuration; the one who takes it
 * waits until what moves has been filled, and asks again.
 */
export function nextStep(configuration: PlacedConfiguration): PlacedConfiguration | undefined {
  const draft = new Draft(configuration.nodes, configuration.placement);
  const wanted = configuration.backups + 1;
  dropSurplus(draft, wanted);
  restoreCopies(draft, wanted);
  moveCopies(draft, wanted, MOVED_AT_ONCE);
  const isFilling = draft.partitions.some(({ filling }) => filling.length > 0);
  // Moves change which hand-overs are needed.
  if (!isFilling) balancePrimaries(draft, HANDED_OVER_AT_ONCE);
  const planned = next(configuration, draft, configuration.nodes);
  const isSame = planned.placement.every((each, i) => each === configuration.placement[i]);
  return isSame ? undefined : planned;
}

/** With a node that gives all it has to others, or does not any more. */
export function withDraining(
  configuration: PlacedConfiguration,
  node: NodeId,
  draining: boolean,
): PlacedConfiguration {
  const nodes = configuration.nodes.map((each) => {
    const { draining: _, ...rest } = each;
    if (each.id !== node) return each;
    return draining ? { ...rest, draining } : rest;
  });
  return { ...configuration, configurationId: configuration.configurationId + 1, nodes };
}

/** Why a node cannot be drained, or undefined if it can. */
export function drainRefusal(
  { nodes, backups, placement }: PlacedConfiguration,
  node: NodeId,
): string | undefined {
  const others = nodes.filter(({ id, draining }) => id !== node && draining !== true);
  if (!nodes.some(({ id }) => id === node)) return `the cluster has no node ${node}`;
  if (others.length <= backups) {
    const need = `each row has ${backups + 1} copies, and without node ${node} there are ${others.length}`;
    return `${need} nodes for them; add a node first`;
  }
  const members = new Set(nodes.map(({ id }) => id));
  const lost = placement.filter((each) => isLost(each, members)).length;
  return lost === 0 ? undefined : `${lost} partitions are lost; bring their nodes back first`;
}

/** Partitions of which this node has the only copy: without it they would be lost. */
export function onlyAt({ placement }: PlacedConfiguration, node: NodeId): number[] {
  return [...placement.keys()].filter((partition) => {
    const { primary, backups } = placement[partition];
    return primary === node && backups.length === 0;
  });
}

/** Partitions that no member has a copy of. */
export function lostPartitions({ nodes, placement }: PlacedConfiguration): number[] {
  const members = new Set(nodes.map(({ id }) => id));
  return [...placement.keys()].filter((partition) => isLost(placement[partition], members));
}

function next(
  configuration: PlacedConfiguration,
  draft: Draft,
  nodes: readonly NodeAddress[],
): PlacedConfiguration {
  const configurationId = configuration.configurationId + 1;
  return { ...configuration, configurationId, nodes, placement: draft.replicas(configurationId) };
}
