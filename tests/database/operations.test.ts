/** What get, getMany, has, insert, put, update and delete mean; in transactSync and in transact. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { bool, bytes, f64, i64, str, u8, u16, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Small = table("small", { id: u32(), owner: str(24), balance: i64() }, { key: "id" });
const Large = table("large", { id: u32(), owner: str(), balance: i64() }, { key: "id" });

interface Row {
  id: number;
  owner: string;
  balance: bigint;
}

const row = (id: number, balance = 0n): Row => ({ id, owner: `owner ${id}`, balance });

/** The operations of both kinds of transactions, as promises. */
interface Tx {
  get(id: number): Promise<Row | undefined>;
  getMany(ids: Iterable<number>): Promise<(Row | undefined)[]>;
  has(id: number): Promise<boolean>;
  insert(row: Row): Promise<void>;
  put(row: Row): Promise<void>;
  update(id: number, changes: Partial<Omit<Row, "id">>): Promise<void>;
  delete(id: number): Promise<boolean>;
}

describe.each([
  ["rows in their buckets", Small],
  ["rows as objects", Large],
])("%s", (_, Account) => {
  const opened = (): Promise<Database> => stores.open({ tables: [Account] });

  describe("in transact", () => {
    const run = (db: Database, body: (tx: Tx) => Promise<void>): Promise<void> =>
      db.transact((tx) =>
        body({
          get: (id) => tx.get(Account, id),
          getMany: (ids) => tx.getMany(Account, ids),
          has: (id) => tx.has(Account, id),
          insert: (values) => tx.insert(Account, values),
          put: (values) => tx.put(Account, values),
          update: (id, changes) => tx.update(Account, id, changes),
          delete: (id) => tx.delete(Account, id),
        }),
      );

    it("a transaction sees its own writes, others see them after the commit", async () => {
      const db = await opened();
      await run(db, async (tx) => {
        expect(await tx.get(1)).toBeUndefined();
        await tx.insert(row(1, 5n));
        expect(await tx.get(1)).toEqual(row(1, 5n));
        expect(db.get(Account, 1)).toBeUndefined();
        await tx.update(1, { balance: 6n });
        await tx.put(row(2, 7n));
        expect(await tx.getMany([1, 2, 3])).toEqual([row(1, 6n), row(2, 7n), undefined]);
        expect(await tx.delete(1)).toBe(true);
        expect(await tx.has(1)).toBe(false);
        await tx.insert(row(1, 8n));
        expect(db.get(Account, 2)).toBeUndefined();
      });
      expect(db.get(Account, 1)).toEqual(row(1, 8n));
      expect(db.get(Account, 2)).toEqual(row(2, 7n));
    });

    it("an error that the body handles does not end the transaction", async () => {
      const db = await opened();
      await run(db, async (tx) => {
        await tx.insert(row(1));
        await failure("SITU_EXISTS", () => tx.insert(row(1, 9n)));
        await failure("SITU_MISSING", () => tx.update(2, { balance: 1n }));
        await tx.put(row(3));
      });
      expect(db.get(Account, 1)).toEqual(row(1));
      expect(db.get(Account, 3)).toEqual(row(3));
    });
  });

  it("insert adds a row, and fails if its key is taken", async () => {
    const db = await opened();
    db.transactSync((tx) => tx.insert(Account, row(1, 1n)));
    const error = failureSync("SITU_EXISTS", () =>
      db.transactSync((tx) => {
        tx.put(Account, row(2));
        tx.insert(Account, row(1, 2n));
      }),
    );
    expect(error.message).toMatch(/key 1\b/);
    expect(db.get(Account, 1)).toEqual(row(1, 1n));
    expect(db.get(Account, 2)).toBeUndefined();
  });

  it("put adds or replaces", async () => {
    const db = await opened();
    db.transactSync((tx) => tx.put(Account, row(1, 1n)));
    db.transactSync((tx) => tx.put(Account, { id: 1, owner: "", balance: -1n }));
    expect(db.get(Account, 1)).toEqual({ id: 1, owner: "", balance: -1n });
  });

  it("update changes some fields, and fails if there is no row", async () => {
    const db = await opened();
    db.transactSync((tx) => tx.put(Account, row(1, 1n)));
    db.transactSync((tx) => tx.update(Account, 1, { balance: 2n }));
    db.transactSync((tx) => tx.update(Account, 1, { owner: "grace" }));
    db.transactSync((tx) => tx.update(Account, 1, {}));
    expect(db.get(Account, 1)).toEqual({ id: 1, owner: "grace", balance: 2n });
    const error = failureSync("SITU_MISSING", () =>
      db.transactSync((tx) => tx.update(Account, 2, { balance: 1n })),
    );
    expect(error.message).toMatch(/no row with key 2\b/);
    const key = failureSync("SITU_TYPE", () =>
      db.transactSync((tx) => tx.update(Account, 1, { id: 3 } as never)),
    );
    expect(key.message).toMatch(/part of the key.*delete the row and insert it/);
    expect(db.get(Account, 1)).toEqual({ id: 1, owner: "grace", balance: 2n });
  });

  it("delete says whether there was a row", async () => {
    const db = await opened();
    db.transactSync((tx) => tx.put(Account, row(1)));
    expect(db.transactSync((tx) => [tx.delete(Account, 1), tx.delete(Account, 1)])).toEqual([
      true,
      false,
    ]);
    expect(db.get(Account, 1)).toBeUndefined();
    expect(db.transactSync((tx) => tx.delete(Account, 1))).toBe(false);
  });

  it("delete and insert of one key in one transaction, again and again", async () => {
    const db = await opened();
    db.transactSync((tx) => tx.put(Account, row(1, 0n)));
    for (let round = 1n; round < 50n; round++) {
      db.transactSync((tx) => {
        expect(tx.get(Account, 1)?.balance).toBe((round - 1n) * 2n);
        tx.delete(Account, 1);
        expect(tx.has(Account, 1)).toBe(false);
        tx.insert(Account, row(1, round));
        tx.delete(Account, 1);
        tx.insert(Account, row(1, round * 2n));
      });
      expect(db.get(Account, 1)).toEqual(row(1, round * 2n));
    }
    db.transactSync((tx) => {
      tx.insert(Account, row(2));
      tx.delete(Account, 2);
    });
    expect(db.get(Account, 2)).toBeUndefined();
  });

  it("getMany keeps the order, takes any iterable, and the same key twice", async () => {
    const db = await opened();
    db.transactSync((tx) => {
      for (let id = 0; id < 5; id++) tx.put(Account, row(id));
      expect(tx.getMany(Account, [])).toEqual([]);
      expect(tx.getMany(Account, new Set([4, 9, 0]))).toEqual([row(4), undefined, row(0)]);
      expect(tx.getMany(Account, [1, 1])).toEqual([row(1), row(1)]);
    });
  });

  it("has tells what get tells, and depends on it", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    const other = await stores.open({ path, tables: [Account] });
    let runs = 0;
    db.transactSync((tx) => {
      runs++;
      const had = tx.has(Account, 1);
      if (runs === 1) other.transactSync((its) => its.insert(Account, row(1)));
      tx.put(Account, { ...row(2), owner: had ? "had" : "had not" });
    });
    expect(runs).toBe(2);
    expect(db.get(Account, 2)?.owner).toBe("had");
  });

  it("a row that is absent is part of what was read: no phantom", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    const other = await stores.open({ path, tables: [Account] });
    let runs = 0;
    const total = db.transactSync((tx) => {
      runs++;
      const rows = tx.getMany(Account, [1, 2, 3]);
      if (runs === 1) other.transactSync((its) => its.insert(Account, row(3, 100n)));
      tx.put(Account, row(4));
      return rows.reduce((sum, found) => sum + (found?.balance ?? 0n), 0n);
    });
    expect([runs, total]).toEqual([2, 100n]);
  });

  it("two tables in one transaction, all or nothing", async () => {
    const Log = table("log", { id: u32(), text: str() }, { key: "id" });
    const db = await stores.open({ tables: [Account, Log] });
    const error = new Error("no");
    expect(() =>
      db.transactSync((tx) => {
        tx.put(Account, row(1));
        tx.put(Log, { id: 1, text: "put 1" });
        throw error;
      }),
    ).toThrow(error);
    expect(db.get(Account, 1) ?? db.get(Log, 1)).toBeUndefined();
    db.transactSync((tx) => {
      tx.put(Account, row(1));
      tx.put(Log, { id: 1, text: "put 1" });
    });
    expect([db.get(Account, 1), db.get(Log, 1)]).toEqual([row(1), { id: 1, text: "put 1" }]);
  });
});

