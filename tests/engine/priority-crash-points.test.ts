/**
 * A starved transaction dies before and after each atomic step: taking its place in line and priority,
 * committing, giving both back. And so does the one who recovers it. Nothing of it is left, and
 * others go on.
 */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { TICKET } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { PRIORITY } from "../../src/memory/control.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { nowMs } from "../../src/runtime/clock.ts";
import { atEachStep, recovererDies, WHENS } from "../helpers/crash-steps.ts";
import { addTo, createAccounts, lockOf, sumOf, transact } from "../helpers/engine-accounts.ts";
import { dieAt, type When } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";

class Stage {
  readonly store = new EngineStore();
  readonly victim = this.store.open();
  readonly accounts: readonly Pointer[] = createAccounts(this.victim, 3, 100);

  /** From its place in line to the end; says whether it died. */
  runAndDie(k: number, when: When): boolean {
    const { victim } = this;
    const tx = new Transaction(victim);
    tx.conflicts = 1;
    tx.conflictsSinceMs = nowMs();
    tx.isStarved = true;
    const died = dieAt(k, when, () => {
      while (victim.priority.look(tx) > 0);
      victim.enter();
      for (const account of this.accounts) addTo(tx, account, 10);
      expect(victim.committer.commit(tx)).toBe(true);
      victim.leave();
      victim.priority.end(tx);
    });
    this.store.kill(victim);
    return died;
  }

  check(survivor: Executor, point: string): void {
    const { control } = this.store.memory;
    const ticketAt = control.slotAt(this.victim.slot) + TICKET;
    expect(Atomics.load(control.i32, PRIORITY), `${point}: priority`).toBe(0);
    expect(Atomics.load(control.i32, ticketAt), `${point}: ticket`).toBe(0);
    for (const at of this.accounts) expect(lockOf(this.store.memory, at), point).toBe(0);
    expect([300, 330], point).toContain(sumOf(survivor, this.accounts));
    transact(survivor, (tx) => addTo(tx, this.accounts[0], 1));
  }
}

const stage = (): Stage => new Stage();

test.each(WHENS)("the starved transaction dies %s any of its steps", (when) => {
  let held = 0;
  atEachStep(stage, (on, k) => {
    const died = on.runAndDie(k, when);
    if (Atomics.load(on.store.memory.control.i32, PRIORITY) !== 0) held++;
    const survivor = on.store.open();
    survivor.sweep();
    on.check(survivor, `died ${when} step ${k}`);
    return died;
  });
  expect(held).toBeGreaterThan(10);
});

test("a writer goes on without a sweep, whenever the holder died", () => {
  atEachStep(stage, (on, k) => {
    const survivor = on.store.open();
    const died = on.runAndDie(k, "after");
    transact(survivor, (tx) => addTo(tx, on.accounts[0], 1));
    survivor.sweep();
    expect([301, 331]).toContain(sumOf(survivor, on.accounts));
    return died;
  });
});

test.each([2, 3, 4, 8])(
  "after step %i the recoverer dies at any of its steps: a third finishes",
  (k) => {
    recovererDies(
      stage,
      (on) => on.runAndDie(k, "after"),
      (on, third, point) => on.check(third, point),
    );
  },
);
