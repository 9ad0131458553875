/**
 * Runs a scenario, written for people, on a simulated cluster, and returns what happened as lines. All
 * follows from the scenario: messages take 10 µs, nothing else takes time. One command per line; lines
 * that begin with # are comments.
 *
 *   nodes 3                                  first of all; with `backups 1`, `protocol one-sided`
 *   account a at node 0 with 100             a row whose primary is that node
 *
 *   drop LOG from 0 to 2                     the next one of that kind, once
 *   stop node 0 when LOG is served at 2      at the moment when the first one has been served there
 *   crash node 1 when LOCK is served at 1    its process is killed; the memory of its store stays
 *   … when COMMIT is served at 1 for the 2nd time
 *   stop node 0, resume node 0, crash node 1, return node 1     now
 *   cut power of node 1                      it has only its log to come back from (`logs`, at the top)
 *
 *   recover                                  those who are up, and clients, get a configuration without the others
 *
 *   client 1 moves 10 from a to b            begins a transaction; also: node 0 moves …, as a procedure
 *   client 1 moves 10 from a to b, slowly    reads, waits 1 ms, writes
 *   client 1 reads a b
 *   client 1 moves 10 from a to nowhere      the body throws
 *   wait                                     until all that was begun has ended
 *   pass 20 ms
 *   show                                     what each account is at its primary and at its backups
 *   rest                                     half a minute later: is anything locked, do copies differ?
 */

import { configurationOf } from "../../src/cluster/configuration.ts";
import { ClusterPlacement } from "../../src/cluster/placement.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import type { RemoteTransaction } from "../../src/database/remote/remote-transaction.ts";
import { RemoteTable } from "../../src/protocols/execute/remote-table.ts";
import { KIND_NAMES } from "../../src/protocols/kinds.ts";
import type { ProtocolName } from "../../src/protocols/places.ts";
import { sleep } from "../../src/runtime/clock.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { i64, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { SimulatedFabric } from "../fabric/fabric.ts";
import type { TraceLine } from "../fabric/trace.ts";
import { SimulatedClient } from "./client.ts";
import { RecoveringNodes } from "./recovering-nodes.ts";
import { disagreements, leftOvers, rowsOf } from "./rest.ts";
import { ScriptTrace } from "./script-trace.ts";
import { SimulatedNode } from "./sim-node.ts";

const Accounts = table("accounts", { id: u32(), balance: i64() }, { key: "id" });
const TIMEOUT_MS = 4_000;
const VERBS: Readonly<Record<string, string>> = {
  stop: "stops",
  resume: "goes on",
  crash: "crashes",
  return: "is back",
  "cut power of": "loses its power",
};
const SLOW_MS = 1;
const REST_US = 30e6;
const LONGEST_WAIT_US = 60e6;

interface Account {
  readonly id: number;
  readonly node: number;
  readonly balance: bigint;
}

interface Trigger {
  readonly kind: string;
  readonly what: TraceLine["what"];
  readonly from?: number;
  readonly to: number;
  left: number;
  readonly run: () => void;
}

type Command = (script: ClusterScript, ...parts: string[]) => void | Promise<void>;

const MOMENT = "when ([A-Z ]+) is served at (\\d+)(?: for the (\\d+)\\w\\w time)?";

