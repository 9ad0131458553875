/** All workloads on a cluster of three nodes, through the contract that the suite uses. */

import { describe, expect, test } from "vitest";
import { clusterDriver } from "../../benchmarks/engines/cluster/driver.ts";
import { clusterRows, clusterTables } from "../../benchmarks/engines/cluster/tables.ts";
import { smallbank } from "../../workloads/smallbank/smallbank.ts";
import { ClusterSubscriber, SubscriberNumber } from "../../workloads/tatp/cluster-tables.ts";
import { tatp } from "../../workloads/tatp/tatp.ts";
import { holdsForEngine } from "./engine-contract.ts";

holdsForEngine({
  driver: clusterDriver,
  inFlight: [16],
  transactions: 300,
  workloads: ["ycsb-b", "ycsb-d", "smallbank", "objects-4-0"],
  onDisk: [],
  folderOf: undefined,
  isServer: true,
});

describe("tables with a unique index, which a cluster has not", () => {
  test("become one without it, and one that leads to it", () => {
    const { tables, rows } = tatp(50);
    const theirs = clusterTables(tables);
    expect(theirs).toContain(ClusterSubscriber);
    expect(theirs).toContain(SubscriberNumber);
    expect(theirs.flatMap(({ indexes }) => indexes)).toEqual([]);
    const numbers = [...clusterRows(rows())].filter(({ table }) => table === SubscriberNumber);
    expect(numbers.length).toBe(50);
    expect(numbers[6].row).toEqual({ sub_nbr: "000000000000007", s_id: 7 });
  });

  test("others stay as they are", () => {
    const { tables, rows } = smallbank(10);
    expect(clusterTables(tables)).toEqual(tables);
    expect([...clusterRows(rows())]).toEqual([...rows()]);
  });
});
