/** TPC-C by itself: population, draws and mix of its specification, and its twelve conditions. */

import type { Table } from "situ";
import { describe, expect, test } from "vitest";
import { Stream } from "../../workloads/random/stream.ts";
import { Scattered, Zipfian } from "../../workloads/random/zipfian.ts";
import { checkConditions } from "../../workloads/tpcc/check.ts";
import { TpccInputs } from "../../workloads/tpcc/inputs.ts";
import { lastName, nurand } from "../../workloads/tpcc/nurand.ts";
import {
  fullMix,
  fullScale,
  reducedScale,
  scaleOf,
  type TpccScale,
  totalOf,
} from "../../workloads/tpcc/parameters.ts";
import {
  Customer,
  District,
  History,
  Item,
  NewOrder,
  Order,
  OrderLine,
  Stock,
  tpccTables,
  Warehouse,
} from "../../workloads/tpcc/tables.ts";
import { tpcc } from "../../workloads/tpcc/tpcc.ts";
import { addTallies, DONE, REFUSED } from "../../workloads/workload.ts";
import { fixedSeed } from "../helpers/seed.ts";
import type { ModelRow } from "./model-tables.ts";
import { TpccModel } from "./tpcc-model.ts";

const SEED = fixedSeed(20_270);
const scale = reducedScale(2);
/** Generated once; models only replace rows. */
const initial = [...tpcc(scale).rows()];

function loaded(): TpccModel {
  const model = new TpccModel();
  model.load(initial);
  return model;
}

function near(value: number, expected: number, tolerance: number): void {
  expect(Math.abs(value - expected), `${value} and not ${expected}`).toBeLessThan(tolerance);
}

describe("the population", () => {
  const model = loaded();
  const rowsOf = (table: Table): ModelRow[] => [...model.all(table).values()];

  test("has the specification's numbers of rows", () => {
    const counts = tpccTables.map((table) => [table.name, rowsOf(table).length]);
    expect(Object.fromEntries(counts)).toMatchObject({
      warehouse: 2,
      district: 20,
      customer: 600,
      history: 600,
      new_order: 180,
      orders: 600,
      item: 1_000,
      stock: 2_000,
    });
    near(rowsOf(OrderLine).length / rowsOf(Order).length, 10, 0.5);
    expect(fullScale(7)).toEqual({
      warehouses: 7,
      items: 100_000,
      customers: 3_000,
      newOrders: 900,
      lastNames: 1_000,
    });
  });

  test("every customer has one order; a tenth has bad credit, a tenth of the data is original", () => {
    for (let w = 1; w <= 2; w++) {
      const ofFirst = rowsOf(Order).filter((row) => row.o_w_id === w && row.o_d_id === 3);
      const customers = ofFirst.map((row) => row.o_c_id as number).sort((a, b) => a - b);
      expect(customers).toEqual(Array.from({ length: scale.customers }, (_, index) => index + 1));
    }
    const part = (table: Table, is: (row: ModelRow) => boolean): number =>
      rowsOf(table).filter(is).length / rowsOf(table).length;
    near(
      part(Customer, (row) => row.c_credit === "BC"),
      0.1,
      0.04,
    );
    near(
      part(Item, (row) => String(row.i_data).includes("ORIGINAL")),
      0.1,
      0.03,
    );
    near(
      part(Stock, (row) => String(row.s_data).includes("ORIGINAL")),
      0.1,
      0.02,
    );
  });

  test("fits its columns, and is the same each time", () => {
    for (const table of tpccTables as readonly Table[]) {
      for (const [name, { kind, max = 0 }] of Object.entries(table.fields)) {
        if (kind !== "str") continue;
        const longest = Math.max(...rowsOf(table).map((row) => String(row[name]).length));
        expect(longest, name).toBeLessThanOrEqual(max);
      }
    }
    const again = new TpccModel();
    again.load(tpcc(scale).rows());
    expect(again.all(Customer)).toEqual(model.all(Customer));
  });

  test("a size is a number of customers", () => {
    expect(scaleOf(200)).toEqual(reducedScale(1));
    expect(scaleOf(1_200)).toEqual(reducedScale(4));
    expect(scaleOf(30_000)).toEqual(fullScale(1));
    expect(scaleOf(120_000)).toEqual(fullScale(4));
  });
});

