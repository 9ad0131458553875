/**
 * docs/FAULTS.md, "One machine": a process that is stopped is not dead. Others wait for it, up to their
 * deadline, then get an error that names it; when it goes on, everything goes on.
 */

import { afterAll, describe, expect, test } from "vitest";
import { TimeoutError, type Transaction } from "../../src/index.ts";
import { endAll, StoreFolder, stateOf } from "../helpers/engine-processes.ts";
import {
  Account,
  describeStore,
  expectedStore,
  FIXED,
  fillStore,
  Note,
  openStore,
  playRound,
  ROUND,
} from "./crash-store.ts";
import { withStopped } from "./stopped-store.ts";

/** What a deadline may be late by on a busy machine, before a test calls it missed. */
const SLACK_MS = 60_000;

/** Reads or writes all that a round changes. What is installed already could be read alone. */
function touchAll(tx: Transaction): void {
  for (const id of FIXED) tx.update(Account, id, { balance: tx.get(Account, id)!.balance });
  for (const id of [ROUND + 1, ROUND + 2]) {
    tx.get(Account, id);
    tx.get(Note, id);
  }
}

function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("a stopped owner of locks", () => {
  afterAll(endAll);

  test.each([
    ["with some locks taken", "some locks"],
    ["with all locks taken", "all locks"],
    ["in the middle of installing", "installing"],
  ] as const)("%s: waited for, then an error that names it; then all goes on", async (_, where) => {
    await withStopped(where, async (db, stopped) => {
      for (const timeoutMs of [150, 400]) {
        const begun = performance.now();
        const error = thrownBy(() => db.transactSync(touchAll, { timeoutMs }));
        const tookMs = performance.now() - begun;
        expect(error).toBeInstanceOf(TimeoutError);
        const timeout = error as TimeoutError;
        expect(timeout.code).toBe("SITU_TIMEOUT");
        expect(timeout.retryable).toBe(true);
        expect(timeout.holder?.pid).toBe(stopped.pid);
        expect(timeout.message).toContain(String(stopped.pid));
        expect(tookMs).toBeGreaterThanOrEqual(timeoutMs * 0.9);
        expect(tookMs, `timeoutMs ${timeoutMs}`).toBeLessThan(timeoutMs + SLACK_MS);
      }
      expect(stateOf(stopped.pid), "nobody took it for dead").toBe("T");
      expect(db.stats().executors.map(({ pid }) => pid)).toContain(stopped.pid);

      stopped.child.kill("SIGCONT");
      const { code, stderr } = await stopped.ended;
      expect([code, stderr]).toEqual([0, ""]);
      expect(describeStore(db, 2)).toBe(expectedStore(2, 2));
      db.transactSync((tx) => playRound(tx, 3));
      expect(describeStore(db, 3)).toBe(expectedStore(3, 3));
    });
  });

  test("an asynchronous transaction ends at its deadline too, and says who", async () => {
    await withStopped("all locks", async (db, stopped) => {
      const begun = performance.now();
      const error = await db
        .transact(
          async (tx) => {
            const row = await tx.get(Account, 1);
            await tx.update(Account, 1, { balance: row!.balance });
          },
          { timeoutMs: 300 },
        )
        .then(
          () => undefined,
          (reason: unknown) => reason,
        );
      expect(error).toBeInstanceOf(TimeoutError);
      expect((error as TimeoutError).holder?.pid).toBe(stopped.pid);
      expect(performance.now() - begun).toBeLessThan(300 + SLACK_MS);
    });
  });

  test("the deadline of a store holds for db.get", async () => {
    await withStopped("all locks", async (db, stopped) => {
      const impatient = await openStore(db.path, 250);
      try {
        const begun = performance.now();
        const error = thrownBy(() => impatient.get(Account, 1));
        expect(error).toBeInstanceOf(TimeoutError);
        expect((error as TimeoutError).holder?.pid).toBe(stopped.pid);
        expect(performance.now() - begun).toBeLessThan(250 + SLACK_MS);
      } finally {
        await impatient.close();
      }
    });
  });

  test("stopped, then killed: recovered like any dead one", async () => {
    await withStopped("all locks", async (db, stopped) => {
      const error = thrownBy(() => db.transactSync(touchAll, { timeoutMs: 50 }));
      expect(error).toBeInstanceOf(TimeoutError);
      stopped.child.kill("SIGKILL");
      await stopped.ended;
      const seen = describeStore(db, 2);
      expect([expectedStore(1, 2), expectedStore(2, 2)]).toContain(seen);
      const next = seen === expectedStore(2, 2) ? 3 : 2;
      db.transactSync((tx) => playRound(tx, next));
      expect(describeStore(db, next)).toBe(expectedStore(next, next));
    });
  });

  test("an event loop that stalls for 500 ms is nothing but latency", async () => {
    const folder = new StoreFolder();
    const db = await openStore(folder.path);
    try {
      fillStore(db);
      const other = await openStore(folder.path);
      try {
        // An asynchronous transaction is under way while nothing of this thread can run.
        const slow = db.transact(async (tx) => {
          const row = await tx.get(Account, 1);
          await new Promise((resolve) => setTimeout(resolve, 1));
          await tx.update(Account, 1, { balance: row!.balance - 5n });
          const two = await tx.get(Account, 2);
          await tx.update(Account, 2, { balance: two!.balance + 5n });
        });
        await new Promise((resolve) => setImmediate(resolve));
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
        // Nothing is locked by a transaction that has not come to its commit: nobody waits for it.
        const waits = other.stats().counters.lockWaits;
        other.transactSync((tx) => playRound(tx, 1), { timeoutMs: SLACK_MS });
        expect(other.stats().counters.lockWaits).toBe(waits);
        await slow;
        const sum = other.transactSync((tx) =>
          [1, 2].reduce((total, id) => total + tx.get(Account, id)!.balance, 0n),
        );
        expect(sum).toBe(2_000n - 30n + 10n);
        expect(other.get(Account, 1)?.balance).toBe(965n);
      } finally {
        await other.close();
      }
    } finally {
      await db.close();
      await folder.remove();
    }
  });
});
