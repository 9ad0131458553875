/**
 * A small cluster for scripted scenes: accounts whose primaries are chosen, things that happen at
 * the moment when a message of some kind is served, and what must hold when all is at rest.
 */

import { afterEach, expect } from "vitest";
import { SimulatedClient } from "../../simulation/cluster/client.ts";
import { disagreements, leftOvers, rowsOf } from "../../simulation/cluster/rest.ts";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { type Ended, TIMEOUT_MS, Worker } from "../../simulation/cluster/worker.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import type { TraceLine } from "../../simulation/fabric/trace.ts";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import type { RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { i64, table, u32 } from "../../src/index.ts";
import { COMMITTED } from "../../src/protocols/coordinator.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import type { Routine } from "../../src/protocols/message.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import { Part, WriteList } from "../../src/protocols/writes.ts";
import { Random } from "../../src/runtime/random.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import type { Table } from "../../src/tables/table.ts";

export const Account = table(
  "accounts",
  { id: u32(), balance: i64() },
  { key: "id" },
) as unknown as Table;
export const FIRST_BALANCE = 100n;

/** Longer than all that anybody waits for. */
export const LONG_MS = 60_000;

interface Watch {
  readonly what: TraceLine["what"];
  readonly kind: number;
  readonly to: number | undefined;
  left: number;
  readonly run: () => void;
}

const scenes: Scene[] = [];

afterEach(async () => {
  for (const scene of scenes.splice(0)) await scene.close();
});

export class Scene {
  readonly fabric: SimulatedFabric;
  readonly configuration: Configuration;
  readonly placement: ClusterPlacement;
  readonly nodes: SimulatedNode[];
  readonly accounts: RemoteTable;
  readonly #clients: SceneClient[] = [];
  readonly #watches: Watch[] = [];
  #served = new Map<number, number>();
  #failure: unknown;

