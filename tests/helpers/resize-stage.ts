/**
 * What the tests of making a store smaller and larger share: a store with two executors, one of whom dies, and what must
 * be true afterwards.
 */

import { expect } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { type Address, NO_ADDRESS, wordOf } from "../../src/memory/address.ts";
import { REGION_LIMIT } from "../../src/memory/control.ts";
import { HEADER_WORDS } from "../../src/memory/object.ts";
import { Shrinking } from "../../src/memory/shrink.ts";
import { transact } from "./engine-accounts.ts";
import { dieAt, type When } from "./engine-atomics.ts";
import { EngineStore, type Sharing, SMALL } from "./engine-store.ts";

export const REGIONS = 3;
const GEOMETRY = { ...SMALL, journalBytes: 2 ** 18, regionBytes: 2 ** 20, regions: REGIONS };
/** Eight of them are a block of sixteen units, which is a region. */
const BYTES = 120_000;
export const PER_STORE = 8 * REGIONS;
const MOST_STEPS = 2_000;

function put(executor: Executor, value: number): Address {
  return transact(executor, (tx) => {
    const entry = tx.allocate(BYTES);
    const at = tx.writable(entry, BYTES / 4);
    tx.views.i32[at] = value;
    return tx.addressOf(entry);
  });
}

function free(executor: Executor, cell: Address): void {
  transact(executor, (tx) => {
    const entry = tx.open(executor.memory.regionOf(cell), wordOf(cell));
    tx.depend(entry);
    tx.free(entry);
  });
}

export function valueAt(executor: Executor, cell: Address): number {
  return executor.memory.regionOf(cell).i32[wordOf(cell) + HEADER_WORDS];
}

/** Puts objects until there is no room; all of them are in different places. */
export function fill(executor: Executor, first: number): Address[] {
  const cells: Address[] = [];
  for (let value = first; ; value++) {
    try {
      cells.push(put(executor, value));
    } catch (error) {
      expect(error).toMatchObject({ code: "SITU_FULL" });
      return cells;
    }
  }
}

export function shrink(executor: Executor, regions: number): boolean {
  const shrinking = new Shrinking(executor.slabs, executor.slot, executor, regions);
  for (let look = 0; look < 5; look++) {
    if (shrinking.regionsInUse() > regions || !shrinking.announce()) continue;
    expect(shrinking.isWaitedOut).toBe(true);
    shrinking.finish();
    return true;
  }
  return false;
}

export interface Stage {
  readonly store: EngineStore;
  readonly dying: Executor;
  readonly other: Executor;
  /** Objects that stay, by the value that they hold. */
  readonly kept: readonly Address[];
}

/** All regions were full; only the first has objects now. */
export function stageOf(sharing: Sharing): Stage {
  const store = new EngineStore(GEOMETRY, sharing);
  const [dying, other] = [store.open(), store.open()];
  const cells = fill(dying, 0);
  expect(cells).toHaveLength(PER_STORE);
  const kept = cells.slice(0, 3);
  // Both have freed cells in all regions, and remember them.
  for (const [i, cell] of cells.slice(3).entries()) free(i % 2 === 0 ? dying : other, cell);
  return { store, dying, other, kept };
}

function expectWhole({ store, other, kept }: Stage, point: string): void {
  for (const [value, cell] of kept.entries()) expect(valueAt(other, cell), point).toBe(value);
  // As the next opener does, which finds the old size in store.json.
  other.memory.raiseLimit(REGIONS);
  const filled = fill(other, 1_000);
  expect(filled.length, point).toBe(PER_STORE - kept.length);
  expect(new Set([...filled, ...kept]).size, point).toBe(PER_STORE);
  for (const [i, cell] of filled.entries()) expect(valueAt(other, cell), point).toBe(1_000 + i);
  for (const cell of filled) free(other, cell);
  const newcomer = store.open();
  for (const [value, cell] of kept.entries()) expect(valueAt(newcomer, cell), point).toBe(value);
  expect(put(newcomer, 7), point).not.toBe(NO_ADDRESS);
}

/**
 * Somebody uses memory beyond the new size while the store is made smaller: before the limit is lowered, or after it, by the
 * old limit, which one who has just read it still goes by. Nothing of it may be given back.
 */
export function shrinkBeside(sharing: Sharing, when: "before" | "after"): void {
  const { store, dying, other } = stageOf(sharing);
  try {
    const shrinking = new Shrinking(dying.slabs, dying.slot, dying, 1);
    for (let look = 0; look < 5 && shrinking.regionsInUse() > 1; look++);
    expect(shrinking.regionsInUse()).toBe(1);
    const early = when === "before" ? fill(other, 1_000) : [];
    const isAnnounced = shrinking.announce();
    if (when === "after") Atomics.store(other.memory.control.i32, REGION_LIMIT, REGIONS);
    const late = when === "after" ? fill(other, 1_000) : [];
    if (isAnnounced) shrinking.finish();
    for (const [i, cell] of [...early, ...late].entries()) {
      expect(valueAt(other, cell), `${when} the limit`).toBe(1_000 + i);
    }
    expect(isAnnounced, "whoever was quicker is seen").toBe(when === "after");
  } finally {
    store.dispose();
  }
}

/** The one who dies does `work`, after both have done `prepare`. */
export function atEachStep(
  sharing: Sharing,
  prepare: (stage: Stage) => void,
  work: (stage: Stage) => void,
): void {
  for (const when of ["before", "after"] as readonly When[]) {
    // Only what is written without atomics lies between after one step and before the next. Threads run
    // the same code: some of its steps are enough.
    const stride = (when === "before" ? 1 : 5) * (sharing === "threads" ? 4 : 1);
    for (let k = 1, died = true; died; k += stride) {
      const stage = stageOf(sharing);
      try {
        prepare(stage);
        died = dieAt(k, when, () => work(stage));
        stage.store.kill(stage.dying);
        stage.other.sweep();
        expectWhole(stage, `dead ${when} step ${k}`);
      } finally {
        stage.store.dispose();
      }
      expect(k).toBeLessThan(MOST_STEPS);
    }
  }
}
