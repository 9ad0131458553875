/**
 * The keeper of old versions: NAM-DB's version mover (§5.1) and garbage collector (§5.3). There is
 * one at a time, whoever holds the lock in the control segment: the timer of any process that has
 * the store open, or a writer whose ring is full. It works in short batches. If it dies, the
 * recovery of its slot gives the lock back, and the next one goes on where it was.
 *
 *   move      from the tail of a ring: what a snapshot needs is copied to the overflow area, then
 *             the tail moves on. The ring's owner can write there again.
 *   collect   versions in the overflow area that no snapshot needs are given up.
 *   release   snapshots whose time is over; and the oldest ones, where there is no room.
 *
 * What may be given up is judged by a list of snapshots made *after* the versions in question were
 * there: a snapshot that registers later sees their successors, for those have committed.
 */

import { KEEPER } from "../../memory/control.ts";
import { lockWord, PREPARED } from "../../memory/object.ts";
import { nowMs } from "../../runtime/clock.ts";
import { ASYNC_PATIENCE_MS, KEEPER_BATCH_BYTES, KEEPER_PATIENCE_MS } from "../../runtime/limits.ts";
import type { Executor } from "../executor.ts";
import { SNAPSHOTS_RELEASED, VERSIONS_MOVED } from "../slot.ts";
import { Limits } from "./registry.ts";
import type { VersionRing } from "./ring.ts";
import { FILLING, isNeeded, type Kept, REGION_ID, UNIT_WORDS, UNITS, unitsAt } from "./version.ts";
import type { Versions } from "./versions.ts";

const BATCH_UNITS = KEEPER_BATCH_BYTES / (4 * UNIT_WORDS);

export class Keeper {
  readonly #executor: Executor;
  readonly #versions: Versions;
  readonly #control: Int32Array;
  readonly #limits = new Limits();
  /** The registry's count of releases when this keeper had last looked at all chunks. */
  #collectedAt = -1;
  /** When hurried commits found the lock taken: the first of the latest attempts, and the last. */
  #blockedSinceMs = 0;
  #blockedMs = Number.NEGATIVE_INFINITY;

  constructor(executor: Executor, versions: Versions) {
    this.#executor = executor;
    this.#versions = versions;
    this.#control = executor.memory.control.i32;
  }

