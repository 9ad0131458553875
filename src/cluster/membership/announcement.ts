/**
 * What the manager of a new configuration waits for before it commits it:
 *
 *   - all members have acknowledged it: none of them serves in an earlier one;
 *   - of each earlier configuration that may still be served in, a majority has acknowledged it, as
 *     members or not: nobody is granted leases there any more (leases.ts, succession.ts);
 *   - the leases have run out that those had granted to nodes that are no members any more.
 */

import type { NodeId } from "../../fabric/fabric.ts";
import { LEASE_DRIFT } from "../../runtime/limits.ts";
import type { Configuration } from "../configuration.ts";
import { audienceOf, majorityOf } from "./succession.ts";

/** The time that somebody's clock says, as this node must count it if both may drift. */
const DRIFT_OF_TWO = (1 + LEASE_DRIFT) / (1 - LEASE_DRIFT);

export class Announcement {
  readonly #configuration: Configuration;
  readonly #beganMs: number;
  readonly #acknowledged = new Set<NodeId>();
  #waitUntilMs = Number.NEGATIVE_INFINITY;

  constructor(configuration: Configuration, nowMs: number) {
    this.#configuration = configuration;
    this.#beganMs = nowMs;
  }

  acknowledge(node: NodeId, instance: string, remainingMs: number, nowMs: number): void {
    if (this.#acknowledged.has(node)) return;
    const member = this.#configuration.nodes.find(({ id }) => id === node);
    // A member in another life than the configuration knows has to be admitted by a later one.
    if (member !== undefined && member.instance !== instance) return;
    this.#acknowledged.add(node);
    this.#waitUntilMs = Math.max(this.#waitUntilMs, nowMs + remainingMs * DRIFT_OF_TWO);
  }

  /** All who have not answered, members or not. */
  unheard(): NodeId[] {
    return [...audienceOf(this.#configuration).keys()].filter((id) => !this.#acknowledged.has(id));
  }

  /** Members that have not answered for so long. */
  silentMembers(nowMs: number, patienceMs: number): NodeId[] {
    if (nowMs < this.#beganMs + patienceMs) return [];
    const members = this.#configuration.nodes.map(({ id }) => id);
    return members.filter((id) => !this.#acknowledged.has(id));
  }

  mayCommit(nowMs: number): boolean {
    const { nodes, unsettled = [] } = this.#configuration;
    return (
      nodes.every(({ id }) => this.#acknowledged.has(id)) &&
      unsettled.every((set) => this.hasMajority(set.map(({ id }) => id))) &&
      this.haveLeasesEnded(nowMs)
    );
  }

  protected hasMajority(of: readonly NodeId[]): boolean {
    return of.filter((id) => this.#acknowledged.has(id)).length >= majorityOf(of.length);
  }

  protected haveLeasesEnded(nowMs: number): boolean {
    return nowMs >= this.#waitUntilMs;
  }
}
