/** Index names, keys and bounds are inferred from the table; tsc checks this file. */

import { describe, expect, expectTypeOf, it } from "vitest";
import type { AsyncTransaction } from "../../src/database/async-transaction.ts";
import type { Database } from "../../src/database/database.ts";
import type { AsyncScan, Scan } from "../../src/database/scan.ts";
import type { Transaction } from "../../src/database/transaction.ts";
import { bytes, i64, str, u32 } from "../../src/tables/fields.ts";
import { type InferRow, type Table, table } from "../../src/tables/table.ts";

const Account = table(
  "accounts",
  { id: u32(), owner: str(20), email: str(40), balance: i64(), code: bytes(8) },
  {
    key: "id",
    ordered: true,
    indexes: {
      byOwner: { on: ["owner"] },
      byEmail: { on: ["email"], unique: true, kind: "hash" },
      byBalance: { on: ["balance", "owner"], unique: false, kind: "ordered" },
      byCode: { on: ["code"], unique: true },
      byPair: { on: ["owner", "balance"], kind: "hash" },
    },
  },
);
const Edge = table("edge", { from: u32(), to: str(8) }, { key: ["from", "to"], ordered: true });
const Hashed = table("hashed", { id: u32(), name: str(8) }, { key: "id" });

interface Row {
  id: number;
  owner: string;
  email: string;
  balance: bigint;
  code: Uint8Array;
}

describe("inferred types", () => {
  it("rows", () => {
    expectTypeOf<InferRow<typeof Account>>().toEqualTypeOf<Row>();
    const scan = (db: Database) => db.scan(Account);
    expectTypeOf(scan).returns.toEqualTypeOf<Scan<Row>>();
    const scanTx = (tx: Transaction) => tx.scan(Account, { index: "byOwner" });
    expectTypeOf(scanTx).returns.toEqualTypeOf<Scan<Row>>();
    const scanAsync = (tx: AsyncTransaction) => tx.scan(Account, { gte: 5 });
    expectTypeOf(scanAsync).returns.toEqualTypeOf<AsyncScan<Row>>();
    const count = (tx: AsyncTransaction) => tx.count(Account);
    expectTypeOf(count).returns.toEqualTypeOf<Promise<number>>();
    const get = (db: Database) => db.get(Account, "a", { index: "byEmail" });
    expectTypeOf(get).returns.toEqualTypeOf<Row | undefined>();
    expect(Account.indexes.map(({ kind, unique }) => [kind, unique])).toEqual([
      ["ordered", false],
      ["hash", true],
      ["ordered", false],
      ["ordered", true],
      ["hash", false],
    ]);
  });

  it("bounds", () => {
    const uses = (db: Database, tx: Transaction, later: AsyncTransaction): unknown => [
      db.scan(Account, { gte: 1, lt: 5, reverse: true, limit: 5 }),
      tx.scan(Account, { index: "byOwner", prefix: "a", gt: undefined }),
      later.scan(Account, { index: "byBalance", gte: [5n], lt: [6n, "x"] }),
      db.scan(Account, { index: "byPair", eq: ["a", 5n], limit: 1 }),
      db.scan(Account, { index: "byEmail", eq: "a" }),
      db.scan(Account, { index: "byCode", prefix: new Uint8Array() }),
      db.scan(Edge, { gte: [1], lt: [2, "x"] }),
      db.scan(Edge, { prefix: [1] }),
      db.scan(Hashed, { limit: 5 }),
      db.count(Hashed),
      db.count(Account, { index: "byBalance", eq: [5n] }),
      // @ts-expect-error a u32 key is a number
      db.scan(Account, { gte: "1" }),
      // @ts-expect-error one field, no list
      tx.scan(Account, { gte: [1] }),
      // @ts-expect-error a number has no prefix
      later.scan(Account, { prefix: 1 }),
      // @ts-expect-error there is no such index
      db.scan(Account, { index: "byNothing" }),
      // @ts-expect-error owner is a text
      db.scan(Account, { index: "byOwner", eq: 5 }),
      // @ts-expect-error as a list
      db.scan(Account, { index: "byBalance", eq: 5n }),
      // @ts-expect-error in the order of the index
      db.scan(Account, { index: "byBalance", eq: ["a"] }),
      // @ts-expect-error not more than it has
      db.scan(Account, { index: "byBalance", eq: [5n, "a", 1] }),
      // @ts-expect-error not less than one
      db.scan(Account, { index: "byBalance", eq: [] }),
      // @ts-expect-error a hash index needs eq
      db.scan(Account, { index: "byEmail" }),
      // @ts-expect-error a hash index has no order
      db.scan(Account, { index: "byEmail", eq: "a", reverse: true }),
      // @ts-expect-error a hash index has no order
      db.count(Account, { index: "byEmail", gt: "a" }),
      // @ts-expect-error all of its values
      db.scan(Account, { index: "byPair", eq: ["a"] }),
      // @ts-expect-error a hashed table has no order
      db.scan(Hashed, { gte: 1 }),
      // @ts-expect-error a hashed table has no order
      db.scan(Hashed, { reverse: true }),
      // @ts-expect-error in the order of the key
      db.scan(Edge, { gte: ["x"] }),
      // @ts-expect-error a count has no limit
      db.count(Account, { limit: 5 }),
      // @ts-expect-error there is no such option
      db.scan(Account, { where: 5 }),
    ];
    expectTypeOf(uses).returns.toBeUnknown();
  });

  it("keys of unique indexes", () => {
    const uses = (db: Database, tx: Transaction, later: AsyncTransaction): unknown => [
      db.get(Account, 5),
      tx.get(Account, "a", { index: "byEmail" }),
      later.get(Account, new Uint8Array(), { index: "byCode" }),
      // @ts-expect-error by the key, it is a number
      db.get(Account, "a"),
      // @ts-expect-error email is a text
      tx.get(Account, 5, { index: "byEmail" }),
      // @ts-expect-error it is not unique
      db.get(Account, "a", { index: "byOwner" }),
      // @ts-expect-error there is no such index
      later.get(Account, "a", { index: "byNothing" }),
    ];
    expectTypeOf(uses).returns.toBeUnknown();
  });

  it("tables", () => {
    const wrong = (): void => {
      // @ts-expect-error an index is on fields
      table("t", { id: u32() }, { key: "id", indexes: { x: { on: ["name"] } } });
      // @ts-expect-error of one of two kinds
      table("t", { id: u32() }, { key: "id", indexes: { x: { on: ["id"], kind: "tree" } } });
      // @ts-expect-error true or false
      table("t", { id: u32() }, { key: "id", ordered: 1 });
    };
    expectTypeOf(wrong).returns.toBeVoid();
  });

  it("functions of your own, for any table", () => {
    function all<Row>(db: Database, any: Table<Row>): Row[] {
      return [...db.scan(any), ...db.scan(any, { index: "byName", gte: 1 })];
    }
    const rows = (db: Database) => all(db, Account);
    expectTypeOf(rows).returns.toEqualTypeOf<Row[]>();
  });
});
