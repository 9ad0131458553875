/**
 * The block table: memory is handed out in blocks, each for cells of one size class (FaRM §3.3). A
 * block is 1 to 16 units of 64 KiB, the fewest that hold eight cells (docs/decisions/0003). Each unit
 * has a state word, changed by compare-and-swap only:
 *
 *   0                            free
 *   (class + 1) << 8             first unit of a block that everyone allocates from
 *   (class + 1) << 8 | slot + 1  the same, preferred by a slot: others leave it to that slot, to stay
 *                                out of its way, until memory is short
 *   CLOSED | (class + 1) << 8 | slot + 1   nobody allocates from it: the slot is giving it back
 *   CONTINUED | distance << 8 | slot + 1   a later unit, so many after its first; or, with
 *                                distance 0, the first unit of a block that is being made
 *
 * An owner is a matter of speed, not of safety: two executors that choose the same free cell both
 * lock it when they commit, and the second one finds another version there (docs/decisions/0023). What
 * must be exclusive is giving a block back. CLOSED makes it so: an executor announces its transaction
 * (`enter`), then sees that a block is open, then chooses a cell. Whoever closes the block advances the
 * epoch after that, and waits until no transaction runs that was announced up to then: by that time
 * everyone who may have seen the block open has ended. Whoever looks for blocks to close is announced,
 * too: otherwise another could give a block back, and make it anew with other cells, between the look at
 * its cells and the closing. A closed block is opened by `reopen` only, called by the one who has a
 * closing for it: a block that were open again while its closing waits could be given back under one
 * who has seen it open since.
 *
 * A block is taken from its last unit to its first, and ceases to be one before its units are
 * given back, so a first unit always has its block behind it; units that a dead slot left without
 * one are freed. A dead slot's blocks, closed ones too, become everyone's.
 *
 * Beside the state, `frees` is 0 if whoever looked at all cells last found none free, and nobody has
 * freed one since. A hint: before the store grows or is full, all blocks are looked at. `first
 * incarnation` is where the incarnations of the block's cells have started, and, when it has been
 * given back, where those of the next will: higher than any that the memory has had. 0 says that it
 * was never part of a block that was given back.
 *
 * `format epoch` is the epoch, its low 32 bits, in which the block was made. It divides the lives of
 * a piece of memory in the log: what was committed in an earlier life has an earlier epoch, what
 * is committed in this one has this epoch or a later one. For a block is given back only when all
 * its cells are free and at rest, the epoch has been advanced after that was seen, every transaction
 * that began before has ended, and nothing has been committed in the block since (`Closings`): so the
 * last commit in it lies before the epoch that whoever takes it next reads, after it has become its
 * owner (`#claim`). And the first commit in the new block announces its epoch later than that.
 */

import { MAX_BLOCK_UNITS, MIN_BLOCK_CELLS, UNIT_BYTES } from "../runtime/limits.ts";
import type { Address } from "./address.ts";
import { addressOf, NO_ADDRESS, regionIdOf, wordOf } from "./address.ts";
import { EPOCH_LOW, SHARINGS } from "./control.ts";
import {
  ALLOCATED,
  INCARNATION,
  INCARNATION_STEP,
  LOCK,
  VERSION_HIGH,
  VERSION_LOW,
} from "./object.ts";
import { loadAcquire, loadAfterLoads } from "./ordering.ts";
import { CELL_BYTES } from "./size-classes.ts";
import type { StoreMemory } from "./store-memory.ts";
import { CONTINUED, unmadeUnit } from "./units.ts";

const STATE = 0;
const FREES = 1;
const FIRST_INCARNATION = 2;
const FORMAT_EPOCH = 3;

const FREE = 0;
/** In the place of the owner: nobody prefers the block. */
const SHARED = 0;
const OWNER_MASK = 0xff;
const CLASS_MASK = 0x1ff;
const CLOSED = 1 << 20;
/** Of blocks with so many cells at most, the first free cell is announced to all. */
const FEW_CELLS = 64;
export const UNIT_WORDS = UNIT_BYTES / 4;
const LARGE_SPAN = 8;

