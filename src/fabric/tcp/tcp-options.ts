/** What an endpoint over TCP is opened with, and what its connections share. */

import type { ConnectionOptions, SecureContextOptions } from "node:tls";
import type { Gate, Shared } from "../exchange/shared.ts";
import type { ConfigurationId, NodeId, PostedService, Service } from "../fabric.ts";
import type { VerbMemory } from "../verbs.ts";
import type { Turn } from "./outbox.ts";

export interface NodeAddress {
  readonly host: string;
  readonly port: number;
  /** Whichever node is there will do, for one who does not know the configuration yet. */
  readonly isAnybody?: boolean;
}

/** As for node:tls; the same for both sides of a connection. */
export interface TlsOptions extends Pick<SecureContextOptions, "key" | "cert" | "ca"> {
  /** The name that the certificates of nodes have; their host's, unless given. */
  readonly servername?: ConnectionOptions["servername"];
  /** Whether those who connect must have a certificate of `ca` too. */
  readonly requestCert?: boolean;
}

export interface TcpOptions {
  /** CLIENT, or the number of this node. */
  readonly self: NodeId;
  readonly nodes: ReadonlyMap<NodeId, NodeAddress>;
  readonly configurationId: ConfigurationId;
  /** The name of the cluster: one does not get to the nodes of another by mistake. */
  readonly cluster: string;
  readonly listen?: NodeAddress;
  /** Names this life of the node or client; a random name, unless given. */
  readonly instance?: string;
  /** Served to verbs. */
  readonly memory?: VerbMemory;
  readonly service?: Service;
  /** Takes messages that nobody answers. */
  readonly posted?: PostedService;
  /** Whether this node may answer; without it, it always may. */
  readonly gate?: Gate;
  /** What clients must know. */
  readonly secret?: string;
  /** What nodes must know, and clients do not. */
  readonly nodeSecret?: string;
  readonly tls?: TlsOptions;
  readonly maxConnections?: number;
  /** One who had connected to this node is gone. */
  readonly onConnectionClosed?: (connection: number) => void;
  readonly progressTimeoutMs?: number;
  readonly handshakeTimeoutMs?: number;
}

/** What all connections of an endpoint share. */
export interface TcpShared extends Shared {
  readonly cluster: string;
  readonly secret: string | undefined;
  readonly nodeSecret: string | undefined;
  readonly tls: TlsOptions | undefined;
  readonly handshakeTimeoutMs: number;
  readonly turn: Turn;
  /** Connections to this end. */
  visitors: number;
  /** Connections that were refused and are still being told so. */
  lingering: number;
}
