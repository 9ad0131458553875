/**
 * Pages that are read while the event loop turns (src/device/device.ts). The engine has no pages; it only lets
 * those who run asynchronous operations, above, meet those who read pages, below.
 */
export interface PageLoads {
  /**
   * Before an operation: whether it may be cut short with PAGE_MISS, and how much its transaction has
   * written by then. One that has written more since is not cut short.
   */
  beginOperation(isCuttable: boolean, writes: number): void;
  endOperation(): void;
  /** Reads the pages that the last operation has asked for. */
  load(): Promise<void>;
}
