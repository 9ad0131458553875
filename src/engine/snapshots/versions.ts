/**
 * Old versions, for those who write and those who read. A commit keeps what it overwrites in the
 * ring of its slot, if a registered snapshot needs it, between validation and the commit point: the
 * objects are locked, the TID is chosen, and should the committer die, recovery has nothing more
 * to do than without snapshots. A reader finds in the rings and the overflow area what is too new
 * in its place.
 *
 * The invariant: while a snapshot is registered, every object that it can reach is in its place
 * in the version that the snapshot sees, or that version is in a ring or in the overflow area.
 *
 * No commit fails for a snapshot: where there is no room for a version, snapshots are released.
 *
 * Snapshots of a cluster see a transaction that spans machines from one epoch on, the same at all its nodes, though
 * it may be installed in a later one. For those in between a commit keeps what it makes, too (`keepEarly`).
 */

import { addressOf } from "../../memory/address.ts";
import { RINGS_IN_USE } from "../../memory/control.ts";
import { ARRAY, HEADER_BYTES } from "../../memory/object.ts";
import { loadAfterLoads, raiseTo } from "../../memory/ordering.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import { AssertionError } from "../../runtime/assert.ts";
import {
  type AccessSet,
  BUFFER,
  CELL,
  DIRTY_FROM,
  DIRTY_TO,
  EDITS,
  DATA_WORDS as ENTRY_DATA_WORDS,
  INCARNATION as ENTRY_INCARNATION,
  REGION_ID as ENTRY_REGION_ID,
  VERSION_HIGH as ENTRY_VERSION_HIGH,
  VERSION_LOW as ENTRY_VERSION_LOW,
  WORD as ENTRY_WORD,
  FREE,
  KIND,
  NEW,
  SPLICED,
} from "../access-set.ts";
import type { Executor } from "../executor.ts";
import { copyWords } from "../journal.ts";
import { isSignal } from "../signals.ts";
import { VERSIONS_KEPT } from "../slot.ts";
import { applySplice } from "../splices.ts";
import { isLater, limitHigh, limitLow, slotOf } from "../tid.ts";
import { Keeper } from "./keeper.ts";
import { OverflowArea } from "./overflow.ts";
import { Limits, Registry } from "./registry.ts";
import { VersionRing } from "./ring.ts";
import type { Snapshot } from "./snapshot.ts";
import {
  DATA,
  DATA_WORDS,
  EARLY,
  INCARNATION,
  Kept,
  KeptEarly,
  VERSION_HIGH,
  VERSION_LOW,
} from "./version.ts";

/** What a snapshot sees. */
type Limit = Pick<Snapshot, "limitHigh" | "limitLow" | "isOfCluster">;

export class Versions {
  readonly registry: Registry;
  readonly overflow: OverflowArea;
  readonly keeper: Keeper;
  readonly #executor: Executor;
  readonly #rings: (VersionRing | undefined)[] = [];
  readonly #limits = new Limits();
  readonly #kept = new Kept();
  readonly #keptEarly = new KeptEarly();

  constructor(executor: Executor) {
    this.#executor = executor;
    this.registry = new Registry(executor.memory.control);
    this.overflow = new OverflowArea(executor.memory);
    this.keeper = new Keeper(executor, this);
  }

