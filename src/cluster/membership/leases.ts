/**
 * Leases between the manager of a configuration and its nodes (FaRM §5.1), as a state machine: no
 * sockets, no timers, and the clock is given.
 *
 *   node → manager   request
 *   manager → node   grant, and a request of its own
 *   node → manager   grant
 *
 * What a lease means. In a configuration that is committed, a node may serve while it has one from the
 * manager. The manager may serve, and grant, while it has leases of a majority, itself included; and what it
 * grants ends before its own do. So when a majority has stopped granting in a configuration, and what each of them granted has run out,
 * nobody serves in that configuration any more. That is what a later configuration waits for before it is committed
 * (announcement.ts).
 *
 * Who is first. The holder counts from when it *sent* the request; the one who grants, from when it
 * granted. Clocks run fast or slow by LEASE_DRIFT at most, so the holder takes that much off the time, and
 * the other adds it. The holder has stopped before the other thinks that it has.
 *
 * What is old. A message counts only in its configuration and between the two lives of nodes that it
 * names. A grant names the request it answers, and counts from when that one was sent, whenever it comes.
 *
 * Who is suspected. A node that has stood still finds leases run out whose renewals lie unread in its socket, or were
 * never sent because the whole machine stood still. So it suspects only whom it has not heard for most of a lease in
 * which it was there to listen: of a gap between two ticks no more counts than the time between two renewals. To suspect
 * later is always safe; until when somebody serves does not depend on it.
 *
 * A node that has restarted does not know what it promised in its earlier life; for the length of a lease it
 * answers as if it had promised one to somebody (`remainingMs`).
 */

import type { ConfigurationId, NodeId } from "../../fabric/fabric.ts";
import type { LeaseClock } from "../../fabric/lease-clock.ts";
import { assert } from "../../runtime/assert.ts";
import {
  FIRST_GRACE_LEASES,
  LEASE_DRIFT,
  LEASE_RENEWALS,
  MAX_LEASE_REQUESTS,
} from "../../runtime/limits.ts";
import type { Configuration } from "../configuration.ts";
import { isFirst } from "./succession.ts";

/** Between two nodes of one configuration. */
export interface LeaseMessage {
  readonly configurationId: ConfigurationId;
  readonly from: NodeId;
  /** The lives of the two nodes. */
  readonly instance: string;
  readonly toInstance: string;
  /** Numbers this request; 0: it is none. */
  readonly request: number;
  /** The request that is granted; 0: none. And for how long, from when it was sent. */
  readonly grant: number;
  readonly grantMs: number;
}

/** What leases need to know of a configuration. */
export type LeaseConfiguration = Pick<
  Configuration,
  "configurationId" | "manager" | "nodes" | "leaseMs" | "unsettled"
>;

/** How the configuration of a message compares with this node's. */
export type Heard = "same" | "older" | "newer" | "stranger";

export interface LeaseOptions {
  readonly self: NodeId;
  readonly instance: string;
  readonly clock: LeaseClock;
  /** How long leases may have lasted that an earlier life of this node has granted. */
  readonly earlierLeaseMs: number;
  /** May lose it. */
  readonly send: (to: NodeId, message: LeaseMessage) => void;
}

/** Another node, as long as the configuration lasts. */
class Peer {
  readonly id: NodeId;
  readonly instance: string;
  /** Its lease to this node ends then. */
  heldUntilMs = Number.NEGATIVE_INFINITY;
  /** For how long this node had listened when that was extended last. */
  heardAtMs: number;
  /** The newest request that came from it; and whether that could not be granted yet. */
  lastRequest = 0;
  isWaiting = false;
  /** When the last requests to it were sent: by their numbers, in a circle. */
  readonly #numbers = new Float64Array(MAX_LEASE_REQUESTS);
  readonly #sentMs = new Float64Array(MAX_LEASE_REQUESTS);
  #next = 0;

  constructor(id: NodeId, instance: string, heardAtMs: number) {
    this.id = id;
    this.instance = instance;
    this.heardAtMs = heardAtMs;
  }

  sent(number: number, nowMs: number): void {
    this.#numbers[this.#next] = number;
    this.#sentMs[this.#next] = nowMs;
    this.#next = (this.#next + 1) % MAX_LEASE_REQUESTS;
  }

