/** SmallBank by itself: the mix and the hot spot that are drawn, and a check that finds what is wrong. */

import { describe, expect, test } from "vitest";
import {
  hotAccounts,
  MAX_BALANCE_DOLLARS,
  MIN_BALANCE_DOLLARS,
  smallBankMix,
} from "../../workloads/smallbank/parameters.ts";
import { initialTotal } from "../../workloads/smallbank/rows.ts";
import { smallbank } from "../../workloads/smallbank/smallbank.ts";
import {
  Accounts,
  Checking,
  Savings,
  type SmallBankStore,
} from "../../workloads/smallbank/store.ts";
import { DONE, REFUSED } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { SmallBankModel } from "./smallbank-model.ts";

const ACCOUNTS = 1_000;
const SEED = fixedSeed(20_261);
const one = { seed: SEED, lane: 0, lanes: 1 };

/** Says what it was asked for. */
function recording(calls: (number | string)[][]): SmallBankStore {
  const note =
    (name: string) =>
    (...values: number[]): number => {
      calls.push([name, ...values]);
      return 0;
    };
  return {
    balance: note("balance"),
    depositChecking: note("deposit checking"),
    transactSavings: note("transact savings"),
    amalgamate: note("amalgamate"),
    writeCheck: note("write check"),
    sendPayment: note("send payment"),
  };
}

function drawn(count: number, options = one): (number | string)[][] {
  const calls: (number | string)[][] = [];
  const session = smallbank(ACCOUNTS).session(recording(calls), options);
  for (let i = 0; i < count; i++) void session.next();
  return calls;
}

describe("H-Store's SmallBankClient and SmallBankConstants", () => {
  const count = 100_000;
  const calls = drawn(count);

  test("the mix", () => {
    expect(smallBankMix.reduce((sum, { percent }) => sum + percent, 0)).toBe(100);
    for (const { name, percent } of smallBankMix) {
      const part = calls.filter(([each]) => each === name).length / count;
      // Four standard deviations of 100,000 draws.
      expect(Math.abs(part - percent / 100), name).toBeLessThan(0.006);
    }
  });

  test("90 % of the transactions go to the first 4 % of the accounts, evenly (FaSST §6)", () => {
    const hot = hotAccounts(ACCOUNTS);
    expect(hot).toBe(40);
    const isHot = calls.filter(([, customer]) => (customer as number) < hot);
    expect(Math.abs(isHot.length / count - 0.9)).toBeLessThan(0.004);
    const counts = new Array<number>(ACCOUNTS).fill(0);
    for (const [, customer] of calls) counts[customer as number]++;
    for (let customer = 0; customer < hot; customer++) {
      expect(Math.abs(counts[customer] - (0.9 * count) / hot)).toBeLessThan(250);
    }
    expect(Math.min(...counts)).toBeGreaterThan(0);
  });

  test("two customers are different, and both hot or both cold", () => {
    const hot = hotAccounts(ACCOUNTS);
    const pairs = calls.filter(([name]) => name === "amalgamate" || name === "send payment");
    const others = new Set<number>();
    for (const [, from, to] of pairs as [string, number, number][]) {
      expect(from).not.toBe(to);
      expect(from < hot).toBe(to < hot);
      expect(to).toBeLessThan(ACCOUNTS);
      others.add(to);
    }
    // The rarest are drawn four times on average: nearly all of them at least once.
    expect(others.size).toBeGreaterThan(0.95 * ACCOUNTS);
  });

  test("amounts in cents", () => {
    const amounts = (name: string): unknown[] => [
      ...new Set(calls.filter(([each]) => each === name).map((call) => call.at(-1))),
    ];
    expect(amounts("deposit checking")).toEqual([130]);
    expect(amounts("transact savings")).toEqual([2020]);
    expect(amounts("write check")).toEqual([500]);
    expect(amounts("send payment")).toEqual([500]);
  });

  test("the same seed and lane draw the same, others draw others", () => {
    expect(drawn(1_000)).toEqual(calls.slice(0, 1_000));
    expect(drawn(1_000, { ...one, lane: 1, lanes: 2 })).not.toEqual(calls.slice(0, 1_000));
    expect(drawn(1_000, { ...one, seed: SEED + 1 })).not.toEqual(calls.slice(0, 1_000));
  });

  test("initial balances: whole dollars of a normal distribution within the range", () => {
    const rows = [...smallbank(ACCOUNTS).rows()];
    expect(rows.length).toBe(3 * ACCOUNTS);
    const balances = rows
      .filter(({ table }) => table !== Accounts)
      .map(({ row }) => (row as { bal: number }).bal);
    for (const bal of balances) {
      expect(bal % 100).toBe(0);
      expect(bal).toBeGreaterThanOrEqual(MIN_BALANCE_DOLLARS * 100);
      expect(bal).toBeLessThan(MAX_BALANCE_DOLLARS * 100);
    }
    const total = balances.reduce((sum, bal) => sum + bal, 0);
    expect(total).toBe(initialTotal(ACCOUNTS));
    // In the middle of the range; 68 % / 95 % of a normal distribution are within a quarter of it.
    expect(Math.abs(total / balances.length / 100 - 30_000)).toBeLessThan(1_000);
    const near = balances.filter((bal) => Math.abs(bal / 100 - 30_000) < 10_000).length;
    expect(Math.abs(near / balances.length - 0.683 / 0.954)).toBeLessThan(0.05);
  });
});

