/** TIDs: unique, growing along every dependency, also where a counter ends. */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { ACTIVE, announcement, epochsBehind, phaseOf, STATUS } from "../../src/engine/slot.ts";
import {
  epochOf,
  isLater,
  MAX_SEQUENCE,
  sequenceOf,
  tidHigh,
  tidLow,
} from "../../src/engine/tid.ts";
import { EPOCH_HIGH, EPOCH_LOW } from "../../src/memory/control.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import { MAX_EPOCH_LAG } from "../../src/runtime/limits.ts";
import {
  addTo,
  createAccount,
  createAccounts,
  sumOf,
  transact,
  versionOf,
} from "../helpers/engine-accounts.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";

const EPOCH_I64 = EPOCH_LOW / 2;

function withStore(work: (store: EngineStore) => void, epoch?: bigint): void {
  const store = new EngineStore();
  try {
    if (epoch !== undefined) Atomics.store(store.memory.control.i64, EPOCH_I64, epoch);
    work(store);
  } finally {
    store.dispose();
  }
}

function epochOfVersion(version: bigint): number {
  return Number(version >> 20n);
}

/** Commits to one object from the executors in turn; every version must be a later one. */
function commitInTurn(
  store: EngineStore,
  executors: Executor[],
  account: Pointer,
  times: number,
): void {
  const seen = new Set<bigint>();
  let last = versionOf(store.memory, account);
  for (let i = 0; i < times; i++) {
    transact(executors[i % executors.length], (tx) => addTo(tx, account, 1));
    const version = versionOf(store.memory, account);
    if (version <= last || seen.has(version)) {
      throw new Error(`commit ${i}: version ${version.toString(16)} after ${last.toString(16)}`);
    }
    seen.add(version);
    last = version;
  }
}

