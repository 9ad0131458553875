/**
 * Takes a snapshot of the cluster (docs/decisions/0071): all nodes register the same epoch, then all pass it. Two round
 * trips, and one more where the clocks of the nodes are further apart than an epoch is rounded by.
 */

import type { Epoch } from "../../engine/epoch.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { SNAPSHOT_BEGIN_ROUNDS } from "../../runtime/limits.ts";
import type { Message, Routine } from "../message.ts";
import { BeginSnapshot, CutSnapshot, EndSnapshot } from "../phases/snapshot.ts";

export interface SnapshotRequest {
  readonly name: string;
  readonly nodes: readonly NodeId[];
  /** An epoch that nodes had before: a good guess. */
  readonly atLeast: Epoch;
  readonly lifeMs: number;
}

/** The epoch that it sees. What a failed one has left is to be ended. */
export function* takeSnapshot(request: SnapshotRequest): Routine<Epoch> {
  const { name, nodes } = request;
  const epoch = yield* agree(request);
  for (let open = nodes; open.length > 0; ) {
    const cuts = open.map((node) => new CutSnapshot(node, name, epoch));
    yield cuts;
    throwFirst(cuts);
    open = cuts.filter(({ isSettled }) => !isSettled).map(({ to }) => to);
  }
  return epoch;
}

function* agree({ name, nodes, atLeast, lifeMs }: SnapshotRequest): Routine<Epoch> {
  const epochs = new Map<NodeId, Epoch>();
  let open = nodes;
  let epoch = atLeast;
  for (let round = 0; round < SNAPSHOT_BEGIN_ROUNDS; round++) {
    const begins = open.map((node) => new BeginSnapshot(node, name, epoch, lifeMs));
    yield begins;
    throwFirst(begins);
    for (const begin of begins) epochs.set(begin.to, begin.epoch);
    epoch = Math.max(...epochs.values());
    open = nodes.filter((node) => epochs.get(node) !== epoch);
    if (open.length === 0) return epoch;
  }
  throw new SituError(
    "SITU_OVERLOADED",
    "the nodes of the cluster did not agree on the epoch of a snapshot: take it again",
  );
}

/** Tells nodes that somebody still reads from a snapshot, or wants to. */
export function* renewSnapshot(
  nodes: readonly NodeId[],
  name: string,
  epoch: Epoch,
): Routine<void> {
  yield nodes.map((node) => new CutSnapshot(node, name, epoch));
}

/** Nodes that do not hear it release it later by themselves. */
export function* endSnapshot(nodes: readonly NodeId[], name: string): Routine<void> {
  yield nodes.map((node) => new EndSnapshot(node, name));
}

function throwFirst(messages: readonly Message[]): void {
  for (const { error } of messages) if (error !== undefined) throw error;
}
