/**
 * Nodes that live as real ones do: each is the service of a node (cluster/sim-node.ts) with the state machines of its
 * leases and its membership (membership/member.ts), on one machine of the fabric. They suspect each other, change the
 * configuration in a store that stands for etcd, recover what was under way, copy partitions, leave and join again.
 */

import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import type { LeaseMessage } from "../../src/cluster/membership/leases.ts";
import type { MembershipMessage } from "../../src/cluster/membership/messages.ts";
import { initialPlacement, type PlacedConfiguration } from "../../src/cluster/planning/planning.ts";
import { View } from "../../src/cluster/view.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import type { Random } from "../../src/runtime/random.ts";
import { SimulatedNode, type SimulatedNodeOptions } from "../cluster/sim-node.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import { between } from "../fabric/streams.ts";
import { Member, REAL_PARTS } from "../membership/member.ts";
import { SimulatedStore } from "../membership/store.ts";

export const LEASE_MS = 40;
/** Between two nodes, for what is said about leases and configurations. */
const WAY_US = { minUs: 50, maxUs: 1_000 };
/** One that was removed is started again after this time at most. */
const AWAY_US = 4 * LEASE_MS * 1e3;
/** Where nodes take their time to close, the process of one that was removed goes on for so long at most. */
const CLOSING_US = 2 * LEASE_MS * 1e3;

export interface LivingOptions extends SimulatedNodeOptions {
  readonly nodes: number;
  readonly backups: number;
  readonly partitions: number;
  /** Whether one that was removed goes on for a while before its process ends. */
  readonly closesSlowly?: boolean;
  /** Told what happens, line by line. */
  readonly tell: (line: string) => void;
  /** Told when a process of a node has ended, however. */
  readonly ended: (node: SimulatedNode) => void;
}

export class LivingNodes {
  readonly nodes: readonly SimulatedNode[];
  readonly store: SimulatedStore;
  readonly #fabric: SimulatedFabric;
  readonly #options: LivingOptions;
  readonly #members: Member[] = [];
  readonly #links: Random;
  /** Configurations that their managers have committed. */
  committed = 0;
  crashes = 0;

  constructor(fabric: SimulatedFabric, options: LivingOptions) {
    this.#fabric = fabric;
    this.#options = options;
    this.#links = fabric.random("links of members");
    const { nodes: count, backups, partitions, ended: _, tell, ...each } = options;
    const ids = Array.from({ length: count }, (_, id) => id);
    const addresses = ids.map((id) => ({
      id,
      host: "simulated",
      port: id,
      instance: `life-1-of-${id}`,
    }));
    const placement = initialPlacement(addresses, partitions, backups);
    const given = { nodes: addresses, backups, partitions, placement };
    const first = configurationOf({ ...given, manager: 0, leaseMs: LEASE_MS }, "the simulation");
    this.store = new SimulatedStore(fabric.world, first);
    this.nodes = ids.map(
      (id) =>
        new SimulatedNode(fabric, id, first, {
          ...each,
          recovers: true,
          settled: ({ name, partitions: written, configurationId: began }, outcome) => {
            const which = `${name.coordinator}/${name.sequence} of configuration ${began}`;
            tell(`node ${id} settles ${which}, partitions ${written}: ${outcome}`);
          },
          mayServe: () => this.#members[id]?.mayServe ?? false,
          filled: (configurationId, partitionsFilled) =>
            this.#members[id].membership.filled(configurationId, partitionsFilled),
        }),
    );
    for (const node of this.nodes) this.#join(node);
  }

  get configuration(): PlacedConfiguration {
    return this.store.current as PlacedConfiguration;
  }

  /** A process is killed, and started again after a while; if it lost its power, from its log. */
  crash(id: NodeId, awayUs: number, losesPower = false): void {
    const node = this.nodes[id];
    if (!node.isUp) return;
    this.crashes++;
    this.#end(node);
    this.#options.tell(`node ${id} dies${losesPower ? ", and its power is lost" : ""}`);
    if (losesPower) node.losePower(this.#fabric.random(`power ${this.crashes}`));
    this.#comeBack(node, awayUs);
  }

  #end(node: SimulatedNode): void {
    this.#members[node.id].isDead = true;
    node.service.copying?.stop();
    node.crash();
    this.#options.ended(node);
  }

