/** The lease threads of real nodes, with datagrams between them. */

import { afterEach, expect, test } from "vitest";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { LeaseGate } from "../../src/cluster/membership/lease-gate.ts";
import { leaseClock } from "../../src/fabric/lease-clock.ts";
import { LeaseThread, type Suspicion } from "../../src/node/lease-worker.ts";
import { eventually } from "../helpers/fabric-tcp.ts";

const LEASE_MS = 100;
const clock = leaseClock();
const threads: TestThread[] = [];

interface TestThread {
  thread: LeaseThread;
  suspicion: Suspicion | undefined;
  outdated: number[];
  adopted: number;
}

afterEach(async () => {
  for (const { thread } of threads.splice(0)) await thread.close();
});

async function start(self: number, secret?: string): Promise<TestThread> {
  const task = {
    self,
    instance: `life-${self}`,
    cluster: "leases",
    secret,
    listen: { host: "127.0.0.1", port: 0 },
    leaseMs: LEASE_MS,
  };
  const made: { [Key in keyof TestThread]?: TestThread[Key] } = { outdated: [], adopted: 0 };
  made.thread = await LeaseThread.start(task, new LeaseGate(), {
    adopted: ({ configurationId }) => (made.adopted = configurationId),
    suspects: (suspicion) => (made.suspicion = suspicion),
    outdated: ({ node }) => made.outdated!.push(node),
    died: (error) => {
      throw error;
    },
  });
  threads.push(made as TestThread);
  return made as TestThread;
}

function configurationWith(ids: readonly number[], configurationId = 1): Configuration {
  const nodes = ids.map((id) => ({
    id,
    host: "127.0.0.1",
    port: threads[id].thread.port,
    instance: `life-${id}`,
  }));
  return configurationOf(
    { cluster: "leases", configurationId, nodes, manager: ids[0], leaseMs: LEASE_MS },
    "the test",
  );
}

function adopt(configuration: Configuration): void {
  for (const { id } of configuration.nodes) {
    threads[id].thread.adopt(configuration);
    threads[id].thread.gate.commit(configuration.configurationId);
  }
}

function mayServe(id: number, configurationId = 1): boolean {
  return threads[id].thread.gate.mayServe(configurationId, clock.nowMs());
}

test("three nodes serve; one that ends is suspected, and one behind is told of", async () => {
  for (let id = 0; id < 3; id++) await start(id, "secret");
  adopt(configurationWith([0, 1, 2]));
  await eventually(() => mayServe(0) && mayServe(1) && mayServe(2));
  const [{ thread: manager }] = threads;
  expect(manager.gate.mayServe(2, clock.nowMs())).toBe(false);
  // Node 2 is not in the second configuration, and has not heard of it.
  adopt(configurationWith([0, 1], 2));
  expect(mayServe(0)).toBe(false);
  await eventually(() => mayServe(0, 2) && mayServe(1, 2));
  await eventually(() => threads[0].outdated.includes(2));
  await eventually(() => !mayServe(2));
  await eventually(() => threads[2].suspicion?.suspects.includes(0) === true);
  await threads[1].thread.close();
  await eventually(() => threads[0].suspicion?.configurationId === 2);
  expect(threads[0].suspicion).toMatchObject({ suspects: [1] });
  await eventually(() => !mayServe(0, 2));
  threads.splice(1, 1);
});

test("a node with another secret gets no lease", async () => {
  await start(0, "secret");
  await start(1, "secret");
  await start(2, "other");
  adopt(configurationWith([0, 1, 2]));
  await eventually(() => mayServe(0) && mayServe(1));
  await eventually(() => threads[0].suspicion?.suspects.join() === "2");
  expect(mayServe(2)).toBe(false);
});

test("the leases of a NIC worker that hangs run out", async () => {
  await start(0);
  await start(1);
  const beating = setInterval(() => threads[0].thread.gate.beat(), LEASE_MS);
  try {
    // Once, and never again.
    threads[1].thread.gate.beat();
    adopt(configurationWith([0, 1]));
    await eventually(() => mayServe(0) && mayServe(1));
    await eventually(() => !mayServe(1) && threads[0].suspicion?.suspects.join() === "1");
  } finally {
    clearInterval(beating);
  }
});

test("a port that somebody uses is refused", async () => {
  const { thread } = await start(0);
  const task = { self: 1, instance: "x", cluster: "leases", secret: undefined, leaseMs: LEASE_MS };
  const listen = { host: "127.0.0.1", port: thread.port };
  const listener = { adopted() {}, suspects() {}, outdated() {}, died() {} };
  await expect(LeaseThread.start({ ...task, listen }, new LeaseGate(), listener)).rejects.toThrow(
    expect.objectContaining({ code: "SITU_IN_USE" }),
  );
});
