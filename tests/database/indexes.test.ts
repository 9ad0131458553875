/** Secondary indexes: every operation through every kind, and rows and entries always agree. */

import { describe, expect, it } from "vitest";
import type { Transaction } from "../../src/database/transaction.ts";
import { bool, bytes, i64, json, str, u8, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareIndexes, type Reader } from "../helpers/indexes.ts";
import { check, fc } from "../helpers/property.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const fields = { id: u32(), owner: str(20), email: str(40), balance: i64() };
const Account = table("accounts", fields, {
  key: "id",
  ordered: true,
  indexes: {
    byOwner: { on: ["owner"] },
    byEmail: { on: ["email"], unique: true, kind: "hash" },
    byBalance: { on: ["balance", "owner"] },
    byOwnerHash: { on: ["owner"], kind: "hash" },
    byBoth: { on: ["email", "balance"], unique: true },
  },
});

const account = (id: number, owner: string, balance = 0n) => ({
  id,
  owner,
  email: `${owner}${id}@x`,
  balance,
});

describe("finding rows by an index", () => {
  it("every kind, in transactions and outside", async () => {
    const db = await stores.open({ tables: [Account] });
    db.transactSync((tx) => {
      for (let id = 0; id < 30; id++)
        tx.insert(Account, account(id, "abc"[id % 3], BigInt(id % 5)));
    });
    const ids = (rows: Iterable<{ id: number }>) => [...rows].map(({ id }) => id);
    const ofB = Array.from({ length: 10 }, (_, n) => 3 * n + 1);
    expect(ids(db.scan(Account, { index: "byOwner", eq: "b" }))).toEqual(ofB);
    expect(ids(db.scan(Account, { index: "byOwner", eq: "b", reverse: true }))).toEqual(
      ofB.toReversed(),
    );
    expect(ids(db.scan(Account, { index: "byOwnerHash", eq: "b" })).sort((a, b) => a - b)).toEqual(
      ofB,
    );
    expect(ids(db.scan(Account, { index: "byEmail", eq: "b4@x" }))).toEqual([4]);
    expect(ids(db.scan(Account, { index: "byBoth", eq: ["b4@x", 4n] }))).toEqual([4]);
    expect(ids(db.scan(Account, { index: "byBoth", eq: ["b4@x"] }))).toEqual([4]);
    expect(ids(db.scan(Account, { index: "byBoth", prefix: ["b4@x"] }))).toEqual([4]);
    expect(db.get(Account, "b4@x", { index: "byEmail" })?.id).toBe(4);
    expect(db.get(Account, ["b4@x", 4n], { index: "byBoth" })?.id).toBe(4);
    expect(db.get(Account, ["b4@x", 3n], { index: "byBoth" })).toBeUndefined();
    expect(db.get(Account, "nobody", { index: "byEmail" })).toBeUndefined();
    expect(db.count(Account, { index: "byOwner", gte: "b" })).toBe(20);
    expect(db.count(Account, { index: "byOwnerHash", eq: "c" })).toBe(10);
    expect(db.count(Account, { index: "byOwnerHash", eq: "d" })).toBe(0);
    expect(db.count(Account, { index: "byEmail", eq: "b4@x" })).toBe(1);
    db.transactSync((tx) => {
      expect(ids(tx.scan(Account, { index: "byBalance", gt: [3n] }))).toEqual(
        [9, 24, 4, 19, 14, 29].sort((a, b) => "abc"[a % 3].localeCompare("abc"[b % 3]) || a - b),
      );
      expect(ids(tx.scan(Account, { index: "byBalance", eq: [2n, "c"] }))).toEqual([2, 17]);
      expect(ids(tx.scan(Account, { index: "byBalance", gte: [2n, "c"], lt: [3n, "b"] }))).toEqual([
        2, 17, 3, 18,
      ]);
      expect(tx.count(Account, { index: "byBalance", lte: [1n] })).toBe(12);
      expect(tx.get(Account, "c2@x", { index: "byEmail" })?.id).toBe(2);
      tx.delete(Account, 2);
      expect(tx.get(Account, "c2@x", { index: "byEmail" })).toBeUndefined();
      expect(tx.count(Account, { index: "byBalance", lte: [1n] })).toBe(12);
      expect(ids(tx.scan(Account, { index: "byBalance", eq: [2n, "c"] }))).toEqual([17]);
    });
    await db.transact(async (tx) => {
      expect((await tx.get(Account, "b4@x", { index: "byEmail" }))?.id).toBe(4);
      expect(await tx.count(Account, { index: "byOwner", eq: "c" })).toBe(9);
      expect(ids(await tx.scan(Account, { index: "byOwner", eq: "b" }).toArray())).toEqual(ofB);
    });
    expect(compareIndexes(db, Account)).toBe(29);
  });

  it("text by its beginning", async () => {
    const db = await stores.open({ tables: [Account] });
    const owners = ["", "a", "ab", "aba", "abb", "abc", "ac", "b", "é", "éa"];
    db.transactSync((tx) => {
      owners.forEach((owner, id) => {
        tx.insert(Account, account(id, owner));
      });
    });
    const found = (prefix: string) =>
      db
        .scan(Account, { index: "byOwner", prefix })
        .toArray()
        .map(({ owner }) => owner);
    expect(found("ab")).toEqual(["ab", "aba", "abb", "abc"]);
    expect(found("")).toEqual(owners);
    expect(found("é")).toEqual(["é", "éa"]);
    expect(found("x")).toEqual([]);
    expect(db.count(Account, { index: "byOwner", prefix: "a", gt: "ab", lt: "ac" })).toBe(3);
  });

  it("rows change: put, update, delete", async () => {
    const db = await stores.open({ tables: [Account] });
    db.transactSync((tx) => tx.insert(Account, account(1, "ada")));
    db.transactSync((tx) => tx.put(Account, account(1, "bob")));
    expect(db.count(Account, { index: "byOwner", eq: "ada" })).toBe(0);
    expect(db.get(Account, "ada1@x", { index: "byEmail" })).toBeUndefined();
    expect(db.get(Account, "bob1@x", { index: "byEmail" })?.owner).toBe("bob");
    db.transactSync((tx) => tx.update(Account, 1, { owner: "cy" }));
    expect(db.count(Account, { index: "byOwnerHash", eq: "cy" })).toBe(1);
    expect(db.get(Account, "bob1@x", { index: "byEmail" })?.owner).toBe("cy");
    db.transactSync((tx) => {
      tx.update(Account, 1, { owner: "cy" });
      tx.put(Account, { ...account(1, "cy"), email: "new" });
      tx.update(Account, 1, { email: "newer", balance: 5n });
    });
    compareIndexes(db, Account);
    expect(db.get(Account, ["newer", 5n], { index: "byBoth" })?.id).toBe(1);
    expect(db.transactSync((tx) => tx.delete(Account, 1))).toBe(true);
    expect(db.transactSync((tx) => tx.delete(Account, 1))).toBe(false);
    failureSync("SITU_MISSING", () =>
      db.transactSync((tx) => tx.update(Account, 1, { owner: "x" })),
    );
    expect(compareIndexes(db, Account)).toBe(0);
    for (const index of ["byOwner", "byBalance", "byBoth"] as const) {
      expect(db.count(Account, { index })).toBe(0);
    }
  });

  it("an update of other fields does not write the indexes", async () => {
    const Plain = table(
      "plain",
      { id: u32(), owner: str(8), note: str(8) },
      { key: "id", indexes: { byOwner: { on: ["owner"] } } },
    );
    const db = await stores.open({ tables: [Plain] });
    db.transactSync((tx) => tx.insert(Plain, { id: 1, owner: "a", note: "" }));
    // A scan of the index and an update beside it do not meet: rows are hashed, entries ordered.
    const other = await stores.open({ path: db.path, tables: [Plain] });
    const count = db.transactSync((tx) => {
      const found = tx.count(Plain, { index: "byOwner" });
      other.transactSync((inner) => inner.update(Plain, 1, { note: "x" }));
      return found;
    });
    expect(count).toBe(1);
    expect(db.get(Plain, 1)?.note).toBe("x");
  });

  it("a phantom is noticed", async () => {
    const db = await stores.open({ tables: [Account] });
    const other = await stores.open({ path: db.path, tables: [Account] });
    for (const index of ["byOwner", "byOwnerHash"] as const) {
      let attempts = 0;
      const seen = db.transactSync((tx) => {
        const found = tx.count(Account, { index, eq: index });
        if (attempts++ === 0) {
          other.transactSync((inner) => inner.insert(Account, account(index.length, index)));
        }
        tx.put(Account, account(100 + index.length, "counter", BigInt(found)));
        return found;
      });
      expect([attempts, seen]).toEqual([2, 1]);
    }
  });
});

