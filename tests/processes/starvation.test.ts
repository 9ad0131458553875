/** docs/FAULTS.md, "One machine": a long transaction against many short ones gets through. */

import { afterAll, describe, expect, test } from "vitest";
import type { Database } from "../../src/index.ts";
import {
  endAll,
  type Running,
  StoreFolder,
  start,
  stateOf,
  until,
} from "../helpers/engine-processes.ts";
import {
  Account,
  openStore,
  type StarvationOrder,
  type StarvationReport,
} from "./starvation-store.ts";

const ROWS = 10_000;
const TIMEOUT_MS = 60_000;

afterAll(endAll);

async function withStore(rows: number, work: (db: Database, path: string) => Promise<void>) {
  const folder = new StoreFolder();
  let db: Database | undefined;
  try {
    db = await openStore(folder.path);
    for (let first = 0; first < rows; first += 500) {
      db.transactSync((tx) => {
        for (let id = first; id < Math.min(first + 500, rows); id++) {
          tx.insert(Account, { id, balance: 0n });
        }
      });
    }
    await work(db, folder.path);
  } finally {
    endAll();
    await db?.close();
    await folder.remove();
  }
}

async function startWriter(path: string, rows: number): Promise<Running> {
  const order: StarvationOrder = { path, role: "writer", rows, signal: "SIGKILL" };
  const writer = start("starvation-child", order);
  await new Promise((resolve) => writer.child.stdout!.once("data", resolve));
  return writer;
}

/** Ends it; how much it has committed. */
async function finish(writer: Running): Promise<number> {
  writer.child.stdin!.end();
  const { code, stdout, stderr } = await writer.ended;
  expect([code, stderr]).toEqual([0, ""]);
  return (JSON.parse(stdout.trim().split("\n").at(-1)!) as StarvationReport).committed;
}

test("a transaction over 10,000 rows commits against processes that write single rows", async () => {
  await withStore(ROWS, async (db, path) => {
    const writers = await Promise.all([startWriter(path, ROWS), startWriter(path, ROWS)]);
    for (let i = 0; i < 3; i++) {
      db.transactSync(
        (tx) => {
          for (let id = 0; id < ROWS; id++) {
            tx.update(Account, id, { balance: tx.get(Account, id)!.balance + 1n });
          }
        },
        { timeoutMs: TIMEOUT_MS },
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    const readTwice = db.transactSync(
      (tx) => {
        const sums = [0n, 0n];
        for (let id = 0; id < 2 * ROWS; id++) {
          sums[id < ROWS ? 0 : 1] += tx.get(Account, id % ROWS)!.balance;
        }
        return sums;
      },
      { timeoutMs: TIMEOUT_MS },
    );
    expect(readTwice[0]).toBe(readTwice[1]);
    const written = await Promise.all(writers.map(finish));
    // The writers were slowed down, not stopped.
    for (const each of written) expect(each).toBeGreaterThan(0);
    let sum = 0n;
    for (let id = 0; id < ROWS; id++) sum += db.get(Account, id)!.balance;
    expect(sum).toBe(BigInt(3 * ROWS + written[0] + written[1]));
  });
});

describe("one that has the turn", () => {
  const bump = (db: Database): void => {
    db.transactSync((tx) => tx.update(Account, 0, { balance: tx.get(Account, 0)!.balance + 1n }), {
      timeoutMs: TIMEOUT_MS,
    });
  };

  /** Keeps row 0 changing until the child has done to itself what it was told. */
  async function starve(db: Database, path: string, order: Partial<StarvationOrder>, end: string) {
    const child = start("starvation-child", { path, role: "holder", rows: 2, ...order });
    let bumps = 0;
    await until(
      `the holder's state is ${end}`,
      () => {
        for (const untilMs = performance.now() + 10; performance.now() < untilMs; bumps++) bump(db);
        return stateOf(child.pid) === end;
      },
      TIMEOUT_MS,
    );
    return { child, bumps };
  }

  test("and is stopped: others wait for a while only; it goes on when it is continued", async () => {
    await withStore(2, async (db, path) => {
      const { child, bumps } = await starve(db, path, { signal: "SIGSTOP" }, "T");
      for (let i = 0; i < 100; i++) bump(db);
      expect(stateOf(child.pid)).toBe("T");
      child.child.kill("SIGCONT");
      const committed = await finish(child);
      expect(db.get(Account, 0)!.balance).toBe(BigInt(bumps + 100));
      expect(db.get(Account, 1)!.balance).toBe(BigInt(committed));
    });
  });

  test("and is killed: others go on", async () => {
    await withStore(2, async (db, path) => {
      const { child, bumps } = await starve(db, path, { signal: "SIGKILL" }, "");
      for (let i = 0; i < 100; i++) bump(db);
      expect((await child.ended).signal).toBe("SIGKILL");
      expect(db.get(Account, 0)!.balance).toBe(BigInt(bumps + 100));
    });
  });
});
