/**
 * What is to be done for the device tables that an executor has open: rows are moved from memory to pages
 * (mover.ts) when there are enough of them, when whoever writes is too fast for that, and when memory is
 * short; and space is looked after (collector.ts). After an error of the disk nothing is tried for a
 * while: rows stay in memory, and only when that is full, too, somebody is told.
 */

import { type Device, knownDevice } from "../../device/device.ts";
import type { Executor } from "../../engine/executor.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEVICE_DELTA_FACTOR, DEVICE_RETRY_MS } from "../../runtime/limits.ts";
import { Collector } from "./collector.ts";
import type { DeviceTable } from "./device-table.ts";
import { Mover } from "./mover.ts";

export class DeviceWork {
  readonly table: DeviceTable;
  readonly mover: Mover;
  readonly collector: Collector;
  #pauseUntilMs = 0;
  /** Why rows could not be moved the last time that it was tried. */
  failure: unknown;
  #flushing: Promise<void> | undefined;
  #isEnding = false;

  constructor(table: DeviceTable) {
    this.table = table;
    this.mover = new Mover(table);
    this.collector = new Collector(table, this.mover.writer);
    table.relieve = () => this.#relieve();
  }

  /** Whether enough was written for some of it to be moved. */
  get isDue(): boolean {
    const { writtenBytes, device } = this.table;
    return writtenBytes >= device.deltaBytes;
  }

  /** Works for about so long; says whether there is more to do. */
  work(mostMs: number): boolean {
    if (nowMs() < this.#pauseUntilMs || this.table.isGone()) return false;
    const endMs = nowMs() + mostMs;
    return this.#tried(() => {
      // First: while rows are being moved no page becomes free.
      const hasMore = this.collector.work(endMs);
      if (this.isDue && this.#flushing === undefined) this.#flush();
      return hasMore;
    });
  }

  /** Moves rows while the event loop turns; then the rest of the work goes on. */
  #flush(): void {
    const { device, executor } = this.table;
    this.#flushing = this.mover
      .moveLater(() => this.#isEnding || executor.durability.isMemoryLost)
      .then(() => {
        this.failure = undefined;
      })
      .catch((error: unknown) => {
        if (!this.#note(error)) passOver(error, "moving rows to the device");
      })
      .finally(() => {
        this.#flushing = undefined;
        if (!this.#isEnding) device.onPressure();
      });
  }

  /** Lets what runs come to its end: nothing is read or written afterwards. */
  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#flushing;
  }

  /** Moves all that there is; says whether it was any. */
  makeRoom(): boolean {
    return this.#tried(() => this.mover.move(Number.POSITIVE_INFINITY), true);
  }

  #relieve(): void {
    if (nowMs() < this.#pauseUntilMs) return;
    // What is being moved need not be moved twice, if it comes to its end soon.
    const { writtenBytes, device } = this.table;
    const most = 2 * DEVICE_DELTA_FACTOR * device.deltaBytes;
    if (this.#flushing !== undefined && writtenBytes < most) return;
    this.#tried(() => this.mover.move(Number.POSITIVE_INFINITY));
  }

  #tried(work: () => boolean, isNeeded = false): boolean {
    try {
      const done = work();
      this.failure = undefined;
      return done;
    } catch (error) {
      if (!this.#note(error) || isNeeded) throw error;
      return false;
    }
  }

  /** Nothing more for a while; says whether it is the disk, so that nobody has to know yet. */
  #note(error: unknown): boolean {
    this.failure = error;
    this.#pauseUntilMs = nowMs() + DEVICE_RETRY_MS;
    return error instanceof SituError && (error.code !== "SITU_CORRUPT" || isOfDisk(error));
  }
}

/** A disk that fails, and has damaged nothing yet. */
function isOfDisk({ cause }: SituError): boolean {
  return (cause as NodeJS.ErrnoException | undefined)?.code === "EIO";
}

/** The work of a table, which is known from when the table is opened. */
export function startWork(table: DeviceTable): void {
  const { device } = table;
  const others = workOf(device).filter((each) => !each.table.isGone());
  device.work.splice(0, device.work.length, ...others, new DeviceWork(table));
  device.executor.makeRoom = () => {
    let hasMoved = false;
    for (const each of workOf(device)) hasMoved = each.makeRoom() || hasMoved;
    return hasMoved;
  };
}

export function workOf(device: Device): readonly DeviceWork[] {
  return device.work as DeviceWork[];
}

/** Whether the executor has device tables open. */
export function hasDeviceWork(executor: Executor): boolean {
  return (knownDevice(executor)?.work.length ?? 0) > 0;
}