/** Units of a block, by class: the smallest power of two that holds enough cells. */
export const SPAN: readonly number[] = CELL_BYTES.map((bytes) => {
  let units = 1;
  while (units < MAX_BLOCK_UNITS && units * UNIT_BYTES < MIN_BLOCK_CELLS * bytes) units *= 2;
  return units;
});

/** Cells of a block, by class. */
export const BLOCK_CELLS: readonly number[] = CELL_BYTES.map((bytes, sizeClass) =>
  Math.floor((SPAN[sizeClass] * UNIT_BYTES) / bytes),
);

function stateOf(sizeClass: number, owner: number): number {
  return ((sizeClass + 1) << 8) | owner;
}

/** The class of the block that a unit with this state begins, or -1. */
export function classOfState(state: number): number {
  return (state & CONTINUED) === 0 ? ((state >>> 8) & CLASS_MASK) - 1 : -1;
}

/** Where incarnations go on after this highest one. Never 0, which stands for unused memory. */
export function incarnationAfter(highest: number): number {
  const next = (highest - (highest % INCARNATION_STEP) + INCARNATION_STEP) | 0;
  return next === 0 ? INCARNATION_STEP : next;
}

/** What the table says of a unit, for one who copies memory without taking part in its use. */
export class UnitLook {
  /** The class of the block that begins here, or -1. */
  sizeClass = -1;
  /** The first unit of the block that this is a later unit of, or -1. */
  block = -1;
  firstIncarnation = 0;
  formatEpoch = 0;

  isSame(other: UnitLook): boolean {
    return (
      this.sizeClass === other.sizeClass &&
      this.block === other.block &&
      this.firstIncarnation === other.firstIncarnation &&
      this.formatEpoch === other.formatEpoch
    );
  }
}

/** What `isEmpty` has seen. */
export interface EmptyBlock {
  /** The highest incarnation word. */
  highest: number;
  /** All incarnation words added up: another one as soon as a cell is freed. */
  sum: number;
  /** The version of the cell that was freed last. */
  freedHigh: number;
  freedLow: number;
}

/** A block is named by its first unit; units are numbered through all regions. */
export class BlockTable {
  readonly memory: StoreMemory;
  /** See `find`. */
  state = 0;
  /** Units that were taken with this table so far. */
  unitsTaken = 0;
  /** Where the search for free units goes on. */
  #cursor = 0;
  /** Units below this one may be looked at: the limit, as far as it was known when it was needed. */
  #reach = 0;

  constructor(memory: StoreMemory) {
    this.memory = memory;
  }

  /** Units of the regions that exist so far. */
  get count(): number {
    return this.#regionCount() * this.memory.control.unitsPerRegion;
  }

  /** Units that there may be now. */
  get limit(): number {
    return this.memory.control.regionLimit * this.memory.control.unitsPerRegion;
  }

  /** Whether a unit has a place in the table. The limit is read only for one that is beyond what is known. */
  #isKnown(unit: number): boolean {
    if (unit < this.#reach) return true;
    this.#reach = Math.max(this.#reach, this.limit, this.count);
    return unit < this.#reach;
  }