describe("unique indexes", () => {
  it("refuse the second row, and leave the transaction as it was", async () => {
    const db = await stores.open({ tables: [Account] });
    db.transactSync((tx) => tx.insert(Account, account(1, "ada")));
    const taken = { ...account(2, "bob"), email: "ada1@x" };
    const ways: Record<string, (tx: Transaction) => void> = {
      insert: (tx) => tx.insert(Account, taken),
      put: (tx) => tx.put(Account, taken),
      update: (tx) => {
        tx.insert(Account, account(2, "bob"));
        tx.update(Account, 2, { email: "ada1@x", owner: "eve" });
      },
    };
    for (const [name, way] of Object.entries(ways)) {
      const error = failureSync("SITU_UNIQUE", () => db.transactSync(way));
      expect(error.message).toMatch(
        /unique index byEmail of table accounts: row 2 would have email "ada1@x", but row 1 has it/,
      );
      expect(compareIndexes(db, Account), name).toBe(1);
    }
    db.transactSync((tx) => {
      failureSync("SITU_UNIQUE", () => tx.insert(Account, taken));
      tx.insert(Account, account(2, "bob"));
      failureSync("SITU_UNIQUE", () => tx.update(Account, 2, { email: "ada1@x" }));
      failureSync("SITU_UNIQUE", () => tx.put(Account, taken));
      tx.insert(Account, account(3, "cy"));
    });
    expect(compareIndexes(db, Account)).toBe(3);
    expect(db.get(Account, "bob2@x", { index: "byEmail" })?.id).toBe(2);
  });

  it("within one transaction, values can be passed on", async () => {
    const db = await stores.open({ tables: [Account] });
    db.transactSync((tx) => {
      tx.insert(Account, account(1, "ada"));
      failureSync("SITU_UNIQUE", () => tx.insert(Account, { ...account(1, "ada"), id: 2 }));
      tx.delete(Account, 1);
      tx.insert(Account, { ...account(1, "ada"), id: 2 });
      tx.update(Account, 2, { email: "free" });
      tx.insert(Account, account(1, "ada"));
      tx.put(Account, account(1, "ada"));
    });
    expect(compareIndexes(db, Account)).toBe(2);
  });

  it("the error of a zombie is not believed", async () => {
    const db = await stores.open({ tables: [Account] });
    const other = await stores.open({ path: db.path, tables: [Account] });
    db.transactSync((tx) => tx.insert(Account, account(1, "ada")));
    let attempts = 0;
    db.transactSync((tx) => {
      attempts++;
      tx.get(Account, 1);
      if (attempts === 1) other.transactSync((inner) => inner.delete(Account, 1));
      tx.insert(Account, { ...account(1, "ada"), id: 7 });
    });
    expect(attempts).toBe(2);
    expect(compareIndexes(db, Account)).toBe(1);
  });
});

