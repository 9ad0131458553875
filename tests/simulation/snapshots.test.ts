/** Snapshots of a cluster: what they wait for, how they end, and that the checks would notice if they were torn. */

import { describe, expect, test } from "vitest";
import { replayCommand, simulate } from "../../simulation/cluster/simulate.ts";
import { View } from "../../src/cluster/view.ts";
import type { RemoteSnapshot } from "../../src/database/snapshot.ts";
import { LOCK } from "../../src/protocols/kinds.ts";
import { EndSnapshot } from "../../src/protocols/phases/snapshot.ts";
import { DEFAULT_MAX_SNAPSHOT_MS, SNAPSHOT_LEASE_MS } from "../../src/runtime/limits.ts";
import { codeOf } from "../helpers/failure.ts";
import { PLANTED } from "./planted.ts";
import { Account, FIRST_BALANCE, Scene, type SceneClient, transfer } from "./scene.ts";

class Script {
  readonly scene: Scene;
  readonly ids: number[];

  constructor(options: ConstructorParameters<typeof Scene>[0] = {}) {
    this.scene = new Scene(options);
    this.ids = [0, 1, 2].map((node) => this.scene.accountAt(node));
    this.scene.open(this.ids);
  }

  async read(snapshot: RemoteSnapshot): Promise<bigint[]> {
    const rows = await this.scene.run(snapshot.getMany(Account, this.ids));
    return rows.map((row) => (row as { balance: bigint }).balance);
  }

  get open(): number {
    return this.scene.nodes.reduce(
      (sum, { service }) => sum + service.participant.snapshots.open,
      0,
    );
  }
}

const sum = (balances: readonly bigint[]): bigint => balances.reduce((all, each) => all + each, 0n);

describe("taking one", () => {
  test("takes two round trips", async () => {
    const { scene } = new Script();
    const { db, driver } = await scene.client();
    await scene.run(db.snapshot().then((first) => first.close()));
    const before = driver.roundTrips;
    const snapshot = await scene.run(db.snapshot());
    expect(driver.roundTrips - before).toBe(2);
    await scene.run(snapshot.close());
  });

  test("waits for a transaction that is being committed, and has all of it", async () => {
    const script = new Script();
    const { scene, ids } = script;
    const [writer, reader] = [await scene.client(), await scene.client()];
    // The primary of the second account hears of the commit much later.
    scene.when("served", LOCK, () => scene.fabric.stop(1), 1);
    const moving = scene.start(transfer(writer, ids[0], ids[1], 10n));
    await scene.work(5);
    const taking = scene.start(reader.db.snapshot());
    await scene.work(20);
    expect(taking.result).toBeUndefined();
    scene.fabric.resume(1);
    await scene.work(2_000);
    expect(moving.result?.kind).toBe("ok");
    expect(await script.read(taking.result!)).toEqual([90n, 110n, 100n]);
    await scene.run(taking.result!.close());
    expect(script.open).toBe(0);
    scene.rest();
  });

  test("does not have one that is prepared at some nodes only, and reads its rows all the same", async () => {
    const script = new Script();
    const { scene, ids } = script;
    const [writer, reader] = [await scene.client(), await scene.client()];
    const snapshot = await scene.run(reader.db.snapshot());
    scene.when("served", LOCK, () => scene.fabric.stop(0), 1);
    scene.start(transfer(writer, ids[0], ids[1], 10n));
    await scene.work(5);
    expect(scene.nodes[1].service.participant.prepared).toBe(1);
    // The coordinator stands still, its rows are locked.
    const row = await scene.run(snapshot.get(Account, ids[1]));
    expect(row).toEqual({ id: ids[1], balance: FIRST_BALANCE });
    scene.fabric.resume(0);
    await scene.work(2_000);
    expect(await script.read(snapshot)).toEqual([100n, 100n, 100n]);
    await scene.run(snapshot.close());
    scene.rest();
  });

  test("is repeated where messages come twice, late and in another order", async () => {
    const script = new Script();
    const { scene } = script;
    const { db } = await scene.client();
    scene.fabric.addFault({ kind: "duplicate", probability: 0.5, maxUs: 5_000 });
    scene.fabric.addFault({ kind: "loss", probability: 0.05 });
    for (let round = 0; round < 10; round++) {
      const snapshot = await scene.run(db.snapshot());
      expect(sum(await script.read(snapshot))).toBe(300n);
      await scene.run(snapshot.close());
    }
    scene.rest();
    expect(script.open).toBe(0);
  });
});

