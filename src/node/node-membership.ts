/**
 * The membership of a real node, in its NIC worker: the state machine with the lease thread, the store of
 * configurations and the node's endpoint around it. What a change means for the node itself is left to its
 * `MembershipListener`.
 */

import type { Configuration, Configurations, NodeAddress } from "../cluster/configuration.ts";
import type { NodeReport } from "../cluster/membership/administer.ts";
import { type Granted, grant, type Wish } from "../cluster/membership/administration.ts";
import type { Change } from "../cluster/membership/changes.ts";
import type { LeaseGate } from "../cluster/membership/lease-gate.ts";
import { Membership } from "../cluster/membership/membership.ts";
import type { MembershipHost } from "../cluster/membership/membership-host.ts";
import {
  MembershipRequest,
  membershipMessageOf,
} from "../cluster/membership/membership-request.ts";
import type { MembershipMessage } from "../cluster/membership/messages.ts";
import { audienceOf } from "../cluster/membership/succession.ts";
import {
  afterFailures,
  nextStep,
  type PlacedConfiguration,
  withFilled,
  withNode,
} from "../cluster/planning/planning.ts";
import type { ConfigurationId, Endpoint, NodeId } from "../fabric/fabric.ts";
import { type LeaseClock, leaseClock } from "../fabric/lease-clock.ts";
import { every } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { LeaseThread } from "./lease-worker.ts";

/** What changes of the configuration mean for the node. */
export interface MembershipListener {
  /**
   * Every frame and every decision is of this configuration from now on. Nothing is served before it is
   * committed.
   */
  adopted(configuration: Configuration): void;
  /** Serve, and settle what is in doubt; `previous` is the last that was committed here. */
  committed(configuration: Configuration, previous: Configuration | undefined): void;
  /** This life of the node is over: it is no member any more. */
  removed(configuration: Configuration): void;
  /** It asked to become one, and cannot. */
  refused(why: string): void;
  died(error: Error): void;
}

/** What it needs of the node's endpoint. */
export interface MembershipEndpoint extends Pick<Endpoint, "send"> {
  isConnected(node: NodeId): boolean;
  setNodes(nodes: ReadonlyMap<NodeId, NodeAddress>): void;
}

export interface NodeMembershipOptions {
  /** This node in this life, as others reach it. */
  readonly address: NodeAddress & { readonly instance: string };
  readonly listen: { readonly host: string; readonly port: number };
  readonly endpoint: MembershipEndpoint;
  readonly configurations: Configurations;
  /** Whether the node was a member, and has what it had then. */
  readonly hasItsData: boolean;
  readonly nodeSecret: string | undefined;
  readonly gate: LeaseGate;
  readonly listener: MembershipListener;
}

export interface MemberStats {
  readonly configurationId: ConfigurationId;
  readonly nodes: number;
  readonly isManager: boolean;
  readonly isServing: boolean;
  /** How often it has begun to suspect others. */
  readonly suspicions: number;
  /** Partitions of which it is the primary, a backup, and those that it copies. */
  readonly primaries: number;
  readonly backups: number;
  readonly filling: number;
}

export class NodeMembership {
  readonly #options: NodeMembershipOptions;
  readonly #membership: Membership;
  readonly #clock: LeaseClock = leaseClock();
  /** Those who can be sent to: members, earlier ones, and nodes that want to become members. */
  readonly #known = new Map<NodeId, NodeAddress>();
  #leases: LeaseThread | undefined;
  #ticking: { cancel(): void } | undefined;
  #unwatch: (() => void) | undefined;

  private constructor(options: NodeMembershipOptions) {
    const { id: self, instance } = options.address;
    this.#options = options;
    this.#membership = new Membership({ self, instance, host: this.#host() });
  }

  /** The endpoint listens, and passes messages of MEMBERSHIP_KIND to `receive`. */
  static async start(options: NodeMembershipOptions): Promise<NodeMembership> {
    const membership = new NodeMembership(options);
    await membership.#start();
    return membership;
  }

