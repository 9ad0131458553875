/**
 * The fabric over TCP, for nodes and clients. It runs in the thread that opens it: in a node that is
 * the NIC worker, which serves verbs and messages without the host thread; in a client it is the
 * thread of the application. A node has a connection to each node that it sends requests to (peer.ts),
 * and one from each that sends requests to it (visitor.ts): requests go one way only over each.
 */

import type { AddressInfo } from "node:net";
import { every, realClock } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  DEFAULT_MAX_CONNECTIONS,
  HANDSHAKE_TIMEOUT_MS,
  PROGRESS_TIMEOUT_MS,
} from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { freshCounters } from "../counters.ts";
import { Endings } from "../exchange/endings.ts";
import { LocalPeer } from "../exchange/local.ts";
import { Responder } from "../exchange/responder.ts";
import { SpareFrames } from "../exchange/spare-frames.ts";
import {
  CLIENT,
  type Clock,
  type ConfigurationId,
  type Endpoint,
  type FabricCounters,
  type NodeId,
  type Request,
  type Timer,
} from "../fabric.ts";
import { Scratch } from "../frames.ts";
import type { Writer } from "../wire.ts";
import { lost } from "./link.ts";
import { Listener } from "./listener.ts";
import { Turn } from "./outbox.ts";
import { closed, Peer, TIMEOUT_TICKS } from "./peer.ts";
import type { NodeAddress, TcpOptions, TcpShared } from "./tcp-options.ts";

/** Resolves when it listens, if it is to; to whom it can send shows later. */
export async function openTcp(options: TcpOptions): Promise<TcpEndpoint> {
  const endpoint = new TcpEndpoint(options);
  try {
    if (options.listen !== undefined) await endpoint.listen(options.listen);
    return endpoint;
  } catch (error) {
    await endpoint.close();
    throw error;
  }
}

export class TcpEndpoint implements Endpoint {
  readonly self: NodeId;
  readonly clock: Clock = realClock;
  readonly counters: FabricCounters;
  readonly #shared: TcpShared;
  readonly #endings = new Endings();
  readonly #peers: (Peer | undefined)[] = [];
  readonly #local: LocalPeer | undefined;
  readonly #listener: Listener;
  readonly #ticking: Timer;
  #isClosed = false;

  constructor(options: TcpOptions) {
    const counters = freshCounters();
    const spares = new SpareFrames();
    this.self = options.self;
    this.counters = counters;
    this.#shared = {
      self: options.self,
      cluster: options.cluster,
      secret: options.secret,
      nodeSecret: options.nodeSecret,
      tls: options.tls,
      instance: options.instance ?? uniqueId(),
      handshakeTimeoutMs: options.handshakeTimeoutMs ?? HANDSHAKE_TIMEOUT_MS,
      counters,
      spares,
      turn: new Turn(counters, spares),
      scratch: new Scratch(),
      configurationId: options.configurationId,
      gate: options.gate,
      visitors: 0,
      lingering: 0,
    };
    const responder = new Responder(this.#shared, options.memory, options.service, options.posted);
    this.#listener = new Listener(
      this.#shared,
      responder,
      options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
      options.onConnectionClosed,
    );
    if (options.self !== CLIENT) {
      this.#local = new LocalPeer(this.#shared, this.#endings, responder, options.self);
    }
    this.setNodes(options.nodes);
    const timeoutMs = options.progressTimeoutMs ?? PROGRESS_TIMEOUT_MS;
    this.#ticking = every(timeoutMs / TIMEOUT_TICKS, () => this.#tick());
  }

  get configurationId(): ConfigurationId {
    return this.#shared.configurationId;
  }

  set configurationId(configurationId: ConfigurationId) {
    this.#shared.configurationId = configurationId;
  }

  /** Random, and another one after a restart. */
  get instance(): string {
    return this.#shared.instance;
  }

  /** That of a node, as it said when it was reached last. */
  instanceOf(node: NodeId): string | undefined {
    return node === this.self ? this.instance : this.#peers[node]?.instance;
  }

  /** The configuration number of a node, as it said last. */
  configurationIdOf(node: NodeId): ConfigurationId | undefined {
    return node === this.self ? this.configurationId : this.#peers[node]?.configurationId;
  }

  /** Whether there is a connection to the node now. */
  isConnected(node: NodeId): boolean {
    return this.#peers[node]?.isReady ?? false;
  }

  listen(address: NodeAddress): Promise<void> {
    return this.#listener.listen(address);
  }

  address(): AddressInfo {
    return this.#listener.address();
  }

  /** A connection to an address that has changed is used until it breaks. */
  setNodes(nodes: ReadonlyMap<NodeId, NodeAddress>): void {
    for (const [node, address] of nodes) {
      const peer = this.#peers[node];
      if (peer === undefined) {
        this.#peers[node] = new Peer(this.#shared, this.#endings, node, address);
      } else peer.address = address;
    }
    for (const peer of this.#peers) {
      if (peer === undefined || nodes.has(peer.node)) continue;
      this.#peers[peer.node] = undefined;
      // What has left may have been served.
      peer.close(lost(`node ${peer.node} has left the configuration`));
    }
  }

  send(to: NodeId, request: Request): void {
    if (this.#isClosed) this.#endings.fail(request, closed());
    else if (to === this.self && this.#local !== undefined) this.#local.send(request);
    else {
      const peer = this.#peers[to];
      if (peer === undefined) this.#endings.fail(request, unreachable(to));
      else peer.send(request);
    }
  }

  /** Sends a message that nobody answers, to another node. What cannot leave is dropped: who waits for something asks again. */
  post(to: NodeId, kind: number, encode: (out: Writer) => void): void {
    if (this.#isClosed) return;
    this.#peers[to]?.send({ kind, isOneWay: true, encode, replied() {}, failed() {} });
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#ticking.cancel();
    for (const peer of this.#peers) peer?.close(closed());
    this.#local?.close(closed());
    this.#endings.tell();
    await this.#listener.close();
  }

  #tick(): void {
    for (const peer of this.#peers) peer?.tick();
  }
}

function unreachable(node: NodeId): SituError {
  return new SituError("SITU_UNREACHABLE", `there is no node ${node} in the configuration`);
}
