/**
 * What a node remembers of transactions that were committed and of which no record is left: for whom. A client
 * whose coordinator has died asks for it (outcome.ts).
 *
 * A client uses a slot of its session again when it has heard the outcome there, or will never ask for it
 * (outcomes.ts). So the last number of each slot is enough, and nothing is ever too old for that. There is a
 * limit to it all the same: beyond, the session that was silent for longest is forgotten, and the node says for how
 * long it has remembered everything. One who asks for something older is told nothing by its silence.
 */

import type { Clock } from "../fabric/fabric.ts";
import { type Origin, OriginReader, originsOf } from "../protocols/origin.ts";
import { MAX_KEPT_OUTCOMES, SESSION_SLOTS } from "../runtime/limits.ts";
import type { View } from "./view.ts";

/** Sessions are put in order again after so long: not with each of their transactions. */
const ORDER_MS = 1_000;

interface SessionNumbers {
  lastMs: number;
  orderedMs: number;
  /** By slot. */
  readonly numbers: Map<number, number>;
}

export class CommittedOrigins {
  readonly #clock: Clock;
  readonly #limit: number;
  /** The one that was silent for longest is the first, or nearly so. */
  readonly #sessions = new Map<string, SessionNumbers>();
  readonly #reader = new OriginReader();
  #count = 0;
  #completeSinceMs: number;
  /** Partitions that this node has had a copy of, and then had none, in this life. */
  readonly #lost = new Set<number>();
  /** Those of them that it has got back, and when. */
  readonly #regained = new Map<number, number>();

  constructor(clock: Clock, limit = MAX_KEPT_OUTCOMES) {
    this.#clock = clock;
    this.#limit = limit;
    this.#completeSinceMs = clock.nowMs();
  }

  /** For how long all that was committed here is remembered. */
  get completeMs(): number {
    return this.#clock.nowMs() - this.#completeSinceMs;
  }

  /** The transaction of a record is committed. */
  note(record: Int32Array): void {
    const origin = this.#reader.of(record);
    if (origin !== undefined) for (const each of originsOf(origin)) this.add(each);
  }

  add({ session, number }: Origin): void {
    const nowMs = this.#clock.nowMs();
    let found = this.#sessions.get(session);
    if (found === undefined) {
      found = { lastMs: nowMs, orderedMs: nowMs, numbers: new Map() };
      this.#sessions.set(session, found);
    } else if (nowMs - found.orderedMs > ORDER_MS) {
      this.#sessions.delete(session);
      this.#sessions.set(session, found);
      found.orderedMs = nowMs;
    }
    found.lastMs = nowMs;
    const slot = number % SESSION_SLOTS;
    const last = found.numbers.get(slot);
    if (last === undefined) this.#count++;
    // Copies are applied in any order.
    if (last === undefined || last < number) found.numbers.set(slot, number);
    if (this.#count > this.#limit) this.#forgetOldest();
  }

  has({ session, number }: Origin): boolean {
    return this.#sessions.get(session)?.numbers.get(number % SESSION_SLOTS) === number;
  }

  /** Partitions of which it knows less, and for how long it has remembered everything of each. */
  *regained(): Generator<readonly [partition: number, completeMs: number]> {
    const nowMs = this.#clock.nowMs();
    for (const [partition, sinceMs] of this.#regained) yield [partition, nowMs - sinceMs];
  }

  /**
   * What was committed to a partition while this node had no copy of it, it has not seen. That matters for a
   * partition that it gets back: one who asks looks only at nodes that had a copy when the request was sent, and
   * cannot tell that it was gone meanwhile. A first copy in this life is none that anyone has counted on.
   */
  adopted(before: View, now: View): void {
    const { self } = now;
    for (let partition = 0; partition < now.placement.partitions; partition++) {
      const had = before.placement.copiesOf(partition).includes(self);
      const has = now.placement.copiesOf(partition).includes(self);
      if (had && !has) this.#lost.add(partition);
      if (has && !had && this.#lost.has(partition)) {
        this.#regained.set(partition, this.#clock.nowMs());
      }
    }
  }

  #forgetOldest(): void {
    for (const [name, { lastMs, numbers }] of this.#sessions) {
      this.#sessions.delete(name);
      this.#count -= numbers.size;
      this.#completeSinceMs = Math.max(this.#completeSinceMs, lastMs);
      return;
    }
  }
}
