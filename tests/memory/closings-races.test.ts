/**
 * Giving blocks back while others are at it, too: whoever looks for empty blocks is overtaken between any
 * two of its looks, has closed a block that it preferred, or has just ended a transaction in vain. In
 * each case all objects stay where they are, in blocks of their class.
 */

import "../helpers/engine-all-atomics.ts";

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { classFor } from "../../src/engine/cells.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { releasePrepared } from "../../src/engine/prepared.ts";
import { PREPARES } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS, BlockTable, SPAN } from "../../src/memory/blocks.ts";
import {
  ALLOCATED,
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  lockWord,
} from "../../src/memory/object.ts";
import { HOT_SAMPLE } from "../../src/runtime/limits.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";

/** Two classes whose blocks have two units, with cells in different places. */
const BYTES = 12_000;
const OTHER_BYTES = 9_000;
/** Far inside of an object, between the cells of the other class's blocks. */
const MARK_AT = 700;

function put(executor: Executor, bytes: number, value: number): Address {
  return transact(executor, (tx) => {
    const entry = tx.allocate(bytes);
    tx.set.arena.i32[tx.writable(entry, bytes / 4) + MARK_AT] = value;
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

function valueAt(executor: Executor, cell: Address): number {
  return executor.memory.regionOf(cell).i32[wordOf(cell) + HEADER_WORDS + MARK_AT];
}

/** An object is where it was put: in a cell of its class, which is taken. */
function expectObject(executor: Executor, cell: Address, bytes: number, value: number): void {
  const { blocks } = executor.slabs;
  expect(blocks.cellOf(cell)).toBe(cell);
  expect(blocks.classOf(blocks.blockOf(cell))).toBe(classFor(bytes));
  const { i32 } = executor.memory.regionOf(cell);
  expect(i32[wordOf(cell) + INCARNATION] & ALLOCATED).toBe(ALLOCATED);
  expect(valueAt(executor, cell)).toBe(value);
}

describe("giving blocks back", () => {
  let store: EngineStore;

  beforeEach(() => {
    store = new EngineStore();
  });

  afterEach(() => store.dispose());

  test("both classes have blocks of two units", () => {
    expect(SPAN[classFor(BYTES)]).toBe(2);
    expect(SPAN[classFor(OTHER_BYTES)]).toBe(2);
    expect(classFor(BYTES)).not.toBe(classFor(OTHER_BYTES));
  });

  test("between any two looks of one, another gives the block back and makes it anew", () => {
    for (let k = 1; ; k++) {
      store.dispose();
      store = new EngineStore();
      const [looking, other] = [store.open(), store.open()];
      free(other, put(other, BYTES, 1));
      let kept: Address | undefined;
      let loads = 0;
      const off = hookAtomics({
        afterLoad: () => {
          if (++loads !== k) return;
          other.slabs.releaseEmptyBlocks();
          const first = put(other, OTHER_BYTES, 2);
          kept = put(other, OTHER_BYTES, 3);
          free(other, first);
        },
      });
      try {
        looking.slabs.releaseEmptyBlocks();
      } finally {
        off();
      }
      if (kept === undefined) {
        expect(k).toBeGreaterThan(10);
        return;
      }
      looking.slabs.releaseEmptyBlocks();
      for (let i = 0; i < 12; i++) put(looking, BYTES, 10 + i);
      expectObject(other, kept, OTHER_BYTES, 3);
    }
  });

  test("between any two steps of a commit, another gives blocks back and makes them anew", () => {
    for (let k = 1; ; k++) {
      store.dispose();
      store = new EngineStore();
      const [one, other] = [store.open(), store.open()];
      // Both know free cells of a block that is empty.
      for (const executor of [one, other]) free(executor, put(executor, BYTES, 1));
      const kept: Address[] = [];
      let steps = 0;
      const meanwhile = (): void => {
        if (++steps !== k) return;
        for (let i = 0; i < 2; i++) {
          other.slabs.releaseEmptyBlocks();
          kept.push(put(other, OTHER_BYTES, 2 + i));
        }
      };
      const off = hookAtomics({ before: meanwhile, afterLoad: meanwhile });
      let mine: Address;
      try {
        mine = put(one, BYTES, 4);
      } finally {
        off();
      }
      for (const executor of [other, one]) executor.slabs.releaseEmptyBlocks();
      for (let i = 0; i < 8; i++) put(i % 2 === 0 ? one : other, OTHER_BYTES, 10 + i);
      expectObject(other, mine, BYTES, 4);
      for (const [i, cell] of kept.entries()) expectObject(one, cell, OTHER_BYTES, 2 + i);
      if (kept.length > 0) continue;
      expect(k).toBeGreaterThan(10);
      return;
    }
  });

  test("a block that was preferred and closed stays closed until its closing has ended", () => {
    const [closing, other, late] = [store.open(), store.open(), store.open()];
    const cells: Address[] = [];
    const { blocks } = closing.slabs;
    // The class is used a lot, so the first block that is made when this can be told is preferred.
    let preferred = -1;
    while (preferred < 0 || !blocks.isOwnedBy(preferred, closing.slot)) {
      expect(cells.length).toBeLessThan(HOT_SAMPLE + 2 * BLOCK_CELLS[classFor(BYTES)]);
      cells.push(put(closing, BYTES, cells.length));
      preferred = blocks.blockOf(cells[cells.length - 1]);
    }
    free(closing, cells.pop()!);
    late.enter();
    expect(closing.slabs.releaseEmptyBlocks()).toBe(0);
    expect(BlockTable.isOpen(blocks.stateOf(preferred), classFor(BYTES))).toBe(false);
    // It does not allocate for a while, and leaves to others what it preferred.
    closing.slabs.tidy();
    closing.slabs.tidy();
    expect(BlockTable.isOpen(blocks.stateOf(preferred), classFor(BYTES))).toBe(false);
    other.enter();
    const tx = new Transaction(other);
    const entry = tx.allocate(BYTES);
    tx.set.arena.i32[tx.writable(entry, BYTES / 4) + MARK_AT] = 99;
    const chosen = tx.addressOf(entry);
    closing.slabs.releaseEmptyBlocks();
    late.leave();
    closing.slabs.releaseEmptyBlocks();
    expect(other.commit(tx)).toBe(true);
    tx.clear();
    other.leave();
    closing.slabs.releaseEmptyBlocks();
    for (let i = 0; i < 20; i++) put(closing, OTHER_BYTES, 100 + i);
    expectObject(other, chosen, BYTES, 99);
    for (const [value, cell] of cells.entries()) expectObject(other, cell, BYTES, value);
  });

  test("a cell of a transaction that failed is not kept if its block has another class by then", () => {
    const [failing, other] = [store.open(), store.open()];
    let isOver = false;
    const { leave } = failing;
    failing.leave = function (this: Executor, entered?: number) {
      leave.call(this, entered);
      if (isOver) return;
      isOver = true;
      // As soon as nobody has to wait for the transaction.
      expect(other.slabs.releaseEmptyBlocks()).toBe(1);
      free(other, put(other, OTHER_BYTES, 1));
    };
    expect(() =>
      transact(failing, (tx) => {
        for (let i = 0; i < 3; i++) tx.allocate(BYTES);
        throw new Error("in vain");
      }),
    ).toThrow("in vain");
    expect(isOver).toBe(true);
    for (let i = 0; i < 5; i++) {
      const cell = put(failing, OTHER_BYTES, 20 + i);
      expectObject(failing, cell, OTHER_BYTES, 20 + i);
    }
  });

  test("one who lets go of a dead slot's locks takes no data of another class for one", () => {
    const dead = 9;
    const lock = lockWord(dead, INSTALLING);
    const words = OTHER_BYTES / 4;
    for (let k = 1; ; k++) {
      store.dispose();
      store = new EngineStore();
      const { memory } = store;
      const other = store.open();
      free(other, put(other, BYTES, 1));
      Atomics.store(memory.control.i32, memory.control.slotAt(dead) + PREPARES, 1);
      let made: Address[] = [];
      let loads = 0;
      const fill = (tx: Transaction): Address => {
        const entry = tx.allocate(OTHER_BYTES);
        const at = tx.writable(entry, words);
        tx.set.arena.i32.fill(lock, at, at + words);
        return tx.addressOf(entry);
      };
      const off = hookAtomics({
        afterLoad: () => {
          if (++loads !== k) return;
          other.slabs.releaseEmptyBlocks();
          made = transact(other, (tx) => [fill(tx), fill(tx), fill(tx)]);
        },
      });
      try {
        releasePrepared(memory, dead);
      } finally {
        off();
      }
      if (made.length === 0) {
        expect(k).toBeGreaterThan(10);
        return;
      }
      for (const cell of made) {
        const first = wordOf(cell) + HEADER_WORDS;
        const data = memory.regionOf(cell).i32.slice(first, first + words);
        expect(data.every((word) => word === lock)).toBe(true);
      }
    }
  });
});
