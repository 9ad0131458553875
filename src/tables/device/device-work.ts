/**
 * What is to be done for the device tables that an executor has open: rows are moved from memory to pages
 * (mover.ts) when there are enough of them, when whoever writes is too fast for that, and when memory is
 * short; and space is looked after (collector.ts). After an error of the disk nothing is tried for a
 * while: rows stay in memory, and only when that is full, too, somebody is told.
 */

import { type Device, knownDevice } from "../../device/device.ts";
import type { Executor } from "../../engine/executor.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEVICE_RETRY_MS } from "../../runtime/limits.ts";
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
      if (this.isDue) this.mover.move(mostMs);
      const hasMore = this.collector.work(endMs);
      return hasMore || this.isDue;
    });
  }

  /** Moves all that there is; says whether it was any. */
  makeRoom(): boolean {
    return this.#tried(() => this.mover.move(Number.POSITIVE_INFINITY), true);
  }

  #relieve(): void {
    if (nowMs() < this.#pauseUntilMs) return;
    this.#tried(() => this.mover.move(Number.POSITIVE_INFINITY));
  }

  #tried(work: () => boolean, isNeeded = false): boolean {
    try {
      const done = work();
      this.failure = undefined;
      return done;
    } catch (error) {
      this.failure = error;
      this.#pauseUntilMs = nowMs() + DEVICE_RETRY_MS;
      if (isNeeded || !(error instanceof SituError)) throw error;
      if (error.code === "SITU_CORRUPT" && !isOfDisk(error)) throw error;
      return false;
    }
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
