/**
 * Several client processes on three nodes: histories are strictly serializable, sums hold, and at rest
 * primaries and backups agree. Also with a node that is stopped for a while, and a client that is
 * killed in the middle of its work.
 */

import { afterEach, expect, test } from "vitest";
import { type ClusterOptions, RealCluster } from "../helpers/cluster.ts";
import { ClientCrew } from "../helpers/cluster-work.ts";
import { endAll } from "../helpers/engine-processes.ts";
import { fixedSeed, SOAK } from "../helpers/seed.ts";
import { Account } from "./procedures.ts";

const SEED = fixedSeed(42);
/** At least LEAST is done, however slow the machine is. */
const WORK_MS = 500 * SOAK;
const LEAST = { transactions: 20, transfers: 5 };

let cluster: RealCluster | undefined;

afterEach(async () => {
  endAll();
  await cluster?.remove();
  cluster = undefined;
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Every account can be written: nobody holds any. */
async function touchAll(running: RealCluster): Promise<void> {
  const db = await running.client([Account] as never, { timeoutMs: 120_000 });
  for (let id = 0; id < 40; id++) {
    await db.transact(async (tx) => tx.put(Account, (await tx.get(Account, id))!));
  }
}

const SETTINGS: readonly ClusterOptions[] = [
  { protocol: "rpc", place: "nic" },
  { protocol: "one-sided", place: "nic", durability: "lazy" },
  { protocol: "rpc", place: "host", backups: 1 },
  // Rows are read without the host's thread, and locked by it.
  { protocol: "rpc", place: "host", places: { execute: "nic", open: "nic" } },
];

test.each(SETTINGS)("clients at work ($protocol, $place, $places)", async (options) => {
  cluster = await RealCluster.start(options);
  const crew = await ClientCrew.start(cluster, 3, SEED, { least: LEAST });
  await pause(WORK_MS);
  const reports = await crew.end();
  for (const { history, transfers, codes } of reports) {
    expect(codes).toEqual({});
    expect(history.length).toBeGreaterThanOrEqual(LEAST.transactions);
    expect(transfers).toBeGreaterThanOrEqual(LEAST.transfers);
  }
  await crew.check(reports);
});

test("a client is killed in the middle: the others go on, no lock stays", async () => {
  cluster = await RealCluster.start({ protocol: "rpc" });
  const crew = await ClientCrew.start(cluster, 4, SEED, { least: LEAST });
  await pause(700);
  for (const member of [0, 1]) crew.members[member].running.child.kill("SIGKILL");
  await Promise.all([0, 1].map((member) => crew.members[member].running.ended));
  await touchAll(cluster);
  await pause(400);
  const reports = await crew.end((member) => member < 2);
  for (const { codes } of reports) expect(codes).toEqual({});
  await crew.check(reports, true);
});

test("a node is stopped for a while: transactions wait or fail with a code, then one outcome", async () => {
  cluster = await RealCluster.start({ protocol: "rpc" });
  const crew = await ClientCrew.start(cluster, 3, SEED, { timeoutMs: 700 });
  const [, node] = cluster.nodes;
  await pause(400);
  node.signal("SIGSTOP");
  await pause(1_600);
  node.signal("SIGCONT");
  await touchAll(cluster);
  await pause(300);
  const reports = await crew.end();
  for (const { codes } of reports) {
    for (const code of Object.keys(codes)) {
      expect(ALLOWED, code).toContain(code);
    }
  }
  await crew.check(reports);
});

const ALLOWED = [
  "SITU_TIMEOUT",
  "SITU_CONFLICT",
  "SITU_LOST",
  "SITU_UNKNOWN_OUTCOME",
  "SITU_UNREACHABLE",
];
