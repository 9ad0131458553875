/**
 * Making a store smaller: regions at its end that nobody uses are given back to the system. By one who
 * holds the store's open.lock, so there is one at a time, in this order:
 *
 *  1. Blocks without a row in them are given back (closings.ts), until nothing is in use beyond the
 *     new size. If something stays in use, the store cannot be so small, and nothing has changed.
 *  2. Announce: the limit is lowered. Nobody takes free units beyond it, or creates regions there.
 *  3. Wait out: all units of the regions beyond it are taken, from the last region on. One who has read
 *     the old limit may be quicker; then the limit is raised again, and the attempt has failed.
 *     A unit was freed when no transaction was left that could have an address in it; the epoch is
 *     advanced and waited for once more, so that this also holds for whoever looked just now.
 *  4. The regions end, one by one, from the last on: their state says that they are not there, and
 *     their memory goes back to the system. The files and their mappings stay: see StoreMemory.
 *
 * A death before 4 leaves the lower limit, which the next opener sets to what store.json says, and units that
 * the slot's recovery frees. A death within 4 leaves fewer regions than there were; they are created
 * again when they are needed. In all cases store.json, which is written after this, decides.
 *
 * Reads outside of transactions (`get`) are not announced. They check what they have read, and may read
 * what was freed; a region that was given back reads as zeroes.
 */

import { REGION_LIMIT } from "./control.ts";
import type { SlabHost } from "./slab.ts";
import type { Slabs } from "./slabs.ts";
import type { StoreMemory } from "./store-memory.ts";

export class Shrinking {
  readonly #memory: StoreMemory;
  readonly #slabs: Slabs;
  readonly #slot: number;
  readonly #host: SlabHost;
  readonly #regions: number;
  readonly #before: number;
  /** Regions whose units are all taken, and the epoch that must have passed. */
  readonly #taken: number[] = [];
  #since = -1;

  constructor(slabs: Slabs, slot: number, host: SlabHost, regions: number) {
    this.#memory = slabs.blocks.memory;
    this.#slabs = slabs;
    this.#slot = slot;
    this.#host = host;
    this.#regions = regions;
    this.#before = this.#memory.control.regionLimit;
  }

  /** Step 1: how many regions are in use now. To be asked again while others may move on. */
  regionsInUse(): number {
    const { blocks } = this.#slabs;
    if (blocks.regionsInUse() > this.#regions) this.#slabs.releaseEmptyBlocks();
    return blocks.regionsInUse();
  }

  /** Steps 2 and 3; false if somebody was quicker, and all is as before. */
  announce(): boolean {
    const { control } = this.#memory;
    Atomics.store(control.i32, REGION_LIMIT, this.#regions);
    // One who creates a region has said so before it looked at the limit.
    const last = this.#memory.regionCount - 1;
    for (let id = last; id >= this.#regions; id--) {
      const isTaken = this.#memory.isReady(id) && this.#slabs.blocks.takeRegion(id, this.#slot);
      if (!isTaken) {
        this.undo();
        return false;
      }
      this.#taken.push(id);
    }
    this.#since = this.#host.mark();
    return true;
  }

  /** Whether step 4 may begin. */
  get isWaitedOut(): boolean {
    return this.#taken.length === 0 || this.#host.isPast(this.#since);
  }

  /** Step 4. */
  finish(): void {
    for (const id of this.#taken.splice(0)) this.#memory.giveRegionBack(id, this.#slot);
  }

  /** Instead of step 4, or after it: the store may be as large as it was. */
  undo(): void {
    for (const id of this.#taken.splice(0)) this.#slabs.blocks.returnRegion(id, this.#slot);
    Atomics.store(this.#memory.control.i32, REGION_LIMIT, this.#before);
  }
}
