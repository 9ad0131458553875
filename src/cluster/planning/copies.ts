/**
 * How copies are restored and moved. A node gets a partition by filling: it logs what is committed while
 * it copies the rest, and counts as a copy only then. So a move is first one more, and when that one is
 * filled one less. What is missing is filled at once; what would only be better placed elsewhere, a few
 * partitions at a time.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { type Draft, least } from "./draft.ts";

/** Forgets nodes that are gone. A surviving backup takes the place of a primary, never a filling node. */
export function dropFailed(draft: Draft): void {
  const isThere = (node: NodeId): boolean => draft.isMember(node);
  for (const [partition, { primary, filling }] of draft.partitions.entries()) {
    const copies = draft.copiesOf(partition);
    const survivors = copies.filter(isThere);
    // All copies are gone: their names are kept, for whoever of them returns.
    const gone = survivors.length === 0 ? filling : [...copies, ...filling];
    const heir = draft.fewestPrimaries(survivors);
    if (heir !== undefined && !isThere(primary)) draft.promote(partition, heir);
    for (const node of gone) {
      if (survivors.length === 0 || !isThere(node)) draft.drop(partition, node);
    }
  }
}

/** Begins to fill what is missing of `wanted` copies, as far as there are nodes. */
export function restoreCopies(draft: Draft, wanted: number): void {
  for (const partition of draft.partitions.keys()) {
    if (draft.isLost(partition)) continue;
    for (;;) {
      const replicas = draft.replicasOf(partition);
      const taker = replicas.length < wanted ? draft.bestTaker(partition, replicas) : undefined;
      if (taker === undefined) break;
      draft.addFilling(partition, taker);
    }
  }
}

/** Gives up copies beyond `wanted`, for those that move away have arrived elsewhere. */
export function dropSurplus(draft: Draft, wanted: number): void {
  for (const partition of draft.partitions.keys()) {
    if (draft.isLost(partition) || draft.copiesOf(partition).length <= wanted) continue;
    const node = worstOf(draft, partition);
    const { primary, backups } = draft.partitions[partition];
    if (node === primary) {
      const heirs = backups.filter((each) => !draft.isDraining(each));
      draft.promote(partition, draft.fewestPrimaries(heirs) ?? backups[0]);
    }
    draft.drop(partition, node);
  }
}

/**
 * Begins to move partitions that should lie elsewhere, as long as fewer than `most` are being filled:
 * away from nodes that are being drained, out of a domain that has two copies, and from nodes that have
 * more than others.
 */
export function moveCopies(draft: Draft, wanted: number, most: number): void {
  let filling = draft.partitions.filter((each) => each.filling.length > 0).length;
  // What is under way counts as done: the copies that will be given up are not there any more.
  const leaving = leavingCopies(draft, wanted);
  const load = (node: NodeId): number => draft.copies(node) - (leaving.loads.get(node) ?? 0);
  const atRest = (partition: number): boolean =>
    !draft.isLost(partition) &&
    draft.partitions[partition].filling.length === 0 &&
    draft.copiesOf(partition).length === wanted;
  const begin = ({ partition, from, to }: Move): void => {
    draft.addFilling(partition, to);
    leaving.add(from);
    filling++;
  };
  for (const partition of draft.partitions.keys()) {
    if (filling >= most) return;
    const move = atRest(partition) ? wayOut(draft, partition) : undefined;
    if (move !== undefined) begin(move);
  }
  while (filling < most) {
    const move = bestMove(draft, atRest, load);
    if (move === undefined) return;
    begin(move);
  }
}

interface Move {
  readonly partition: number;
  readonly from: NodeId;
  readonly to: NodeId;
}

/** For a copy on a node that is drained, or in a domain that has another one. */
function wayOut(draft: Draft, partition: number): Move | undefined {
  const copies = draft.copiesOf(partition);
  const crowded = copies.filter((node) => draft.neighbours(node, copies) > 0);
  const from =
    copies.find((node) => draft.isDraining(node)) ?? least(crowded, (node) => -draft.copies(node));
  if (from === undefined) return undefined;
  const others = copies.filter((node) => node !== from);
  const to = draft.bestTaker(partition, others, from);
  if (to === undefined) return undefined;
  const isBetter = draft.neighbours(to, others) < draft.neighbours(from, others);
  return draft.isDraining(from) || isBetter ? { partition, from, to } : undefined;
}

/** Of the copies of a partition, the one to give up first. */
function worstOf(draft: Draft, partition: number): NodeId {
  const copies = draft.copiesOf(partition);
  const { primary } = draft.partitions[partition];
  const worse = (a: NodeId, b: NodeId): number =>
    Number(draft.isDraining(b)) - Number(draft.isDraining(a)) ||
    draft.neighbours(b, copies) - draft.neighbours(a, copies) ||
    draft.copies(b) - draft.copies(a) ||
    Number(a === primary) - Number(b === primary);
  return copies.sort(worse)[0];
}

class Leaving {
  readonly loads = new Map<NodeId, number>();

  add(node: NodeId): void {
    this.loads.set(node, (this.loads.get(node) ?? 0) + 1);
  }
}

function leavingCopies(draft: Draft, wanted: number): Leaving {
  const leaving = new Leaving();
  for (const partition of draft.partitions.keys()) {
    if (draft.isLost(partition)) continue;
    if (draft.replicasOf(partition).length > wanted) leaving.add(worstOf(draft, partition));
  }
  return leaving;
}

/** From a node with more to one with at least two fewer. */
function bestMove(
  draft: Draft,
  atRest: (partition: number) => boolean,
  load: (node: NodeId) => number,
): Move | undefined {
  const partitionsOf = new Map<NodeId, number[]>(draft.takers.map((node) => [node, []]));
  for (const partition of draft.partitions.keys()) {
    if (!atRest(partition)) continue;
    for (const node of draft.copiesOf(partition)) partitionsOf.get(node)?.push(partition);
  }
  const byLoad = [...draft.takers].sort((a, b) => load(a) - load(b) || a - b);
  for (const from of [...byLoad].reverse()) {
    for (const to of byLoad) {
      if (load(from) - load(to) < 2) break;
      const partition = movedPartition(draft, partitionsOf.get(from) ?? [], from, to);
      if (partition !== undefined) return { partition, from, to };
    }
  }
  return undefined;
}

/** Rather one of which `from` is a backup: then nothing is handed over. */
function movedPartition(
  draft: Draft,
  partitions: readonly number[],
  from: NodeId,
  to: NodeId,
): number | undefined {
  let found: number | undefined;
  for (const partition of partitions) {
    const copies = draft.copiesOf(partition);
    if (copies.includes(to)) continue;
    const others = copies.filter((node) => node !== from);
    if (draft.neighbours(to, others) > draft.neighbours(from, others)) continue;
    if (draft.partitions[partition].primary !== from) return partition;
    found ??= partition;
  }
  return found;
}
