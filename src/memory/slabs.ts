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
 * `#known` holds the cells that are free in memory but spoken for here: handed to a transaction
 * that has not ended, or waiting in a free list. A sweep passes over them. What a list has is looked
 * at again before it is handed out: others may have taken the cell, or given the block back.
 *
 * A freed array needs care: its elements had headers in the middle of the cell, and a transaction
 * that read one may still try to lock it. Such a cell rests until every transaction that was
 * running when it was found has ended, and every snapshot that can still see the array; the same
 * holds for a block that changes its class (closings.ts).
 */

import {
  CELLS_PER_SEARCH,
  HOT_CLASSES,
  MAX_CANDIDATES,
  MAX_CELL_EXCESS,
  MAX_FREE_CELLS,
  UNIT_BYTES,
} from "../runtime/limits.ts";
import type { Address } from "./address.ts";
import { addressOf, NO_ADDRESS, regionIdOf, wordOf } from "./address.ts";
import { BLOCK_CELLS, BlockTable, classOfState, SPAN } from "./blocks.ts";
import { type Candidate, Candidates, type Rotation } from "./candidates.ts";
import { Closings } from "./closings.ts";
import { ALLOCATED, ARRAY, INCARNATION, LOCK, VERSION_HIGH, VERSION_LOW } from "./object.ts";
import { loadAcquire } from "./ordering.ts";
import { CELL_BYTES } from "./size-classes.ts";
import type { StoreMemory } from "./store-memory.ts";

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

/** A class that is not in use here much makes do with cells that are larger by this at most. */
const LARGER_AT_MOST = 1.125;
/** When cells of this part of the store have been freed here, empty blocks are looked for. */
const FREED_PART = 1 / 16;
/** The table is looked at again when this part of the store has been taken in new blocks. */
const TAKEN_PART = 1 / 64;

interface RestingCell {
  readonly cell: Address;
  /** Its incarnation word. */
  readonly word: number;
  readonly since: number;
  /** The version that it was freed with. */
  readonly high: number;
  readonly low: number;
}

const STEPS = [3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41] as const;

/** How far an executor goes from one cell of a block to the next: a prime that leads to all cells. */
function stepOf(slot: number, cells: number): number {
  for (let i = 0; i < STEPS.length; i++) {
    const step = STEPS[(slot + i) % STEPS.length];
    if (cells % step !== 0) return step;
  }
  return 1;
}

class Slab {
  readonly candidates = new Candidates();
  readonly freeCells: Address[] = [];
  resting: RestingCell[] = [];
  /** When the table was looked at for blocks of this class: units taken until then, and sharings. */
  takenThen = -1;
  sharingsThen = 0;
  /** Whether there were more than the candidates that were noted. */
  hasMore = false;
  /** Cells that were chosen in all slabs when this one needed a block last. */
  chosenThen = Number.NEGATIVE_INFINITY;
  /** Cells chosen here, now and when the background looked last. */
  chosen = 0;
  chosenLately = 0;
  /** The block that this executor prefers, or -1. */
  preferred = -1;
}

