/**
 * Taking a snapshot (docs/DESIGN.md §5): register S = the epoch, advance the epoch, wait until no slot is
 * committing at S or below. What is then in place with an epoch of at most S is a consistent prefix
 * of the serial order, and contains everything that was committed before the call.
 *
 * The epoch is read again after registering, until both agree: then every commit that announces
 * a later epoch does so after the registration, sees it, and keeps what it overwrites.
 */

import { lockWord, PREPARED } from "../../memory/object.ts";
import { machineMs, wallClockMs } from "../../runtime/clock.ts";
import { SituError, TimeoutError } from "../../runtime/errors.ts";
import type { Epoch } from "../epoch.ts";
import type { Executor } from "../executor.ts";
import {
  COMMITTING,
  epochsBehind,
  phaseOf,
  SNAPSHOTS,
  SNAPSHOTS_RELEASED,
  STATUS,
  slotsInUse,
} from "../slot.ts";
import { limitHigh, limitLow } from "../tid.ts";
import type { Registry } from "./registry.ts";

/** How often a snapshot looks at the clock: reading it costs as much as a read. */
const CLOCK_MASK = 0x3f;

/** A snapshot as another executor of the store can read through it. */
export interface SharedSnapshot {
  readonly index: number;
  readonly state: number;
  readonly epoch: number;
  readonly lifeMs: number;
  readonly takenAtMs: number;
}

export class Snapshot {
  /** Whether it is part of a snapshot of a cluster, which has waited for what was prepared. */
  readonly isOfCluster: boolean;
  readonly epoch: number;
  readonly limitHigh: number;
  readonly limitLow: number;
  readonly #executor: Executor;
  readonly #registry: Registry;
  readonly #index: number;
  readonly #state: number;
  readonly #lifeMs: number;
  readonly #takenMs = machineMs();
  /** On the wall clock: rows that had expired by then are not there. */
  readonly takenAtMs: number;
  #checks = 0;

  constructor(
    executor: Executor,
    index: number,
    state: number,
    epoch: number,
    lifeMs: number,
    takenAtMs = wallClockMs(),
    isOfCluster = false,
  ) {
    this.takenAtMs = takenAtMs;
    this.isOfCluster = isOfCluster;
    this.#executor = executor;
    this.#registry = executor.versions.registry;
    this.#index = index;
    this.#state = state;
    this.#lifeMs = lifeMs;
    this.epoch = epoch;
    this.limitHigh = limitHigh(epoch);
    this.limitLow = limitLow(epoch);
  }

