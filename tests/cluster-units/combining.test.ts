/**
 * Calls about one row in one transaction (node/combining.ts), on a store that is a number: each caller gets the result of its
 * own call, whoever fails, and nothing is done twice or left out.
 */

import { expect, test } from "vitest";
import type { TimeLeft } from "../../src/cluster/session.ts";
import { type CombinedCall, Combining } from "../../src/node/combining.ts";
import { type Origin, originsOf } from "../../src/protocols/origin.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { COMBINING_MS, MAX_COMBINED_CALLS } from "../../src/runtime/limits.ts";

const ROW = "1 n7";
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

class Tx {
  value: number;
  floating: unknown;

  constructor(value: number) {
    this.value = value;
  }

  settle(): undefined {}

  unseenFailure(): { readonly error: unknown } | undefined {
    return this.floating === undefined ? undefined : { error: this.floating };
  }
}

/** A row, and what its transactions did. */
class Store {
  value = 0;
  /** The numbers of the calls that each has carried out. */
  readonly committed: number[][] = [];
  runs = 0;
  nowMs = 1_000;
  /** What goes wrong with the next transaction, once its callback has run. */
  next: "conflict" | SituError | undefined;
  isUnder = 0;
  mostUnder = 0;
  readonly combining = new Combining<Tx>(
    (origin, leftMs, callback) => this.#transact(origin, leftMs, callback),
    () => this.nowMs,
  );

  async #transact<T>(origin: Origin, leftMs: number, callback: (tx: Tx) => Promise<T>): Promise<T> {
    expect(leftMs).toBeGreaterThan(0);
    this.isUnder++;
    this.mostUnder = Math.max(this.mostUnder, this.isUnder);
    try {
      for (;;) {
        const tx = new Tx(this.value);
        this.runs++;
        const result = await callback(tx);
        await soon();
        const { next } = this;
        this.next = undefined;
        if (next === "conflict") continue;
        if (next !== undefined) throw next;
        this.value = tx.value;
        this.committed.push(originsOf(origin).map(({ number }) => number));
        return result;
      }
    } finally {
      this.isUnder--;
    }
  }

  /** Has calls of the row combined from now on. */
  async heat(): Promise<void> {
    this.next = "conflict";
    await this.add(0, 0);
    expect(this.combining.isHot(ROW)).toBe(true);
    this.committed.length = 0;
    this.runs = 0;
  }

  call(number: number, body: (tx: Tx) => unknown, leftMs = () => 1_000): Promise<unknown> {
    const time: TimeLeft = { leftMs };
    const origin = { session: "s", number };
    const call: CombinedCall<Tx> = { origin, time, body, notBegun: () => new Error("not begun") };
    return this.combining.run(ROW, call);
  }

  add(number: number, amount: number): Promise<unknown> {
    return this.call(number, (tx) => {
      tx.value += amount;
      return tx.value;
    });
  }

  /** Adds one if that makes an odd number. */
  addIfEven(number: number): Promise<unknown> {
    return this.call(number, async (tx) => {
      const { value } = tx;
      tx.value += 1;
      await undefined;
      if (value % 2 === 1) throw new RangeError(`${value} is odd`);
      return value;
    });
  }
}

const ALL = (calls: Promise<unknown>[]): Promise<unknown[]> =>
  Promise.all(calls.map((call) => call.catch((error: unknown) => (error as Error).message)));

test("calls that do not meet run side by side, each in its own transaction", async () => {
  const store = new Store();
  await ALL([1, 2, 3].map((number) => store.call(number, () => number)));
  expect(store.committed).toEqual([[1], [2], [3]]);
  expect(store.mostUnder).toBe(3);
  expect(store.combining.isHot(ROW)).toBe(false);
});

test("once they have met, all that wait share a transaction, and each has its own result", async () => {
  const store = new Store();
  await store.heat();
  const first = store.add(1, 1);
  await soon();
  const results = ALL([2, 3, 4].map((number) => store.add(number, number)));
  expect(store.combining.waiting).toBe(3);
  expect([await first, ...(await results)]).toEqual([1, 3, 6, 10]);
  expect(store.committed).toEqual([[1], [2, 3, 4]]);
  expect(store.value).toBe(10);
  expect(store.combining.waiting).toBe(0);
});

test("those that come in one turn run together from the first", async () => {
  const store = new Store();
  await store.heat();
  expect(await ALL([1, 2, 3].map((number) => store.add(number, 1)))).toEqual([1, 2, 3]);
  expect(store.committed).toEqual([[1, 2, 3]]);
});

