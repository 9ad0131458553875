/**
 * Exactly once. A client opens a session at a node and numbers what it has done there; the node
 * remembers how each ended until the client has heard. A client whose reply was lost asks again under the
 * same number and gets the first outcome, or waits with the first attempt for it.
 *
 * A number is a slot of the session and a sequence in it: number = sequence * SESSION_SLOTS + slot. A
 * client uses a slot again when it has heard the last outcome there, or will not ask for it any more. So a
 * node keeps one outcome for each slot, a slow one keeps nobody waiting, and a session takes as much
 * memory as its client has had requests under way at once.
 *
 * Sessions are opened explicitly, before the first number, so a number that a session does not know was
 * not done in it. A session that is not known was forgotten, or was of an earlier life of the node: what
 * was done in it nobody here knows, and the client is told so. Nothing is ever done twice.
 */

import { SituError } from "../runtime/errors.ts";
import {
  MAX_KEPT_OUTCOMES,
  MAX_KEPT_RESULT_BYTES,
  MAX_SESSIONS,
  SESSION_IDLE_MS,
  SESSION_SLOTS,
} from "../runtime/limits.ts";

interface SessionOutcomes<T> {
  lastMs: number;
  /** By slot. */
  readonly attempts: (Attempt<T> | undefined)[];
  used: number;
}

/** A transaction under one number: its outcome, or those who wait for it. */
export class Attempt<T> {
  readonly number: number;
  outcome: T | undefined;
  /** What the outcome takes, if it was said to `keep`. */
  bytes = 0;
  #waiting: ((outcome: T) => void)[] = [];

  constructor(number: number) {
    this.number = number;
  }

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
  readonly #sessions = new Map<string, SessionOutcomes<T>>();
  /** Slots in use, of all sessions. */
  #kept = 0;
  /** Results that take memory, the oldest first. */
  readonly #large = new Set<Attempt<T>>();
  #bytes = 0;

  /** Opens a session, unless it is open. */
  open(session: string, nowMs: number): void {
    const found = this.#sessions.get(session);
    if (found !== undefined) {
      found.lastMs = nowMs;
      return;
    }
    if (this.#sessions.size >= MAX_SESSIONS) this.#forgetIdle(nowMs);
    if (this.#sessions.size >= MAX_SESSIONS) {
      throw new SituError("SITU_OVERLOADED", `${MAX_SESSIONS} clients are known here: close some`);
    }
    this.#sessions.set(session, { lastMs: nowMs, attempts: [], used: 0 });
  }

  /**
   * The attempt under this number, and whether it is new: then the caller must make it. Where `isFull`,
   * none is begun.
   */
  attempt(
    session: string,
    number: number,
    nowMs: number,
    isFull = false,
  ): { attempt: Attempt<T>; isNew: boolean } {
    const found = this.#sessions.get(session);
    if (found === undefined) throw forgotten();
    found.lastMs = nowMs;
    const slot = number % SESSION_SLOTS;
    const last = found.attempts[slot];
    if (last !== undefined && last.number >= number) {
      if (last.number === number) return { attempt: last, isNew: false };
      throw new SituError(
        "SITU_PROTOCOL",
        `a client asks again for transaction ${number}, after it has heard its outcome`,
      );
    }
    if (isFull) throw new SituError("SITU_OVERLOADED", "the node is busy: nothing was begun");
    if (last === undefined) this.#takeSlot(found, nowMs);
    else this.#drop(last);
    const attempt = new Attempt<T>(number);
    found.attempts[slot] = attempt;
    return { attempt, isNew: true };
  }

  /** Says what an outcome takes. The oldest give way to new ones: `gone` is told in their place. */
  keep(attempt: Attempt<T>, bytes: number, gone: T): void {
    attempt.bytes = bytes;
    this.#bytes += bytes;
    this.#large.add(attempt);
    for (const oldest of this.#large) {
      if (this.#bytes <= MAX_KEPT_RESULT_BYTES) break;
      this.#drop(oldest);
      oldest.outcome = gone;
    }
  }

  /**
   * For who completes what another node has begun: how a number of a session ended, which its client
   * may ask for here. Of two that settle one number the last counts: a transaction that was aborted
   * may have been tried again, and committed.
   */
  settle(session: string, number: number, outcome: T, nowMs: number): void {
    this.open(session, nowMs);
    const found = this.#sessions.get(session)!;
    const last = found.attempts[number % SESSION_SLOTS];
    if (last !== undefined && last.number > number) return;
    if (last?.number === number) {
      last.end(outcome);
      return;
    }
    this.attempt(session, number, nowMs).attempt.end(outcome);
  }

  /** How a number ended, as far as it is known here. */
  known(session: string, number: number): T | undefined {
    const found = this.#sessions.get(session)?.attempts[number % SESSION_SLOTS];
    return found?.number === number ? found.outcome : undefined;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  get keptBytes(): number {
    return this.#bytes;
  }

  #takeSlot(session: SessionOutcomes<T>, nowMs: number): void {
    if (this.#kept >= MAX_KEPT_OUTCOMES) this.#forgetIdle(nowMs);
    if (this.#kept >= MAX_KEPT_OUTCOMES) {
      throw new SituError("SITU_OVERLOADED", `${MAX_KEPT_OUTCOMES} outcomes wait for clients here`);
    }
    session.used++;
    this.#kept++;
  }

  #drop(attempt: Attempt<T>): void {
    if (!this.#large.delete(attempt)) return;
    this.#bytes -= attempt.bytes;
    attempt.bytes = 0;
  }

  /** Makes room. A client that comes back later, and is still waiting for an outcome, is told so. */
  #forgetIdle(nowMs: number): void {
    for (const [name, { lastMs, attempts, used }] of this.#sessions) {
      if (nowMs - lastMs <= SESSION_IDLE_MS) continue;
      if (attempts.some((attempt) => attempt !== undefined && attempt.outcome === undefined)) {
        continue;
      }
      for (const attempt of attempts) if (attempt !== undefined) this.#drop(attempt);
      this.#kept -= used;
      this.#sessions.delete(name);
    }
  }
}

function forgotten(): SituError {
  return new SituError(
    "SITU_UNKNOWN_OUTCOME",
    "the node does not know this session: it was restarted, or the client was silent for long. What the " +
      "session had begun may or may not have been committed",
  );
}
