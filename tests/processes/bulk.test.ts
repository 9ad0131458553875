/**
 * Bulk operations of several processes beside transfers of others, and kills: every snapshot sees an update of all rows
 * whole or not at all, the sum of all balances stays, and no row is lost.
 */

import { afterAll, expect, test } from "vitest";
import { count, type Database, max, min, sum } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { endAll, type Running, StoreFolder, start } from "../helpers/engine-processes.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import { ACCOUNTS, Account, BALANCE, BRANCHES, type BulkOrder, openStore } from "./bulk-store.ts";

const KILLS = 4 * SOAK;
/** Looks at the store between two kills. */
const LOOKS = 5;

afterAll(endAll);

async function filled(path: string): Promise<Database> {
  const db = await openStore(path);
  for (let first = 0; first < ACCOUNTS; first += 500) {
    db.transactSync((tx) => {
      for (let id = first; id < first + 500; id++) {
        tx.insert(Account, { id, branch: id % BRANCHES, balance: BALANCE, round: 0 });
      }
    });
  }
  return db;
}

async function begin(order: BulkOrder): Promise<Running> {
  const running = start("bulk-child", order);
  await new Promise((resolve) => running.child.stdout!.once("data", resolve));
  return running;
}

async function end(running: Running): Promise<void> {
  running.child.stdin!.end();
  const { code, stderr } = await running.ended;
  expect([code, stderr]).toEqual([0, ""]);
}

/** What holds in every state of the store. Returns the round. */
async function look(db: Database): Promise<number> {
  const seen = await db.aggregate(Account, {
    values: (a) => ({ n: count(), sum: sum(a.balance), first: min(a.round), last: max(a.round) }),
  });
  expect([seen.n, seen.sum]).toEqual([ACCOUNTS, BigInt(ACCOUNTS) * BALANCE]);
  expect(seen.first).toBe(seen.last);
  return seen.first!;
}

test(`${KILLS} kills: updates are whole, the sum stays`, { timeout: 240_000 }, async () => {
  const seed = freshSeed();
  const random = new Random(seed);
  const folder = new StoreFolder();
  const { path } = folder;
  const db = await filled(path);
  try {
    const order = (role: BulkOrder["role"]): BulkOrder => ({
      path,
      role,
      seed: random.below(2 ** 31),
    });
    const transfers = await begin(order("transfers"));
    const steady = await begin(order("bulk"));
    for (let kill = 0; kill < KILLS; kill++) {
      const victim = await begin(order("bulk"));
      for (let i = 0; i < LOOKS; i++) await look(db);
      await new Promise((resolve) => setTimeout(resolve, random.below(50)));
      victim.child.kill("SIGKILL");
      expect((await victim.ended).signal).toBe("SIGKILL");
      await look(db);
    }
    // They have got somewhere, and go on doing so.
    const before = await look(db);
    while ((await look(db)) === before) await new Promise((resolve) => setTimeout(resolve, 5));
    await end(transfers);
    await end(steady);
    await look(db);
    expect((await db.verify()).problems, `replay with SITU_SEED=${seed}`).toEqual([]);
  } finally {
    endAll();
    await db.close();
    await folder.remove();
  }
});
