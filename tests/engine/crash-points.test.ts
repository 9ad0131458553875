/**
 * An executor dies before and after each atomic step of a commit; the one that recovers it dies
 * before and after each of its own steps; a third one finishes. In one process, so that all pairs
 * can be tried; tests/processes/ does the same with real processes and SIGKILL.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { readObject } from "../../src/engine/objects.ts";
import { ACTIVE, COMMITTED, phaseOf, STATUS } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, lockOwner, VERSION_LOW } from "../../src/memory/object.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
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
import { EngineStore, SHARINGS, type Sharing } from "../helpers/engine-store.ts";
import { SOAK } from "../helpers/seed.ts";

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 200;

/** Four accounts, of which the transaction under test changes three, frees one and makes one. */
class Stage {
  readonly store: EngineStore;
  readonly victim: Executor;
  readonly accounts: readonly Pointer[];
  readonly doomed: Pointer;
  fresh: Pointer | undefined;

  constructor(sharing: Sharing) {
    this.store = new EngineStore(undefined, sharing);
    // Slots and blocks of somebody who is gone: recovery must not mind.
    this.store.close(this.store.open());
    this.victim = this.store.open();
    const made = createAccounts(this.victim, 4, 100);
    this.accounts = made.slice(0, 3);
    this.doomed = made[3];
  }

  /** The transaction under test, until it is through or dies; says whether it died. */
  commitAndDie(k: number, when: When): boolean {
    const tx = new Transaction(this.victim);
    this.victim.enter();
    const [a, b, c] = this.accounts;
    addTo(tx, a, -70);
    addTo(tx, b, 120);
    addTo(tx, c, 10);
    this.fresh = createAccount(tx, 40);
    freeAccount(tx, this.doomed);
    const died = dieAt(k, when, () => {
      expect(this.victim.committer.commit(tx)).toBe(true);
    });
    this.store.kill(this.victim);
    return died;
  }

  /** As if the death had hit in the middle of copying: what is being installed is half-written. */
  tear(): void {
    const { control } = this.store.memory;
    const status = Atomics.load(control.i32, control.slotAt(this.victim.slot) + STATUS);
    if (phaseOf(status) !== COMMITTED) return;
    for (const at of [...this.accounts, this.doomed, this.fresh!]) {
      if (lockOwner(lockOf(this.store.memory, at)) !== this.victim.slot) continue;
      const { i32 } = this.store.memory.regionOf(at.address);
      i32[wordOf(at.address) + VERSION_LOW] = 0x5a5a5a5a;
      if (at !== this.doomed) i32[wordOf(at.address) + HEADER_WORDS + 1] = 0x5a5a5a5a;
    }
  }

  check(survivor: Executor, point: string): "done" | "not done" {
    const { memory } = this.store;
    const everything = [...this.accounts, this.doomed, this.fresh!];
    for (const at of everything) expect(lockOf(memory, at), `${point}: lock`).toBe(0);
    const at = memory.control.slotAt(this.victim.slot);
    expect(Atomics.load(memory.control.i32, at + STATUS), `${point}: status`).toBe(0);
    expect(Atomics.load(memory.control.i32, at + ACTIVE), `${point}: active`).toBe(0);
    expect(
      survivor.holders().map(({ slot }) => slot),
      `${point}: executors`,
    ).toEqual([survivor.slot]);

    const balances = this.accounts.map((account) => balanceOf(readObject(survivor, account)));
    const done = balances[0] !== 100;
    const [there, gone] = done ? [this.fresh!, this.doomed] : [this.doomed, this.fresh!];
    expect(balances, point).toEqual(done ? [30, 220, 110] : [100, 100, 100]);
    expect(balanceOf(readObject(survivor, there)), point).toBe(done ? 40 : 100);
    expect(() => readObject(survivor, gone), point).toThrow("freed");
    if (done) {
      const versions = everything.map((account) => versionOf(memory, account));
      expect(new Set(versions).size, `${point}: one TID for all`).toBe(1);
    }

    // Life goes on, on the same objects, with later versions, and in memory that nobody else has.
    const before = versionOf(memory, this.accounts[0]);
    transact(survivor, (tx) => {
      addTo(tx, this.accounts[0], 1);
      addTo(tx, this.accounts[1], -1);
    });
    expect(versionOf(memory, this.accounts[0]), point).toBeGreaterThan(before);
    const more = createAccounts(survivor, 40, 1);
    const used = new Set([...this.accounts, there, ...more].map(({ address }) => address));
    expect(used.size, `${point}: no cell twice`).toBe(44);
    expect(sumOf(survivor, [...this.accounts, there]), `${point}: money`).toBe(400);
    return done ? "done" : "not done";
  }
}

function withStage(sharing: Sharing, work: (stage: Stage) => void): void {
  const stage = new Stage(sharing);
  try {
    work(stage);
  } finally {
    stage.store.dispose();
  }
}

