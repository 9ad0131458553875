/**
 * What goes wrong with frames on a simulated network. A fault is a rule: of which kind, how often,
 * within which bounds, on which links and when. Rules are judged one by one for each frame; each has
 * random numbers of its own (streams.ts).
 *
 *   delay      later than usual by so much
 *   reorder    held back until the next frame on the link has passed, and so long at most
 *   duplicate  a second copy, later by so much
 *   loss       never arrives. With probability 1 on the link from a to b: a one-way partition
 *
 * A slow or stopped node is a fault of a machine, not of a link: see SimulatedFabric.
 */

import type { Random } from "../../src/runtime/random.ts";
import { between, happens, streamOf } from "./streams.ts";

export interface Fault {
  readonly kind: "delay" | "reorder" | "duplicate" | "loss";
  readonly probability: number;
  /** Bounds of the time it costs, where it costs time: 0 and 1,000 µs if not given. */
  readonly minUs?: number;
  readonly maxUs?: number;
  /** Both, if not given. */
  readonly frames?: "requests" | "replies";
  /** The ends of the links; all, if not given. Nodes have their numbers, clients those below 0. */
  readonly from?: number;
  readonly to?: number;
  /** When: always, if not given. */
  readonly afterUs?: number;
  readonly untilUs?: number;
}

const DEFAULT_MAX_US = 1_000;

/** What becomes of one frame. The object is used again. */
export interface Verdict {
  isLost: boolean;
  delayUs: number;
  /** Frames that overtake it are waited for so long; 0: it is not held back. */
  heldUs: number;
  /** One for each copy: how much later it comes. */
  readonly copiesUs: number[];
}

export class Faults {
  readonly #seed: number;
  readonly #rules: { readonly fault: Fault; readonly random: Random }[] = [];
  readonly #counts = new Map<string, number>();
  readonly #verdict: Verdict = { isLost: false, delayUs: 0, heldUs: 0, copiesUs: [] };

  constructor(seed: number, faults: readonly Fault[]) {
    this.#seed = seed;
    for (const fault of faults) this.add(fault);
  }

  get isEmpty(): boolean {
    return this.#rules.length === 0;
  }

  add(fault: Fault): void {
    const count = this.#counts.get(fault.kind) ?? 0;
    this.#counts.set(fault.kind, count + 1);
    this.#rules.push({ fault, random: streamOf(this.#seed, `${fault.kind}-${count}`) });
  }

  /** By identity. */
  remove(fault: Fault): void {
    const index = this.#rules.findIndex((rule) => rule.fault === fault);
    if (index >= 0) this.#rules.splice(index, 1);
  }

  clear(): void {
    this.#rules.length = 0;
  }

  judge(from: number, to: number, isReply: boolean, nowUs: number): Verdict {
    const verdict = this.#verdict;
    verdict.isLost = false;
    verdict.delayUs = 0;
    verdict.heldUs = 0;
    verdict.copiesUs.length = 0;
    for (const { fault, random } of this.#rules) {
      if (!isAbout(fault, from, to, isReply, nowUs)) continue;
      if (!happens(random, fault.probability)) continue;
      const timeUs = between(random, fault.minUs ?? 0, fault.maxUs ?? DEFAULT_MAX_US);
      if (fault.kind === "loss") verdict.isLost = true;
      else if (fault.kind === "delay") verdict.delayUs += timeUs;
      else if (fault.kind === "duplicate") verdict.copiesUs.push(timeUs);
      else verdict.heldUs = Math.max(verdict.heldUs, timeUs);
    }
    return verdict;
  }
}

function isAbout(fault: Fault, from: number, to: number, isReply: boolean, now: number): boolean {
  if (fault.from !== undefined && fault.from !== from) return false;
  if (fault.to !== undefined && fault.to !== to) return false;
  if (fault.frames !== undefined && (fault.frames === "replies") !== isReply) return false;
  return now >= (fault.afterUs ?? 0) && now < (fault.untilUs ?? Number.POSITIVE_INFINITY);
}