const Odd = table(
  "odd",
  { a: u32(), b: bytes(12), position: u8(), "position'": bool(), c: str(), d: json() },
  {
    key: ["a", "b"],
    indexes: {
      whole: { on: ["b", "a"], kind: "hash" },
      part: { on: ["a", "position"], kind: "hash" },
      flags: { on: ["position'"], kind: "hash" },
      long: { on: ["c"] },
      longHash: { on: ["c", "position'"], kind: "hash" },
      key: { on: ["b", "a", "c"], unique: true },
    },
  },
);

type OddRow = {
  a: number;
  b: Uint8Array;
  position: number;
  "position'": boolean;
  c: string;
  d: unknown;
};

const oddRow: fc.Arbitrary<OddRow> = fc.record({
  a: fc.nat(2),
  b: fc.constantFrom("", "00", "0000", "ff").map((hex) => Uint8Array.from(Buffer.from(hex, "hex"))),
  position: fc.nat(2),
  "position'": fc.boolean(),
  c: fc.constantFrom("", "x", "x\0", "long ".repeat(40)),
  d: fc.constantFrom(1, null, { deep: [true] }),
});

describe("rows and entries agree after whatever happened", () => {
  it("composite keys, fields named like helpers, long texts", async () => {
    const db = await stores.open({ tables: [Odd] });
    const step = fc.tuple(fc.constantFrom("insert", "put", "update", "delete", "abort"), oddRow);
    check(
      fc.property(fc.array(fc.array(step, { maxLength: 6 }), { maxLength: 12 }), (batches) => {
        const model = new Map<string, OddRow>();
        const name = ({ a, b }: OddRow) => `${a} ${Buffer.from(b).toString("hex")}`;
        db.transactSync((tx) => {
          for (const row of tx.scan(Odd).toArray()) tx.delete(Odd, [row.a, row.b]);
        });
        for (const batch of batches) {
          const before = new Map(model);
          try {
            db.transactSync((tx) => {
              for (const [what, row] of batch) {
                const known = model.get(name(row));
                if (what === "abort") throw new Error("abort");
                if (what === "put") tx.put(Odd, row);
                else if (what === "delete") {
                  expect(tx.delete(Odd, [row.a, row.b])).toBe(known !== undefined);
                  model.delete(name(row));
                  continue;
                } else if (what === "insert") {
                  if (known !== undefined) {
                    failureSync("SITU_EXISTS", () => tx.insert(Odd, row));
                    continue;
                  }
                  tx.insert(Odd, row);
                } else {
                  const { a, b, ...changes } = row;
                  if (known === undefined) {
                    failureSync("SITU_MISSING", () => tx.update(Odd, [a, b], changes));
                    continue;
                  }
                  tx.update(Odd, [a, b], changes);
                }
                model.set(name(row), row);
              }
            });
          } catch (error) {
            if ((error as Error).message !== "abort") throw error;
            model.clear();
            for (const [key, row] of before) model.set(key, row);
          }
        }
        expect(compareIndexes(db, Odd)).toBe(model.size);
        for (const row of db.scan(Odd)) expect(row).toEqual(model.get(name(row)));
      }),
      60,
    );
  });

  it("many rows, splits and merges", async () => {
    // Long bodies: on a slow machine they need more than the usual five seconds.
    const patient = { tables: [Account], timeoutMs: 120_000 };
    const db = await stores.open({ ...patient, memoryBytes: 64 * 2 ** 20 });
    const other = await stores.open({ ...patient, path: db.path });
    const rows = 3_000;
    for (let from = 0; from < rows; from += 50) {
      (from % 100 === 0 ? db : other).transactSync((tx) => {
        for (let id = from; id < from + 50; id++) {
          tx.insert(Account, account((id * 7919) % rows, `o${id % 7}`, BigInt(id % 11) - 5n));
        }
      });
    }
    expect(compareIndexes(db, Account)).toBe(rows);
    for (let from = 0; from < rows; from += 50) {
      (from % 100 === 0 ? other : db).transactSync((tx) => {
        for (let id = from; id < from + 50; id++) {
          if (id % 3 === 0) tx.delete(Account, id);
          else if (id % 3 === 1) tx.update(Account, id, { owner: "all", email: `e${id}` });
        }
      });
    }
    expect(compareIndexes(other, Account)).toBe(2_000);
    db.transactSync((tx) => {
      for (const { id } of tx.scan(Account, { index: "byOwnerHash", eq: "all" })) {
        tx.delete(Account, id);
      }
    });
    expect(db.count(Account, { index: "byOwner", eq: "all" })).toBe(0);
    expect(compareIndexes(db, Account)).toBe(1_000);
  });
});

