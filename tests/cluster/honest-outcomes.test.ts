/** What callers are told, and when, while a node is stopped; and more load than a cluster can take. */

import { afterAll, beforeAll, expect, test } from "vitest";
import type { RemoteDatabase, Table } from "../../src/index.ts";
import { MAX_RUNNING_TRANSACTIONS } from "../../src/runtime/limits.ts";
import { eventually, RealCluster } from "../helpers/cluster.ts";
import { codeOf } from "../helpers/failure.ts";
import { Account } from "./procedures.ts";

const TABLES = [Account] as unknown as readonly Table[];
const TABLE = Account as unknown as Table;

let cluster: RealCluster;
let patient: RemoteDatabase;
let hasty: RemoteDatabase;
/** An account of each node. */
const ids: number[] = [];

beforeAll(async () => {
  cluster = await RealCluster.start({ procedures: true });
  patient = await cluster.client(TABLES, { timeoutMs: 120_000 });
  hasty = await cluster.client(TABLES, { timeoutMs: 700 });
  for (let id = 0; ids.filter((each) => each !== undefined).length < 3; id++) {
    ids[cluster.primaryOf(TABLE, id).id] ??= id;
  }
});

afterAll(() => cluster.remove());

function add(db: RemoteDatabase, id: number): Promise<void> {
  return db.transact(async (tx) => {
    const { balance } = (await tx.get(Account, id)) ?? { balance: 0n };
    await tx.put(Account, { id, balance: balance + 1n });
  });
}

test("a stopped node: what may have been done is unknown, what is locked is told so", async () => {
  const near: [Table, number] = [TABLE, ids[1]];
  for (const id of ids) await patient.call("deposit", [id, 1n]);
  await eventually("it is known there", async () => {
    return (await codeOf(hasty.call("echo", [], { near }))) === "done";
  });
  const [first, , third] = ids;
  await cluster.nodes[1].halt();
  // It reads both requests when it goes on, and does what they ask for.
  const called = await Promise.all([
    codeOf(hasty.call("deposit", [ids[1], 1n])),
    codeOf(hasty.call("deposit", [ids[1], 1n], { near })),
  ]);
  expect(called).toEqual(["SITU_UNKNOWN_OUTCOME", "SITU_UNKNOWN_OUTCOME"]);
  // A commit that waits for a backup, by a procedure and by a client, which go on without their callers.
  const committed = await Promise.all([
    codeOf(hasty.call("deposit", [first, 1n])),
    codeOf(add(hasty, third)),
  ]);
  expect(committed).toEqual(["SITU_UNKNOWN_OUTCOME", "SITU_UNKNOWN_OUTCOME"]);
  const reads = await Promise.all([
    codeOf(hasty.get(Account, first)),
    codeOf(hasty.transact((tx) => tx.get(Account, first))),
    codeOf(hasty.call("deposit", [first, 1n])),
    codeOf(hasty.get(Account, ids[1])),
  ]);
  expect(reads).toEqual(["SITU_TIMEOUT", "SITU_TIMEOUT", "SITU_TIMEOUT", "SITU_LOST"]);
  await hasty.close();
  cluster.nodes[1].signal("SIGCONT");
  // What was unknown was done, once.
  for (const [id, balance] of [
    [first, 2n],
    [third, 2n],
    [ids[1], 3n],
  ] as const) {
    await eventually(`account ${id} has ${balance}`, async () => {
      return (await patient.get(Account, id))?.balance === balance;
    });
  }
});

test("more transactions at once than may run: all get their turn", async () => {
  const count = MAX_RUNNING_TRANSACTIONS + 500;
  const first = 1_000_000;
  await Promise.all(Array.from({ length: count }, (_, i) => add(patient, first + (i % 1_000))));
  const sums = Array.from({ length: 1_000 }, (_, i) => first + i);
  const rows = await patient.transact((tx) => tx.getMany(Account, sums));
  expect(rows.reduce((sum, row) => sum + row!.balance, 0n)).toBe(BigInt(count));
});