  /** Slots that may have a ring. */
  get ringsInUse(): number {
    return Atomics.load(this.#executor.memory.control.i32, RINGS_IN_USE);
  }

  /** The ring of a slot, or undefined if it has none. */
  ringOf(slot: number): VersionRing | undefined {
    const ring = this.#rings[slot];
    if (ring !== undefined) return ring;
    if (!this.#executor.memory.hasRing(slot)) return undefined;
    return this.#attach(slot);
  }

  /**
   * Keeps the versions that a commit is about to overwrite. The write set is locked, its epoch
   * announced, its TID chosen.
   */
  keep(
    set: AccessSet,
    order: Int32Array,
    writes: number,
    successorHigh: number,
    successorLow: number,
  ): void {
    const limits = this.#limits;
    let newest = this.#newestBefore(successorHigh, successorLow);
    if (newest < 0) return;
    const { words } = set;
    const kept = this.#kept;
    kept.successorHigh = successorHigh;
    kept.successorLow = successorLow;
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      kept.versionHigh = words[entry + ENTRY_VERSION_HIGH];
      kept.versionLow = words[entry + ENTRY_VERSION_LOW];
      if ((words[entry + KIND] & NEW) !== 0) continue;
      if (isLater(kept.versionHigh, kept.versionLow, limits.high[newest], limits.low[newest])) {
        continue;
      }
      kept.i32 = set.regionOf(entry).i32;
      kept.regionId = words[entry + ENTRY_REGION_ID];
      kept.word = words[entry + ENTRY_WORD];
      kept.dataWords = this.#dataWords(set, entry);
      if (!this.#keepOne(kept)) {
        // Snapshots were released to make room: perhaps nobody needs the rest any more.
        limits.isComplete = false;
        newest = this.#newestBefore(successorHigh, successorLow);
        if (newest < 0) return;
        i--;
      }
    }
  }

  /**
   * The newest of the snapshots that lie before a TID: if that one does not need a version that
   * the TID overwrites, none does. -1 if there is none. The list of before serves as long as
   * nothing was registered since; that some may have been released only makes it too long.
   */
  #newestBefore(high: number, low: number): number {
    const limits = this.#limits;
    if (!this.registry.isListed(limits)) this.registry.list(limits);
    let newest = limits.count - 1;
    while (newest >= 0 && !isLater(high, low, limits.high[newest], limits.low[newest])) newest--;
    return newest;
  }