describe("snapshots", () => {
  it("see the indexes as they were", async () => {
    const db = await stores.open({ tables: [Account, Odd] });
    db.transactSync((tx) => {
      for (let id = 0; id < 300; id++) tx.insert(Account, account(id, `o${id % 5}`));
    });
    const snapshot = db.snapshot();
    for (let id = 0; id < 300; id++) {
      db.transactSync((tx) => {
        if (id % 2 === 0) tx.delete(Account, id);
        else tx.put(Account, account(id, "changed", 5n));
        tx.insert(Account, account(1_000 + id, `o${id % 5}`));
      });
    }
    expect(compareIndexes(db, Account, snapshot as unknown as Reader)).toBe(300);
    expect(snapshot.get(Account, "o01000@x", { index: "byEmail" })).toBeUndefined();
    expect(snapshot.get(Account, "o22@x", { index: "byEmail" })?.id).toBe(2);
    expect(snapshot.count(Account, { index: "byOwnerHash", eq: "changed" })).toBe(0);
    expect(compareIndexes(db, Account)).toBe(450);
    snapshot.close();
  });

  it("with snapshot isolation, values stay unique", async () => {
    const db = await stores.open({ tables: [Account] });
    const other = await stores.open({ path: db.path, tables: [Account] });
    for (const [first, second] of [
      [db, other],
      [other, db],
    ]) {
      const options = { isolation: "snapshot" } as const;
      let attempts = 0;
      const error = failureSync("SITU_UNIQUE", () =>
        first.transactSync((tx) => {
          tx.count(Account);
          const row = { ...account(1, "a"), id: 10 };
          if (attempts++ === 0) second.transactSync((inner) => inner.put(Account, account(1, "a")));
          tx.insert(Account, row);
        }, options),
      );
      expect(error.message).toMatch(/row 10 would have .* but row 1 has it/);
      expect(compareIndexes(db, Account)).toBe(1);
      db.transactSync((tx) => tx.delete(Account, 1));
    }
  });
});

