/**
 * Giving blocks back among several executors: one dies at any step of it while another has chosen a
 * cell of the same block, and an array that meets another's object in its cell.
 */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS } from "../../src/memory/blocks.ts";
import { ALLOCATED, INCARNATION } from "../../src/memory/object.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { dieAt } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";

const BYTES = 12_000;

function free(executor: Executor, cell: Address): void {
  transact(executor, (tx) => {
    const entry = tx.open(executor.memory.regionOf(cell), wordOf(cell));
    tx.depend(entry);
    tx.free(entry);
  });
}

function isTaken(executor: Executor, cell: Address): boolean {
  const { i32 } = executor.memory.regionOf(cell);
  return (i32[wordOf(cell) + INCARNATION] & ALLOCATED) !== 0;
}

test("one dies at any step of giving a block back: what another has chosen in it stays", () => {
  for (const when of ["before", "after"] as const) {
    for (let k = 1; ; k++) {
      const store = new EngineStore();
      try {
        const [dying, other] = [store.open(), store.open()];
        const first = transact(dying, (tx) => tx.addressOf(tx.allocate(BYTES)));
        other.enter();
        const tx = new Transaction(other);
        const chosen = tx.addressOf(tx.allocate(BYTES));
        free(dying, first);
        const died = dieAt(k, when, () => {
          dying.slabs.releaseEmptyBlocks();
        });
        store.kill(dying);
        other.sweep();
        expect(other.commit(tx), `dead ${when} step ${k}`).toBe(true);
        tx.clear();
        other.leave();
        expect(isTaken(other, chosen)).toBe(true);
        free(other, chosen);
        other.reclaim(0);
        const { blocks } = other.slabs;
        expect(blocks.freeUnits(), `dead ${when} step ${k}`).toBe(blocks.count);
        if (!died) break;
        expect(k).toBeLessThan(500);
      } finally {
        store.dispose();
      }
    }
  }
});

test("an array that loses its cell to another executor writes nothing there", () => {
  const store = new EngineStore();
  try {
    const [one, two] = [store.open(), store.open()];
    one.enter();
    const arrays = new Transaction(one);
    const first = arrays.allocateArray(4, 200);
    const cell = (arrays.addressOf(first) - 24) as Address;
    const { slabs } = two;
    const sizeClass = slabs.blocks.classOf(slabs.blocks.blockOf(cell));
    two.enter();
    // The other fills the block, the cell of the array included, with objects full of ones.
    const objects = new Transaction(two);
    for (let i = 0; i < BLOCK_CELLS[sizeClass]; i++) {
      const entry = objects.allocate(872);
      const at = objects.set.bufferOf(entry);
      objects.set.arena.i32.fill(5, at, at + 218);
    }
    expect(slabs.blocks.classOf(slabs.blocks.blockOf(cell))).toBe(sizeClass);
    expect(two.commit(objects)).toBe(true);
    objects.clear();
    two.leave();
    const { i32 } = one.memory.regionOf(cell);
    const before = i32.slice(wordOf(cell), wordOf(cell) + 208);
    const wasTaken = isTaken(one, cell);
    expect(one.commit(arrays)).toBe(!wasTaken);
    if (wasTaken) expect(i32.slice(wordOf(cell), wordOf(cell) + 208)).toEqual(before);
    expect(wasTaken).toBe(true);
    arrays.clear();
    one.leave();
  } finally {
    store.dispose();
  }
});