  /** False if snapshots had to be released first. */
  #keepOne(kept: Kept): boolean {
    const { counters, counterBase, slot } = this.#executor;
    try {
      const ring = this.ringOf(slot) ?? this.#attach(slot);
      if (!ring.append(kept) && !this.keeper.makeRoom(ring, kept)) return false;
    } catch (error) {
      // A broken invariant, or no stack: the commit is undone, and the error told. The same for one
      // that must not wait for the keeper here.
      if (error instanceof AssertionError || error instanceof RangeError) throw error;
      if (isSignal(error)) throw error;
      // No memory for the ring or the overflow area: that is no reason for a commit to fail.
      this.keeper.releaseAll();
      return false;
    }
    counters[counterBase + VERSIONS_KEPT]++;
    return true;
  }

  /**
   * Keeps what the objects of a commit are about to become, for snapshots of the cluster that see it though they lie
   * before its TID: those from `visibleFrom` on. Objects are locked, and the TID chosen, as for `keep`.
   */
  keepEarly(
    set: AccessSet,
    order: Int32Array,
    writes: number,
    visibleFrom: number,
    high: number,
    low: number,
  ): void {
    const fromHigh = limitHigh(visibleFrom);
    const fromLow = limitLow(visibleFrom);
    const limits = this.#limits;
    const isNeeded = (): boolean => {
      const newest = this.#newestBefore(high, low);
      return newest >= 0 && !isLater(fromHigh, fromLow, limits.high[newest], limits.low[newest]);
    };
    if (!isNeeded()) return;
    const { words } = set;
    const kept = this.#keptEarly;
    kept.versionHigh = fromHigh;
    kept.versionLow = fromLow;
    kept.successorHigh = high;
    kept.successorLow = low;
    for (let i = 0; i < writes; i++) {
      const entry = order[i];
      kept.i32 = set.regionOf(entry).i32;
      kept.regionId = words[entry + ENTRY_REGION_ID] | EARLY;
      kept.word = words[entry + ENTRY_WORD];
      kept.incarnation = words[entry + ENTRY_INCARNATION];
      kept.dataWords = (words[entry + KIND] & FREE) !== 0 ? 0 : words[entry + ENTRY_DATA_WORDS];
      kept.change = (to, at) => changeCopy(set, entry, to, at);
      if (this.#keepOne(kept)) continue;
      // Snapshots were released to make room.
      limits.isComplete = false;
      if (!isNeeded()) return;
      i--;
    }
  }

  /** All data words of a written object. */
  #dataWords(set: AccessSet, entry: number): number {
    const { words } = set;
    const kind = words[entry + KIND];
    if ((kind & (FREE | CELL)) !== (FREE | CELL)) return words[entry + ENTRY_DATA_WORDS];
    // The elements of an array are objects of their own, and kept as such.
    if ((words[entry + ENTRY_INCARNATION] & ARRAY) !== 0) return 0;
    const { blocks } = this.#executor.slabs;
    const address = addressOf(words[entry + ENTRY_REGION_ID], words[entry + ENTRY_WORD]);
    return (CELL_BYTES[blocks.classOf(blocks.blockOf(address))] - HEADER_BYTES) / 4;
  }

  /**
   * Brings the version of an object that a snapshot sees into the arena of a transaction, as the
   * entry's copy. The entry holds the version that was found to be too new. False if there is none.
   */
  bring(set: AccessSet, entry: number, { limitHigh, limitLow, isOfCluster }: Limit): boolean {
    const { words } = set;
    const regionId = words[entry + ENTRY_REGION_ID];
    return (
      (isOfCluster && this.#bring(set, entry, regionId | EARLY, limitHigh, limitLow)) ||
      this.#bring(set, entry, regionId, limitHigh, limitLow)
    );
  }

  #bring(
    set: AccessSet,
    entry: number,
    regionId: number,
    limitHigh: number,
    limitLow: number,
  ): boolean {
    const { words } = set;
    // The version was found too new before this look: then the one we need is kept by now.
    const rings = loadAfterLoads(this.#executor.memory.control.i32, RINGS_IN_USE);
    // Whoever wrote the current version is the likeliest to have overwritten the one we need.
    const likely = slotOf(words[entry + ENTRY_VERSION_LOW]);
    if (this.#bringFromRing(likely, set, entry, regionId, limitHigh, limitLow)) return true;
    for (let slot = 0; slot < rings; slot++) {
      if (slot !== likely && this.#bringFromRing(slot, set, entry, regionId, limitHigh, limitLow))
        return true;
    }
    for (;;) {
      const { overflow } = this;
      const at = overflow.find(regionId, words[entry + ENTRY_WORD], limitHigh, limitLow);
      if (at < 0) {
        // Nothing of a version that was given up while it was copied may stay.
        set.forgetCopy(entry);
        return false;
      }
      copyOut(overflow.wordsOf(overflow.foundChunk), at, set, entry);
      if (overflow.isHere()) return true;
    }
  }

  #bringFromRing(
    slot: number,
    set: AccessSet,
    entry: number,
    regionId: number,
    limitHigh: number,
    limitLow: number,
  ): boolean {
    const ring = this.ringOf(slot);
    if (ring === undefined) return false;
    const at = ring.find(regionId, set.words[entry + ENTRY_WORD], limitHigh, limitLow);
    if (at < 0) return false;
    copyOut(ring.i32, at, set, entry);
    // If it was given up meanwhile, it has been moved: the overflow area is looked at after this.
    return ring.isHere(ring.foundPlace);
  }

  #attach(slot: number): VersionRing {
    const { memory } = this.#executor;
    const ring = new VersionRing(memory.attachRing(slot));
    while (this.#rings.length <= slot) this.#rings.push(undefined);
    this.#rings[slot] = ring;
    raiseTo(memory.control.i32, RINGS_IN_USE, slot + 1);
    return ring;
  }
}

/** Makes of a copy of an object's data what a commit is about to make of the object. */
function changeCopy(set: AccessSet, entry: number, to: Int32Array, at: number): void {
  const { words } = set;
  if ((words[entry + KIND] & FREE) !== 0) return;
  if ((words[entry + KIND] & SPLICED) !== 0) {
    applySplice(set, words[entry + EDITS], to, at);
    return;
  }
  const from = words[entry + DIRTY_FROM];
  const changed = words[entry + DIRTY_TO] - from;
  if (changed > 0) copyWords(set.arena.i32, words[entry + BUFFER] + from, to, at + from, changed);
}

/** Copies a kept version to the arena. It may be garbage: the caller confirms that it was not. */
function copyOut(i32: Int32Array, at: number, set: AccessSet, entry: number): void {
  const dataWords = Math.max(0, Math.min(i32[at + DATA_WORDS], i32.length - at - DATA));
  const buffer = set.copyOf(entry, dataWords);
  copyWords(i32, at + DATA, set.arena.i32, buffer, dataWords);
  const { words } = set;
  words[entry + ENTRY_VERSION_HIGH] = i32[at + VERSION_HIGH];
  words[entry + ENTRY_VERSION_LOW] = i32[at + VERSION_LOW];
  words[entry + ENTRY_INCARNATION] = i32[at + INCARNATION];
}
