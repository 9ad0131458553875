/** Transactions that are locked, and held until a message says how they ended (engine/prepared.ts). */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { readObject } from "../../src/engine/objects.ts";
import { dependOn } from "../../src/engine/prepared.ts";
import { readAtSnapshot } from "../../src/engine/run.ts";
import { isSignal } from "../../src/engine/signals.ts";
import { HEAD, TAIL } from "../../src/engine/slot.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { regionIdOf, wordOf } from "../../src/memory/address.ts";
import {
  INSTALLING,
  LOCK,
  lockMode,
  lockOwner,
  lockWord,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { MAX_EPOCH_LAG } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { lockFault } from "../../src/tools/structures/locks.ts";
import {
  addTo,
  balanceOf,
  createAccount,
  createAccounts,
  freeAccount,
  lockOf,
  readAccount,
  sumOf,
  transact,
  versionOf,
} from "../helpers/engine-accounts.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";

let store: EngineStore;
let holder: Executor;
let other: Executor;

function start(isLogged = false): void {
  store?.dispose();
  store = new EngineStore(SMALL, "mapped files", isLogged);
  holder = store.open();
  holder.isPatient = false;
  other = store.open();
  other.isPatient = false;
}

beforeEach(() => start());
afterEach(() => store.dispose());

interface Held {
  readonly tx: Transaction;
  readonly entered: number;
}

/** Executes and prepares; undefined if somebody was in the way. */
function prepare(executor: Executor, body: (tx: Transaction) => void): Held | undefined {
  const tx = new Transaction(executor);
  const entered = executor.enter();
  try {
    body(tx);
    if (executor.committer.prepare(tx)) return { tx, entered };
  } catch (error) {
    if (!isSignal(error)) throw error;
  }
  executor.committer.release(tx);
  end(executor, { tx, entered });
  return undefined;
}

function end(executor: Executor, { tx, entered }: Held): void {
  tx.clear();
  executor.leave(entered);
}

function commit(executor: Executor, held: Held): void {
  expect(executor.committer.commitPrepared(held.tx)).toBe(true);
  end(executor, held);
}

function release(executor: Executor, held: Held): void {
  executor.committer.release(held.tx);
  end(executor, held);
}

function conflicts(work: () => void): boolean {
  try {
    work();
    return false;
  } catch (error) {
    if (!isSignal(error)) throw error;
    return true;
  }
}

const balance = (executor: Executor, at: Pointer): number => balanceOf(readObject(executor, at));

describe("a prepared transaction", () => {
  test("holds INSTALLING locks, changes nothing before its commit, and everything at it", () => {
    const [a, b] = createAccounts(holder, 2, 100);
    const before = versionOf(store.memory, a);
    const held = prepare(holder, (tx) => {
      addTo(tx, a, -30);
      addTo(tx, b, 30);
    })!;
    for (const at of [a, b]) {
      expect(lockMode(lockOf(store.memory, at))).toBe(INSTALLING);
      expect(lockOwner(lockOf(store.memory, at))).toBe(holder.slot);
    }
    expect(versionOf(store.memory, a)).toBe(before);
    commit(holder, held);
    expect([balance(other, a), balance(other, b)]).toEqual([70, 130]);
    expect(versionOf(store.memory, a)).toBe(versionOf(store.memory, b));
    expect(versionOf(store.memory, a)).toBeGreaterThan(before);
    expect(lockOf(store.memory, a)).toBe(0);
  });

  test("released leaves no trace, and others can have the rows", () => {
    const [a] = createAccounts(holder, 1, 100);
    const before = versionOf(store.memory, a);
    release(holder, prepare(holder, (tx) => addTo(tx, a, 1))!);
    expect(lockOf(store.memory, a)).toBe(0);
    expect(versionOf(store.memory, a)).toBe(before);
    transact(other, (tx) => addTo(tx, a, 5));
    expect(balance(holder, a)).toBe(105);
  });

  test("is met by readers and writers, its own executor's included, as a conflict at once", () => {
    const [a, free] = createAccounts(holder, 2, 100);
    const held = prepare(holder, (tx) => addTo(tx, a, 1))!;
    for (const executor of [holder, other]) {
      expect(conflicts(() => void readAccount(new Transaction(executor), a))).toBe(true);
      expect(conflicts(() => void readObject(executor, a))).toBe(true);
      expect(prepare(executor, (tx) => addTo(tx, a, 1))).toBeUndefined();
      expect(balance(executor, free)).toBe(100);
    }
    commit(holder, held);
    expect(balance(other, a)).toBe(101);
  });

  test("that read what changed before it prepared is refused, with no lock left", () => {
    const [a, b] = createAccounts(holder, 2, 100);
    for (const changed of [a, b]) {
      const held = prepare(holder, (tx) => {
        readAccount(tx, a);
        addTo(tx, b, 1);
        transact(other, (theirs) => addTo(theirs, changed, 1));
      });
      expect(held).toBeUndefined();
      expect([lockOf(store.memory, a), lockOf(store.memory, b)]).toEqual([0, 0]);
    }
  });

  test("is validated again later: what it only read may have changed or been locked since", () => {
    const [a, b] = createAccounts(holder, 2, 100);
    const held = prepare(holder, (tx) => {
      readAccount(tx, a);
      addTo(tx, b, 1);
    })!;
    expect(holder.committer.isPreparedValid(held.tx)).toBe(true);
    const theirs = prepare(other, (tx) => addTo(tx, a, 1))!;
    expect(holder.committer.isPreparedValid(held.tx)).toBe(false);
    release(other, theirs);
    expect(holder.committer.isPreparedValid(held.tx)).toBe(true);
    transact(other, (tx) => addTo(tx, a, 1));
    expect(holder.committer.isPreparedValid(held.tx)).toBe(false);
    release(holder, held);
    expect(lockOf(store.memory, b)).toBe(0);
  });

  test("prepared again keeps its locks and takes the new ones; a conflict gives up all of them", () => {
    const [a, b, c] = createAccounts(holder, 3, 100);
    const held = prepare(holder, (tx) => addTo(tx, a, 1))!;
    addTo(held.tx, b, 1);
    addTo(held.tx, a, 1);
    expect(holder.committer.prepare(held.tx)).toBe(true);
    const theirs = prepare(other, (tx) => addTo(tx, c, 1))!;
    expect(conflicts(() => addTo(held.tx, c, 1))).toBe(true);
    release(other, theirs);
    commit(holder, held);
    expect([a, b, c].map((at) => balance(other, at))).toEqual([102, 101, 100]);

    const again = prepare(holder, (tx) => addTo(tx, a, 1))!;
    addTo(again.tx, b, 1);
    transact(other, (tx) => addTo(tx, b, 1));
    expect(holder.committer.prepare(again.tx)).toBe(false);
    expect([a, b].map((at) => lockOf(store.memory, at))).toEqual([0, 0]);
    end(holder, again);
  });

  test("depends on versions that were read elsewhere", () => {
    const [a, b] = createAccounts(holder, 2, 100);
    const { i32 } = store.memory.regionOf(a.address);
    const word = wordOf(a.address);
    const [high, low] = [i32[word + VERSION_HIGH], i32[word + VERSION_LOW]];
    const depends = (tx: Transaction): boolean =>
      dependOn(tx, regionIdOf(a.address), word, high, low);
    const held = prepare(holder, (tx) => {
      expect(depends(tx)).toBe(true);
      addTo(tx, b, 1);
    })!;
    transact(other, (tx) => addTo(tx, a, 1));
    expect(holder.committer.isPreparedValid(held.tx)).toBe(false);
    release(holder, held);
    expect(depends(new Transaction(holder))).toBe(false);
    // What is depended on and then written is locked with the version that was depended on.
    const tx = new Transaction(holder);
    expect(dependOn(tx, regionIdOf(a.address), word, high, low)).toBe(false);
    expect(conflicts(() => addTo(tx, a, 1)) || !holder.committer.prepare(tx)).toBe(true);
    expect(lockOf(store.memory, a)).toBe(0);
  });

  test("that allocates and frees: cells are theirs who commit, and free again after a release", () => {
    const [doomed] = createAccounts(holder, 1, 7);
    const used = new Set<number>();
    for (let round = 0; round < 50; round++) {
      let fresh: Pointer | undefined;
      const held = prepare(holder, (tx) => {
        fresh = createAccount(tx, 40);
        freeAccount(tx, doomed);
      })!;
      used.add(fresh!.address);
      release(holder, held);
    }
    expect(used.size).toBeLessThan(50);
    expect(balance(other, doomed)).toBe(7);
    let fresh: Pointer | undefined;
    const held = prepare(holder, (tx) => {
      fresh = createAccount(tx, 40);
      freeAccount(tx, doomed);
    })!;
    commit(holder, held);
    expect(balance(other, fresh!)).toBe(40);
    expect(() => readObject(other, doomed)).toThrow("freed");
  });
});

describe("many at once", () => {
  test("prepared, committed and released in any order, beside ordinary commits: no money is lost", () => {
    const seed = 20_261_115;
    const random = new Random(seed);
    const accounts = createAccounts(holder, 40, 100);
    const held = new Map<Executor, Held[]>([
      [holder, []],
      [other, []],
    ]);
    const counts = { committed: 0, released: 0, refused: 0, ordinary: 0 };
    for (let step = 0; step < 3_000; step++) {
      const executor = random.below(2) === 0 ? holder : other;
      const mine = held.get(executor)!;
      const from = accounts[random.below(accounts.length)];
      const to = accounts[random.below(accounts.length)];
      const move = (tx: Transaction): void => {
        addTo(tx, from, -1);
        addTo(tx, to, 1);
      };
      if (random.below(3) === 0 && mine.length > 0) {
        const [each] = mine.splice(random.below(mine.length), 1);
        const isCommitted = random.below(2) === 0;
        if (isCommitted) commit(executor, each);
        else release(executor, each);
        counts[isCommitted ? "committed" : "released"]++;
      } else if (random.below(2) === 0) {
        const tx = new Transaction(executor);
        const entered = executor.enter();
        if (!conflicts(() => move(tx)) && executor.committer.commit(tx)) counts.ordinary++;
        end(executor, { tx, entered });
      } else {
        const each = mine.length < 8 ? prepare(executor, move) : undefined;
        if (each === undefined) counts.refused++;
        else mine.push(each);
      }
    }
    for (const [executor, mine] of held) for (const each of mine) release(executor, each);
    for (const at of accounts) expect(lockOf(store.memory, at), `seed ${seed}`).toBe(0);
    expect(sumOf(other, accounts), `seed ${seed}`).toBe(4_000);
    for (const count of Object.values(counts)) expect(count, `seed ${seed}`).toBeGreaterThan(50);
    // Nothing is announced any more: epochs before this one are past.
    expect(other.epochs.isPast(other.epochs.current())).toBe(true);
  });
});

describe("a full journal", () => {
  test("makes the commit wait, with its locks, until the log has caught up", () => {
    start(true);
    const [a, b] = createAccounts(holder, 2, 100);
    const held = prepare(holder, (tx) => addTo(tx, a, 1))!;
    const fill = (): boolean => {
      const tx = new Transaction(holder);
      const entered = holder.enter();
      addTo(tx, b, 1);
      const isDone = holder.committer.commit(tx);
      end(holder, { tx, entered });
      return isDone;
    };
    let filled = 0;
    while (fill()) expect(++filled).toBeLessThan(100_000);
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(holder.committer.commitPrepared(held.tx)).toBe(false);
      expect(lockMode(lockOf(store.memory, a))).toBe(INSTALLING);
    }
    // As the log's writer does when it has written all of it.
    const { control } = store.memory;
    const at = control.slotAt(holder.slot);
    Atomics.store(control.i32, at + TAIL, Atomics.load(control.i32, at + HEAD));
    commit(holder, held);
    expect([balance(other, a), balance(other, b)]).toEqual([101, 100 + filled]);
  });

  test("a write set that never fits is refused before anything is locked", () => {
    const accounts = [1, 2, 3].flatMap(() => createAccounts(holder, 1_000, 1));
    const tx = new Transaction(holder);
    const entered = holder.enter();
    for (const at of accounts) addTo(tx, at, 1);
    expect(() => holder.committer.prepare(tx)).toThrow(
      expect.objectContaining({ code: "SITU_TOO_LARGE" }),
    );
    for (const at of accounts) expect(lockOf(store.memory, at)).toBe(0);
    end(holder, { tx, entered });
  });
});