  /** When the request was sent, or undefined if it was not, or too long ago. */
  sentMs(number: number): number | undefined {
    const at = this.#numbers.indexOf(number);
    return at < 0 ? undefined : this.#sentMs[at];
  }
}

export class Leases {
  readonly self: NodeId;
  readonly instance: string;
  protected readonly clock: LeaseClock;
  readonly #send: LeaseOptions["send"];
  /** By the life of the node that they were made to: until when. */
  readonly #promises = new Map<string, number>();
  /** An earlier life of this node may have promised something until then. */
  readonly #forgottenUntilMs: number;
  #configuration: LeaseConfiguration | undefined;
  #isMember = false;
  /** The manager's are all other nodes; a node's is the manager. */
  #peers: readonly Peer[] = [];
  /** Who has not been heard yet is suspected from then on. */
  #graceUntilMs = 0;
  #renewAtMs = 0;
  /** For how long this node has listened, by its ticks, and when it ticked last. */
  #listenedMs = 0;
  #tickedMs = 0;
  #number = 0;

  constructor({ self, instance, clock, earlierLeaseMs, send }: LeaseOptions) {
    this.self = self;
    this.instance = instance;
    this.clock = clock;
    this.#send = send;
    this.#forgottenUntilMs = clock.atLeastMs() + earlierLeaseMs * (1 + LEASE_DRIFT);
  }

  /** 0 before the first. */
  get configurationId(): ConfigurationId {
    return this.#configuration?.configurationId ?? 0;
  }

  get isManager(): boolean {
    return this.#isMember && this.#configuration?.manager === this.self;
  }

