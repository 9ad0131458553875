/** The types that callers see are inferred from the table; tsc checks this file. */

import * as ts from "typescript";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { AsyncTransaction } from "../../src/database/async-transaction.ts";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import type { SyncResult } from "../../src/database/transact-options.ts";
import type { Transaction } from "../../src/database/transaction.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import {
  autoIncrement,
  bool,
  bytes,
  enumOf,
  f64,
  i32,
  i53,
  i64,
  json,
  nullable,
  pointer,
  str,
  timestamp,
  u8,
  u16,
  u32,
  u53,
  u64,
  uuid,
} from "../../src/tables/fields.ts";
import { type InferInsert, type InferRow, type Table, table } from "../../src/tables/table.ts";
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

const Task = table(
  "task",
  {
    id: autoIncrement(),
    owner: nullable(uuid()),
    email: nullable(str(20)),
    at: timestamp(),
    due: nullable(timestamp({ as: "number" })),
    state: enumOf("open", "closed"),
    size: u53(),
    delta: i53(),
    extra: json(),
  },
  {
    key: "id",
    indexes: {
      byEmail: { on: ["email"], unique: true },
      byOwner: { on: ["owner", "state"] },
      byDue: { on: ["due"] },
    },
  },
);

describe("types that rows give and take", () => {
  it("are not the same: what is null can be left out, and so can a key that is filled in", () => {
    expectTypeOf<InferRow<typeof Task>>().toEqualTypeOf<{
      id: number;
      owner: string | null;
      email: string | null;
      at: Date;
      due: number | null;
      state: "open" | "closed";
      size: number;
      delta: number;
      extra: unknown;
    }>();
    expectTypeOf<InferInsert<typeof Task>>().toEqualTypeOf<{
      id?: number | undefined;
      owner?: string | null | undefined;
      email?: string | null | undefined;
      at: Date | number;
      due?: Date | number | null | undefined;
      state: "open" | "closed";
      size: number;
      delta: number;
      extra: unknown;
    }>();
    expect(Task.autoKey).toBe("id");
  });

  it("of what is written and returned", () => {
    const row = { at: 5, state: "open", size: 1, delta: 1, extra: 1 } as const;
    const uses = (db: Database, tx: Transaction, later: AsyncTransaction): unknown => {
      expectTypeOf(db.insert(Task, row)).toEqualTypeOf<number>();
      expectTypeOf(tx.insert(Task, row)).toEqualTypeOf<number>();
      expectTypeOf(later.insert(Task, row)).toEqualTypeOf<Promise<number>>();
      expectTypeOf(tx.insert(Edge, { from: 1, to: 2n, label: "" })).toEqualTypeOf<undefined>();
      tx.update(Task, 1, { due: null, at: new Date(), size: undefined });
      return [
        db.put(Task, { ...row, id: 1 }),
        // @ts-expect-error only an insert fills the key in
        db.put(Task, row),
        // @ts-expect-error it is one of two
        db.insert(Task, { ...row, state: "lost" }),
        // @ts-expect-error size is not nullable
        db.update(Task, 1, { size: null }),
        // @ts-expect-error a moment is no text
        db.insert(Task, { ...row, at: "2026-01-05" }),
      ];
    };
    expectTypeOf(uses).returns.toBeUnknown();
  });

  it("of keys and bounds", () => {
    const uses = (db: Database): unknown => [
      db.get(Task, "a", { index: "byEmail" }),
      db.scan(Task, { index: "byOwner", eq: [null, "open"] }),
      db.scan(Task, { index: "byDue", gt: null, lte: new Date() }),
      // @ts-expect-error a unique index has no rows with null
      db.get(Task, null, { index: "byEmail" }),
      // @ts-expect-error state is one of two
      db.scan(Task, { index: "byOwner", eq: [null, "lost"] }),
    ];
    expectTypeOf(uses).returns.toBeUnknown();
  });
});

