/** Commits of several executors in one process, interleaved by hand. */

import "../helpers/engine-all-atomics.ts";

import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { readObject } from "../../src/engine/objects.ts";
import { ACTIVE, COMMITTED, IDLE, LARGE, phaseOf, STATUS } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { wordOf } from "../../src/memory/address.ts";
import { INSTALLING, LOCK, lockMode, PREPARED } from "../../src/memory/object.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { largeRecordName } from "../../src/memory/store-memory.ts";
import { ConflictError, SituError } from "../../src/runtime/errors.ts";
import { MAX_ACCESSES } from "../../src/runtime/limits.ts";
import {
  addTo,
  balanceOf,
  bytesOf,
  createAccount,
  createAccounts,
  freeAccount,
  lockOf,
  readAccount,
  sumOf,
  transact,
  versionOf,
} from "../helpers/engine-accounts.ts";
import { type AtomicStep, hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore, SHARINGS, SMALL } from "../helpers/engine-store.ts";

/** An attempt of a transaction that a test drives step by step. */
class Attempt {
  readonly executor: Executor;
  readonly tx: Transaction;

  constructor(executor: Executor) {
    this.executor = executor;
    this.tx = new Transaction(executor);
    executor.enter();
  }

  read(account: Pointer): number {
    return readAccount(this.tx, account);
  }

  add(account: Pointer, amount: number): void {
    addTo(this.tx, account, amount);
  }

  commit(): boolean {
    try {
      return this.executor.commit(this.tx);
    } finally {
      this.tx.clear();
      this.executor.leave();
    }
  }
}

