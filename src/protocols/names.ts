/**
 * The names of transactions, and what makes their messages idempotent. A name is the coordinator's
 * number and its sequence, which never comes twice: its upper part is the number of the node's life, kept in
 * the node's own store and raised at each start (tables/served/lives.ts). A participant remembers how far each
 * transaction has come while it is under way, and *that* it is over from then on, so that a late
 * duplicate of an earlier message does not begin it anew. Coordinators say with every message below
 * which sequence all of theirs are over: what lies below need not be remembered.
 */

import type { Incoming, NodeId } from "../fabric/fabric.ts";
import type { Reader, Writer } from "../fabric/wire.ts";
import { assert } from "../runtime/assert.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_NODES, MAX_SEQUENCE_SPAN } from "../runtime/limits.ts";
import { KIND_NAMES } from "./kinds.ts";
import type { Thread } from "./places.ts";

/** The threads of a node that coordinate: its NIC worker and its host. */
export const COORDINATORS_PER_NODE = 2;

/** A life has so many sequences; 2^20 lives fit a safe integer. */
export const SEQUENCES_PER_LIFE = 2 ** 33;

/** All sequences of earlier lives lie below it. */
export function firstSequenceOf(life: number): number {
  const first = life * SEQUENCES_PER_LIFE;
  assert(Number.isSafeInteger(first + SEQUENCES_PER_LIFE - 1), "a node has at most 2^20 lives");
  return first;
}

function lifeOf(sequence: number): number {
  return Math.floor(sequence / SEQUENCES_PER_LIFE);
}

/** Which transaction, and nothing more. */
export interface TransactionId {
  readonly coordinator: number;
  readonly sequence: number;
}

export class Name {
  coordinator = 0;
  sequence = 0;
  /** All sequences of the coordinator below this one are over. */
  low = 0;

  encode(out: Writer): void {
    out.word(this.coordinator);
    out.wide(this.sequence);
    out.wide(this.low);
  }

  decode(body: Reader): this {
    this.coordinator = body.count(MAX_NODES * COORDINATORS_PER_NODE);
    this.sequence = body.wide();
    this.low = body.wide();
    if (!Number.isSafeInteger(this.sequence) || !Number.isSafeInteger(this.low)) {
      throw new SituError("SITU_PROTOCOL", "a transaction's name makes no sense");
    }
    return this;
  }
}

/**
 * Fails unless the name that comes next was sent by its coordinator's node. Clients have no names: one
 * that vanished would leave its locks, and nobody else may say what a coordinator has ended.
 */
export function requireCoordinator({ from, kind, body }: Incoming): void {
  const coordinator = body.left > 0 ? body.views.i32[body.at] : -1;
  if (from.node >= 0 && Math.floor(coordinator / COORDINATORS_PER_NODE) === from.node) return;
  throw new SituError("SITU_PERMISSION", `only coordinators send ${KIND_NAMES[kind]}`);
}

/** The number of a coordinator: a thread of a node. */
export function coordinatorNumber(node: NodeId, thread: Thread): number {
  return node * COORDINATORS_PER_NODE + (thread === "nic" ? 0 : 1);
}

export const COMMITTED = "committed";
export const ABORTED = "aborted";
/** How a transaction has ended at a node. */
export type Ended = typeof COMMITTED | typeof ABORTED;

/** Of one coordinator: what is under way, and how others have ended, as far as it must be remembered. */
interface Known<State> {
  low: number;
  readonly states: Map<number, State>;
  readonly ended: Map<number, Ended>;
  /** Of earlier lives of the coordinator, where a recovery may ask for it. */
  readonly earlier: Map<number, Ended>;
  /** For each of these lives, by its number: below which sequence all of it was over. */
  readonly lows: Map<number, number>;
}

/** Earlier lives of a coordinator whose `low` is remembered: what is in doubt is of the last one, or nearly so. */
const REMEMBERED_LIVES = 64;

/**
 * What one participant or backup knows of the transactions of all coordinators. A `low` lets it forget what
 * has ended, and nothing else: what is under way here stays until somebody says how it ended. Coordinators
 * begin nothing far above their low (`Sequences.isFull`), so there is a limit to what is remembered.
 */
export class UnderWay<State> {
  /**
   * Whether what an earlier life of a coordinator has left is recovered. A `low` then speaks of its own life
   * only: how those of earlier ones have ended, their recovery may still have to know.
   */
  remembersLives = false;
  readonly #coordinators = new Map<number, Known<State>>();

  /** The state of a transaction that is under way. Takes note of the coordinator's `low`. */
  find(name: Name): State | undefined {
    return this.#of(name).states.get(name.sequence);
  }

  isOver({ coordinator, sequence }: Name): boolean {
    const found = this.#coordinators.get(coordinator);
    if (found === undefined) return false;
    if (found.ended.has(sequence)) return true;
    if (sequence >= found.low || found.states.has(sequence)) return false;
    const life = lifeOf(sequence);
    if (!this.remembersLives || life === lifeOf(found.low)) return true;
    // What an earlier life has left in doubt may come here by a recovery, though its next one speaks already.
    return found.earlier.has(sequence) || sequence < (found.lows.get(life) ?? 0);
  }

  /** How it has ended here, if that is remembered. */
  endOf({ coordinator, sequence }: Name): Ended | undefined {
    const found = this.#coordinators.get(coordinator);
    return found?.ended.get(sequence) ?? found?.earlier.get(sequence);
  }