describe("mistakes", () => {
  it("in the declaration", () => {
    const cases: [object, RegExp][] = [
      [{ "": { on: ["a"] } }, /name of an index is a string of 1 to/],
      [{ ["x".repeat(201)]: { on: ["a"] } }, /name of an index is a string of 1 to/],
      [{ x: { on: [] } }, /say which fields/],
      [{ x: {} }, /say which fields/],
      [{ x: { on: "a" } }, /say which fields/],
      [{ x: undefined }, /index x: say/],
      [{ x: { on: ["a", "a"] } }, /each field once/],
      [{ x: { on: ["nothing"] } }, /the field "nothing" does not exist/],
      [{ x: { on: ["toString"] } }, /the field "toString" does not exist/],
      [{ x: { on: ["d"] } }, /json field d cannot be indexed/],
      [{ x: { on: ["a"], kind: "tree" } }, /kind is "ordered" or "hash", not "tree"/],
      [{ x: { on: ["a"], unique: 1 } }, /unique is true or false/],
      [{ x: { on: ["a"], where: 1 } }, /unknown option where/],
      [[{ on: ["a"] }], /indexes is an object/],
      [
        Object.fromEntries(Array.from({ length: 33 }, (_, n) => [`x${n}`, { on: ["a"] }])),
        /at most 32 indexes/,
      ],
    ];
    for (const [indexes, message] of cases) {
      const error = failureSync("SITU_SCHEMA", () =>
        table("t", { a: u32(), d: json() }, { key: "a", indexes: indexes as never }),
      );
      expect(error.message).toMatch(message);
    }
    failureSync("SITU_SCHEMA", () => table("t", { a: u32() }, { key: "a", ordered: 1 as never }));
    failureSync("SITU_SCHEMA", () => table("t", { a: u32() }, { key: "a", sorted: 1 } as never));
  });

  it("in options", async () => {
    const Hashed = table("hashed", fields, {
      key: "id",
      indexes: { byOwner: { on: ["owner"] }, both: { on: ["owner", "email"], kind: "hash" } },
    });
    const db = await stores.open({ tables: [Account, Hashed] });
    type Case = [Parameters<typeof failure>[0], Table, unknown, RegExp];
    const cases: Case[] = [
      ["SITU_UNKNOWN_INDEX", Account, { index: "nope" }, /no index "nope" here; it has byOwner, /],
      ["SITU_UNKNOWN_INDEX", Account, { index: "toString", eq: 1 }, /no index "toString"/],
      ["SITU_UNKNOWN_INDEX", Account, { index: 7 }, /no index 7/],
      ["SITU_TYPE", Hashed, { gte: 1 }, /hashed is hashed and has no order for gte.*ordered: true/],
      ["SITU_TYPE", Hashed, { eq: 1 }, /no order for eq/],
      ["SITU_TYPE", Account, { index: "byEmail", gt: "a" }, /hash index and has no order for gt/],
      ["SITU_TYPE", Account, { index: "byEmail" }, /needs eq/],
      ["SITU_TYPE", Account, { index: "byOwnerHash" }, /needs eq/],
      ["SITU_TYPE", Account, { index: "byOwnerHash", eq: 5 }, /expected a string/],
      ["SITU_TYPE", Account, { index: "byEmail", eq: 5 }, /expected a string/],
      ["SITU_TYPE", Hashed, { index: "both", eq: ["a"] }, /a key of 2 values/],
      ["SITU_TYPE", Hashed, { index: "both", eq: "a" }, /a key of 2 values/],
      ["SITU_TYPE", Account, { gte: "1" }, /accounts.*id/],
      ["SITU_TYPE", Account, { gte: [1] }, /accounts.*id/],
      ["SITU_TYPE", Account, { lt: Number.NaN }, /accounts/],
      ["SITU_TYPE", Account, { prefix: 1 }, /prefix/],
      ["SITU_TYPE", Account, { index: "byOwner", eq: ["a"] }, /accounts\.byOwner.*owner/],
      ["SITU_TYPE", Account, { index: "byBalance", eq: 1n }, /accounts\.byBalance/],
      ["SITU_TYPE", Account, { index: "byBalance", eq: [] }, /accounts\.byBalance/],
      ["SITU_TYPE", Account, { index: "byBalance", gt: [1n, "a", 3] }, /accounts\.byBalance/],
      ["SITU_TYPE", Account, { gle: 1 }, /no option gle/],
      ["SITU_TYPE", Account, 5, /options are an object/],
      ["SITU_TYPE", Account, null, /options are an object/],
      ["SITU_TYPE", Account, [], /options are an object/],
    ];
    const onlyScan: Case[] = [
      ["SITU_TYPE", Hashed, { reverse: true }, /no order for reverse/],
      ["SITU_TYPE", Account, { index: "byEmail", eq: "a", reverse: true }, /no order for reverse/],
      ["SITU_TYPE", Account, { reverse: 1 }, /reverse is true or false/],
      ["SITU_TYPE", Account, { limit: -1 }, /limit is a whole number/],
      ["SITU_TYPE", Account, { limit: 1.5 }, /limit is a whole number/],
      ["SITU_TYPE", Account, { limit: "1" }, /limit is a whole number/],
      ["SITU_TYPE", Account, { limit: Number.NaN }, /limit is a whole number/],
    ];
    const uses = {
      scan: (each: Case) => [
        () => db.scan(each[1], each[2] as never),
        () => db.transactSync((tx) => tx.scan(each[1], each[2] as never)),
        () => db.transact((tx) => tx.scan(each[1], each[2] as never).toArray()),
      ],
      count: (each: Case) => [
        () => db.count(each[1], each[2] as never),
        () => db.transactSync((tx) => tx.count(each[1], each[2] as never)),
        () => db.transact((tx) => tx.count(each[1], each[2] as never)),
      ],
    };
    for (const each of [...cases, ...onlyScan]) {
      for (const use of uses.scan(each)) {
        expect((await failure(each[0], use)).message).toMatch(each[3]);
      }
    }
    for (const each of cases) {
      for (const use of uses.count(each)) {
        expect((await failure(each[0], use)).message).toMatch(each[3]);
      }
    }
    failureSync("SITU_TYPE", () => db.count(Account, { limit: 1 } as never));
    const gets: [Parameters<typeof failure>[0], unknown, unknown, RegExp][] = [
      ["SITU_UNKNOWN_INDEX", "a", { index: "nope" }, /no index "nope"/],
      ["SITU_TYPE", "a", { index: "byOwner" }, /not unique.*use scan/],
      ["SITU_TYPE", 5, { index: "byEmail" }, /email: expected a string/],
      ["SITU_TYPE", ["a"], { index: "byEmail" }, /email: expected a string/],
      ["SITU_TYPE", "a", { index: "byBoth" }, /a key of 2 values/],
      ["SITU_TYPE", 1, { reverse: true }, /no option reverse/],
      ["SITU_TYPE", 1, "byEmail", /options are an object/],
    ];
    for (const [code, key, options, message] of gets) {
      const uses = [
        () => db.get(Account, key as never, options as never),
        () => db.transactSync((tx) => tx.get(Account, key as never, options as never)),
        () => db.transact((tx) => tx.get(Account, key as never, options as never)),
      ];
      for (const use of uses) expect((await failure(code, use)).message).toMatch(message);
    }
    const Unknown = table("unknown", fields, { key: "id" });
    failureSync("SITU_UNKNOWN_TABLE", () => db.scan(Unknown));
    failureSync("SITU_UNKNOWN_TABLE", () => db.count(Unknown));
    failureSync("SITU_UNKNOWN_TABLE", () => db.scan(undefined as never));
    expect(compareIndexes(db, Account)).toBe(0);
  });

  it("values that are too long for an index are refused before anything is changed", async () => {
    const db = await stores.open({ tables: [Odd] });
    const row: OddRow = {
      a: 1,
      b: new Uint8Array(),
      position: 1,
      "position'": true,
      c: "short",
      d: 1,
    };
    db.transactSync((tx) => {
      tx.insert(Odd, row);
      const c = "x".repeat(1_100);
      failureSync("SITU_TOO_LARGE", () => tx.insert(Odd, { ...row, a: 2, c }));
      failureSync("SITU_TOO_LARGE", () => tx.put(Odd, { ...row, c }));
      failureSync("SITU_TOO_LARGE", () => tx.update(Odd, [1, row.b], { c }));
      failureSync("SITU_TYPE", () => tx.update(Odd, [1, row.b], { c: 5 as never }));
      failureSync("SITU_TYPE", () => tx.insert(Odd, { ...row, a: 2, c: undefined as never }));
      failureSync("SITU_TYPE", () => tx.insert(Odd, { ...row, a: 2, e: 1 } as never));
      failureSync("SITU_TYPE", () => tx.update(Odd, [1, row.b], { c: "x", a: 2 } as never));
      failureSync("SITU_TYPE", () => tx.update(Odd, [1, row.b], null as never));
    });
    expect(compareIndexes(db, Odd)).toBe(1);
    expect(db.get(Odd, [1, row.b])?.c).toBe("short");
  });
});