export class Slabs {
  readonly blocks: BlockTable;
  /** The incarnation word that the cell which `allocate` returned last was seen with. */
  chosenWord = 0;
  #chosenClass = 0;
  readonly #memory: StoreMemory;
  readonly #slot: number;
  readonly #host: SlabHost;
  readonly #closings: Closings;
  readonly #slabs: (Slab | undefined)[] = [];
  /** With the class of each: an address may be in the list of a class that its memory had before. */
  readonly #known = new Map<Address, number>();
  /** Cells that were chosen so far. */
  #chosen = 0;
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
    if (cell !== NO_ADDRESS) this.#known.set(cell, this.#chosenClass);
    return cell;
  }

  /** The transaction committed: the header says now that the cell is taken. */
  committed(cell: Address): void {
    this.#known.delete(cell);
  }

  /** The transaction did not commit: the cell is as free as it was, unless another has taken it. */
  returned(cell: Address): void {
    const block = this.blocks.find(cell);
    const sizeClass = block < 0 ? -1 : classOfState(this.blocks.state);
    if (sizeClass < 0) {
      this.#known.delete(cell);
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
    } else if (
      !BlockTable.isPreferredByOther(state, this.#slot) &&
      this.#known.get(cell) !== sizeClass
    ) {
      this.#known.set(cell, sizeClass);
      slab.freeCells.push(cell);
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
    this.#closings.begin(isShort, this.#reservedBlocks());
    return released + this.#finishClosings();
  }

  /** Looks for memory that a class can use by now; false if there is none. */
  reclaim(sizeClass: number): boolean {
    return this.releaseEmptyBlocks() > 0 || this.#hasRested(this.#slab(sizeClass));
  }

  /** Whether there is memory that a class could use if others moved on. */
  isWaiting(sizeClass: number): boolean {
    return this.#closings.isWaiting || this.#slab(sizeClass).resting.length > 0;
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
    for (const slab of this.#slabs) {
      if (slab === undefined) continue;
      if (slab.preferred >= 0 && slab.chosen === slab.chosenLately) this.#leave(slab);
      slab.chosenLately = slab.chosen;
    }
    if (this.#isReleaseDue()) this.releaseEmptyBlocks(false);
    else this.#finishClosings();
  }

  close(): void {
    this.blocks.orphan(this.#slot);
    this.#slabs.length = 0;
    this.#known.clear();
  }

  #anywhere(slab: Slab, sizeClass: number): Address {
    const listed = this.#listed(slab, sizeClass);
    if (listed !== NO_ADDRESS) return listed;
    const cell = this.#inCandidates(slab, slab.candidates.everywhere, sizeClass);
    if (cell !== NO_ADDRESS) return cell;
    const rested = this.#rested(slab, sizeClass);
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
      const inBlock = this.#listedBetween(slab, sizeClass, start, end);
      if (inBlock !== NO_ADDRESS) return inBlock;
      const sameBlock = candidates.find(block);
      if (sameBlock !== undefined) {
        const cell = this.#sweep(slab, sameBlock, sizeClass);
        if (cell !== NO_ADDRESS) return cell;
      }
    }
    const start = addressOf(regionId, 0);
    const end = addressOf(regionId + 1, 0);
    const inRegion = this.#listedBetween(slab, sizeClass, start, end);
    if (inRegion !== NO_ADDRESS) return inRegion;
    const region = candidates.inRegion(regionId);
    const cell = this.#inCandidates(slab, region, sizeClass);
    if (cell !== NO_ADDRESS) return cell;
    // A block for this region alone is worth while only for a class that is used a lot.
    if (!this.#isHot(slab, sizeClass) || this.#isLookDue(slab, true) || !region.mayTake()) {
      return NO_ADDRESS;
    }
    this.#beginBlock(slab);
    const taken = blocks.takeIn(regionId, sizeClass, this.#slot, true);
    if (taken < 0) {
      region.foundFull();
      return NO_ADDRESS;
    }
    slab.preferred = taken;
    return this.#sweep(slab, this.#note(slab, sizeClass, taken, true), sizeClass);
  }

  /** The newest cell of the free list that is free indeed. */
  #listed(slab: Slab, sizeClass: number): Address {
    for (;;) {
      const cell = slab.freeCells.pop();
      if (cell === undefined) return NO_ADDRESS;
      if (this.#isFree(cell, sizeClass)) return cell;
      this.#unknow(cell, sizeClass);
    }
  }

  /** The newest free cells are the likeliest to be close; a longer search costs more than it gains. */
  #listedBetween(slab: Slab, sizeClass: number, start: number, end: number): Address {
    const { freeCells } = slab;
    const last = Math.max(0, freeCells.length - CELLS_PER_SEARCH);
    for (let index = freeCells.length - 1; index >= last; index--) {
      const cell = freeCells[index];
      if (cell < start || cell >= end) continue;
      freeCells.splice(index, 1);
      if (this.#isFree(cell, sizeClass)) return cell;
      this.#unknow(cell, sizeClass);
    }
    return NO_ADDRESS;
  }

  /** Whether a cell that was free, and no array, is so still. Leaves its word in `chosenWord`. */
  #isFree(cell: Address, sizeClass: number): boolean {
    if (this.blocks.find(cell) < 0 || !BlockTable.isOpen(this.blocks.state, sizeClass))
      return false;
    const { i32 } = this.#memory.regionOf(cell);
    const at = wordOf(cell);
    this.#choose(loadAcquire(i32, at + INCARNATION), sizeClass);
    return (this.chosenWord & (ALLOCATED | ARRAY)) === 0 && loadAcquire(i32, at + LOCK) === 0;
  }

  #inCandidates(slab: Slab, rotation: Rotation, sizeClass: number): Address {
    while (rotation.blocks.length > 0) {
      const cell = this.#sweep(slab, rotation.current, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
    }
    return NO_ADDRESS;
  }

  /** The next free cell of a block. If it has none the block is no candidate any more. */
  #sweep(slab: Slab, candidate: Candidate, sizeClass: number): Address {
    const { block } = candidate;
    const { blocks } = this;
    if (!BlockTable.isOpen(blocks.stateOf(block), sizeClass)) {
      this.#drop(slab, candidate);
      return NO_ADDRESS;
    }
    const region = this.#memory.region(candidate.regionId);
    const words = CELL_BYTES[sizeClass] / 4;
    const cells = BLOCK_CELLS[sizeClass];
    const first = blocks.firstWordOf(block);
    for (let round = 0; round < 2; round++) {
      while (candidate.left > 0) {
        const index = candidate.cursor;
        candidate.left--;
        candidate.cursor = (index + candidate.step) % cells;
        const at = first + index * words;
        const word = loadAcquire(region.i32, at + INCARNATION);
        // Still locked: its version is not there yet. It will be counted as freed, and found.
        if ((word & ALLOCATED) !== 0 || loadAcquire(region.i32, at + LOCK) !== 0) continue;
        const cell = addressOf(candidate.regionId, at);
        if (this.#known.get(cell) === sizeClass) {
          candidate.isPassedOver = true;
          continue;
        }
        if ((word & ARRAY) === 0) {
          this.#choose(word, sizeClass);
          return cell;
        }
        candidate.isPassedOver = true;
        this.#known.set(cell, sizeClass);
        const high = region.i32[at + VERSION_HIGH];
        const low = region.i32[at + VERSION_LOW];
        slab.resting.push({ cell, word, since: this.#host.mark(), high, low });
      }
      const frees = blocks.frees(block);
      if (frees === candidate.frees) break;
      this.#beginRound(candidate, cells, frees);
    }
    if (candidate.left === 0 && !candidate.isPassedOver) blocks.foundFull(block, candidate.frees);
    this.#drop(slab, candidate);
    return NO_ADDRESS;
  }

  #beginRound(candidate: Candidate, cells: number, frees: number): void {
    candidate.left = cells;
    candidate.frees = frees;
    candidate.isPassedOver = false;
  }

  /** The oldest resting cell, if its time is over. */
  #rested(slab: Slab, sizeClass: number): Address {
    while (this.#hasRested(slab)) {
      const { cell, word } = slab.resting.shift()!;
      const { i32 } = this.#memory.regionOf(cell);
      const isOpen = this.blocks.find(cell) >= 0 && BlockTable.isOpen(this.blocks.state, sizeClass);
      // Another may have used it meanwhile: then this is an other life of the cell.
      if (isOpen && loadAcquire(i32, wordOf(cell) + INCARNATION) === word) {
        this.#choose(word, sizeClass);
        return cell;
      }
      this.#unknow(cell, sizeClass);
    }
    return NO_ADDRESS;
  }

  #choose(word: number, sizeClass: number): void {
    this.chosenWord = word;
    this.#chosenClass = sizeClass;
  }

  #unknow(cell: Address, sizeClass: number): void {
    if (this.#known.get(cell) === sizeClass) this.#known.delete(cell);
  }

  #hasRested(slab: Slab): boolean {
    const [oldest] = slab.resting;
    if (oldest === undefined || !this.#host.isPast(oldest.since)) return false;
    return !this.#host.isSeen(oldest.high, oldest.low);
  }

  /** No block that is known here has a cell: others' blocks, larger cells, a new block, a new region. */
  #fromOtherBlocks(slab: Slab, sizeClass: number): Address {
    const isHot = this.#isHot(slab, sizeClass);
    this.#beginBlock(slab);
    this.#finishClosings();
    while (this.#isLookDue(slab, isHot)) {
      this.#look(slab, -1);
      const cell = this.#inCandidates(slab, slab.candidates.everywhere, sizeClass);
      if (cell !== NO_ADDRESS) return cell;
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
        const found = this.#inCandidates(slab, slab.candidates.everywhere, sizeClass);
        if (found !== NO_ADDRESS) return found;
      }
      const regionId = this.blocks.nextRegion();
      if (regionId < 0) return this.#inLarger(sizeClass, MAX_CELL_EXCESS);
      if (this.#memory.createRegion(regionId, this.#slot) === "busy") {
        this.#host.waitForCreator(regionId);
      }
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
    return this.#sweep(slab, this.#note(slab, sizeClass, block, true), sizeClass);
  }

  /** In candidates of larger classes, up to so many times as large. */
  #inLarger(sizeClass: number, atMost: number): Address {
    const most = CELL_BYTES[sizeClass] * atMost;
    for (let larger = sizeClass + 1; CELL_BYTES[larger] <= most; larger++) {
      const slab = this.#slabs[larger];
      if (slab === undefined) continue;
      const cell = this.#inCandidates(slab, slab.candidates.everywhere, larger);
      if (cell !== NO_ADDRESS) return cell;
    }
    return NO_ADDRESS;
  }

  /** The class takes a good part of all that is allocated here. To be asked before `#beginBlock`. */
  #isHot(slab: Slab, sizeClass: number): boolean {
    return this.#chosen - slab.chosenThen <= HOT_CLASSES * BLOCK_CELLS[sizeClass];
  }

  #beginBlock(slab: Slab): void {
    slab.chosenThen = this.#chosen;
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
   * `allOf`, all blocks count, whoever prefers them: memory is short.
   */
  #look(wanted: Slab, allOf: number): void {
    const { blocks } = this;
    const { sharings, count } = blocks;
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
          this.#consider(sizeClass, block, sizeClass === allOf);
        }
      }
      block += sizeClass < 0 ? 1 : SPAN[sizeClass];
    }
    wanted.takenThen = blocks.unitsTaken;
    wanted.sharingsThen = sharings;
  }

  #consider(sizeClass: number, block: number, isShort: boolean): void {
    const slab = this.#slab(sizeClass);
    if (slab.candidates.find(block) !== undefined) return;
    if (slab.candidates.count >= MAX_CANDIDATES && !isShort) slab.hasMore = true;
    else this.#note(slab, sizeClass, block, false);
  }

  #note(slab: Slab, sizeClass: number, block: number, isNew: boolean): Candidate {
    const known = slab.candidates.find(block);
    if (known !== undefined) return known;
    const cells = BLOCK_CELLS[sizeClass];
    const frees = this.blocks.frees(block);
    // Where everyone allocates, each looks at the cells in another order.
    const isMine = block === slab.preferred;
    const candidate = {
      block,
      regionId: this.blocks.regionIdOf(block),
      cursor: isMine ? 0 : (this.#slot * 31) % cells,
      step: isMine ? 1 : stepOf(this.#slot, cells),
      left: cells,
      frees,
      isPassedOver: false,
    };
    slab.candidates.add(candidate, isNew);
    return candidate;
  }

  #drop(slab: Slab, candidate: Candidate): void {
    slab.candidates.remove(candidate);
    if (slab.preferred === candidate.block) this.#leave(slab);
  }

  /** Leaves the block that was preferred to everyone. */
  #leave(slab: Slab): void {
    this.blocks.share(slab.preferred, this.#slot);
    slab.preferred = -1;
  }

  #finishClosings(): number {
    if (!this.#closings.isWaiting) return 0;
    return this.#closings.finish((block, sizeClass) => this.#forget(block, sizeClass));
  }

  #forget(block: number, sizeClass: number): void {
    const slab = this.#slabs[sizeClass];
    if (slab === undefined) return;
    const start = this.blocks.cellAt(block, 0, sizeClass);
    const end = start + BLOCK_CELLS[sizeClass] * CELL_BYTES[sizeClass];
    const isElsewhere = (cell: Address): boolean => {
      if (cell < start || cell >= end) return true;
      this.#unknow(cell, sizeClass);
      return false;
    };
    const candidate = slab.candidates.find(block);
    if (candidate !== undefined) slab.candidates.remove(candidate);
    if (slab.preferred === block) slab.preferred = -1;
    const kept = slab.freeCells.filter(isElsewhere);
    slab.freeCells.length = 0;
    for (const cell of kept) slab.freeCells.push(cell);
    slab.resting = slab.resting.filter(({ cell }) => isElsewhere(cell));
  }

  /** Blocks in which a transaction of this executor that has not ended holds a cell. */
  #reservedBlocks(): Set<number> {
    const waiting = new Set<Address>();
    for (const slab of this.#slabs) {
      if (slab === undefined) continue;
      for (const cell of slab.freeCells) waiting.add(cell);
      for (const { cell } of slab.resting) waiting.add(cell);
    }
    const reserved = new Set<number>();
    for (const cell of this.#known.keys()) {
      if (!waiting.has(cell)) reserved.add(this.blocks.blockOf(cell));
    }
    return reserved;
  }

  #slab(sizeClass: number): Slab {
    let slab = this.#slabs[sizeClass];
    if (slab === undefined) {
      slab = new Slab();
      while (this.#slabs.length <= sizeClass) this.#slabs.push(undefined);
      this.#slabs[sizeClass] = slab;
    }
    return slab;
  }
}
