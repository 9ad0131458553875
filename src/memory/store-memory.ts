/**
 * The memory of one store as one executor sees it, and the life of a region in it:
 *
 *   ABSENT → being created by a slot → READY → being given back by a slot → ABSENT → …
 *
 * Regions are created in order and given back from the end, so those that are READY come first. The
 * limit says how many there may be. It can be lowered while somebody is about to create a region: the
 * creator says so in the state word first and then looks at the limit, whoever lowers it writes the
 * limit first and then looks at the state words. So one of the two sees the other.
 *
 * The units of a region that was given back still bear the name of the slot that gave it back: nobody can
 * take them, not even one who looked at the state word before that. Whoever creates the region again
 * takes them over, and frees them when the region is READY. Should it die in between, `orphan` (blocks.ts)
 * frees them; should it die before, they stay as they are until the next creation.
 */

import { sleepSync } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { OVERFLOW_INDEX_BYTES, RING_HEADER_BYTES } from "../runtime/limits.ts";
import type { Address } from "./address.ts";
import { regionIdOf } from "./address.ts";
import {
  Control,
  controlBytes,
  type Geometry,
  OVERFLOW_INDEX_STATE,
  REGION_LIMIT,
} from "./control.ts";
import { raiseTo } from "./ordering.ts";
import { Parking } from "./parking.ts";
import type { Segment, Segments } from "./segments.ts";
import { unmadeUnit } from "./units.ts";
import { Views } from "./views.ts";

/** A region of shared memory: the unit of mapping. Its blocks are described in the control. */
export type Region = Views;

const ABSENT = 0;
const READY = 1;
/** Any larger state word is 1 + the number of the slot that is creating the region. */
const CREATING = 2;

export const regionName = (id: number): string => `region-${id}`;
export const journalName = (slot: number): string => `journal-${slot}`;
export const largeRecordName = (slot: number): string => `journal-${slot}-large`;
export const ringName = (slot: number): string => `versions-${slot}`;
export const chunkName = (chunk: number): string => `overflow-${chunk}`;
export const OVERFLOW_INDEX_NAME = "overflow-index";
export const CONTROL_NAME = "control";

/** Beside the ring itself lie its head, its tail and an index (engine/snapshots/ring.ts). */
export function ringSegmentBytes({ ringBytes }: Geometry): number {
  return RING_HEADER_BYTES + ringBytes;
}

/** All segments that a store may come to have, for where they must exist from the start. */
export function segmentSizes(geometry: Geometry): Map<string, number> {
  const sizes = new Map([
    [CONTROL_NAME, controlBytes(geometry)],
    [OVERFLOW_INDEX_NAME, OVERFLOW_INDEX_BYTES],
  ]);
  for (let id = 0; id < geometry.regions; id++) sizes.set(regionName(id), geometry.regionBytes);
  for (let slot = 0; slot < geometry.slots; slot++) {
    sizes.set(journalName(slot), geometry.journalBytes);
    sizes.set(ringName(slot), ringSegmentBytes(geometry));
  }
  for (let chunk = 0; chunk < geometry.chunks; chunk++) {
    sizes.set(chunkName(chunk), geometry.chunkBytes);
  }
  return sizes;
}

/** The memory of one store as one executor sees it: control, and regions mapped when needed. */
export class StoreMemory {
  readonly control: Control;
  /** For sleeping on words of the control segment. */
  readonly parking: Parking;
  readonly segments: Segments;
  /** By region id; a hole is a region not mapped here yet. */
  readonly regions: (Region | undefined)[] = [];
  /** The store's folder, for messages; undefined in a store that only threads share. */
  path: string | undefined;
  /** Why the last attempt to create a region failed, if it did. */
  shortage: SituError | undefined;
  /** A region of which not all is in large pages yet: see `improve`. */
  #improvable: { readonly id: number; readonly segment: Segment } | undefined;
  readonly #held: Segment[] = [];
  readonly #views: Views[] = [];
  readonly #releases: (() => void)[] = [];

  constructor(segments: Segments, control: Segment, geometry: Control["geometry"]) {
    this.segments = segments;
    this.control = new Control(control.buffer, geometry);
    this.parking = new Parking(this.control.i32, control.address);
    this.#held.push(control);
    this.#views.push(this.control);
  }

  region(id: number): Region {
    return this.regions[id] ?? this.#attach(id);
  }

