/**
 * The contract of all fabrics: how nodes and clients reach each other. There are requests with
 * replies, and nothing else; verbs (verbs.ts) are requests that the other end's fabric serves
 * itself, against its memory. Implementations: tcp/, and simulation/fabric/ for tests; one suite of tests
 * (tests/fabric/) runs over both.
 *
 * What may be relied on:
 *
 *   - Every request ends once: with `replied`, or with `failed`. After `failed` with SITU_LOST
 *     nobody knows whether the other end has seen it; a late reply is dropped. After SITU_STALE_CONFIGURATION,
 *     or SITU_OVERLOADED before anything was begun, no copy of it has been served, nor will be.
 *   - A request is served at most once for each time it is sent, or more often where the simulated
 *     fabric duplicates messages. Those who send again and those who serve must live with both.
 *   - No order. (TCP keeps the order between two ends; the simulated one does
 *     not, and the protocols are tested on it.)
 *   - All that is sent to one node in one turn of the event loop leaves in one piece, replies too
 *     (FaSST §4.2, Doorbell batching).
 *   - Every frame carries the sender's configuration number. A request with another one than the
 *     receiver's is not served: it fails with SITU_STALE_CONFIGURATION.
 *   - Memory is bounded. Beyond the limits of runtime/limits.ts a request fails with SITU_OVERLOADED, and
 *     one who sends but does not read is not read from.
 */

import { SituError } from "../runtime/errors.ts";
import { MAX_NODES } from "../runtime/limits.ts";
import type { NumberOf } from "../runtime/number-kinds.ts";
import type { Reader, Writer } from "./wire.ts";

/** The number of a node in the configuration, from 0 on. */
export type NodeId = NumberOf<"node">;

/** The number of a configuration, from 1 on; it grows with every change. */
export type ConfigurationId = NumberOf<"configuration">;

/** In place of a node's number: one who only sends requests. */
export const CLIENT: NodeId = -1;

/** The number of a node as a message says it. */
export function nodeIdOf(value: number): NodeId {
  if (Number.isInteger(value) && value >= 0 && value < MAX_NODES) return value;
  throw new SituError("SITU_PROTOCOL", `no node has the number ${value}`);
}

/** Where at a node a message is served. A verb is served by the NIC, without any program of ours. */
export type Place = "verb" | "nic" | "host";

export interface Request {
  /** Kinds below FIRST_MESSAGE_KIND are verbs. */
  readonly kind: number;
  /** The configuration in which it was sent, however long it waits in a queue; else that of the endpoint. */
  readonly configurationId?: ConfigurationId | undefined;
  /**
   * Nobody answers it: it ends when it has left, without a word. One that cannot leave fails; one that is refused there, or gets
   * lost, is not heard of again. TCP only (`TcpEndpoint.post`).
   */
  readonly isOneWay?: boolean;
  /** Appends the body. Called each time the request is sent, and once per time. */
  encode(out: Writer): void;
  /** The body of the reply, to be read during the call only. */
  replied(reply: Reader): void;
  /** No reply, or one that refuses: `why.code` says which. */
  failed(why: SituError): void;
}

export const FIRST_MESSAGE_KIND = 16;
/** Served whatever the configuration number of its sender: it asks for the configuration. */
export const DESCRIBE_KIND = 255;
/** The same: it is about the configuration, and goes from node to node. */
export const MEMBERSHIP_KIND = 254;

/** The same, from those who administer the cluster. */
export const ADMINISTER_KIND = 253;

/** Whether a kind of message is served whatever the configuration number of its sender. */
export function isOfAnyConfiguration(kind: number): boolean {
  return kind >= ADMINISTER_KIND;
}

/** Who sent a request. */
export interface Sender {
  /** CLIENT, or the number of a node that has proved to be one. */
  readonly node: NodeId;
  /** Numbers the connections of this endpoint, so that what belongs to one can be let go. */
  readonly connection: number;
}

/** A request that has arrived. The object is used again for the next one. */
export interface Incoming {
  readonly from: Sender;
  readonly kind: number;
  readonly body: Reader;
  /**
   * Begins the reply. It is complete when the service returns; until then nothing may be sent or
   * replied through this endpoint.
   */
  reply(): Writer;
  /** The reply comes later, when the service has long returned. The body is gone then. */
  defer(): Ticket;
}

export interface Ticket {
  reply(write: (out: Writer) => void): void;
  fail(error: SituError): void;
  /** False once the connection of the sender is gone; to reply is then harmless. */
  readonly isWanted: boolean;
}

/**
 * Serves one message: replies, defers, or throws a SituError, which becomes the reply. Verbs do
 * not come here.
 */
export type Service = (incoming: Incoming) => void;

/** Takes one message that nobody answers. Throws SITU_PROTOCOL to end the connection it came over. */
export type PostedService = (from: Sender, kind: number, body: Reader) => void;

export interface Timer {
  cancel(): void;
}

/** Time as this end sees it: virtual where the fabric is simulated. */
export interface Clock {
  nowMs(): number;
  after(ms: number, run: () => void): Timer;
}

/** What has happened at this end since it was opened. */
export interface FabricCounters {
  /** Requests and replies, and the writes (of all that left in one piece) that carried them. */
  requestsSent: number;
  requestsServed: number;
  repliesReceived: number;
  writes: number;
  /** Requests that ended without a reply. */
  lost: number;
  /** Requests refused for their configuration number. */
  stale: number;
  /** Requests or connections refused for a limit. */
  overloaded: number;
  /** Connections closed for what came over them, by the code of the error. */
  refused: Record<string, number>;
  connections: number;
}

export interface Endpoint {
  readonly self: NodeId;
  readonly clock: Clock;
  /** The configuration number in all frames from now on. */
  configurationId: ConfigurationId;
  readonly counters: FabricCounters;
  /** Sends a request; it leaves when this turn ends. Never throws for the state of the network. */
  send(to: NodeId, request: Request): void;
  /** Requests that are under way fail with SITU_CLOSED. */
  close(): Promise<void>;
}
