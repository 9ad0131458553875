/**
 * One small history for each kind of anomaly, and for each thing that must not be mistaken for one.
 */

import { describe, expect, it } from "vitest";
import type { AnomalyKind } from "../../simulation/checkers/anomalies.ts";
import type { History, Operation, Transaction } from "../../simulation/checkers/history.ts";
import { checkListAppend, type ListAppendOptions } from "../../simulation/checkers/list-append.ts";

const append = (key: string, value: number): Operation => ({ kind: "append", key, value });
const read = (key: string, ...list: number[]): Operation => ({ kind: "read", key, list });

/** All of these overlap; real time says nothing unless a test sets it. */
const ok = (...operations: Operation[]): Transaction => ({
  process: 0,
  start: 0,
  end: 1000,
  operations,
  outcome: "ok",
});
const failed = (...operations: Operation[]): Transaction => ({
  ...ok(...operations),
  outcome: "failed",
});
const unknown = (...operations: Operation[]): Transaction => ({
  ...ok(...operations),
  outcome: "unknown",
});
const during = (start: number, end: number, transaction: Transaction): Transaction => ({
  ...transaction,
  start,
  end,
});

function kinds(
  history: History,
  options: ListAppendOptions = { isolation: "strict-serializable" },
): readonly AnomalyKind[] {
  const { ok: accepted, anomalies, counts } = checkListAppend(history, options);
  expect(accepted).toBe(anomalies.length === 0);
  expect(new Set(anomalies.map(({ kind }) => kind))).toEqual(new Set(counts.keys()));
  return [...counts.keys()].sort();
}

describe("direct errors", () => {
  it("an element that nobody appended", () => {
    expect(kinds([ok(read("x", 1))])).toEqual(["unwritten-read"]);
  });

  it("an element of a failed transaction", () => {
    expect(kinds([failed(append("x", 1)), ok(read("x", 1))])).toEqual(["aborted-read"]);
  });

  it("a failed transaction may have read anything", () => {
    expect(kinds([failed(append("x", 1)), failed(read("x", 1)), failed(read("x", 2))])).toEqual([]);
  });

  it("an element twice", () => {
    expect(kinds([ok(append("x", 1)), ok(read("x", 1, 1))])).toEqual(["duplicate"]);
  });

  it.each([
    ["without its own append", [append("x", 1), read("x")]],
    ["with its own append in the wrong place", [append("x", 1), read("x", 1, 9)]],
    ["that changes from one to the next", [read("x"), read("x", 9)]],
    ["of what it appends later", [read("x", 1), append("x", 1)]],
  ])("a read %s", (_, operations) => {
    expect(kinds([ok(append("x", 9)), ok(...operations)])).toContain("internal");
  });

  it("a read that ends between two appends of another transaction", () => {
    const history = [ok(append("x", 1), append("x", 2)), ok(read("x", 1))];
    expect(kinds(history)).toContain("intermediate-read");
    expect(kinds([ok(append("x", 1), read("x", 1), append("x", 2))])).toEqual([]);
  });

  it("reads of which neither is a prefix of the other", () => {
    const history = [
      ok(append("x", 1)),
      ok(append("x", 2)),
      ok(read("x", 1, 2)),
      ok(read("x", 2, 1)),
    ];
    expect(kinds(history)).toEqual(["incompatible-order"]);
  });

  it("a transaction's own appends in another order", () => {
    const history = [ok(append("x", 1), append("x", 2)), ok(read("x", 2, 1))];
    expect(kinds(history)).toContain("incompatible-order");
  });
});

