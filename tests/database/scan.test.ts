/** Scans: bounds, order, limits, and the iterators. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Ordered = table(
  "ordered",
  { id: u32(), name: str(12) },
  { key: "id", ordered: true, indexes: { byName: { on: ["name"] } } },
);
const Hashed = table("hashed", { id: u32(), name: str(12) }, { key: "id" });
const Edge = table("edge", { from: u32(), to: str(8) }, { key: ["from", "to"], ordered: true });

const ids = (rows: Iterable<{ id: number }>): number[] => [...rows].map(({ id }) => id);
const upTo = (end: number): number[] => Array.from({ length: end }, (_, id) => id);

async function filled(rows: number): Promise<Database> {
  const db = await stores.open({ tables: [Ordered, Hashed, Edge], memoryBytes: 64 * 2 ** 20 });
  for (let from = 0; from < rows; from += 1_000) {
    db.transactSync((tx) => {
      for (let id = from; id < Math.min(rows, from + 1_000); id++) {
        tx.insert(Ordered, { id, name: `n${id % 10}` });
        tx.insert(Hashed, { id, name: `n${id % 10}` });
      }
    });
  }
  return db;
}

describe("what is found", () => {
  it("all rows, of ordered and hashed tables", async () => {
    const db = await filled(2_500);
    expect(ids(db.scan(Ordered))).toEqual(upTo(2_500));
    expect(ids(db.scan(Ordered, { reverse: true }))).toEqual(upTo(2_500).reverse());
    expect(ids(db.scan(Hashed)).sort((a, b) => a - b)).toEqual(upTo(2_500));
    expect([db.count(Ordered), db.count(Hashed), db.count(Edge)]).toEqual([2_500, 2_500, 0]);
    db.transactSync((tx) => {
      expect(ids(tx.scan(Ordered))).toEqual(upTo(2_500));
      expect(ids(tx.scan(Hashed)).sort((a, b) => a - b)).toEqual(upTo(2_500));
      expect([tx.count(Ordered), tx.count(Hashed), tx.count(Edge)]).toEqual([2_500, 2_500, 0]);
    });
  });

  it("bounds and limits", async () => {
    const db = await filled(600);
    const cases: [object, number[]][] = [
      [{ gte: 590 }, upTo(600).slice(590)],
      [{ gt: 590, lt: 593 }, [591, 592]],
      [{ gte: 5, lte: 7, reverse: true }, [7, 6, 5]],
      [{ eq: 7 }, [7]],
      [{ eq: 700 }, []],
      [{ gt: 7, lt: 7 }, []],
      [{ gte: undefined, lte: 1, index: undefined }, [0, 1]],
      [{ limit: 0 }, []],
      [{ limit: 3 }, [0, 1, 2]],
      [{ limit: 500 }, upTo(500)],
      [{ limit: 2, reverse: true, lt: 300 }, [299, 298]],
      [{ index: "byName", eq: "n3", limit: 2 }, [3, 13]],
      [{ index: "byName", eq: "n3", limit: 2, reverse: true }, [593, 583]],
    ];
    for (const [options, expected] of cases) {
      const what = JSON.stringify(options);
      expect(ids(db.scan(Ordered, options as never)), what).toEqual(expected);
      expect(ids(db.transactSync((tx) => tx.scan(Ordered, options as never).toArray()))).toEqual(
        expected,
      );
    }
    expect(ids(db.scan(Hashed, { limit: 7 })).length).toBe(7);
    db.transactSync((tx) => {
      for (const from of [1, 2, 3]) for (const to of ["a", "b", "ba"]) tx.put(Edge, { from, to });
    });
    const edges = (options: object) =>
      [...db.scan(Edge, options as never)].map(({ from, to }) => `${from}${to}`);
    expect(edges({ eq: [2] })).toEqual(["2a", "2b", "2ba"]);
    expect(edges({ gt: [2] })).toEqual(["3a", "3b", "3ba"]);
    expect(edges({ gt: [1, "b"], lte: [2, "a"] })).toEqual(["1ba", "2a"]);
    expect(edges({ prefix: [2, "b"] })).toEqual(["2b", "2ba"]);
    expect(edges({ prefix: [2, ""] })).toEqual(["2a", "2b", "2ba"]);
    expect(edges({ prefix: [2] })).toEqual(["2a", "2b", "2ba"]);
    expect(edges({ eq: [2, "b"] })).toEqual(["2b"]);
    expect(db.count(Edge, { gte: [2], lt: [3] })).toBe(3);
  });

  it("a transaction sees what it has written itself", async () => {
    const db = await filled(300);
    db.transactSync((tx) => {
      tx.delete(Ordered, 5);
      tx.insert(Ordered, { id: 1_000, name: "n3" });
      tx.update(Ordered, 13, { name: "other" });
      expect(ids(tx.scan(Ordered)).length).toBe(300);
      expect(ids(tx.scan(Ordered, { gte: 299 }))).toEqual([299, 1_000]);
      expect(ids(tx.scan(Ordered, { index: "byName", eq: "n3", limit: 2 }))).toEqual([3, 23]);
      expect(tx.count(Ordered, { index: "byName", eq: "n3" })).toBe(30);
    });
  });
});

describe("iterators", () => {
  it("start anew each time, and can be left", async () => {
    const db = await filled(1_000);
    const scan = db.scan(Ordered);
    for (let round = 0; round < 3; round++) {
      const seen: number[] = [];
      for (const { id } of scan) {
        if (id === 400) break;
        seen.push(id);
      }
      expect(seen).toEqual(upTo(400));
    }
    const iterator = scan[Symbol.iterator]();
    expect(iterator.next()).toEqual({ done: false, value: { id: 0, name: "n0" } });
    expect(iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(iterator.next()).toEqual({ done: true, value: undefined });
    const [first, second] = scan;
    expect([first.id, second.id]).toEqual([0, 1]);
    expect(ids(scan).length).toBe(1_000);
  });

  it("let the event loop turn when asynchronous, and only then", async () => {
    const db = await filled(20_000);
    let turns = 0;
    let running = true;
    const turn = (): void => {
      turns++;
      if (running) setImmediate(turn);
    };
    setImmediate(turn);
    for (const _ of db.scan(Ordered)) turns += 0;
    expect(turns).toBe(0);
    let rows = 0;
    const startMs = performance.now();
    for await (const { id } of db.scan(Ordered)) {
      expect(id).toBe(rows++);
      while (performance.now() - startMs < rows * 0.002);
    }
    running = false;
    expect(rows).toBe(20_000);
    expect(turns).toBeGreaterThan(2);
  });

  it("asynchronous calls that do not wait for each other get rows in order", async () => {
    const db = await filled(700);
    const iterator = db.scan(Ordered)[Symbol.asyncIterator]();
    const results = await Promise.all(Array.from({ length: 705 }, () => iterator.next()));
    expect(results.slice(0, 700).map(({ value }) => value?.id)).toEqual(upTo(700));
    expect(results.slice(700).every(({ done }) => done)).toBe(true);
  });

  it("asynchronous ones can be left", async () => {
    const db = await filled(700);
    const seen: number[] = [];
    for await (const { id } of db.scan(Ordered, { reverse: true })) {
      seen.push(id);
      if (id === 390) break;
    }
    expect(seen.length).toBe(310);
    await db.transact(async (tx) => {
      for await (const { id } of tx.scan(Ordered)) if (id === 300) break;
      expect((await tx.scan(Ordered, { limit: 3 }).toArray()).length).toBe(3);
      const found: number[] = [];
      for await (const { id } of tx.scan(Ordered, { gt: 690 })) {
        found.push(id);
        await tx.delete(Ordered, id);
      }
      expect(found).toEqual(upTo(700).slice(691));
      expect(await tx.count(Ordered)).toBe(691);
      expect((await tx.scan(Hashed).toArray()).length).toBe(700);
    });
    expect(db.count(Ordered)).toBe(691);
  });

  it("the rows may be changed meanwhile", async () => {
    const db = await filled(1_000);
    db.transactSync((tx) => {
      for (const { id } of tx.scan(Ordered)) tx.delete(Ordered, id);
      expect(tx.count(Ordered)).toBe(0);
      expect(tx.count(Ordered, { index: "byName" })).toBe(0);
      for (const { id } of tx.scan(Hashed)) tx.delete(Hashed, id);
      expect(tx.count(Hashed)).toBe(0);
    });
    db.transactSync((tx) => {
      for (let id = 0; id < 500; id++) tx.insert(Ordered, { id, name: "x" });
      let seen = 0;
      for (const { id } of tx.scan(Ordered, { index: "byName", eq: "x", reverse: true })) {
        tx.update(Ordered, id, { name: "y" });
        seen++;
      }
      expect(seen).toBe(500);
    });
    expect(db.count(Ordered, { index: "byName", eq: "y" })).toBe(500);
  });

  it("end with their transaction, whatever was read already", async () => {
    const db = await filled(100);
    const { iterator, scan } = db.transactSync((tx) => {
      const scan = tx.scan(Ordered);
      const iterator = scan[Symbol.iterator]();
      iterator.next();
      return { iterator, scan };
    });
    failureSync("SITU_CLOSED", () => iterator.next());
    failureSync("SITU_CLOSED", () => scan.toArray());
    db.transactSync(() => {
      failureSync("SITU_CLOSED", () => iterator.next());
      failureSync("SITU_CLOSED", () => scan.toArray());
    });
    const later = await db.transact(async (tx) => {
      const iterator = tx.scan(Ordered)[Symbol.asyncIterator]();
      await iterator.next();
      return iterator;
    });
    await failure("SITU_CLOSED", () => later.next());
    const left = db.scan(Ordered)[Symbol.iterator]();
    const leftAsync = db.scan(Ordered)[Symbol.asyncIterator]();
    left.next();
    await leftAsync.next();
    await db.close();
    failureSync("SITU_CLOSED", () => left.next());
    await failure("SITU_CLOSED", () => leftAsync.next());
    failureSync("SITU_CLOSED", () => db.scan(Ordered));
    failureSync("SITU_CLOSED", () => db.count(Ordered));
  });

  it("a range is protected against phantoms", async () => {
    const db = await filled(50);
    const other = await stores.open({ path: db.path, tables: [Ordered, Hashed] });
    const both: Table<{ id: number; name: string }, number>[] = [Ordered, Hashed];
    for (const Each of both) {
      let attempts = 0;
      const sum = db.transactSync((tx) => {
        let sum = 0;
        for (const { id } of tx.scan(Each)) sum += id;
        if (attempts++ === 0) {
          other.transactSync((inner) => inner.insert(Each, { id: 1_000, name: "" }));
        }
        tx.put(Each, { id: 2_000, name: "sum" });
        return sum;
      });
      expect([attempts, sum]).toEqual([2, 1_225 + 1_000]);
    }
  });
});