describe.each(SHARINGS)("commit: %s", (sharing) => {
  function withStore(work: (store: EngineStore) => void, geometry = SMALL): void {
    const store = new EngineStore(geometry, sharing);
    try {
      work(store);
    } finally {
      store.dispose();
    }
  }

  test("a transaction is there for everybody once it has committed, and not before", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 100);
      const attempt = new Attempt(one);
      attempt.add(a, -30);
      attempt.add(b, 30);
      expect(attempt.read(a)).toBe(70);
      expect(balanceOf(readObject(two, a))).toBe(100);
      expect(attempt.commit()).toBe(true);
      expect(balanceOf(readObject(two, a))).toBe(70);
      expect(balanceOf(readObject(two, b))).toBe(130);
      expect([lockOf(store.memory, a), lockOf(store.memory, b)]).toEqual([0, 0]);
    });
  });

  test("two who change the same object: the second to commit is refused", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a] = createAccounts(one, 1, 100);
      const [first, second] = [new Attempt(one), new Attempt(two)];
      first.add(a, 1);
      second.add(a, 10);
      expect(second.commit()).toBe(true);
      expect(first.commit()).toBe(false);
      expect(balanceOf(readObject(one, a))).toBe(110);
      expect(lockOf(store.memory, a)).toBe(0);
    });
  });

  test("write skew is impossible: each reads what the other writes", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 50);
      const [first, second] = [new Attempt(one), new Attempt(two)];
      if (first.read(a) + first.read(b) >= 100) first.add(a, -100);
      if (second.read(a) + second.read(b) >= 100) second.add(b, -100);
      expect([first.commit(), second.commit()]).toEqual([true, false]);
      expect(sumOf(one, [a, b])).toBe(0);
    });
  });

  test("write skew at every interleaving of two commits: at most one gets through", () => {
    // The second commit runs as a whole at each atomic step of the first.
    for (let k = 1; ; k++) {
      let steps = 0;
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const [a, b] = createAccounts(one, 2, 50);
        const [first, second] = [new Attempt(one), new Attempt(two)];
        if (first.read(a) + first.read(b) >= 100) first.add(a, -100);
        if (second.read(a) + second.read(b) >= 100) second.add(b, -100);
        let other = false;
        const off = hookAtomics({
          before: () => {
            if (++steps === k) other = second.commit();
          },
        });
        let own: boolean;
        try {
          own = first.commit();
        } finally {
          off();
        }
        if (steps >= k) expect(own && other, `step ${k}`).toBe(false);
        expect(sumOf(one, [a, b]), `step ${k}`).toBeGreaterThanOrEqual(0);
        expect([lockOf(store.memory, a), lockOf(store.memory, b)]).toEqual([0, 0]);
      });
      if (steps < k) break;
      expect(k).toBeLessThan(100);
    }
  });

  test("a reader at every step of a commit sees all of it or nothing, and never goes back", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const accounts = createAccounts(one, 4, 100);
      const seen: number[] = [];
      const isLocked = (at: Pointer): boolean => lockMode(lockOf(store.memory, at)) === INSTALLING;
      const look = (): void => {
        // A reader would wait for INSTALLING locks; the test cannot, for it is the owner's thread.
        if (!isLocked(accounts[0])) seen.push(balanceOf(readObject(two, accounts[0])));
        if (accounts.some(isLocked)) return;
        const reader = new Attempt(two);
        const sum = accounts.reduce((total, at) => total + reader.read(at), 0);
        if (reader.commit()) expect(sum).toBe(400);
      };
      const attempt = new Attempt(one);
      for (const account of accounts) attempt.add(account, account === accounts[0] ? -30 : 10);
      const off = hookAtomics({ before: look, after: look });
      try {
        expect(attempt.commit()).toBe(true);
      } finally {
        off();
      }
      look();
      expect(seen[0]).toBe(100);
      expect(seen[seen.length - 1]).toBe(70);
      expect([...seen].sort((x, y) => y - x)).toEqual(seen);
    });
  });

  test("two passes: all is INSTALLING before the commit point and before any data changes", () => {
    withStore((store) => {
      const one = store.open();
      const accounts = createAccounts(one, 5, 100);
      const { control } = store.memory;
      const statusAt = control.slotAt(one.slot) + STATUS;
      const history: string[] = [];
      const off = hookAtomics({
        after: () => {
          const modes = accounts.map((at) => lockMode(lockOf(store.memory, at)));
          const changed = accounts.filter((at) => {
            const { i32 } = store.memory.regionOf(at.address);
            return i32[wordOf(at.address) + 4 + 1] !== new Int32Array(bytesOf(100).buffer)[1];
          }).length;
          const phase = phaseOf(Atomics.load(control.i32, statusAt));
          history.push(`${phase} ${modes.join("")} ${changed}`);
        },
      });
      try {
        transact(one, (tx) => {
          for (const account of accounts) addTo(tx, account, 1e6);
        });
      } finally {
        off();
      }
      const point = history.findIndex((line) => line.startsWith(`${COMMITTED} `));
      expect(history[point]).toBe(`${COMMITTED} ${`${INSTALLING}`.repeat(5)} 0`);
      for (const line of history.slice(0, point)) expect(line.endsWith(" 0")).toBe(true);
      // Prepared one by one, then installing, all before the commit point.
      expect(history.slice(0, point)).toContain(`1 ${`${PREPARED}`.repeat(5)} 0`);
      const installing = history.slice(point).filter((line) => line.includes(`${INSTALLING}`));
      expect(installing.length).toBeGreaterThanOrEqual(5);
      expect(phaseOf(Atomics.load(control.i32, statusAt))).toBe(IDLE);
    });
  });

  test("a read-only transaction of one object skips validation, of two it does not", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 100);
      const single = new Attempt(one);
      expect(single.read(a)).toBe(100);
      transact(two, (tx) => addTo(tx, a, 1));
      expect(single.commit(), "it was true when it was read").toBe(true);

      const pair = new Attempt(one);
      pair.read(a);
      pair.read(b);
      transact(two, (tx) => addTo(tx, a, 1));
      expect(pair.commit()).toBe(false);

      const again = new Attempt(one);
      expect(again.read(a) + again.read(b)).toBe(202);
      expect(again.commit()).toBe(true);
    });
  });

  test("a read-only transaction of one object looks at no lock word when it commits", () => {
    withStore((store) => {
      const one = store.open();
      const [a, b] = createAccounts(one, 2, 100);
      const count = (accounts: Pointer[]): number => {
        const attempt = new Attempt(one);
        for (const account of accounts) attempt.read(account);
        let loads = 0;
        const region = one.memory.regionOf(a.address);
        const off = hookAtomics({
          afterLoad: (array) => {
            if (array === region.i32) loads++;
          },
        });
        try {
          attempt.commit();
        } finally {
          off();
        }
        return loads;
      };
      expect(count([a])).toBe(0);
      expect(count([a, b])).toBe(2);
    });
  });

  test("a body that throws over a state that never was is retried; its error is not believed", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 50);
      let runs = 0;
      const sum = transact(one, (tx) => {
        runs++;
        const first = readAccount(tx, a);
        if (runs === 1) {
          transact(two, (other) => {
            addTo(other, a, -10);
            addTo(other, b, 10);
          });
        }
        const total = first + readAccount(tx, b);
        if (total !== 100) throw new Error(`the bank is broken: ${total}`);
        return total;
      });
      expect([sum, runs]).toEqual([100, 2]);
    });
  });

  test("the same when the body has written what it had read: nothing is locked yet", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 50);
      let runs = 0;
      const sum = transact(one, (tx) => {
        runs++;
        const first = readAccount(tx, a);
        addTo(tx, a, 0);
        if (runs === 1) {
          transact(two, (other) => {
            addTo(other, a, -10);
            addTo(other, b, 10);
          });
        }
        const total = first + readAccount(tx, b);
        if (total !== 100) throw new Error(`the bank is broken: ${total}`);
        return total;
      });
      expect([sum, runs]).toEqual([100, 2]);
    });
  });

  test("a body that throws over a true state: the error is the caller's own, nothing is kept", () => {
    withStore((store) => {
      const one = store.open();
      const [a] = createAccounts(one, 1, 50);
      let runs = 0;
      expect(() =>
        transact(one, (tx) => {
          runs++;
          addTo(tx, a, -60);
          createAccount(tx, 60);
          if (readAccount(tx, a) < 0) throw new RangeError("not enough money");
        }),
      ).toThrow(new RangeError("not enough money"));
      expect(runs).toBe(1);
      expect(balanceOf(readObject(one, a))).toBe(50);
      expect(lockOf(store.memory, a)).toBe(0);
    });
  });

  test("a body that swallows the conflict cannot commit what it dreamt up", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 50);
      let runs = 0;
      transact(one, (tx) => {
        runs++;
        readAccount(tx, a);
        if (runs === 1) transact(two, (other) => addTo(other, a, 5));
        try {
          readAccount(tx, a);
        } catch {
          // What a careless body does.
        }
        addTo(tx, b, 1);
      });
      expect(runs).toBe(2);
      expect(sumOf(one, [a, b])).toBe(106);
    });
  });

  test("a conflict that never ends is an error with a code, after a bounded number of attempts", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 0);
      let runs = 0;
      let thrown: unknown;
      try {
        transact(
          one,
          (tx) => {
            runs++;
            readAccount(tx, a);
            transact(two, (other) => addTo(other, a, 1));
            addTo(tx, b, 1);
          },
          100,
        );
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(ConflictError);
      expect((thrown as ConflictError).retryable).toBe(true);
      expect(runs).toBeGreaterThan(5);
      expect(runs).toBeLessThanOrEqual(10_000);
      expect(sumOf(one, [a, b])).toBe(runs);
      expect([lockOf(store.memory, a), lockOf(store.memory, b)]).toEqual([0, 0]);
    });
  });

  test("one who frees and one who writes: one of them wins, the other is told", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [a, b] = createAccounts(one, 2, 50);
      const writer = new Attempt(two);
      writer.add(a, 1);
      writer.add(b, -1);
      transact(one, (tx) => freeAccount(tx, a));
      expect(writer.commit()).toBe(false);
      expect(balanceOf(readObject(one, b))).toBe(50);
      expect(() => readObject(one, a)).toThrow(SituError);
      expect(() => transact(one, (tx) => addTo(tx, a, 1))).toThrow("freed");
      // The cell is used again: the old pointer must not lead to the new object.
      const reused = transact(one, (tx) => createAccount(tx, 7));
      expect(reused.address).toBe(a.address);
      expect(() => readObject(one, a)).toThrow("freed");
      expect(balanceOf(readObject(one, reused))).toBe(7);
    });
  });

  test("a write set larger than the journal: committed with files, else refused before any lock", () => {
    withStore((store) => {
      const one = store.open();
      const accounts = createAccounts(one, 1000, 10);
      const before = accounts.map((at) => versionOf(store.memory, at));
      const extra: Pointer[] = [];
      let locks = 0;
      const off = hookAtomics({
        after: ({ array, index, value }) => {
          const { control } = one.memory;
          const isControl = array.length === control.i32.length;
          const isStatus = isControl && index === control.slotAt(one.slot) + STATUS;
          if (isStatus || (array === one.memory.regions[0]?.i32 && value !== 0)) locks++;
        },
      });
      let thrown: unknown;
      try {
        transact(one, (tx) => {
          for (const account of accounts) addTo(tx, account, 1);
          for (let i = 0; i < 3000; i++) extra.push(createAccount(tx, 1));
          for (const account of extra) addTo(tx, account, 1);
        });
      } catch (error) {
        thrown = error;
      } finally {
        off();
      }
      if (sharing === "mapped files") {
        // Its record gets a segment of its own, which is empty again afterwards.
        expect(thrown).toBeUndefined();
        expect(sumOf(one, accounts)).toBe(11_000);
        expect(sumOf(store.open(), extra)).toBe(6_000);
        const { control } = store.memory;
        expect(control.i32[control.slotAt(one.slot) + LARGE]).toBe(0);
        expect(statSync(join(store.memory.segments.place, largeRecordName(one.slot))).size).toBe(0);
        return;
      }
      expect(thrown).toMatchObject({ code: "SITU_TOO_LARGE" });
      expect(locks, "neither a status nor a lock was written").toBe(0);
      expect(accounts.map((at) => versionOf(store.memory, at))).toEqual(before);
      for (const account of accounts) expect(lockOf(store.memory, account)).toBe(0);
      // And the store goes on, with the cells that were not used.
      expect(sumOf(one, accounts)).toBe(10_000);
      expect(createAccounts(one, 500, 1)).toHaveLength(500);
    });
  });

  test("a transaction may touch thousands of objects", () => {
    withStore(
      (store) => {
        const [one, two] = [store.open(), store.open()];
        const accounts = createAccounts(one, 20_000, 1);
        expect(new Set(accounts.map((at) => at.address)).size).toBe(20_000);
        expect(sumOf(two, accounts)).toBe(20_000);
        transact(two, (tx) => {
          for (const account of accounts) addTo(tx, account, 1);
        });
        const versions = new Set(accounts.map((at) => versionOf(store.memory, at)));
        expect(versions.size).toBe(1);
        expect(sumOf(one, accounts)).toBe(40_000);
        transact(one, (tx) => {
          for (const account of accounts) freeAccount(tx, account);
        });
        expect(() => readObject(two, accounts[12_345])).toThrow("freed");
        const again = createAccounts(one, 20_000, 3);
        expect(sumOf(two, again)).toBe(60_000);
      },
      { ...SMALL, journalBytes: 2 * 2 ** 20 },
    );
  });

  test("more objects than a transaction may touch is a coded error, and changes nothing", () => {
    withStore(
      (store) => {
        const one = store.open();
        const [a] = createAccounts(one, 1, 1);
        expect(() =>
          transact(one, (tx) => {
            addTo(tx, a, 1);
            const region = store.memory.region(0);
            for (let word = 2; word < 2 + 2 * MAX_ACCESSES; word += 2) tx.set.add(region, word);
          }),
        ).toThrow(expect.objectContaining({ code: "SITU_TOO_LARGE" }) as Error);
        expect(sumOf(one, [a])).toBe(1);
        expect(lockOf(store.memory, a)).toBe(0);
      },
      { ...SMALL, regionBytes: 8 * 2 ** 20 },
    );
  });

  test("a store that is full says so, keeps nothing, and has room again after frees", () => {
    withStore((store) => {
      const one = store.open();
      const held: Pointer[] = [];
      let thrown: unknown;
      try {
        for (;;) held.push(...transact(one, (tx) => [createAccount(tx, 1), createAccount(tx, 1)]));
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toMatchObject({ code: "SITU_FULL" });
      for (let from = 0; from < held.length; from += 1000) {
        expect(sumOf(one, held.slice(from, from + 1000))).toBe(
          held.slice(from, from + 1000).length,
        );
      }
      transact(one, (tx) => {
        for (const account of held.slice(0, 100)) freeAccount(tx, account);
      });
      expect(createAccounts(one, 100, 2)).toHaveLength(100);
      expect(() => createAccounts(one, 3, 2)).toThrow("no room");
    });
  });
});

