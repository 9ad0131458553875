/**
 * While a process is stopped in the middle of a commit, those that await `transact` in another one
 * wait for it, but its timers and its other transactions do not.
 */

import { afterAll, describe, expect, test } from "vitest";
import {
  type AsyncTransaction,
  type Database,
  open,
  type Pointer,
  TimeoutError,
  type TransactOptions,
} from "../../src/index.ts";
import { endAll, type Running, stateOf } from "../helpers/engine-processes.ts";
import { Account, FIXED, Note } from "./crash-store.ts";
import { withStopped } from "./stopped-store.ts";

const TIMEOUT_MS = 3_000;
/** What one turn may take on a machine that is busy: a wait that holds the loop takes TIMEOUT_MS. */
const LONGEST_TURN_MS = TIMEOUT_MS / 2;

type Body = (tx: AsyncTransaction) => Promise<unknown>;

const bodies: readonly [string, Body, TransactOptions?][] = [
  ["a read", (tx) => tx.get(Account, 1)],
  ["a read of many", (tx) => tx.getMany(Account, FIXED)],
  ["a write", (tx) => tx.put(Account, { id: 1, owner: "somebody", balance: 1n })],
  [
    "a write that is not awaited",
    async (tx) => {
      void tx.put(Account, { id: 2, owner: "somebody", balance: 1n });
    },
  ],
  ["a scan", (tx) => tx.scan(Account).toArray()],
  ["a count", (tx) => tx.count(Account)],
  ["a snapshot", (tx) => tx.get(Account, 1), { isolation: "snapshot" }],
  ["a scan of a snapshot", (tx) => tx.scan(Note).toArray(), { isolation: "snapshot" }],
];

/** How often a timer fires while `work` runs, and the longest time between two turns of the loop. */
async function watched(work: () => Promise<void>): Promise<{ fired: number; longestMs: number }> {
  let fired = 0;
  let longestMs = 0;
  let lastMs = performance.now();
  const look = (): void => {
    const now = performance.now();
    longestMs = Math.max(longestMs, now - lastMs);
    lastMs = now;
  };
  const timer = setInterval(() => {
    fired++;
    look();
  }, 5);
  try {
    await work();
  } finally {
    look();
    clearInterval(timer);
  }
  return { fired, longestMs };
}

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return undefined;
}

function expectNamed(error: unknown, stopped: Running, what = "the wait"): void {
  expect(error, what).toBeInstanceOf(TimeoutError);
  expect((error as TimeoutError).holder?.pid).toBe(stopped.pid);
  expect((error as TimeoutError).message).toContain(String(stopped.pid));
}

