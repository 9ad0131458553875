/** Snapshots of real clusters: sums that never waver while others write, and how snapshots end. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { type RemoteDatabase, type RemoteSnapshot, SituError } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { eventually, RealCluster, situ } from "../helpers/cluster.ts";
import { codeOf } from "../helpers/failure.ts";
import { LivingCluster } from "../helpers/living-cluster.ts";
import { Account } from "./procedures.ts";

const ACCOUNTS = 60;
const BALANCE = 1_000n;
const IDS = Array.from({ length: ACCOUNTS }, (_, id) => id);
const TOTAL = BigInt(ACCOUNTS) * BALANCE;

let cluster: { remove(): Promise<void> } | undefined;
let isOver = false;
let working: Promise<void>[] = [];

afterEach(async () => {
  isOver = true;
  await Promise.allSettled(working);
  working = [];
  isOver = false;
  await cluster?.remove();
  cluster = undefined;
});

async function fill(db: RemoteDatabase): Promise<void> {
  for (const id of IDS) await db.put(Account, { id, balance: BALANCE });
}

/** Moves money until the test is over. What conflicts, or meets a node that dies, is not done. */
async function move(db: RemoteDatabase, seed: number, called = false): Promise<void> {
  const random = new Random(seed);
  while (!isOver) {
    const from = random.below(ACCOUNTS);
    const to = (from + 1 + random.below(ACCOUNTS - 1)) % ACCOUNTS;
    try {
      if (called) await db.call("transfer", [from, to, 1n]);
      else {
        await db.transact(async (tx) => {
          const [a, b] = await tx.getMany(Account, [from, to]);
          await tx.put(Account, { id: from, balance: a!.balance - 1n });
          await tx.put(Account, { id: to, balance: b!.balance + 1n });
        });
      }
    } catch (error) {
      if (!(error instanceof SituError) && !(error instanceof RangeError)) throw error;
    }
  }
}

async function byKeys(snapshot: RemoteSnapshot): Promise<bigint[]> {
  const rows = await snapshot.getMany(Account, IDS);
  return rows.map((row) => row!.balance);
}

async function byScan(snapshot: RemoteSnapshot): Promise<bigint[]> {
  const rows = await snapshot.scan(Account).toArray();
  return rows.sort((a, b) => a.id - b.id).map(({ balance }) => balance);
}

const sum = (balances: readonly bigint[]): bigint => balances.reduce((all, each) => all + each, 0n);

