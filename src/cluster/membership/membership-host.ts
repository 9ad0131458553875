/** Between the state machine of a membership and its node: a real one, or a simulated one. */

import type { NodeId } from "../../fabric/fabric.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";
import type { Steps } from "./changes.ts";
import type { SendMessage } from "./messages.ts";

/** What a membership does to its node and to the world. */
export interface MembershipHost extends Steps {
  /** Never ahead of the true time (LeaseClock). */
  nowMs(): number;
  readonly send: SendMessage;
  /**
   * Whether there is a connection to the node. A process that has ended has none; one that is only late has, so
   * it is worth waiting for. Nothing but that wait depends on it.
   */
  isConnected(node: NodeId): boolean;
  /** Whether this node has its leases in the configuration that it has adopted last. */
  hasLease(): boolean;
  /**
   * Puts `next` in the place of `previous` in the store. What came of it may also be unknown; a call that
   * never ends is given up after a while.
   */
  swap(previous: Configuration, next: Configuration, done: (outcome: Swapped) => void): void;
  /** The newest configuration in the store; undefined if it cannot be reached. */
  read(done: (newest: Configuration | undefined) => void): void;
  /** The configuration without the nodes that do not survive, and with this manager. */
  plan(current: Configuration, survivors: readonly NodeId[], manager: NodeId): Configuration;
  /** The configuration with one more node, or why that cannot be one. */
  admit(current: Configuration, node: NodeAddress, hasItsData: boolean): Configuration | string;
  /**
   * Replaces the view. The node serves nothing from now on, and grants no leases in earlier
   * configurations; when that is so, `Membership.adopted` is called.
   */
  adopt(configuration: Configuration): void;
  /** The configuration is committed; `previous` is the last one before it that was, as far as is known here. */
  committed(configuration: Configuration, previous: Configuration | undefined): void;
  /** This node wants to become a member, and cannot. */
  refused(why: string): void;
  /** This node, in this life, is no member any more. */
  removed(configuration: Configuration): void;
}

export type Swapped = "swapped" | "refused" | "unknown";

export interface MembershipOptions {
  readonly self: NodeId;
  readonly instance: string;
  readonly host: MembershipHost;
}
