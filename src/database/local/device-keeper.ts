/**
 * Works for the device tables of a database in the background (tables/device/device-work.ts): a few milliseconds
 * at a time, when so much was written that rows are to be moved from memory to the device, and now and then. Any
 * process may do it, one at a time.
 */

import { clearTimeout, setTimeout } from "node:timers";
import { knownDevice } from "../../device/device.ts";
import type { Executor } from "../../engine/executor.ts";
import type { Address } from "../../memory/address.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { DEVICE_WORK_AGAIN_MS, DEVICE_WORK_MS } from "../../runtime/limits.ts";
import type { DeviceTable } from "../../tables/device/device-table.ts";
import { workOf } from "../../tables/device/device-work.ts";
import { filesInUse } from "../../tables/device/stale-files.ts";

export class DeviceKeeper {
  readonly #executor: Executor;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  /** For databases: after tables were opened. */
  start(): void {
    const device = knownDevice(this.#executor);
    if (device === undefined) return;
    device.onPressure = () => this.#soon();
    device.isInUse = (root, file) => filesInUse(this.#executor).get(file) === root;
  }

  /** A thread of the device has written pages of a table. */
  noteWritten(root: Address, pages: number): void {
    const table = knownDevice(this.#executor)?.tables.get(root) as DeviceTable | undefined;
    if (table === undefined) return;
    table.writtenPages += pages;
    this.#soon();
  }

  /** One round of work; says whether there is more to do. */
  work(): boolean {
    const device = knownDevice(this.#executor);
    if (device === undefined || this.#executor.durability.isMemoryLost) return false;
    let hasMore = false;
    for (const each of workOf(device)) hasMore = each.work(DEVICE_WORK_MS) || hasMore;
    return hasMore;
  }

  /** A round now; if there is more to do, another one soon. */
  tick(): void {
    if (this.work()) this.#soon();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    const device = knownDevice(this.#executor);
    if (device === undefined) return;
    await Promise.all(workOf(device).map((each) => each.end()));
    device.close();
  }

  #soon(): void {
    if (this.#timer !== undefined || this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      try {
        this.tick();
      } catch (error) {
        passOver(error, "moving rows to the device");
      }
    }, DEVICE_WORK_AGAIN_MS).unref();
  }
}
