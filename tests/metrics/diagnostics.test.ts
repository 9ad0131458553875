/** Events for tracers: one for each transaction, and none made where nobody listens. */

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import {
  type CommandEvent,
  commandChannel,
  publishCommand,
  type TransactionEvent,
  transactionChannel,
} from "../../src/runtime/diagnostics.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, sleep, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });

const endings: (() => void)[] = [];
afterEach(() => {
  for (const end of endings.splice(0)) end();
  vi.restoreAllMocks();
});

/** What is published from now on, without durations, which must be there. */
function listen<Event>(name: string): Event[] {
  const events: Event[] = [];
  const listener = (message: unknown, channel: string | symbol): void => {
    expect(channel).toBe(name);
    const { "db.client.operation.duration": seconds, ...others } = message as TransactionEvent;
    expect(seconds).toBeGreaterThanOrEqual(0);
    expect(seconds).toBeLessThan(60);
    events.push(others as Event);
  };
  subscribe(name, listener);
  endings.push(() => unsubscribe(name, listener));
  return events;
}

async function opened(path?: string): Promise<Database> {
  const db = await stores.open({ tables: [Cell], ...(path === undefined ? {} : { path }) });
  if (path === undefined) db.transactSync((tx) => tx.put(Cell, { id: 1, value: 0 }));
  return db;
}

const committed = (db: Database) => ({
  "db.system.name": "situ",
  "db.namespace": db.path,
  "db.operation.name": "transactSync",
  "situ.transaction.kind": "sync",
  "situ.transaction.isolation": "strict-serializable",
  "situ.transaction.outcome": "committed",
  "situ.transaction.attempts": 1,
});

