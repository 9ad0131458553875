/**
 * A placement while it is being changed: who has which partition, and how much each node has. The parts
 * of planning (copies.ts, primaries.ts) change a draft; what it comes to is
 * compared with what was before, so that the numbers of configurations in `Replicas` are right whatever
 * was changed on the way.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { hash3 } from "../../tables/partitions.ts";
import type { NodeAddress } from "../configuration.ts";
import { isLost, type Replicas } from "../replicas.ts";

interface DraftReplicas {
  primary: NodeId;
  backups: NodeId[];
  filling: NodeId[];
}

export class Draft {
  readonly partitions: DraftReplicas[];
  /** Nodes that may get more: members that are not being drained. */
  readonly takers: readonly NodeId[];
  readonly #before: readonly Replicas[];
  readonly #members: ReadonlySet<NodeId>;
  readonly #domains = new Map<NodeId, string>();
  /** Copies and partitions being filled, by node; and those of them that are primaries. */
  readonly #copies = new Map<NodeId, number>();
  readonly #primaries = new Map<NodeId, number>();

  constructor(nodes: readonly NodeAddress[], before: readonly Replicas[]) {
    this.#before = before;
    this.#members = new Set(nodes.map(({ id }) => id));
    this.takers = nodes.filter(({ draining }) => draining !== true).map(({ id }) => id);
    for (const { id, domain } of nodes) {
      // A node without a domain fails alone.
      this.#domains.set(id, domain ?? `node ${id}`);
      this.#copies.set(id, 0);
      this.#primaries.set(id, 0);
    }
    this.partitions = before.map(({ primary, backups, filling }) => {
      return { primary, backups: [...backups], filling: [...filling] };
    });
    for (const { primary, backups, filling } of this.partitions) {
      for (const node of [primary, ...backups, ...filling]) count(this.#copies, node, 1);
      count(this.#primaries, primary, 1);
    }
  }

  isMember(node: NodeId): boolean {
    return this.#members.has(node);
  }

  isDraining(node: NodeId): boolean {
    return this.isMember(node) && !this.takers.includes(node);
  }

  isLost(partition: number): boolean {
    return isLost(this.partitions[partition], this.#members);
  }

  copiesOf(partition: number): NodeId[] {
    const { primary, backups } = this.partitions[partition];
    return [primary, ...backups];
  }

  /** All that have the partition, or will. */
  replicasOf(partition: number): NodeId[] {
    return [...this.copiesOf(partition), ...this.partitions[partition].filling];
  }

  /** How many partitions a node has. */
  copies(node: NodeId): number {
    return this.#copies.get(node) ?? 0;
  }

  primaries(node: NodeId): number {
    return this.#primaries.get(node) ?? 0;
  }

  /** How many of these nodes fail together with this one. */
  neighbours(node: NodeId, among: readonly NodeId[]): number {
    const domain = this.#domains.get(node);
    return among.filter((other) => other !== node && this.#domains.get(other) === domain).length;
  }

  /**
   * The taker that should get the partition next to `others`: of another failure domain, if there is
   * one, and with as little as possible. Equals are chosen by chance, that of their numbers: so the
   * partitions of a node have many different backups. Never `except`.
   */
  bestTaker(partition: number, others: readonly NodeId[], except?: NodeId): NodeId | undefined {
    let best: NodeId | undefined;
    for (const node of this.takers) {
      if (node === except || others.includes(node)) continue;
      if (best === undefined || this.#isBetter(partition, others, node, best)) best = node;
    }
    return best;
  }

  #isBetter(partition: number, others: readonly NodeId[], node: NodeId, than: NodeId): boolean {
    const difference =
      this.neighbours(node, others) - this.neighbours(than, others) ||
      this.copies(node) - this.copies(than) ||
      hash3(0, partition, node) - hash3(0, partition, than);
    return difference < 0;
  }

  addCopy(partition: number, node: NodeId): void {
    this.partitions[partition].backups.push(node);
    count(this.#copies, node, 1);
  }

  addFilling(partition: number, node: NodeId): void {
    this.partitions[partition].filling.push(node);
    count(this.#copies, node, 1);
  }

  /** What a node has of the partition is given up; a primary must have been replaced before. */
  drop(partition: number, node: NodeId): void {
    const replicas = this.partitions[partition];
    replicas.backups = replicas.backups.filter((each) => each !== node);
    replicas.filling = replicas.filling.filter((each) => each !== node);
    count(this.#copies, node, -1);
  }

  /** One that was being filled counts as a copy from now on. */
  fill(partition: number, node: NodeId): void {
    const replicas = this.partitions[partition];
    replicas.filling = replicas.filling.filter((each) => each !== node);
    replicas.backups.push(node);
  }

  /** A backup becomes the primary, the primary a backup. */
  promote(partition: number, backup: NodeId): void {
    const replicas = this.partitions[partition];
    const { primary } = replicas;
    replicas.backups = replicas.backups.map((each) => (each === backup ? primary : each));
    replicas.primary = backup;
    count(this.#primaries, primary, -1);
    count(this.#primaries, backup, 1);
  }

  /** Of these nodes, the one that is primary of the fewest partitions. */
  fewestPrimaries(among: readonly NodeId[]): NodeId | undefined {
    return least(among, (node) => this.primaries(node));
  }

  /** As placement of the configuration with this number. */
  replicas(id: ConfigurationId): readonly Replicas[] {
    return this.partitions.map((now, partition) => {
      const before = this.#before[partition];
      const isPrimarySame = now.primary === before.primary;
      const isSame =
        isPrimarySame &&
        isSameSet(now.backups, before.backups) &&
        isSameSet(now.filling, before.filling);
      if (isSame) return before;
      return {
        ...now,
        primarySince: isPrimarySame ? before.primarySince : id,
        replicasSince: id,
      };
    });
  }
}

/** The first of those with the least. */
export function least<T>(among: readonly T[], measure: (each: T) => number): T | undefined {
  let found: T | undefined;
  for (const each of among) {
    if (found === undefined || measure(each) < measure(found)) found = each;
  }
  return found;
}

function count(counts: Map<NodeId, number>, node: NodeId, change: number): void {
  const now = counts.get(node);
  if (now !== undefined) counts.set(node, now + change);
}

function isSameSet(a: readonly NodeId[], b: readonly NodeId[]): boolean {
  return a.length === b.length && a.every((each) => b.includes(each));
}