describe("draws", () => {
  test("NURand has the chances of its formula", () => {
    const [a, c, least, most] = [255, 223, 0, 999];
    const expected = new Float64Array(most + 1);
    for (let left = 0; left <= a; left++) {
      for (let right = least; right <= most; right++) {
        expected[(((left | right) + c) % (most - least + 1)) + least] += 1 / (a + 1) / (most + 1);
      }
    }
    const stream = new Stream(SEED);
    const draws = 200_000;
    const drawn = new Float64Array(most + 1);
    for (let draw = 0; draw < draws; draw++) drawn[nurand(stream, a, c, least, most)]++;
    // Pearson's statistic: as large as the number of classes, give or take a few deviations.
    let statistic = 0;
    let classes = 0;
    for (let value = least; value <= most; value++) {
      if (expected[value] * draws < 5) continue;
      classes++;
      statistic += (drawn[value] - expected[value] * draws) ** 2 / (expected[value] * draws);
    }
    near(statistic, classes, 6 * Math.sqrt(2 * classes));
  });

  test("last names are made of three syllables", () => {
    expect([0, 371, 999].map(lastName)).toEqual(["BARBARBAR", "PRICALLYOUGHT", "EINGEINGEING"]);
  });

  const count = 10_000;
  const inputsOf = (of: TpccScale, options: object = {}): TpccInputs =>
    new TpccInputs(new Stream(SEED, 1), { scale: of, lane: 0, lanes: 1, ...options });

  test("New-Order: lines, items, rollbacks and remote warehouses", () => {
    const inputs = inputsOf(fullScale(4));
    const orders = Array.from({ length: count }, () => inputs.newOrder());
    const part = (is: (order: (typeof orders)[number]) => boolean): number =>
      orders.filter(is).length / count;
    near(orders.reduce((sum, { items }) => sum + items.length, 0) / count, 10, 0.1);
    near(
      part(({ items }) => items.at(-1) === 100_001),
      0.01,
      0.003,
    );
    near(
      part(({ warehouse, supplies }) => supplies.some((s) => s !== warehouse)),
      0.095,
      0.01,
    );
    const isWithin = (value: number, least: number, most: number): boolean =>
      Number.isInteger(value) && value >= least && value <= most;
    const wrong = orders.filter(
      ({ items, supplies, quantities, warehouse, district, customer }) =>
        items.some((item, line) => line > 0 && item <= items[line - 1]) ||
        supplies.some((supply) => !isWithin(supply, 1, 4)) ||
        quantities.some((quantity) => !isWithin(quantity, 1, 10)) ||
        !isWithin(warehouse, 1, 4) ||
        !isWithin(district, 1, 10) ||
        !isWithin(customer, 1, 3_000),
    );
    expect(wrong).toEqual([]);
  });

  test("Payment: 15 % remote, 60 % by name, 1 to 5000", () => {
    const inputs = inputsOf(fullScale(4));
    const payments = Array.from({ length: count }, () => inputs.payment());
    const part = (is: (payment: (typeof payments)[number]) => boolean): number =>
      payments.filter(is).length / count;
    near(
      part((each) => each.customerWarehouse !== each.warehouse),
      0.15,
      0.015,
    );
    near(
      part(({ customer }) => customer === 0),
      0.6,
      0.02,
    );
    expect(payments.every(({ customer, last }) => (customer === 0) === (last !== ""))).toBe(true);
    expect(payments.every(({ amount }) => amount >= 100 && amount <= 500_000)).toBe(true);
    expect(new Set(payments.map(({ history }) => history)).size).toBe(count);
  });

  test.each([0, 50, 100])("a degree of distribution of %i percent", (remotePercent) => {
    const inputs = inputsOf(fullScale(4), { remotePercent });
    let orders = 0;
    let payments = 0;
    for (let draw = 0; draw < 4_000; draw++) {
      const { supplies, warehouse } = inputs.newOrder();
      if (supplies.some((supply) => supply !== warehouse)) orders++;
      const payment = inputs.payment();
      if (payment.customerWarehouse !== payment.warehouse) payments++;
    }
    near(orders / 4_000, remotePercent / 100, 0.04);
    near(payments / 4_000, remotePercent / 100, 0.04);
  });

  test("items by zipf: the most popular one is drawn as often as it should be", () => {
    const inputs = inputsOf(fullScale(1), { itemsBy: new Scattered(new Zipfian(100_000, 0.9)) });
    const counts = new Map<number, number>();
    let lines = 0;
    for (let draw = 0; draw < 4_000; draw++) {
      for (const item of inputs.newOrder().items) {
        lines++;
        counts.set(item, (counts.get(item) ?? 0) + 1);
      }
    }
    let zeta = 0;
    for (let item = 1; item <= 100_000; item++) zeta += item ** -0.9;
    // Different items in an order: the popular ones are drawn a little less often.
    near(Math.max(...counts.values()) / lines / (1 / zeta), 0.9, 0.15);
  });

  test("lanes have homes of their own, as long as there are enough", () => {
    const homes = (lane: number, lanes: number): Set<number> => {
      const inputs = inputsOf(fullScale(5), { lane, lanes });
      return new Set(Array.from({ length: 200 }, () => inputs.warehouse()));
    };
    expect(homes(0, 2)).toEqual(new Set([1, 3, 5]));
    expect(homes(1, 2)).toEqual(new Set([2, 4]));
    expect(homes(3, 2)).toEqual(new Set([2, 4]));
    expect(homes(7, 8).size).toBe(5);
  });

  test("the total of an order is rounded to a cent", () => {
    expect(totalOf(10_000, 0, 0)).toBe(10_000);
    expect(totalOf(10_000, 5_000, 2_000)).toBe(6_000);
    expect(totalOf(999, 1_234, 1_111)).toBe(Math.round(999 * 0.8766 * 1.1111));
  });

  test("what is no scale is refused", () => {
    expect(() => tpcc(fullScale(0))).toThrow(RangeError);
    expect(() => tpcc(fullScale(1), { remotePercent: 101 })).toThrow(/0 to 100 %/);
  });
});

