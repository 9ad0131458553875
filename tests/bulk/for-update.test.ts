/** `select` with `forUpdate`: a transaction that has lost once against another has priority then. */

import { expect, it } from "vitest";
import { Transaction } from "../../src/engine/transaction.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const fields = { id: u32(), n: u32() };

it.each(["memory", "device"] as const)(
  "commits beside writers of the same rows (%s)",
  async (storage) => {
    const Row = table("row", fields, { key: "id", storage });
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Row] });
    const other = await stores.open({ path, tables: [Row] });
    for (let id = 0; id < 10; id++) db.put(Row, { id, n: 0 });
    let attempts = 0;
    let isOver = false;
    const add = (id: number): Promise<void> =>
      other.transact(async (tx) => {
        const row = await tx.get(Row, id);
        await tx.update(Row, id, { n: row!.n + 1 });
      });
    let added = 0;
    const writers = [0, 1].map(async (id) => {
      while (!isOver) {
        await add(id);
        added++;
      }
    });
    await db.transact(async (tx) => {
      attempts++;
      for await (const { id, n } of tx.select(Row, { where: (r) => r.id.lt(5), forUpdate: true })) {
        // The first attempt loses for certain.
        if (attempts === 1 && id === 0) await add(0).then(() => added++);
        await new Promise((resolve) => setTimeout(resolve, 1));
        await tx.update(Row, id, { n: n + 1_000 });
      }
    });
    isOver = true;
    await Promise.all(writers);
    expect(attempts).toBeGreaterThan(1);
    const rows = db.scan(Row).toArray();
    expect(rows.reduce((sum, { n }) => sum + n, 0)).toBe(5_000 + added);
  },
);

it("is starved after one conflict, and only for this transaction", async () => {
  const Row = table("row", fields, { key: "id" });
  const db = await stores.open({ path: stores.folder(), tables: [Row] });
  const { executor } = db;
  const tx = new Transaction(executor);
  tx.timeoutMs = 1_000;
  expect(executor.priority.meet(tx)).toBe(false);
  tx.isForUpdate = true;
  expect(executor.priority.meet(tx)).toBe(true);
  expect(executor.priority.look(tx)).toBeGreaterThanOrEqual(0);
  executor.priority.end(tx);
  tx.clear();
  expect(tx.isForUpdate).toBe(false);
  expect(executor.priority.meet(tx)).toBe(false);
  executor.priority.end(tx);
});

it("is refused outside of a transaction, and if it is not true or false", async () => {
  const Row = table("row", fields, { key: "id" });
  const db = await stores.open({ path: stores.folder(), tables: [Row] });
  expect(() => db.select(Row, { forUpdate: true })).toThrow(/for transactions/);
  using snapshot = db.snapshot();
  expect(() => snapshot.select(Row, { forUpdate: true })).toThrow(/for transactions/);
  expect(() =>
    db.transactSync((tx) => tx.select(Row, { forUpdate: 1 as never }).toArray()),
  ).toThrow(/true or false/);
  expect(db.transactSync((tx) => tx.select(Row, { forUpdate: true }).toArray())).toEqual([]);
});
