/** Transactions of clients and procedures: what happens to operations that outlive them. */

import { describe, expect, test } from "vitest";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { type Fetcher, RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import { isSignal } from "../../src/engine/signals.ts";
import type { Entry } from "../../src/protocols/execute/remote-access-set.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { turn } from "../../src/runtime/clock.ts";
import { SituError } from "../../src/runtime/errors.ts";
import type { Table } from "../../src/tables/table.ts";
import { failure } from "../helpers/store.ts";
import { Inline } from "../helpers/store-model.ts";

class TestFetcher implements Fetcher {
  view = { nodes: [0], configurationId: 1 };
  readonly fetched: unknown[][] = [];
  arrive!: (isFree: boolean) => void;
  readonly #table: RemoteTable;

  constructor() {
    const nodes = [{ id: 0, host: "a", port: 1 }];
    const placement = new ClusterPlacement(configurationOf({ nodes }, "a test"));
    this.#table = new RemoteTable(Inline as unknown as Table, placement);
  }

  tableOf(): RemoteTable {
    return this.#table;
  }

  fetch(entries: readonly Entry[]): Promise<boolean> {
    this.fetched.push(entries.map(({ key }) => key));
    return new Promise((resolve) => {
      this.arrive = resolve;
    });
  }

  run(): Promise<never> {
    return Promise.reject(new Error("no messages are sent here"));
  }

  async pause(): Promise<void> {}
}

test("a transaction does not go on in another configuration", async () => {
  const fetcher = new TestFetcher();
  const tx = new RemoteTransaction(fetcher);
  const first = tx.get(Inline, 1);
  await turn();
  fetcher.arrive(true);
  await first.catch(() => {});
  fetcher.view = { nodes: [0], configurationId: 2 };
  expect(tx.isStale).toBe(true);
  expect(await tx.get(Inline, 2).catch(isSignal)).toBe(true);
  expect(tx.isDoomed).toBe(true);
  expect(fetcher.fetched).toEqual([[1]]);
});

describe("a transaction that has ended", () => {
  test("fetches, and so locks, nothing any more: nobody would release it", async () => {
    const fetcher = new TestFetcher();
    const { fetched } = fetcher;
    const tx = new RemoteTransaction(fetcher);
    const first = tx.getForUpdate(Inline, 1);
    await turn();
    // Issued while the first is under way: it waits for its turn.
    const second = tx.getForUpdate(Inline, 2);
    expect(fetched).toEqual([[1]]);
    tx.end(new SituError("SITU_ABORTED", "it has ended"));
    fetcher.arrive(true);
    await failure("SITU_ABORTED", () => first);
    await failure("SITU_ABORTED", () => second);
    await failure("SITU_ABORTED", () => tx.getForUpdate(Inline, 3));
    await turn();
    expect(fetched).toEqual([[1]]);
  });
});
