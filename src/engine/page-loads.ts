/**
 * Pages that are read while the event loop turns (src/device/device.ts). The engine has no pages; it only lets
 * those who run asynchronous operations, above, meet those who read pages, below.
 */

import type { Transaction } from "./transaction.ts";

export interface PageLoads {
  /**
   * Before an operation of `tx`: whether it may be cut short with PAGE_MISS. From when it has written
   * something it is not cut short, and neither is another transaction that runs within it.
   */
  beginOperation(isCuttable: boolean, tx: Transaction): void;
  endOperation(): void;
  /** Reads the pages that the last operation has asked for. */
  load(): Promise<void>;
}
