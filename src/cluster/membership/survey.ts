/**
 * Who is there: what a node that is about to change the configuration has learned from the answers to its probes.
 * A member that answers in the life that the configuration knows survives. In another life it has forgotten
 * what it knew, so it cannot stay; but it is there, and counts where a majority has to be.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";
import type { Probed } from "./messages.ts";

export class Survey {
  readonly number: number;
  readonly beganMs: number;
  readonly configuration: Configuration;
  readonly #self: NodeId;
  readonly #answers = new Map<NodeId, Probed>();
  readonly #survivors = new Set<NodeId>();

  constructor(
    number: number,
    beganMs: number,
    configuration: Configuration,
    self: { readonly id: NodeId; readonly instance: string },
  ) {
    this.number = number;
    this.beganMs = beganMs;
    this.configuration = configuration;
    this.#self = self.id;
    if (this.#isLife(self.id, self.instance)) this.#survivors.add(self.id);
  }

  /** Those to be asked. */
  get others(): NodeId[] {
    return this.configuration.nodes.map(({ id }) => id).filter((id) => id !== this.#self);
  }

  /** Those of them who have not answered. */
  unheard(): NodeId[] {
    return this.others.filter((id) => !this.#answers.has(id));
  }

  /** False if it was not asked for. */
  answered(from: NodeId, answer: Probed): boolean {
    if (answer.attempt !== this.number || !this.others.includes(from)) return false;
    this.#answers.set(from, answer);
    if (this.#isLife(from, answer.instance)) this.#survivors.add(from);
    return true;
  }

  survives(node: NodeId): boolean {
    return this.#survivors.has(node);
  }

  #isLife(node: NodeId, life: string): boolean {
    return this.configuration.nodes.some(({ id, instance }) => id === node && instance === life);
  }

  /** Whether an answer is still to come of one who is not suspected. */
  isWaiting(suspects: readonly NodeId[]): boolean {
    return this.unheard().some((id) => !suspects.includes(id));
  }

  /** The members that would stay: one that answers without a lease is not to be relied on. */
  kept(suspects: readonly NodeId[]): NodeId[] {
    const nodes = this.configuration.nodes.map(({ id }) => id);
    return nodes.filter((id) => this.#survivors.has(id) && !suspects.includes(id));
  }

  /** How many would stay, or are back in another life. */
  present(suspects: readonly NodeId[]): number {
    const back = [...this.#answers.keys()].filter((id) => !this.#survivors.has(id));
    return this.kept(suspects).length + back.length;
  }

  /** Whether members, other than the manager, still have leases of it. */
  get hasManager(): boolean {
    const { manager } = this.configuration;
    return [...this.#answers].some(
      ([id, { hasManager }]) => hasManager && id !== manager && this.#survivors.has(id),
    );
  }

  get hasMembers(): boolean {
    return this.#survivors.size > 0;
  }

  /** Those who are back with their data, with `own`, and the configuration as if it had these lives of them. */
  withReturned(own: NodeAddress): { configuration: Configuration; ids: NodeId[] } {
    const { configuration } = this;
    const since = configuration.configurationId + 1;
    const lives = new Map<NodeId, NodeAddress>();
    for (const { joining } of this.#answers.values()) {
      if (joining !== undefined) lives.set(joining.id, { ...joining, since });
    }
    lives.set(own.id, { ...own, since });
    const nodes = configuration.nodes.map((node) => lives.get(node.id) ?? node);
    return { configuration: { ...configuration, nodes }, ids: [...lives.keys()] };
  }
}
