/**
 * A change that the manager of a cluster is asked for, until it is seen to be done. The manager may die meanwhile, and
 * what it was asked for be forgotten: whatever is not seen in the cluster's status is asked for again.
 *
 * So something may be asked for that has just been done, or whose first answer was lost: a node that has left cannot be
 * removed. A refusal therefore counts only if nobody can have granted the same before, or if it still is not seen
 * to be done after a while; unless it seemed done before anybody was asked, as with a node that never was there.
 */

import { nowMs, sleep } from "../../runtime/clock.ts";

/** The pause between two looks. */
const LOOK_MS = 500;
/** How long a cluster may be without a manager that answers, and its nodes without the newest configuration. */
const MANAGER_PATIENCE_MS = 10_000;

/** How far it is. */
export interface Seen {
  /** Partitions that are still to move; 0 and done are two things. */
  readonly left: number;
  readonly isDone: boolean;
  /** Whether the manager knows of it. */
  readonly isUnderWay: boolean;
}

export interface WishedOptions {
  /** Resolves when the manager has accepted it. */
  readonly ask: () => Promise<void>;
  /** Nothing if nobody answers. */
  readonly look: () => Promise<Seen | undefined>;
  readonly clock?: { nowMs(): number; sleep(ms: number): Promise<unknown> };
}

export class WishedChange {
  readonly #options: WishedOptions;
  readonly #clock: NonNullable<WishedOptions["clock"]>;
  /** Whether it was seen not to be done before anybody was asked. */
  #wasOpen = false;
  #isKnown = false;
  /** Whether a manager may have granted it. */
  #isSent = false;
  #refused: { readonly error: unknown; readonly untilMs: number } | undefined;

  constructor(options: WishedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? { nowMs, sleep };
  }

  async begin(): Promise<void> {
    this.#wasOpen = (await this.#options.look())?.isDone === false;
  }

  /** Asks for it if nobody seems to know, and looks how far it is. */
  async advance(): Promise<Seen | undefined> {
    if (!this.#isKnown && this.#refused === undefined) await this.#asked();
    const seen = await this.#options.look();
    if (seen?.isDone === true) return seen;
    if (this.#refused !== undefined && this.#clock.nowMs() >= this.#refused.untilMs) {
      throw this.#refused.error;
    }
    // A manager that has died may have forgotten it.
    this.#isKnown = seen === undefined || seen.isUnderWay;
    return seen;
  }

  async pause(): Promise<void> {
    await this.#clock.sleep(LOOK_MS);
  }

  /** While another manager is found, this is asked again. */
  async #asked(): Promise<void> {
    const untilMs = this.#clock.nowMs() + MANAGER_PATIENCE_MS;
    for (;;) {
      try {
        await this.#options.ask();
        this.#isSent = true;
        return;
      } catch (error) {
        if (!isPassing(error)) return this.#isRefused(error);
        if (this.#clock.nowMs() >= untilMs) throw error;
        this.#isSent = true;
        await this.pause();
      }
    }
  }

  #isRefused(error: unknown): void {
    if (!this.#isSent || !this.#wasOpen) throw error;
    this.#refused = { error, untilMs: this.#clock.nowMs() + MANAGER_PATIENCE_MS };
  }
}

/** Nobody, or the wrong one, has answered: the cluster may be about to change. */
export function isPassing(error: unknown): boolean {
  const { code = "" } = error as { code?: string };
  return ["SITU_UNREACHABLE", "SITU_LOST", "SITU_TIMEOUT", "SITU_OVERLOADED"].includes(code);
}
