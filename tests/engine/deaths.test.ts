/** Deaths in places where an earlier version of the engine did not survive them. */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import {
  allocateArray,
  allocateObject,
  freeInTransaction,
  readInTransaction,
  readObject,
  writeInTransaction,
} from "../../src/engine/objects.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Pointer } from "../../src/memory/pointer.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { balanceOf, bytesOf, transact } from "../helpers/engine-accounts.ts";
import { dieAt } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";

const STEPS = 100;

/** Runs a scenario with a death at each step of it, until nobody dies any more. */
function atEachStep(scenario: (store: EngineStore, step: number) => boolean): void {
  for (let step = 1; step < STEPS; step++) {
    const store = new EngineStore();
    try {
      if (!scenario(store, step)) return;
    } finally {
      store.dispose();
    }
  }
  throw new Error(`still dying after ${STEPS} steps`);
}

describe("a death", () => {
  test("while an array is installed: who follows a pointer into it waits, and finds it", () => {
    atEachStep((store, step) => {
      const [victim, reader] = [store.open(), store.open()];
      const root = transact(victim, (tx) => allocateObject(tx, 64, undefined));
      const tx = new Transaction(victim);
      victim.enter();
      const array = allocateArray(tx, 32, 4, undefined);
      writeInTransaction(tx, array.at(1), bytesOf(7));
      writeInTransaction(tx, root, array.at(1).toBytes());
      const died = dieAt(step, "after", () => {
        victim.committer.commit(tx);
      });
      store.kill(victim);
      const found = transact(reader, (own) => {
        const element = Pointer.fromBytes(readInTransaction(own, root));
        return element === null
          ? undefined
          : balanceOf(readInTransaction(own, element).slice(0, 8));
      });
      expect([undefined, 7], `step ${step}`).toContain(found);
      return died;
    });
  });

  test("while a block is given back: an old pointer never reads a new object", () => {
    atEachStep((store, step) => {
      const [victim, other] = [store.open(), store.open()];
      const old = transact(victim, (tx) => allocateObject(tx, 100, undefined));
      transact(victim, (tx) => freeInTransaction(tx, old));
      const died = dieAt(step, "before", () => {
        victim.slabs.releaseEmptyBlocks();
      });
      store.kill(victim);
      other.sweep();
      transact(other, (tx) => {
        writeInTransaction(tx, allocateObject(tx, 100, undefined), bytesOf(999));
      });
      expect(() => readObject(other, old), `step ${step}`).toThrow(SituError);
      return died;
    });
  });

  test("while a used block is taken for a class: the next class finds clean cells", () => {
    atEachStep((store, step) => {
      const [victim, other] = [store.open(), store.open()];
      for (let round = 0; round < 50; round++) {
        const one = transact(victim, (tx) => allocateObject(tx, 48, undefined));
        transact(victim, (tx) => freeInTransaction(tx, one));
      }
      expect(victim.slabs.releaseEmptyBlocks()).toBe(1);
      const died = dieAt(step, "before", () => {
        transact(victim, (tx) => allocateObject(tx, 48, undefined));
      });
      store.kill(victim);
      other.sweep();
      transact(other, (tx) => {
        for (let i = 0; i < 200; i++) allocateObject(tx, 56, undefined);
      });
      return died;
    });
  });

  test("again and again: the blocks of the dead are used before new ones, near or not", () => {
    const store = new EngineStore();
    try {
      const keeper = store.open();
      const root = transact(keeper, (tx) => allocateObject(tx, 64, undefined));
      const round = (near: Pointer | undefined): void => {
        const victim = store.open();
        transact(victim, (tx) => allocateObject(tx, 100, near));
        store.kill(victim);
        keeper.sweep();
      };
      round(root);
      round(undefined);
      const free = keeper.slabs.blocks.freeUnits();
      for (let i = 0; i < 200; i++) round(i % 2 === 0 ? root : undefined);
      expect(keeper.slabs.blocks.freeUnits()).toBe(free);
    } finally {
      store.dispose();
    }
  });
});