describe("the check", () => {
  const workload = smallbank(ACCOUNTS);

  function afterRun(transactions = 20_000) {
    const model = new SmallBankModel();
    model.load(workload.rows());
    const session = workload.session(model, one);
    let refused = 0;
    for (let i = 0; i < transactions; i++) if (session.next() === REFUSED) refused++;
    return { model, refused, check: () => workload.check(model.rows, session.tally()) };
  }

  test("holds, though accounts run dry and payments are refused", async () => {
    const { refused, check } = afterRun();
    expect(refused).toBeGreaterThan(0);
    expect(await check()).toEqual([]);
  });

  test("finds a lost update, also of one cent", async () => {
    const { model, check } = afterRun();
    const row = model.get(Checking, 7)!;
    model.put(Checking, { ...row, bal: (row.bal as number) - 1 });
    expect(await check()).toEqual([expect.stringContaining(": -1")]);
  });

  test("finds a transaction that was told and not done", async () => {
    const { model } = afterRun(0);
    const session = workload.session(
      { ...recording([]), depositChecking: (_c, cents) => cents },
      one,
    );
    while (session.tally().changedCents === 0) expect(session.next()).toBe(DONE);
    expect(await workload.check(model.rows, session.tally())).toHaveLength(1);
  });

  test.each([Accounts, Savings, Checking])("finds a customer that $name lost", async (table) => {
    const { model, check } = afterRun();
    model.delete(table, 12);
    expect((await check()).join("\n")).toContain(`${table.name}: customer 12 is lost`);
  });

  test("finds a wrong name, a negative savings account, half a cent, and somebody else", async () => {
    const { model, check } = afterRun();
    model.put(Accounts, { custid: 3, name: "3" });
    model.put(Savings, { custid: 4, bal: -1 });
    model.put(Checking, { custid: 5, bal: 0.5 });
    model.put(Checking, { custid: ACCOUNTS, bal: 0 });
    const problems = (await check()).join("\n");
    expect(problems).toContain("customer 3 is called 3");
    expect(problems).toContain("customer 4 has -1 cents");
    expect(problems).toContain("customer 5 has 0.5 cents");
    expect(problems).toContain(`nobody is customer ${ACCOUNTS}`);
  });
});

test("too few accounts are refused", () => {
  expect(() => smallbank(3)).toThrow(RangeError);
  expect(() => smallbank(4.5)).toThrow(RangeError);
});
