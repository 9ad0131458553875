// The plan: what the issue asks for is in it, and nothing twice.
import { describe, expect, test } from "vitest";
import { turnOrder } from "../../benchmarks/suite/contest.ts";
import { bars, group, inFlightOf, openingsOf, suite } from "../../benchmarks/suite/plan.ts";
import { makeWorkload, workloadNames } from "../../benchmarks/suite/workloads.ts";

describe.each([
  ["the suite", false],
  ["the quick one", true],
])("%s", (_, quick) => {
  const groups = suite(quick);
  const cells = groups.flatMap((plan) => plan.cells);

  test("has unique ids", () => {
    const ids = [...groups, ...cells].map(({ id }) => id);
    const twice = cells.filter((cell) => cells.filter(({ id }) => id === cell.id).length > 1);
    expect(twice).toEqual([]);
    expect(new Set(groups.map(({ id }) => id)).size).toBe(groups.length);
    expect(ids).not.toContain("");
  });

  test("has the cell of every bar, with Situ and whom it is compared with", () => {
    for (const { cell, against } of bars) {
      const plan = groups.find((each) => each.cells.some(({ id }) => id === cell));
      expect(plan?.engines, cell).toContain("situ");
      if (against !== undefined) expect(plan?.engines, cell).toContain(against);
    }
  });

  test("has every workload", () => {
    expect(new Set(cells.map(({ workload }) => workload))).toEqual(new Set(workloadNames));
  });

  test("starts as many processes as its largest cell has", () => {
    for (const plan of groups) {
      expect(plan.processes).toBe(Math.max(...plan.cells.map(({ processes }) => processes)));
    }
  });

  // Loaded are the tables of the first one; the others run on them.
  test("has only workloads with the same tables in one group", () => {
    for (const plan of groups) {
      const [first, ...others] = plan.cells.map(({ workload }) => makeWorkload(workload, 10));
      for (const { name, tables } of others) expect(tables, name).toEqual(first.tables);
    }
  });
});

test("quick is small", () => {
  const [full, quick] = [suite(false), suite(true)];
  quick.forEach((plan, index) => {
    expect(plan.size * 10).toBeLessThanOrEqual(full[index].size);
    expect(plan.size).toBeGreaterThanOrEqual(1_000);
  });
});

describe("the issue's bars", () => {
  const cellOf = (id: string) =>
    suite(false)
      .flatMap((plan) => plan.cells.map((cell) => ({ ...cell, durability: plan.durability })))
      .find((cell) => cell.id === id);

  // The table of the issue, in its order.
  test.each([
    ["ycsb-b-none-1", "ycsb-b", 1, "none", 3],
    ["ycsb-c-none-1", "ycsb-c", 1, "none", 3],
    ["ycsb-a-none-2", "ycsb-a", 2, "none", 5],
    ["smallbank-none-2", "smallbank", 2, "none", 15],
    ["smallbank-none-1-open", "smallbank", 1, "none", 1],
    ["tatp-none-2", "tatp", 2, "none", 6],
    ["smallbank-sync-1", "smallbank", 1, "sync", 5],
    ["retwis-none-2", "retwis", 2, "none", 8],
    ["tpcc-none-2", "tpcc", 2, "none", 10],
    ["tpcc-sync-1", "tpcc", 1, "sync", 4],
    ["tao-none-2", "tao", 2, "none", 10],
    ["linkbench-none-2", "linkbench", 2, "none", 6],
    ["linkbench-sync-1", "linkbench", 1, "sync", 5],
  ])("%s", (id, workload, processes, durability, atLeast) => {
    expect(bars.find(({ cell }) => cell === id)?.atLeast).toBe(atLeast);
    expect(cellOf(id)).toMatchObject({ workload, processes, durability });
  });

  test("are all there", () => {
    expect(bars).toHaveLength(13);
    expect(cellOf("smallbank-none-1-open")?.load).toEqual({ kind: "open", perSecond: 5_000 });
    expect(cellOf("smallbank-sync-1")?.load).toEqual({ kind: "closed", inFlight: 64 });
  });
});

describe("in flight", () => {
  test("is what was asked for, except in SQLite, which answers within the call", () => {
    expect(inFlightOf("redis", "none", 8)).toBe(8);
    expect(inFlightOf("situ", "none", 8)).toBe(8);
    expect(inFlightOf("postgres", "sync", 1)).toBe(1);
    expect(inFlightOf("sqlite", "none", 8)).toBe(1);
    expect(inFlightOf("sqlite", "sync", 64)).toBe(1);
  });

  test("is what each engine is quickest with, if nothing was asked for", () => {
    expect(inFlightOf("situ", "none", undefined)).toBe(1);
    expect(inFlightOf("redis", "none", undefined)).toBe(64);
    expect(inFlightOf("situ", "sync", undefined)).toBe(64);
    expect(inFlightOf("sqlite", "sync", undefined)).toBe(1);
  });

  test("of a group is the most of its cells", () => {
    const workload = "tatp";
    const made = (...inFlights: (number | undefined)[]) =>
      group("g", {
        durability: "sync",
        size: 1,
        cells: inFlights.map((inFlight) => (inFlight ? { workload, inFlight } : { workload })),
      }).inFlight;
    expect(made(4, 64, 8)).toBe(64);
    expect(made(undefined)).toBe(undefined);
  });
});

describe("openings", () => {
  const mixed = group("g", {
    durability: "none",
    size: 1,
    cells: [{ workload: "tatp" }, { workload: "tatp", processes: 4 }, { workload: "retwis" }],
  });

  test("SQLite is opened for one process where one process runs", () => {
    const [alone, together, ...others] = openingsOf("sqlite", mixed);
    expect(others).toEqual([]);
    expect(alone.processes).toBe(1);
    expect(alone.cells).toEqual([mixed.cells[0], mixed.cells[2]]);
    expect(together.processes).toBe(4);
    expect(together.cells).toEqual([mixed.cells[1]]);
  });

  test("all others are opened once, and so is SQLite where all cells are alike", () => {
    for (const engine of ["situ", "lmdb", "redis", "postgres", "cluster"] as const) {
      expect(openingsOf(engine, mixed)).toEqual([mixed]);
    }
    const alike = group("g", { durability: "none", size: 1, cells: [{ workload: "tatp" }] });
    expect(openingsOf("sqlite", alike)).toEqual([alike]);
  });

  test("every cell of the suite is in one opening of each engine", () => {
    for (const plan of suite(false)) {
      for (const engine of plan.engines) {
        const cells = openingsOf(engine, plan).flatMap((opening) => opening.cells);
        expect(new Set(cells)).toEqual(new Set(plan.cells));
        expect(cells).toHaveLength(plan.cells.length);
      }
    }
  });
});

describe("turns", () => {
  const count = 5;
  const orderOf = (round: number): number[] =>
    Array.from({ length: count }, (_, turn) => turnOrder(round, turn, count));

  test("everybody has one in each round, also while warming up", () => {
    for (let round = -1; round < 12; round++) {
      expect([...orderOf(round)].sort()).toEqual([0, 1, 2, 3, 4]);
    }
  });

  test("nobody always runs after the same neighbour", () => {
    for (let one = 0; one < count; one++) {
      const before = new Set<number>();
      for (let round = 0; round < 4; round++) {
        const place = orderOf(round).indexOf(one);
        if (place > 0) before.add(orderOf(round)[place - 1]);
      }
      expect(before.size).toBeGreaterThan(1);
    }
  });

  test("of one contestant are its own", () => {
    for (let round = -1; round < 3; round++) expect(turnOrder(round, 0, 1)).toBe(0);
  });
});
