/**
 * A small cluster for scripted scenes: accounts whose primaries are chosen, things that happen at
 * the moment when a message of some kind is served, and what must hold when all is at rest.
 */

import { afterEach, expect } from "vitest";
import type { Program } from "../../simulation/cluster/program.ts";
import { disagreements, leftOvers, rowsOf } from "../../simulation/cluster/rest.ts";
import { SimulatedNode } from "../../simulation/cluster/sim-node.ts";
import { type Attempt, attempt, ClientWorker, read } from "../../simulation/cluster/worker.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import type { TraceLine } from "../../simulation/fabric/trace.ts";
import { type Configuration, configurationOf } from "../../src/cluster/configuration.ts";
import { RingPlacement } from "../../src/cluster/placement.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { Writer } from "../../src/fabric/wire.ts";
import { i64, table, u32 } from "../../src/index.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { Part, WriteList } from "../../src/protocols/writes.ts";
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
  readonly placement: RingPlacement;
  readonly nodes: SimulatedNode[];
  readonly accounts: RemoteTable;
  readonly #clients: ClientWorker[] = [];
  readonly #watches: Watch[] = [];
  #served = new Map<number, number>();

  constructor({ nodes = 3, backups = Math.min(2, nodes - 1), seed = 1 } = {}) {
    this.fabric = new SimulatedFabric({ seed, trace: (line) => this.#look(line) });
    const ids = Array.from({ length: nodes }, (_, id) => id);
    this.configuration = configurationOf(
      { nodes: ids.map((id) => ({ id, host: "scene", port: id })), backups, configurationId: 5 },
      "the scene",
    );
    this.placement = new RingPlacement(this.configuration);
    this.nodes = ids.map((id) => new SimulatedNode(this.fabric, id, this.configuration));
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

  /** A client that has met all nodes. */
  client(configurationId = this.configuration.configurationId): ClientWorker {
    const number = this.#clients.length;
    const random = this.fabric.random(`client ${number}`);
    const configuration = { ...this.configuration, configurationId };
    const client = new ClientWorker(this.fabric, number, random, configuration, "rpc");
    this.#clients.push(client);
    if (configurationId === this.configuration.configurationId)
      this.run(client, client.arrive([Account]));
    return client;
  }

  /** Makes accounts, with a client that is used for nothing else. */
  open(ids: readonly number[]): void {
    const client = this.client();
    const made = this.run(
      client,
      // biome-ignore lint/correctness/useYield: a body that reads nothing
      attempt(client, function* (tx) {
        for (const id of ids) tx.put(client.tableOf(Account), { id, balance: FIRST_BALANCE });
        return "done" as const;
      }),
    );
    expect(made.kind).toBe("ok");
    this.rest();
  }

  /** Begins something; what it returns is there when it has ended. */
  start<T>(client: ClientWorker, program: Program<T>): { result: T | undefined } {
    const started: { result: T | undefined } = { result: undefined };
    const keep = function* (): Program<void> {
      started.result = yield* program;
    };
    client.run(keep(), () => {});
    return started;
  }

  /** Runs something to its end. */
  run<T>(client: ClientWorker, program: Program<T>): T {
    const started = this.start(client, program);
    this.until(() => started.result !== undefined || client.isGone, true);
    return started.result as T;
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

  until(isDone: () => boolean, mayRest = false): void {
    while (!isDone()) {
      if (this.fabric.step()) continue;
      if (mayRest) return;
      expect.fail("nothing is left to happen");
    }
  }

  /** Virtual time passes. */
  pass(ms: number): void {
    this.fabric.run(this.fabric.nowUs + ms * 1e3);
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

/** One attempt to move an amount from one account to another. */
export function* transfer(
  client: ClientWorker,
  from: number,
  to: number,
  amount = 1n,
): Program<Attempt<"done">> {
  const accounts = client.tableOf(Account);
  return yield* attempt(client, function* (tx) {
    const rows = yield* read(
      tx,
      [from, to].map((key) => ({ table: accounts, key })),
    );
    if (rows === "locked") return "locked";
    const [source, target] = rows.map((row) => row?.balance as bigint);
    tx.put(accounts, { id: from, balance: source - amount });
    tx.put(accounts, { id: to, balance: target + amount });
    return "done" as const;
  });
}

/** One attempt to read some balances. */
export function* balancesOf(
  client: ClientWorker,
  ids: readonly number[],
): Program<Attempt<readonly bigint[]>> {
  const accounts = client.tableOf(Account);
  return yield* attempt(client, function* (tx) {
    const rows = yield* read(
      tx,
      ids.map((key) => ({ table: accounts, key })),
    );
    return rows === "locked" ? rows : rows.map((row) => row?.balance as bigint);
  });
}
