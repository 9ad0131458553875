/**
 * The slab allocators of one executor (FaRM §3.3): private, so that allocating touches no shared
 * word. Whether a cell is taken is written in the cell's own header by the commit that allocates
 * or frees it, nowhere else. So there is no allocator state to lose: a dead executor's cells that
 * never committed are simply still free, and whoever owns the block next finds them by sweeping
 * over the headers.
 *
 * `#known` holds the cells that are free in memory but spoken for here: handed to a transaction
 * that has not ended, or waiting in a free list. A sweep passes over them.
 *
 * A freed array needs care: its elements had headers in the middle of the cell, and a transaction
 * that read one may still try to lock it. Such a cell rests until every transaction that was
 * running when it was found has ended, and every snapshot that can still see the array; the same
 * holds for a block that changes its class.
 */

import { BLOCKS_PER_SEARCH, CELLS_PER_SEARCH, MAX_FREE_CELLS } from "../runtime/limits.ts";
import type { Address } from "./address.ts";
import { NO_ADDRESS, regionIdOf } from "./address.ts";
import { BLOCK_CELLS, BlockTable } from "./blocks.ts";
import { ALLOCATED, ARRAY, INCARNATION, LOCK, VERSION_HIGH, VERSION_LOW } from "./object.ts";
import { loadAcquire } from "./ordering.ts";
import { type OwnedBlock, OwnedBlocks, type Rotation } from "./owned-blocks.ts";
import type { StoreMemory } from "./region.ts";
import { CELL_BYTES } from "./size-classes.ts";

/** What the slabs ask of the engine above: has everybody moved on since then? */
export interface SlabHost {
  /** An epoch such that transactions which start from now on announce a later one. */
  mark(): number;
  /** Whether no transaction that announced `epoch` or an earlier one is still running. */
  isPast(epoch: number): boolean;
  /** Whether a snapshot is open that sees what was there before this version. */
  isSeen(versionHigh: number, versionLow: number): boolean;
  /** Another executor is creating a region: waits a little, and sees to it if that one died. */
  waitForCreator(regionId: number): void;
}

interface RestingCell {
  readonly cell: Address;
  readonly since: number;
  /** The version that it was freed with. */
  readonly high: number;
  readonly low: number;
}

interface Slab {
  readonly owned: OwnedBlocks;
  readonly freeCells: Address[];
  readonly resting: RestingCell[];
}

export class Slabs {
  readonly blocks: BlockTable;
  readonly #memory: StoreMemory;
  readonly #slot: number;
  readonly #host: SlabHost;
  readonly #slabs: (Slab | undefined)[] = [];
  readonly #known = new Set<Address>();
  /** Whether `releaseEmptyBlocks` found some the last time and could not give them back yet. */
  #waits = false;

  constructor(memory: StoreMemory, slot: number, host: SlabHost) {
    this.#memory = memory;
    this.#slot = slot;
    this.#host = host;
    this.blocks = new BlockTable(memory);
  }

  /**
   * A free cell of the class, or NO_ADDRESS if the store has none left: in the block of `near`,
   * else in its region, else anywhere. It is reserved until `committed` or `returned`.
   */
  allocate(sizeClass: number, near: Address): Address {
    const slab = this.#slab(sizeClass);
    const cell =
      near === NO_ADDRESS || this.blocks.cellOf(near) === NO_ADDRESS
        ? this.#anywhere(slab, sizeClass)
        : this.#near(slab, sizeClass, near);
    if (cell !== NO_ADDRESS) this.#known.add(cell);
    return cell;
  }

  /** The transaction committed: the header says now that the cell is taken. */
  committed(cell: Address): void {
    this.#known.delete(cell);
  }

  /** The transaction did not commit: the cell is as free as it was. */
  returned(cell: Address): void {
    this.#slab(this.blocks.classOf(this.blocks.blockOf(cell))).freeCells.push(cell);
  }

