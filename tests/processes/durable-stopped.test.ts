/**
 * docs/FAULTS.md: a process that is stopped is not dead. Where it is the one that writes the log, or one in the
 * middle of a commit that the log must wait for, others go on in memory, and are told who it is
 * when they wait for the disk; when it goes on, everything does.
 */

import { afterEach, beforeEach, expect, test } from "vitest";
import {
  bytes,
  type Database,
  open,
  SituError,
  type TimeoutError,
  table,
  u32,
} from "../../src/index.ts";
import { MAX_LAG_MS } from "../../src/runtime/limits.ts";
import { endAll, type Running, StoreFolder, stateOf, until } from "../helpers/engine-processes.ts";
import { Talker } from "../helpers/process-group.ts";
import { Account, fillStore, openStore, TOTAL } from "./crash-store.ts";
import { fillDurable, Ledger, openDurable } from "./durable-store.ts";
import { loseMemory } from "./durable-storm.ts";
import { startStopped } from "./stopped-store.ts";

/** On a machine at rest it is milliseconds. */
const RESUMED_MS = 240_000;

let folder: StoreFolder;
beforeEach(() => {
  folder = new StoreFolder();
});
afterEach(async () => {
  endAll();
  await folder.remove();
});

function thrownBy(work: () => unknown): SituError {
  try {
    work();
  } catch (error) {
    if (error instanceof SituError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

async function thrownByAsync(work: () => Promise<unknown>): Promise<SituError> {
  let error: unknown;
  try {
    await work();
  } catch (thrown) {
    error = thrown;
  }
  if (error instanceof SituError) return error;
  throw error ?? new Error("nothing was thrown");
}

async function stop({ pid }: Running): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until("it has stopped", () => stateOf(pid) === "T");
}

const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });

/** A process that has the store open and writes its log, and a database here, in the same store. */
async function withHost(): Promise<{ host: Running; db: Database }> {
  const { path } = folder;
  const first = await openDurable(path, { durability: "lazy" });
  fillDurable(first);
  await first.close();
  const talker = new Talker("durable-host-child", { path });
  await talker.hear("ready");
  const db = await open({ path, tables: [Ledger, Blob], timeoutMs: 2_000, lagMs: MAX_LAG_MS });
  expect(db.stats().durability.writer?.pid).toBe(talker.running.pid);
  return { host: talker.running, db };
}

const row = (id: number) => ({ id, from: 0, to: 1, amount: 0n });

test("the writer of the log is stopped: who waits for it fails with its name, and gets to disk when it goes on", async () => {
  const { host, db } = await withHost();
  try {
    await stop(host);
    const late = { durability: "sync", timeoutMs: 150 } as const;
    const refused = await thrownByAsync(() => db.transact((tx) => tx.insert(Ledger, row(2)), late));
    expect(refused.code).toBe("SITU_NOT_DURABLE");
    expect(refused.message).toContain(`process ${host.pid} `);
    expect(refused.message).toMatch(/is it stopped/);
    await expect(db.durable({ timeoutMs: 150 })).rejects.toMatchObject({
      code: "SITU_NOT_DURABLE",
    });
    // One that waits with its thread and is alone writes the log itself; unless the writer was stopped in a round.
    try {
      db.transactSync((tx) => tx.insert(Ledger, row(1)), late);
    } catch (error) {
      expect((error as SituError).code).toBe("SITU_NOT_DURABLE");
      expect((error as SituError).message).toMatch(/is it stopped/);
    }
    // Nobody takes a living process's place, and all else goes on.
    expect(stateOf(host.pid)).toBe("T");
    expect(db.stats().durability.writer?.pid).toBe(host.pid);
    db.transactSync((tx) => tx.insert(Ledger, row(3)));
    expect(db.transactSync((tx) => tx.count(Ledger))).toBe(3);
    expect(db.get(Ledger, 1)).toEqual(row(1));

    process.kill(host.pid, "SIGCONT");
    await db.durable({ timeoutMs: RESUMED_MS });
    db.transactSync((tx) => tx.insert(Ledger, row(4)), {
      durability: "sync",
      timeoutMs: RESUMED_MS,
    });
    expect(db.stats().durability.writer?.pid).toBe(host.pid);
  } finally {
    host.child.kill("SIGKILL");
    await host.ended;
    await db.close();
  }
  loseMemory(folder.path);
  const again = await openDurable(folder.path);
  const count = again.count(Ledger);
  await again.close();
  expect(count).toBe(4);
});