  blockOf(address: Address): number {
    const { unitsPerRegion } = this.memory.control;
    const inRegion = Math.floor(wordOf(address) / UNIT_WORDS);
    const unit = regionIdOf(address) * unitsPerRegion + inRegion;
    if (unit < 0 || inRegion >= unitsPerRegion || !this.#isKnown(unit)) return -1;
    const state = this.#load(unit, STATE);
    return (state & CONTINUED) === 0 ? unit : unit - ((state >>> 8) & 0xff);
  }

  /** The block that `address` lies in, or -1; leaves the block's state in `state`. */
  find(address: Address): number {
    const { unitsPerRegion } = this.memory.control;
    const inRegion = Math.floor(wordOf(address) / UNIT_WORDS);
    const unit = regionIdOf(address) * unitsPerRegion + inRegion;
    if (unit < 0 || inRegion >= unitsPerRegion || !this.#isKnown(unit)) return -1;
    const state = this.#load(unit, STATE);
    if ((state & CONTINUED) === 0) {
      this.state = state;
      return unit;
    }
    const block = unit - ((state >>> 8) & 0xff);
    this.state = this.#load(block, STATE);
    return block;
  }

  /** Whether a block that had `state` may be allocated from for the class. */
  static isOpen(state: number, sizeClass: number): boolean {
    return (state & ~OWNER_MASK) === (sizeClass + 1) << 8;
  }

  static isPreferred(state: number): boolean {
    return (state & OWNER_MASK) !== SHARED;
  }

  /** Whether a slot other than this one prefers a block that had `state`. */
  static isPreferredByOther(state: number, slot: number): boolean {
    return (state & OWNER_MASK) !== SHARED && (state & OWNER_MASK) !== slot + 1;
  }

  stateOf(block: number): number {
    return this.#load(block, STATE);
  }

  firstWordOf(block: number): number {
    return (block % this.memory.control.unitsPerRegion) * UNIT_WORDS;
  }

  regionIdOf(block: number): number {
    return Math.floor(block / this.memory.control.unitsPerRegion);
  }

  cellAt(block: number, index: number, sizeClass: number): Address {
    const word = this.firstWordOf(block) + (index * CELL_BYTES[sizeClass]) / 4;
    return addressOf(this.regionIdOf(block), word);
  }

  /** The class of the block's cells, or -1 if no block begins there. */
  classOf(block: number): number {
    return classOfState(this.#load(block, STATE));
  }

  /** Whether the slot prefers the block, or is giving it back. */
  isOwnedBy(block: number, slot: number): boolean {
    const state = this.#load(block, STATE);
    return (state & CONTINUED) === 0 && (state & OWNER_MASK) === slot + 1;
  }

  /** The address of the cell that `address` lies in, or NO_ADDRESS if it is in no block. */
  cellOf(address: Address): Address {
    const block = this.blockOf(address);
    const sizeClass = block < 0 ? -1 : this.classOf(block);
    if (sizeClass < 0) return NO_ADDRESS;
    const words = CELL_BYTES[sizeClass] / 4;
    const index = Math.floor((wordOf(address) - this.firstWordOf(block)) / words);
    return index < BLOCK_CELLS[sizeClass] ? this.cellAt(block, index, sizeClass) : NO_ADDRESS;
  }

  frees(block: number): number {
    return this.#load(block, FREES);
  }

  /** A cell of the block is free, and not everyone knows. */
  countFree(block: number): void {
    const { control } = this.memory;
    const before = Atomics.add(control.i32, control.unitAt(block) + FREES, 1);
    if (before === 0 && BLOCK_CELLS[this.classOf(block)] <= FEW_CELLS) this.#announce();
  }

  /** All cells were looked at after `frees` was `seen`, and none was free. */
  foundFull(block: number, seen: number): void {
    const { control } = this.memory;
    Atomics.compareExchange(control.i32, control.unitAt(block) + FREES, seen, 0);
  }

  /** Counts the blocks that have become everyone's, and may have free cells. */
  get sharings(): number {
    return Atomics.load(this.memory.control.i32, SHARINGS);
  }

  /** Makes a block out of free units, preferred by the slot or everyone's; -1 if there are none. */
  take(sizeClass: number, slot: number, prefers = true): number {
    // Regions beyond the limit are about to be given back.
    const count = Math.min(this.count, this.limit);
    // Large blocks come from the far end, so that small ones do not break up all the room.
    if (SPAN[sizeClass] >= LARGE_SPAN) return this.#takeFromEnd(sizeClass, slot, prefers, count);
    const block = this.#takeFree(sizeClass, slot, prefers, this.#cursor, count);
    if (block >= 0) this.#cursor = block;
    return block;
  }

  /** The same in one region only. */
  takeIn(regionId: number, sizeClass: number, slot: number, prefers = true): number {
    const { unitsPerRegion, regionLimit } = this.memory.control;
    if (regionId >= regionLimit) return -1;
    return this.#takeFree(sizeClass, slot, prefers, regionId * unitsPerRegion, unitsPerRegion);
  }

  /** The region to create next, or -1 if the store has all that it may have. */
  nextRegion(): number {
    const next = this.#regionCount();
    return next < this.memory.control.regionLimit ? next : -1;
  }

  /** How many regions are needed for what is in use: the rest, at the end, is all free. */
  regionsInUse(): number {
    const { unitsPerRegion } = this.memory.control;
    let unit = this.count;
    while (unit > 0 && this.#load(unit - 1, STATE) === FREE) unit--;
    return Math.ceil(unit / unitsPerRegion);
  }

  /** Takes all units of a region for a slot, so that nobody else can; false if one of them is in use. */
  takeRegion(regionId: number, slot: number): boolean {
    const { unitsPerRegion } = this.memory.control;
    const first = regionId * unitsPerRegion;
    for (let unit = first; unit < first + unitsPerRegion; unit++) {
      if (this.#change(unit, FREE, unmadeUnit(slot))) continue;
      this.returnRegion(regionId, slot);
      return false;
    }
    return true;
  }

  /** Frees what `takeRegion` has taken. */
  returnRegion(regionId: number, slot: number): void {
    const { unitsPerRegion } = this.memory.control;
    const first = regionId * unitsPerRegion;
    for (let unit = first; unit < first + unitsPerRegion; unit++) {
      this.#change(unit, unmadeUnit(slot), FREE);
    }
  }

  /** The blocks of an executor that left or died are everyone's. */
  orphan(slot: number): void {
    for (let unit = 0; unit < this.count; unit++) {
      const state = this.#load(unit, STATE);
      if ((state & OWNER_MASK) !== slot + 1) continue;
      if ((state & CONTINUED) === 0) {
        // The hint first: once the block has another state, nobody comes back to it.
        this.countFree(unit);
        this.#change(unit, state, stateOf(classOfState(state), SHARED));
      } else if (!this.#hasFirst(unit, state)) {
        this.#change(unit, state, FREE);
      }
    }
    // Even if none is left: one who died over the same task may not have got here.
    this.#announce();
  }

  /** The slot does not prefer the block any more. One that it has closed stays closed. */
  share(block: number, slot: number): boolean {
    const sizeClass = this.classOf(block);
    return sizeClass >= 0 && this.#open(block, stateOf(sizeClass, slot + 1), sizeClass);
  }

  /** The slot does not give the block back that it has closed: it is everyone's. */
  reopen(block: number, sizeClass: number, slot: number): boolean {
    return this.#open(block, CLOSED | stateOf(sizeClass, slot + 1), sizeClass);
  }

  #open(block: number, from: number, sizeClass: number): boolean {
    if (!this.#change(block, from, stateOf(sizeClass, SHARED))) return false;
    if (this.frees(block) !== 0) this.#announce();
    return true;
  }

  /** Closes a block of the class, whoever prefers it: from now on nobody chooses cells in it. */
  close(block: number, sizeClass: number, slot: number): boolean {
    const state = this.#load(block, STATE);
    if (!BlockTable.isOpen(state, sizeClass)) return false;
    if (!this.#change(block, state, CLOSED | stateOf(sizeClass, slot + 1))) return false;
    // The later units bear the name of whoever took them first; ours now, for `release`.
    const { control } = this.memory;
    for (let distance = 1; distance < SPAN[sizeClass]; distance++) {
      const later = CONTINUED | (distance << 8) | (slot + 1);
      Atomics.store(control.i32, control.unitAt(block + distance) + STATE, later);
    }
    return true;
  }

  /** Looks whether all cells of a block are free and at rest; what it has seen is left in `seen`. */
  isEmpty(block: number, sizeClass: number, seen: EmptyBlock): boolean {
    const { i32 } = this.memory.region(this.regionIdOf(block));
    const words = CELL_BYTES[sizeClass] / 4;
    const first = this.firstWordOf(block);
    seen.highest = 0;
    seen.sum = 0;
    let high = 0;
    let low = 0;
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      const at = first + index * words;
      const word = loadAcquire(i32, at + INCARNATION);
      // Locked: the commit that frees it has not written its version yet.
      if ((word & ALLOCATED) !== 0 || loadAcquire(i32, at + LOCK) !== 0) return false;
      if (word >>> 0 > seen.highest) seen.highest = word >>> 0;
      seen.sum = (seen.sum + word) | 0;
      const itsHigh = i32[at + VERSION_HIGH] >>> 0;
      const itsLow = i32[at + VERSION_LOW] >>> 0;
      if (itsHigh < high || (itsHigh === high && itsLow <= low)) continue;
      high = itsHigh;
      low = itsLow;
    }
    seen.freedHigh = high | 0;
    seen.freedLow = low | 0;
    return true;
  }

  /**
   * Gives an empty block back to be used for any class. The caller has closed it and waited until
   * no transaction can still hold an address inside it. The first incarnations are noted before
   * the block ceases to be one, and the cells are left as they are: `#format` clears them.
   */
  release(block: number, sizeClass: number, slot: number, highestIncarnation: number): void {
    const { control } = this.memory;
    const span = SPAN[sizeClass];
    const next = incarnationAfter(highestIncarnation);
    for (let unit = block; unit < block + span; unit++) {
      control.i32[control.unitAt(unit) + FIRST_INCARNATION] = next;
    }
    const unmade = unmadeUnit(slot);
    if (!this.#change(block, CLOSED | stateOf(sizeClass, slot + 1), unmade)) return;
    for (let distance = 1; distance < span; distance++) {
      this.#change(block + distance, CONTINUED | (distance << 8) | (slot + 1), FREE);
    }
    this.#change(block, unmade, FREE);
    this.#cursor = Math.min(this.#cursor, block);
  }

  /**
   * Looks at a unit. What was copied between two looks that are the same, inside of `enter` and
   * `leave`, is of one life of the memory.
   */
  look(unit: number, into: UnitLook): void {
    const { control } = this.memory;
    const state = loadAfterLoads(control.i32, control.unitAt(unit) + STATE);
    const distance = (state & CONTINUED) === 0 ? 0 : (state >>> 8) & 0xff;
    into.sizeClass = classOfState(state);
    into.block = distance > 0 && this.#hasFirst(unit, state) ? unit - distance : -1;
    into.firstIncarnation = control.i32[control.unitAt(unit) + FIRST_INCARNATION];
    into.formatEpoch = control.i32[control.unitAt(unit) + FORMAT_EPOCH];
  }

  /** For recovery: a block as it was, in a table of zeroes, without an owner. */
  restore(block: number, sizeClass: number, firstIncarnation: number, formatEpoch: number): void {
    for (let distance = 0; distance < SPAN[sizeClass]; distance++) {
      const state = distance === 0 ? stateOf(sizeClass, SHARED) : CONTINUED | (distance << 8);
      this.#restore(block + distance, state, firstIncarnation, formatEpoch);
    }
  }

  /** For recovery: frees all units of a region if every block in it is empty; says whether it is. */
  clearIfEmpty(regionId: number): boolean {
    const { unitsPerRegion } = this.memory.control;
    const seen: EmptyBlock = { highest: 0, sum: 0, freedHigh: 0, freedLow: 0 };
    const first = regionId * unitsPerRegion;
    const found: { block: number; sizeClass: number; highest: number }[] = [];
    for (let unit = first; unit < first + unitsPerRegion; ) {
      const sizeClass = this.classOf(unit);
      if (sizeClass >= 0) {
        if (!this.isEmpty(unit, sizeClass, seen)) return false;
        found.push({ block: unit, sizeClass, highest: seen.highest });
      }
      unit += sizeClass < 0 ? 1 : SPAN[sizeClass];
    }
    for (const { block, sizeClass, highest } of found) {
      const next = incarnationAfter(highest);
      for (let unit = block; unit < block + SPAN[sizeClass]; unit++) this.restoreFree(unit, next);
    }
    return true;
  }

  /** For recovery: a unit that is free, but was not always. */
  restoreFree(unit: number, firstIncarnation: number): void {
    this.#restore(unit, FREE, firstIncarnation, 0);
  }

  #restore(unit: number, state: number, firstIncarnation: number, formatEpoch: number): void {
    const { control } = this.memory;
    const at = control.unitAt(unit);
    control.i32[at + FREES] = 1;
    control.i32[at + FIRST_INCARNATION] = firstIncarnation;
    control.i32[at + FORMAT_EPOCH] = formatEpoch;
    Atomics.store(control.i32, at + STATE, state);
  }

  freeUnits(): number {
    let free = 0;
    for (let unit = 0; unit < this.count; unit++) {
      if (this.#load(unit, STATE) === FREE) free++;
    }
    return free;
  }

  #takeFromEnd(sizeClass: number, slot: number, prefers: boolean, count: number): number {
    const span = SPAN[sizeClass];
    for (let block = count - span; block >= 0; block -= span) {
      if (this.#load(block, STATE) === FREE && this.#claim(block, sizeClass, slot, prefers)) {
        return block;
      }
    }
    return -1;
  }

  #takeFree(
    sizeClass: number,
    slot: number,
    prefers: boolean,
    start: number,
    length: number,
  ): number {
    const span = SPAN[sizeClass];
    const count = Math.min(this.count, this.limit);
    if (count === 0) return -1;
    const aligned = start - (start % span);
    for (let step = 0; step < length; step += span) {
      const block = (aligned + step) % count;
      if (this.#load(block, STATE) === FREE && this.#claim(block, sizeClass, slot, prefers)) {
        return block;
      }
    }
    return -1;
  }

  #claim(block: number, sizeClass: number, slot: number, prefers: boolean): boolean {
    const span = SPAN[sizeClass];
    for (let distance = span - 1; distance > 0; distance--) {
      const state = CONTINUED | (distance << 8) | (slot + 1);
      if (this.#change(block + distance, FREE, state)) continue;
      this.#unclaim(block, distance + 1, span);
      return false;
    }
    if (!this.#change(block, FREE, unmadeUnit(slot))) {
      this.#unclaim(block, 1, span);
      return false;
    }
    // All units are ours now, and the cells get their first incarnation before anyone sees them.
    this.#format(block, span, sizeClass);
    const { control } = this.memory;
    Atomics.store(control.i32, control.unitAt(block) + FREES, 1);
    const state = stateOf(sizeClass, prefers ? slot + 1 : SHARED);
    Atomics.store(control.i32, control.unitAt(block) + STATE, state);
    if (!prefers) this.#announce();
    this.unitsTaken += span;
    return true;
  }

  #unclaim(block: number, from: number, to: number): void {
    const { control } = this.memory;
    for (let distance = from; distance < to; distance++) {
      Atomics.store(control.i32, control.unitAt(block + distance) + STATE, FREE);
    }
  }

  #announce(): void {
    Atomics.add(this.memory.control.i32, SHARINGS, 1);
  }

  #hasFirst(unit: number, state: number): boolean {
    const distance = (state >>> 8) & 0xff;
    const sizeClass = this.classOf(unit - distance);
    return sizeClass >= 0 && SPAN[sizeClass] > distance;
  }

  #format(block: number, span: number, sizeClass: number): void {
    const { control } = this.memory;
    let start = 0;
    for (let unit = block; unit < block + span; unit++) {
      start = Math.max(start, control.i32[control.unitAt(unit) + FIRST_INCARNATION] >>> 0);
    }
    const epoch = loadAcquire(control.i32, EPOCH_LOW);
    for (let unit = block; unit < block + span; unit++) {
      control.i32[control.unitAt(unit) + FIRST_INCARNATION] = start;
      control.i32[control.unitAt(unit) + FORMAT_EPOCH] = epoch;
    }
    // Memory that no block has had yet is zeroed; what others left, or died over, is not.
    if (start === 0) return;
    const { i32 } = this.memory.region(this.regionIdOf(block));
    const words = CELL_BYTES[sizeClass] / 4;
    const first = this.firstWordOf(block);
    i32.fill(0, first, first + span * UNIT_WORDS);
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      i32[first + index * words + INCARNATION] = start;
    }
  }

  #regionCount(): number {
    const { regions } = this.memory.control.geometry;
    let count = 0;
    while (count < regions && this.memory.isReady(count)) count++;
    return count;
  }

  #load(unit: number, word: number): number {
    const { control } = this.memory;
    return Atomics.load(control.i32, control.unitAt(unit) + word);
  }

  #change(unit: number, from: number, to: number): boolean {
    const { control } = this.memory;
    const at = control.unitAt(unit) + STATE;
    return Atomics.compareExchange(control.i32, at, from, to) === from;
  }
}
