/**
 * A lease says that a slot's executor is alive. It ends with its owner, however that ends: the
 * system takes it back, nobody has to time out. Two implementations behind one contract:
 *
 *   file-lock.ts     flock on a file per slot, for processes and their worker threads
 *   descriptor.ts    an open file descriptor of this process, where FFI is missing
 */

import type { SlotId } from "../slot.ts";
export interface Leases {
  /**
   * Takes the lease if no living executor has it. Also the test for a dead owner. `isNew` is set for a
   * slot that nobody claims: only then may the lease be one that did not exist before.
   */
  tryAcquire(slot: SlotId, isNew?: boolean): boolean;
  release(slot: SlotId): void;
  /** Gives up all leases of this instance. */
  close(): void;
}