describe("an error in the middle of a commit", () => {
  // "Should anything unforeseen be thrown in the middle (a stack overflow, say)": at every step.
  test("leaves no lock, tells the truth about the outcome, and loses no cell", () => {
    class Unforeseen extends Error {}
    for (const when of ["before", "after"] as const) {
      for (let k = 1; ; k++) {
        const store = new EngineStore();
        let steps = 0;
        try {
          const one = store.open();
          const two = store.open();
          const [a, b, doomed] = createAccounts(one, 3, 100);
          let fresh: Pointer | undefined;
          let outcome = "committed";
          let armed = false;
          // The commit is over when the end of the transaction is announced.
          const activeAt = store.memory.control.slotAt(one.slot) + ACTIVE;
          const isLeaving = ({ array, index }: AtomicStep): boolean =>
            array === one.memory.control.i32 && index === activeAt;
          const strike = (): void => {
            if (armed && steps === k) throw new Unforeseen(`${when} step ${k}`);
          };
          const off = hookAtomics({
            before: (step) => {
              if (isLeaving(step)) armed = false;
              if (armed) steps++;
              if (when === "before") strike();
            },
            after: () => {
              if (when === "after") strike();
            },
          });
          try {
            transact(one, (tx) => {
              addTo(tx, a, -40);
              addTo(tx, b, 100);
              fresh = createAccount(tx, 40);
              freeAccount(tx, doomed);
              armed = true;
            });
          } catch (error) {
            if (!(error instanceof Unforeseen)) throw error;
            outcome = "failed";
          } finally {
            off();
          }
          const point = `${when} step ${k}: ${outcome}`;
          const done = balanceOf(readObject(two, a)) === 60;
          for (const at of [a, b, doomed, fresh!]) expect(lockOf(store.memory, at), point).toBe(0);
          expect(done, point).toBe(outcome === "committed");
          const all = done ? [a, b, fresh!] : [a, b, doomed];
          expect(sumOf(two, all), point).toBe(300);
          // Nothing that is in use is handed out again.
          const more = createAccounts(one, 50, 1);
          const places = new Set([...all, ...more].map((at) => at.address));
          expect(places.size, point).toBe(all.length + more.length);
          expect(sumOf(two, all), point).toBe(300);
        } finally {
          store.dispose();
        }
        if (steps < k) break;
        expect(k).toBeLessThan(100);
      }
    }
  });
});

test("the lock words of a store at rest are all zero", () => {
  const store = new EngineStore();
  try {
    const executors = [store.open(), store.open(), store.open()];
    const accounts = createAccounts(executors[0], 64, 10);
    for (let i = 0; i < 600; i++) {
      transact(executors[i % 3], (tx) => {
        addTo(tx, accounts[i % 64], -1);
        addTo(tx, accounts[(i * 7 + 1) % 64], 1);
      });
    }
    for (const account of accounts) {
      const { i32 } = store.memory.regionOf(account.address);
      expect(Atomics.load(i32, wordOf(account.address) + LOCK)).toBe(0);
    }
    expect(sumOf(executors[1], accounts)).toBe(640);
  } finally {
    store.dispose();
  }
});
