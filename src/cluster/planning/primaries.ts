/**
 * Who of a partition's copies is its primary. Handing this over to a backup moves no data, so the number
 * of primaries is balanced by itself: along the shortest chain of hand-overs that leads from a node that
 * is primary of more partitions to one that is of at least two fewer. When there is no such chain, no other
 * choice of primaries among these copies is better balanced.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Draft } from "./draft.ts";

/** Balances primaries, with at most so many hand-overs; says how many there were. */
export function balancePrimaries(draft: Draft, most: number): number {
  let handedOver = 0;
  while (handedOver < most) {
    const chain = chainFrom(draft);
    if (chain === undefined) break;
    for (const { partition, to } of chain) draft.promote(partition, to);
    handedOver += chain.length;
  }
  return handedOver;
}

interface HandOver {
  readonly partition: number;
  readonly from: NodeId;
  readonly to: NodeId;
}

function chainFrom(draft: Draft): readonly HandOver[] | undefined {
  const handOvers = handOversOf(draft);
  const sources = [...handOvers.keys()];
  // A node that is being drained is to be the primary of nothing.
  const weight = (node: NodeId): number =>
    draft.primaries(node) + (draft.isDraining(node) ? Number.MAX_SAFE_INTEGER / 2 : 0);
  sources.sort((a, b) => weight(b) - weight(a) || a - b);
  for (const source of sources) {
    if (draft.primaries(source) === 0) continue;
    const chain = chainBetween(handOvers, source, (node) => weight(node) + 1 < weight(source));
    if (chain !== undefined) return chain;
  }
  return undefined;
}

/** One partition for each pair of nodes of which the first can hand over to the second. */
function handOversOf(draft: Draft): Map<NodeId, Map<NodeId, HandOver>> {
  const found = new Map<NodeId, Map<NodeId, HandOver>>();
  draft.partitions.forEach(({ primary, backups }, partition) => {
    if (draft.isLost(partition)) return;
    const from = found.get(primary) ?? new Map<NodeId, HandOver>();
    found.set(primary, from);
    for (const to of backups) {
      if (!draft.isDraining(to)) from.set(to, { partition, from: primary, to });
    }
  });
  return found;
}

/** Breadth first: the shortest. */
function chainBetween(
  handOvers: ReadonlyMap<NodeId, ReadonlyMap<NodeId, HandOver>>,
  source: NodeId,
  isTarget: (node: NodeId) => boolean,
): readonly HandOver[] | undefined {
  const cameBy = new Map<NodeId, HandOver>();
  const queue = [source];
  for (const node of queue) {
    if (node !== source && isTarget(node)) return chainTo(node, source, cameBy);
    for (const [to, handOver] of handOvers.get(node) ?? []) {
      if (to === source || cameBy.has(to)) continue;
      cameBy.set(to, handOver);
      queue.push(to);
    }
  }
  return undefined;
}

function chainTo(
  target: NodeId,
  source: NodeId,
  cameBy: ReadonlyMap<NodeId, HandOver>,
): readonly HandOver[] {
  const chain: HandOver[] = [];
  for (let node = target; node !== source; ) {
    const handOver = cameBy.get(node)!;
    chain.unshift(handOver);
    node = handOver.from;
  }
  return chain;
}
