/**
 * Settles what earlier lives of a coordinator have left, where the nodes of a cluster are fixed: the new life asks
 * all nodes for records of its earlier ones (phases/find.ts), decides, and tells those that take part. What it
 * told callers then holds, and no row stays locked.
 *
 * How it knows whether a transaction is committed. Let *own* be a record of LOCK at the coordinator's node.
 *
 *   A decision is kept           committed: it was kept before any primary was told (phases/decide.ts).
 *   It would have been kept      aborted: the node is the primary of nothing that is written, or some
 *                                partition that is written has no copies and there is another primary.
 *   Own is there                 No primary was told to commit: own is installed first. It is committed if all
 *                                backups and all primaries have their records, for then "committed" may have
 *                                been told; else that was not.
 *   Own is not there, and        It was installed: own is kept before the first LOG is sent, and an abort
 *   a backup has a record        lets go of it only when no backup has a record any more.
 *   Own is not there, and        aborted: backups keep their records until all primaries have installed.
 *   no backup has a record
 */

import type { Epoch } from "../engine/epoch.ts";
import type { NodeId } from "../fabric/fabric.ts";
import type { Placement } from "../tables/partitions.ts";
import type { DecisionLog } from "../tables/served/contract.ts";
import type { CurrentView } from "./cluster-view.ts";
import type { Driver } from "./driver.ts";
import type { Message, Routine } from "./message.ts";
import { Name } from "./names.ts";
import { Abort } from "./phases/abort.ts";
import { Commit } from "./phases/commit.ts";
import { Find, type Found } from "./phases/find.ts";
import { Truncate } from "./phases/truncate.ts";
import { AT_BACKUP, AT_PRIMARY } from "./records.ts";

/** A transaction that an earlier life has left, and who has records of it. */
export class Left {
  readonly coordinator: number;
  readonly sequence: number;
  readonly partitions: readonly number[];
  readonly atPrimaries = new Set<NodeId>();
  readonly atBackups = new Set<NodeId>();

  constructor({ coordinator, sequence, partitions }: Omit<Found, "roles">) {
    this.coordinator = coordinator;
    this.sequence = sequence;
    this.partitions = partitions;
  }
}

/** Whether it is committed; see above. */
export function isCommitted(
  { partitions, atPrimaries, atBackups }: Left,
  self: NodeId,
  placement: Placement,
  isKept: boolean,
): boolean {
  if (isKept) return true;
  const { primaries, backups } = nodesOf(partitions, placement);
  if (mustBeKept(partitions, self, placement)) return false;
  if (!atPrimaries.has(self)) return atBackups.size > 0;
  return (
    backups.size > 0 &&
    [...primaries].every((node) => atPrimaries.has(node)) &&
    [...backups].every((node) => atBackups.has(node))
  );
}

/** Whether a coordinator keeps its decision about what writes these partitions. */
export function mustBeKept(
  partitions: readonly number[],
  self: NodeId,
  placement: Placement,
): boolean {
  const { primaries, backups } = nodesOf(partitions, placement);
  // One node, and no copies: it is told how the transaction ends, and nobody else is.
  if (primaries.size === 1 && backups.size === 0) return false;
  return (
    !primaries.has(self) ||
    partitions.some((partition) => placement.backupsOf(partition).length === 0)
  );
}

function nodesOf(
  partitions: readonly number[],
  placement: Placement,
): { readonly primaries: Set<NodeId>; readonly backups: Set<NodeId> } {
  const primaries = new Set<NodeId>();
  const backups = new Set<NodeId>();
  for (const partition of partitions) {
    primaries.add(placement.primaryOf(partition));
    for (const backup of placement.backupsOf(partition)) backups.add(backup);
  }
  return { primaries, backups };
}

export interface SettlementOptions {
  readonly driver: Driver;
  readonly view: CurrentView;
  readonly nodes: readonly NodeId[];
  /** Of the coordinator that settles; its node's other ones are settled with it. */
  readonly coordinator: number;
  /** Of the new life. */
  readonly firstSequence: number;
  readonly decisions: DecisionLog;
}

