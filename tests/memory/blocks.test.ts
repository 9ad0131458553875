/** The block table: who owns which units, and that a death in the middle leaves nothing stuck. */

import "../helpers/engine-all-atomics.ts";

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS, BlockTable } from "../../src/memory/blocks.ts";
import { ALLOCATED, INCARNATION, INCARNATION_STEP } from "../../src/memory/object.ts";
import { sizeClassOf } from "../../src/memory/size-classes.ts";
import { UNIT_BYTES } from "../../src/runtime/limits.ts";
import { dieAt, hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";

const SMALLEST = 0;
/** 15 KiB cells: blocks of two units. */
const TWO_UNITS = sizeClassOf(15 * 1024);
/** The largest cells: blocks of sixteen units. */
const SIXTEEN_UNITS = 255;
const REGION_UNITS = SMALL.regionBytes / UNIT_BYTES;
const [ANNE, BEN, CAROL] = [3, 7, 9];

describe("block table", () => {
  let store: EngineStore;
  let blocks: BlockTable;

  beforeEach(() => {
    store = new EngineStore();
    store.memory.createRegion(0, ANNE);
    blocks = new BlockTable(store.memory);
  });

  afterEach(() => store.dispose());

  function takeAll(sizeClass: number, slot: number): number[] {
    const taken: number[] = [];
    for (let block = blocks.take(sizeClass, slot); block >= 0; ) {
      taken.push(block);
      block = blocks.take(sizeClass, slot);
    }
    return taken;
  }

  /** All blocks of the class that there are, and that can be made. */
  function everyBlock(sizeClass: number): number[] {
    takeAll(sizeClass, BEN);
    const found: number[] = [];
    for (let unit = 0; unit < blocks.count; unit++) {
      if (BlockTable.isOpen(blocks.stateOf(unit), sizeClass)) found.push(unit);
    }
    return found;
  }

  function giveBack(block: number, slot: number, highest: number): void {
    const sizeClass = blocks.classOf(block);
    blocks.close(block, sizeClass, slot);
    blocks.release(block, sizeClass, slot, highest);
  }

  test("a taken block is owned, of its class, and nobody else's", () => {
    const mine = blocks.take(SMALLEST, ANNE);
    const other = blocks.take(SMALLEST, BEN);
    expect(mine).not.toBe(other);
    expect(blocks.isOwnedBy(mine, ANNE)).toBe(true);
    expect(blocks.isOwnedBy(mine, BEN)).toBe(false);
    expect(blocks.classOf(mine)).toBe(SMALLEST);
  });

  test("blocks of one, two and sixteen units never overlap and use up every unit", () => {
    const used = new Set<number>();
    const claim = (block: number, units: number): void => {
      for (let unit = block; unit < block + units; unit++) {
        expect(used.has(unit)).toBe(false);
        used.add(unit);
      }
    };
    claim(blocks.take(SMALLEST, ANNE), 1);
    claim(blocks.take(SIXTEEN_UNITS, BEN), 16);
    claim(blocks.take(TWO_UNITS, ANNE), 2);
    for (const block of takeAll(TWO_UNITS, BEN)) claim(block, 2);
    for (const block of takeAll(SMALLEST, ANNE)) claim(block, 1);
    expect(used.size).toBe(REGION_UNITS);
    expect(blocks.freeUnits()).toBe(0);
    expect(blocks.take(SMALLEST, ANNE)).toBe(-1);
    expect(blocks.nextRegion()).toBe(1);
  });

  test("every address of a block leads to it and to its cell, also in its later units", () => {
    const block = blocks.take(SIXTEEN_UNITS, ANNE);
    for (let index = 0; index < BLOCK_CELLS[SIXTEEN_UNITS]; index++) {
      const cell = blocks.cellAt(block, index, SIXTEEN_UNITS);
      expect(blocks.blockOf(cell)).toBe(block);
      expect(blocks.cellOf(cell)).toBe(cell);
      const inside = (cell + 3 * UNIT_BYTES + 8) as typeof cell;
      expect(blocks.blockOf(inside)).toBe(block);
      expect(blocks.cellOf(inside)).toBe(cell);
    }
  });

  test("the blocks of one who is gone are everyone's, and keep their cells", () => {
    const taken = [blocks.take(TWO_UNITS, ANNE), blocks.take(TWO_UNITS, ANNE)];
    const closed = blocks.take(SMALLEST, ANNE);
    expect(blocks.close(closed, SMALLEST, ANNE)).toBe(true);
    const before = blocks.sharings;
    blocks.orphan(ANNE);
    for (const block of taken) {
      expect(blocks.isOwnedBy(block, ANNE)).toBe(false);
      expect(BlockTable.isOpen(blocks.stateOf(block), TWO_UNITS)).toBe(true);
      expect(blocks.frees(block)).toBeGreaterThan(0);
    }
    expect(BlockTable.isOpen(blocks.stateOf(closed), SMALLEST)).toBe(true);
    expect(blocks.sharings).toBeGreaterThan(before);
  });

  test("only one closes a block, whoever prefers it, and it can be opened again", () => {
    const block = blocks.take(TWO_UNITS, ANNE);
    expect(blocks.close(block, SMALLEST, BEN)).toBe(false);
    expect(blocks.close(block, TWO_UNITS, BEN)).toBe(true);
    expect(blocks.close(block, TWO_UNITS, ANNE)).toBe(false);
    expect(blocks.reopen(block, TWO_UNITS, ANNE)).toBe(false);
    for (const slot of [ANNE, BEN]) expect(blocks.share(block, slot)).toBe(false);
    expect(BlockTable.isOpen(blocks.stateOf(block), TWO_UNITS)).toBe(false);
    expect(blocks.classOf(block)).toBe(TWO_UNITS);
    expect(blocks.reopen(block, TWO_UNITS, BEN)).toBe(true);
    expect(BlockTable.isOpen(blocks.stateOf(block), TWO_UNITS)).toBe(true);
    expect(BlockTable.isPreferred(blocks.stateOf(block))).toBe(false);
  });

  test("a later unit and a free one cannot be closed", () => {
    const block = blocks.take(TWO_UNITS, ANNE);
    expect(blocks.close(block + 1, TWO_UNITS, BEN)).toBe(false);
    expect(blocks.close(block + 2, TWO_UNITS, BEN)).toBe(false);
  });

  test("an empty block goes to another class, with incarnations higher than any it had", () => {
    const block = blocks.take(SMALLEST, ANNE);
    const { i32 } = store.memory.region(0);
    const first = blocks.firstWordOf(block);
    i32[first + INCARNATION] = 5 * INCARNATION_STEP;
    i32[first + 16 + INCARNATION] = ALLOCATED | (8 * INCARNATION_STEP);
    const seen = { highest: 0, sum: 0, freedHigh: 0, freedLow: 0 };
    expect(blocks.isEmpty(block, SMALLEST, seen)).toBe(false);
    i32[first + 16 + INCARNATION] = 9 * INCARNATION_STEP;
    expect(blocks.isEmpty(block, SMALLEST, seen)).toBe(true);
    expect(seen.highest).toBe(9 * INCARNATION_STEP);
    expect(seen.sum).toBe(14 * INCARNATION_STEP);
    giveBack(block, ANNE, seen.highest);
    expect(blocks.classOf(block)).toBe(-1);
    expect(blocks.freeUnits()).toBe(REGION_UNITS);

    const other = new BlockTable(store.memory).takeIn(0, TWO_UNITS, BEN);
    expect(other).toBe(block);
    for (let index = 0; index < BLOCK_CELLS[TWO_UNITS]; index++) {
      const word = i32[wordOf(blocks.cellAt(other, index, TWO_UNITS)) + INCARNATION];
      expect(word & ALLOCATED).toBe(0);
      expect(word).toBeGreaterThan(9 * INCARNATION_STEP);
    }
  });

  test("one who dies while taking a block, at any step, leaves nothing stuck", () => {
    for (const when of ["before", "after"] as const) {
      for (let k = 1; ; k++) {
        const died = dieAt(k, when, () => {
          blocks.take(SIXTEEN_UNITS, ANNE);
        });
        blocks.orphan(ANNE);
        const left = everyBlock(SIXTEEN_UNITS);
        expect(left, `dead ${when} step ${k}`).toHaveLength(REGION_UNITS / 16);
        for (const block of left) giveBack(block, BEN, 0);
        expect(blocks.freeUnits()).toBe(REGION_UNITS);
        if (!died) break;
        expect(k).toBeLessThan(100);
      }
    }
  });

  test("one who dies while giving a block back, at any step, leaves nothing stuck", () => {
    for (const when of ["before", "after"] as const) {
      for (let k = 1; ; k++) {
        const block = blocks.take(SIXTEEN_UNITS, ANNE);
        const died = dieAt(k, when, () => giveBack(block, ANNE, 0));
        blocks.orphan(ANNE);
        const left = everyBlock(SIXTEEN_UNITS);
        expect(left, `dead ${when} step ${k}`).toHaveLength(REGION_UNITS / 16);
        for (const one of left) giveBack(one, BEN, 0);
        expect(blocks.freeUnits()).toBe(REGION_UNITS);
        if (!died) break;
        expect(k).toBeLessThan(100);
      }
    }
  });

  test("one who gives back an adopted block frees no unit that another has taken meanwhile", () => {
    for (let step = 1; ; step++) {
      const block = blocks.take(SIXTEEN_UNITS, ANNE);
      blocks.orphan(ANNE);
      expect(blocks.close(block, SIXTEEN_UNITS, BEN)).toBe(true);
      const others = new BlockTable(store.memory);
      const taken: number[] = [];
      let steps = 0;
      const off = hookAtomics({
        after: () => {
          if (++steps !== step) return;
          // Whoever has Anne's slot now leaves, and Carol takes all that is free.
          others.orphan(ANNE);
          for (let one = others.takeIn(0, SMALLEST, CAROL); one >= 0; ) {
            taken.push(one);
            one = others.takeIn(0, SMALLEST, CAROL);
          }
        },
      });
      giveBack(block, BEN, 0);
      off();
      for (const one of taken) {
        expect(blocks.isOwnedBy(one, CAROL), `unit ${one}, step ${step}`).toBe(true);
        giveBack(one, CAROL, 0);
      }
      expect(blocks.freeUnits()).toBe(REGION_UNITS);
      if (steps < step) return;
    }
  });

  test("one who dies while tidying up after the dead, at any step, leaves nothing stuck", () => {
    for (let k = 1; ; k++) {
      blocks.take(SIXTEEN_UNITS, ANNE);
      dieAt(5, "after", () => {
        blocks.take(SIXTEEN_UNITS, ANNE);
      });
      const died = dieAt(k, "before", () => blocks.orphan(ANNE));
      blocks.orphan(ANNE);
      const left = everyBlock(SIXTEEN_UNITS);
      expect(left, `dead before step ${k}`).toHaveLength(REGION_UNITS / 16);
      for (const block of left) giveBack(block, BEN, 0);
      if (!died) break;
      expect(k).toBeLessThan(100);
    }
  });

  test.each([
    ["the same size", SMALLEST],
    ["two units", TWO_UNITS],
  ])("a claimer of %s who comes too late does not touch the winner's cells", (_, lateClass) => {
    // The memory has been used before, so whoever takes it writes first incarnations.
    giveBack(blocks.take(TWO_UNITS, BEN), BEN, 4 * INCARNATION_STEP);
    const winner = new BlockTable(store.memory);
    const loser = new BlockTable(store.memory);
    const { i32 } = store.memory.region(0);
    const incarnation = loser.firstWordOf(0) + INCARNATION;
    let won = -1;
    const off = hookAtomics({
      // The late one has just seen that the block is free.
      afterLoad: (array, index) => {
        if (won >= 0 || index !== store.memory.control.unitAt(0)) return;
        if (array !== store.memory.control.i32) return;
        won = winner.take(SMALLEST, ANNE);
        i32[incarnation] |= ALLOCATED;
      },
    });
    let lost: number;
    try {
      lost = loser.take(lateClass, BEN);
    } finally {
      off();
    }
    expect(won).toBe(0);
    expect(lost).not.toBe(0);
    expect(i32[incarnation] & ALLOCATED, "the winner's object is still allocated").toBe(ALLOCATED);
  });
});