describe.each(["rpc", "one-sided"] as const)("%s", (protocol) => {
  test("sums of all nodes stay the same while money moves", async () => {
    const real = await RealCluster.start({ protocol, procedures: true });
    cluster = real;
    const db = await real.client([Account]);
    await fill(db);
    working = [
      move(await real.client([Account]), 1),
      move(await real.client([Account]), 2),
      move(await real.client([Account]), 3, true),
    ];
    const states = new Set<string>();
    for (let round = 0; round < 30; round++) {
      await using snapshot = await db.snapshot();
      const first = await byKeys(snapshot);
      expect(sum(first)).toBe(TOTAL);
      expect(await byScan(snapshot)).toEqual(first);
      expect(await snapshot.count(Account)).toBe(ACCOUNTS);
      expect(await snapshot.has(Account, 0)).toBe(true);
      expect(await snapshot.get(Account, ACCOUNTS)).toBeUndefined();
      expect(await byKeys(snapshot)).toEqual(first);
      states.add(first.join());
      const read = await db.transact(
        async (tx) => sum((await tx.getMany(Account, IDS)).map((row) => row!.balance)),
        { isolation: "snapshot" },
      );
      expect(read).toBe(TOTAL);
    }
    expect(states.size).toBeGreaterThan(1);
    // As text, while money moves on: of one state, and loaded into a cluster or a store it is that one.
    const folder = mkdtempSync(join(tmpdir(), "situ-dump-"));
    try {
      const to = join(folder, "dump");
      const connection = ["--connect", real.connect.join(",")];
      const dumped = await situ(["dump", ...connection, "--to", to]);
      expect(dumped).toMatchObject({ code: 0 });
      expect(dumped.stdout).toContain(`accounts: ${ACCOUNTS} rows`);
      isOver = true;
      await Promise.all(working);
      await db.put(Account, { id: 0, balance: 0n });
      const again = ["load", "--from", to, ...connection, "--on-conflict"];
      const skipped = await situ([...again, "skip"]);
      expect(skipped).toMatchObject({ code: 0, stderr: "" });
      expect(skipped.stdout).toContain(`${ACCOUNTS} rows skipped`);
      expect((await db.get(Account, 0))?.balance).toBe(0n);
      expect(await situ([...again, "replace"])).toMatchObject({ code: 0 });
      await using snapshot = await db.snapshot();
      expect(sum(await byScan(snapshot))).toBe(TOTAL);
      expect((await situ(["dump", "--to", to])).stderr).toContain("--connect HOST:PORT");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("what was acknowledged before is there; of a row that others changed, the first wins", async () => {
    const real = await RealCluster.start({ protocol });
    cluster = real;
    const db = await real.client([Account]);
    const other = await real.client([Account]);
    await fill(db);
    for (const id of IDS) {
      await db.put(Account, { id, balance: BigInt(id) });
      await using snapshot = await other.snapshot();
      expect(await snapshot.get(Account, id)).toEqual({ id, balance: BigInt(id) });
    }
    let attempts = 0;
    await db.transact(
      async (tx) => {
        attempts++;
        const row = await tx.get(Account, 7);
        if (attempts === 1) await other.put(Account, { id: 7, balance: 70n });
        await tx.put(Account, { id: 7, balance: row!.balance + 1n });
      },
      { isolation: "snapshot" },
    );
    expect(attempts).toBe(2);
    expect((await db.get(Account, 7))?.balance).toBe(71n);
  });
});

test("one that is too old is released, and says so", async () => {
  const real = await RealCluster.start({});
  cluster = real;
  const db = await real.client([Account], { maxSnapshotMs: 2_000 });
  await fill(db);
  const snapshot = await db.snapshot();
  await eventually("it is too old", async () => {
    return (await codeOf(snapshot.get(Account, 1))) === "SITU_SNAPSHOT_TOO_OLD";
  });
  await snapshot.close();
  expect(await codeOf(snapshot.get(Account, 1))).toBe("SITU_CLOSED");
});

test("across a fail-over a snapshot goes on or is too old, and the next one is right", async () => {
  const living = await LivingCluster.start({ protocol: "rpc" });
  cluster = living;
  const db = await living.client([Account], { timeoutMs: 30_000 });
  await fill(db);
  working = [move(await living.client([Account], { timeoutMs: 30_000 }), 4)];
  const snapshot = await db.snapshot();
  const before = await byKeys(snapshot);
  expect(sum(before)).toBe(TOTAL);
  const dead = (await living.configuration()).manager === 0 ? 1 : 0;
  living.nodes[dead].signal("SIGKILL");
  await eventually("the cluster goes on", async () => !(await living.members()).includes(dead));
  const after = await byKeys(snapshot).catch((error: unknown) => (error as SituError).code);
  if (typeof after === "string") expect(after).toBe("SITU_SNAPSHOT_TOO_OLD");
  else expect(after).toEqual(before);
  await snapshot.close();
  // While copies are made for the dead node, the configuration goes on changing.
  for (let whole = 0; whole < 5; ) {
    await using next = await db.snapshot();
    const found = await byScan(next).catch((error: unknown) => (error as SituError).code);
    if (typeof found === "string") {
      expect(found).toBe("SITU_SNAPSHOT_TOO_OLD");
      continue;
    }
    expect(sum(found)).toBe(TOTAL);
    whole++;
  }
});
