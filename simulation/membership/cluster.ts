/**
 * A cluster of simulated members (member.ts), their store of configurations and the network between them, with all
 * that can go wrong, and what must hold at every event:
 *
 *   - at most one node would serve as the primary of a partition;
 *   - the configuration of a node never goes back;
 *   - when a configuration is committed, a majority of the one that was committed before it has adopted it or
 *     a later one;
 *   - a node that counts as a copy of a partition has filled it, or had it before (member.ts);
 *   - a node that operators have had removed has nothing.
 */

import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { grant, type Wish } from "../../src/cluster/membership/administration.ts";
import type { LeaseMessage } from "../../src/cluster/membership/leases.ts";
import type { MembershipMessage } from "../../src/cluster/membership/messages.ts";
import { majorityOf } from "../../src/cluster/membership/succession.ts";
import {
  initialPlacement,
  nextStep,
  type PlacedConfiguration,
} from "../../src/cluster/planning/planning.ts";
import { hasNothing, type Replicas } from "../../src/cluster/replicas.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { Fault } from "../fabric/faults.ts";
import { PLAIN } from "../fabric/hardware.ts";
import { Machine } from "../fabric/machine.ts";
import { between } from "../fabric/streams.ts";
import { World } from "../fabric/world.ts";
import { Member, type Parts, REAL_PARTS } from "./member.ts";
import { SimulatedStore } from "./store.ts";

const LEASE_MS = 250;
export const LEASE_US = LEASE_MS * 1e3;
const PARTITIONS = 8;
/** A node that was removed comes back after this time at most. */
export const AWAY_US = 8 * LEASE_US;
const WAY_US = { minUs: 100, maxUs: 3_000 };

export interface MembershipOptions {
  readonly seed: number;
  readonly nodes: number;
  /** The real ones, unless a bug is planted. */
  readonly parts?: Parts;
  /** Whether connections last until a process ends; otherwise nobody is waited for who is suspected. */
  readonly connectionsLast?: boolean;
}

export class SimulatedMembership {
  readonly world: World;
  readonly random: Random;
  readonly #links: Random;
  readonly store: SimulatedStore;
  readonly #parts: Parts;
  readonly #connectionsLast: boolean;
  readonly #machines: Machine[];
  /** The last life of each node. */
  readonly members: Member[] = [];
  readonly #lives: number[];
  /** Whether the nodes have stores of which a cluster knows. */
  readonly #wereMembers: boolean[];
  readonly problems: string[] = [];
  readonly committed = new Map<number, Configuration>();
  /** The newest configuration that any life of a node has adopted. */
  readonly #adopted: number[];
  events = 0;
  /** The configuration that was judged last: that takes a while. */
  #judged: { readonly current: Configuration; readonly isBalanced: boolean } | undefined;

