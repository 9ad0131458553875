/**
 * What goes wrong in a run, drawn from its seed. Rules for frames hold all the time (loss, copies,
 * other orders, delays, some of them past every time-out). Episodes come one after the other while
 * workers are at work, and heal by themselves: a machine is slow, or stopped for a while and resumed,
 * or two of them do not hear each other, in one direction or in both; a client vanishes. With
 * "crashes", nodes are killed and come back with the memory of their stores; with "power" that is lost,
 * and they come back from their logs. (tests/simulation/crashes.test.ts says what is promised then). With
 * "failover" they do not come back: the others go on without them.
 */

import { PROGRESS_TIMEOUT_MS } from "../../src/runtime/limits.ts";
import type { Random } from "../../src/runtime/random.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import type { Fault } from "../fabric/faults.ts";

export const FAULT_LEVELS = ["none", "light", "heavy", "crashes", "power", "failover"] as const;
export type FaultLevel = (typeof FAULT_LEVELS)[number];

const PAST_TIMEOUT_US = PROGRESS_TIMEOUT_MS * 1_000;

const LIGHT: readonly Fault[] = [
  { kind: "loss", probability: 0.002 },
  { kind: "duplicate", probability: 0.01 },
  { kind: "reorder", probability: 0.05, maxUs: 200 },
  { kind: "delay", probability: 0.1, maxUs: 300 },
];

const RULES: Readonly<Record<FaultLevel, readonly Fault[]>> = {
  none: [],
  light: LIGHT,
  crashes: LIGHT,
  power: LIGHT,
  failover: LIGHT,
  heavy: [
    { kind: "loss", probability: 0.01 },
    { kind: "duplicate", probability: 0.05 },
    { kind: "duplicate", probability: 0.01, minUs: 1_000, maxUs: 2 * PAST_TIMEOUT_US },
    { kind: "reorder", probability: 0.1, maxUs: 2_000 },
    { kind: "delay", probability: 0.1, maxUs: 3_000 },
    { kind: "delay", probability: 0.005, minUs: PAST_TIMEOUT_US, maxUs: 3 * PAST_TIMEOUT_US },
  ],
};

/** The pauses between two episodes, and how long they last. */
const PAUSE_US: Readonly<Record<FaultLevel, number>> = {
  none: 0,
  light: 300_000,
  heavy: 100_000,
  crashes: 20_000,
  power: 40_000,
  failover: 20_000,
};
const SHORT_US = 50_000;
/** So long faults come; then everything is healed, and the workers must get to their ends. */
const STORM_US = 10e6;
const MOST_VANISHED = 8;
/** Longer than all that anybody waits for. */
const LONG_US = 6_000_000;

export interface Victims {
  readonly nodes: readonly number[];
  /** How many may be lost for good. */
  readonly mostLost: number;
  /** Those that are here now. */
  clients(): readonly number[];
  vanish(client: number): void;
  crash(node: number): void;
  comeBack(node: number): void;
}

export class FaultSchedule {
  readonly #fabric: SimulatedFabric;
  readonly #random: Random;
  readonly #level: FaultLevel;
  readonly #victims: Victims;
  /** Undoes what has been done and is not healed yet. */
  readonly #heal = new Set<() => void>();
  #isOver = false;
  #vanished = 0;
  readonly #down = new Set<number>();
  episodes = 0;

  constructor(fabric: SimulatedFabric, level: FaultLevel, victims: Victims) {
    this.#fabric = fabric;
    this.#level = level;
    this.#victims = victims;
    this.#random = fabric.random("episodes");
  }

  begin(): void {
    for (const rule of RULES[this.#level]) this.#fabric.addFault(rule);
    this.#fabric.at(this.#fabric.nowUs + STORM_US, () => this.end());
    if (this.#level !== "none") this.#next();
  }

  /** Heals everything, for good. */
  end(): void {
    this.#isOver = true;
    this.#fabric.clearFaults();
    for (const heal of [...this.#heal]) heal();
  }

  #next(): void {
    const inUs = 1_000 + this.#random.below(PAUSE_US[this.#level]);
    this.#fabric.at(this.#fabric.nowUs + inUs, () => {
      if (this.#isOver) return;
      this.#episode();
      this.#next();
    });
  }

  #episode(): void {
    this.episodes++;
    const random = this.#random;
    const { nodes } = this.#victims;
    if (this.#level === "crashes" || this.#level === "power") {
      this.#crash(pick(random, nodes), 1_000 + random.below(SHORT_US));
      return;
    }
    if (this.#level === "failover") {
      const victim = pick(random, nodes);
      if (this.#down.has(victim) || this.#down.size >= this.#victims.mostLost) return;
      this.#down.add(victim);
      this.#victims.crash(victim);
      return;
    }
    const clients = this.#victims.clients();
    const one =
      random.below(4) > 0 || clients.length === 0 ? pick(random, nodes) : pick(random, clients);
    const isLong = this.#level === "heavy" && random.below(8) === 0;
    const lastsUs = 1_000 + random.below(isLong ? LONG_US : SHORT_US);
    switch (random.below(this.#level === "heavy" ? 6 : 4)) {
      case 0:
        this.#slow(one, lastsUs);
        return;
      case 1:
        this.#stop(one, lastsUs);
        return;
      case 2:
      case 3: {
        const other = pick(
          random,
          [...nodes, ...clients].filter((each) => each !== one),
        );
        if (other === undefined) return;
        this.#cut(one, other, lastsUs);
        if (random.below(2) === 0) this.#cut(other, one, lastsUs);
        return;
      }
      case 4:
        // The minority and the others.
        for (const other of nodes) {
          if (other === one) continue;
          this.#cut(one, other, lastsUs);
          this.#cut(other, one, lastsUs);
        }
        return;
      default:
        if (clients.length === 0 || this.#vanished++ >= MOST_VANISHED) return;
        this.#victims.vanish(pick(random, clients));
    }
  }

  #slow(id: number, lastsUs: number): void {
    this.#fabric.slow(id, { minUs: 0, maxUs: 2_000 });
    this.#until(lastsUs, () => this.#fabric.slow(id, undefined));
  }

  #stop(id: number, lastsUs: number): void {
    if (this.#fabric.machine(id).isStopped) return;
    this.#fabric.stop(id);
    this.#until(lastsUs, () => this.#fabric.resume(id));
  }

  #crash(id: number, lastsUs: number): void {
    if (this.#down.has(id)) return;
    this.#down.add(id);
    this.#victims.crash(id);
    this.#until(lastsUs, () => {
      this.#down.delete(id);
      this.#victims.comeBack(id);
    });
  }

  #cut(from: number, to: number, lastsUs: number): void {
    const fault = this.#fabric.partition(from, to);
    this.#until(lastsUs, () => this.#fabric.removeFault(fault));
  }

  #until(lastsUs: number, undo: () => void): void {
    const heal = (): void => {
      if (!this.#heal.delete(heal)) return;
      undo();
    };
    this.#heal.add(heal);
    this.#fabric.at(this.#fabric.nowUs + lastsUs, heal);
  }
}

function pick<T>(random: Random, from: readonly T[]): T {
  return from[random.below(from.length)];
}
