/** The membership of real nodes: sockets, lease threads, and a store of configurations in memory. */

import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import {
  type Configuration,
  type Configurations,
  configurationOf,
} from "../../src/cluster/configuration.ts";
import { LeaseGate } from "../../src/cluster/membership/lease-gate.ts";
import { initialPlacement } from "../../src/cluster/planning/planning.ts";
import { MEMBERSHIP_KIND } from "../../src/fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import { NodeMembership } from "../../src/node/node-membership.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { eventually } from "../helpers/fabric-tcp.ts";

/** Long enough for threads that start on a busy machine. */
const LEASE_MS = 1_000;
const PARTITIONS = 16;

/** One for all nodes. */
class Store {
  current!: Configuration;
  isGone = false;
  readonly #watching = new Set<(next: Configuration) => void>();

  /** As one node sees it. */
  asConfigurations(): Configurations {
    const store = this;
    return {
      get current() {
        return store.current;
      },
      watch: (changed) => {
        store.#watching.add(changed);
        return () => store.#watching.delete(changed);
      },
      read: async () => store.#answer(() => store.current),
      swap: async (previous, next) =>
        store.#answer(() => {
          if (store.current.configurationId !== previous.configurationId) return false;
          store.current = next;
          return true;
        }),
    };
  }

  async #answer<T>(serve: () => T): Promise<T> {
    await sleep(1);
    if (this.isGone) throw new SituError("SITU_UNREACHABLE", "the store is gone");
    return serve();
  }
}

interface TestNode {
  readonly id: number;
  readonly endpoint: TcpEndpoint;
  readonly port: number;
  membership?: NodeMembership;
  committed: number[];
  removed: number;
  refusal: string | undefined;
}

let store = new Store();
let nodes: TestNode[] = [];

afterEach(async () => {
  for (const node of nodes) await stop(node);
  nodes = [];
  store = new Store();
});

/** Listens; it is no member before `begin`. */
async function listen(id: number): Promise<TestNode> {
  const endpoint = await openTcp({
    self: id,
    nodes: new Map(),
    configurationId: 1,
    cluster: "members",
    listen: { host: "127.0.0.1", port: 0 },
    nodeSecret: "of nodes",
    service: (incoming) => {
      if (incoming.kind !== MEMBERSHIP_KIND) throw new SituError("SITU_PROTOCOL", "not here");
      node.membership?.receive(incoming.from.node, incoming.body.text());
      incoming.reply();
    },
  });
  const { port } = endpoint.address();
  const node: TestNode = { id, endpoint, port, committed: [], removed: 0, refusal: undefined };
  nodes.push(node);
  return node;
}

function addressOf({ id, endpoint, port }: TestNode) {
  return { id, host: "127.0.0.1", port, instance: endpoint.instance };
}

async function begin(node: TestNode): Promise<void> {
  const { endpoint, port } = node;
  node.membership = await NodeMembership.start({
    address: addressOf(node),
    listen: { host: "127.0.0.1", port },
    endpoint,
    configurations: store.asConfigurations(),
    hasItsData: true,
    nodeSecret: "of nodes",
    gate: new LeaseGate(),
    listener: {
      adopted: ({ configurationId }) => {
        endpoint.configurationId = configurationId;
      },
      committed: ({ configurationId }) => node.committed.push(configurationId),
      removed: ({ configurationId }) => {
        node.removed = configurationId;
      },
      refused: (why) => {
        node.refusal = why;
      },
      died: (error) => {
        throw error;
      },
    },
  });
}

async function stop(node: TestNode): Promise<void> {
  const { membership, endpoint } = node;
  delete node.membership;
  await membership?.close();
  await endpoint.close();
}

async function cluster(count: number): Promise<void> {
  for (let id = 0; id < count; id++) await listen(id);
  const addresses = nodes.map(addressOf);
  const backups = Math.min(2, count - 1);
  const placement = initialPlacement(addresses, PARTITIONS, backups);
  const given = { nodes: addresses, backups, partitions: PARTITIONS, placement };
  const more = { cluster: "members", manager: 0, leaseMs: LEASE_MS };
  store.current = configurationOf({ ...given, ...more }, "the test");
  await Promise.all(nodes.map(begin));
  await eventually(() => nodes.every(serves));
}

function serves({ membership }: TestNode): boolean {
  return membership?.mayServe() === true;
}

const members = (): number[] => store.current.nodes.map(({ id }) => id);

test.each([
  ["a node", 2],
  ["the manager", 0],
])("%s ends: the others go on without it; another joins", async (_, dead) => {
  await cluster(4);
  await stop(nodes[dead]);
  const others = nodes.filter(({ id }) => id !== dead);
  await eventually(() => !members().includes(dead) && others.every(serves));
  const { placement } = store.current;
  expect(placement!.map(({ primary }) => primary)).not.toContain(dead);
  for (const { committed } of others) {
    expect(committed.toSorted((a, b) => a - b)).toEqual(committed);
    expect(committed.at(-1)).toBe(store.current.configurationId);
  }
  // Under the same number: another life.
  nodes.splice(dead, 1);
  const next = await listen(dead);
  await begin(next);
  await eventually(() => serves(next) && nodes.every(serves));
  expect(members()).toEqual([0, 1, 2, 3]);
});

test("without the store all go on; a node that ends is removed once it is back", async () => {
  await cluster(3);
  store.isGone = true;
  await stop(nodes[1]);
  const others = [nodes[0], nodes[2]];
  await sleep(4 * LEASE_MS);
  await eventually(() => others.every(serves));
  expect(store.current.configurationId).toBe(1);
  store.isGone = false;
  await eventually(() => !members().includes(1) && others.every(serves));
});

test("a node of which nothing was heard finds itself removed when it is heard again", async () => {
  await cluster(4);
  const [, , , lost] = nodes;
  // Its lease thread is gone, as if the machine had been suspended; the rest of it is not.
  const { membership } = lost;
  await membership!.close();
  await eventually(() => !members().includes(3));
  expect(serves(lost)).toBe(false);
  await eventually(() => lost.removed > 1);
  expect(lost.removed).toBeLessThanOrEqual(store.current.configurationId);
});
