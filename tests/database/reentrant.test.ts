/**
 * Code of the caller's that runs in the middle of an operation: getters, proxies, `toJSON`, keys with
 * getters, options with getters. It may use the same transaction, throw, or say something else each
 * time. What is committed is then what a model says, where such code runs before the operation that
 * it belongs to; and rows and indexes are whole.
 */

import { afterEach, describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { graph } from "../../src/database/local/graph/open-graph.ts";
import type { Transaction } from "../../src/database/transaction.ts";
import type { Change, Watch } from "../../src/database/watch.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  autoIncrement,
  bytes,
  i64,
  json,
  str,
  timestamp,
  u8,
  u32,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

interface Row {
  id: number;
  kind: number;
  name: string;
  data: Uint8Array;
  meta: unknown;
  until?: Date;
}
type Key = [string, number];

const FIELDS = { id: u32(), kind: u8(), name: str(20), data: bytes(), meta: json() };
const FIXED = { id: u32(), kind: u8(), name: str(20), data: bytes(12) };
const EXPIRING = { ...FIELDS, until: timestamp() };
const FAR = new Date("2999-01-01T00:00:00Z");
const KEY = ["name", "id"] as const;
const INDEXES = {
  byKind: { on: ["kind"] },
  byData: { on: ["data"] },
  hashed: { on: ["kind"], kind: "hash" },
} as const;

/** All kinds of stores, of rows with a fixed size and without, with indexes and without. */
const TABLES = {
  hopscotch: table("t", FIELDS, { key: KEY }),
  buckets: table("t", FIELDS, { key: KEY, layout: "buckets" }),
  ordered: table("t", FIELDS, { key: KEY, ordered: true }),
  indexed: table("t", FIELDS, { key: KEY, indexes: INDEXES }),
  "ordered, indexed": table("t", FIELDS, { key: KEY, ordered: true, indexes: INDEXES }),
  "fixed hopscotch": table("t", FIXED, { key: KEY }),
  "fixed buckets": table("t", FIXED, { key: KEY, layout: "buckets" }),
  "fixed ordered": table("t", FIXED, { key: KEY, ordered: true }),
  "fixed, indexed": table("t", FIXED, { key: KEY, indexes: INDEXES }),
  robinhood: table("t", FIELDS, { key: KEY, layout: "robinhood" }),
  "fixed robinhood": table("t", FIXED, { key: KEY, layout: "robinhood" }),
  device: table("t", FIELDS, { key: KEY, storage: "device" }),
  "ordered, on a device": table("t", FIELDS, { key: KEY, storage: "device", ordered: true }),
  expiring: table("t", EXPIRING, { key: KEY, expires: "until", indexes: INDEXES }),
  watched: table("t", FIELDS, { key: KEY, indexes: INDEXES }),
};

/** The database, as plain as can be. A transaction that throws leaves it as it was. */
class Model {
  rows = new Map<string, Row>();

  static key(name: string, id: number): string {
    return `${name} ${id}`;
  }

  put(row: Row): void {
    this.rows.set(Model.key(row.name, row.id), row);
  }

  update([name, id]: Key, changes: Partial<Row>): boolean {
    const before = this.rows.get(Model.key(name, id));
    if (before !== undefined) this.put({ ...before, ...changes });
    return before !== undefined;
  }
}

const NAMES = ["a", "bb", "ünï", "a long name of its own"].map((name) => name.slice(0, 18));

/** A value that does something when JSON asks for it. */
function jsonBy(does: () => unknown, value: unknown): { toJSON(): unknown } {
  return {
    toJSON: () => {
      does();
      return value;
    },
  };
}

/** Random operations of which each may run others in its getters, `toJSON` and keys. */
class Storm {
  readonly #db: Database;
  readonly #table: (typeof TABLES)["hopscotch"];
  readonly #isFixed: boolean;
  readonly #isExpiring: boolean;
  readonly #random: Random;
  readonly model = new Model();
  #depth = 0;
  ran = 0;

  constructor(db: Database, name: keyof typeof TABLES, seed: number) {
    this.#db = db;
    this.#table = TABLES[name] as never;
    this.#isFixed = name.startsWith("fixed");
    this.#isExpiring = name === "expiring";
    this.#random = new Random(seed);
  }

  /** Some operations, and what the model makes of them. */
  operations(tx: Transaction, most: number): void {
    const count = 1 + this.#random.below(most);
    for (let i = 0; i < count; i++) this.#operate(tx);
  }

  #operate(tx: Transaction): void {
    this.ran++;
    const wanted = this.#table;
    const kind = this.#random.below(10);
    if (kind < 4) {
      const row = this.#row();
      tx.put(wanted, this.#odd(tx, row) as never);
      this.model.put(row);
    } else if (kind < 7) {
      const [name, id] = this.#key();
      const { id: _id, name: _name, ...all } = this.#row();
      const changes = Object.fromEntries(
        Object.entries(all).filter(() => this.#random.below(3) > 0),
      ) as Partial<Row>;
      // Which of the two comes first is not promised: both before the operation is.
      const oddChanges = this.#odd(tx, changes);
      const oddKey = this.#oddKey(tx, [name, id]);
      let found = true;
      try {
        tx.update(wanted, oddKey as never, oddChanges as never);
      } catch (error) {
        if ((error as { code?: string }).code !== "SITU_MISSING") throw error;
        found = false;
      }
      expect(found).toBe(this.model.update([name, id], changes));
    } else if (kind < 8) {
      const [name, id] = this.#key();
      const removed = tx.delete(wanted, this.#oddKey(tx, [name, id]) as never);
      expect(removed).toBe(this.model.rows.delete(Model.key(name, id)));
    } else if (kind < 9) {
      const [name, id] = this.#key();
      const row = tx.get(wanted, this.#oddKey(tx, [name, id]) as never);
      expect(row).toEqual(this.#expected(this.model.rows.get(Model.key(name, id))));
    } else {
      const keys = Array.from({ length: 1 + this.#random.below(3) }, () => this.#key());
      const rows = tx.getMany(wanted, keys.map((key) => this.#oddKey(tx, key)) as never);
      expect(rows.length).toBe(keys.length);
    }
  }

  #key(): Key {
    return [NAMES[this.#random.below(NAMES.length)], this.#random.below(6)];
  }

  #row(): Row {
    const [name, id] = this.#key();
    const length = this.#random.below(12);
    const row: Row = {
      id,
      kind: this.#random.below(4),
      name,
      data: Uint8Array.from({ length }, () => this.#random.below(256)),
      meta: { text: "x".repeat(this.#random.below(300)), number: this.#random.below(1_000) },
    };
    if (this.#isFixed) delete (row as Partial<Row>).meta;
    if (this.#isExpiring) row.until = new Date(FAR.getTime() + this.#random.below(1_000));
    return row;
  }

  #expected(row: Row | undefined): Row | undefined {
    return row;
  }

  /** Something that another operation is run by. */
  #inner(tx: Transaction): void {
    if (this.#depth >= 3 || this.#random.below(3) > 0) return;
    this.#depth++;
    try {
      const kind = this.#random.below(6);
      if (kind === 0) {
        failureSync("SITU_NESTED", () => this.#db.get(this.#table, this.#key() as never));
      } else if (kind === 1) {
        failureSync("SITU_NESTED", () => this.#db.transactSync(() => {}));
      } else if (kind === 2) {
        using snapshot = this.#db.snapshot();
        snapshot.get(this.#table, this.#key() as never);
      } else {
        this.operations(tx, 2);
      }
    } finally {
      this.#depth--;
    }
  }

  /** The same values behind getters, a proxy, or with a `toJSON`; each is given once. */
  #odd(tx: Transaction, values: Partial<Row>): object {
    const odd: Record<string, unknown> = {};
    const kind = this.#random.below(3);
    for (const [name, value] of Object.entries(values)) {
      const said =
        name === "meta" && this.#random.below(2) === 0
          ? jsonBy(() => this.#inner(tx), value)
          : value;
      let isFirst = true;
      const get = (): unknown => {
        this.#inner(tx);
        const first = isFirst;
        isFirst = false;
        // Who asks again gets something else.
        return first || name === "meta" ? said : name === "data" ? new Uint8Array(1) : undefined;
      };
      if (kind === 0) odd[name] = said;
      else Object.defineProperty(odd, name, { enumerable: true, configurable: true, get });
    }
    if (kind < 2) return odd;
    return new Proxy(odd, {
      ownKeys: (target) => {
        this.#inner(tx);
        return Reflect.ownKeys(target);
      },
      getPrototypeOf: (target) => {
        this.#inner(tx);
        return Reflect.getPrototypeOf(target);
      },
    });
  }

  #oddKey(tx: Transaction, key: Key): unknown {
    if (this.#random.below(2) === 0) return key;
    const odd: unknown[] = [];
    key.forEach((value, i) => {
      let isFirst = true;
      const get = (): unknown => {
        this.#inner(tx);
        const first = isFirst;
        isFirst = false;
        return first ? value : i === 0 ? "other" : 77;
      };
      Object.defineProperty(odd, i, { enumerable: true, configurable: true, get });
    });
    return odd;
  }
}

describe.each(Object.keys(TABLES) as (keyof typeof TABLES)[])("%s", (name) => {
  const wanted = TABLES[name];

  it.each([
    ["strict-serializable", 1],
    ["snapshot", 2],
  ] as const)("commits what a model says, isolation %s", async (isolation, seed) => {
    const durability = name === "watched" ? "lazy" : "none";
    const db: Database = await stores.open({ tables: [wanted], durability });
    const watch = name === "watched" ? db.watch(TABLES.watched) : undefined;
    const storm = new Storm(db, name, seed);
    for (let i = 0; i < 60; i++) {
      const before = new Map(storm.model.rows);
      const gives = i % 7 !== 3;
      try {
        db.transactSync(
          (tx) => {
            // The callback may be run again.
            storm.model.rows = new Map(before);
            storm.operations(tx, 6);
            if (!gives) throw new Error("given up");
          },
          { isolation },
        );
        expect(gives).toBe(true);
      } catch (error) {
        if (gives) throw error;
        storm.model.rows = before;
      }
      const rows = new Map(
        db
          .scan(wanted as (typeof TABLES)["hopscotch"])
          .toArray()
          .map((row) => [`${row.name} ${row.id}`, row]),
      );
      expect(rows).toEqual(storm.model.rows);
    }
    expect(storm.ran).toBeGreaterThan(300);
    expect((await db.verify()).problems).toEqual([]);
    if (watch !== undefined) expect(await replayed(db, watch)).toEqual(storm.model.rows);
  });
});

/** What the changes of a table come to, read up to one that is made now. */
async function replayed(db: Database, watch: Watch<Change>): Promise<Map<string, unknown>> {
  const last = { id: 0, kind: 0, name: "the last", data: new Uint8Array(), meta: null };
  db.transactSync((tx) => tx.put(TABLES.watched, last));
  const rows = new Map<string, unknown>();
  for await (const { type, key, row } of watch) {
    const [name, id] = key as Key;
    if (name === last.name) break;
    if (type === "delete") rows.delete(Model.key(name, id));
    else rows.set(Model.key(name, id), row);
  }
  return rows;
}

describe("one by one", () => {
  afterEach(() => {
    delete (Object.prototype as { toJSON?: unknown }).toJSON;
  });

  const Doc = table("doc", { id: u32(), a: json(), b: json(), n: i64() }, { key: "id" });

  it("a toJSON that puts another row", async () => {
    const db = await stores.open({ tables: [Doc] });
    const inner = { id: 7, a: "seven", b: [7], n: 7n };
    db.transactSync((tx) => {
      const a = jsonBy(() => tx.put(Doc, inner), "six");
      tx.put(Doc, { id: 6, a, b: [6], n: 6n });
    });
    expect(db.get(Doc, 6)).toEqual({ id: 6, a: "six", b: [6], n: 6n });
    expect(db.get(Doc, 7)).toEqual(inner);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("a toJSON of all objects that changes the row that is being updated", async () => {
    const db = await stores.open({ tables: [Doc] });
    db.transactSync((tx) => tx.put(Doc, { id: 1, a: { x: 1 }, b: { y: 1 }, n: 1n }));
    db.transactSync((tx) => {
      let isBusy = false;
      Object.defineProperty(Object.prototype, "toJSON", {
        configurable: true,
        value(this: unknown) {
          if (isBusy) return this;
          isBusy = true;
          tx.update(Doc, 1, { n: 2n });
          tx.delete(Doc, 99);
          isBusy = false;
          return this;
        },
      });
      tx.update(Doc, 1, { a: { x: 2 } });
      delete (Object.prototype as { toJSON?: unknown }).toJSON;
    });
    expect(db.get(Doc, 1)).toEqual({ id: 1, a: { x: 2 }, b: { y: 1 }, n: 2n });
  });

  it("a row that is missing: its error does not ask the key again", async () => {
    const Pair = table("pair", { a: u32(), b: u32(), n: u32() }, { key: ["a", "b"] });
    const db = await stores.open({ tables: [Pair] });
    db.transactSync((tx) => {
      let asked = 0;
      const key = Object.defineProperty([1, 2], 1, {
        get: () => {
          if (++asked > 1) tx.put(Pair, { a: 1, b: 2, n: 1 });
          return 2;
        },
      }) as [number, number];
      const error = failureSync("SITU_MISSING", () => tx.update(Pair, key, { n: 2 }));
      expect(error).toMatchObject({ table: "pair", key: [1, 2] });
      expect(error.message).toContain("key 1,2;");
      expect(asked).toBe(1);
    });
    expect(db.get(Pair, [1, 2])).toBeUndefined();
  });

  it("a row and a key are asked once also where a conflict is to be told", async () => {
    const Pair = table("pair", { a: u32(), b: u32(), n: u32() }, { key: ["a", "b"] });
    const db = await stores.open({ tables: [Pair] });
    db.transactSync((tx) => tx.put(Pair, { a: 0, b: 0, n: 0 }));
    let attempts = 0;
    let asked: string[] = [];
    let reach = (): void => {};
    let goOn = (): void => {};
    const reached = new Promise<void>((resolve) => {
      reach = resolve;
    });
    const changed = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const running = db.transact(async (tx) => {
      /** Says it once; whoever asks again hears something else. */
      const once = <T extends object>(what: string, of: T, name: keyof T): T => {
        const value = of[name];
        let isFirst = true;
        const get = (): unknown => {
          asked.push(what);
          const said = isFirst ? value : 77;
          isFirst = false;
          return said;
        };
        return Object.defineProperty(of, name, { enumerable: true, get });
      };
      asked = [];
      const before = await tx.get(Pair, [0, 0]);
      attempts++;
      reach();
      await changed;
      await tx.put(Pair, once("put", { a: 1, b: 1, n: 1 }, "a"));
      await tx.insert(Pair, once("insert", { a: 1, b: 2, n: 1 }, "b"));
      const key = (): [number, number] => [1, 1];
      await tx.update(Pair, once("update", key(), 1), { n: 2 });
      expect(await tx.get(Pair, once("get", key(), 1))).toEqual({ a: 1, b: 1, n: 2 });
      expect(await tx.has(Pair, once("has", key(), 1))).toBe(true);
      expect(await tx.delete(Pair, once("delete", [1, 2], 1))).toBe(true);
      await tx.put(Pair, { a: 0, b: 0, n: (before?.n ?? 0) + 1 });
    });
    await reached;
    db.transactSync((tx) => tx.put(Pair, { a: 0, b: 0, n: 1 }));
    goOn();
    await running;
    expect(attempts).toBe(2);
    expect(asked).toEqual(["put", "insert", "update", "get", "has", "delete"]);
    expect(db.get(Pair, [0, 0])).toEqual({ a: 0, b: 0, n: 2 });
    expect(db.get(Pair, [1, 1])).toEqual({ a: 1, b: 1, n: 2 });
    expect(db.get(Pair, [1, 2])).toBeUndefined();
  });

  it("a key that is counted is asked once by put", async () => {
    const Job = table("job", { id: autoIncrement(u32()), n: u32() }, { key: "id" });
    const db = await stores.open({ tables: [Job] });
    db.transactSync((tx) => {
      let asked = 0;
      const row = {
        get id(): number {
          return ++asked === 1 ? 5_000 : 4_000_000_000;
        },
        n: 1,
      };
      tx.put(Job, row);
      expect(asked).toBe(1);
    });
    const next = db.transactSync((tx) => tx.insert(Job, { n: 2 }));
    expect(next).toBeGreaterThan(5_000);
    expect(next).toBeLessThan(100_000);
  });

  it("a row's prototype is none of its fields", async () => {
    const Job = table("job", { id: autoIncrement(u32()), n: u32() }, { key: "id" });
    const db = await stores.open({ tables: [Job] });
    const row = JSON.parse('{ "__proto__": { "n": 7 } }') as { n: number };
    db.transactSync((tx) => {
      failureSync("SITU_TYPE", () => tx.insert(Job, row));
      failureSync("SITU_TYPE", () => tx.put(Job, { id: 1, ...row }));
    });
    expect(db.count(Job)).toBe(0);
  });

  it("what such code throws comes out, and nothing is changed", async () => {
    const db = await stores.open({ tables: [Doc] });
    const mine = new Error("mine");
    const fails = (): never => {
      throw mine;
    };
    for (const row of [
      { id: 1, a: { toJSON: fails }, b: 1, n: 1n },
      Object.defineProperty({ id: 1, a: 1, b: 1 }, "n", { enumerable: true, get: fails }),
      new Proxy({ id: 1, a: 1, b: 1, n: 1n }, { ownKeys: fails }),
    ]) {
      db.transactSync((tx) => {
        tx.put(Doc, { id: 2, a: 1, b: 1, n: 1n });
        expect(() => tx.put(Doc, row as never)).toThrow(mine);
      });
    }
    expect(db.get(Doc, 1)).toBeUndefined();
    expect(db.get(Doc, 2)).toEqual({ id: 2, a: 1, b: 1, n: 1n });
  });

  it("bytes that lie about their length, or that another getter takes away", async () => {
    const File = table("file", { id: u32(), data: bytes(), small: bytes(8) }, { key: "id" });
    const db = await stores.open({ tables: [File] });
    const data = Uint8Array.of(1, 2, 3);
    Object.defineProperty(data, "length", { value: 1_000 });
    class Odd extends Uint8Array {
      override get length(): number {
        return 100;
      }
    }
    db.transactSync((tx) => tx.put(File, { id: 1, data, small: new Odd([4, 5]) }));
    expect(db.get(File, 1)).toEqual({
      id: 1,
      data: Uint8Array.of(1, 2, 3),
      small: Uint8Array.of(4, 5),
    });
    const proxied = new Proxy(Uint8Array.of(1), {});
    failureSync("SITU_TYPE", () =>
      db.transactSync((tx) => tx.put(File, { id: 2, data: proxied, small: data })),
    );
    const going = new Uint8Array(4);
    const row = {
      id: 2,
      data: going,
      get small(): Uint8Array {
        structuredClone(going.buffer, { transfer: [going.buffer] });
        return Uint8Array.of(1);
      },
    };
    const error = failureSync("SITU_TYPE", () => db.transactSync((tx) => tx.put(File, row)));
    expect(error.message).toMatch(/file\.data: the memory of these bytes/);
    expect(db.get(File, 2)).toBeUndefined();
  });

  it("a snapshot's key that reads from another snapshot", async () => {
    const Pair = table("pair", { a: u32(), b: u32(), n: u32() }, { key: ["a", "b"] });
    const db = await stores.open({ tables: [Pair] });
    db.transactSync((tx) => tx.put(Pair, { a: 1, b: 1, n: 1 }));
    using old = db.snapshot();
    db.transactSync((tx) => tx.put(Pair, { a: 1, b: 1, n: 2 }));
    using fresh = db.snapshot();
    const key = (): [number, number] =>
      Object.defineProperty([1, 1], 1, {
        get: () => {
          expect(fresh.get(Pair, [1, 1])?.n).toBe(2);
          expect(db.get(Pair, [1, 1])?.n).toBe(2);
          return 1;
        },
      }) as [number, number];
    expect(old.get(Pair, key())?.n).toBe(1);
    expect(old.getMany(Pair, [key(), [1, 1]]).map((row) => row?.n)).toEqual([1, 1]);
    expect(old.has(Pair, key())).toBe(true);
  });

  it("an object of a graph whose data adds others", async () => {
    const db = await stores.open({ memoryBytes: 64 * MIB });
    const g = graph(db, {
      objects: { user: { name: str() } },
      associations: { follows: { from: "user", to: "user", data: { note: str() } } },
    });
    db.transactSync((tx) => {
      const inTx = g.in(tx);
      const named = (name: string, does: () => unknown): { name: string } =>
        Object.defineProperty({ name: "" }, "name", {
          enumerable: true,
          get: () => {
            does();
            return name;
          },
        });
      const second = (): unknown => inTx.objAdd("user", { name: "two" }, { id: 2 });
      inTx.objAdd("user", named("one", second), { id: 1 });
      const third = (): unknown => inTx.objAdd("user", { name: "three" }, { id: 3 });
      inTx.objUpdate("user", 2, named("second", third));
    });
    expect([1, 2, 3].map((id) => g.objGet(id)?.data)).toEqual([
      { name: "one" },
      { name: "second" },
      { name: "three" },
    ]);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("bounds with getters that scan", async () => {
    const Pair = table("pair", { a: u32(), b: u32() }, { key: ["a", "b"], ordered: true });
    const db = await stores.open({ tables: [Pair] });
    db.transactSync((tx) => {
      for (let i = 0; i < 100; i++) tx.put(Pair, { a: i % 10, b: i });
    });
    const bound = (a: number, b: number): [number, number] =>
      Object.defineProperty([a, b], 1, {
        get: () => {
          expect(db.scan(Pair, { gte: [9, 0] }).toArray().length).toBe(10);
          return b;
        },
      }) as [number, number];
    const rows = db.scan(Pair, { gte: bound(3, 50), lte: bound(3, 80) }).toArray();
    expect(rows.map(({ b }) => b)).toEqual([53, 63, 73]);
  });
});

describe("transact", () => {
  it("the same in operations that are queued", async () => {
    const wanted = TABLES.indexed;
    const db = await stores.open({ tables: [wanted] });
    const row = (id: number): Row => ({
      id,
      kind: id % 3,
      name: "a",
      data: Uint8Array.of(id),
      meta: { id },
    });
    await db.transact(async (tx) => {
      const later: Promise<void>[] = [];
      const odd = {
        ...row(1),
        get kind(): number {
          later.push(tx.put(wanted, row(2)));
          return 1;
        },
        meta: jsonBy(() => later.push(tx.put(wanted, row(3))), { id: 1 }),
      };
      await tx.put(wanted, odd);
      await Promise.all(later);
    });
    const all = db.scan(wanted).toArray();
    expect(all.sort((a, b) => a.id - b.id)).toEqual([row(1), row(2), row(3)]);
    expect((await db.verify()).problems).toEqual([]);
  });
});