describe("mistakes that the compiler knows", () => {
  it("a table that was not opened, a misspelt option, an async callback", () => {
    const uses = async (): Promise<unknown> => {
      const db = await open({ path: "x", tables: [All, Task] });
      expectTypeOf(db).toEqualTypeOf<Database<"all" | "task">>();
      const unnamed: Table = Edge;
      return [
        db.get(All, 1),
        db.get(unnamed, 1),
        // @ts-expect-error it was not opened
        db.get(Edge, [1n, 2]),
        // @ts-expect-error nor for transactions
        db.transactSync((tx) => tx.put(Edge, { from: 1, to: 2n, label: "" })),
        // @ts-expect-error asynchronous ones, too
        await db.transact((tx) => tx.get(Edge, [1n, 2])),
        // @ts-expect-error nor for snapshots
        db.snapshot().get(Edge, [1n, 2]),
        db.watch(All),
        db.watch([All, Task] as const),
        // @ts-expect-error nor for feeds
        db.watch(Edge),
        // @ts-expect-error one of several
        db.watch([All, Edge] as const),
        // @ts-expect-error a callback that is async
        db.transactSync(async (tx) => tx.get(All, 1)),
        // @ts-expect-error or that may return a promise
        db.transactSync((tx) => (tx.has(All, 1) ? Promise.resolve(1) : 1)),
        // @ts-expect-error it is memoryBytes
        await open({ path: "x", memoryByte: 5 }),
        // @ts-expect-error not unique
        db.get(Task, [null, "open"], { index: "byOwner" }),
      ];
    };
    expectTypeOf(uses).returns.toEqualTypeOf<Promise<unknown>>();
  });

  it("fields that can be no key, and what cannot be nullable", () => {
    const wrong = (): void => {
      // @ts-expect-error f64
      table("t", { id: f64() }, { key: "id" });
      // @ts-expect-error as part of a key, too
      table("t", { id: u32(), at: json() }, { key: ["id", "at"] });
      // @ts-expect-error of an index, too
      table("t", { id: u32(), at: f64() }, { key: "id", indexes: { byAt: { on: ["at"] } } });
      // @ts-expect-error a key is never null
      table("t", { id: nullable(u32()) }, { key: "id" });
      table("t", { id: u32(), at: timestamp() }, { key: "id", expires: "at" });
      table("t", { id: u32(), at: nullable(u53()) }, { key: "id", expires: "at" });
      // @ts-expect-error a string is no time
      table("t", { id: u32(), at: str() }, { key: "id", expires: "at" });
      // @ts-expect-error json holds null already
      nullable(json());
      // @ts-expect-error of u32 or u53
      autoIncrement(str());
    };
    expectTypeOf(wrong).returns.toBeVoid();
  });

  it("functions of your own pass on what they are given", () => {
    function run<T>(db: Database, callback: (tx: Transaction) => SyncResult<T>): T {
      return db.transactSync(callback);
    }
    function copy<Row>(db: Database, from: Table<Row>, to: Table<Row>): void {
      for (const row of db.scan(from)) db.put(to, row);
    }
    const uses = (db: Database<"all">): number => {
      copy(db, All, All);
      return run(db, () => 1);
    };
    expectTypeOf(uses).returns.toEqualTypeOf<number>();
  });
});

/** What an editor shows of the names in a program: the compiler's own words. */
function hover(program: string): Record<string, string> {
  const root = new URL("../../", import.meta.url).pathname;
  const file = `${root}tests/hover.ts`;
  const host = ts.createCompilerHost({});
  const { getSourceFile, fileExists } = host;
  host.getSourceFile = (path, ...rest) =>
    path === file
      ? ts.createSourceFile(path, program, ts.ScriptTarget.ESNext, true)
      : getSourceFile(path, ...rest);
  host.fileExists = (path) => path === file || fileExists(path);
  const made = ts.createProgram(
    [file],
    {
      strict: true,
      module: ts.ModuleKind.NodeNext,
      target: ts.ScriptTarget.ES2022,
      types: ["node"],
      allowImportingTsExtensions: true,
      noEmit: true,
    },
    host,
  );
  const checker = made.getTypeChecker();
  const shown: Record<string, string> = {};
  const visit = (node: ts.Node): void => {
    if (ts.isVariableDeclaration(node)) {
      shown[node.name.getText()] = checker.typeToString(checker.getTypeAtLocation(node), node);
    }
    ts.forEachChild(node, visit);
  };
  visit(made.getSourceFile(file)!);
  return shown;
}

describe("what an editor shows", () => {
  it("rows are plain objects", () => {
    const program = `
      import { enumOf, nullable, open, str, table, u32 } from "../src/index.ts";
      const Task = table("task", { id: u32(), note: nullable(str()), state: enumOf("a", "b") }, { key: "id" });
      export const db = await open({ path: "x", tables: [Task] });
      export const row = db.get(Task, 1);`;
    expect(hover(program)).toMatchObject({
      row: '{ id: number; note: string | null; state: "a" | "b"; } | undefined',
      db: 'Database<"task">',
    });
  });
});
