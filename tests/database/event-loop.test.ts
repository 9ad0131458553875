/** Asynchronous transactions let the event loop turn, however many there are and however long they take. */

import { afterEach, describe, expect, it } from "vitest";
import {
  count,
  type Database,
  type InferRow,
  i64,
  type RowExpressions,
  sum,
  table,
  u32,
} from "../../src/index.ts";
import { TemporaryStores } from "../helpers/store.ts";

const Rows = table("rows", { id: u32(), value: i64() }, { key: "id" });
const ROWS = 500;
const MANY = 100_000;
/** Bodies that take this long on a slow machine are no failure. */
const PATIENT = { timeoutMs: 100_000 };

const stores = new TemporaryStores();
afterEach(() => stores.clear());

async function openRows(): Promise<Database> {
  const db = await stores.open({ tables: [Rows] });
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) tx.put(Rows, { id, value: 0n });
  });
  return db;
}

/** How often the event loop turns while `work` is under way, after its first tick. */
async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = -1;
  let isOver = false;
  const turn = (): void => {
    turns++;
    if (!isOver) setTimeout(turn, 0);
  };
  const running = work();
  setTimeout(turn, 0);
  try {
    await running;
  } finally {
    isOver = true;
  }
  return turns;
}

describe("the event loop turns", () => {
  it("while transactions follow each other without a pause", async () => {
    const db = await openRows();
    let fired = 0;
    const timer = setInterval(() => fired++, 5);
    const endMs = performance.now() + 60_000;
    try {
      while (fired < 20 && performance.now() < endMs) {
        await db.transact((tx) => tx.put(Rows, { id: 1, value: BigInt(fired) }));
      }
    } finally {
      clearInterval(timer);
    }
    expect(fired).toBe(20);
  });

  it("while a body awaits one operation after the other", async () => {
    const db = await openRows();
    const turns = await turnsDuring(() =>
      db.transact(async (tx) => {
        for (let i = 0; i < MANY; i++) await tx.get(Rows, i % ROWS);
      }, PATIENT),
    );
    expect(turns).toBeGreaterThan(2);
  });

  it("in the middle of bulk operations", async () => {
    const db: Database = await stores.open({ tables: [Rows], memoryBytes: 64 * 2 ** 20 });
    const rows = 20_000;
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.put(Rows, { id, value: 1n });
    });
    // Enough to compute for each row that it takes several turns.
    let factor = (r: RowExpressions<InferRow<typeof Rows>>) => r.value.plus(0n);
    for (let i = 0; i < 50; i++) {
      const before = factor;
      factor = (r) => before(r).plus(BigInt(i)).minus(BigInt(i));
    }
    const values = (r: RowExpressions<InferRow<typeof Rows>>) => ({ sum: sum(factor(r)) });
    let result: { sum: bigint } | undefined;
    const aggregating = await turnsDuring(async () => {
      result = await db.aggregate(Rows, { values });
    });
    expect(result).toEqual({ sum: BigInt(rows) });
    expect(aggregating).toBeGreaterThan(2);
    const updating = await turnsDuring(() =>
      db.updateWhere(Rows, { set: (r) => ({ value: factor(r).plus(1n) }) }, PATIENT),
    );
    expect(updating).toBeGreaterThan(2);
    const selecting = await turnsDuring(async () => {
      for await (const row of db.select(Rows, { where: (r) => factor(r).eq(1n) })) {
        expect(row).toBeUndefined();
      }
    });
    expect(selecting).toBeGreaterThan(2);
    const { n } = await db.aggregate(Rows, {
      where: (r) => r.value.eq(2n),
      values: () => ({ n: count() }),
    });
    expect(n).toBe(rows);
  });

  it("in the middle of a batch, and its operations keep their order", async () => {
    const db = await openRows();
    const seen: Promise<{ value: bigint } | undefined>[] = [];
    const turns = await turnsDuring(() =>
      db.transact(async (tx) => {
        seen.length = 0;
        for (let i = 0; i < MANY / 2; i++) {
          void tx.put(Rows, { id: i % ROWS, value: BigInt(i) });
          seen.push(tx.get(Rows, i % ROWS));
        }
        await seen[0];
        // Issued while most of the first tick's operations wait: comes after all of them.
        const last = await tx.get(Rows, (MANY / 2 - 1) % ROWS);
        expect(last?.value).toBe(BigInt(MANY / 2 - 1));
      }, PATIENT),
    );
    expect(turns).toBeGreaterThan(2);
    const values = (await Promise.all(seen)).map((row) => row!.value);
    expect(values).toEqual(Array.from({ length: MANY / 2 }, (_, i) => BigInt(i)));
  });

  it("before the commit of a body that awaits nothing", async () => {
    const db = await openRows();
    const turns = await turnsDuring(() =>
      db.transact((tx) => {
        for (let i = 0; i < MANY; i++) void tx.put(Rows, { id: i % ROWS, value: BigInt(i) });
      }, PATIENT),
    );
    expect(turns).toBeGreaterThan(2);
    expect(db.get(Rows, ROWS - 1)?.value).toBe(BigInt(MANY - 1));
    expect(db.count(Rows)).toBe(ROWS);
  });

  it("in the middle of getMany, and of counting", async () => {
    const db = await openRows();
    const keys = Array.from({ length: MANY }, (_, i) => i % ROWS);
    let found: readonly ({ id: number } | undefined)[] = [];
    const many = await turnsDuring(() =>
      db.transact(async (tx) => {
        found = await tx.getMany(Rows, keys);
      }, PATIENT),
    );
    expect(many).toBeGreaterThan(2);
    expect(found.map((row) => row?.id)).toEqual(keys);
    const counted = await turnsDuring(() =>
      db.transact(async (tx) => {
        const counts = Array.from({ length: 2_000 }, () => tx.count(Rows));
        expect(new Set(await Promise.all(counts))).toEqual(new Set([ROWS]));
      }, PATIENT),
    );
    expect(counted).toBeGreaterThan(2);
  });

  it("while thousands of transactions that were begun in one tick run", async () => {
    const db = await openRows();
    let begun = 0;
    const turns = await turnsDuring(() => {
      const all = Array.from({ length: 5_000 }, (_, i) =>
        db.transact((tx) => {
          begun++;
          return tx.put(Rows, { id: i % ROWS, value: BigInt(i) });
        }, PATIENT),
      );
      return Promise.all(all);
    });
    expect(begun).toBeGreaterThanOrEqual(5_000);
    expect(turns).toBeGreaterThan(2);
    expect(db.count(Rows)).toBe(ROWS);
  });

  it("and a transaction that waits for its turn is ended by its signal, and by its deadline", async () => {
    const db = await openRows();
    const controller = new AbortController();
    const aborted = db.transact(
      async (tx) => {
        for (let i = 0; ; i++) {
          await tx.get(Rows, i % ROWS);
          if (i === 1_000) controller.abort();
        }
      },
      { ...PATIENT, signal: controller.signal },
    );
    await expect(aborted).rejects.toMatchObject({ code: "SITU_ABORTED" });
    const endless = db.transact(
      async (tx) => {
        for (;;) await tx.get(Rows, 1);
      },
      { timeoutMs: 100 },
    );
    await expect(endless).rejects.toMatchObject({ code: "SITU_TIMEOUT" });
  });
});
