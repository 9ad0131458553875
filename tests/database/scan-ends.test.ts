/** How scans end: left in the middle, outlived by nothing, and never in the way of the event loop. */

import { describe, expect, it } from "vitest";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Row = table("row", { id: u32(), value: u32() }, { key: "id", ordered: true });

async function filled(rows: number) {
  const db = await stores.open({ tables: [Row], memoryBytes: 32 * 2 ** 20 });
  for (let first = 0; first < rows; first += 500) {
    db.transactSync((tx) => {
      for (let id = first; id < Math.min(rows, first + 500); id++) tx.insert(Row, { id, value: 1 });
    });
  }
  return db;
}

describe("an iterator that outlives its database", () => {
  for (const limit of [undefined, 100]) {
    const options = limit === undefined ? {} : { limit };

    it(`is left, with limit ${limit}`, async () => {
      const db = await filled(1_000);
      const rows = db.scan(Row, options)[Symbol.iterator]();
      rows.next();
      await db.close();
      expect(rows.return?.()).toEqual({ done: true, value: undefined });
    });

    it(`goes on, with limit ${limit}`, async () => {
      const db = await filled(1_000);
      const rows = db.scan(Row, options)[Symbol.iterator]();
      rows.next();
      await db.close();
      await failure("SITU_CLOSED", async () => {
        for (const _ of rows);
      });
    });

    it(`ends its database in the middle of for await, with limit ${limit}`, async () => {
      const db = await filled(1_000);
      await failure("SITU_CLOSED", async () => {
        for await (const _ of db.scan(Row, options)) await db.close();
      });
    });
  }

  it("belonged to a snapshot", async () => {
    const db = await filled(1_000);
    const rows = db.snapshot().scan(Row)[Symbol.iterator]();
    rows.next();
    await db.close();
    await failure("SITU_CLOSED", async () => rows.next());
    rows.return?.();
  });
});

it("an iterator that nobody begins holds no snapshot", async () => {
  const db = await filled(10);
  const begun = Array.from({ length: 2_000 }, () => db.scan(Row)[Symbol.iterator]());
  expect(db.stats().snapshots.open).toBe(0);
  expect(begun[0].next().value).toEqual({ id: 0, value: 1 });
  expect(db.stats().snapshots.open).toBe(1);
  begun[0].return?.();
  expect(db.stats().snapshots.open).toBe(0);
});

describe("the event loop turns while for await works", () => {
  for (const limit of [undefined, 200]) {
    it(`for what the caller does with each row, with limit ${limit}`, async () => {
      const db = await filled(200);
      let turns = 0;
      let goOn = true;
      const count = (): void => {
        turns++;
        if (goOn) setImmediate(count);
      };
      setImmediate(count);
      let rows = 0;
      for await (const _ of db.scan(Row, limit === undefined ? {} : { limit })) {
        rows++;
        const until = performance.now() + 1;
        while (performance.now() < until);
      }
      goOn = false;
      expect(rows).toBe(200);
      // 200 ms of work, 5 ms at a time.
      expect(turns).toBeGreaterThan(20);
    });
  }
});

it("getMany inside transact takes a list of keys", async () => {
  const db = await filled(10);
  for (const keys of [5, undefined, "abc"]) {
    await failure("SITU_TYPE", () =>
      db.transact(async (tx) => tx.getMany(Row, keys as unknown as number[])),
    );
  }
});

it("rows of many sizes come in the order of their keys, large ones a few at a time", async () => {
  const { str } = await import("../../src/tables/fields.ts");
  const Text = table("text", { id: u32(), text: str() }, { key: "id", ordered: true });
  const db = await stores.open({ tables: [Text], memoryBytes: 128 * 2 ** 20 });
  const size = (id: number): number => (id % 7 === 0 ? 200_000 : 10 + id);
  for (let id = 0; id < 150; id++) {
    db.transactSync((tx) => tx.insert(Text, { id, text: "x".repeat(size(id)) }));
  }
  for (const reverse of [false, true]) {
    const found = db.scan(Text, { reverse }).toArray();
    const ids = found.map(({ id }) => id);
    const expected = Array.from({ length: 150 }, (_, i) => (reverse ? 149 - i : i));
    expect(ids).toEqual(expected);
    expect(found.every(({ id, text }) => text.length === size(id))).toBe(true);
  }
  expect(db.scan(Text, { gte: 20, limit: 100 }).toArray()).toHaveLength(100);
  expect(db.count(Text)).toBe(150);
});