describe("a snapshot ends", () => {
  async function held(options = {}): Promise<{
    script: Script;
    client: SceneClient;
    snapshot: RemoteSnapshot;
  }> {
    const script = new Script(options);
    const client = await script.scene.client();
    const snapshot = await script.scene.run(client.db.snapshot());
    expect(script.open).toBe(3);
    return { script, client, snapshot };
  }

  test("when its client closes it, or its database", async () => {
    const { script, client, snapshot } = await held();
    await script.scene.run(snapshot.close());
    expect(script.open).toBe(0);
    expect(await codeOf(snapshot.get(Account, 0))).toBe("SITU_CLOSED");
    await script.scene.run(client.db.snapshot());
    await script.scene.run(client.db.close());
    expect(script.open).toBe(0);
  });

  test("some time after its client has died, and not before", async () => {
    const { script, client } = await held();
    await script.scene.work(2 * SNAPSHOT_LEASE_MS);
    expect(script.open).toBe(3);
    client.vanish();
    await script.scene.work(2 * SNAPSHOT_LEASE_MS);
    expect(script.open).toBe(0);
    for (const { executor } of script.scene.nodes) {
      expect(executor.versions.registry.summary().open).toBe(0);
    }
  });

  test("at a node that was started anew: SITU_SNAPSHOT_TOO_OLD", async () => {
    const { script, snapshot } = await held();
    const [node] = script.scene.nodes;
    node.crash();
    node.comeBack();
    expect(await codeOf(script.read(snapshot))).toBe("SITU_SNAPSHOT_TOO_OLD");
    await script.scene.run(snapshot.close());
  });

  test("with the configuration: SITU_SNAPSHOT_TOO_OLD, and a new one can be taken", async () => {
    const { script, client, snapshot } = await held({ recovers: true, nodes: 3 });
    const { scene } = script;
    const next = { ...scene.configuration, configurationId: 6 };
    for (const { service } of scene.nodes) {
      const { instance, protocol } = service.view.current;
      const view = { self: service.self, instance, configuration: next, protocol: protocol.name };
      service.adopt(new View(view));
    }
    for (const { service } of scene.nodes) service.recover();
    expect(script.open).toBe(0);
    client.adopt(next);
    expect(await codeOf(script.read(snapshot))).toBe("SITU_SNAPSHOT_TOO_OLD");
    const other = await scene.run(client.db.snapshot());
    expect(sum(await script.read(other))).toBe(300n);
    await scene.run(other.close());
  });

  test("at all nodes if one of them has none: a scan says so", async () => {
    const { script, client, snapshot } = await held();
    const name = `${client.session.id} 1`;
    await script.scene.run(
      client.driver.start(
        (function* () {
          yield [new EndSnapshot(2, name)];
        })(),
        1_000,
      ),
    );
    expect(await codeOf(script.scene.run(snapshot.scan(Account).toArray()))).toBe(
      "SITU_SNAPSHOT_TOO_OLD",
    );
    await script.scene.run(snapshot.close());
  });
});

test("isolation snapshot: the first to commit wins, and who only reads is never in the way", async () => {
  const script = new Script();
  const { scene, ids } = script;
  const [one, two] = [await scene.client(), await scene.client()];
  let attempts = 0;
  const slow = one.db.transact(
    async (tx) => {
      attempts++;
      const row = (await tx.get(Account, ids[0])) as { balance: bigint };
      if (attempts === 1) await two.db.update(Account, ids[0], { balance: 500n });
      await tx.update(Account, ids[0], { balance: row.balance + 1n });
    },
    { isolation: "snapshot" },
  );
  await scene.run(slow);
  expect(attempts).toBe(2);
  expect(scene.balance(ids[0])).toBe(501n);
  const read = one.db.transact(
    async (tx) => {
      const before = (await tx.get(Account, ids[1])) as { balance: bigint };
      await transfer(two, ids[1], ids[2], 5n);
      const after = (await tx.get(Account, ids[2])) as { balance: bigint };
      return before.balance + after.balance;
    },
    { isolation: "snapshot" },
  );
  expect(await scene.run(read)).toBe(200n);
  await scene.work(100);
  expect(script.open).toBe(0);
});

test("messages that make no sense are refused", async () => {
  const { scene } = new Script();
  const { participant } = scene.nodes[0].service;
  const from = { node: -1, connection: 1 };
  expect(() => participant.snapshots.find("nobody's", 0)).toThrow(
    expect.objectContaining({ code: "SITU_SNAPSHOT_TOO_OLD" }),
  );
  for (let i = 0; i < 64; i++)
    participant.snapshots.begin(`${i}`, from, 0, DEFAULT_MAX_SNAPSHOT_MS);
  expect(() => participant.snapshots.begin("one more", from, 0, 1)).toThrow(
    expect.objectContaining({ code: "SITU_FULL" }),
  );
  participant.snapshots.releaseAll();
  expect(participant.snapshots.open).toBe(0);
});

describe("histories with snapshots", () => {
  const SIZE = { nodes: 4, workload: "snapshots", clients: 8, transactions: 20 } as const;

  test.each(["failover", "crashes"] as const)("nodes die: %s", async (faults) => {
    for (const [seed, protocol] of [
      [1, "rpc"],
      [2, "one-sided"],
    ] as const) {
      const options = { ...SIZE, seed, faults, protocol };
      const { problems } = await simulate(options);
      expect(problems, replayCommand(options)).toEqual([]);
    }
  });

  test("a snapshot that sees what each node has installed, and not what is visible, is found", async () => {
    const Service = PLANTED["show transactions in the epoch of their installation"];
    const seen: string[] = [];
    for (let seed = 1; seed <= 24; seed++) {
      const { problems } = await simulate({
        ...SIZE,
        seed,
        nodes: 5,
        clients: 16,
        transactions: 50,
        faults: "none",
        protocol: seed % 2 === 0 ? "one-sided" : "rpc",
        node: { makeService: (options) => new Service(options) },
      });
      seen.push(...problems);
      if (problems.some((each) => /not-serializable|two states/.test(each))) return;
    }
    expect.fail(`none of the seeds has shown it; what was seen: ${seen.join("\n")}`);
  });
});