const COMMANDS: readonly (readonly [pattern: RegExp, run: Command])[] = [
  [/^nodes (\d+)$/, (script, count) => script.size(Number(count))],
  [/^backups (\d+)$/, (script, count) => script.keep(Number(count))],
  [/^logs$/, (script) => script.log()],
  [/^protocol (rpc|one-sided)$/, (script, name) => script.speak(name as ProtocolName)],
  [
    /^account (\w+) at node (\d+) with (\d+)$/,
    (script, name, node, balance) => script.account(name, Number(node), BigInt(balance)),
  ],
  [
    /^drop ([A-Z ]+) from (\d+) to (\d+)$/,
    (script, kind, from, to) => script.drop(kind, Number(from), Number(to)),
  ],
  [
    new RegExp(`^(stop|crash|cut power of) node (\\d+) ${MOMENT}$`),
    (script, verb, node, kind, to, times = "1") =>
      script.when(kind, Number(to), Number(times), () => script.node(verb, Number(node))),
  ],
  [
    /^(stop|resume|crash|return|cut power of) node (\d+)$/,
    (script, verb, node) => script.node(verb, Number(node)),
  ],
  [
    /^(client|node) (\d+) moves (\d+) from (\w+) to (\w+)(, slowly)?$/,
    (script, who, number, amount, from, to, slowly) =>
      script.begin(who, Number(number), (tx) =>
        script.move(tx, BigInt(amount), from, to, slowly !== undefined),
      ),
  ],
  [
    /^(client|node) (\d+) reads ([\w ]+)$/,
    (script, who, number, names) =>
      script.begin(who, Number(number), (tx) => script.read(tx, names.split(" "))),
  ],
  [/^recover$/, (script) => script.recover()],
  [/^wait$/, (script) => script.wait()],
  [/^pass (\d+) ms$/, (script, ms) => script.pass(Number(ms))],
  [/^show$/, (script) => script.show()],
  [/^rest$/, (script) => script.rest()],
];

/** The trace of a scenario. */
export async function runScript(scenario: string): Promise<string> {
  const lines = scenario
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
  const names = lines.flatMap(
    (line) => /^(client|node) \d+(?= (moves|reads) )/.exec(line)?.[0] ?? [],
  );
  const script = new ClusterScript(new Set(names), lines.includes("recover"));
  try {
    for (const line of lines) await script.command(line);
    return script.trace.text;
  } finally {
    await script.close();
  }
}

