/**
 * While a process is stopped in the middle of a commit, those that await `transact` in another one
 * wait for it, but its timers and its other transactions do not.
 */

import { setMaxListeners } from "node:events";
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

/** For those that should come to their deadline. */
const TIMEOUT_MS = 1_000;
/** For those that should not, however slow the machine is. */
const PATIENT_MS = 60_000;
/** So often a timer fires while others wait; where a wait held the loop, it would come to its deadline first. */
const TURNS = 100;

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

/** One whose signal many transactions listen to. */
function abortsMany(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** Starts work that waits, and aborts it when a timer has fired TURNS times meanwhile: it waited until then. */
async function expectTurns(work: (options: TransactOptions) => Promise<unknown>[]): Promise<void> {
  const controller = abortsMany();
  let fired = 0;
  const timer = setInterval(() => {
    if (++fired === TURNS) controller.abort();
  }, 1);
  try {
    const waiting = work({ signal: controller.signal, timeoutMs: PATIENT_MS });
    for (const error of await Promise.all(waiting.map(rejection))) {
      expect(error).toMatchObject({ code: "SITU_ABORTED" });
    }
    expect(fired).toBeGreaterThanOrEqual(TURNS);
  } finally {
    clearInterval(timer);
  }
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
      const all = (limits: TransactOptions): Promise<unknown>[] =>
        bodies.map(([, body, options]) => db.transact(body, { ...options, ...limits }));
      await expectTurns(all);
      const errors = await Promise.all(all({ timeoutMs: TIMEOUT_MS }).map(rejection));
      for (const [index, error] of errors.entries()) expectNamed(error, stopped, bodies[index][0]);
    });
  });

  test("others that do not meet its locks go on, however many wait for it", async () => {
    // Without a log, which would have to wait for the end of the commit: see the next test.
    const goOn = async (db: Database): Promise<void> => {
      let pointer: Pointer | undefined;
      await db.transact(async (tx) => {
        pointer = await tx.alloc(8);
      });
      const controller = abortsMany();
      const limits = { signal: controller.signal, timeoutMs: PATIENT_MS };
      const waiting = Array.from({ length: 200 }, () =>
        rejection(db.transact((tx) => tx.get(Account, 1), limits)),
      );
      for (let commits = 0; commits < 200; commits++) {
        await db.transact((tx) => tx.write(pointer!, Uint8Array.of(commits)));
      }
      controller.abort();
      // None of them had come to its deadline meanwhile.
      for (const error of await Promise.all(waiting)) {
        expect(error).toMatchObject({ code: "SITU_ABORTED" });
      }
    };
    await withStopped("all locks", goOn, { durability: "none" });
  });

  test("with a log that waits for its commit, others wait too, while the loop turns, and say for whom", async () => {
    await withStopped("all locks", async (db, stopped) => {
      const pointers: Pointer[] = [];
      const write = (limits: TransactOptions): Promise<unknown> =>
        db.transact(async (tx) => pointers.push(await tx.alloc(8)), limits);
      let error: unknown;
      while (error === undefined) error = await rejection(write({ timeoutMs: TIMEOUT_MS }));
      expectNamed(error, stopped);
      // The log may have had room for a few more.
      const keepWriting = async (limits: TransactOptions): Promise<never> => {
        for (;;) await write(limits);
      };
      await expectTurns((limits) => [keepWriting(limits)]);
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
