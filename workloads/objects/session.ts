/** A stream of transactions on objects: it walks through a plan, and counts what was counted. */

import { DONE, type Outcome, type Result, type Session, type Tally } from "../workload.ts";
import type { Plan } from "./plan.ts";
import type { ObjectStore } from "./store.ts";
import { MAX_STAMP, type Texts } from "./texts.ts";

/** Lanes begin at other stamps, so that a row tells who wrote it, for a while. */
const STAMPS_PER_LANE = 2 ** 22;

export class ObjectSession implements Session {
  drawn = 0;
  readonly #store: ObjectStore;
  readonly #plan: Plan;
  readonly #texts: Texts;
  /** Lists of keys by their length, used again where a store is done with them when it returns. */
  readonly #lists: number[][] = [];
  #cursor = 0;
  #stamp: number;
  #transactions = 0;
  #counted = 0;
  #wrong = 0;

  constructor(store: ObjectStore, plan: Plan, texts: Texts, lane: number) {
    this.#store = store;
    this.#plan = plan;
    this.#texts = texts;
    this.#stamp = (lane * STAMPS_PER_LANE) % MAX_STAMP;
    for (let length = 0; length <= plan.stride; length++) this.#lists.push(listOf(length));
  }

  next(): Result<Outcome> {
    const plan = this.#plan;
    const at = this.#cursor;
    this.#cursor = (at + 1) & (plan.transactions - 1);
    this.drawn = plan.kinds[at];
    const reads = plan.reads[at];
    const writes = plan.writes[at];
    const length = Math.max(reads, writes);
    const keys = this.#lists[length];
    const first = at * plan.stride;
    for (let index = 0; index < length; index++) keys[index] = plan.keys[first + index];
    this.#stamp = this.#stamp === MAX_STAMP ? 1 : this.#stamp + 1;
    const text = this.#texts.written(this.#stamp);
    const sum = this.#store.access(keys, reads, writes, this.#stamp, text);
    if (typeof sum === "number") return this.#ended(reads, writes, sum);
    // The store still needs its list.
    this.#lists[length] = listOf(length);
    return sum.then((it) => this.#ended(reads, writes, it));
  }

  tally(): Tally {
    return { transactions: this.#transactions, counted: this.#counted, wrong: this.#wrong };
  }

  /** What was read has texts of the full length, and counts that are not negative. */
  #ended(reads: number, writes: number, sum: number): Outcome {
    this.#transactions++;
    this.#counted += Math.min(reads, writes);
    if (!(sum >= reads * this.#texts.length)) this.#wrong++;
    return DONE;
  }
}

function listOf(length: number): number[] {
  return Array.from({ length }, () => 0);
}
