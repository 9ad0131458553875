/**
 * Memory servers die, or stand still and come back, at each verb of a commit, while others recover, and together with a compute
 * server (decision 0180). With copies the store goes on: what was acknowledged is there, a commit is whole or not at all, no lock stays, and
 * all copies are the same. When too many are gone, that is said, and nothing is served that is not true.
 */

import { describe, expect, it } from "vitest";
import { type ComputeServer, NamCluster } from "../../simulation/nam/cluster.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { NAM_MEMBERS } from "../../src/protocols/kinds.ts";
import type { Routine } from "../../src/protocols/message.ts";
import { claimPair } from "../../src/protocols/nam/claim.ts";
import { ComputeThread, type NamDirectory } from "../../src/protocols/nam/compute-thread.ts";
import { isLockedHigh } from "../../src/protocols/nam/header.ts";
import { JsonMessage } from "../../src/protocols/nam/json-message.ts";
import { KEY_AT, type NamTable, VERSION_LOW_AT } from "../../src/protocols/nam/layout.ts";
import type { Members } from "../../src/protocols/nam/members.ts";
import { changeMembers, type MembersState } from "../../src/protocols/nam/membership.ts";
import { FIRST_PLACE, type Scanned, type ScanPlace } from "../../src/protocols/nam/scan.ts";
import { settle } from "../../src/protocols/nam/settle.ts";
import { Timestamps } from "../../src/protocols/nam/timestamps.ts";
import { NamTransaction } from "../../src/protocols/nam/transaction.ts";
import { SOAK } from "../helpers/seed.ts";
import { codeOf, keyOf, RECORDS, rowOf } from "./scene.ts";

/** A compute server with one thread, and what it knows of the members. */
class Client {
  readonly scene: Scene;
  readonly compute: ComputeServer;
  readonly directory: NamDirectory & { readonly members: Members };
  #timestamps: Timestamps;
  #thread: ComputeThread;