  regionOf(address: Address): Region {
    return this.region(regionIdOf(address));
  }

  /** Whether there is such a region: for ids that come from outside. */
  hasRegion(id: number): boolean {
    return id >= 0 && id < this.control.geometry.regions && this.isReady(id);
  }

  isReady(id: number): boolean {
    return Atomics.load(this.control.i32, this.control.regionStateAt(id)) === READY;
  }

  /** How many regions there are, or are being created. */
  get regionCount(): number {
    let count = 0;
    while (count < this.control.geometry.regions && !this.isAbsent(count)) count++;
    return count;
  }

  isAbsent(id: number): boolean {
    return Atomics.load(this.control.i32, this.control.regionStateAt(id)) === ABSENT;
  }

  /**
   * Creates the next region for `slot`, or says who else is at it, or that there may be no more. The
   * state word names the creator, so that its recovery can hand the work to another.
   */
  createRegion(
    id: number,
    slot: number,
    patienceMs?: number,
  ): "created" | "exists" | "busy" | "too many" {
    const { i32 } = this.control;
    const at = this.control.regionStateAt(id);
    const state = Atomics.compareExchange(i32, at, ABSENT, CREATING + slot);
    if (state !== ABSENT) return state === READY ? "exists" : "busy";
    if (id >= this.control.regionLimit) {
      Atomics.store(i32, at, ABSENT);
      return "too many";
    }
    try {
      const { regionBytes } = this.control.geometry;
      const segment = this.segments.create(regionName(id), regionBytes, regionBytes, patienceMs);
      // Mapped already, if it was given back: it is the same file.
      if (this.regions[id] === undefined) {
        this.#hold(id, segment);
        if (segment.improve !== undefined) this.#improvable = { id, segment };
      } else segment.release();
    } catch (error) {
      Atomics.store(i32, at, ABSENT);
      throw error;
    }
    const taken = this.#takeOverUnits(id, slot);
    Atomics.store(i32, at, READY);
    this.shortage = undefined;
    if (taken) this.#freeUnits(id, slot);
    return "created";
  }

  /** Goes on with the large pages of the region that was created here last; whether there is more to do. */
  improve(endMs: number): boolean {
    const { id, segment } = this.#improvable ?? {};
    if (id === undefined || segment?.improve === undefined) return false;
    if (this.isReady(id) && segment.improve(endMs)) return true;
    this.#improvable = undefined;
    return false;
  }

