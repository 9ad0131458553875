/**
 * Round trips and messages of one committed transaction, against the papers' protocols: FaRM §3.4 and
 * FaSST §5. Where we differ, the table of the bench says why (benchmarks/fabric/round-trips-table.ts).
 */

import { describe, expect, test } from "vitest";
import { countRoundTrips } from "../../benchmarks/fabric/round-trips.ts";
import { countAll, PAPERS, roundTripsTable } from "../../benchmarks/fabric/round-trips-table.ts";

describe("one-sided, coordinated by a node", () => {
  test("FaRM §3.4: lookups by verb, prepare, validate, commit at replicas, commit at primaries", async () => {
    expect(await countRoundTrips("one-sided", "node")).toEqual([
      {
        protocol: "one-sided",
        runner: "node",
        mix: "O(1,0)",
        roundTrips: 1,
        waitedFor: 1,
        messages: { verb: 2 },
        truncations: 0,
      },
      {
        protocol: "one-sided",
        runner: "node",
        mix: "O(4,0)",
        roundTrips: 2,
        waitedFor: 2,
        messages: { verb: 8, validate: 4 },
        truncations: 0,
      },
      {
        protocol: "one-sided",
        runner: "node",
        mix: "O(4,2)",
        roundTrips: 5,
        // This node has no copy of what it writes, so it tells the outcome after COMMIT.
        waitedFor: 5,
        messages: { verb: 8, lock: 2, validate: 2, log: 4, commit: 2 },
        truncations: 4,
      },
    ]);
  });
});

describe("rpc, coordinated by a node", () => {
  test("FaSST §5: read and lock in one message, no validation of a single key; log and backups in one", async () => {
    expect(await countRoundTrips("rpc", "node")).toEqual([
      {
        protocol: "rpc",
        runner: "node",
        mix: "O(1,0)",
        roundTrips: 1,
        waitedFor: 1,
        messages: { read: 1 },
        truncations: 0,
      },
      {
        protocol: "rpc",
        runner: "node",
        mix: "O(4,0)",
        roundTrips: 2,
        waitedFor: 2,
        messages: { read: 4, validate: 4 },
        truncations: 0,
      },
      {
        protocol: "rpc",
        runner: "node",
        mix: "O(4,2)",
        roundTrips: 4,
        waitedFor: 4,
        // LOCK goes with LOG: primaries keep a record of what is written to the rows they have locked.
        messages: { "read and lock": 2, read: 2, validate: 2, lock: 2, log: 4, commit: 2 },
        truncations: 4,
      },
    ]);
  });
});

describe.each(["one-sided", "rpc"] as const)("%s, from a client", (protocol) => {
  test("reads as at a node; SUBMIT is one round trip more, and what the coordinator sends itself is none", async () => {
    const [one, four, writing] = await countRoundTrips(protocol, "client");
    expect([one.roundTrips, four.roundTrips, writing.roundTrips]).toEqual([1, 2, 6]);
    expect([one.waitedFor, four.waitedFor, writing.waitedFor]).toEqual([1, 2, 5]);
    const reads = protocol === "rpc" ? { read: 4 } : { verb: 8 };
    expect(four.messages).toEqual({ ...reads, validate: 4 });
    expect(writing.messages).toEqual({
      ...reads,
      submit: 1,
      lock: 1,
      validate: 2,
      log: 4,
      commit: 1,
    });
  });
});

test("no more round trips than the papers' protocols have; the table has a row for each", async () => {
  const rows = await countAll();
  expect(rows.map(({ protocol, mix }) => `${protocol} ${mix}`)).toEqual(
    Object.entries(PAPERS).flatMap(([protocol, { mixes }]) =>
      Object.keys(mixes).map((mix) => `${protocol} ${mix}`),
    ),
  );
  for (const { node, paper } of rows) {
    expect(node.roundTrips).toBeLessThanOrEqual(paper.roundTrips);
  }
  const table = roundTripsTable(rows).join("\n");
  for (const { mix, protocol } of rows)
    expect(table).toContain(`${PAPERS[protocol].name}) | ${mix}`);
});
