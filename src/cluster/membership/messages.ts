/**
 * Messages between nodes about the configuration. They count whatever the configuration of either end, and
 * may be lost, come twice or late.
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import type { Configuration, NodeAddress } from "../configuration.ts";

export type MembershipMessage =
  | Probe
  | Probed
  | NewConfiguration
  | Acknowledged
  | Committed
  | Join
  | HasFilled
  | Refused;

/** Are you there? From one who is about to change the configuration. */
export interface Probe {
  readonly what: "probe";
  readonly configurationId: ConfigurationId;
  readonly attempt: number;
}

export interface Probed {
  readonly what: "probed";
  readonly configurationId: ConfigurationId;
  readonly attempt: number;
  /** The life that answers. */
  readonly instance: string;
  /** Whether this node sees no reason to replace the manager. */
  readonly hasManager: boolean;
  /** Of a node that has its data, and wants to become a member again. */
  readonly joining: NodeAddress | undefined;
}

/** NEW-CONFIG: what is stored as the newest configuration, and never anything else. */
export interface NewConfiguration {
  readonly what: "new configuration";
  readonly configuration: Configuration;
}

/** NEW-CONFIG-ACK: this node has stopped serving, and granting, in earlier ones. */
export interface Acknowledged {
  readonly what: "acknowledged";
  readonly configurationId: ConfigurationId;
  readonly instance: string;
  /** How much longer leases may run that it has granted to nodes that are no members any more. */
  readonly remainingMs: number;
}

/** NEW-CONFIG-COMMIT */
export interface Committed {
  readonly what: "committed";
  readonly configurationId: ConfigurationId;
}

/** From a node that wants to become a member, to any; the manager admits it. */
export interface Join {
  readonly what: "join";
  readonly node: NodeAddress;
  /** Whether it still has what it had as a member, in an earlier life. */
  readonly hasItsData: boolean;
}

/** To the manager: this node has all of these partitions, which it fills in this configuration. */
export interface HasFilled {
  readonly what: "filled";
  readonly configurationId: ConfigurationId;
  readonly instance: string;
  readonly partitions: readonly number[];
}

/** To a node that wants to become a member, and cannot. */
export interface Refused {
  readonly what: "refused";
  /** The life that is refused. */
  readonly instance: string;
  readonly why: string;
}

/** Sends to a node that may or may not be a member; the message may be lost. */
export type SendMessage = (to: NodeId, message: MembershipMessage) => void;