  constructor(options: MembershipOptions) {
    const { seed, nodes, parts = REAL_PARTS, connectionsLast = false } = options;
    const world = new World({ seed, trace: false });
    this.world = world;
    this.#parts = parts;
    this.#connectionsLast = connectionsLast;
    this.random = world.random("episodes");
    this.#links = world.random("links");
    const ids = Array.from({ length: nodes }, (_, id) => id);
    this.#machines = ids.map((id) => new Machine(id, PLAIN));
    this.#lives = ids.map(() => 0);
    this.#wereMembers = ids.map(() => true);
    this.#adopted = ids.map(() => 0);
    const addresses = ids.map((id) => ({ id, host: "simulated", port: id, instance: `${id}.0` }));
    const backups = Math.min(2, nodes - 1);
    const placement = initialPlacement(addresses, PARTITIONS, backups);
    const given = { nodes: addresses, backups, partitions: PARTITIONS, placement };
    const first = configurationOf({ ...given, manager: 0, leaseMs: LEASE_MS }, "the simulation");
    this.store = new SimulatedStore(world, first);
    for (const id of ids) {
      const has = ({ primary, backups }: Replicas): boolean => [primary, ...backups].includes(id);
      this.#start(
        id,
        [...placement.keys()].filter((partition) => has(placement[partition])),
      );
    }
  }

  runFor(us: number, isDone: () => boolean = () => false): void {
    const untilUs = this.world.nowUs + us;
    while (this.problems.length === 0 && this.world.step(untilUs)) {
      this.events++;
      this.#check();
      if (isDone()) return;
    }
  }

  // Nodes.

  #start(id: NodeId, full: Iterable<number>): void {
    const instance = `${id}.${this.#lives[id]++}`;
    const random = this.world.random(`clock ${instance}`);
    const world = this.world;
    const member = new Member({
      world,
      machine: this.#machines[id],
      store: this.store,
      address: { id, host: "simulated", port: id, instance },
      leaseMs: LEASE_MS,
      hasItsData: this.#wereMembers[id],
      full,
      problem: (what) => this.problems.push(what),
      parts: this.#parts,
      clockRate: between(random, 0.95, 1.05),
      clockOffsetMs: between(random, 1e3, 1e6),
      send: (to, what) => this.#send(id, to, what),
      isConnected: (to) => this.#connectionsLast && this.members[to]?.isDead === false,
      committed: (who, configuration) => this.#isCommitted(who, configuration),
      removed: (who) => {
        // It comes back as another life, as a process that has ended and is started again; one that was to leave
        // as a new machine with nothing.
        who.isDead = true;
        if (who.wasEmptied) this.#wereMembers[id] = false;
        this.#comeBack(id, between(this.random, 0, AWAY_US));
      },
      refused: (who) => {
        who.isDead = true;
        this.#comeBack(id, between(this.random, 0, AWAY_US));
      },
    });
    this.members[id] = member;
    member.arrive();
  }

  #comeBack(id: NodeId, inUs: number): void {
    const before = this.members[id];
    const world = this.world;
    world.at(world.nowUs + inUs, () => {
      if (this.members[id] !== before) return;
      // It died when it had been taken in, and knows in which life it asked for that.
      if (this.store.current.nodes.some(({ instance }) => instance === before.instance)) {
        this.#wereMembers[id] = true;
      }
      this.#start(id, this.#wereMembers[id] ? before.full : []);
    });
  }

  #send(from: NodeId, to: NodeId, what: LeaseMessage | MembershipMessage): void {
    const world = this.world;
    const verdict = world.faults.judge(from, to, false, world.nowUs);
    if (verdict.isLost) return;
    const atUs = world.nowUs + between(this.#links, WAY_US.minUs, WAY_US.maxUs) + verdict.delayUs;
    const arrive = (): void => this.members[to]?.receive(from, what);
    world.at(atUs, arrive, this.#machines[to]);
    for (const laterUs of verdict.copiesUs) world.at(atUs + laterUs, arrive, this.#machines[to]);
  }

  // Faults.

  crash(id: NodeId, lastsUs: number): void {
    if (this.members[id].isDead) return;
    this.members[id].isDead = true;
    this.#comeBack(id, lastsUs);
  }

  stop(id: NodeId, lastsUs: number): void {
    this.#machines[id].isStopped = true;
    this.after(lastsUs, () => this.#resume(id));
  }

  #resume(id: NodeId): void {
    const machine = this.#machines[id];
    machine.isStopped = false;
    for (const event of machine.waiting.splice(0)) {
      if (event.run === undefined) continue;
      event.atUs = Math.max(event.atUs, this.world.nowUs);
      this.world.queue.push(event);
    }
  }

  cut(some: readonly NodeId[], others: readonly NodeId[], lastsUs: number, isOneWay: boolean) {
    const { faults } = this.world;
    for (const from of some) {
      for (const to of others) {
        if (from === to) continue;
        const cuts: Fault[] = [{ kind: "loss", probability: 1, from, to }];
        if (!isOneWay) cuts.push({ kind: "loss", probability: 1, from: to, to: from });
        for (const cut of cuts) {
          faults.add(cut);
          this.after(lastsUs, () => faults.remove(cut));
        }
      }
    }
  }

  after(us: number, run: () => void): void {
    this.world.at(this.world.nowUs + us, run);
  }

  heal(): void {
    this.world.faults.clear();
    this.store.mishaps = 0;
    this.store.isGone = false;
    this.store.isSlow = false;
    for (const machine of this.#machines) this.#resume(machine.id);
  }

  // Operators.

  /** As one who asks each node that may be the manager. */
  ask(wish: Wish): void {
    for (const { membership, isDead } of this.members) if (!isDead) grant(membership, wish);
  }

  /** Drains the node, and has it removed when it is empty, whatever happens meanwhile. */
  replace(id: NodeId): void {
    if (this.store.current.nodes.some((node) => node.id === id && node.draining === true)) {
      this.ask({ what: "remove", node: id });
    } else this.ask({ what: "drain", node: id });
  }

  // What must hold.

  #check(): void {
    const primaries = new Map<number, Member>();
    for (const member of this.members) {
      const { configuration, configurationId } = member.membership;
      if (configurationId > this.#adopted[member.id]) this.#adopted[member.id] = configurationId;
      if (configuration === undefined || !member.mayServe) continue;
      for (const [partition, { primary }] of configuration.placement!.entries()) {
        if (primary !== member.id) continue;
        const other = primaries.get(partition);
        primaries.set(partition, member);
        if (other === undefined) continue;
        this.problems.push(
          `partition ${partition} has two primaries: ${describe(other)} and ${describe(member)}`,
        );
        return;
      }
    }
  }

  #isCommitted(member: Member, configuration: Configuration): void {
    const { configurationId, manager } = configuration;
    if (this.committed.has(configurationId) || manager !== member.id) return;
    let before: Configuration | undefined;
    for (const earlier of this.committed.values()) {
      if (earlier.configurationId > (before?.configurationId ?? 0)) before = earlier;
    }
    if (before !== undefined && before.configurationId > configurationId) {
      this.problems.push(`${configurationId} is committed after ${before.configurationId}`);
    }
    this.committed.set(configurationId, configuration);
    this.#wereMembers[member.id] = true;
    this.#check();
    const nodes = before?.nodes ?? [];
    const know = nodes.filter(({ id }) => this.#adopted[id] >= configurationId).length;
    if (before !== undefined && know < majorityOf(nodes.length)) {
      const of = `${know} of ${nodes.length} nodes of ${before.configurationId}`;
      this.problems.push(`${configurationId} is committed, and known to ${of}`);
    }
  }

  lost(): number[] {
    const { nodes, placement } = this.store.current;
    const members = new Set(nodes.map(({ id }) => id));
    return [...placement!.keys()].filter((each) => !members.has(placement![each].primary));
  }

  /** What is not as it should be when nothing goes wrong. */
  illness(): string | undefined {
    const { current } = this.store;
    if (!this.committed.has(current.configurationId)) {
      return `configuration ${current.configurationId} is not committed`;
    }
    if (current.nodes.length < this.members.length) {
      const why = this.members.map(({ refusal }) => refusal ?? "").join(" ");
      return `only ${current.nodes.map(({ id }) => id)} are members ${why}`;
    }
    const idle = this.members.find((member) => !member.mayServe);
    if (idle !== undefined) return `${describe(idle)} does not serve`;
    const other = this.members.find(
      ({ membership }) => membership.configurationId !== current.configurationId,
    );
    if (other !== undefined) return `${describe(other)} is behind`;
    const { placement, backups } = current as PlacedConfiguration;
    const lacking = placement.filter((each) => each.backups.length !== backups).length;
    const filling = placement.filter((each) => each.filling.length > 0).length;
    if (lacking + filling > 0) return `${lacking} partitions lack copies, ${filling} are filled`;
    if (this.#judged?.current !== current) {
      const isBalanced = nextStep(current as PlacedConfiguration) === undefined;
      this.#judged = { current, isBalanced };
    }
    if (!this.#judged.isBalanced) return "it is not balanced";
    const emptied = current.nodes.find(
      ({ id, draining }) => draining && !hasNothing(placement, id),
    );
    return emptied === undefined ? undefined : `node ${emptied.id} is not drained`;
  }
}

function describe({ instance, membership }: Member): string {
  return `${instance} in configuration ${membership.configurationId}`;
}