describe("lost writes", () => {
  const isolation = "strict-serializable";

  it("an acknowledged append that the final read does not have", () => {
    const history = [ok(append("x", 1)), ok(append("x", 2), append("y", 3))];
    const found = new Map([["x", [1, 2]]]);
    expect(kinds(history, { isolation, finalReads: found })).toEqual(["lost-write"]);
    expect(kinds(history, { isolation, finalReads: found.set("y", [3]) })).toEqual([]);
  });

  it("an append that was read once and is gone in the end", () => {
    const history = [ok(append("x", 1)), ok(read("x", 1))];
    expect(kinds(history, { isolation, finalReads: new Map([["x", []]]) })).toEqual(["lost-write"]);
  });

  it("an unknown transaction of which half is there", () => {
    const history = [unknown(append("x", 1), append("y", 2))];
    const half = new Map([["x", [1]]]);
    expect(kinds(history, { isolation, finalReads: half })).toEqual(["lost-write"]);
    expect(kinds(history, { isolation, finalReads: new Map() })).toEqual([]);
  });

  it("an append of which only the successor was read", () => {
    const history = [ok(append("x", 1), append("x", 2)), ok(read("x", 2))];
    expect(kinds(history)).toContain("lost-write");
  });

  it("final reads are judged like others", () => {
    const history = [
      failed(append("x", 1)),
      ok(append("y", 2)),
      ok(append("y", 3)),
      ok(read("y", 3)),
    ];
    const finalReads = new Map([
      ["x", [1]],
      ["y", [2, 3]],
    ]);
    expect(kinds(history, { isolation, finalReads })).toEqual([
      "aborted-read",
      "incompatible-order",
    ]);
  });
});

describe("cycles", () => {
  const serializable = { isolation: "serializable" } as const;
  const snapshot = { isolation: "snapshot" } as const;

  it("dirty write: two writers in opposite orders", () => {
    const history = [
      ok(append("x", 1), append("y", 1)),
      ok(append("x", 2), append("y", 2)),
      ok(read("x", 1, 2)),
      ok(read("y", 2, 1)),
    ];
    for (const isolation of ["strict-serializable", "serializable", "snapshot"] as const) {
      expect(kinds(history, { isolation })).toEqual(["dirty-write"]);
    }
  });

  it("circular information flow: each reads the other's append", () => {
    const history = [ok(append("x", 1), read("y", 2)), ok(append("y", 2), read("x", 1))];
    expect(kinds(history)).toEqual(["circular-information-flow"]);
    expect(kinds(history, snapshot)).toEqual(["circular-information-flow"]);
  });

  it("read skew: one rw edge, forbidden by all", () => {
    const history = [
      ok(append("x", 1), append("y", 2)),
      ok(read("x", 1), read("y")),
      ok(read("y", 2)),
    ];
    expect(kinds(history, serializable)).toEqual(["not-serializable"]);
    expect(kinds(history, snapshot)).toEqual(["not-snapshot-isolated"]);
  });

  it("write skew: two adjacent rw edges, allowed by snapshot isolation", () => {
    const history = [ok(read("x"), append("y", 1)), ok(read("y"), append("x", 2))];
    expect(kinds(history, serializable)).toEqual(["not-serializable"]);
    expect(kinds(history, snapshot)).toEqual([]);
  });

  it("long fork: two rw edges that are not adjacent", () => {
    const history = [
      ok(append("x", 1)),
      ok(append("y", 2)),
      ok(read("x", 1), read("y")),
      ok(read("x"), read("y", 2)),
    ];
    expect(kinds(history, serializable)).toEqual(["not-serializable"]);
    expect(kinds(history, snapshot)).toEqual(["not-snapshot-isolated"]);
  });

  it("lost update, whether or not anybody saw the result", () => {
    const history = [ok(read("x"), append("x", 1)), ok(read("x"), append("x", 2))];
    expect(kinds(history, snapshot)).toEqual(["lost-update"]);
    expect(kinds(history, serializable)).toEqual(["lost-update", "not-serializable"]);
    const seen = [...history, ok(read("x", 1, 2))];
    expect(kinds(seen, snapshot)).toEqual(["not-snapshot-isolated"]);
  });

  it("many readers before many unseen writers", () => {
    const writers = [1, 2, 3].map((value) => ok(append("x", value)));
    const readers = [1, 2, 3].map(() => ok(read("x")));
    expect(kinds([...writers, ...readers])).toEqual([]);
    const late = during(2000, 2001, ok(read("x")));
    expect(kinds([...writers, ...readers, late])).toEqual(["not-strictly-serializable"]);
  });

  it("stale read: strict serializability only", () => {
    const history = [during(0, 10, ok(append("x", 1))), during(11, 20, ok(read("x")))];
    expect(kinds(history)).toEqual(["not-strictly-serializable"]);
    expect(kinds(history, serializable)).toEqual([]);
    expect(kinds(history, snapshot)).toEqual([]);
  });

  it("equal moments order nothing", () => {
    const history = [during(0, 10, ok(append("x", 1))), during(10, 20, ok(read("x")))];
    expect(kinds(history)).toEqual([]);
  });

  it("real time reaches through any number of barriers", () => {
    const history = [
      during(0, 1, ok(append("x", 1))),
      ...[10, 20, 30].map((start) => during(start, start + 1, ok(read("y")))),
      during(40, 41, ok(read("x"))),
    ];
    const [anomaly, ...others] = checkListAppend(history, {
      isolation: "strict-serializable",
    }).anomalies;
    expect(others).toEqual([]);
    expect([...anomaly.transactions].sort()).toEqual([0, 4]);
    expect(anomaly.cycle?.map(({ dependency }) => dependency).sort()).toEqual(["realtime", "rw"]);
  });
});

