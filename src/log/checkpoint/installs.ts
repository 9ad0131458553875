/**
 * For one who copies objects as of their version while others commit: whether an object is being installed.
 *
 * An object's data changes only while its lock says INSTALLING and the lock's owner has passed its commit point
 * (status COMMITTED), and its version changes before the owner's status does. So whoever copies an object and then
 * finds no such lock, and after that the version that was there before the copy, has copied this version. A lock that
 * is held for long, by a transaction across machines that is prepared (engine/prepared.ts), is in nobody's way.
 */

import type { Executor } from "../../engine/executor.ts";
import { COMMITTED, phaseOf, STATUS } from "../../engine/slot.ts";
import {
  INSTALLING,
  LOCK,
  lockMode,
  lockOwner,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { loadAcquire, loadAfterLoads } from "../../memory/ordering.ts";
import { TimeoutError } from "../../runtime/errors.ts";
import { MAX_TIMEOUT_MS } from "../../runtime/limits.ts";

export class Installs {
  readonly #executor: Executor;
  readonly #patienceMs: number;

  constructor(executor: Executor, patienceMs = MAX_TIMEOUT_MS) {
    this.#executor = executor;
    this.#patienceMs = patienceMs;
  }

  /** Waits until nobody is installing the object. The dead are recovered. */
  await(i32: Int32Array, at: number): void {
    if (!this.#isInstalling(loadAcquire(i32, at + LOCK))) return;
    const patience = this.#executor.newPatience(this.#patienceMs);
    for (;;) {
      const lock = Atomics.load(i32, at + LOCK);
      if (!this.#isInstalling(lock)) return;
      if (patience.meet(lock)) continue;
      const holder = this.#executor.holder(lockOwner(lock));
      throw new TimeoutError(
        `process ${holder.pid} (thread ${holder.threadId}, slot ${holder.slot}) is installing a commit and ` +
          `does not move; is it stopped?`,
        holder,
      );
    }
  }

  /** After a copy: whether all of it was of this version. */
  isSettled(i32: Int32Array, at: number, high: number, low: number): boolean {
    // In this order: what was installed before the second look at the lock has changed the version.
    if (this.#isInstalling(loadAfterLoads(i32, at + LOCK))) return false;
    return (
      loadAcquire(i32, at + VERSION_HIGH) === high && loadAcquire(i32, at + VERSION_LOW) === low
    );
  }

  #isInstalling(lock: number): boolean {
    if (lockMode(lock) !== INSTALLING) return false;
    const { control } = this.#executor.memory;
    const owner = lockOwner(lock);
    // What is not a lock, but was copied as one, may name any owner.
    if (owner < 0 || owner >= control.geometry.slots) return false;
    const status = Atomics.load(control.i32, control.slotAt(owner) + STATUS);
    return phaseOf(status) === COMMITTED;
  }
}