  /** From now on only this configuration counts: no lease of an earlier one is held, asked for, or given. */
  adopt(configuration: LeaseConfiguration): void {
    assert(configuration.configurationId > this.configurationId, "configurations only grow");
    const { nodes, manager, leaseMs } = configuration;
    this.#configuration = configuration;
    this.#forgetPromises();
    this.#isMember = nodes.some(
      ({ id, instance }) => id === this.self && instance === this.instance,
    );
    const isPeer = (id: NodeId): boolean =>
      id !== this.self && this.#isMember && (this.isManager || id === manager);
    this.#peers = nodes
      .filter(({ id }) => isPeer(id))
      .map(({ id, instance = "" }) => new Peer(id, instance, this.#listenedMs));
    const nowMs = this.clock.nowMs();
    this.#tickedMs = nowMs;
    this.#graceUntilMs = nowMs + leaseMs * (isFirst(configuration) ? FIRST_GRACE_LEASES : 1);
    this.#renewAtMs = nowMs;
    this.tick();
  }

  /** A node asks again each fifth of a lease. To be called a few times as often. */
  tick(): void {
    const nowMs = this.clock.nowMs();
    if (this.#configuration === undefined) return;
    const renewalMs = this.#configuration.leaseMs / LEASE_RENEWALS;
    this.#listenedMs += Math.min(nowMs - this.#tickedMs, renewalMs);
    this.#tickedMs = nowMs;
    if (nowMs < this.#renewAtMs) return;
    this.#renewAtMs = nowMs + renewalMs;
    // The manager asks whoever asks it.
    if (this.isManager) return;
    for (const peer of this.#peers) this.#say(peer, this.#newRequest(peer, nowMs), 0, 0);
  }

  receive(message: LeaseMessage): Heard {
    const { configurationId, from, instance, toInstance, request, grant, grantMs } = message;
    if (configurationId < this.configurationId) return "older";
    if (configurationId > this.configurationId) return "newer";
    const peer = this.#peers.find(({ id }) => id === from);
    if (peer === undefined || peer.instance !== instance || toInstance !== this.instance) {
      return "stranger";
    }
    const couldGrant = this.#grantableMs() > 0;
    if (grant > 0) this.#granted(peer, grant, grantMs);
    if (request > peer.lastRequest) {
      peer.lastRequest = request;
      this.#answer(peer);
    }
    if (!couldGrant && this.#grantableMs() > 0) this.#answerWaiting();
    return "same";
  }

  /**
   * Until when this node has a lease, by `clock.nowMs()`; of the manager, when the last of any majority's
   * leases ends.
   */
  get deadlineMs(): number {
    if (!this.#isMember) return Number.NEGATIVE_INFINITY;
    if (!this.isManager) return this.#peers[0]?.heldUntilMs ?? Number.NEGATIVE_INFINITY;
    // It has its own for ever.
    const others = this.majorityOf(this.#peers.length + 1) - 1;
    if (others === 0) return Number.POSITIVE_INFINITY;
    const ends = this.#peers.map(({ heldUntilMs }) => heldUntilMs).sort((a, b) => b - a);
    return ends[others - 1];
  }

  /** Those whose leases to this node have run out: of the manager all nodes, of a node the manager. */
  suspects(): NodeId[] {
    const nowMs = this.clock.nowMs();
    const leaseMs = this.#configuration?.leaseMs ?? 0;
    const silentSinceMs = this.#listenedMs - leaseMs * (1 - 1 / LEASE_RENEWALS);
    const isSuspected = ({ heldUntilMs, heardAtMs }: Peer): boolean =>
      heldUntilMs <= nowMs &&
      heardAtMs <= silentSinceMs &&
      (heldUntilMs > Number.NEGATIVE_INFINITY || nowMs >= this.#graceUntilMs);
    return this.#peers.filter(isSuspected).map(({ id }) => id);
  }

  /**
   * How much longer leases may be held that this node has granted to any that are not members of its
   * configuration. When it has answered with this, it will grant them no more.
   */
  remainingMs(): number {
    let untilMs = this.#forgottenUntilMs;
    for (const [instance, promisedMs] of this.#promises) {
      if (!this.#hasMember(instance)) untilMs = Math.max(untilMs, promisedMs);
    }
    return Math.max(0, untilMs - this.clock.atLeastMs());
  }

  #forgetPromises(): void {
    const nowMs = this.clock.atLeastMs();
    for (const [instance, promisedMs] of this.#promises) {
      if (promisedMs <= nowMs) this.#promises.delete(instance);
    }
  }

  #hasMember(instance: string): boolean {
    const nodes = this.#configuration?.nodes ?? [];
    return nodes.some((node) => node.instance === instance);
  }

  /** When the lease of this request began. */
  protected heldFromMs(sentMs: number): number {
    return sentMs;
  }

  /** How many leases the manager of so many nodes needs, its own included. */
  protected majorityOf(nodes: number): number {
    return Math.floor(nodes / 2) + 1;
  }

  #granted(peer: Peer, request: number, grantMs: number): void {
    const sentMs = peer.sentMs(request);
    if (sentMs === undefined) return;
    const lastsMs = Math.min(grantMs, this.#configuration!.leaseMs) * (1 - LEASE_DRIFT);
    peer.heardAtMs = this.#listenedMs;
    peer.heldUntilMs = Math.max(peer.heldUntilMs, this.heldFromMs(sentMs) + lastsMs);
  }

  /** How long a lease that is granted now may last. */
  #grantableMs(): number {
    const leaseMs = this.#configuration?.leaseMs ?? 0;
    if (!this.isManager) return leaseMs;
    const leftMs = this.deadlineMs - this.clock.nowMs();
    // The other's clock may be slower than this one.
    return Math.max(0, Math.min(leaseMs, leftMs * (1 - LEASE_DRIFT)));
  }

  #answer(peer: Peer): void {
    const grantMs = this.#grantableMs();
    const number = this.isManager ? this.#newRequest(peer, this.clock.nowMs()) : 0;
    peer.isWaiting = grantMs <= 0;
    if (peer.isWaiting) {
      this.#say(peer, number, 0, 0);
      return;
    }
    this.#promise(peer, grantMs);
    this.#say(peer, number, peer.lastRequest, grantMs);
  }

  /** The manager has got a majority's leases: whoever asked before gets one now. */
  #answerWaiting(): void {
    for (const peer of this.#peers) if (peer.isWaiting) this.#answer(peer);
  }

  #promise({ instance }: Peer, grantMs: number): void {
    const untilMs = this.clock.atLeastMs() + grantMs * (1 + LEASE_DRIFT);
    this.#promises.set(instance, Math.max(untilMs, this.#promises.get(instance) ?? 0));
  }

  #newRequest(peer: Peer, nowMs: number): number {
    const number = ++this.#number;
    peer.sent(number, nowMs);
    return number;
  }

  #say({ id, instance }: Peer, request: number, grant: number, grantMs: number): void {
    const { configurationId, self, instance: own } = this;
    this.#send(id, {
      configurationId,
      from: self,
      instance: own,
      toInstance: instance,
      request,
      grant,
      grantMs,
    });
  }
}