describe("situ:transaction", () => {
  it("a commit, synchronous and asynchronous, and from a snapshot", async () => {
    const db = await opened();
    const events = listen<TransactionEvent>("situ:transaction");
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    db.transactSync((tx) => tx.get(Cell, 1), { isolation: "snapshot" });
    await db.transact((tx) => tx.get(Cell, 1));
    expect(events).toEqual([
      committed(db),
      { ...committed(db), "situ.transaction.isolation": "snapshot" },
      {
        ...committed(db),
        "db.operation.name": "transact",
        "situ.transaction.kind": "async",
      },
    ]);
  });

  it("one that was rolled back, by an error of its own and by ours", async () => {
    const db = await opened();
    const events = listen<TransactionEvent>("situ:transaction");
    const throwing = (thrown: unknown) => () => {
      throw thrown;
    };
    expect(() => db.transactSync(throwing(new RangeError("no")))).toThrow("no");
    await expect(db.transact(throwing("text"))).rejects.toBe("text");
    failureSync("SITU_EXISTS", () => db.transactSync((tx) => tx.insert(Cell, { id: 1, value: 1 })));
    const rolledBack = { ...committed(db), "situ.transaction.outcome": "rolled_back" };
    expect(events).toEqual([
      { ...rolledBack, "error.type": "RangeError" },
      {
        ...rolledBack,
        "db.operation.name": "transact",
        "situ.transaction.kind": "async",
        "error.type": "_OTHER",
      },
      {
        ...rolledBack,
        "error.type": "SITU_EXISTS",
        "db.response.status_code": "SITU_EXISTS",
      },
    ]);
  });

  it("a conflict says how often the body was run", async () => {
    const db = await opened();
    const other = await opened(db.path);
    const events = listen<TransactionEvent>("situ:transaction");
    let runs = 0;
    const meet = (times: number) => (): void => {
      if (runs++ < times) other.transactSync((tx) => tx.put(Cell, { id: 1, value: runs }));
    };
    const late = meet(2);
    db.transactSync((tx) => {
      tx.get(Cell, 1);
      late();
      tx.put(Cell, { id: 2, value: 1 });
    });
    expect(events.at(-1)).toEqual({ ...committed(db), "situ.transaction.attempts": 3 });

    runs = 0;
    const always = meet(Number.POSITIVE_INFINITY);
    await failure("SITU_CONFLICT", () =>
      db.transact(
        async (tx) => {
          await tx.get(Cell, 1);
          always();
          await tx.put(Cell, { id: 2, value: 1 });
        },
        // Enough for a first attempt on any machine.
        { timeoutMs: 300 },
      ),
    );
    // Its time may be over in the middle of a run, which then goes on beside it.
    const ended = events.findLast((event) => event["db.operation.name"] === "transact");
    expect([runs - 1, runs]).toContain(ended?.["situ.transaction.attempts"]);
    expect(ended).toEqual({
      ...committed(db),
      "db.operation.name": "transact",
      "situ.transaction.kind": "async",
      "situ.transaction.outcome": "conflict",
      "situ.transaction.attempts": expect.any(Number),
      "error.type": "SITU_CONFLICT",
      "db.response.status_code": "SITU_CONFLICT",
    });
  });

  it("a time-out", async () => {
    const db = await opened();
    const events = listen<TransactionEvent>("situ:transaction");
    await failure("SITU_TIMEOUT", () => db.transact(() => sleep(200), { timeoutMs: 10 }));
    expect(events).toEqual([
      {
        ...committed(db),
        "db.operation.name": "transact",
        "situ.transaction.kind": "async",
        "situ.transaction.outcome": "timeout",
        "error.type": "SITU_TIMEOUT",
        "db.response.status_code": "SITU_TIMEOUT",
      },
    ]);
  });

  it("a listener may use the database, and one that throws harms nobody", async () => {
    const db = await opened();
    let isInside = false;
    const listener = (): void => {
      if (isInside) return;
      isInside = true;
      db.transactSync((tx) => tx.put(Cell, { id: 9, value: 9 }));
      isInside = false;
    };
    subscribe("situ:transaction", listener);
    endings.push(() => unsubscribe("situ:transaction", listener));
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    expect(db.get(Cell, 9)?.value).toBe(9);
  });

  it("without subscribers nothing is made, published, or timed but for the sample", async () => {
    const db = await opened();
    const publish = vi.spyOn(transactionChannel, "publish");
    const now = vi.spyOn(performance, "now");
    const times = 64 * 100;
    for (let i = 0; i < times; i++) db.transactSync((tx) => tx.get(Cell, 1));
    expect(publish).not.toHaveBeenCalled();
    // Two looks for each one that is timed; their number is random, and 100 on the average.
    expect(now.mock.calls.length).toBeGreaterThan(2 * 50);
    expect(now.mock.calls.length).toBeLessThan(2 * 200);
    const error = failureSync("SITU_EXISTS", () =>
      db.transactSync((tx) => tx.insert(Cell, { id: 1, value: 1 })),
    );
    expect(error.code).toBe("SITU_EXISTS");
    await db.transact((tx) => tx.get(Cell, 1));
    expect(publish).not.toHaveBeenCalled();
  });

  it("all are timed while somebody listens, and the sample stays a sample", async () => {
    const db = await opened();
    const before = db.stats().latency.sync.count;
    const events = listen<TransactionEvent>("situ:transaction");
    for (let i = 0; i < 1_000; i++) db.transactSync((tx) => tx.get(Cell, 1));
    expect(events).toHaveLength(1_000);
    const counted = db.stats().latency.sync.count - before;
    expect(counted).toBeGreaterThan(1_000 - 128);
    expect(counted).toBeLessThan(1_000 + 128);
  });
});

describe("situ:command", () => {
  it("a command, and one that failed", () => {
    const events = listen<CommandEvent>("situ:command");
    publishCommand("/store", "get", 0.25, 7, "");
    publishCommand("/store", "incr", 0.25, 7, "WRONGTYPE");
    const get = {
      "db.system.name": "situ",
      "db.namespace": "/store",
      "db.operation.name": "GET",
      "situ.client.id": 7,
    };
    expect(events).toEqual([
      get,
      {
        ...get,
        "db.operation.name": "INCR",
        "error.type": "WRONGTYPE",
        "db.response.status_code": "WRONGTYPE",
      },
    ]);
  });

  it("without subscribers nothing is published", () => {
    const publish = vi.spyOn(commandChannel, "publish");
    publishCommand("/store", "get", 0.25, 7, "");
    expect(publish).not.toHaveBeenCalled();
  });
});