  /** A round in the background. Does nothing if another is at it. */
  tick(): void {
    const { registry } = this.#versions;
    this.#count(SNAPSHOTS_RELEASED, registry.releaseExpired());
    if (this.usedBytes() === 0) return;
    for (let slot = 0; slot < this.#versions.ringsInUse; slot++) {
      const ring = this.#versions.ringOf(slot);
      if (ring === undefined) continue;
      // While a ring has room, its versions stay in it: they are found more quickly there.
      const enough = registry.inUse > 0 ? ring.capacity / 2 : 0;
      const head = ring.head;
      while (ring.usedUnits > enough && ((head - ring.tail) | 0) > 0) {
        if (!this.#locked(() => this.#move(ring, BATCH_UNITS))) return;
      }
    }
    this.#collect();
  }

  /** What a snapshot needed when it was moved is garbage only after one was released. */
  #collect(): void {
    const { overflow, registry } = this.#versions;
    const { releases } = registry;
    if (releases === this.#collectedAt) return;
    for (let chunk = 0; chunk < overflow.chunks; chunk++) {
      if (!overflow.isInUse(chunk)) continue;
      const done = this.#locked(() => {
        registry.list(this.#limits);
        overflow.collect(this.#limits, chunk);
        return true;
      });
      if (!done) return;
    }
    this.#collectedAt = releases;
  }

  /** A short piece of work under the lock. False if that failed, or another has the lock. */
  #locked(work: () => boolean): boolean {
    if (!this.#tryLock()) return false;
    try {
      return work();
    } finally {
      this.#unlock();
    }
  }

  /** Bytes that old versions take, in the rings and in the overflow area. */
  usedBytes(): number {
    let units = 0;
    for (let slot = 0; slot < this.#versions.ringsInUse; slot++) {
      units += this.#versions.ringOf(slot)?.usedUnits ?? 0;
    }
    return units * UNIT_WORDS * 4 + this.#versions.overflow.usedBytes();
  }

  /** The most that they can take, with the rings that there are now. */
  limitBytes(): number {
    let units = 0;
    for (let slot = 0; slot < this.#versions.ringsInUse; slot++) {
      units += this.#versions.ringOf(slot)?.capacity ?? 0;
    }
    return units * UNIT_WORDS * 4 + this.#versions.overflow.limitBytes;
  }

  /**
   * For a writer whose ring is full: moves its oldest versions and appends. False if snapshots
   * were released instead, because there is no room for what they need, or no keeper to be had.
   */
  makeRoom(ring: VersionRing, kept: Kept): boolean {
    if (!this.#lockPatiently()) {
      this.releaseAll();
      return false;
    }
    try {
      const before = ring.tail;
      while (!ring.append(kept)) {
        if (ring.usedUnits === 0 || !this.#move(ring, BATCH_UNITS)) {
          if (ring.tail === before || ring.usedUnits === 0) this.releaseOldest();
          return false;
        }
      }
      return true;
    } finally {
      this.#unlock();
    }
  }

  releaseAll(): void {
    while (this.releaseOldest());
  }

  /** Writers need the room. False if there is no snapshot to release. */
  releaseOldest(): boolean {
    if (!this.#versions.registry.releaseOldest()) return false;
    this.#count(SNAPSHOTS_RELEASED, 1);
    return true;
  }

  /** Gives up some of a ring's oldest versions; false if there was no room for a needed one. */
  #move(ring: VersionRing, units: number): boolean {
    const { overflow, registry } = this.#versions;
    const limits = this.#limits;
    const head = ring.head;
    registry.list(limits);
    const { i32 } = ring;
    let place = ring.tail;
    let moved = 0;
    if (((head - place) | 0) >>> 0 > ring.capacity) {
      // Damaged: what snapshots need cannot be told from what they do not.
      this.releaseAll();
      ring.giveUp(head);
      return true;
    }
    try {
      for (let done = 0; done < units && place !== head; ) {
        const at = ring.at(place);
        const itsUnits = unitsAt(i32, at, (head - place) | 0);
        const isWhole = itsUnits === i32[at + UNITS];
        // The same for all that lies behind a version without an end.
        if (!isWhole) this.releaseAll();
        const needed = isWhole && i32[at + REGION_ID] !== FILLING && isNeeded(i32, at, limits);
        if (needed && !overflow.append(i32, at)) {
          if (!this.#collectAll(limits)) return false;
          continue;
        }
        if (needed) moved++;
        done += itsUnits;
        place = (place + itsUnits) | 0;
      }
      return true;
    } finally {
      ring.giveUp(place);
      this.#count(VERSIONS_MOVED, moved);
    }
  }

  /** Empties what chunks can be. One that is empty makes room to clean the next. */
  #collectAll(limits: Limits): boolean {
    const { overflow } = this.#versions;
    let emptied = false;
    for (let chunk = 0; chunk < overflow.chunks; chunk++) {
      if (overflow.collect(limits, chunk)) emptied = true;
    }
    return emptied;
  }

  #tryLock(): boolean {
    const mine = this.#executor.slot + 1;
    const holder = Atomics.compareExchange(this.#control, KEEPER, 0, mine);
    // Ours already: an overflowing stack once kept us from giving it back.
    return holder === 0 || holder === mine;
  }

  #lockPatiently(): boolean {
    if (this.#tryLock()) return true;
    const executor = this.#executor;
    const patienceMs = executor.isHurried ? ASYNC_PATIENCE_MS : KEEPER_PATIENCE_MS;
    const patience = executor.newPatience(patienceMs);
    for (;;) {
      const holder = Atomics.load(this.#control, KEEPER) - 1;
      const lock = holder < 0 ? 0 : lockWord(holder, PREPARED);
      if (!patience.meet(lock)) {
        // Nothing is committed yet: it can be undone, and tried again when the event loop has turned.
        if (executor.isHurried && this.#mayTryAgain()) executor.cutShort(lock);
        return false;
      }
      if (this.#tryLock()) return true;
    }
  }

  /** For hurried commits, which spend KEEPER_PATIENCE_MS in several attempts: is some of it left? */
  #mayTryAgain(): boolean {
    const now = nowMs();
    // The attempts of one commit follow each other closely.
    if (now - this.#blockedMs > KEEPER_PATIENCE_MS) this.#blockedSinceMs = now;
    this.#blockedMs = now;
    return now - this.#blockedSinceMs < KEEPER_PATIENCE_MS;
  }

  #unlock(): void {
    Atomics.store(this.#control, KEEPER, 0);
  }

  #count(counter: number, by: number): void {
    const { counters, counterBase } = this.#executor;
    counters[counterBase + counter] += by;
  }
}