  constructor(scene: Scene, number: number) {
    this.scene = scene;
    this.directory = scene.cluster.ownDirectory();
    this.compute = scene.cluster.computeServer(number, this.directory);
    this.#timestamps = this.compute.timestamps;
    [this.#thread] = this.compute.groups[0];
    this.open();
  }

  get table(): NamTable {
    return this.directory.tables[0];
  }

  /** Claims its thread, as it does after each change of the members. */
  open(): void {
    this.#timestamps = new Timestamps(this.directory, { layout: "vector" });
    this.#thread = new ComputeThread(this.#thread.pair, this.directory);
    this.run(settle([this.#thread], this.#timestamps, this.scene.cluster.claimant()));
  }

  run<T>(routine: Routine<T>, timeoutMs = 50): T {
    return this.scene.cluster.run(this.compute, routine, timeoutMs);
  }

  transaction(): NamTransaction {
    return new NamTransaction(this.#thread, this.#timestamps);
  }

  committing(keys: readonly number[], value: number): Routine<{ readonly kind: string }> {
    const transaction = this.transaction();
    for (const key of keys) transaction.write(this.table, keyOf(key), rowOf(value + key));
    return transaction.commit();
  }

  read(keys: readonly number[], transaction = this.transaction()): (number | undefined)[] {
    const wanted = keys.map((key) => ({ table: this.table, key: keyOf(key) }));
    return this.run(transaction.read(wanted)).map((row) => row?.[0]);
  }

  /** The keys of all records. */
  scan(transaction = this.transaction()): number[] {
    const keys: number[] = [];
    for (let place: ScanPlace | undefined = FIRST_PLACE; place !== undefined; ) {
      const { bodies, next }: Scanned = this.run(transaction.scan(this.table, place));
      keys.push(...bodies.map((body) => body[KEY_AT]));
      place = next;
    }
    return keys;
  }

  changing(suspects: readonly NodeId[]): Routine<MembersState> {
    const random = this.scene.cluster.fabric.random("members");
    return changeMembers(this.directory, suspects, (below) => random.below(below));
  }

  change(suspects: readonly NodeId[]): void {
    const { epoch, alive } = this.run(this.changing(suspects));
    this.directory.members.become(epoch, alive);
    this.open();
  }
}

class Scene {
  readonly cluster: NamCluster;
  readonly clients: Client[];

  constructor({ memoryServers = 3, copies = 2 } = {}) {
    this.cluster = new NamCluster({
      seed: 1,
      memoryServers,
      computeServers: 3,
      threadsPerServer: 1,
      copies,
      timestamps: { layout: "vector" },
      tables: [{ ...RECORDS, ring: 4 }],
    });
    this.clients = [0, 1, 2].map((number) => new Client(this, number));
    this.clients[0].run(this.clients[0].committing([1, 2, 4], 0));
  }

  /** A commit of client 0, until so many of its verbs were served. */
  stopAfter(verbs: number, keys: readonly number[] = KEYS): { readonly outcome: () => string } {
    const [client] = this.clients;
    let outcome = "running";
    const served = this.cluster.served();
    client.compute.driver.run(
      client.committing(keys, 10),
      20,
      ({ kind }) => {
        outcome = kind;
      },
      (error) => {
        outcome = (error as { code: string }).code;
      },
    );
    this.step(served + verbs);
    return { outcome: () => outcome };
  }

  step(served: number): void {
    while (this.cluster.served() < served && this.cluster.fabric.step());
  }

  /** Nothing is locked at the members, and the copies of every cell are the same. */
  check(client: Client): void {
    const { table, directory } = client;
    for (let range = 0; range < directory.servers.length; range++) {
      for (let cell = 0; cell < table.cellsPerServer; cell++) {
        const copies = table.placesOf(range, cell).map((place) => {
          const { i32 } = this.cluster.servers[place.server].region(table.segments.cells);
          const at = table.cellAt(place.cell);
          return i32.slice(at, at + table.cellWords);
        });
        for (const words of copies) {
          expect(isLockedHigh(words[table.bodyWords + 1])).toBe(false);
          if (words !== copies[0]) expect(words).toEqual(copies[0]);
        }
      }
    }
  }

  /** Cells that a key has at its primary. */
  cellsOf({ table }: Client, key: number): number {
    let cells = 0;
    const { server } = table.home(keyOf(key));
    const { i32 } = this.cluster.servers[server].region(table.segments.cells);
    for (let cell = 0; cell < table.cellsHeld; cell++) {
      const at = table.cellAt(cell);
      const isUsed = i32[at + VERSION_LOW_AT] !== 0;
      if (isUsed && table.hasKey(i32, keyOf(key), at) && table.isPrimary({ server, cell })) cells++;
    }
    return cells;
  }

  /** A client that did not do anything finds one state, and all goes on. */
  goesOn(client: Client): (number | undefined)[] {
    const rows = client.read(KEYS);
    expect([BEFORE, AFTER]).toContainEqual(rows);
    this.check(client);
    for (const value of [20, 30, 40, 50, 60, 70]) {
      expect(client.run(client.committing([...KEYS, 4, 5], value)).kind).toBe("committed");
      const nowMs = this.cluster.fabric.nowUs / 1e3;
      for (const { mover } of this.cluster.servers) mover.round(nowMs, 2 * RECORDS.cells);
    }
    expect(client.read([...KEYS, 4, 5])).toEqual([71, 72, 73, 74, 75]);
    this.check(client);
    return rows;
  }
}

/** Two updates and an insert. */
const KEYS = [1, 2, 3];
const BEFORE = [1, 2, undefined];
const AFTER = [11, 12, 13];

function verbsOfCommit(): number {
  const scene = new Scene();
  const before = scene.cluster.served();
  const [client] = scene.clients;
  client.run(client.committing(KEYS, 10));
  return scene.cluster.served() - before;
}

const VERBS = verbsOfCommit();

it("a commit with two copies of each record costs two reads of the vector, an install more for each record, and two publishes", () => {
  expect(VERBS).toBe(2 + 3 + 2 + 5 + 4 + 6 + 2);
});

describe.each([0, 1, 2])("memory server %i of three", (victim) => {
  it("dies at every verb of a commit: the store goes on, and what was acknowledged is there", () => {
    const seen = new Set<string>();
    for (let at = 0; at <= VERBS; at++) {
      const scene = new Scene();
      const { fabric } = scene.cluster;
      const commit = scene.stopAfter(at);
      fabric.crash(victim);
      scene.clients[1].change([victim]);
      const rows = scene.goesOn(scene.clients[1]);
      while (commit.outcome() === "running" && fabric.step());
      if (commit.outcome() === "committed") expect([at, rows]).toEqual([at, AFTER]);
      seen.add(String(rows));
      // The one that was committing learns of it, and works on.
      scene.clients[0].change([victim]);
      expect(scene.clients[0].read(KEYS)).toEqual([71, 72, 73]);
    }
    expect(seen).toEqual(new Set([String(BEFORE), String(AFTER)]));
  });

  it("dies together with the compute server; so does the first that recovers, at many of its verbs", () => {
    for (const at of SOAK > 1 ? [8, 14, 18, 20, 22, VERBS] : [14, 20]) {
      for (let step = SOAK > 1 ? 0 : victim; step < 40; step += SOAK > 1 ? 1 : 5) {
        const scene = new Scene();
        const { fabric } = scene.cluster;
        scene.stopAfter(at);
        fabric.crash(victim);
        fabric.crash(scene.clients[0].compute.id);
        const served = scene.cluster.served();
        const { compute } = scene.clients[1];
        compute.driver.run(scene.clients[1].changing([victim]), 50, ignore, ignore);
        scene.step(served + step);
        fabric.crash(compute.id);
        scene.clients[2].change([victim]);
        scene.goesOn(scene.clients[2]);
      }
    }
  });

  it("stands still and comes back after it was given up: it misleads nobody", () => {
    for (let at = 0; at <= VERBS; at += SOAK > 1 ? 1 : 3) {
      const scene = new Scene();
      const { fabric } = scene.cluster;
      const commit = scene.stopAfter(at);
      fabric.stop(victim);
      scene.clients[1].change([victim]);
      scene.goesOn(scene.clients[1]);
      fabric.resume(victim);
      while (commit.outcome() === "running" && fabric.step());
      fabric.run(fabric.nowUs + 1_000);
      // A client that knows the old members only is refused, even if it reads nothing but what that server has.
      const { table } = scene.clients[2];
      const there = [...Array(50).keys()].find((key) => table.home(keyOf(key)).server === victim)!;
      expect(codeOf(() => scene.clients[2].read([there]))).toBe("SITU_STALE_CONFIGURATION");
      scene.clients[2].change([]);
      expect(scene.clients[2].read([...KEYS, 4])).toEqual([71, 72, 73, 74]);
      scene.check(scene.clients[2]);
    }
  });

  it("is gone, and another one dies: with one of three nothing is decided, and that is said", () => {
    const scene = new Scene();
    const { fabric } = scene.cluster;
    fabric.crash(victim);
    const [, client] = scene.clients;
    client.change([victim]);
    const second = (victim + 1) % 3;
    fabric.crash(second);
    expect(codeOf(() => client.change([second]))).toBe("SITU_UNREACHABLE");
    expect(codeOf(() => client.read(KEYS))).toBe("SITU_LOST");
  });
});

it("two compute servers change the members at once: they agree, with every order of their messages", () => {
  for (let lead = 0; lead < 30; lead += SOAK > 1 ? 1 : 3) {
    const scene = new Scene();
    const { fabric } = scene.cluster;
    scene.stopAfter(18);
    fabric.crash(2);
    const states: MembersState[] = [];
    const served = scene.cluster.served();
    const start = (client: Client): void => {
      const again = (): void => start(client);
      // Of two that claim one thread, one is refused.
      client.compute.driver.run(client.changing([2]), 50, (state) => states.push(state), again);
    };
    start(scene.clients[1]);
    scene.step(served + lead);
    start(scene.clients[2]);
    while (states.length < 2 && fabric.step());
    expect(states.map(({ epoch, alive }) => [epoch, alive])).toEqual([
      [2, [0, 1]],
      [2, [0, 1]],
    ]);
    for (const client of scene.clients.slice(1)) {
      client.directory.members.become(2, [0, 1]);
      client.open();
    }
    scene.goesOn(scene.clients[1]);
  }
});

it("five servers with three copies survive any two, at once or one after the other", () => {
  for (let first = 0; first < 5; first++) {
    const second = (first + 1) % 5;
    for (const at of [10, 20, 24, 28]) {
      const scene = new Scene({ memoryServers: 5, copies: 3 });
      scene.stopAfter(at);
      scene.cluster.fabric.crash(first);
      if (at % 8 === 0) scene.clients[1].change([first]);
      scene.cluster.fabric.crash(second);
      scene.clients[1].change([first, second]);
      scene.goesOn(scene.clients[1]);
    }
  }
});

it("with one copy nothing goes on without a server: that is said, too", () => {
  const scene = new Scene({ copies: 1 });
  scene.cluster.fabric.crash(1);
  expect(codeOf(() => scene.clients[1].change([1]))).toBe("SITU_MEMORY_LOST");
});

it("nobody sees what only one copy of the vector has: whoever has seen a commit finds it after the server is gone", () => {
  for (let at = VERBS - 4; at <= VERBS; at++) {
    const scene = new Scene();
    const { fabric } = scene.cluster;
    const commit = scene.stopAfter(at);
    // It goes no further, and others work on: they see the commit and write over it, or they do not see it.
    fabric.stop(scene.clients[0].compute.id);
    const [, client] = scene.clients;
    const seen = client.read(KEYS);
    const isOver = client.run(client.committing([1], 20)).kind === "committed";
    expect(isOver).toBe(seen[0] === AFTER[0]);
    fabric.crash(0);
    client.change([0]);
    const rows = client.read(KEYS);
    if (isOver) expect(rows).toEqual([21, ...AFTER.slice(1)]);
    else expect([BEFORE, AFTER]).toContainEqual(rows);
    if (commit.outcome() === "committed") expect(seen).toEqual(AFTER);
    scene.check(client);
  }
});

it("a snapshot from before is right or too old, a transaction from before begins again", () => {
  const scene = new Scene();
  const [writer, reader] = scene.clients;
  writer.run(writer.committing(KEYS, 10));
  const before = reader.transaction();
  reader.read([1], before);
  scene.cluster.fabric.crash(0);
  reader.change([0]);
  expect(codeOf(() => reader.read([2], before))).toBe("SITU_STALE_CONFIGURATION");
  expect(reader.read(KEYS)).toEqual(AFTER);
});

describe("a server refuses to change its members on anybody's word, and counts it", () => {
  const asking = (to: NodeId, request: object): Routine<unknown> =>
    (function* () {
      const message = new JsonMessage<object>(to, NAM_MEMBERS, { formation: 0, ...request });
      yield [message];
      return message.answer;
    })();

  it("to enter, without a ballot that it was asked in, or members that can go on", () => {
    const scene = new Scene();
    const [client] = scene.clients;
    const [server] = scene.cluster.servers;
    const ask = (request: object): unknown => client.run(asking(0, request));
    const alive = [0, 1];
    const enter = { what: "enter", epoch: 2, ballot: 7, alive };
    const refused: readonly object[] = [
      enter,
      { ...enter, epoch: 2 ** 31 - 1 },
      { what: "accept", epoch: 2, ballot: 7, alive: [0] },
      { what: "accept", epoch: 2, ballot: 7, alive: [0, 0] },
      { what: "accept", epoch: 2, ballot: 7, alive: [0, 1, 2] },
      { what: "ready", epoch: 2, ballot: 7 },
    ];
    for (const request of refused) {
      expect(codeOf(() => ask(request))).toBe("SITU_PERMISSION");
    }
    ask({ what: "accept", epoch: 2, ballot: 7, alive });
    expect(codeOf(() => ask({ ...enter, ballot: 8 }))).toBe("SITU_PERMISSION");
    expect(codeOf(() => ask({ ...enter, alive: [0, 2] }))).toBe("SITU_PERMISSION");
    expect(server.guard.refused).toBe(refused.length + 2);
    expect([server.members.epoch, server.members.alive, server.isReady]).toEqual([
      1,
      [0, 1, 2],
      true,
    ]);
    // Nobody was shut out.
    expect(client.run(client.committing(KEYS, 10)).kind).toBe("committed");
  });

  it("to be ready, before anybody has recovered", () => {
    const scene = new Scene();
    const [client, other] = scene.clients;
    const [server] = scene.cluster.servers;
    const alive = [0, 1];
    for (const what of ["accept", "enter"]) {
      for (const to of alive) {
        client.run(asking(to, { what, epoch: 2, ballot: 7, alive }));
      }
    }
    const ready = { what: "ready", epoch: 2, ballot: 7 };
    expect(codeOf(() => client.run(asking(0, ready)))).toBe("SITU_PERMISSION");
    expect(server.isReady).toBe(false);
    client.directory.members.become(2, alive);
    const thread = new ComputeThread(2, client.directory);
    client.run(claimPair(thread, 1, true));
    expect(codeOf(() => client.run(asking(0, { ...ready, ballot: 6 })))).toBe("SITU_PERMISSION");
    expect([server.isReady, server.guard.refused]).toEqual([false, 2]);
    // Somebody comes by and does what is left.
    other.change([2]);
    scene.goesOn(other);
  });

  it("a server that was not asked before one that has died had decided is brought along", () => {
    const scene = new Scene({ memoryServers: 5, copies: 3 });
    const [client, other] = scene.clients;
    scene.cluster.fabric.crash(4);
    const alive = [0, 1, 2, 3];
    // Decided by the first three; only one of them has entered.
    for (const to of [0, 1, 2]) {
      client.run(asking(to, { what: "accept", epoch: 2, ballot: 7, alive }));
    }
    client.run(asking(1, { what: "enter", epoch: 2, ballot: 7, alive }));
    // Meanwhile another one dies.
    scene.cluster.fabric.crash(0);
    other.change([0, 4]);
    expect([other.directory.members.epoch, other.directory.members.alive]).toEqual([3, [1, 2, 3]]);
    scene.goesOn(other);
  });
});

describe.each([0, 1, 2])("keys that begin in one cell, whose primary is server %i", (primary) => {
  const [first, second] = keysWithOneHome(primary);

  it.each([
    ["alone", [first]],
    ["with another that is pushed on", [first, keysWithOneHome(primary)[2]]],
  ])("an insert that only the dead primary had, %s, hides nothing behind it", (_, keys) => {
    let times = 0;
    for (let at = 0; at <= VERBS; at++) {
      const scene = new Scene();
      const { fabric, servers } = scene.cluster;
      const [writer, client, other] = scene.clients;
      scene.stopAfter(at, keys);
      // From here on nothing of the writer's arrives at the copy.
      const { id } = writer.compute;
      const fault = { kind: "loss", probability: 1, from: id, to: (primary + 1) % 3 } as const;
      fabric.addFault(fault);
      scene.step(scene.cluster.served() + keys.length);
      fabric.crash(id);
      fabric.removeFault(fault);
      const { table } = client;
      const home = table.home(keyOf(first));
      const { range, cell } = table.rangeOf(home);
      const isThere = table.placesOf(range, cell).map((place) => {
        const { i32 } = servers[place.server].region(table.segments.cells);
        return i32[table.cellAt(place.cell) + VERSION_LOW_AT] !== 0;
      });
      let outcome = client.run(client.committing([second], 20)).kind;
      if (isThere.join() === "true,false") {
        expect(outcome).toBe("committed");
        times++;
      }
      fabric.crash(primary);
      client.change([primary]);
      if (outcome === "committed") expect(client.read([second])).toEqual([20 + second]);
      outcome = client.run(client.committing([second, ...keys], 30)).kind;
      expect([at, outcome]).toEqual([at, "committed"]);
      other.change([primary]);
      expect(other.read([second, ...keys])).toEqual([second, ...keys].map((key) => 30 + key));
      expect(scene.cellsOf(other, second)).toBe(1);
      expect(other.scan().toSorted()).toEqual([1, 2, 4, second, ...keys].toSorted());
      scene.check(other);
    }
    expect(times).toBeGreaterThan(0);
  });
});

/** Keys whose search begins in one cell of a server. */
function keysWithOneHome(server: NodeId): number[] {
  const { table } = new Scene().clients[0];
  const byCell = new Map<number, number[]>();
  for (let key = 10; ; key++) {
    const home = table.home(keyOf(key));
    if (home.server !== server) continue;
    const keys = [...(byCell.get(home.cell) ?? []), key];
    byCell.set(home.cell, keys);
    if (keys.length === 3) return keys;
  }
}

function ignore(): void {}