describe("a session", () => {
  const run = (transactions: number): { model: TpccModel; kinds: number[]; refused: number } => {
    const model = loaded();
    const workload = tpcc(scale);
    const session = workload.session(model, { seed: SEED, lane: 0, lanes: 1 });
    const kinds = fullMix.map(() => 0);
    let refused = 0;
    for (let transaction = 0; transaction < transactions; transaction++) {
      if (session.next() === REFUSED) refused++;
      kinds[session.drawn]++;
    }
    return { model, kinds, refused };
  };

  test("draws the mix", () => {
    const { kinds, refused } = run(3_000);
    for (const [kind, drawn] of kinds.entries()) {
      near(drawn / 3_000, fullMix[kind].percent / 100, 0.03);
    }
    near(refused / kinds[0], 0.01, 0.01);
  });

  test("New-Order alone", () => {
    const workload = tpcc(scale, { newOrderOnly: true });
    const model = loaded();
    const session = workload.session(model, { seed: SEED, lane: 0, lanes: 1 });
    for (let transaction = 0; transaction < 200; transaction++) {
      expect([DONE, REFUSED]).toContain(session.next());
      expect(session.drawn).toBe(0);
    }
    expect(session.tally()).toMatchObject({ payments: 0, delivered: 0 });
  });
});

