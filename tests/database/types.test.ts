/** The types that callers see are inferred from the table; tsc checks this file. */

import { describe, expect, expectTypeOf, it } from "vitest";
import type { AsyncTransaction } from "../../src/database/async-transaction.ts";
import type { Database } from "../../src/database/database.ts";
import type { Transaction } from "../../src/database/transaction.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import {
  bool,
  bytes,
  f64,
  i32,
  i64,
  json,
  pointer,
  str,
  u8,
  u16,
  u32,
  u64,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

interface Profile {
  readonly tags: string[];
}

const All = table(
  "all",
  {
    id: u32(),
    a: u8(),
    b: u16(),
    c: i32(),
    d: f64(),
    e: bool(),
    f: u64(),
    g: i64(),
    h: str(10),
    i: bytes(),
    j: json<Profile>(),
    k: pointer(),
    l: json(),
  },
  { key: "id" },
);
const Edge = table("edge", { from: u32(), to: u64(), label: str() }, { key: ["to", "from"] });

interface AllRow {
  id: number;
  a: number;
  b: number;
  c: number;
  d: number;
  e: boolean;
  f: bigint;
  g: bigint;
  h: string;
  i: Uint8Array;
  j: Profile;
  k: Pointer | null;
  l: unknown;
}

describe("inferred types", () => {
  it("rows", () => {
    const get = (db: Database) => db.get(All, 1);
    expectTypeOf(get).returns.toEqualTypeOf<AllRow | undefined>();
    const many = (tx: Transaction) => tx.getMany(All, [1, 2]);
    expectTypeOf(many).returns.toEqualTypeOf<(AllRow | undefined)[]>();
    const later = (tx: AsyncTransaction) => tx.get(Edge, [1n, 2]);
    expectTypeOf(later).returns.toEqualTypeOf<
      Promise<{ from: number; to: bigint; label: string } | undefined>
    >();
    expect(All.key).toEqual(["id"]);
  });

  it("keys", () => {
    const single = (db: Database): unknown => [
      db.get(All, 1),
      // @ts-expect-error a u32 key is a number
      db.get(All, "1"),
      // @ts-expect-error a u32 key is not a bigint
      db.get(All, 1n),
      // @ts-expect-error one field, no list
      db.get(All, [1]),
    ];
    const several = (db: Database): unknown => [
      db.get(Edge, [1n, 2]),
      // @ts-expect-error in the order of the key
      db.get(Edge, [2, 1n]),
      // @ts-expect-error all of them
      db.get(Edge, [1n]),
      // @ts-expect-error as a list
      db.get(Edge, 1n),
    ];
    expectTypeOf(single).returns.toBeUnknown();
    expectTypeOf(several).returns.toBeUnknown();
  });

  it("what is written", () => {
    const writes = (tx: Transaction): void => {
      tx.put(Edge, { from: 1, to: 2n, label: "" });
      // @ts-expect-error label is missing
      tx.put(Edge, { from: 1, to: 2n });
      // @ts-expect-error to is a bigint
      tx.insert(Edge, { from: 1, to: 2, label: "" });
      tx.update(Edge, [2n, 1], { label: "x" });
      // @ts-expect-error a key field cannot be updated
      tx.update(Edge, [2n, 1], { from: 3 });
      // @ts-expect-error neither the only one
      tx.update(All, 1, { id: 3 });
      // @ts-expect-error there is no such field
      tx.update(All, 1, { nothing: 3 });
      // @ts-expect-error of another type
      tx.update(All, 1, { f: 3 });
      tx.update(All, 1, { f: 3n, k: null, j: { tags: [] } });
    };
    expectTypeOf(writes).returns.toBeVoid();
  });

  it("tables", () => {
    const wrong = (): void => {
      // @ts-expect-error the key is a field
      table("t", { id: u32() }, { key: "name" });
      // @ts-expect-error all of it
      table("t", { id: u32() }, { key: ["id", "name"] });
    };
    expectTypeOf(wrong).returns.toBeVoid();
  });

  it("what a transaction returns is what its body returns", async () => {
    const db = await stores.open({ tables: [All, Edge] });
    const plain = db.transactSync((tx) => tx.has(All, 1));
    expectTypeOf(plain).toEqualTypeOf<boolean>();
    const awaited = await db.transact(async (tx) => ({ found: await tx.has(All, 1) }));
    expectTypeOf(awaited).toEqualTypeOf<{ found: boolean }>();
    const direct = await db.transact((tx) => tx.getMany(Edge, [[1n, 1]]));
    expectTypeOf(direct).toEqualTypeOf<
      ({ from: number; to: bigint; label: string } | undefined)[]
    >();
    expect([plain, awaited, direct]).toEqual([false, { found: false }, [undefined]]);
  });
});
