/**
 * Round trips and messages of one committed transaction, counted and not timed: the product's own
 * coordinators and participants on the simulated fabric. There a message takes one unit of time each
 * way and nothing else takes any, so the clock says how many round trips somebody waited for.
 *
 * As in FaSST §6.1, all keys of a transaction have different primaries, and the coordinator's node
 * is none of them, nor one of their backups. The papers' coordinators are machines of the cluster;
 * clients, which submit to one, are counted beside them.
 */

import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import { ClusterClient } from "../../src/cluster/client.ts";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import { clientView } from "../../src/cluster/view.ts";
import { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { Endpoint, NodeId, Request } from "../../src/fabric/fabric.ts";
import { FIRST_MESSAGE_KIND } from "../../src/fabric/fabric.ts";
import { i64, table, u32 } from "../../src/index.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { KIND_NAMES, TRUNCATE } from "../../src/protocols/kinds.ts";
import { type ProtocolName, protocolOf } from "../../src/protocols/places.ts";

/** Reads so many rows, and writes some of them. */
export interface Mix {
  readonly name: string;
  readonly reads: number;
  readonly writes: number;
}

export const MIXES: readonly Mix[] = [
  { name: "O(1,0)", reads: 1, writes: 0 },
  { name: "O(4,0)", reads: 4, writes: 0 },
  { name: "O(4,2)", reads: 4, writes: 2 },
];

/** Who runs the body: a node, as a procedure, or a client. */
export type Runner = "node" | "client";

export interface CountedTransaction {
  readonly protocol: ProtocolName;
  readonly runner: Runner;
  readonly mix: string;
  /** One after the other, until it is installed at its primaries; truncation is not counted. */
  readonly roundTrips: number;
  /** Those that pass until the one who runs the body knows the outcome. */
  readonly waitedFor: number;
  /** Requests between machines by their kind, in the order of their phases; replies are not counted. */
  readonly messages: Readonly<Record<string, number>>;
  /** Requests that nobody waits for; under load one of them serves many transactions. */
  readonly truncations: number;
}

const NODES = 9;
const BACKUPS = 2;
const ROWS = 400;
const ROWS_PER_TRANSACTION = 100;
/** Of the model `plain` (simulation/fabric/hardware.ts), there and back. */
const ROUND_TRIP_US = 20;
const TIMEOUT_MS = 60_000;
const COORDINATOR: NodeId = 0;

const Row = table("row", { id: u32(), value: i64() }, { key: "id" });

export async function countRoundTrips(
  protocol: ProtocolName,
  runner: Runner,
): Promise<CountedTransaction[]> {
  const cluster = new CountingCluster(protocol);
  try {
    const client = await cluster.client();
    await cluster.load(client);
    const db = runner === "node" ? await cluster.procedures() : client;
    const counted: CountedTransaction[] = [];
    for (const mix of MIXES) {
      counted.push({ protocol, runner, mix: mix.name, ...(await cluster.count(db, mix)) });
    }
    return counted;
  } finally {
    await cluster.close();
  }
}

class CountingCluster {
  readonly #protocol: ProtocolName;
  readonly #fabric = new SimulatedFabric({ seed: 1 });
  readonly #configuration: Configuration;
  readonly #nodes: readonly SimulatedNode[];
  readonly #sent = new Map<number, number>();
  readonly #clients: Driver[] = [];

  constructor(protocol: ProtocolName) {
    this.#protocol = protocol;
    const members = Array.from({ length: NODES }, (_, id) => ({ id, host: "simulated", port: id }));
    this.#configuration = configurationOf({ nodes: members, backups: BACKUPS }, "round trips");
    this.#nodes = members.map(({ id }) => {
      const wrapEndpoint = (endpoint: Endpoint): Endpoint => this.#counting(endpoint);
      return new SimulatedNode(this.#fabric, id, this.#configuration, { protocol, wrapEndpoint });
    });
  }

  client(): Promise<RemoteDatabase> {
    const { configurationId } = this.#configuration;
    const endpoint = this.#counting(this.#fabric.endpoint({ self: -1, configurationId }));
    const driver = new Driver(endpoint);
    this.#clients.push(driver);
    return this.#open(
      driver,
      new ClusterClient("client", clientView("client", this.#configuration, "rpc")),
    );
  }

  /** What a node's procedures run on (src/node/host.ts). */
  async procedures(): Promise<RemoteDatabase> {
    const random = this.#fabric.random("host");
    const db = this.#nodes[COORDINATOR].database("host", random, TIMEOUT_MS);
    await this.#run(() => db.openTables([Row]));
    return db;
  }

  async #open(driver: Driver, client: ClusterClient): Promise<RemoteDatabase> {
    const db = new RemoteDatabase({
      endpoint: driver.endpoint,
      driver,
      client,
      timeoutMs: TIMEOUT_MS,
      readsByVerb: protocolOf(this.#protocol, "nic").readsByVerb,
    });
    await this.#run(async () => {
      await driver.start(client.meet(), TIMEOUT_MS);
      await db.openTables([Row]);
    });
    return db;
  }

  async load(db: RemoteDatabase): Promise<void> {
    for (let first = 0; first < ROWS; first += ROWS_PER_TRANSACTION) {
      await this.#run(() =>
        db.transact((tx) => {
          for (let i = 0; i < ROWS_PER_TRANSACTION; i++) {
            void tx.put(Row, { id: first + i, value: 1n });
          }
        }),
      );
    }
    this.#rest();
  }

  async count(
    db: RemoteDatabase,
    { reads, writes }: Mix,
  ): Promise<Omit<CountedTransaction, "protocol" | "runner" | "mix">> {
    const keys = this.#keys(reads, writes);
    const body = (): Promise<void> =>
      db.transact(async (tx) => {
        const rows = await Promise.all(
          keys.map((key, i) => (i < writes ? tx.getForUpdate(Row, key) : tx.get(Row, key))),
        );
        if (rows.some((row) => row === undefined)) throw new Error("a row is missing");
        for (const row of rows.slice(0, writes)) {
          void tx.put(Row, { ...row!, value: row!.value + 1n });
        }
      });
    // Once before it counts: lookups by verb keep what they have learned of the shape of a table.
    await this.#run(body);
    this.#rest();
    this.#sent.clear();
    const before = this.#roundTrips();
    const startUs = this.#fabric.nowUs;
    await this.#run(body);
    const waitedFor = wholeRoundTrips(this.#fabric.nowUs - startUs);
    this.#rest();
    const truncations = this.#sent.get(TRUNCATE) ?? 0;
    this.#sent.delete(TRUNCATE);
    const messages = Object.fromEntries([...this.#sent].map(([kind, n]) => [nameOf(kind), n]));
    const roundTrips = this.#roundTrips() - before - truncations;
    return { roundTrips, waitedFor, messages, truncations };
  }

  /** Of all; in a transaction there are never two at the same time. */
  #roundTrips(): number {
    return [...this.#clients, ...this.#nodes].reduce((sum, { roundTrips }) => sum + roundTrips, 0);
  }

  /** All have different primaries; those that are written, the first ones, share no node at all. */
  #keys(reads: number, writes: number): number[] {
    const placement = new ClusterPlacement(this.#configuration);
    const remote = new RemoteTable(Row as never, placement);
    const keys: number[] = [];
    const primaries = new Set<NodeId>([COORDINATOR]);
    const replicas = new Set<NodeId>([COORDINATOR]);
    for (let key = 0; keys.length < reads; key++) {
      if (key === ROWS) throw new Error("there are no keys at so many different nodes");
      const partition = remote.partitionOf(key);
      const primary = placement.primaryOf(partition);
      if (primaries.has(primary)) continue;
      if (keys.length < writes) {
        const all = [primary, ...placement.backupsOf(partition)];
        if (all.some((node) => replicas.has(node))) continue;
        for (const node of all) replicas.add(node);
      }
      primaries.add(primary);
      keys.push(key);
    }
    return keys;
  }

  async #run<T>(program: () => Promise<T>): Promise<T> {
    let isOver = false;
    const running = program().finally(() => {
      isOver = true;
    });
    running.catch(() => {});
    if (!(await this.#fabric.settle(() => isOver))) throw new Error("the cluster is at rest");
    return running;
  }

  /** What nobody waits for, too. */
  #rest(): void {
    this.#fabric.run();
  }

  #counting(inner: Endpoint): Endpoint {
    return new CountingEndpoint(inner, this.#sent);
  }

  async close(): Promise<void> {
    this.#rest();
    for (const node of this.#nodes) await node.close();
  }
}

class CountingEndpoint implements Endpoint {
  readonly #inner: Endpoint;
  readonly #sent: Map<number, number>;

  constructor(inner: Endpoint, sent: Map<number, number>) {
    this.#inner = inner;
    this.#sent = sent;
  }

  get self() {
    return this.#inner.self;
  }

  get clock() {
    return this.#inner.clock;
  }

  get counters() {
    return this.#inner.counters;
  }

  get configurationId() {
    return this.#inner.configurationId;
  }

  set configurationId(configurationId: number) {
    this.#inner.configurationId = configurationId;
  }

  send(to: NodeId, request: Request): void {
    this.#sent.set(request.kind, (this.#sent.get(request.kind) ?? 0) + 1);
    this.#inner.send(to, request);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

/** Reading an object takes a verb a moment, in which others may change it. */
function wholeRoundTrips(elapsedUs: number): number {
  const whole = Math.round(elapsedUs / ROUND_TRIP_US);
  if (Math.abs(elapsedUs - whole * ROUND_TRIP_US) < ROUND_TRIP_US / 4) return whole;
  throw new Error(`${elapsedUs} µs are not a number of round trips`);
}

function nameOf(kind: number): string {
  return kind < FIRST_MESSAGE_KIND ? "verb" : KIND_NAMES[kind];
}
