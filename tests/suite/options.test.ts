// The command line of the suite: what it understands, and what it says about what it does not.
import { describe, expect, test } from "vitest";
import { engineNames } from "../../benchmarks/engines/engine.ts";
import { suite } from "../../benchmarks/suite/plan.ts";
import { parseSuiteArguments } from "../../benchmarks/suite/suite-options.ts";
import { workloadNames } from "../../benchmarks/suite/workloads.ts";

const parse = (text: string) => parseSuiteArguments(text.split(" ").filter((each) => each !== ""));

describe("the whole suite", () => {
  test("is what no arguments mean", () => {
    const options = parse("");
    expect(options.groups).toEqual(suite(false));
    expect(options).toMatchObject({ isWhole: true, hasBars: true, quick: false, json: false });
    expect(options).toMatchObject({ seed: 42, folder: undefined });
  });

  test("is smaller with --quick", () => {
    const [quick, whole] = [parse("--quick"), parse("")];
    expect(quick.groups).toEqual(suite(true));
    expect(quick.isWhole).toBe(true);
    expect(quick.rounds * quick.roundMs).toBeLessThan(whole.rounds * whole.roundMs);
    expect(quick.warmUpMs).toBeLessThan(whole.warmUpMs);
  });

  test("takes rounds, their length, a seed, a folder and --json", () => {
    const options = parse("--rounds 7 --round-ms 20 --seed 9 --out /tmp/there --json");
    expect(options).toMatchObject({ rounds: 7, roundMs: 20, seed: 9, folder: "/tmp/there" });
    expect(options.json).toBe(true);
  });
});

describe("--only", () => {
  test("chooses groups by their id, with all cells", () => {
    const [group, ...others] = parse("--only tatp").groups;
    expect(others).toEqual([]);
    expect(group).toEqual(suite(false).find(({ id }) => id === "tatp"));
  });

  test("chooses cells by their id, and starts no more processes than they need", () => {
    const { groups, isWhole, hasBars } = parse("--only retwis-none-2");
    expect(groups.map(({ cells }) => cells.map(({ id }) => id))).toEqual([["retwis-none-2"]]);
    expect(groups[0].processes).toBe(2);
    expect({ isWhole, hasBars }).toEqual({ isWhole: false, hasBars: true });
  });
});

describe("--engines", () => {
  test("replaces the engines of all groups", () => {
    const options = parse("--engines situ,postgres");
    expect(options.isWhole).toBe(false);
    for (const { engines } of options.groups) expect(engines).toEqual(["situ", "postgres"]);
  });

  test("may be written with spaces", () => {
    const { groups } = parseSuiteArguments(["tatp", "--engines", "situ, lmdb"]);
    expect(groups[0].engines).toEqual(["situ", "lmdb"]);
  });
});

describe("a workload with conditions of its own", () => {
  test.each(workloadNames.filter((name) => name !== "tpcc"))("%s", (name) => {
    const { groups, isWhole, hasBars } = parse(name);
    expect(groups).toHaveLength(1);
    const [{ cells, processes, durability, size, inFlight }] = groups;
    expect(cells.map(({ workload, load }) => ({ workload, load }))).toEqual([
      { workload: name, load: { kind: "closed" } },
    ]);
    expect({ processes, durability, size, inFlight }).toEqual({
      processes: 1,
      durability: "none",
      size: 100_000,
      inFlight: undefined,
    });
    // Its cell may have the id of a bar's, but not its conditions.
    expect({ isWhole, hasBars }).toEqual({ isWhole: false, hasBars: false });
  });

  test("takes all of them", () => {
    const text = "smallbank --processes 3 --in-flight 8 --durability sync --size 77";
    const [group] = parse(text).groups;
    expect(group).toMatchObject({ processes: 3, inFlight: 8, durability: "sync", size: 77 });
    expect(group.cells[0]).toMatchObject({
      id: "smallbank-sync-3",
      processes: 3,
      load: { kind: "closed", inFlight: 8 },
    });
  });

  test("may be an open loop", () => {
    const [{ cells }] = parse("tatp --rate 500").groups;
    expect(cells[0].load).toEqual({ kind: "open", perSecond: 500 });
    expect(cells[0].id).toBe("tatp-none-1-open");
  });

  test("is smaller with --quick, unless it has a size", () => {
    expect(parse("tatp --quick").groups[0].size).toBe(10_000);
    expect(parse("tatp --quick --size 5").groups[0].size).toBe(5);
  });
});

test("graph is what the suite has of LinkBench and TAO, with its goals", () => {
  const { groups, isWhole, hasBars } = parse("graph");
  expect(groups).toEqual(suite(false).filter(({ id }) => id.startsWith("graph")));
  expect({ isWhole, hasBars }).toEqual({ isWhole: false, hasBars: true });
  expect(parse("graph --engines situ").groups.map(({ engines }) => engines)).toEqual([
    ["situ"],
    ["situ"],
  ]);
});