  #comeBack(node: SimulatedNode, awayUs: number): void {
    this.#fabric.at(this.#fabric.nowUs + awayUs, () => this.#start(node));
  }

  /** Reads the newest configuration before all else, as a process that starts does. */
  #start(node: SimulatedNode): void {
    if (node.isUp) return;
    this.store.read((newest) => {
      if (node.isUp) return;
      if (newest === undefined) {
        this.#start(node);
        return;
      }
      node.configuration = newest;
      node.comeBack();
      this.#options.tell(`node ${node.id} is back as ${node.instance}`);
      this.#join(node);
    });
  }

  #join(node: SimulatedNode): void {
    const { id, instance } = node;
    const world = this.#fabric.world;
    const random = world.random(`clock ${instance}`);
    const leave = (): void => {
      if (!node.isUp || node.instance !== instance) return;
      this.#options.tell(`node ${id} finds itself removed`);
      if (this.#options.closesSlowly !== true) close();
      else this.#fabric.at(this.#fabric.nowUs + between(random, 0, CLOSING_US), close);
    };
    const close = (): void => {
      if (!node.isUp || node.instance !== instance) return;
      this.#end(node);
      this.#comeBack(node, between(random, 0, AWAY_US));
    };
    const member = new Member({
      world,
      machine: this.#fabric.machine(id),
      store: this.store,
      address: { id, host: "simulated", port: id, instance },
      leaseMs: LEASE_MS,
      hasItsData: true,
      full: [],
      problem: () => {},
      parts: REAL_PARTS,
      clockRate: between(random, 0.97, 1.03),
      clockOffsetMs: between(random, 1e3, 1e6),
      send: (to, what) => this.#send(id, to, what),
      // Nobody is waited for who is suspected: a life in which more nodes are removed shows more.
      isConnected: () => false,
      adopted: (_, configuration) => this.#adopted(node, configuration),
      committed: (_, configuration) => {
        if (configuration.manager === id) {
          this.committed++;
          this.#options.tell(`committed: ${describe(configuration)}`);
        }
        node.service.recover();
      },
      removed: leave,
      refused: leave,
    });
    this.#members[id] = member;
    member.arrive();
  }

  #adopted(node: SimulatedNode, configuration: Configuration): void {
    const { id: self, instance, service } = node;
    const protocol = service.view.current.protocol.name;
    node.adopt(new View({ self, instance, configuration, protocol }));
  }

  #send(from: NodeId, to: NodeId, what: LeaseMessage | MembershipMessage): void {
    const { world } = this.#fabric;
    const random = this.#links;
    const verdict = world.faults.judge(from, to, false, world.nowUs);
    if (verdict.isLost) return;
    const atUs = world.nowUs + between(random, WAY_US.minUs, WAY_US.maxUs) + verdict.delayUs;
    const machine = this.#fabric.machine(to);
    const arrive = (): void => {
      if (this.nodes[to].isUp) this.#members[to].receive(from, what);
    };
    world.at(atUs, arrive, machine);
    for (const laterUs of verdict.copiesUs) world.at(atUs + laterUs, arrive, machine);
  }

  /** What is not as it should be when nothing goes wrong any more. */
  illness(): string | undefined {
    const { nodes, placement, backups, configurationId } = this.configuration;
    if (nodes.length < this.nodes.length) return `only ${nodes.map(({ id }) => id)} are members`;
    for (const { id } of this.nodes) {
      const member = this.#members[id];
      if (member.membership.configurationId !== configurationId) return `node ${id} is behind`;
      if (!member.mayServe) return `node ${id} does not serve`;
      if (this.nodes[id].service.hasBlocked) return `node ${id} recovers`;
    }
    const lacking = placement.filter((each) => each.backups.length < backups).length;
    const filling = placement.filter((each) => each.filling.length > 0).length;
    if (lacking + filling > 0) return `${lacking} partitions lack copies, ${filling} are filled`;
    const clearing = this.nodes.filter(
      ({ service }) => service.copying!.progress().clearing > 0,
    ).length;
    return clearing > 0 ? `${clearing} nodes clear rows away` : undefined;
  }
}

function describe({ configurationId, nodes, manager, placement = [] }: Configuration): string {
  const copies = placement.map(({ primary, backups, filling }, partition) => {
    const filled = filling.length === 0 ? "" : ` (${filling})`;
    return `${partition}: ${[primary, ...backups]}${filled}`;
  });
  return `configuration ${configurationId} of ${nodes.map(({ id }) => id)}, manager ${manager}; ${copies.join("; ")}`;
}