  constructor({
    nodes = 3,
    backups = Math.min(2, nodes - 1),
    seed = 1,
    recovers = false,
    protocol = "rpc" as ProtocolName,
    isLogged = false,
  } = {}) {
    this.fabric = new SimulatedFabric({ seed, trace: (line) => this.#look(line) });
    const ids = Array.from({ length: nodes }, (_, id) => id);
    this.configuration = configurationOf(
      { nodes: ids.map((id) => ({ id, host: "scene", port: id })), backups, configurationId: 5 },
      "the scene",
    );
    this.placement = new ClusterPlacement(this.configuration);
    const options = { recovers, protocol, isLogged };
    this.nodes = ids.map((id) => new SimulatedNode(this.fabric, id, this.configuration, options));
    this.accounts = new RemoteTable(Account, this.placement);
    scenes.push(this);
  }

  /** The first, second, … account whose primary is this node. */
  accountAt(node: NodeId, which = 0): number {
    let left = which;
    for (let id = 0; ; id++) {
      const primary = this.accounts.primaryOf(this.accounts.partitionOf(id));
      if (primary === node && left-- === 0) return id;
    }
  }

  /** A client that has met all nodes, and from then on has this configuration number. */
  async client(configurationId = this.configuration.configurationId): Promise<SceneClient> {
    const number = this.#clients.length;
    const { configuration } = this;
    const client = new SceneClient(this.fabric, { number, configuration, timeoutMs: TIMEOUT_MS });
    this.#clients.push(client);
    await this.run(client.arrive([Account]));
    client.endpoint.configurationId = configurationId;
    return client;
  }

  /** Makes accounts; the first node coordinates that. */
  open(ids: readonly number[]): void {
    for (const { tables } of this.nodes) tables.open(JSON.stringify(schemaOf(Account)));
    const parts = new Map<NodeId, Part>();
    for (const id of ids) {
      const node = this.accounts.primaryOf(this.accounts.partitionOf(id));
      const part = this.put(id, FIRST_BALANCE);
      parts.set(node, parts.get(node)?.with(part) ?? part);
    }
    expect(this.runAt(0, this.nodes[0].service.coordinator.commit(parts))).toBe(COMMITTED);
    this.rest();
  }

  /** What it comes to is there when it has ended. */
  start<T>(running: Promise<T>): { result: T | undefined } {
    const started: { result: T | undefined } = { result: undefined };
    running.then(
      (result) => {
        started.result = result;
      },
      (error: unknown) => {
        this.#failure = error;
      },
    );
    return started;
  }

  /** Lets time pass until something has ended. */
  async run<T>(running: Promise<T>): Promise<T> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    running.then(end, end);
    if (!(await this.fabric.settle(() => isOver))) expect.fail("nothing is left to happen");
    return running;
  }

  /** Runs a coroutine at a node, as its coordinator would. */
  runAt<T>(node: NodeId, routine: Routine<T>): T {
    let ended: { readonly result: T } | undefined;
    const done = (result: T): void => {
      ended = { result };
    };
    this.nodes[node].service.driver.run(routine, LONG_MS, done, (error) => {
      throw error;
    });
    this.until(() => ended !== undefined);
    return ended!.result;
  }

  /** Promises do not move meanwhile, here and in `pass` and `rest`. */
  until(isDone: () => boolean): void {
    while (!isDone()) if (!this.fabric.step()) expect.fail("nothing is left to happen");
  }

  /** Virtual time passes. */
  pass(ms: number): void {
    this.fabric.run(this.fabric.nowUs + ms * 1e3);
  }

  /** The same, with clients at work. */
  async work(ms: number): Promise<void> {
    await this.fabric.settle(() => false, this.fabric.nowUs + ms * 1e3);
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Once, the first time (or the `times`th) that something of this kind happens. */
  when(what: TraceLine["what"], kind: number, run: () => void, to?: NodeId, times = 1): void {
    this.#watches.push({ what, kind, to, left: times, run });
  }

  /** How many messages of a kind were served over the fabric. */
  served(kind: number): number {
    return this.#served.get(kind) ?? 0;
  }

  balances(node: NodeId): Map<string, bigint> {
    const rows = rowsOf(this.nodes[node], this.accounts);
    return new Map([...rows].map(([key, row]) => [key, row.balance as bigint]));
  }

  /** The balance of an account, the same at all of its copies. */
  balance(id: number): bigint | undefined {
    const partition = this.accounts.partitionOf(id);
    return this.balances(this.placement.primaryOf(partition)).get(`n${id}`);
  }

  /** Words of a message: this account has this balance. */
  put(id: number, balance: bigint): Part {
    const list = new WriteList(new Writer());
    const words = this.accounts.codec.encode({ id, balance });
    const partition = this.accounts.partitionOf(id);
    list.put(this.accounts.id, partition, this.accounts.codec.scratch.i32, 0, words);
    return new Part(list.words(), list.count);
  }

  /** All faults are healed, all that is under way ends: nothing is held, all copies agree. */
  rest(): void {
    this.fabric.clearFaults();
    for (const { id } of this.nodes) {
      if (this.fabric.machine(id).isStopped) this.fabric.resume(id);
    }
    this.pass(LONG_MS);
    expect(leftOvers(this.nodes)).toEqual([]);
    expect(disagreements(this.nodes, [Account], this.placement)).toEqual([]);
  }

  async close(): Promise<void> {
    for (const client of this.#clients) if (!client.isGone) client.vanish();
    for (const node of this.nodes) await node.close();
  }

  #look({ what, kind, to }: TraceLine): void {
    if (what === "served") this.#served.set(kind, (this.#served.get(kind) ?? 0) + 1);
    for (const watch of this.#watches) {
      if (watch.what !== what || watch.kind !== kind || watch.left === 0) continue;
      if ((watch.to ?? to) !== to || --watch.left > 0) continue;
      watch.run();
    }
  }
}

export class SceneClient extends SimulatedClient {
  readonly worker = new Worker(-1 - this.id, new Random(1), this.db, this.endpoint.clock);

  override vanish(): void {
    super.vanish();
    this.worker.killed();
  }
}

/** Moves an amount from one account to another. */
export function transfer(
  { worker }: SceneClient,
  from: number,
  to: number,
  amount = 1n,
): Promise<Ended<void>> {
  return worker.transact(async (tx) => {
    const [source, target] = await balances(tx, [from, to]);
    await tx.put(Account, { id: from, balance: source - amount });
    await tx.put(Account, { id: to, balance: target + amount });
  });
}

/** Reads some balances, all at one moment. */
export function balancesOf(
  { worker }: SceneClient,
  ids: readonly number[],
): Promise<Ended<readonly bigint[]>> {
  return worker.transact((tx) => balances(tx, ids));
}

async function balances(tx: RemoteTransaction, ids: readonly number[]): Promise<bigint[]> {
  const rows = await Promise.all(ids.map((id) => tx.get(Account, id)));
  return rows.map((row) => (row as { balance: bigint }).balance);
}