describe("unknown outcomes", () => {
  it("may take effect at any time after their start", () => {
    const late = during(0, 5, unknown(append("x", 1)));
    const history = [late, during(10, 20, ok(read("x"))), during(30, 40, ok(read("x", 1)))];
    expect(kinds(history)).toEqual([]);
  });

  it("may not take effect before it", () => {
    const history = [during(0, 5, ok(read("x", 1))), during(10, 20, unknown(append("x", 1)))];
    expect(kinds(history)).toEqual(["not-strictly-serializable"]);
  });

  it("count, with their reads, once another transaction saw them", () => {
    const chain = [unknown(append("x", 1)), unknown(read("x", 1, 7), append("y", 2))];
    expect(kinds(chain)).toEqual([]);
    expect(kinds([...chain, ok(read("y", 2))])).toEqual(["unwritten-read"]);
  });

  it("are not confirmed by reading their own append", () => {
    const history = [
      during(0, 1, unknown(append("x", 1), read("x", 1))),
      during(10, 20, ok(read("x"))),
    ];
    expect(kinds(history)).toEqual([]);
  });
});

describe("reports", () => {
  it("name the smallest cycle, its transactions and its edges", () => {
    // A cycle of three through z, and beside it one of two through x and y.
    const history = [
      ok(append("x", 1), append("y", 2), append("z", 3)),
      ok(read("x", 1), append("w", 4)),
      ok(read("w", 4), read("z")),
      ok(read("x", 1), read("y")),
      ok(read("w", 4), read("z", 3), read("y", 2)),
    ];
    const { anomalies } = checkListAppend(history, { isolation: "serializable" });
    expect(anomalies).toHaveLength(1);
    expect(anomalies[0].explanation.split("\n").sort()).toEqual(
      [
        "T0 -wr-> T3 -rw-> T0 (2 edges, 1 of them rw)",
        '  T0 (process 0, 0 to 1000, ok): append 1 to "x"; append 2 to "y"; append 3 to "z"',
        '  T3 (process 0, 0 to 1000, ok): read "x" = [1]; read "y" = []',
        '  T0 before T3: T3 read key "x" up to 1, which T0 appended',
        '  T3 before T0: T3 read key "y" without 2, which T0 appended',
      ].sort(),
    );
  });

  it("keep a few of each kind and count all", () => {
    const history = Array.from({ length: 100 }, (_, at) => ok(read(`x${at}`, 1)));
    const result = checkListAppend(history, { isolation: "snapshot", explainedPerKind: 3 });
    expect(result.anomalies).toHaveLength(3);
    expect(result.counts.get("unwritten-read")).toBe(100);
  });

  it("refuse a history that was recorded wrongly", () => {
    const check = (history: History) => () => checkListAppend(history, { isolation: "snapshot" });
    expect(check([ok(append("x", 1)), ok(append("x", 1))])).toThrow(TypeError);
    expect(check([during(5, 4, ok())])).toThrow(TypeError);
    expect(check([during(Number.NaN, 4, ok())])).toThrow(TypeError);
  });
});
