/**
 * What follows a configuration. A configuration names the nodes of those before it whose leases may still
 * run (`unsettled`): its direct predecessor, and if that was never committed, what that one named as well.
 * It is committed only when a majority of each of them has stopped granting leases there. A majority of the
 * direct predecessor alone would not do: from {1, 2, 3, 4, 5}, {3, 4, 5} is made, and before node 3 has heard
 * of it, {4, 5}, a majority of that; while 1, 2 and 3 serve each other as before.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { assert } from "../../runtime/assert.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";

/** How many of so many nodes are a majority. */
export function majorityOf(nodes: number): number {
  return Math.floor(nodes / 2) + 1;
}

/** `next` as the successor of a configuration that is known to be committed, or may not be. */
export function succeeding(
  previous: Configuration,
  isCommitted: boolean,
  next: Configuration,
): Configuration {
  const sets = isCommitted ? [] : [...(previous.unsettled ?? [])];
  const known = new Set(sets.map(keyOf));
  if (!known.has(keyOf(previous.nodes))) sets.push(previous.nodes);
  assert(next.configurationId === previous.configurationId + 1, "configurations are numbered");
  return { ...next, unsettled: sets };
}

/** Whether nobody can have served before it: its nodes may still be starting. */
export function isFirst({ unsettled = [] }: Pick<Configuration, "unsettled">): boolean {
  return unsettled.length === 0;
}

function keyOf(nodes: readonly NodeAddress[]): string {
  return nodes.map(({ id }) => id).join();
}

/** All who must hear of a configuration: its nodes, and those who may serve in an earlier one. */
export function audienceOf({ nodes, unsettled = [] }: Configuration): Map<NodeId, NodeAddress> {
  const all = new Map<NodeId, NodeAddress>();
  for (const node of [...unsettled.flat(), ...nodes]) all.set(node.id, node);
  return all;
}

/**
 * The place of a node in the line of those who may take over from the manager: the backup managers are the
 * next ids in order, from 0 on.
 */
export function placeInLine({ nodes, manager = -1 }: Configuration, node: NodeId): number {
  const others = nodes.map(({ id }) => id).filter((id) => id !== manager);
  const line = [...others.filter((id) => id > manager), ...others.filter((id) => id < manager)];
  return line.indexOf(node);
}