describe("the conditions", () => {
  async function problemsAfter(
    break_: (model: TpccModel) => void,
    transactions = 200,
  ): Promise<{ conditions: string[]; all: string[] }> {
    const model = loaded();
    const workload = tpcc(scale);
    const session = workload.session(model, { seed: SEED, lane: 0, lanes: 1 });
    for (let each = 0; each < transactions; each++)
      expect([DONE, REFUSED]).toContain(session.next());
    break_(model);
    const conditions = await checkConditions(scale, model.rows);
    const all = await workload.check(model.rows, addTallies([session.tally()]));
    return { conditions, all };
  }

  test.each([0, 200])("hold after %i transactions", async (transactions) => {
    const { all } = await problemsAfter(() => undefined, transactions);
    expect(all, `seed ${SEED}`).toEqual([]);
  });

  test("hold when nothing is left to deliver", async () => {
    const model = loaded();
    const workload = tpcc(scale);
    let delivered = 0;
    for (let each = 0; each < scale.newOrders; each++) {
      for (let w = 1; w <= 2; w++) delivered += model.delivery(w, 1, 1).filter((o) => o > 0).length;
    }
    expect(model.all(NewOrder).size).toBe(0);
    expect(model.delivery(1, 1, 1)).toEqual(Array(10).fill(0));
    expect(await workload.check(model.rows, { delivered })).toEqual([]);
  });

  const change = (model: TpccModel, table: Table, changes: (row: ModelRow) => object): void => {
    const [row] = [...model.all(table).values()];
    model.put(table, { ...row, ...changes(row) });
  };
  const lastOf = (model: TpccModel, table: Table, is: (row: ModelRow) => boolean): ModelRow => {
    const found = [...model.all(table).values()].filter(is).at(-1);
    if (found === undefined) throw new Error(`no row of ${table.name}`);
    return found;
  };
  const remove = (model: TpccModel, table: Table, row: ModelRow): void => {
    model.delete(table, ...table.key.map((name) => row[name]));
  };

  // Each breaks something that only a lost or half-done transaction would leave; the number is that of
  // the condition that must find it.
  test.each<[string, number, (model: TpccModel) => void]>([
    [
      "a payment that the warehouse missed",
      1,
      (model) => {
        change(model, Warehouse, (row) => ({ w_ytd: (row.w_ytd as number) - 100 }));
      },
    ],
    [
      "a district that counts on from the wrong order",
      2,
      (model) => {
        change(model, District, (row) => ({ d_next_o_id: (row.d_next_o_id as number) + 1 }));
      },
    ],
    [
      "a new order in the middle that is gone",
      3,
      (model) => {
        const first = lastOf(model, NewOrder, (row) => row.no_w_id === 1 && row.no_d_id === 1);
        model.delete(NewOrder, 1, 1, (first.no_o_id as number) - 1);
      },
    ],
    [
      "an order line that was lost",
      4,
      (model) => {
        remove(
          model,
          OrderLine,
          lastOf(model, OrderLine, () => true),
        );
      },
    ],
    [
      "an order that is carried and still new",
      5,
      (model) => {
        const { no_w_id, no_d_id, no_o_id } = lastOf(model, NewOrder, () => true);
        const order = model.get(Order, no_w_id, no_d_id, no_o_id);
        model.put(Order, { ...order, o_carrier_id: 3 });
      },
    ],
    [
      "an order that has more lines than it says",
      6,
      (model) => {
        change(model, Order, (row) => ({ o_ol_cnt: (row.o_ol_cnt as number) - 1 }));
      },
    ],
    [
      "a line that was not delivered with its order",
      7,
      (model) => {
        change(model, OrderLine, () => ({ ol_delivery_d: null }));
      },
    ],
    [
      "a payment that is in no history",
      8,
      (model) => {
        remove(
          model,
          History,
          lastOf(model, History, (row) => row.h_w_id === 1),
        );
      },
    ],
    [
      "a payment that the district missed",
      9,
      (model) => {
        change(model, District, (row) => ({ d_ytd: (row.d_ytd as number) - 100 }));
      },
    ],
    [
      "a customer who was charged twice",
      10,
      (model) => {
        change(model, Customer, (row) => ({ c_balance: (row.c_balance as number) - 100 }));
      },
    ],
    [
      "a payment that was forgotten in the customer's sum",
      12,
      (model) => {
        change(model, Customer, (row) => ({ c_ytd_payment: (row.c_ytd_payment as number) - 100 }));
      },
    ],
  ])("%s", async (_, condition, break_) => {
    const { conditions } = await problemsAfter(break_);
    expect(conditions.some((problem) => problem.startsWith(`${condition}: `))).toBe(true);
  });

  test("11: a delivery that nobody was told of", async () => {
    const { conditions, all } = await problemsAfter((model) => model.delivery(1, 1, 1));
    expect(conditions).toEqual([]);
    expect(all).toEqual([
      expect.stringMatching(/^11: orders that are delivered: \d+ and not \d+$/),
    ]);
  });

  test("a stock that forgot a line, an order and a payment that nobody was told of", async () => {
    const { conditions } = await problemsAfter((model) => {
      const sold = lastOf(model, Stock, (row) => (row.s_order_cnt as number) > 0);
      model.put(Stock, { ...sold, s_order_cnt: 0, s_ytd: 0 });
    });
    expect(conditions.every((problem) => problem.startsWith("stock: "))).toBe(true);
    expect(conditions).toHaveLength(2);
    const inputs = new TpccInputs(new Stream(1), { scale, lane: 9, lanes: 1 });
    const { all } = await problemsAfter((model) => {
      model.payment(inputs.payment());
      let ordered = false;
      while (!ordered) ordered = model.newOrder(inputs.newOrder()) !== undefined;
    });
    expect(all.map((problem) => problem.split(":").slice(0, 2).join(":"))).toEqual([
      "tally: orders",
      "tally: payments",
      "tally: cents that were paid",
    ]);
  });
});
