/**
 * The slab allocators of one executor (FaRM §3.3): where it finds free cells, and which of them are
 * spoken for here. Whether a cell is taken is written in the cell's own header by the commit that
 * allocates or frees it, nowhere else. So there is no allocator state to lose: a dead executor's
 * cells that never committed are simply still free.
 *
 * Choosing a cell reserves it in this executor only. Another one may choose the same, and then the
 * first to commit has it: the other finds that the version of the cell has changed, and tries again
 * with another cell. That must be rare, so an executor that allocates a class often makes blocks that
 * it prefers, one at a time, and others keep out of them. All other blocks are everyone's: a store
 * with rows of two hundred sizes and sixteen processes has one partly filled block for each size, not
 * sixteen (docs/decisions/0023). In these, each executor looks at the cells in another order.
 *
 * Three files: this one decides which blocks to look in and when to make new ones; free-cells.ts finds
 * cells in blocks that are known; slab.ts is what is known of a class.
 */

import { SituError } from "../runtime/errors.ts";
import {
  HOT_CLASSES,
  HOT_SAMPLE,
  HUGE_PAGES_MS,
  HUGE_PAGES_TURN_MS,
  MAX_CANDIDATES,
  MAX_CELL_EXCESS,
  MAX_FREE_CELLS,
  UNIT_BYTES,
} from "../runtime/limits.ts";
import type { Address } from "./address.ts";
import { addressOf, NO_ADDRESS, regionIdOf } from "./address.ts";
import { raiseByItself } from "./automatic-limit.ts";
import { BLOCK_CELLS, BlockTable, classOfState, SPAN } from "./blocks.ts";
import { Closings } from "./closings.ts";
import { FreeCells } from "./free-cells.ts";
import { CELL_BYTES } from "./size-classes.ts";
import { Slab, type SlabHost } from "./slab.ts";
import type { StoreMemory } from "./store-memory.ts";

/** A class that is not in use here much makes do with cells that are larger by this at most. */
const LARGER_AT_MOST = 1.125;
/** When cells of this part of the store have been freed here, empty blocks are looked for. */
const FREED_PART = 1 / 16;
/** The table is looked at again when this part of the store has been taken in new blocks. */
const TAKEN_PART = 1 / 64;

/** Whether so many cells of a class are a good part of all that were chosen meanwhile. */
function isHotPart(own: number, all: number): boolean {
  return own > 0 && own * HOT_CLASSES >= all;
}

export class Slabs {
  readonly blocks: BlockTable;
  readonly #memory: StoreMemory;
  readonly #slot: number;
  readonly #host: SlabHost;
  readonly #closings: Closings;
  readonly #slabs: (Slab | undefined)[] = [];
  readonly #cells: FreeCells;
  /** Cells that were chosen so far, and until the background looked last. */
  #chosen = 0;
  #chosenLately = 0;
  /** The region that the next cell should be in, or -1. */
  #nearRegion = -1;
  /** Bytes of cells that were freed here since empty blocks were looked for. */
  #freedBytes = 0;

  constructor(memory: StoreMemory, slot: number, host: SlabHost) {
    this.#memory = memory;
    this.#slot = slot;
    this.#host = host;
    this.blocks = new BlockTable(memory);
    this.#closings = new Closings(this.blocks, slot, host);
    this.#cells = new FreeCells(memory, this.blocks, slot, host);
  }

  /** The incarnation word that the cell which `allocate` returned last was seen with. */
  get chosenWord(): number {
    return this.#cells.chosenWord;
  }

  /**
   * A free cell of the class, or of a slightly larger one, or NO_ADDRESS if the store has none left:
   * in the block of `near`, else in its region, else anywhere. It is reserved here until `committed`
   * or `returned`. Only inside of a transaction that was announced.
   */
  allocate(sizeClass: number, near: Address): Address {
    const slab = this.#slab(sizeClass);
    this.#chosen++;
    slab.chosen++;
    this.#nearRegion = -1;
    let cell = near === NO_ADDRESS ? NO_ADDRESS : this.#near(slab, sizeClass, near);
    if (cell === NO_ADDRESS) cell = this.#anywhere(slab, sizeClass);
    if (cell !== NO_ADDRESS) this.#cells.reserve(cell);
    return cell;
  }

  /** The transaction committed: the header says now that the cell is taken. */
  committed(cell: Address): void {
    this.#cells.unreserve(cell);
  }

