/**
 * One who holds prepared transactions dies at each atomic step of preparing, committing and releasing
 * them; and so does the one who recovers it. No lock is left; what was committed is whole.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { allocateArray, readObject } from "../../src/engine/objects.ts";
import { ACTIVE, PREPARES, STATUS } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { wordOf } from "../../src/memory/address.ts";
import { BLOCK_CELLS, BlockTable } from "../../src/memory/blocks.ts";
import { LOCK, lockOwner } from "../../src/memory/object.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { atEachStep, recovererDies, WHENS, withStage } from "../helpers/crash-steps.ts";
import {
  addTo,
  balanceOf,
  createAccount,
  createAccounts,
  freeAccount,
  lockOf,
  sumOf,
  transact,
  versionOf,
} from "../helpers/engine-accounts.ts";
import { dieAt, type When } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";

/**
 * Eight accounts and the elements of an array. T0 holds three of them throughout, T1 (the one under
 * test) changes two, an element, frees one and makes one.
 */
class Stage {
  readonly store = new EngineStore();
  readonly victim: Executor;
  readonly accounts: readonly Pointer[];
  readonly elements: readonly Pointer[];
  readonly doomed: Pointer;
  fresh: Pointer | undefined;

  constructor() {
    this.store.close(this.store.open());
    this.victim = this.store.open();
    this.victim.isPatient = false;
    const made = createAccounts(this.victim, 6, 100);
    this.accounts = made.slice(0, 5);
    this.doomed = made[5];
    const array = transact(this.victim, (tx) => allocateArray(tx, 8, 3, undefined));
    this.elements = [0, 1, 2].map((i) => array.at(i));
  }

  /** Until it is through or dies; says whether it died. */
  workAndDie(k: number, when: When, how: "commit" | "release"): boolean {
    const { victim, accounts, elements } = this;
    const { committer } = victim;
    const before = new Transaction(victim);
    victim.enter();
    addTo(before, accounts[3], 1_000);
    addTo(before, accounts[4], -1_000);
    addTo(before, elements[2], 5);
    expect(committer.prepare(before)).toBe(true);
    const tx = new Transaction(victim);
    victim.enter();
    addTo(tx, accounts[0], -70);
    addTo(tx, accounts[1], 20);
    addTo(tx, elements[0], 10);
    this.fresh = createAccount(tx, 40);
    freeAccount(tx, this.doomed);
    const died = dieAt(k, when, () => {
      expect(committer.prepare(tx)).toBe(true);
      if (how === "commit") expect(committer.commitPrepared(tx)).toBe(true);
      else committer.release(tx);
    });
    this.store.kill(victim);
    return died;
  }

  check(survivor: Executor, point: string): "done" | "not done" {
    const { memory } = this.store;
    const { accounts, elements, doomed } = this;
    for (const at of [...accounts, ...elements, doomed, this.fresh!]) {
      expect(lockOf(memory, at), `${point}: lock`).toBe(0);
    }
    expect(locksOf(survivor, this.victim.slot), `${point}: locks anywhere`).toBe(0);
    const at = memory.control.slotAt(this.victim.slot);
    for (const word of [STATUS, ACTIVE, PREPARES]) {
      expect(Atomics.load(memory.control.i32, at + word), `${point}: word ${word}`).toBe(0);
    }
    const balances = [...accounts, ...elements].map((each) =>
      balanceOf(readObject(survivor, each)),
    );
    const done = balances[0] !== 100;
    expect(balances, point).toEqual(
      done ? [30, 120, 100, 100, 100, 10, 0, 0] : [100, 100, 100, 100, 100, 0, 0, 0],
    );
    const [there, gone] = done ? [this.fresh!, doomed] : [doomed, this.fresh!];
    expect(balanceOf(readObject(survivor, there)), point).toBe(done ? 40 : 100);
    expect(() => readObject(survivor, gone), point).toThrow("freed");
    if (done) {
      const changed = [accounts[0], accounts[1], elements[0], this.fresh!, doomed];
      const versions = changed.map((each) => versionOf(memory, each));
      expect(new Set(versions).size, `${point}: one TID for all`).toBe(1);
    }
    // Life goes on, on the same objects, and in memory that nobody else has.
    transact(survivor, (tx) => {
      addTo(tx, accounts[0], 1);
      addTo(tx, accounts[3], -1);
      addTo(tx, elements[2], 1);
    });
    const more = createAccounts(survivor, 30, 1);
    const used = new Set([...accounts, there, ...more].map(({ address }) => address));
    expect(used.size, `${point}: no cell twice`).toBe(36);
    expect(sumOf(survivor, [...accounts, ...elements, there]), point).toBe(done ? 501 : 601);
    return done ? "done" : "not done";
  }
}

/** Cells of the store that a slot has locked. */
function locksOf({ memory }: Executor, slot: number): number {
  const blocks = new BlockTable(memory);
  let found = 0;
  for (let block = 0; block < blocks.count; block++) {
    const sizeClass = blocks.classOf(block);
    if (sizeClass < 0) continue;
    const { i32 } = memory.region(blocks.regionIdOf(block));
    for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
      const lock = i32[wordOf(blocks.cellAt(block, index, sizeClass)) + LOCK];
      if (lock !== 0 && lockOwner(lock) === slot) found++;
    }
  }
  return found;
}

const stage = (): Stage => new Stage();

describe("crash points of prepared transactions", () => {
  test.each(["commit", "release"] as const)("the holder dies at any step: %s", (how) => {
    const outcomes = new Set<string>();
    for (const when of WHENS) {
      atEachStep(stage, (on, k) => {
        const died = on.workAndDie(k, when, how);
        const survivor = on.store.open();
        survivor.sweep();
        outcomes.add(on.check(survivor, `${how}: died ${when} step ${k}`));
        return died;
      });
    }
    expect(outcomes).toEqual(new Set(how === "commit" ? ["done", "not done"] : ["not done"]));
  });

  test.each([2, 5, 12, 1_000])(
    "whoever meets a lock of one who died after step %i recovers it, without a sweep",
    (k) => {
      withStage(stage, (on) => {
        const survivor = on.store.open();
        on.workAndDie(k, "after", "commit");
        // Held by the one that was prepared before, which no record of a journal names.
        expect(sumOf(survivor, [on.accounts[3], on.accounts[4]])).toBe(200);
        on.check(survivor, `met after step ${k}`);
      });
    },
  );

  test.each([3, 9, 13, 1_000])(
    "after step %i the recoverer dies at any of its steps: a third finishes",
    (k) => {
      recovererDies(
        stage,
        (on) => on.workAndDie(k, "after", "commit"),
        (on, third, point) => on.check(third, point),
      );
    },
  );

  test("a newcomer in the dead one's slot does not inherit that it prepares", () => {
    withStage(stage, (on) => {
      const others: Executor[] = [];
      while (others.length < on.store.geometry.slots - 1) others.push(on.store.open());
      on.workAndDie(8, "after", "commit");
      const newcomer = on.store.open();
      expect(newcomer.slot).toBe(on.victim.slot);
      on.check(newcomer, "taken over");
      for (const each of others) on.store.close(each);
    });
  });
});
