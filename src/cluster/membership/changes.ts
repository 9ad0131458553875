/**
 * What the manager changes of a configuration that has not failed, one thing at a time and in this order:
 *
 *   wanted   what somebody has asked for: nodes that join, and what operators want
 *   filled   partitions that nodes have copied become copies: when all that are being filled have been, or
 *            after a pause
 *   step     the placement gets better by a little, when nothing is being filled, after a pause
 *
 * Every configuration interrupts the cluster for a moment. So what nobody waits for is paced, and when there is no
 * better placement (`step` says so) the configuration stays as it is.
 *
 * A node that says what it has copied says it of a configuration, and says it again. It counts only if
 * nothing about the partition has changed since: so one who was given up as a copy, and began anew, is not taken
 * at its earlier word.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import { MAX_CHANGES, STEP_PAUSE_LEASES } from "../../runtime/limits.ts";
import type { Configuration } from "../configuration.ts";
import type { Filled } from "../planning/planning.ts";
import type { HasFilled } from "./messages.ts";

/** A change that somebody wants beside what failures make necessary; undefined if it is there already. */
export type Change = (configuration: Configuration) => Configuration | undefined;

export interface Steps {
  /** The configuration with copies that are complete now. */
  fill(current: Configuration, filled: readonly Filled[]): Configuration;
  /** With a better placement, or undefined if there is none. */
  step(current: Configuration): Configuration | undefined;
}

export class Changes {
  readonly #steps: Steps;
  readonly #wanted = new Map<string, Change>();
  /** By partition and node. */
  readonly #filled = new Map<string, Filled & { readonly configurationId: ConfigurationId }>();
  /** A configuration that no step makes better. */
  #settledId: ConfigurationId = 0;

  constructor(steps: Steps) {
    this.#steps = steps;
  }

  /** Beyond the limit nothing is added: who wants it asks again. */
  want(name: string, change: Change): void {
    if (this.#wanted.size < MAX_CHANGES || this.#wanted.has(name)) this.#wanted.set(name, change);
  }

  /** What a node has copied, as it says. */
  filled(
    current: Configuration,
    from: NodeId,
    { configurationId, instance, partitions }: HasFilled,
  ) {
    if (!current.nodes.some((each) => each.id === from && each.instance === instance)) return;
    for (const partition of partitions) {
      const filled = { partition, node: from, configurationId };
      if (isFilled(current, filled)) this.#filled.set(`${partition} ${from}`, filled);
    }
  }

  /** Whether the configuration, which has been committed for so long, is to be changed now. */
  isDue(current: Configuration, committedForMs: number): boolean {
    if (this.#wanted.size > 0) return true;
    this.#forgetFilled(current);
    const isRested = committedForMs >= STEP_PAUSE_LEASES * current.leaseMs;
    const filling = fillingIn(current);
    if (filling > 0) return this.#filled.size >= (isRested ? 1 : filling);
    return isRested && this.#settledId !== current.configurationId;
  }

  /** The next configuration, of what is due; undefined if nothing is to be changed. */
  next(current: Configuration): Configuration | undefined {
    const hadWanted = this.#wanted.size > 0;
    for (const [name, change] of this.#wanted) {
      this.#wanted.delete(name);
      const changed = change(current);
      if (changed !== undefined) return changed;
    }
    // What is paced waits for its time.
    if (hadWanted) return undefined;
    this.#forgetFilled(current);
    if (this.#filled.size > 0) return this.#steps.fill(current, [...this.#filled.values()]);
    if (fillingIn(current) > 0) return undefined;
    const better = this.#steps.step(current);
    if (better === undefined) this.#settledId = current.configurationId;
    return better;
  }

  #forgetFilled(current: Configuration): void {
    for (const [name, filled] of this.#filled) {
      if (!isFilled(current, filled)) this.#filled.delete(name);
    }
  }
}

function isFilled(
  { placement = [] }: Configuration,
  { partition, node, configurationId }: Filled & { readonly configurationId: ConfigurationId },
): boolean {
  const replicas = placement[partition];
  return replicas?.filling.includes(node) === true && replicas.replicasSince <= configurationId;
}

function fillingIn({ placement = [] }: Configuration): number {
  return placement.reduce((sum, { filling }) => sum + filling.length, 0);
}