  /** For threads that read for the owner. They do not release it. */
  share(): SharedSnapshot {
    const { epoch, takenAtMs } = this;
    return { index: this.#index, state: this.#state, epoch, lifeMs: this.#lifeMs, takenAtMs };
  }

  /** The snapshot of another executor, which holds it until this one has read. */
  static joined(executor: Executor, shared: SharedSnapshot): Snapshot {
    const { index, state, epoch, lifeMs, takenAtMs } = shared;
    return new Snapshot(executor, index, state, epoch, lifeMs, takenAtMs);
  }

  /** Registers a snapshot of now, to be released after `lifeMs`. */
  static take(executor: Executor, lifeMs: number, timeoutMs: number): Snapshot {
    const snapshot = Snapshot.begin(executor, lifeMs);
    try {
      awaitCommits(executor, snapshot.epoch, timeoutMs);
    } catch (error) {
      snapshot.release();
      throw error;
    }
    return snapshot;
  }

  /**
   * The first half of `take`. The snapshot may be read from once `committingSlot` has found nobody,
   * and must be released, whatever becomes of it.
   */
  static begin(executor: Executor, lifeMs: number): Snapshot {
    const snapshot = register(executor, lifeMs);
    executor.epochs.advance(snapshot.epoch);
    executor.counters[executor.counterBase + SNAPSHOTS]++;
    return snapshot;
  }

  /**
   * Registers a snapshot of an epoch that has not ended, for a snapshot of a cluster. It may be read from once the
   * epoch is past, `committingSlot` has found nobody, and nothing that was prepared up to it is left. Undefined if
   * the epoch has ended.
   */
  static ahead(executor: Executor, epoch: Epoch, lifeMs: number): Snapshot | undefined {
    const { registry } = executor.versions;
    for (;;) {
      const index = registry.claim(executor.slot, lifeMs);
      const state = registry.publish(index, registry.claimed, limitHigh(epoch), limitLow(epoch));
      if (state === 0) continue;
      // After it is published: whoever commits in a later epoch then keeps what it overwrites.
      if (executor.epochs.current() > epoch) {
        registry.release(index, state);
        return undefined;
      }
      executor.counters[executor.counterBase + SNAPSHOTS]++;
      return new Snapshot(executor, index, state, epoch, lifeMs, wallClockMs(), true);
    }
  }

  /** Whether it is older than it may become. */
  get isExpired(): boolean {
    return machineMs() - this.#takenMs >= this.#lifeMs;
  }

  /** After a read: what was read counts only if the snapshot was still registered then. */
  check(): void {
    if ((++this.#checks & CLOCK_MASK) === 0) this.#checkAge();
    if (!this.isRegistered) throw this.tooOld();
  }

  #checkAge(): void {
    if (this.#registry.expiresMs(this.#index) >= machineMs() || !this.release()) return;
    this.#executor.counters[this.#executor.counterBase + SNAPSHOTS_RELEASED]++;
  }

  get isRegistered(): boolean {
    const { limitHigh, limitLow } = this;
    return this.#registry.isRegistered(this.#index, this.#state, limitHigh, limitLow);
  }

  /** Says whether it was still registered. */
  release(): boolean {
    return this.isRegistered && this.#registry.release(this.#index, this.#state);
  }

  tooOld(): SituError {
    const why =
      machineMs() - this.#takenMs >= this.#lifeMs
        ? `it was older than the ${this.#lifeMs} ms of maxSnapshotMs`
        : `there was no room for the versions that it needed (versionBytes, memoryBytes), or the ` +
          `process that was making room did not move`;
    return new SituError(
      "SITU_SNAPSHOT_TOO_OLD",
      `the snapshot was released: ${why}. Take a new one`,
    );
  }
}

/** Registers the current epoch. Whoever finds no room may release it at once: then another one. */
function register(executor: Executor, lifeMs: number): Snapshot {
  const { registry } = executor.versions;
  let index = -1;
  let state = 0;
  for (;;) {
    if (state === 0) {
      index = registry.claim(executor.slot, lifeMs);
      state = registry.claimed;
    }
    const epoch = executor.epochs.current();
    state = registry.publish(index, state, limitHigh(epoch), limitLow(epoch));
    if (state !== 0 && executor.epochs.current() === epoch) {
      return new Snapshot(executor, index, state, epoch, lifeMs);
    }
  }
}

/** Waits until nobody is committing at this epoch or an earlier one. */
export function awaitCommits(executor: Executor, epoch: number, timeoutMs: number): void {
  const slot = committingSlot(executor, epoch, timeoutMs);
  if (slot >= 0) throw stillCommitting(executor, slot, timeoutMs);
}

/**
 * The same for one who can wait elsewhere afterwards: who is still committing after `timeoutMs`, or
 * -1. No commit that begins later announces this epoch, so it can be asked again, and ends.
 */
export function committingSlot(executor: Executor, epoch: number, timeoutMs: number): number {
  const { control } = executor.memory;
  const low = epoch | 0;
  executor.endOwnCommit();
  const slots = slotsInUse(control);
  for (let slot = 0; slot < slots; slot++) {
    const statusAt = control.slotAt(slot) + STATUS;
    let patience: ReturnType<Executor["newPatience"]> | undefined;
    for (let round = 0; ; round++) {
      const status = Atomics.load(control.i32, statusAt);
      if (phaseOf(status) < COMMITTING || epochsBehind(status, low) < 0) break;
      if (round < 64) continue;
      patience ??= executor.newPatience(timeoutMs);
      if (!patience.meet(lockWord(slot, PREPARED))) return slot;
    }
  }
  return -1;
}

export function stillCommitting(executor: Executor, slot: number, timeoutMs: number): TimeoutError {
  const holder = executor.holder(slot);
  return new TimeoutError(
    `gave up after ${timeoutMs} ms: process ${holder.pid} (thread ${holder.threadId}, slot ` +
      `${slot}) is committing and does not move; is it stopped?`,
    holder,
  );
}