  async #start(): Promise<void> {
    const { address, listen, configurations, hasItsData, nodeSecret } = this.#options;
    const { gate, listener } = this.#options;
    const { current } = configurations;
    const membership = this.#membership;
    const task = {
      self: address.id,
      instance: address.instance,
      cluster: current.cluster,
      secret: nodeSecret,
      listen,
      leaseMs: current.leaseMs,
    };
    this.#leases = await LeaseThread.start(task, gate, {
      adopted: ({ configurationId, remainingMs }) =>
        membership.adopted(configurationId, remainingMs),
      suspects: ({ configurationId, suspects }) => membership.suspect(configurationId, suspects),
      outdated: ({ node }) => membership.outdated(node),
      died: (error) => listener.died(error),
    });
    membership.learned(current);
    this.#unwatch = configurations.watch((next) => membership.learned(next));
    if (!membership.isMember) membership.join(address, hasItsData);
    this.#ticking = every(membership.tickMs, () => {
      gate.beat();
      membership.tick();
    });
  }

  /** The newest that this node knows. */
  get configuration(): Configuration {
    return this.#membership.configuration!;
  }

  get isCommitted(): boolean {
    return this.#membership.isCommitted;
  }

  /** Whether this node may serve now, in the configuration that it has adopted last. */
  mayServe(): boolean {
    const { configurationId } = this.#membership;
    return this.#options.gate.mayServe(configurationId, this.#clock.nowMs());
  }

  /** Has the configuration changed, if this node is the manager; says whether it is. */
  change(name: string, change: Change): boolean {
    return this.#membership.change(name, change);
  }

  /** This node has copied these partitions, in a configuration; the manager is told until they count as copies. */
  filled(configurationId: ConfigurationId, partitions: readonly number[]): void {
    this.#membership.filled(configurationId, partitions);
  }

  /** What an operator wants. */
  grant(wish: Wish): Granted {
    return grant(this.#membership, wish);
  }

  report(): NodeReport {
    return {
      isServing: this.mayServe(),
      isWhole: this.#options.gate.isWhole(this.#membership.configurationId),
    };
  }

  /** For those who watch the node. */
  stats(): MemberStats {
    const { configurationId, configuration, isManager, suspicions } = this.#membership;
    const { id } = this.#options.address;
    const { nodes, placement = [] } = configuration!;
    const count = (isIt: (each: (typeof placement)[number]) => boolean): number =>
      placement.filter(isIt).length;
    return {
      configurationId,
      nodes: nodes.length,
      isManager,
      isServing: this.mayServe(),
      suspicions,
      primaries: count(({ primary }) => primary === id),
      backups: count(({ backups }) => backups.includes(id)),
      filling: count(({ filling }) => filling.includes(id)),
    };
  }

  /** What a node has sent; throws SITU_PROTOCOL, or SITU_CONFIG, for what is none. */
  receive(from: NodeId, text: string): void {
    const message = membershipMessageOf(text, `node ${from}`);
    if (message.what === "join" && message.node.id === from) this.#know([message.node]);
    // The host's thread, where that keeps the node's copies.
    if (message.what === "filled" && from === this.#options.address.id) {
      this.filled(message.configurationId, message.partitions);
      return;
    }
    this.#membership.receive(from, message);
  }

  async close(): Promise<void> {
    this.#ticking?.cancel();
    this.#unwatch?.();
    await this.#leases?.close();
  }

  #know(nodes: Iterable<NodeAddress>): void {
    for (const node of nodes) this.#known.set(node.id, node);
    this.#options.endpoint.setNodes(this.#known);
  }

  #send(to: NodeId, message: MembershipMessage): void {
    this.#options.endpoint.send(to, new MembershipRequest(message));
  }

  #host(): MembershipHost {
    const { configurations, endpoint, gate, listener } = this.#options;
    return {
      nowMs: () => this.#clock.atLeastMs(),
      hasLease: () => {
        const { configurationId } = this.#membership;
        return gate.hasLease(configurationId, this.#clock.nowMs());
      },
      send: (to, message) => this.#send(to, message),
      isConnected: (node) => endpoint.isConnected(node),
      swap: (previous, next, done) => {
        configurations.swap(previous, next).then(
          (isSwapped) => done(isSwapped ? "swapped" : "refused"),
          () => done("unknown"),
        );
      },
      read: (done) => {
        configurations.read().then(done, () => done(undefined));
      },
      plan: (current, survivors, manager) =>
        afterFailures(current as PlacedConfiguration, new Set(survivors), manager),
      admit: (current, node, hasItsData) => admitted(current, node, hasItsData),
      fill: (current, filled) => withFilled(current as PlacedConfiguration, filled),
      step: (current) => nextStep(current as PlacedConfiguration),
      adopt: (configuration) => {
        this.#know(audienceOf(configuration).values());
        listener.adopted(configuration);
        this.#leases!.adopt(configuration);
      },
      committed: (configuration, previous) => {
        gate.commit(configuration.configurationId);
        listener.committed(configuration, previous);
      },
      refused: (why) => listener.refused(why),
      removed: (configuration) => listener.removed(configuration),
    };
  }
}

function admitted(
  current: Configuration,
  node: NodeAddress,
  hasItsData: boolean,
): Configuration | string {
  try {
    return withNode(current as PlacedConfiguration, node, hasItsData);
  } catch (error) {
    if (error instanceof SituError) return error.message;
    throw error;
  }
}