describe("TPC-C", () => {
  test("alone is what the suite has of it, with its goals", () => {
    const { groups, isWhole, hasBars } = parse("tpcc");
    expect(groups).toEqual(suite(false).filter(({ id }) => id.startsWith("tpcc")));
    expect({ isWhole, hasBars }).toEqual({ isWhole: false, hasBars: true });
    expect(parse("tpcc --quick").groups).toEqual(parse("--quick --only tpcc").groups);
  });

  test("with conditions is one cell", () => {
    const { groups, hasBars } = parse("tpcc --processes 2 --remote 50 --zipf 0.9");
    expect(hasBars).toBe(false);
    expect(groups).toHaveLength(1);
    expect(groups[0].cells.map(({ id }) => id)).toEqual(["tpcc-none-2"]);
    expect(groups[0].parameters).toEqual({ remotePercent: 50, itemTheta: 0.9 });
    expect(groups[0].engines).toEqual(["situ", "sqlite", "postgres"]);
  });

  test("takes a cluster's protocol", () => {
    const { groups } = parse("tpcc --engines cluster --protocol one-sided --remote 0");
    expect(groups[0]).toMatchObject({ engines: ["cluster"], protocol: "one-sided" });
    expect(parse("retwis --engines cluster --protocol xenic").groups[0].protocol).toBe("xenic");
    expect(() => parse("tatp --engines cluster --protocol xenic")).toThrow("no tables for tatp");
    expect(groups[0].parameters).toEqual({ remotePercent: 0 });
  });

  test("takes no part in a suite of engines without it", () => {
    const { groups } = parse("--engines lmdb,redis");
    expect(groups.filter(({ id }) => id.startsWith("tpcc"))).toEqual([]);
    expect(groups.length).toBeGreaterThan(0);
  });
});

describe("says what is wrong with", () => {
  test.each([
    ["an unknown option", ["--fast"], /--fast/],
    ["an option without its value", ["--rounds"], /rounds/],
    ["an unknown workload", ["ycsb-g"], 'there is no benchmark "ycsb-g"'],
    ["two workloads", ["tatp", "smallbank"], 'one workload at a time; "smallbank" is too much'],
    ["three", ["tatp", "a", "b"], 'one workload at a time; "a b" is too much'],
    ["--only and a workload", ["tatp", "--only", "x"], "--only chooses from the whole suite"],
    ["--only that finds nothing", ["--only", "tpch"], /--only tpch: there are ycsb-a-none-1, /],
    ["an empty --only", ["--only", ""], "--only wants a part of an id"],
    ["an unknown engine", ["--engines", "situ,mysql"], /"mysql" is none of situ, cluster, lmdb/],
    ["no engine", ["--engines", ""], /"" is none of/],
    ["an engine twice", ["--engines", "situ,lmdb,situ"], /is there twice/],
    ["an empty folder", ["--out", ""], "--out wants a folder"],
    [
      "a durability",
      ["tatp", "--durability", "some"],
      '--durability is none, lazy, sync, not "some"',
    ],
    [
      "a share of remote transactions",
      ["tpcc", "--remote", "101"],
      /^--remote wants a number from 0/,
    ],
    ["no share", ["tpcc", "--remote", ""], '--remote wants a number from 0 to 100, not ""'],
    ["a skew", ["tpcc", "--zipf", "1"], /^--zipf wants a number from 0 to 0.999/],
    ["a share of another workload", ["tatp", "--remote", "1"], "--remote and --zipf are for TPC-C"],
    [
      "a protocol",
      ["tpcc", "--protocol", "two"],
      '--protocol is rpc or one-sided or xenic, not "two"',
    ],
    ["an engine without TPC-C", ["tpcc", "--engines", "situ,lmdb"], /tpcc runs on situ, cluster/],
    [
      "a rate and a number",
      ["tatp", "--rate", "5", "--in-flight", "5"],
      /open loop.*closed.*choose/,
    ],
  ])("%s", (_, args, message) => {
    expect(() => parseSuiteArguments(args)).toThrow(TypeError);
    expect(() => parseSuiteArguments(args)).toThrow(message);
  });

  test.each(["processes", "in-flight", "rate", "durability", "size", "remote", "zipf"])(
    "--%s without a workload",
    (option) => {
      const args = [`--${option}`, option === "durability" ? "sync" : "2"];
      expect(() => parseSuiteArguments(args)).toThrow(`--${option} goes with a workload`);
    },
  );

  describe.each(["rounds", "round-ms", "seed", "processes", "in-flight", "rate", "size"])(
    "--%s",
    (option) => {
      test.each(["0", "-1", "1.5", "many", "", "NaN", "Infinity", "1e99"])("%s", (text) => {
        const args = ["smallbank", `--${option}=${text}`];
        expect(() => parseSuiteArguments(args)).toThrow(
          new RegExp(`^--${option} wants a whole number from 1 to \\d+, not "${text}"$`),
        );
      });
    },
  );
});

test("every engine can be chosen", () => {
  for (const name of engineNames) expect(parse(`tatp --engines ${name}`).groups).toHaveLength(1);
});
