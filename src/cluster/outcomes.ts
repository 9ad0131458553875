/**
 * Exactly once. A client numbers its transactions; the node that coordinates one remembers how it
 * ended until the client says that it has heard. A client whose reply was lost asks again under the
 * same number and gets the first outcome, or waits with the first attempt for it.
 *
 * This is kept in memory. A node that was restarted has forgotten it: it has another *instance*, which
 * clients name in their requests, and then nobody knows the outcome and the client is told so.
 */

import { SituError } from "../runtime/errors.ts";
import { MAX_OUTCOMES, MAX_REMEMBERED_CLIENTS, REMEMBERED_CLIENT_MS } from "../runtime/limits.ts";

/** What is remembered for one client. */
interface ClientOutcomes<T> {
  /** Outcomes of numbers below this one have been heard. */
  low: number;
  lastMs: number;
  readonly known: Map<number, Attempt<T>>;
}

/** A transaction under one number: its outcome, or those who wait for it. */
export class Attempt<T> {
  outcome: T | undefined;
  #waiting: ((outcome: T) => void)[] = [];

  /** Calls `told` with the outcome, now or later. */
  hear(told: (outcome: T) => void): void {
    if (this.outcome !== undefined) told(this.outcome);
    else this.#waiting.push(told);
  }

  end(outcome: T): void {
    this.outcome = outcome;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const told of waiting) told(outcome);
  }
}

export class Outcomes<T> {
  readonly #clients = new Map<string, ClientOutcomes<T>>();

  /**
   * The attempt under this number, and whether it is new: then the caller must make it. `low` says
   * what the client has heard.
   */
  attempt(
    client: string,
    number: number,
    low: number,
    nowMs: number,
  ): { attempt: Attempt<T>; isNew: boolean } {
    const found = this.#of(client, nowMs);
    if (low > found.low) {
      found.low = low;
      for (const each of found.known.keys()) {
        if (each >= low) break;
        found.known.delete(each);
      }
    }
    if (number < found.low) {
      throw new SituError(
        "SITU_PROTOCOL",
        `a client asks again for transaction ${number}, after it has heard its outcome`,
      );
    }
    const known = found.known.get(number);
    if (known !== undefined) return { attempt: known, isNew: false };
    if (found.known.size >= MAX_OUTCOMES) {
      throw new SituError("SITU_OVERLOADED", `${MAX_OUTCOMES} outcomes wait for one client`);
    }
    const attempt = new Attempt<T>();
    found.known.set(number, attempt);
    return { attempt, isNew: true };
  }

  get clients(): number {
    return this.#clients.size;
  }

  #of(id: string, nowMs: number): ClientOutcomes<T> {
    let found = this.#clients.get(id);
    if (found === undefined) {
      if (this.#clients.size >= MAX_REMEMBERED_CLIENTS) this.#forgetIdle(nowMs);
      found = { low: 0, lastMs: nowMs, known: new Map() };
      this.#clients.set(id, found);
    }
    found.lastMs = nowMs;
    return found;
  }

  /** Makes room: clients that have not been heard of for long will not ask again. */
  #forgetIdle(nowMs: number): void {
    for (const [id, { lastMs, known }] of this.#clients) {
      const isUnderWay = [...known.values()].some(({ outcome }) => outcome === undefined);
      if (!isUnderWay && nowMs - lastMs > REMEMBERED_CLIENT_MS) this.#clients.delete(id);
    }
    if (this.#clients.size < MAX_REMEMBERED_CLIENTS) return;
    throw new SituError(
      "SITU_OVERLOADED",
      `${MAX_REMEMBERED_CLIENTS} clients are known here: close some`,
    );
  }
}