test("a transaction has so many calls at most, the oldest first", async () => {
  const store = new Store();
  await store.heat();
  const count = 2 * MAX_COMBINED_CALLS + 3;
  const numbers = Array.from({ length: count }, (_, i) => i + 1);
  expect(await ALL(numbers.map((number) => store.add(number, 1)))).toEqual(numbers);
  expect(store.committed.map(({ length }) => length)).toEqual([
    MAX_COMBINED_CALLS,
    MAX_COMBINED_CALLS,
    3,
  ]);
  expect(store.committed.flat()).toEqual(numbers);
});

test("a conflict runs all of them again, and each still counts once", async () => {
  const store = new Store();
  await store.heat();
  store.next = "conflict";
  expect(await ALL([1, 2, 3].map((number) => store.add(number, 1)))).toEqual([1, 2, 3]);
  expect(store.runs).toBe(2);
  expect(store.value).toBe(3);
});

test("one that fails does not take the others with it, and sees only what is committed", async () => {
  const store = new Store();
  await store.heat();
  const results = await ALL([
    store.addIfEven(1),
    store.add(2, 1),
    store.addIfEven(3),
    store.addIfEven(4),
    store.addIfEven(5),
    store.add(6, 1),
  ]);
  expect(results).toEqual([0, 2, 2, "3 is odd", "3 is odd", 4]);
  expect(store.value).toBe(4);
  expect(store.committed).toEqual([[1, 2, 3], [6]]);
});

test("if all fail, each is told its own error, and nothing is committed", async () => {
  const store = new Store();
  await store.heat();
  const calls = [1, 2, 3].map((number) =>
    store.call(number, (tx) => {
      tx.value = 99;
      throw new Error(`no ${number}`);
    }),
  );
  expect(await ALL(calls)).toEqual(["no 1", "no 2", "no 3"]);
  expect(store.value).toBe(0);
  expect(store.committed).toEqual([]);
});

test("the failure of an operation that nobody awaits is that of its call", async () => {
  const store = new Store();
  await store.heat();
  const results = await ALL([
    store.add(1, 1),
    store.call(2, (tx) => {
      tx.floating = new Error("left behind");
      tx.value += 10;
    }),
    store.add(3, 1),
  ]);
  expect(results).toEqual([1, "left behind", 2]);
});

test.each(["SITU_TOO_LARGE", "SITU_TIMEOUT"] as const)("%s: one by one", async (code) => {
  const store = new Store();
  await store.heat();
  store.next = new SituError(code, "together");
  expect(await ALL([1, 2, 3].map((number) => store.add(number, 1)))).toEqual([1, 2, 3]);
  expect(store.committed).toEqual([[1], [2], [3]]);
});

test("one that has little time does not take the others apart", async () => {
  const store = new Store();
  await store.heat();
  let leftMs = 1;
  store.next = new SituError("SITU_TIMEOUT", "together");
  const hurried = store.call(
    1,
    () => {
      leftMs = 0;
    },
    () => leftMs,
  );
  expect(await ALL([hurried, store.add(2, 1), store.add(3, 1)])).toEqual(["not begun", 1, 2]);
  expect(store.committed).toEqual([[2, 3]]);
});

test("an outcome that nobody knows is told to all, and nothing is done again", async () => {
  const store = new Store();
  await store.heat();
  store.next = new SituError("SITU_UNKNOWN_OUTCOME", "perhaps");
  expect(await ALL([1, 2].map((number) => store.add(number, 1)))).toEqual(["perhaps", "perhaps"]);
  expect(store.runs).toBe(1);
  expect(await store.add(3, 1)).toBe(1);
});

test("one whose time is over is not begun", async () => {
  const store = new Store();
  await store.heat();
  const late = store.call(
    2,
    () => expect.fail("begun"),
    () => 0,
  );
  expect(await ALL([store.add(1, 1), late, store.add(3, 1)])).toEqual([1, "not begun", 2]);
  expect(store.committed).toEqual([[1, 3]]);
});

test("after a while without company, they run side by side again", async () => {
  const store = new Store();
  await store.heat();
  await store.add(1, 1);
  expect(store.combining.isHot(ROW)).toBe(true);
  store.nowMs += COMBINING_MS + 1;
  await store.add(2, 1);
  await soon();
  expect(store.combining.isHot(ROW)).toBe(false);
});
