/** What the ways of getting into a store have in common: at the end of each there is an executor. */

import { Executor } from "../engine/executor.ts";
import type { Leases } from "../engine/leases/leases.ts";
import type { FolderLock } from "../folder/folder-lock.ts";
import { explained, type Identity } from "../folder/store-files.ts";
import type { Recovered } from "../log/recovery/rebuild.ts";
import type { StoreMemory } from "../memory/store-memory.ts";

/** An executor at work in a store. */
export interface Attached {
  readonly executor: Executor;
  /** The store is new: the caller makes the catalogue, then publishes the store. */
  readonly fresh: boolean;
  /** Of a store that processes share. */
  readonly identity?: Identity;
  /** What was found on disk, if memory had to be rebuilt. */
  readonly recovered?: Recovered;
  /** The lock of the store's folder, to be shared with others once the store is made. */
  readonly lock?: FolderLock;
}

/** Takes over the memory and the leases: whatever happens, they are closed with the executor. */
export function openExecutor(memory: StoreMemory, leases: Leases): Executor {
  try {
    return explained("the slots", () => Executor.open(memory, leases));
  } catch (error) {
    leases.close();
    memory.close();
    throw error;
  }
}