test("the writer of the log is stopped, and the journal gets full: writers wait, and nothing is overwritten", async () => {
  const { host, db } = await withHost();
  const data = (id: number): Uint8Array => new Uint8Array(200_000).fill(id + 1);
  let rows = 0;
  try {
    await stop(host);
    let error: SituError | undefined;
    while (error === undefined && rows < 100) {
      try {
        db.transactSync((tx) => tx.put(Blob, { id: rows, data: data(rows) }), { timeoutMs: 150 });
        rows++;
      } catch (thrown) {
        error = thrown as SituError;
      }
    }
    expect(error).toMatchObject({ code: "SITU_TIMEOUT", retryable: true });
    expect(error?.message).toMatch(/nothing was committed: the log is behind/);
    expect((error as TimeoutError).holder?.pid).toBe(host.pid);
    expect(rows).toBeGreaterThan(10);
    expect(db.count(Blob)).toBe(rows);
    await expect(
      db.transact((tx) => tx.put(Blob, { id: rows, data: data(rows) }), { timeoutMs: 150 }),
    ).rejects.toMatchObject({ code: "SITU_TIMEOUT" });

    // One who waits gets through as soon as there is room.
    const waiting = db.transact((tx) => tx.put(Blob, { id: rows, data: data(rows) }), {
      timeoutMs: RESUMED_MS,
    });
    process.kill(host.pid, "SIGCONT");
    await waiting;
    rows++;
    for (let n = 0; n < 30; n++, rows++) {
      db.transactSync((tx) => tx.put(Blob, { id: rows, data: data(rows) }), {
        timeoutMs: RESUMED_MS,
      });
    }
  } finally {
    host.child.kill("SIGKILL");
    await host.ended;
    await db.close();
  }
  loseMemory(folder.path);
  const again = await open({ path: folder.path, tables: [Blob] });
  try {
    expect(again.count(Blob)).toBe(rows);
    for (const { id, data: found } of again.scan(Blob)) {
      expect(Buffer.compare(found, data(id)), `blob ${id}`).toBe(0);
    }
  } finally {
    await again.close();
  }
});

test("the writer of the log is stopped for good: once it is dead, another takes over", async () => {
  const { host, db } = await withHost();
  try {
    await stop(host);
    const error = thrownBy(() =>
      db.transactSync((tx) => tx.insert(Ledger, row(1)), { durability: "sync", timeoutMs: 100 }),
    );
    expect(error.code).toBe("SITU_NOT_DURABLE");
    host.child.kill("SIGKILL");
    await host.ended;
    await db.durable({ timeoutMs: RESUMED_MS });
    expect(db.stats().durability.writer?.pid).toBe(process.pid);
  } finally {
    await db.close();
  }
});

test("a process is stopped in the middle of its commit: who waits for the disk is told who it is", async () => {
  const { path } = folder;
  const db = await openStore(path);
  try {
    fillStore(db);
    await db.durable();
    // Committed, and not yet the log's.
    const stopped = await startStopped(path, "installing");

    // Rows of its own; the log must wait for the stopped one's epoch all the same.
    const error = thrownBy(() =>
      db.transactSync((tx) => tx.insert(Account, { id: 77_000, owner: "other", balance: 0n }), {
        durability: "sync",
        timeoutMs: 2_500,
      }),
    );
    // Refused if the log was late by then; else committed, and not known to be on disk.
    expect(["SITU_NOT_DURABLE", "SITU_TIMEOUT"]).toContain(error.code);
    expect(error.message).toContain(`process ${stopped.pid} `);

    stopped.child.kill("SIGCONT");
    const { code, stderr } = await stopped.ended;
    expect([code, stderr]).toEqual([0, ""]);
    // Not before: a row that hashes to a bucket which the stopped one has locked cannot be read.
    expect(db.get(Account, 77_000) !== undefined).toBe(error.code === "SITU_NOT_DURABLE");
    await db.durable({ timeoutMs: RESUMED_MS });
  } finally {
    endAll();
    await db.close();
  }
  loseMemory(path);
  const again = await openStore(path);
  const sum = again.transactSync((tx) =>
    [...tx.scan(Account)].reduce((total, { balance }) => total + balance, 0n),
  );
  await again.close();
  expect(sum).toBe(TOTAL);
});