  /** The units of a region that was given back, now this slot's; false for a region that is new. */
  #takeOverUnits(id: number, slot: number): boolean {
    const { control } = this;
    const end = (id + 1) * control.unitsPerRegion;
    let taken = false;
    for (let unit = id * control.unitsPerRegion; unit < end; unit++) {
      const at = control.unitAt(unit);
      if (Atomics.load(control.i32, at) === 0) continue;
      taken = true;
      Atomics.store(control.i32, at, unmadeUnit(slot));
    }
    return taken;
  }

  #freeUnits(id: number, slot: number): void {
    const { control } = this;
    const end = (id + 1) * control.unitsPerRegion;
    for (let unit = id * control.unitsPerRegion; unit < end; unit++) {
      Atomics.compareExchange(control.i32, control.unitAt(unit), unmadeUnit(slot), 0);
    }
  }

  /** For recovery: a region that is made if it is not there, whoever else is at it. */
  ensureRegion(id: number): Region {
    if (id >= this.control.regionLimit) this.raiseLimit(id + 1);
    while (!this.isReady(id) && this.createRegion(id, 0) === "busy") sleepSync(1);
    return this.region(id);
  }

  /** Backs the part of the control segment that describes so many regions by memory. */
  reserveUnits(regions: number): void {
    this.segments.reserve(CONTROL_NAME, controlBytes(this.control.geometry, regions));
  }

  /** Allows so many regions, if that is more than it was. */
  raiseLimit(regions: number): void {
    this.reserveUnits(regions);
    raiseTo(this.control.i32, REGION_LIMIT, regions);
  }

  /**
   * Ends the existence of a region whose units are all this slot's, and gives its memory back to the
   * system. It counts as being created meanwhile, so that nobody creates it before its memory is gone.
   */
  giveRegionBack(id: number, slot: number): void {
    const at = this.control.regionStateAt(id);
    Atomics.store(this.control.i32, at, CREATING + slot);
    try {
      this.segments.vacate?.(regionName(id));
    } finally {
      Atomics.store(this.control.i32, at, ABSENT);
    }
  }

  /** Whether some slot is at creating the region. */
  isBeingCreated(id: number): boolean {
    return Atomics.load(this.control.i32, this.control.regionStateAt(id)) >= CREATING;
  }

  /** The slot that is at creating the region; 0 if that has just ended. */
  creatorOf(id: number): number {
    const state = Atomics.load(this.control.i32, this.control.regionStateAt(id));
    return Math.max(0, state - CREATING);
  }

  /** A dead slot's half-created region is nobody's again. */
  abandonRegions(slot: number): void {
    // The last one is the only one that can be half-created.
    for (let id = 0; id < this.control.geometry.regions && !this.isAbsent(id); id++) {
      const at = this.control.regionStateAt(id);
      Atomics.compareExchange(this.control.i32, at, CREATING + slot, ABSENT);
    }
  }

  /** The journal of a slot; made by the first who asks, which is the first who claims the slot. */
  attachJournal(slot: number): Views {
    const bytes = this.control.geometry.journalBytes;
    return this.#attachOrMake(journalName(slot), bytes, this.control.journalStateAt(slot));
  }

  hasJournal(slot: number): boolean {
    return Atomics.load(this.control.i32, this.control.journalStateAt(slot)) === READY;
  }

  /** The version ring of a slot; made by the slot's owner when it first needs one. */
  attachRing(slot: number): Views {
    const bytes = ringSegmentBytes(this.control.geometry);
    return this.#attachOrMake(ringName(slot), bytes, this.control.ringStateAt(slot));
  }

  hasRing(slot: number): boolean {
    return Atomics.load(this.control.i32, this.control.ringStateAt(slot)) === READY;
  }

  /** A chunk of the overflow area; made by the keeper of versions. `stateAt` says if it was. */
  attachChunk(chunk: number, stateAt: number): Views {
    return this.#attachOrMake(chunkName(chunk), this.control.geometry.chunkBytes, stateAt);
  }

  attachOverflowIndex(): Views {
    return this.#attachOrMake(OVERFLOW_INDEX_NAME, OVERFLOW_INDEX_BYTES, OVERFLOW_INDEX_STATE);
  }

  /** The segments that exist, by name; without those of the overflow area. */
  existing(): string[] {
    const { i32, geometry } = this.control;
    const names = [CONTROL_NAME];
    const add = (name: string, stateAt: number): void => {
      if (Atomics.load(i32, stateAt) === READY) names.push(name);
    };
    for (let id = 0; id < geometry.regions && !this.isAbsent(id); id++) {
      add(regionName(id), this.control.regionStateAt(id));
    }
    for (let slot = 0; slot < geometry.slots; slot++) {
      add(journalName(slot), this.control.journalStateAt(slot));
      add(ringName(slot), this.control.ringStateAt(slot));
    }
    return names;
  }

  /** Whether files of this memory were removed while it is in use. */
  isLost(): boolean {
    return this.segments.isLost?.(() => this.existing()) ?? false;
  }

  /** Called when this memory is closed, after everything else. */
  onClose(release: () => void): void {
    this.#releases.push(release);
  }

  close(): void {
    this.#improvable = undefined;
    for (const views of this.#views) views.clear();
    for (const segment of this.#held) segment.release();
    this.#views.length = 0;
    this.#held.length = 0;
    for (const release of this.#releases.splice(0)) release();
  }

  #attachOrMake(name: string, bytes: number, stateAt: number): Views {
    const made = Atomics.load(this.control.i32, stateAt) === READY;
    const segment = made ? this.segments.attach(name, bytes) : this.segments.create(name, bytes);
    Atomics.store(this.control.i32, stateAt, READY);
    const views = new Views(segment.buffer);
    this.#held.push(segment);
    this.#views.push(views);
    return views;
  }

  #attach(id: number): Region {
    if (!this.hasRegion(id)) {
      throw new SituError(
        "SITU_CORRUPT",
        `an address leads to region ${id}, which is not there: run verify`,
      );
    }
    return this.#hold(id, this.segments.attach(regionName(id), this.control.geometry.regionBytes));
  }

  #hold(id: number, segment: Segment): Region {
    const region = new Views(segment.buffer, id);
    this.#held.push(segment);
    this.#views.push(region);
    while (this.regions.length < id) this.regions.push(undefined);
    this.regions[id] = region;
    return region;
  }
}
