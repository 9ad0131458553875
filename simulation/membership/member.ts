/**
 * A life of a node in a simulated cluster: the real state machines of leases and membership, with a clock
 * that drifts, on a machine that may stop. Leases live on a thread of their own, so what the two say to each
 * other takes a moment; only the gate is shared.
 */

import type { Configuration, NodeAddress } from "../../src/cluster/configuration.ts";
import { LeaseGate } from "../../src/cluster/membership/lease-gate.ts";
import {
  type LeaseMessage,
  type LeaseOptions,
  Leases,
} from "../../src/cluster/membership/leases.ts";
import { Membership } from "../../src/cluster/membership/membership.ts";
import type {
  MembershipHost,
  MembershipOptions,
} from "../../src/cluster/membership/membership-host.ts";
import type { MembershipMessage } from "../../src/cluster/membership/messages.ts";
import {
  afterFailures,
  nextStep,
  type PlacedConfiguration,
  withFilled,
  withNode,
} from "../../src/cluster/planning/planning.ts";
import { hasNothing } from "../../src/cluster/replicas.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { LEASE_TICKS } from "../../src/runtime/limits.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Machine } from "../fabric/machine.ts";
import { between } from "../fabric/streams.ts";
import type { World } from "../fabric/world.ts";
import type { SimulatedStore } from "./store.ts";

/** How often a node looks at the store, whatever happens. */
const POLL_MS = 1_000;
/** Between the two threads of a node. */
const HAND_OVER_US = 2_000;
/** So long it takes at most to copy a partition. */
const COPY_US = 750_000;

/** What a bug is planted into. */
export interface Parts {
  leases(options: LeaseOptions): Leases;
  membership(options: MembershipOptions): Membership;
}

export const REAL_PARTS: Parts = {
  leases: (options) => new Leases(options),
  membership: (options) => new Membership(options),
};

export interface MemberOptions {
  readonly world: World;
  readonly machine: Machine;
  readonly store: SimulatedStore;
  readonly address: NodeAddress;
  readonly leaseMs: number;
  /** Whether an earlier life was a member, and which partitions it had all of. */
  readonly hasItsData: boolean;
  readonly full: Iterable<number>;
  readonly parts: Parts;
  /** How fast its clock runs, and when it was started. */
  readonly clockRate: number;
  readonly clockOffsetMs: number;
  /** Over the network, which may lose it. */
  readonly send: (to: NodeId, what: LeaseMessage | MembershipMessage) => void;
  /** Whether the process of the node is there. */
  readonly isConnected: (to: NodeId) => boolean;
  readonly committed: (member: Member, configuration: Configuration) => void;
  /** Told of each configuration that it adopts. Who is told copies by itself, and says what it has (`filled`). */
  readonly adopted?: (member: Member, configuration: Configuration) => void;
  readonly removed: (member: Member) => void;
  readonly refused: (member: Member) => void;
  /** What must not be. */
  readonly problem: (what: string) => void;
}

export class Member {
  readonly id: NodeId;
  readonly instance: string;
  readonly leases: Leases;
  readonly membership: Membership;
  readonly gate = new LeaseGate();
  isDead = false;
  /** Partitions that it has all of, as copies or since it has filled them. */
  readonly full: Set<number>;
  /** Those that it fills, each since it began to. */
  readonly #filling = new Map<number, object>();
  /** It was drained, and had nothing any more, when it was a member last. */
  wasEmptied = false;
  /** What it was told about joining, if that was refused. */
  refusal: string | undefined;
  readonly #options: MemberOptions;
  readonly #random: Random;
  #suspects = "";

  constructor(options: MemberOptions) {
    const { address, parts, leaseMs, world } = options;
    this.#options = options;
    this.full = new Set(options.full);
    this.id = address.id;
    this.instance = address.instance!;
    this.#random = world.random(`member ${this.instance}`);
    const clock = { nowMs: () => this.nowMs(), atLeastMs: () => this.nowMs() };
    const { id: self, instance } = this;
    this.leases = parts.leases({
      self,
      instance,
      clock,
      earlierLeaseMs: leaseMs,
      send: options.send,
    });
    this.membership = parts.membership({ self, instance, host: this.#host() });
    this.#every(leaseMs / LEASE_TICKS, () => this.#tickLeases());
    this.#every(POLL_MS, () => this.#poll());
    this.#every(leaseMs / 10, () => {
      if (this.membership.configuration !== undefined) this.membership.tick();
    });
  }

