/** docs/FAULTS.md, "One machine": a worker thread that is terminated counts as dead, in both sharing modes. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, test } from "vitest";
import { type Database, open } from "../../src/index.ts";
import { Random } from "../../src/runtime/random.ts";
import { StoreFolder, scriptPath } from "../helpers/engine-processes.ts";
import { freshSeed, SOAK } from "../helpers/seed.ts";
import { Account } from "./crash-store.ts";
import type { ThreadOrder } from "./thread-worker.ts";

const ACCOUNTS = 12;
const TOTAL = 12_000n;

function sum(db: Database): bigint {
  return db.transactSync((tx) => {
    let total = 0n;
    for (let id = 1; id <= ACCOUNTS; id++) total += tx.get(Account, id)!.balance;
    return total;
  });
}

/** Every account is written, so every lock that was left would be met. */
function touchAll(db: Database): void {
  db.transactSync((tx) => {
    for (let id = 1; id <= ACCOUNTS; id++) {
      tx.update(Account, id, { balance: tx.get(Account, id)!.balance });
    }
  });
}

describe.each(["processes", "threads"] as const)("worker threads, sharing: %s", (sharing) => {
  async function withStore(work: (db: Database, path: string) => Promise<void>): Promise<void> {
    const folder = new StoreFolder();
    let db: Database | undefined;
    try {
      const { path } = folder;
      const memoryBytes = 16 * 2 ** 20;
      db = await open({ path, sharing, tables: [Account], memoryBytes, timeoutMs: 60_000 });
      db.transactSync((tx) => {
        for (let id = 1; id <= ACCOUNTS; id++) {
          tx.insert(Account, { id, owner: `owner ${id}`, balance: 1_000n });
        }
      });
      await work(db, path);
    } finally {
      await db?.close();
      await folder.remove();
    }
  }

  async function begin(order: ThreadOrder): Promise<Worker> {
    const worker = new Worker(scriptPath("thread-worker"), { workerData: order });
    worker.on("error", (error) => {
      throw error;
    });
    await once(worker, "message");
    return worker;
  }

  test("terminated in the middle of their commits, many times", async () => {
    const seed = freshSeed();
    const random = new Random(seed);
    await withStore(async (db, path) => {
      for (let round = 0; round < 8; round++) {
        const orders = [0, 1].map(
          (): ThreadOrder => ({
            path,
            sharing,
            seed: 1 + random.below(2 ** 30),
            accounts: ACCOUNTS,
            exitAtStep: 0,
          }),
        );
        const workers = await Promise.all(orders.map(begin));
        await new Promise((resolve) => setTimeout(resolve, random.below(25)));
        await Promise.all(workers.map((worker) => worker.terminate()));
        touchAll(db);
        expect(sum(db), `seed ${seed}, round ${round}`).toBe(TOTAL);
      }
      expect(db.stats().counters.commits, "the workers did work").toBeGreaterThan(100);
    });
  });

  test("a thread that ends at a given step of its commits", async () => {
    await withStore(async (db, path) => {
      let recovered = 0;
      // Odd steps among processes, even ones among threads; with SITU_SOAK all in both.
      const by = SOAK > 1 ? 1 : 2;
      for (let step = sharing === "processes" ? 1 : by; step <= 16; step += by) {
        const before = db.stats().counters.recoveries;
        const worker = new Worker(scriptPath("thread-worker"), {
          workerData: {
            path,
            sharing,
            seed: step,
            accounts: ACCOUNTS,
            exitAtStep: 200 + step,
          } satisfies ThreadOrder,
        });
        await once(worker, "exit");
        touchAll(db);
        expect(sum(db), `step ${step}`).toBe(TOTAL);
        recovered += db.stats().counters.recoveries - before;
      }
      // Some of these ends were inside of a commit: the next one to touch the rows found out.
      expect(recovered).toBeGreaterThan(0);
    });
  });

  test("a dead thread is off the list of executors after the next sweep", async () => {
    await withStore(async (db, path) => {
      const worker = await begin({ path, sharing, seed: 5, accounts: ACCOUNTS, exitAtStep: 0 });
      expect(db.stats().executors.map(({ threadId }) => threadId)).toContain(worker.threadId);
      await worker.terminate();
      const deadline = performance.now() + 240_000;
      while (db.stats().executors.length > 1 && performance.now() < deadline) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      expect(db.stats().executors).toHaveLength(1);
      expect(sum(db)).toBe(TOTAL);
    });
  });

  test("slots of the dead are used again: more threads than there are slots", async () => {
    // 32 slots in the threads-only mode; nobody sweeps but those who come.
    await withStore(async (db, path) => {
      for (let life = 0; life < 36; life += 4) {
        const lives = [0, 1, 2, 3].map(
          (i) =>
            new Worker(scriptPath("thread-worker"), {
              workerData: {
                path,
                sharing,
                seed: life + i + 1,
                accounts: ACCOUNTS,
                exitAtStep: 50 + life + i,
              } satisfies ThreadOrder,
            }),
        );
        await Promise.all(lives.map((worker) => once(worker, "exit")));
      }
      touchAll(db);
      expect(sum(db)).toBe(TOTAL);
    });
  });
});