describe("the event loop, beside a process that is stopped in a commit", () => {
  afterAll(endAll);

  test("turns until the deadline, which names the process", async () => {
    await withStopped("all locks", async (db, stopped) => {
      let errors: unknown[] = [];
      const { fired, longestMs } = await watched(async () => {
        errors = await Promise.all(
          bodies.map(([, body, options]) =>
            rejection(db.transact(body, { ...options, timeoutMs: TIMEOUT_MS })),
          ),
        );
      });
      for (const [index, error] of errors.entries()) expectNamed(error, stopped, bodies[index][0]);
      expect(fired).toBeGreaterThan(20);
      expect(longestMs).toBeLessThan(LONGEST_TURN_MS);
    });
  });

  test("others that do not meet its locks go on, however many wait for it", async () => {
    // Without a log, which would have to wait for the end of the commit: see the next test.
    const goOn = async (db: Database, stopped: Running): Promise<void> => {
      let pointer: Pointer | undefined;
      await db.transact(async (tx) => {
        pointer = await tx.alloc(8);
      });
      const waiting = Array.from({ length: 200 }, () =>
        rejection(db.transact((tx) => tx.get(Account, 1), { timeoutMs: TIMEOUT_MS })),
      );
      let commits = 0;
      let isOver = false;
      const all = Promise.all(waiting).then((errors) => {
        isOver = true;
        return errors;
      });
      while (!isOver) {
        await db.transact((tx) => tx.write(pointer!, Uint8Array.of(commits & 0xff)));
        commits++;
      }
      for (const error of await all) expectNamed(error, stopped);
      expect(commits).toBeGreaterThan(100);
    };
    await withStopped("all locks", goOn, { durability: "none" });
  });

  test("with a log that waits for its commit, others wait too, while the loop turns, and say for whom", async () => {
    await withStopped("all locks", async (db, stopped) => {
      const pointers: Pointer[] = [];
      let error: unknown;
      const { fired, longestMs } = await watched(async () => {
        while (error === undefined) {
          error = await rejection(
            db.transact(async (tx) => pointers.push(await tx.alloc(8)), { timeoutMs: TIMEOUT_MS }),
          );
        }
      });
      expectNamed(error, stopped);
      expect(fired).toBeGreaterThan(20);
      expect(longestMs).toBeLessThan(LONGEST_TURN_MS);
      stopped.child.kill("SIGCONT");
      const { code, stderr } = await stopped.ended;
      expect([code, stderr]).toEqual([0, ""]);
      await db.transact(async (tx) => pointers.push(await tx.alloc(8)));
    });
  });

  test("when it goes on, what waited for it commits; the body is not run over and over", async () => {
    await withStopped("all locks", async (db, stopped) => {
      let runs = 0;
      const waiting = Promise.all(
        bodies.map(([, body, options]) =>
          db.transact(
            (tx) => {
              runs++;
              return body(tx);
            },
            { ...options, timeoutMs: 50_000 },
          ),
        ),
      );
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(runs).toBeLessThanOrEqual(bodies.length);
      stopped.child.kill("SIGCONT");
      await waiting;
      const { code, stderr } = await stopped.ended;
      expect([code, stderr]).toEqual([0, ""]);
      expect(db.get(Account, 1)?.owner).toBe("somebody");
    });
  });

  test("when it is killed, what waited for it recovers its slot and commits", async () => {
    await withStopped("all locks", async (db, stopped) => {
      const waiting = bodies.map(([, body, options]) =>
        db.transact(body, { ...options, timeoutMs: 50_000 }),
      );
      await new Promise((resolve) => setTimeout(resolve, 200));
      stopped.child.kill("SIGKILL");
      await Promise.all(waiting);
      expect(db.get(Account, 2)?.owner).toBe("somebody");
    });
  });

  test("an abort ends the wait", async () => {
    await withStopped("all locks", async (db) => {
      for (const isolation of ["strict-serializable", "snapshot"] as const) {
        const controller = new AbortController();
        const { signal } = controller;
        const waiting = rejection(
          db.transact((tx) => tx.get(Account, 1), { signal, isolation, timeoutMs: 50_000 }),
        );
        setTimeout(() => controller.abort(), 50);
        expect(await waiting).toMatchObject({ code: "SITU_ABORTED" });
      }
    });
  });

  test("calls that hold the loop wait for 500 ms, unless they are told otherwise", async () => {
    await withStopped("all locks", async (patient, stopped) => {
      const db = await open({ path: patient.path, tables: [Account, Note] });
      try {
        const calls: ((db: Database) => unknown)[] = [
          () => db.get(Account, 1),
          () => db.snapshot(),
          () => db.scan(Account).toArray(),
          () => db.count(Account),
          () => db.transactSync((tx) => tx.get(Account, 1)),
          () => db.transactSync((tx) => tx.get(Account, 1), { isolation: "snapshot" }),
        ];
        for (const call of calls) {
          const error = await rejection((async () => call(db))());
          expectNamed(error, stopped);
          expect((error as Error).message).toContain("after 500 ms");
        }
        const told = await rejection(
          (async () => db.transactSync((tx) => tx.get(Account, 1), { timeoutMs: 70 }))(),
        );
        expect((told as Error).message).toContain("after 70 ms");
        expect(stateOf(stopped.pid)).toBe("T");
      } finally {
        await db.close();
      }
    });
  });
});