  #poll(): void {
    this.#options.store.read((newest) => {
      if (newest !== undefined) this.#now(() => this.membership.learned(newest));
    });
  }

  /** By its own clock. */
  nowMs(): number {
    const { world, clockRate, clockOffsetMs } = this.#options;
    return (world.nowUs / 1e3) * clockRate + clockOffsetMs;
  }

  /** Whether it would serve a request now. */
  get mayServe(): boolean {
    const { configurationId } = this.membership;
    return !this.isDead && this.gate.mayServe(configurationId, this.nowMs());
  }

  /** Reads the newest configuration, and joins if it is no member. */
  arrive(): void {
    this.#options.store.read((newest) => {
      this.#soon(() => {
        if (newest === undefined) {
          this.arrive();
          return;
        }
        this.membership.learned(newest);
        const { address, hasItsData } = this.#options;
        if (!this.membership.isMember) this.membership.join(address, hasItsData);
      });
    });
  }

  receive(from: NodeId, what: LeaseMessage | MembershipMessage): void {
    if (this.isDead) return;
    if ("what" in what) {
      this.membership.receive(from, what);
      return;
    }
    if (this.leases.receive(what) === "older") this.#soon(() => this.membership.outdated(from));
    this.#updateGate();
  }

  #tickLeases(): void {
    this.leases.tick();
    this.#updateGate();
    const { configurationId } = this.leases;
    const suspects = this.leases.suspects();
    const said = `${configurationId}: ${suspects.join()}`;
    if (said === this.#suspects) return;
    this.#suspects = said;
    this.#soon(() => this.membership.suspect(configurationId, suspects));
  }

  #updateGate(): void {
    const { configurationId, deadlineMs } = this.leases;
    if (deadlineMs > Number.NEGATIVE_INFINITY) this.gate.extend(configurationId, deadlineMs);
  }

  #host(): MembershipHost {
    const { store, send, isConnected } = this.#options;
    return {
      nowMs: () => this.nowMs(),
      send,
      isConnected,
      hasLease: () => this.gate.hasLease(this.membership.configurationId, this.nowMs()),
      swap: (previous, next, done) => {
        store.swap(previous, next, (outcome) => this.#now(() => done(outcome)));
      },
      read: (done) => store.read((newest) => this.#now(() => done(newest))),
      plan: (current, survivors, manager) =>
        afterFailures(current as PlacedConfiguration, new Set(survivors), manager),
      admit: (current, node, hasItsData) =>
        withNode(current as PlacedConfiguration, node, hasItsData),
      fill: (current, filled) => withFilled(current as PlacedConfiguration, filled),
      step: (current) => nextStep(current as PlacedConfiguration),
      adopt: (configuration) => {
        if (this.#options.adopted === undefined) this.#hold(configuration);
        else this.#options.adopted(this, configuration);
        this.#soon(() => {
          if (configuration.configurationId <= this.leases.configurationId) return;
          this.leases.adopt(configuration);
          const remainingMs = this.leases.remainingMs();
          this.#soon(() => this.membership.adopted(configuration.configurationId, remainingMs));
        });
      },
      committed: (configuration) => {
        this.gate.commit(configuration.configurationId);
        if (this.#options.adopted === undefined) this.#copy();
        this.#options.committed(this, configuration);
      },
      refused: (why) => {
        this.refusal = why;
        this.#options.refused(this);
      },
      removed: () => this.#options.removed(this),
    };
  }

  /** What it has to be a copy of, it has all of; what it fills from now on, it has nothing of. */
  #hold({ configurationId, nodes, placement }: Configuration): void {
    const own = nodes.find(({ id, instance }) => id === this.id && instance === this.instance);
    if (own === undefined) return;
    for (const [partition, { primary, backups, filling }] of placement!.entries()) {
      const isCopy = primary === this.id || backups.includes(this.id);
      if (isCopy && !this.full.has(partition)) {
        const what = `counts as a copy of partition ${partition}, and has not filled it`;
        this.#options.problem(`${this.instance} ${what} (configuration ${configurationId})`);
      }
      const fills = filling.includes(this.id);
      if (!isCopy && !this.#filling.has(partition)) this.full.delete(partition);
      if (!fills) this.#filling.delete(partition);
      else if (!this.#filling.has(partition)) this.#filling.set(partition, {});
      if (!isCopy && !fills) this.full.delete(partition);
    }
    this.wasEmptied = own.draining === true && hasNothing(placement!, this.id);
  }

  #copy(): void {
    const { world } = this.#options;
    for (const [partition, filling] of this.#filling) {
      this.#at(world.nowUs + between(this.#random, 0, COPY_US), () => {
        if (this.#filling.get(partition) !== filling) return;
        this.full.add(partition);
        this.membership.filled(this.membership.configurationId, [partition]);
      });
    }
  }

  /** In another thread of this node. */
  #soon(run: () => void): void {
    const { world } = this.#options;
    this.#at(world.nowUs + between(this.#random, 10, HAND_OVER_US), run);
  }

  #now(run: () => void): void {
    this.#at(this.#options.world.nowUs, run);
  }

  #every(ms: number, run: () => void): void {
    const { world, clockRate } = this.#options;
    this.#at(world.nowUs + (ms * 1e3) / clockRate, () => {
      run();
      this.#every(ms, run);
    });
  }

  #at(atUs: number, run: () => void): void {
    const { world, machine } = this.#options;
    world.at(atUs, () => !this.isDead && run(), machine);
  }
}