export class Settlement {
  readonly #options: SettlementOptions;
  readonly #left = new Map<string, Left>();
  readonly #unheard: Set<NodeId>;
  #epoch: Epoch = 0;

  constructor(options: SettlementOptions) {
    this.#options = options;
    this.#unheard = new Set(options.nodes);
    for (const decision of options.decisions.all()) this.#add({ ...decision, partitions: [] });
  }

  /** Asks all nodes, and insists; each transaction is settled when all that take part in it have answered. */
  begin(): void {
    const { driver, nodes } = this.#options;
    for (const node of nodes) driver.detach(this.#ask(node));
  }

  *#ask(node: NodeId): Routine<void> {
    const { coordinator, firstSequence } = this.#options;
    let after: Found | undefined;
    for (;;) {
      const message = new Find(node, coordinator, firstSequence, after);
      yield [message];
      // This end is being closed, or the node has another configuration: nobody can be told.
      if (message.error !== undefined) return;
      this.#epoch = Math.max(this.#epoch, message.epoch);
      for (const found of message.found) this.#hear(node, found);
      if (!message.hasMore) break;
      after = message.found.at(-1);
    }
    this.#unheard.delete(node);
    this.#settle();
  }

  #hear(node: NodeId, found: Found): void {
    const left = this.#add(found);
    if ((found.roles & AT_PRIMARY) !== 0) left.atPrimaries.add(node);
    if ((found.roles & AT_BACKUP) !== 0) left.atBackups.add(node);
  }

  #add(found: Omit<Found, "roles">): Left {
    const key = `${found.coordinator} ${found.sequence}`;
    let left = this.#left.get(key);
    // A decision alone does not say what is written.
    if (left === undefined || left.partitions.length < found.partitions.length) {
      const more = new Left(found);
      for (const node of left?.atPrimaries ?? []) more.atPrimaries.add(node);
      for (const node of left?.atBackups ?? []) more.atBackups.add(node);
      left = more;
      this.#left.set(key, left);
    }
    return left;
  }

  #settle(): void {
    const { driver, view } = this.#options;
    const { placement, self } = view.current;
    for (const [key, left] of this.#left) {
      const { primaries, backups } = nodesOf(left.partitions, placement);
      const isHeard = left.partitions.length > 0 || this.#unheard.size === 0;
      const mustHear = [self, ...primaries, ...backups];
      if (!isHeard || mustHear.some((node) => this.#unheard.has(node))) continue;
      this.#left.delete(key);
      driver.detach(this.#end(left, [...primaries], [...backups]));
    }
  }

  *#end(left: Left, primaries: readonly NodeId[], backups: readonly NodeId[]): Routine<void> {
    const { view, decisions, firstSequence } = this.#options;
    const { self, placement } = view.current;
    const { coordinator, sequence } = left;
    const name = Object.assign(new Name(), { coordinator, sequence, low: 0 });
    const isKept = decisions.has(coordinator, sequence);
    if (isCommitted(left, self, placement, isKept)) {
      const own = primaries.filter((node) => node === self);
      const others = primaries.filter((node) => node !== self);
      for (const nodes of [own, others]) {
        if (yield* failed(nodes.map((node) => new Commit(node, name, this.#epoch, false)))) return;
      }
      const told = backups.map((to) => new Truncate(to, coordinator, firstSequence, [sequence]));
      if (yield* failed(told)) return;
    } else {
      const told = backups.map(
        (to) => new Truncate(to, coordinator, firstSequence, [], [sequence]),
      );
      if (yield* failed(told)) return;
      if (yield* failed(primaries.map((node) => new Abort(node, name)))) return;
    }
    if (isKept) decisions.forget(coordinator, sequence);
  }
}

/** Sends messages; whether one of them was refused: then this end is being closed. */
function* failed(messages: readonly Message[]): Routine<boolean> {
  if (messages.length > 0) yield messages;
  return messages.some(({ error }) => error !== undefined);
}