  /** The transaction did not commit: the cell is as free as it was, unless another has taken it. */
  returned(cell: Address): void {
    const block = this.blocks.find(cell);
    const sizeClass = block < 0 ? -1 : classOfState(this.blocks.state);
    // The transaction may not be announced any more, and its block be another one by now.
    if (!this.#cells.isReservedIn(cell, sizeClass)) {
      this.#cells.unreserve(cell);
      return;
    }
    this.#slab(sizeClass).freeCells.push(cell);
    this.blocks.countFree(block);
  }

  /** A commit of this executor freed the cell. */
  freed(cell: Address, wasArray: boolean): void {
    const { blocks } = this;
    const block = blocks.find(cell);
    const { state } = blocks;
    const sizeClass = classOfState(state);
    const slab = this.#slab(sizeClass);
    this.#freedBytes += CELL_BYTES[sizeClass];
    if (slab.preferred !== block) blocks.countFree(block);
    if (wasArray || slab.freeCells.length >= MAX_FREE_CELLS) {
      if (slab.preferred === block) blocks.countFree(block);
    } else if (!BlockTable.isPreferredByOther(state, this.#slot)) {
      this.#cells.keep(slab, cell, sizeClass);
    }
  }

  /**
   * Gives empty blocks back for other classes: those that nobody prefers, or all if memory is short.
   * Returns how many could be given back now; others follow with a later call.
   */
  releaseEmptyBlocks(isShort = true): number {
    this.#freedBytes = 0;
    // First what was closed earlier: a block that has been used since is open again, and may be empty.
    const released = this.#finishClosings();
    this.#closings.begin(isShort, this.#cells.reservedBlocks(this.#slabs));
    return released + this.#finishClosings();
  }

  /** Looks for memory that a class can use by now; false if there is none. */
  reclaim(sizeClass: number): boolean {
    return this.releaseEmptyBlocks() > 0 || this.#cells.hasRested(this.#slab(sizeClass));
  }

  /** Whether there is memory that a class could use if others moved on. */
  isWaiting(sizeClass: number): boolean {
    return this.#closings.isWaiting || this.#slab(sizeClass).resting.length > 0;
  }

  /** The epoch that must be past for the first of such memory to be used. */
  waitsFor(sizeClass: number): number {
    const [oldest] = this.#slab(sizeClass).resting;
    return Math.min(this.#closings.oldestEpoch, oldest?.since ?? Number.POSITIVE_INFINITY);
  }

  /** Whether others have moved on, and only snapshots keep such memory from being used. */
  isKeptBySnapshots(sizeClass: number): boolean {
    const [oldest] = this.#slab(sizeClass).resting;
    return (
      this.#closings.isKeptBySnapshots || (oldest !== undefined && this.#host.isPast(oldest.since))
    );
  }

  /** From time to time: leaves blocks that are not in use here to others, gives empty ones back. */
  tidy(): void {
    const all = this.#chosen - this.#chosenLately;
    this.#chosenLately = this.#chosen;
    for (const slab of this.#slabs) {
      if (slab === undefined) continue;
      const own = slab.chosen - slab.chosenLately;
      slab.chosenLately = slab.chosen;
      if (slab.preferred >= 0 && !isHotPart(own, all)) this.#cells.leave(slab);
    }
    if (this.#isReleaseDue()) this.releaseEmptyBlocks(false);
    else this.#finishClosings();
  }

  close(): void {
    this.blocks.orphan(this.#slot);
    this.#slabs.length = 0;
    this.#cells.clear();
  }

  #anywhere(slab: Slab, sizeClass: number): Address {
    const listed = this.#cells.listed(slab, sizeClass);
    if (listed !== NO_ADDRESS) return listed;
    const cell = this.#cells.inCandidates(slab, slab.candidates.everywhere, sizeClass);
    if (cell !== NO_ADDRESS) return cell;
    const rested = this.#cells.rested(slab, sizeClass);
    return rested !== NO_ADDRESS ? rested : this.#fromOtherBlocks(slab, sizeClass);
  }

  #near(slab: Slab, sizeClass: number, near: Address): Address {
    const { blocks } = this;
    const { candidates } = slab;
    const block = blocks.find(near);
    if (block < 0 || classOfState(blocks.state) < 0) return NO_ADDRESS;
    const regionId = regionIdOf(near);
    this.#nearRegion = regionId;
    if (classOfState(blocks.state) === sizeClass) {
      const start = addressOf(regionId, blocks.firstWordOf(block));
      const end = start + BLOCK_CELLS[sizeClass] * CELL_BYTES[sizeClass];
      const inBlock = this.#cells.listedBetween(slab, sizeClass, start, end);
      if (inBlock !== NO_ADDRESS) return inBlock;
      const sameBlock = candidates.find(block);
      if (sameBlock !== undefined) {
        const cell = this.#cells.sweep(slab, sameBlock, sizeClass);
        if (cell !== NO_ADDRESS) return cell;
      }
    }
    const start = addressOf(regionId, 0);
    const end = addressOf(regionId + 1, 0);
    const inRegion = this.#cells.listedBetween(slab, sizeClass, start, end);
    if (inRegion !== NO_ADDRESS) return inRegion;
    const region = candidates.inRegion(regionId);
    const cell = this.#cells.inCandidates(slab, region, sizeClass);
    if (cell !== NO_ADDRESS) return cell;
    // A block for this region alone is worth while only for a class that is used a lot.
    if (!this.#isHot(slab) || this.#isLookDue(slab, true) || !region.mayTake()) return NO_ADDRESS;
    const taken = blocks.takeIn(regionId, sizeClass, this.#slot, true);
    if (taken < 0) {
      region.foundFull();
      return NO_ADDRESS;
    }
    slab.preferred = taken;
    return this.#cells.sweep(slab, this.#cells.note(slab, sizeClass, taken, true), sizeClass);
  }

  /** No block that is known here has a cell: others' blocks, larger cells, a new block, a new region. */
  #fromOtherBlocks(slab: Slab, sizeClass: number): Address {
    const isHot = this.#isHot(slab);
    this.#finishClosings();
    // Each block once: those whose free cells are all reserved here, by a large transaction, stay as they are.
    for (let from = 0; from >= 0 && this.#isLookDue(slab, isHot); ) {
      from = this.#look(slab, -1, from);
      const cell = this.#cells.inCandidates(slab, slab.candidates.everywhere, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
      if (from < 0) slab.hasMore = false;
    }
    if (!isHot) {
      const larger = this.#inLarger(sizeClass, LARGER_AT_MOST);
      if (larger !== NO_ADDRESS) return larger;
    }
    if (this.#isReleaseDue()) this.releaseEmptyBlocks(false);
    for (let hasLooked = false; ; ) {
      const cell = this.#fromNewBlock(slab, sizeClass, isHot);
      if (cell !== NO_ADDRESS) return cell;
      // Before the store grows by a region, or is full.
      if (!hasLooked) {
        hasLooked = true;
        this.#look(slab, sizeClass);
        const found = this.#cells.inCandidates(slab, slab.candidates.everywhere, sizeClass);
        if (found !== NO_ADDRESS) return found;
      }
      if (!this.#grow()) return this.#inLarger(sizeClass, MAX_CELL_EXCESS);
    }
  }

  /** Creates the next region, or waits for one who does; false if there can be no more. */
  #grow(): boolean {
    let regionId = this.blocks.nextRegion();
    if (regionId < 0 && raiseByItself(this.#memory)) regionId = this.blocks.nextRegion();
    if (regionId < 0) return false;
    try {
      const patienceMs = this.#host.isHurried ? HUGE_PAGES_TURN_MS : HUGE_PAGES_MS;
      const outcome = this.#memory.createRegion(regionId, this.#slot, patienceMs);
      if (outcome === "busy") this.#host.waitForCreator(regionId);
      return outcome !== "too many";
    } catch (error) {
      if (!(error instanceof SituError) || error.code !== "SITU_NO_MEMORY") throw error;
      // Without a first region there is no store.
      if (regionId === 0) throw error;
      // The store is full before its limit: the file system of its memory has no room for a region.
      this.#memory.shortage = error;
      return false;
    }
  }

  #fromNewBlock(slab: Slab, sizeClass: number, isHot: boolean): Address {
    const { blocks } = this;
    let block = this.#closings.reopen(sizeClass);
    if (block < 0 && this.#nearRegion >= 0) {
      block = blocks.takeIn(this.#nearRegion, sizeClass, this.#slot, isHot);
    }
    if (block < 0) block = blocks.take(sizeClass, this.#slot, isHot);
    if (block < 0) return NO_ADDRESS;
    if (blocks.isOwnedBy(block, this.#slot)) slab.preferred = block;
    return this.#cells.sweep(slab, this.#cells.note(slab, sizeClass, block, true), sizeClass);
  }

  /** In candidates of larger classes, up to so many times as large. */
  #inLarger(sizeClass: number, atMost: number): Address {
    const most = CELL_BYTES[sizeClass] * atMost;
    for (let larger = sizeClass + 1; CELL_BYTES[larger] <= most; larger++) {
      const slab = this.#slabs[larger];
      if (slab === undefined) continue;
      const cell = this.#cells.inCandidates(slab, slab.candidates.everywhere, larger);
      if (cell !== NO_ADDRESS) return cell;
    }
    return NO_ADDRESS;
  }

  /**
   * The class takes a good part of all that is allocated here: by what was chosen since this was last
   * judged, if that is enough to tell. A few cells of a rare class that happen to be chosen together, or blocks with
   * little left in them that are used up one after the other, do not make it hot.
   */
  #isHot(slab: Slab): boolean {
    const all = this.#chosen - slab.allThen;
    if (all < HOT_SAMPLE) return slab.isHot;
    slab.isHot = isHotPart(slab.chosen - slab.ownThen, all);
    slab.allThen = this.#chosen;
    slab.ownThen = slab.chosen;
    return slab.isHot;
  }

  #isLookDue(slab: Slab, isHot: boolean): boolean {
    const taken = this.blocks.unitsTaken - slab.takenThen;
    if (slab.takenThen < 0 || slab.hasMore) return true;
    if (taken >= Math.max(4, this.blocks.count * TAKEN_PART)) return true;
    return !isHot && this.blocks.sharings !== slab.sharingsThen;
  }

  #isReleaseDue(): boolean {
    const freedUnits = this.#freedBytes / UNIT_BYTES;
    return freedUnits >= Math.max(16, this.blocks.count * FREED_PART);
  }

  /**
   * Looks through the block table for blocks that are everyone's and have had cells freed. Of the class
   * `allOf`, all blocks count, whoever prefers them: memory is short. Of the wanted class, from a block on; returns
   * where to go on if there were too many, or -1.
   */
  #look(wanted: Slab, allOf: number, from = 0): number {
    const { blocks } = this;
    const { sharings, count } = blocks;
    let next = -1;
    for (const slab of this.#slabs) {
      if (slab === undefined) continue;
      slab.takenThen = blocks.unitsTaken;
      slab.sharingsThen = sharings;
      slab.hasMore = false;
    }
    for (let block = 0; block < count; ) {
      const state = blocks.stateOf(block);
      const sizeClass = classOfState(state);
      if (sizeClass >= 0 && BlockTable.isOpen(state, sizeClass)) {
        const isOthers = BlockTable.isPreferredByOther(state, this.#slot);
        if (sizeClass === allOf || (!isOthers && blocks.frees(block) !== 0)) {
          const isWanted = this.#slab(sizeClass) === wanted;
          if (isWanted && next < 0 && wanted.candidates.count >= MAX_CANDIDATES) next = block;
          if (!isWanted || block >= from) this.#consider(sizeClass, block, sizeClass === allOf);
        }
      }
      block += sizeClass < 0 ? 1 : SPAN[sizeClass];
    }
    wanted.takenThen = blocks.unitsTaken;
    wanted.sharingsThen = sharings;
    return next > from ? next : -1;
  }

  #consider(sizeClass: number, block: number, isShort: boolean): void {
    const slab = this.#slab(sizeClass);
    if (slab.candidates.find(block) !== undefined) return;
    if (slab.candidates.count >= MAX_CANDIDATES && !isShort) slab.hasMore = true;
    else this.#cells.note(slab, sizeClass, block, false);
  }

  #finishClosings(): number {
    if (!this.#closings.isWaiting) return 0;
    return this.#closings.finish((block, sizeClass) => {
      const slab = this.#slabs[sizeClass];
      if (slab !== undefined) this.#cells.forget(slab, block, sizeClass);
    });
  }

  #slab(sizeClass: number): Slab {
    let slab = this.#slabs[sizeClass];
    if (slab === undefined) {
      slab = new Slab(this.#chosen);
      while (this.#slabs.length <= sizeClass) this.#slabs.push(undefined);
      this.#slabs[sizeClass] = slab;
    }
    return slab;
  }
}