describe("opening with other indexes", () => {
  it("another definition under the same name, and another order of rows", async () => {
    const path = stores.folder();
    await stores.open({ path, tables: [Account] });
    const Other = table("accounts", fields, {
      key: "id",
      indexes: { byOwner: { on: ["owner", "id"] }, byEmail: { on: ["email"], kind: "hash" } },
    });
    const error = await failure("SITU_SCHEMA", () => stores.open({ path, tables: [Other] }));
    expect(error.message.split("\n  ").slice(1)).toEqual([
      "~ ordered: true in the store, false here",
      "~ index byOwner: ordered on owner in the store, ordered on owner, id here",
      "~ index byEmail: unique hash on email in the store, hash on email here",
    ]);
  });

  it("indexes that are not declared here are maintained, but cannot be named", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    const Fewer = table("accounts", fields, { key: "id", ordered: true });
    const other = await stores.open({ path, tables: [Fewer] });
    other.transactSync((tx) => {
      for (let id = 0; id < 20; id++) tx.insert(Fewer, account(id, "ada"));
      tx.delete(Fewer, 3);
      tx.update(Fewer, 4, { owner: "bob" });
      failureSync("SITU_UNIQUE", () => tx.update(Fewer, 4, { email: "ada5@x" }));
    });
    failureSync("SITU_UNKNOWN_INDEX", () => other.scan(Fewer, { index: "byOwner" } as never));
    expect(compareIndexes(db, Account)).toBe(19);
    expect(other.stats().tables[0].indexes.map(({ name, state }) => [name, state])).toEqual(
      Account.indexes.map(({ name }) => [name, "ready"]),
    );
    expect(other.stats().tables[0].ordered).toBe(true);
  });
});
