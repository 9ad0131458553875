/** The rows of a selection that the threads of the device carry out: they arrive in batches, from another thread. */

import { SituError } from "../../runtime/errors.ts";
import type { Scan } from "../scan.ts";

/** Begins a selection. */
export type OpenBatches = () => AsyncGenerator<readonly unknown[], undefined>;

export class DeviceScan implements Scan<never> {
  readonly #open: OpenBatches;
  readonly #limit: number;

  constructor(open: OpenBatches, limit: number) {
    this.#open = open;
    this.#limit = limit;
  }

  [Symbol.iterator](): never {
    return refuseSync();
  }

  toArray(): never {
    return refuseSync();
  }

  async *[Symbol.asyncIterator](): AsyncIterableIterator<never> {
    let left = this.#limit;
    if (left === 0) return;
    for await (const rows of this.#open()) {
      for (const row of rows) {
        yield row as never;
        if (--left === 0) return;
      }
    }
  }
}

function refuseSync(): never {
  throw new SituError(
    "SITU_UNSUPPORTED",
    `select: rows that the device selects arrive later: read them with for await, or leave out place: "device"`,
  );
}
