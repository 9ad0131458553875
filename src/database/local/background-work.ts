/**
 * What an open database does in the background, on timers that keep no process alive: it looks for
 * dead executors, after old versions, after memory that others could use, after large pages of memory that was made in a hurry, after rows that have expired, whether
 * the store's memory is still there, and whether its log has a writer. One timer serves all of this: each wake-up of a process that
 * has nothing to do costs tenths of a millisecond. Nothing depends on it, and any process may do it.
 *
 * Most of it one can do for all: where many have the store open, each does it less often. Hundreds of
 * processes that wake twice a second, look at each other, and list a folder with two files for each of them
 * would take a processor.
 */

import { clearInterval, clearTimeout, setInterval, setTimeout } from "node:timers";
import type { Executor } from "../../engine/executor.ts";
import { claimedSlots } from "../../engine/slot.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { nowMs } from "../../runtime/clock.ts";
import {
  EXPIRY_SWEEP_AGAIN_MS,
  EXPIRY_SWEEP_BUDGET_MS,
  HUGE_PAGES_AGAIN_MS,
  HUGE_PAGES_TURN_MS,
  KEEPER_MS,
  SWEEP_MS,
  SWEPT_SLOTS,
  UPKEEP_MAX_SHARES,
  UPKEEP_SHARERS,
} from "../../runtime/limits.ts";
import type { DeviceKeeper } from "./device-keeper.ts";
import type { ExpirySweeper } from "./expiry-sweeper.ts";

export class Upkeep {
  readonly #executor: Executor;
  #sweeper: NodeJS.Timeout;
  #keeper: NodeJS.Timeout | undefined;
  #hasWarned = false;
  readonly #expiry: ExpirySweeper;
  #expiring: NodeJS.Timeout | undefined;
  #improving: NodeJS.Timeout | undefined;
  readonly #device: DeviceKeeper;

  constructor(executor: Executor, expiry: ExpirySweeper, device: DeviceKeeper) {
    this.#executor = executor;
    this.#device = device;
    this.#expiry = expiry;
    this.#sweeper = this.#sweepLater();
  }

  #sweepLater(): NodeJS.Timeout {
    const shares = Math.floor(claimedSlots(this.#executor.memory.control) / UPKEEP_SHARERS);
    const pauseMs = SWEEP_MS * Math.min(Math.max(shares, 1), UPKEEP_MAX_SHARES);
    return setTimeout(() => {
      this.#sweeper = this.#sweepLater();
      quietly(() => this.#sweep());
    }, pauseMs).unref();
  }

  /** Has versions moved and collected often, for as long as there are snapshots in the store. */
  lookAfterVersions(): void {
    this.#keeper ??= setInterval(() => {
      const { registry, keeper } = this.#executor.versions;
      // The last round comes after the last snapshot.
      if (registry.inUse === 0) {
        clearInterval(this.#keeper);
        this.#keeper = undefined;
      }
      quietly(() => keeper.tick());
    }, KEEPER_MS).unref();
  }

  stop(): void {
    clearTimeout(this.#sweeper);
    clearInterval(this.#keeper);
    clearTimeout(this.#expiring);
    clearTimeout(this.#improving);
  }

  /** Some large pages at a time, for memory that was made in a hurry. */
  #improve(): void {
    const { memory, durability } = this.#executor;
    if (durability.isMemoryLost || !memory.improve(nowMs() + HUGE_PAGES_TURN_MS)) return;
    clearTimeout(this.#improving);
    const again = (): void => quietly(() => this.#improve());
    this.#improving = setTimeout(again, HUGE_PAGES_AGAIN_MS).unref();
  }

  /** Some rows at a time; if there are more, again soon. */
  #sweepExpired(): void {
    if (!this.#expiry.isNeeded || this.#executor.durability.isMemoryLost) return;
    if (!this.#expiry.sweep(EXPIRY_SWEEP_BUDGET_MS)) return;
    clearTimeout(this.#expiring);
    const again = (): void => quietly(() => this.#sweepExpired());
    this.#expiring = setTimeout(again, EXPIRY_SWEEP_AGAIN_MS).unref();
  }

  #warnOfLoss(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const { message } = this.#executor.durability.failed("nothing more is committed");
    process.emitWarning(message, { code: "SITU_MEMORY_LOST" });
  }

  #sweep(): void {
    const { slabs, versions, durability } = this.#executor;
    if (durability.lookAtMemory()) this.#warnOfLoss();
    durability.watchLogWriter();
    this.#executor.sweepSome(SWEPT_SLOTS);
    versions.keeper.tick();
    slabs.tidy();
    this.#sweepExpired();
    this.#improve();
    this.#device.tick();
  }
}

/** Work that can wait, where nobody could do anything about its failure: another round will come. */
function quietly(work: () => void): void {
  try {
    work();
  } catch (error) {
    passOver(error, "the upkeep of a store");
  }
}