  /** A commit of this executor freed the cell. */
  freed(cell: Address, wasArray: boolean): void {
    const block = this.blocks.blockOf(cell);
    const slab = this.#slabs[this.blocks.classOf(block)];
    const mine = slab !== undefined && this.blocks.isOwnedBy(block, this.#slot);
    if (!mine || wasArray || slab.freeCells.length >= MAX_FREE_CELLS) {
      this.blocks.countFree(block);
      return;
    }
    this.#known.add(cell);
    slab.freeCells.push(cell);
  }

  /**
   * Gives every wholly empty block of this executor, and every empty orphan, back for other
   * classes. Returns how many could be given back now.
   */
  releaseEmptyBlocks(): number {
    const candidates: { block: number; highest: number; high: number; low: number }[] = [];
    for (let block = 0; block < this.blocks.count; block++) {
      const mine = this.blocks.isOwnedBy(block, this.#slot) || this.blocks.adopt(block, this.#slot);
      if (!mine || this.#isReserved(block)) continue;
      const highest = this.blocks.highestIfEmpty(block);
      if (highest !== undefined) {
        const { freedHigh: high, freedLow: low } = this.blocks;
        candidates.push({ block, highest, high, low });
      } else {
        this.#own(this.blocks.classOf(block), block);
      }
    }
    this.#waits = false;
    if (candidates.length === 0) return 0;
    const since = this.#host.mark();
    const past = this.#host.isPast(since);
    let released = 0;
    for (const { block, highest, high, low } of candidates) {
      if (past && !this.#host.isSeen(high, low)) {
        released++;
        this.#forget(block);
        this.blocks.release(block, this.#slot, highest);
      } else {
        this.#own(this.blocks.classOf(block), block);
      }
    }
    this.#waits = released < candidates.length;
    return released;
  }

  /** Looks for memory that a class can use by now; false if there is none. */
  reclaim(sizeClass: number): boolean {
    return this.releaseEmptyBlocks() > 0 || this.#hasRested(this.#slab(sizeClass));
  }

  /** Whether there is memory that a class could use if others moved on. */
  isWaiting(sizeClass: number): boolean {
    return this.#waits || this.#slab(sizeClass).resting.length > 0;
  }

  close(): void {
    this.blocks.orphan(this.#slot);
    this.#slabs.length = 0;
    this.#known.clear();
  }

  #anywhere(slab: Slab, sizeClass: number): Address {
    const listed = slab.freeCells.pop();
    if (listed !== undefined) return listed;
    const cell = this.#inSome(slab, slab.owned.everywhere, BLOCKS_PER_SEARCH, sizeClass);
    if (cell !== NO_ADDRESS) return cell;
    const rested = this.#rested(slab);
    if (rested !== NO_ADDRESS) return rested;
    return this.#fromNewBlock(slab, sizeClass);
  }

  /** Looks at every block of the slab. */
  #inAnyBlock(slab: Slab, sizeClass: number): Address {
    const { everywhere } = slab.owned;
    const cell = this.#inSome(slab, everywhere, everywhere.blocks.length, sizeClass);
    if (cell === NO_ADDRESS) slab.owned.lookedInVain();
    return cell;
  }

  /** Looks at up to `most` blocks, from where the last search ended. */
  #inSome(slab: Slab, rotation: Rotation, most: number, sizeClass: number): Address {
    for (let looks = Math.min(most, rotation.blocks.length); looks > 0; looks--) {
      const cell = this.#sweep(slab, rotation.current, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
      rotation.next();
    }
    return NO_ADDRESS;
  }

  #near(slab: Slab, sizeClass: number, near: Address): Address {
    const block = this.blocks.blockOf(near);
    const inBlock = this.#listed(slab, (at) => this.blocks.blockOf(at) === block);
    if (inBlock !== NO_ADDRESS) return inBlock;
    const sameBlock = slab.owned.find(block);
    if (sameBlock !== undefined) {
      const cell = this.#sweep(slab, sameBlock, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
    }
    const regionId = regionIdOf(near);
    const inRegion = this.#listed(slab, (at) => regionIdOf(at) === regionId);
    if (inRegion !== NO_ADDRESS) return inRegion;
    const region = slab.owned.inRegion(regionId);
    const cell = this.#inSome(slab, region, BLOCKS_PER_SEARCH, sizeClass);
    if (cell !== NO_ADDRESS) return cell;
    while (region.mayTake()) {
      const taken = this.blocks.takeIn(regionId, sizeClass, this.#slot);
      if (taken < 0) {
        region.foundFull();
        break;
      }
      // An orphan may turn out to be full; it is ours now and will be swept again after frees.
      const cell = this.#sweep(slab, this.#own(sizeClass, taken), sizeClass);
      if (cell !== NO_ADDRESS) return cell;
    }
    return this.#anywhere(slab, sizeClass);
  }

  /** The newest free cells are the likeliest to be close; a longer search costs more than it gains. */
  #listed(slab: Slab, fits: (at: Address) => boolean): Address {
    const { freeCells } = slab;
    const last = Math.max(0, freeCells.length - CELLS_PER_SEARCH);
    for (let index = freeCells.length - 1; index >= last; index--) {
      const cell = freeCells[index];
      if (!fits(cell)) continue;
      freeCells.splice(index, 1);
      return cell;
    }
    return NO_ADDRESS;
  }

  /** The next free cell of one block; a second pass over it only if others have freed in it. */
  #sweep(slab: Slab, owned: OwnedBlock, sizeClass: number): Address {
    const region = this.#memory.region(this.blocks.regionIdOf(owned.block));
    const words = CELL_BYTES[sizeClass] / 4;
    const cells = BLOCK_CELLS[sizeClass];
    const first = this.blocks.firstWordOf(owned.block);
    for (let pass = 0; pass < 2; pass++) {
      for (; owned.cursor < cells; owned.cursor++) {
        const state = loadAcquire(region.i32, first + owned.cursor * words + INCARNATION);
        if ((state & ALLOCATED) !== 0) continue;
        const cell = this.blocks.cellAt(owned.block, owned.cursor, sizeClass);
        if (this.#known.has(cell)) continue;
        if ((state & ARRAY) !== 0) {
          const at = first + owned.cursor * words;
          // Still locked: its version is not there yet. It will be counted as freed, and found.
          if (loadAcquire(region.i32, at + LOCK) !== 0) continue;
          this.#known.add(cell);
          const high = region.i32[at + VERSION_HIGH];
          const low = region.i32[at + VERSION_LOW];
          slab.resting.push({ cell, since: this.#host.mark(), high, low });
          continue;
        }
        owned.cursor++;
        return cell;
      }
      const frees = this.blocks.frees(owned.block);
      if (frees === owned.freesSeen) return NO_ADDRESS;
      owned.freesSeen = frees;
      owned.cursor = 0;
    }
    return NO_ADDRESS;
  }

  #rested(slab: Slab): Address {
    return this.#hasRested(slab) ? slab.resting.shift()!.cell : NO_ADDRESS;
  }

  #hasRested(slab: Slab): boolean {
    const oldest = slab.resting[0];
    if (oldest === undefined || !this.#host.isPast(oldest.since)) return false;
    return !this.#host.isSeen(oldest.high, oldest.low);
  }

  #fromNewBlock(slab: Slab, sizeClass: number): Address {
    let hasLooked = slab.owned.isLookDue();
    if (hasLooked) {
      const cell = this.#inAnyBlock(slab, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
    }
    for (;;) {
      const block = this.blocks.take(sizeClass, this.#slot);
      if (block >= 0) {
        const owned = this.#own(sizeClass, block);
        const cell = this.#sweep(slab, owned, sizeClass);
        // An orphan may turn out to be full; it is ours now and will be swept again after frees.
        if (cell !== NO_ADDRESS) return cell;
        continue;
      }
      // Before the store grows by a region, or is full.
      if (!hasLooked) {
        hasLooked = true;
        const cell = this.#inAnyBlock(slab, sizeClass);
        if (cell !== NO_ADDRESS) return cell;
      }
      const regionId = this.blocks.nextRegion();
      if (regionId < 0) return NO_ADDRESS;
      if (this.#memory.createRegion(regionId, this.#slot) === "busy") {
        this.#host.waitForCreator(regionId);
      }
    }
  }

  #own(sizeClass: number, block: number): OwnedBlock {
    const slab = this.#slab(sizeClass);
    const known = slab.owned.find(block);
    if (known !== undefined) return known;
    const owned = { block, cursor: 0, freesSeen: this.blocks.frees(block) };
    slab.owned.add(owned, this.blocks.regionIdOf(block));
    return owned;
  }

  #forget(block: number): void {
    const slab = this.#slabs[this.blocks.classOf(block)];
    if (slab === undefined) return;
    const inBlock = (cell: Address): boolean => this.blocks.blockOf(cell) === block;
    const keep = <T>(list: T[], drop: (item: T) => boolean): void => {
      const kept = list.filter((item) => !drop(item));
      list.length = 0;
      list.push(...kept);
    };
    slab.owned.remove(block, this.blocks.regionIdOf(block));
    keep(slab.freeCells, inBlock);
    keep(slab.resting, (resting) => inBlock(resting.cell));
    for (const cell of this.#known) if (inBlock(cell)) this.#known.delete(cell);
  }

  /** Whether a transaction that has not ended holds a cell of the block. */
  #isReserved(block: number): boolean {
    const slab = this.#slabs[this.blocks.classOf(block)];
    if (slab === undefined) return false;
    const waiting = new Set(slab.freeCells);
    for (const resting of slab.resting) waiting.add(resting.cell);
    for (const cell of this.#known) {
      if (this.blocks.blockOf(cell) === block && !waiting.has(cell)) return true;
    }
    return false;
  }

  #slab(sizeClass: number): Slab {
    let slab = this.#slabs[sizeClass];
    if (slab === undefined) {
      slab = { owned: new OwnedBlocks(), freeCells: [], resting: [] };
      while (this.#slabs.length <= sizeClass) this.#slabs.push(undefined);
      this.#slabs[sizeClass] = slab;
    }
    return slab;
  }
}