describe.each(SHARINGS)("crash points: %s", (sharing) => {
  test("a commit that dies at any step is there whole or not at all", () => {
    const outcomes = new Set<string>();
    for (const when of WHENS) {
      for (let k = 1; ; k++) {
        let died = true;
        withStage(sharing, (stage) => {
          died = stage.commitAndDie(k, when);
          const survivor = stage.store.open();
          survivor.sweep();
          outcomes.add(stage.check(survivor, `died ${when} step ${k}`));
        });
        if (!died) break;
        expect(k).toBeLessThan(MOST_STEPS);
      }
    }
    expect(outcomes).toEqual(new Set(["done", "not done"]));
  });

  test("the same, with the object that was being written left torn", () => {
    for (let k = 1; ; k++) {
      let died = true;
      withStage(sharing, (stage) => {
        died = stage.commitAndDie(k, "before");
        stage.tear();
        const survivor = stage.store.open();
        survivor.sweep();
        stage.check(survivor, `died before step ${k}, torn`);
      });
      if (!died) break;
      expect(k).toBeLessThan(MOST_STEPS);
    }
  });

  test("the dead one's slot is taken by a newcomer instead of being swept", () => {
    for (let k = 1; ; k++) {
      let died = true;
      withStage(sharing, (stage) => {
        // All other slots are in use, so the newcomer has to take the dead one's.
        const others: Executor[] = [];
        while (others.length < stage.store.geometry.slots - 1) others.push(stage.store.open());
        died = stage.commitAndDie(k, "after");
        const newcomer = stage.store.open();
        expect(newcomer.slot).toBe(stage.victim.slot);
        for (const other of others) stage.store.close(other);
        stage.check(newcomer, `died after step ${k}`);
      });
      if (!died) break;
      expect(k).toBeLessThan(MOST_STEPS);
    }
  });

  test("whoever meets the dead one's locks recovers it, without a sweep", () => {
    for (let k = 1; ; k += 2) {
      let died = true;
      withStage(sharing, (stage) => {
        const survivor = stage.store.open();
        died = stage.commitAndDie(k, "after");
        expect([300, 360]).toContain(sumOf(survivor, stage.accounts));
        for (const at of stage.accounts) expect(lockOf(stage.store.memory, at)).toBe(0);
        survivor.sweep();
        stage.check(survivor, `met after step ${k}`);
      });
      if (!died) break;
      expect(k).toBeLessThan(MOST_STEPS);
    }
  });
});

describe("crash points of the recovery", () => {
  test("what was installed and has been changed since is left alone", () => {
    let changedSince = 0;
    for (let k = 1; ; k++) {
      let died = true;
      withStage("mapped files", (stage) => {
        const survivor = stage.store.open();
        died = stage.commitAndDie(k, "after");
        // Installed and unlocked already, while the rest is still waiting for its recovery.
        const { memory } = stage.store;
        const open = stage.accounts.filter((account) => lockOf(memory, account) === 0);
        for (const account of open) transact(survivor, (tx) => addTo(tx, account, 1_000));
        if (open.length < stage.accounts.length) changedSince += open.length;
        survivor.sweep();
        const balances = stage.accounts.map((account) => balanceOf(readObject(survivor, account)));
        const since = balances.map((_, index) =>
          open.includes(stage.accounts[index]) ? 1_000 : 0,
        );
        const before = balances.map((balance, index) => balance - since[index]);
        expect([
          [100, 100, 100],
          [30, 220, 110],
        ]).toContainEqual(before);
      });
      if (!died) break;
      expect(k).toBeLessThan(MOST_STEPS);
    }
    expect(changedSince).toBeGreaterThan(2);
  });

  test("the recoverer dies at any of its steps, for any step of the commit: a third finishes", () => {
    let pairs = 0;
    for (let k = 1; ; k++) {
      let died = true;
      // Each half-step of a recovery is tried for every third step of the commit; with SITU_SOAK for each.
      for (let j = SOAK > 1 ? 1 : 1 + (k % 3); ; j += SOAK > 1 ? 1 : 3) {
        let recovererDied = true;
        withStage("mapped files", (stage) => {
          const recoverer = stage.store.open();
          died = stage.commitAndDie(k, "after");
          stage.tear();
          // Two counts per step: before it, after it.
          recovererDied = dieAt((j + 1) >> 1, j % 2 === 1 ? "before" : "after", () => {
            recoverer.recoverIfDead(stage.victim.slot);
          });
          stage.store.kill(recoverer);
          const third = stage.store.open();
          third.sweep();
          stage.check(third, `died after step ${k}, its recoverer at half-step ${j}`);
          pairs++;
        });
        if (!recovererDied) break;
        expect(j).toBeLessThan(MOST_STEPS);
      }
      if (!died) break;
      expect(k).toBeLessThan(MOST_STEPS);
    }
    expect(pairs).toBeGreaterThan(100);
  });

  test("a newcomer dies at any step of taking a dead one's slot: the next one finishes", () => {
    for (const k of [3, 9, 13, 16, 18]) {
      for (let j = 1; ; j++) {
        let newcomerDied = true;
        withStage("mapped files", (stage) => {
          stage.commitAndDie(k, "after");
          const memory = stage.store.attachMemory();
          const leases = stage.store.leases();
          newcomerDied = dieAt(j, "before", () => {
            const { open } = stage.victim.constructor as typeof Executor;
            open(memory, leases);
          });
          leases.close();
          const third = stage.store.open();
          third.sweep();
          stage.check(third, `died after step ${k}, the newcomer before step ${j}`);
          memory.close();
        });
        if (!newcomerDied) break;
        expect(j).toBeLessThan(MOST_STEPS);
      }
    }
  });

  test("a whole line of recoverers dies, each one step further", () => {
    withStage("mapped files", (stage) => {
      stage.commitAndDie(15, "after");
      stage.tear();
      const line: Executor[] = [];
      for (let j = 1; j < 10; j++) line.push(stage.store.open());
      line.forEach((recoverer, index) => {
        dieAt(index + 1, "before", () => {
          recoverer.recoverIfDead(stage.victim.slot);
        });
        stage.store.kill(recoverer);
      });
      const last = stage.store.open();
      last.sweep();
      expect(stage.check(last, "after a line of recoverers")).toBe("done");
    });
  });
});
