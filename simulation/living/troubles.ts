/** What goes wrong in the life of a cluster, drawn from its seed: episodes one after the other, which heal by themselves. */

import type { Random } from "../../src/runtime/random.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import type { Fault } from "../fabric/faults.ts";
import { between } from "../fabric/streams.ts";
import { LEASE_MS, type LivingNodes } from "./nodes.ts";

const LEASE_US = LEASE_MS * 1e3;
/** So long things go wrong. */
const STORM_US = 40 * LEASE_US;
const FRAMES: readonly Fault[] = [
  { kind: "loss", probability: 0.002 },
  { kind: "duplicate", probability: 0.01, maxUs: LEASE_US },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
  { kind: "delay", probability: 0.05, maxUs: 300 },
  { kind: "delay", probability: 0.002, minUs: LEASE_US / 4, maxUs: 3 * LEASE_US },
];
/** Of the requests to the store of configurations. */
const MISHAPS = 0.05;

const EPISODES = [
  ...Array<"a node dies">(8).fill("a node dies"),
  "the manager dies",
  "the manager dies",
  "two nodes die",
  "two nodes die",
  "all nodes die",
  "a node stops",
  "a node stops",
  "a machine is suspended",
  "two do not hear each other",
  "two do not hear each other",
  "one does not hear the others",
  "some do not hear the others",
  "the store is gone",
  "the store is slow",
] as const;

/** Where nodes mostly die together: what is in doubt then is settled by those who come back. */
const HARSH_EPISODES: readonly (typeof EPISODES)[number][] = [
  ...EPISODES,
  ...Array<"two nodes die">(8).fill("two nodes die"),
  ...Array<"all nodes die">(8).fill("all nodes die"),
];

export class Troubles {
  readonly #fabric: SimulatedFabric;
  readonly #cluster: LivingNodes;
  readonly #isLogged: boolean;
  readonly #episodes: readonly (typeof EPISODES)[number][];
  readonly #random: Random;
  /** Undoes what is not healed yet. */
  readonly #heal = new Set<() => void>();
  #isOver = false;
  episodes = 0;

  readonly #tell: (line: string) => void;

  constructor(
    fabric: SimulatedFabric,
    cluster: LivingNodes,
    { isLogged, isHarsh }: { readonly isLogged: boolean; readonly isHarsh: boolean },
    tell: (line: string) => void,
  ) {
    this.#tell = tell;
    this.#fabric = fabric;
    this.#cluster = cluster;
    this.#isLogged = isLogged;
    this.#episodes = isHarsh ? HARSH_EPISODES : EPISODES;
    this.#random = fabric.random("episodes");
  }

  begin(): void {
    for (const rule of FRAMES) this.#fabric.addFault(rule);
    this.#cluster.store.mishaps = MISHAPS;
    this.#fabric.at(this.#fabric.nowUs + STORM_US, () => this.end());
    this.#next();
  }

  /** Heals everything, for good. */
  end(): void {
    this.#isOver = true;
    this.#fabric.clearFaults();
    this.#cluster.store.mishaps = 0;
    for (const heal of [...this.#heal]) heal();
  }

  #next(): void {
    const inUs = between(this.#random, 1e3, 6 * LEASE_US);
    this.#fabric.at(this.#fabric.nowUs + inUs, () => {
      if (this.#isOver) return;
      this.#episode();
      this.#next();
    });
  }

  #episode(): void {
    this.episodes++;
    const random = this.#random;
    const { nodes, store, configuration } = this.#cluster;
    const ids = nodes.map(({ id }) => id);
    const id = random.below(ids.length);
    const other = random.below(ids.length);
    const lastsUs = between(random, 1e3, random.below(3) === 0 ? 8 * LEASE_US : 2 * LEASE_US);
    const die = (victim: number): void =>
      this.#cluster.crash(
        victim,
        between(random, 1e3, 6 * LEASE_US),
        this.#isLogged && random.below(2) === 0,
      );
    const what = this.#episodes[random.below(this.#episodes.length)];
    this.#tell(`${what} (${id}, ${other})`);
    switch (what) {
      case "a node dies":
        die(id);
        break;
      case "the manager dies":
        die(configuration.manager!);
        break;
      case "two nodes die":
        die(id);
        die(other);
        break;
      case "all nodes die":
        for (const each of ids) die(each);
        break;
      case "a node stops":
        this.#stop(id, lastsUs);
        break;
      case "a machine is suspended":
        this.#stop(id, 20 * LEASE_US);
        break;
      case "two do not hear each other":
        this.#cut([id], [other], lastsUs, random.below(2) === 0);
        break;
      case "one does not hear the others":
        this.#cut(ids, [id], lastsUs, true);
        break;
      case "some do not hear the others": {
        const some = ids.filter(() => random.below(2) === 0);
        const others = ids.filter((each) => !some.includes(each));
        this.#cut(some, others, lastsUs, random.below(3) === 0);
        break;
      }
      case "the store is gone":
        store.isGone = true;
        this.#until(lastsUs, () => {
          store.isGone = false;
        });
        break;
      case "the store is slow":
        store.isSlow = true;
        this.#until(lastsUs, () => {
          store.isSlow = false;
        });
    }
  }

  #stop(id: number, lastsUs: number): void {
    if (!this.#cluster.nodes[id].isUp || this.#fabric.machine(id).isStopped) return;
    this.#fabric.stop(id);
    this.#until(lastsUs, () => this.#fabric.resume(id));
  }

  #cut(some: readonly number[], others: readonly number[], lastsUs: number, isOneWay: boolean) {
    for (const from of some) {
      for (const to of others) {
        if (from === to) continue;
        const cuts = [this.#fabric.partition(from, to)];
        if (!isOneWay) cuts.push(this.#fabric.partition(to, from));
        for (const cut of cuts) this.#until(lastsUs, () => this.#fabric.removeFault(cut));
      }
    }
  }

  #until(lastsUs: number, undo: () => void): void {
    const heal = (): void => {
      if (this.#heal.delete(heal)) undo();
    };
    this.#heal.add(heal);
    this.#fabric.at(this.#fabric.nowUs + lastsUs, heal);
  }
}