  begin(name: Name, state: State): void {
    this.#of(name).states.set(name.sequence, state);
  }

  end(name: Name, how: Ended): void {
    const { low, states, ended, earlier } = this.#of(name);
    states.delete(name.sequence);
    if (name.sequence >= low) ended.set(name.sequence, how);
    else if (this.remembersLives && lifeOf(name.sequence) < lifeOf(low)) {
      earlier.set(name.sequence, how);
    }
  }

  /** It is not under way here any more, and how it ended is not known. */
  drop({ coordinator, sequence }: Name): void {
    this.#coordinators.get(coordinator)?.states.delete(sequence);
  }

  /** How it ended here is to be forgotten. */
  forgetEnd({ coordinator, sequence }: Name): void {
    const found = this.#coordinators.get(coordinator);
    found?.ended.delete(sequence);
    found?.earlier.delete(sequence);
  }

  /** Those that have ended so, as far as it is remembered. */
  *ended(wanted: Ended): IterableIterator<{ coordinator: number; sequence: number }> {
    for (const [coordinator, { ended }] of this.#coordinators) {
      for (const [sequence, how] of ended) if (how === wanted) yield { coordinator, sequence };
    }
  }

  /** Of a coordinator, in whichever life: sequences that have ended so, as far as it is remembered. */
  *endedOf(number: number, wanted: Ended): IterableIterator<number> {
    const found = this.#coordinators.get(number);
    if (found === undefined) return;
    for (const ended of [found.ended, found.earlier]) {
      for (const [sequence, how] of ended) if (how === wanted) yield sequence;
    }
  }

  /** Transactions under way. */
  *states(): IterableIterator<State> {
    for (const { states } of this.#coordinators.values()) yield* states.values();
  }

  /** Those of the name's coordinator below its sequence. */
  below({ coordinator, sequence }: Name): [number, State][] {
    const states = this.#coordinators.get(coordinator)?.states ?? [];
    return [...states].filter(([each]) => each < sequence);
  }

  /** How many there are of a coordinator. */
  count(coordinator: number): number {
    return this.#coordinators.get(coordinator)?.states.size ?? 0;
  }

  /** Of all coordinators: nothing is under way any more. */
  forget(): void {
    this.#coordinators.clear();
  }

  #of({ coordinator, low }: Name): Known<State> {
    let found = this.#coordinators.get(coordinator);
    if (found === undefined) {
      found = {
        low: 0,
        states: new Map(),
        ended: new Map(),
        earlier: new Map(),
        lows: new Map(),
      };
      this.#coordinators.set(coordinator, found);
    }
    if (low > found.low) {
      if (this.remembersLives && lifeOf(low) > lifeOf(found.low)) keepEarlier(found, low);
      found.low = low;
      // In the order in which they came, which is nearly that of their sequences.
      for (const sequence of found.ended.keys()) {
        if (sequence >= low) break;
        found.ended.delete(sequence);
      }
    }
    return found;
  }
}

/** A coordinator is in a new life. */
function keepEarlier({ ended, earlier, lows, low: last }: Known<unknown>, low: number): void {
  lows.set(lifeOf(last), last);
  for (const life of lows.keys()) {
    if (lows.size <= REMEMBERED_LIVES) break;
    lows.delete(life);
  }
  for (const [sequence, how] of ended) {
    if (lifeOf(sequence) < lifeOf(low)) earlier.set(sequence, how);
  }
  for (const sequence of earlier.keys()) {
    if (earlier.size <= MAX_SEQUENCE_SPAN) break;
    earlier.delete(sequence);
  }
}

/** The sequences of one coordinator. */
export class Sequences {
  readonly coordinator: number;
  readonly #newLife: () => number;
  #next: number;
  #end: number;
  /** Those that are not over, in their order. */
  readonly #open = new Set<number>();

  /** `newLife` gives a life that the coordinator has not had, should this one's sequences run out. */
  constructor(coordinator: number, life: number, newLife: () => number) {
    this.coordinator = coordinator;
    this.#newLife = newLife;
    this.#next = firstSequenceOf(life);
    this.#end = this.#next + SEQUENCES_PER_LIFE;
  }

  begin(): Name {
    if (this.#next === this.#end) {
      this.#next = firstSequenceOf(this.#newLife());
      this.#end = this.#next + SEQUENCES_PER_LIFE;
    }
    const name = new Name();
    name.coordinator = this.coordinator;
    name.sequence = this.#next++;
    this.#open.add(name.sequence);
    name.low = this.low;
    return name;
  }

  /** Leaves some out, of this life. */
  skip(count: number): void {
    this.#next += count;
  }

  get low(): number {
    for (const sequence of this.#open) return sequence;
    return this.#next;
  }

  /** No message about it will be sent any more. */
  end(sequence: number): void {
    this.#open.delete(sequence);
  }

  /** Nor about any other that was begun. */
  endAll(): void {
    this.#open.clear();
  }

  get open(): number {
    return this.#open.size;
  }

  /** Whether nothing must begin before the oldest one is over: others remember all that came after it. */
  get isFull(): boolean {
    const { low } = this;
    return this.#next - low >= MAX_SEQUENCE_SPAN && low >= this.#end - SEQUENCES_PER_LIFE;
  }
}