describe("TID", () => {
  test("orders by epoch, then sequence, then slot, unsigned", () => {
    const moments: [number, number, number, number][] = [
      [0, 1, 0, 0],
      [0, 1, 0, 254],
      [0, 1, 1, 0],
      [0, 1, MAX_SEQUENCE, 254],
      [0, 2, 0, 0],
      [0, 0xfff, 0, 3],
      [0, 0x1000, 0, 3],
      [0, 0x7fffffff, 5, 3],
      [0, 0x80000000 | 0, 0, 3],
      [0, -1, MAX_SEQUENCE, 254],
      [1, 0, 0, 0],
      [0x7ff, -1, 0, 0],
      [0xfff, -1, MAX_SEQUENCE, 254],
    ];
    const tids = moments.map(([high, low, sequence, slot]) => [
      tidHigh(high, low),
      tidLow(low, sequence, slot),
    ]);
    for (let i = 0; i < tids.length; i++) {
      for (let j = 0; j < tids.length; j++) {
        expect(isLater(tids[i][0], tids[i][1], tids[j][0], tids[j][1]), `${i} ${j}`).toBe(i > j);
      }
      const [high, low, sequence] = moments[i];
      expect(sequenceOf(tids[i][1])).toBe(sequence);
      expect(epochOf(tids[i][0], tids[i][1])).toBe(high * 2 ** 32 + (low >>> 0));
    }
  });

  test("the sequence runs out inside an epoch: the epoch advances, nothing is used twice", () => {
    withStore((store) => {
      const one = store.open();
      const account = createAccounts(one, 1, 0)[0];
      const before = one.epochs.current();
      commitInTurn(store, [one], account, 3 * (MAX_SEQUENCE + 1));
      const advanced = one.epochs.current() - before;
      expect(advanced).toBeGreaterThanOrEqual(2);
      expect(advanced).toBeLessThanOrEqual(4);
      expect(sumOf(one, [account])).toBe(3 * (MAX_SEQUENCE + 1));
    });
  });

  test("the same along a chain of dependencies through several executors", () => {
    withStore((store) => {
      const executors = [store.open(), store.open(), store.open()];
      const account = createAccounts(executors[0], 1, 0)[0];
      commitInTurn(store, executors, account, 2 * (MAX_SEQUENCE + 1));
    });
  });

  test("a TID is later than what was only read, too", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const [source, target] = createAccounts(one, 2, 0);
      for (let i = 0; i < 50; i++) transact(one, (tx) => addTo(tx, source, 1));
      const read = versionOf(store.memory, source);
      transact(two, (tx) => {
        addTo(tx, target, tx.executor.slot);
        addTo(tx, target, 0);
        // Only read, never written here.
        tx.depend(
          tx.open(tx.executor.memory.regionOf(source.address), (source.address % 2 ** 32) / 4),
        );
      });
      expect(versionOf(store.memory, target)).toBeGreaterThan(read);
    });
  });

  test("all TIDs of concurrent executors in one epoch differ", () => {
    withStore((store) => {
      const executors = [store.open(), store.open(), store.open()];
      const seen = new Set<bigint>();
      for (let round = 0; round < 300; round++) {
        for (const executor of executors) {
          const account = transact(executor, (tx) => createAccount(tx, 1));
          seen.add(versionOf(store.memory, account));
        }
      }
      expect(seen.size).toBe(900);
    });
  });

  test.each([
    ["2^12, where the epoch reaches the high word of a TID", 2n ** 12n - 3n],
    ["2^28, the sign of announcements less one bit", 2n ** 28n - 3n],
    ["2^29, half the circle of announcements", 2n ** 29n - 3n],
    ["2^30, where announcements wrap", 2n ** 30n - 3n],
    ["2^31, the sign of the low word", 2n ** 31n - 3n],
    ["2^32, where the epoch reaches its high word", 2n ** 32n - 3n],
    ["2^43, the sign of a TID", 2n ** 43n - 3n],
    ["2^44 - 64, nearly the end", 2n ** 44n - 64n],
  ])("the epoch passes %s", (_, start) => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      const accounts = createAccounts(one, 2, 100);
      const from = versionOf(store.memory, accounts[0]);
      expect(epochOfVersion(from)).toBeGreaterThanOrEqual(Number(start));
      for (let i = 0; i < 8; i++) {
        commitInTurn(store, [one, two], accounts[0], 5);
        one.epochs.advance();
      }
      expect(one.epochs.current()).toBeGreaterThan(Number(start) + 8);
      expect(epochOfVersion(versionOf(store.memory, accounts[0]))).toBeGreaterThan(
        Number(start) + 6,
      );
      // A running transaction holds back reclamation, an ended one does not, on both sides.
      two.enter();
      const mark = one.mark();
      expect(one.isPast(mark)).toBe(false);
      two.leave();
      expect(one.isPast(mark)).toBe(true);
      one.mark();
      two.enter();
      expect(one.isPast(mark), "it started later").toBe(true);
      two.leave();
      expect(sumOf(two, accounts)).toBe(240);
    }, start);
  });

  test("the high word of the epoch moves on between the announcement and the TID", () => {
    // Found by trying every atomic load of one commit as the moment of the change.
    const lastOfHighWord = 2n ** 32n - 1n;
    for (let k = 1; ; k++) {
      let finished = false;
      withStore((store) => {
        const one = store.open();
        const account = createAccounts(one, 1, 0)[0];
        Atomics.store(store.memory.control.i64, EPOCH_I64, lastOfHighWord);
        let loads = 0;
        const off = hookAtomics({
          afterLoad: (array, index) => {
            if (index !== EPOCH_LOW && index !== EPOCH_HIGH) return;
            if (array !== one.memory.control.i32 || ++loads !== k) return;
            Atomics.compareExchange(
              store.memory.control.i64,
              EPOCH_I64,
              lastOfHighWord,
              lastOfHighWord + 1n,
            );
          },
        });
        try {
          transact(one, (tx) => addTo(tx, account, 1));
        } finally {
          off();
        }
        const epoch = epochOfVersion(versionOf(store.memory, account));
        expect(epoch, `changed after load ${k}`).toBeGreaterThanOrEqual(Number(lastOfHighWord));
        expect(epoch, `changed after load ${k}`).toBeLessThanOrEqual(Number(lastOfHighWord) + 1);
        transact(store.open(), (tx) => addTo(tx, account, 1));
        finished = loads < k;
      });
      if (finished) break;
      expect(k).toBeLessThan(100);
    }
  });

  test("announcements compare in a circle of 2^30 epochs", () => {
    const around = [0, 1, 5, 2 ** 28, 2 ** 29 - 1, 2 ** 30 - 1, 2 ** 30, 2 ** 31 - 1, 2 ** 32 - 1];
    for (const announced of around) {
      for (const lag of [-3, -1, 0, 1, 7, MAX_EPOCH_LAG]) {
        const word = announcement(announced | 0, 1);
        expect(phaseOf(word)).toBe(1);
        expect(epochsBehind(word, (announced + lag) | 0)).toBe(lag);
      }
    }
  });

  test("nobody may be left behind by half the circle: the epoch refuses to go on, naming him", () => {
    withStore((store) => {
      const [one, two] = [store.open(), store.open()];
      two.enter();
      const { control } = store.memory;
      const far = BigInt(Math.ceil((one.epochs.current() + MAX_EPOCH_LAG) / 65_536) * 65_536);
      Atomics.store(control.i64, EPOCH_I64, far);
      expect(() => one.epochs.advance()).toThrow(`process ${process.pid} has kept a transaction`);
      expect(one.epochs.current()).toBe(Number(far));
      two.leave();
      one.epochs.advance();
      expect(one.epochs.current()).toBe(Number(far) + 1);
    });
  });

  test("a slot that is used again never gives a TID it gave before", () => {
    withStore((store) => {
      const first = store.open();
      const account = createAccounts(first, 1, 0)[0];
      const witness = store.open();
      const seen = new Set<bigint>();
      let executor = first;
      let last = 0n;
      for (let life = 0; life < 60; life++) {
        const { slot } = executor;
        for (let i = 0; i < 3; i++) {
          // A new object each time: nothing but the slot's own past keeps the TIDs apart.
          const fresh = transact(executor, (tx) => createAccount(tx, 1));
          const version = versionOf(store.memory, fresh);
          expect(seen.has(version)).toBe(false);
          expect(version).toBeGreaterThan(last);
          seen.add(version);
          last = version;
        }
        if (life % 2 === 0) store.close(executor);
        else {
          store.kill(executor);
          witness.sweep();
        }
        executor = store.open();
        expect(executor.slot, "the test is about a slot that is used again").toBe(slot);
        transact(executor, (tx) => addTo(tx, account, 1));
      }
      expect(sumOf(witness, [account])).toBe(60);
    });
  });

  test("a new owner of a slot finds it clean", () => {
    withStore((store) => {
      const first = store.open();
      first.enter();
      store.kill(first);
      const second = store.open();
      const witness = store.open();
      witness.sweep();
      const { control } = store.memory;
      const at = control.slotAt(first.slot);
      expect(Atomics.load(control.i32, at + STATUS)).toBe(0);
      expect(Atomics.load(control.i32, at + ACTIVE)).toBe(0);
      expect(
        witness
          .holders()
          .map(({ slot }) => slot)
          .sort(),
      ).toEqual([second.slot, witness.slot].sort());
    });
  });
});
