/** Long asynchronous transactions against short ones of the same process: they get through. */

import { expect, test } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { i64, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { sleep, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
const ROWS = 16;
const WRITERS = 4;

async function bank(): Promise<Database> {
  const db = await stores.open({ tables: [Account] });
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) tx.put(Account, { id, balance: 0n });
  });
  return db;
}

/** Writes one row after the other until it is told to stop; how often it did. */
async function write(db: Database, signal: { stop: boolean }): Promise<number> {
  let written = 0;
  for (; !signal.stop; written++) {
    const id = written % ROWS;
    await db.transact(async (tx) => {
      const { balance } = (await tx.get(Account, id))!;
      await tx.update(Account, id, { balance: balance + 1n });
    });
    await new Promise((resolve) => setImmediate(resolve));
  }
  return written;
}

/** Reads and writes all rows, with pauses in which the others run. */
function addToAll(db: Database): Promise<void> {
  return db.transact(
    async (tx) => {
      for (let id = 0; id < ROWS; id++) {
        const { balance } = (await tx.get(Account, id))!;
        await sleep(1);
        await tx.update(Account, id, { balance: balance + 1_000_000n });
      }
    },
    { timeoutMs: 50_000 },
  );
}

async function race(long: Database, writers: readonly Database[]): Promise<void> {
  const signal = { stop: false };
  const writing = writers.map((db) => write(db, signal));
  try {
    for (let i = 0; i < 3; i++) await addToAll(long);
    expect(long.stats().counters.starved).toBeGreaterThan(0);
  } finally {
    signal.stop = true;
    await Promise.allSettled(writing);
  }
  const written = (await Promise.all(writing)).reduce((sum, each) => sum + each, 0);
  const sum = long.transactSync((tx) => {
    let total = 0n;
    for (let id = 0; id < ROWS; id++) total += tx.get(Account, id)!.balance;
    return total;
  });
  expect(sum).toBe(BigInt(3 * ROWS * 1_000_000 + written));
}

test("against transactions of the same handle", async () => {
  const db = await bank();
  await race(db, Array(WRITERS).fill(db));
});

test("against transactions of other handles", async () => {
  const db = await bank();
  const others: Database[] = [];
  for (let i = 0; i < WRITERS; i++) {
    others.push(await stores.open({ path: db.path, tables: [Account] }));
  }
  await race(db, others);
});

test("many of them, all on the same rows: each gets through", async () => {
  const db = await bank();
  await Promise.all(Array.from({ length: 6 }, () => addToAll(db)));
  for (let id = 0; id < ROWS; id++) expect(db.get(Account, id)!.balance).toBe(6_000_000n);
});

test("one that is aborted while it has priority gives it back", async () => {
  const db = await bank();
  const other = await stores.open({ path: db.path, tables: [Account] });
  const controller = new AbortController();
  const bump = (): void => {
    other.transactSync((tx) =>
      tx.update(Account, 0, { balance: tx.get(Account, 0)!.balance + 1n }),
    );
  };
  const running = db.transact(
    async (tx) => {
      const { balance } = (await tx.get(Account, 0))!;
      await sleep(12);
      if (db.stats().counters.starved === 0) bump();
      else controller.abort();
      await sleep(1);
      await tx.update(Account, 0, { balance: balance + 1_000_000n });
    },
    { signal: controller.signal, timeoutMs: 50_000 },
  );
  await expect(running).rejects.toMatchObject({ code: "SITU_ABORTED" });
  // Nobody has priority: an asynchronous transaction, which would wait for it, goes through at once.
  await other.transact((tx) => tx.update(Account, 0, { balance: 5n }), { timeoutMs: 50_000 });
  expect(db.get(Account, 0)!.balance).toBe(5n);
});