/** Rows of many fields, changed field by field, several of them in one bucket. */
describe("updates of single fields against a model", () => {
  const narrow = {
    id: u32(),
    a: u8(),
    b: u16(),
    c: str(7),
    d: f64(),
    e: bool(),
    f: i64(),
    g: bytes(5),
  };
  const tables = {
    "rows in their buckets": table("fields", narrow, { key: "id" }),
    "rows as objects": table("fields", { ...narrow, c: str() }, { key: "id" }),
  };
  const values = {
    a: fc.nat(255),
    b: fc.nat(65_535),
    c: fc.string({ maxLength: 7 }),
    d: fc.double(),
    e: fc.boolean(),
    f: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n),
    g: fc.uint8Array({ maxLength: 5 }),
  };
  const row = fc.record({ id: fc.nat(11), ...values });
  const changes = fc.record(values, { requiredKeys: [] });
  const operation = fc.oneof(
    fc.record({ kind: fc.constant("put" as const), row }),
    fc.record({ kind: fc.constant("update" as const), id: fc.nat(11), changes }),
    fc.record({ kind: fc.constant("update" as const), id: fc.nat(11), changes }),
    fc.record({ kind: fc.constant("delete" as const), id: fc.nat(11) }),
    fc.record({ kind: fc.constant("get" as const), id: fc.nat(11) }),
  );
  const steps = fc.array(
    fc.record({ operations: fc.array(operation, { maxLength: 12 }), thrownAway: fc.boolean() }),
    { maxLength: 25 },
  );
  type FullRow = {
    id: number;
    a: number;
    b: number;
    c: string;
    d: number;
    e: boolean;
    f: bigint;
    g: Uint8Array;
  };

  it.each(Object.keys(tables))("%s", async (name) => {
    const Many = tables[name as keyof typeof tables];
    const path = stores.folder();
    const handles = [
      await stores.open({ path, tables: [Many] }),
      await stores.open({ path, tables: [Many] }),
    ];
    class Thrown extends Error {}
    let model = new Map<number, FullRow>();
    check(
      fc.property(steps, (all) => {
        handles[0].transactSync((tx) => {
          for (const id of model.keys()) tx.delete(Many, id);
        });
        model = new Map();
        for (const [number, { operations, thrownAway }] of all.entries()) {
          const next = new Map(model);
          try {
            handles[number % 2].transactSync((tx) => {
              for (const each of operations) {
                const id = each.kind === "put" ? each.row.id : each.id;
                const before = next.get(id);
                if (each.kind === "put") {
                  tx.put(Many, each.row);
                  next.set(id, { ...each.row });
                } else if (each.kind === "delete") {
                  assert.equal(tx.delete(Many, id), next.delete(id));
                } else if (each.kind === "update" && before !== undefined) {
                  tx.update(Many, id, each.changes);
                  next.set(id, { ...before, ...each.changes });
                }
                assert.deepEqual(tx.get(Many, id), next.get(id));
              }
              if (number % 3 === 0) {
                for (let id = 0; id < 12; id++) assert.deepEqual(tx.get(Many, id), next.get(id));
              }
              if (thrownAway) throw new Thrown();
            });
            model = next;
          } catch (error) {
            if (!(error instanceof Thrown)) throw error;
          }
          for (const db of handles) {
            for (let id = 0; id < 12; id++) assert.deepEqual(db.get(Many, id), model.get(id));
          }
        }
      }),
      60,
    );
  });
});