describe("others beside it", () => {
  test("verify takes a prepared lock for a lock, and one that nobody holds for damage", () => {
    const [a, b] = createAccounts(holder, 2, 100);
    const held = prepare(holder, (tx) => addTo(tx, a, 1))!;
    const region = other.memory.regionOf(a.address);
    expect(lockFault(other, region, wordOf(a.address))).toBeUndefined();
    expect(lockFault(holder, region, wordOf(a.address))).toBeUndefined();
    release(holder, held);
    // A slot that never prepares, at no commit.
    const bystander = store.open();
    const { i32 } = other.memory.regionOf(b.address);
    const word = wordOf(b.address);
    Atomics.store(i32, word + LOCK, lockWord(bystander.slot, INSTALLING));
    expect(lockFault(other, other.memory.regionOf(b.address), word)).toContain("at no commit");
    Atomics.store(i32, word + LOCK, 0);
  });

  test("a snapshot taken while it is prepared does not see it, before and after its commit", () => {
    const [a, b] = createAccounts(holder, 2, 100);
    const held = prepare(holder, (tx) => addTo(tx, a, 1))!;
    const snapshot = Snapshot.take(other, 60_000, 5_000);
    const at = (pointer: Pointer): number =>
      readAtSnapshot(other, new Transaction(other), snapshot, readAccount, pointer);
    expect(at(b)).toBe(100);
    commit(holder, held);
    transact(holder, (tx) => addTo(tx, b, 1));
    expect([at(a), at(b)]).toEqual([100, 100]);
    snapshot.release();
    const later = Snapshot.take(other, 60_000, 5_000);
    const after = readAtSnapshot(other, new Transaction(other), later, readAccount, a);
    expect(after).toBe(101);
    later.release();
  });

  test("epochs move up to another machine's, never back, and not beyond what is announced", () => {
    const { epochs } = holder;
    const first = epochs.current();
    epochs.raiseTo(first + 1_000);
    expect(epochs.current()).toBe(first + 1_000);
    epochs.raiseTo(first);
    expect(epochs.current()).toBe(first + 1_000);
    const entered = other.enter();
    const [a] = createAccounts(holder, 1, 100);
    // Far ahead: half a lag at once, and no further while somebody is that far behind.
    epochs.raiseTo(first + 10 * MAX_EPOCH_LAG);
    epochs.raiseTo(first + 10 * MAX_EPOCH_LAG);
    epochs.raiseTo(first + 10 * MAX_EPOCH_LAG);
    expect(epochs.current() - (first + 1_000)).toBeLessThanOrEqual(MAX_EPOCH_LAG);
    other.leave(entered);
    while (epochs.current() < first + 10 * MAX_EPOCH_LAG) {
      const before = epochs.current();
      epochs.raiseTo(first + 10 * MAX_EPOCH_LAG);
      expect(epochs.current()).toBeGreaterThan(before);
    }
    const before = versionOf(store.memory, a);
    commit(holder, prepare(holder, (tx) => addTo(tx, a, 1))!);
    expect(versionOf(store.memory, a)).toBeGreaterThan(before);
  });
});