class ClusterScript {
  readonly trace = new ScriptTrace();
  readonly #fabric = new SimulatedFabric({
    seed: 1,
    trace: (line, frame) => {
      this.trace.look(line, frame);
      this.#look(line);
    },
  });
  #nodes: SimulatedNode[] = [];
  #size = 3;
  #backups: number | undefined;
  #protocol: ProtocolName = "rpc";
  #isLogged = false;
  #configuration = configurationOf({ nodes: [{ id: 0, host: "script", port: 0 }] }, "the script");
  readonly #accounts = new Map<string, Account>();
  /** Of all who will run transactions: they are there before the first one does. */
  readonly #names: ReadonlySet<string>;
  readonly #recovers: boolean;
  readonly #databases = new Map<string, RemoteDatabase>();
  readonly #clients: SimulatedClient[] = [];
  readonly #triggers: Trigger[] = [];
  #recovering: RecoveringNodes | undefined;
  #running = 0;

  constructor(names: ReadonlySet<string>, recovers: boolean) {
    this.#names = names;
    this.#recovers = recovers;
  }

  async command(line: string): Promise<void> {
    for (const [pattern, run] of COMMANDS) {
      const found = pattern.exec(line);
      if (found === null) continue;
      await run(this, ...found.slice(1));
      return;
    }
    throw new Error(`a script does not know what this means: ${line}`);
  }

  size(nodes: number): void {
    this.#size = nodes;
  }

  keep(backups: number): void {
    this.#backups = backups;
  }

  log(): void {
    this.#isLogged = true;
  }

  speak(protocol: ProtocolName): void {
    this.#protocol = protocol;
  }

  account(name: string, node: number, balance: bigint): void {
    this.#build();
    const remote = this.#remote;
    const taken = new Set([...this.#accounts.values()].map(({ id }) => id));
    for (let id = 0; ; id++) {
      if (taken.has(id) || remote.primaryOf(remote.partitionOf(id)) !== node) continue;
      this.#accounts.set(name, { id, node, balance });
      return;
    }
  }

  drop(kind: string, from: number, to: number): void {
    const run = (): void => {
      const fault = this.#fabric.partition(from, to);
      this.#fabric.at(this.#fabric.nowUs, () => this.#fabric.removeFault(fault));
    };
    this.#triggers.push({ kind, what: "sent", from, to, left: 1, run });
  }

  when(kind: string, to: number, left: number, then: () => void): void {
    // After it has been served: between two events.
    const run = (): void => void this.#fabric.at(this.#fabric.nowUs, then);
    this.#triggers.push({ kind, what: "served", to, left, run });
  }

  node(verb: string, id: number): void {
    this.#tell(`node ${id} ${VERBS[verb]}`);
    if (verb === "stop") this.#fabric.stop(id);
    else if (verb === "resume") this.#fabric.resume(id);
    else if (verb === "return") this.#nodes[id].comeBack();
    else this.#nodes[id].crash();
    if (verb === "cut power of") this.#nodes[id].losePower(this.#fabric.random("power"));
  }

  async begin(
    who: string,
    number: number,
    body: (tx: RemoteTransaction) => Promise<string>,
  ): Promise<void> {
    const name = `${who} ${number}`;
    await this.#open();
    const db = this.#databases.get(name)!;
    this.#tell(`${name} begins`);
    this.#running++;
    const end = (how: string): void => {
      this.#running--;
      this.#tell(`${name}: ${how}`);
    };
    db.transact(body).then(end, (error: unknown) => {
      end(error instanceof SituError ? error.code : (error as Error).message);
    });
  }

  async move(
    tx: RemoteTransaction,
    amount: bigint,
    from: string,
    to: string,
    slowly: boolean,
  ): Promise<string> {
    const [source, target] = [this.#accounts.get(from), this.#accounts.get(to)];
    const rows = await Promise.all(
      [source, target].map((each) => each && tx.getForUpdate(Accounts, each.id)),
    );
    if (slowly) await sleep(SLOW_MS, this.#clock);
    for (const [row, change] of [
      [rows[0], -amount],
      [rows[1], amount],
    ] as const) {
      if (row === undefined) throw new Error("there is no such account");
      await tx.put(Accounts, { ...row, balance: row.balance + change });
    }
    return "committed";
  }

  async read(tx: RemoteTransaction, names: readonly string[]): Promise<string> {
    const ids = names.map((name) => this.#accounts.get(name)?.id ?? -1);
    const rows = await Promise.all(ids.map((id) => tx.get(Accounts, id)));
    return names.map((name, i) => `${name} = ${rows[i]?.balance}`).join(", ");
  }

  recover(): void {
    this.#recovering ??= new RecoveringNodes(this.#fabric, this.#nodes, this.#configuration);
    this.#recovering.recover(() => {
      for (const client of this.#clients) client.adopt(this.#configuration);
    });
    this.#configuration = this.#recovering.configuration;
    const up = this.#recovering.up.map(({ id }) => id);
    this.#tell(`configuration ${this.#configuration.configurationId}: nodes ${up.join(", ")}`);
  }

  async wait(): Promise<void> {
    await this.#fabric.settle(() => this.#running === 0, this.#fabric.nowUs + LONGEST_WAIT_US);
    if (this.#running > 0) this.#tell(`${this.#running} have not ended`);
  }

  async pass(ms: number): Promise<void> {
    await this.#fabric.settle(() => false, this.#fabric.nowUs + ms * 1e3);
  }

  show(): void {
    for (const [name, { id }] of this.#accounts) {
      const nodes = this.#placement.copiesOf(this.#remote.partitionOf(id));
      const copies = nodes.map((at) => `${this.#balanceAt(at, id)} at ${at}`);
      this.#tell(`${name}: ${copies.join(", ")}`);
    }
  }

  async rest(): Promise<void> {
    await this.#fabric.settle(() => false, this.#fabric.nowUs + REST_US);
    const nodes = this.#recovering?.up ?? this.#nodes;
    const left = leftOvers(nodes);
    const problems = left.length > 0 ? left : disagreements(nodes, [ACCOUNTS], this.#placement);
    for (const each of problems) this.#tell(each);
    if (problems.length === 0) this.#tell("at rest: nothing is held, all copies agree");
  }

  async close(): Promise<void> {
    for (const node of this.#nodes) {
      if (this.#fabric.machine(node.id).isStopped) this.#fabric.resume(node.id);
      await node.close();
    }
  }

  /** The nodes, when the first command needs them. */
  #build(): void {
    if (this.#nodes.length > 0) return;
    const ids = Array.from({ length: this.#size }, (_, id) => id);
    this.#configuration = configurationOf(
      {
        nodes: ids.map((id) => ({ id, host: "script", port: id })),
        ...(this.#backups === undefined ? {} : { backups: this.#backups }),
      },
      "the script",
    );
    const options = {
      protocol: this.#protocol,
      isLogged: this.#isLogged,
      recovers: this.#recovers,
      settled: (_: unknown, outcome: string) => this.#tell(`settled: ${outcome}`),
    };
    this.#nodes = ids.map((id) => {
      return new SimulatedNode(this.#fabric, id, this.#configuration, options);
    });
  }

  /** Makes the accounts, and a database for everybody; the trace begins. */
  async #open(): Promise<void> {
    if (this.#databases.size > 0) return;
    this.#build();
    await this.#load();
    for (const name of this.#names) {
      const number = Number(name.split(" ")[1]);
      const isClient = name.startsWith("client");
      const db = isClient ? await this.#arrive(number - 1) : await this.#inside(number);
      this.#databases.set(name, db);
    }
    this.trace.begin(this.#fabric.nowUs);
  }

  async #arrive(number: number): Promise<RemoteDatabase> {
    const client = new SimulatedClient(this.#fabric, {
      number,
      configuration: this.#configuration,
      timeoutMs: TIMEOUT_MS,
      protocol: this.#protocol,
    });
    await this.#run(client.arrive([ACCOUNTS]));
    this.#clients.push(client);
    return client.db;
  }

  async #inside(id: number): Promise<RemoteDatabase> {
    const random = this.#fabric.random(`node ${id}`);
    const db = this.#nodes[id].database(`node ${id}`, random, TIMEOUT_MS);
    await this.#run(db.openTables([ACCOUNTS]));
    return db;
  }

  async #load(): Promise<void> {
    const db = await this.#arrive(99);
    const accounts = [...this.#accounts.values()];
    await this.#run(
      db.transact(async (tx) => {
        for (const { id, balance } of accounts) await tx.put(Accounts, { id, balance });
      }),
    );
    // Until the backups have applied it.
    await this.#fabric.settle(() => false, this.#fabric.nowUs + 1e6);
    await db.close();
  }

  async #run<T>(running: Promise<T>): Promise<T> {
    let isOver = false;
    const end = (): void => {
      isOver = true;
    };
    running.then(end, end);
    await this.#fabric.settle(() => isOver);
    return running;
  }

  #look({ what, kind, from, to }: TraceLine): void {
    if (!this.trace.isOn) return;
    const name = KIND_NAMES[kind]?.toUpperCase();
    for (const trigger of this.#triggers) {
      if (trigger.left === 0 || trigger.what !== what || trigger.kind !== name) continue;
      if (trigger.to !== to || (trigger.from ?? from) !== from) continue;
      if (--trigger.left === 0) trigger.run();
    }
  }

  #tell(text: string): void {
    this.trace.tell(this.#fabric.nowUs, text);
  }

  #balanceAt(node: number, id: number): string {
    if (!this.#nodes[node].isUp) return "(down)";
    const rows = rowsOf(this.#nodes[node], this.#remote);
    return String(rows.get(`n${id}`)?.balance ?? "nothing");
  }

  get #placement(): ClusterPlacement {
    return new ClusterPlacement(this.#configuration);
  }

  get #remote(): RemoteTable {
    return new RemoteTable(ACCOUNTS, this.#placement);
  }

  get #clock() {
    return {
      after: (ms: number, run: () => void) => this.#fabric.at(this.#fabric.nowUs + ms * 1e3, run),
    };
  }
}

const ACCOUNTS = Accounts as unknown as Table;
