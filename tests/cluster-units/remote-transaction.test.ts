/** Transactions of clients and procedures: what happens to operations that outlive them. */

import { describe, expect, test } from "vitest";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { type Fetcher, RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { turn } from "../../src/runtime/clock.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Table } from "../../src/tables/table.ts";
import { failure } from "../helpers/store.ts";
import { Inline } from "../helpers/store-model.ts";

describe("a transaction that has ended", () => {
  test("fetches, and so locks, nothing any more: nobody would release it", async () => {
    const nodes = [{ id: 0, host: "a", port: 1 }];
    const placement = new ClusterPlacement(configurationOf({ nodes }, "a test"));
    const remote = new RemoteTable(Inline as unknown as Table, placement);
    const fetched: unknown[][] = [];
    let arrive!: (isFree: boolean) => void;
    const fetcher: Fetcher = {
      nodes: [0],
      tableOf: () => remote,
      fetch: (entries) => {
        fetched.push(entries.map(({ key }) => key));
        return new Promise((resolve) => {
          arrive = resolve;
        });
      },
      run: () => Promise.reject(new Error("no messages are sent here")),
    };
    const tx = new RemoteTransaction(fetcher);
    const first = tx.getForUpdate(Inline, 1);
    await turn();
    // Issued while the first is under way: it waits for its turn.
    const second = tx.getForUpdate(Inline, 2);
    expect(fetched).toEqual([[1]]);
    tx.end(new SituError("SITU_ABORTED", "it has ended"));
    arrive(true);
    await failure("SITU_ABORTED", () => first);
    await failure("SITU_ABORTED", () => second);
    await failure("SITU_ABORTED", () => tx.getForUpdate(Inline, 3));
    await turn();
    expect(fetched).toEqual([[1]]);
  });
});
