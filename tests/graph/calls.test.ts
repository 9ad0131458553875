/** TAO's calls on one machine: what they return, what they refuse, and what becomes of deleted objects. */

import { describe, expect, expectTypeOf, it } from "vitest";
import { graph } from "../../src/database/local/graph/open-graph.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { readIdentity, removeMemory } from "../../src/folder/store-files.ts";
import { Pointer } from "../../src/memory/pointer.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Score = table("score", { id: u32(), points: u32() }, { key: "id" });

const social = (db: LocalDatabase) =>
  graph(db, {
    objects: { user: { name: str(40) }, post: { text: str() } },
    associations: {
      follows: { from: "user", to: "user", inverse: "followedBy" },
      friend: { from: "user", to: "user", inverse: "friend", data: { since: u32() } },
      wrote: { from: "user", to: "post", inverse: "author" },
      likes: { from: "user", data: { stars: u32() } },
      loves: { from: "user", data: { stars: u32() } },
    },
  });

const opened = async (options = {}) => {
  const db = await stores.open({ tables: [Score], memoryBytes: 64 * MIB, ...options });
  return { db, g: social(db) };
};

describe("objects", () => {
  it("are added, read, changed and deleted", async () => {
    const { g } = await opened();
    const ada = g.objAdd("user", { name: "ada" });
    const post = g.objAdd("post", { text: "hello" });
    expect(post).not.toBe(ada);
    expect(g.objGet("user", ada)).toEqual({ name: "ada" });
    expect(g.objGet("post", ada)).toBeUndefined();
    expect(g.objGet(post)).toEqual({ id: post, kind: "post", data: { text: "hello" } });
    const long = "x".repeat(5_000);
    g.objUpdate("post", post, { text: long });
    expect(g.objGet("post", post)).toEqual({ text: long });
    g.objUpdate("post", post, { text: undefined });
    g.objUpdate("post", post, { text: "short" });
    expect(g.objGet(post)?.data).toEqual({ text: "short" });
    expect(await g.objDelete("post", post)).toEqual({ deleted: true, edges: 0 });
    expect(await g.objDelete("post", post)).toEqual({ deleted: false, edges: 0 });
    expect(g.objGet(post)).toBeUndefined();
    failureSync("SITU_MISSING", () => g.objUpdate("post", post, { text: "" }));
    failureSync("SITU_MISSING", () => g.objUpdate("post", ada, { text: "" }));
    expect([...g.ids()]).toEqual([ada]);
  });

  it("may have ids of the caller's", async () => {
    const { g } = await opened();
    expect(g.objAdd("user", { name: "a" }, { id: 1_000_000 })).toBe(1_000_000);
    failureSync("SITU_EXISTS", () => g.objAdd("user", { name: "b" }, { id: 1_000_000 }));
    expect(g.objAdd("user", { name: "c" })).toBeGreaterThan(1_000_000);
    const last = Number.MAX_SAFE_INTEGER;
    g.objAdd("user", { name: "d" }, { id: last - 1 });
    expect(g.objGet("user", last - 1)).toEqual({ name: "d" });
  });
});

describe("edges", () => {
  it("have inverses, symmetric ones themselves", async () => {
    const { g } = await opened();
    const [a, b] = ["a", "b"].map((name) => g.objAdd("user", { name }));
    expect(g.assocAdd(a, "follows", b, 5)).toBe(true);
    expect(g.assocAdd(a, "follows", b, 6)).toBe(false);
    expect(g.assocRange(b, "followedBy", 0, 10)).toEqual([{ id2: a, time: 6, data: {} }]);
    expect(g.assocDelete(b, "followedBy", a)).toBe(true);
    expect(g.assocCount(a, "follows")).toBe(0);
    expect(g.assocDelete(a, "follows", b)).toBe(false);
    g.assocAdd(a, "friend", b, 1, { since: 1999 });
    expect(g.assocGet(b, "friend", a)).toEqual({ id2: a, time: 1, data: { since: 1999 } });
    g.assocAdd(a, "friend", a, 2, { since: 0 });
    expect(g.assocCount(a, "friend")).toBe(2);
    g.assocAdd(a, "follows", a, 2);
    expect(g.assocCount(a, "followedBy")).toBe(1);
    expect(g.assocDelete(a, "friend", a)).toBe(true);
    expect(g.assocCount(a, "friend")).toBe(1);
  });

  it("are found by their targets, newest first", async () => {
    const { g } = await opened();
    const a = g.objAdd("user", { name: "a" });
    for (let id = 1; id <= 5; id++) g.assocAdd(a, "likes", 100 + id, id, { stars: id });
    const edges = g.assocGet(a, "likes", [101, 105, 103, 999, 105]);
    expect(edges.map(({ id2 }) => id2)).toEqual([105, 103, 101]);
    expect(g.assocGet(a, "likes", [999])).toEqual([]);
    expect(g.assocGet(a, "likes", new Set<number>())).toEqual([]);
    expect(g.assocTimeRange(a, "likes", 4, 2, 2).map(({ time }) => time)).toEqual([4, 3]);
    expect(g.assocRange(a, "likes", 3, 10).map(({ time }) => time)).toEqual([2, 1]);
    expect(g.assocRange(a, "likes", 0, 0)).toEqual([]);
    expect(g.assocRange(777, "likes", 0, 10)).toEqual([]);
  });

  it("have the time of the call, if none is given", async () => {
    const { g } = await opened();
    const [a, b] = ["a", "b"].map((name) => g.objAdd("user", { name }));
    const before = Date.now();
    g.assocAdd(a, "follows", b);
    const [{ time }] = g.assocRange(a, "follows", 0, 1);
    expect(time).toBeGreaterThanOrEqual(before - 1_000);
  });

  it("change their type with their time and data", async () => {
    const { g } = await opened();
    const [a, b] = ["a", "b"].map((name) => g.objAdd("user", { name }));
    g.assocAdd(a, "likes", b, 3, { stars: 4 });
    expect(g.assocChangeType(a, "likes", b, "loves")).toBe(true);
    expect(g.assocChangeType(a, "likes", b, "loves")).toBe(false);
    expect(g.assocChangeType(a, "loves", b, "loves")).toBe(true);
    expect(g.assocGet(a, "loves", b)).toEqual({ id2: b, time: 3, data: { stars: 4 } });
    expect(g.assocCount(a, "likes")).toBe(0);
    const other = "friend" as "loves";
    failureSync("SITU_TYPE", () => g.assocChangeType(a, "loves", b, other));
  });

  it("need their ends", async () => {
    const { g } = await opened();
    const user = g.objAdd("user", { name: "a" });
    const post = g.objAdd("post", { text: "" });
    failureSync("SITU_MISSING", () => g.assocAdd(999, "follows", user));
    failureSync("SITU_MISSING", () => g.assocAdd(user, "follows", 999));
    failureSync("SITU_TYPE", () => g.assocAdd(user, "follows", post));
    failureSync("SITU_TYPE", () => g.assocAdd(post, "wrote", post));
    expect(g.assocAdd(user, "likes", 999, 1, { stars: 1 })).toBe(true);
    expect(g.assocDelete(999, "follows", user)).toBe(false);
  });
});

describe("transactions and snapshots", () => {
  it("change the graph and tables together, or neither", async () => {
    const { db, g } = await opened();
    const run = (fails: boolean): number =>
      db.transactSync((tx) => {
        const inside = g.in(tx);
        const id = inside.objAdd("user", { name: "x" });
        const other = inside.objAdd("user", { name: "y" });
        inside.assocAdd(id, "follows", other, 1);
        tx.put(Score, { id: 1, points: inside.assocCount(other, "followedBy") });
        expect(inside.objGet("user", id)).toEqual({ name: "x" });
        if (fails) throw new Error("not this one");
        return id;
      });
    expect(() => run(true)).toThrow("not this one");
    expect(db.get(Score, 1)).toBeUndefined();
    const id = run(false);
    expect(db.get(Score, 1)).toEqual({ id: 1, points: 1 });
    expect(g.assocCount(id, "follows")).toBe(1);
  });

  it("may await", async () => {
    const { db, g } = await opened();
    const id = await db.transact(async (tx) => {
      const inside = g.in(tx);
      const made = await inside.objAdd("user", { name: "x" });
      await inside.assocAdd(made, "likes", 5, 1, { stars: 2 });
      await tx.put(Score, { id: 2, points: await inside.assocCount(made, "likes") });
      return made;
    });
    expect(db.get(Score, 2)).toEqual({ id: 2, points: 1 });
    await using tx = await db.begin();
    await g.in(tx).assocDelete(id, "likes", 5);
    expect(g.assocCount(id, "likes")).toBe(1);
    await tx.commit();
    expect(g.assocCount(id, "likes")).toBe(0);
  });

  it("read what a snapshot saw, and write over it as snapshots do", async () => {
    const { db, g } = await opened();
    const [a, b] = ["a", "b"].map((name) => g.objAdd("user", { name }));
    g.assocAdd(a, "follows", b, 1);
    using snapshot = db.snapshot();
    g.objUpdate("user", a, { name: "x".repeat(40) });
    g.assocDelete(a, "follows", b);
    await g.objDelete("user", b);
    const then = g.in(snapshot);
    expect(then.objGet("user", a)).toEqual({ name: "a" });
    expect(then.objGet("user", b)).toEqual({ name: "b" });
    expect(then.assocRange(a, "follows", 0, 1)).toEqual([{ id2: b, time: 1, data: {} }]);
    expect(Object.keys(then)).not.toContain("assocAdd");
    const options = { isolation: "snapshot" } as const;
    const seen = db.transactSync((tx) => {
      g.in(tx).assocAdd(a, "likes", 1, 1, { stars: 1 });
      return g.in(tx).assocCount(a, "likes");
    }, options);
    expect(seen).toBe(1);
  });

  it("take no reads beside them", async () => {
    const { db, g } = await opened();
    db.transactSync(() => {
      failureSync("SITU_NESTED", () => g.objGet(1));
      failureSync("SITU_NESTED", () => g.assocCount(1, "follows"));
      failureSync("SITU_NESTED", () => g.objAdd("user", { name: "" }));
    });
    failureSync("SITU_TYPE", () => g.in({} as never));
    failureSync("SITU_TYPE", () => g.in(null as never));
    await db.close();
    failureSync("SITU_CLOSED", () => g.objGet(1));
  });
});

describe("deleting an object", () => {
  it("removes its edges at both ends", async () => {
    const { db, g } = await opened();
    const [a, b, c] = ["a", "b", "c"].map((name) => g.objAdd("user", { name }));
    g.assocAdd(a, "follows", b, 1);
    g.assocAdd(c, "follows", a, 2);
    g.assocAdd(a, "friend", a, 2, { since: 1 });
    g.assocAdd(c, "likes", a, 3, { stars: 1 });
    expect(db.transactSync((tx) => g.in(tx).objDelete("user", a))).toEqual({
      deleted: true,
      edges: 3,
    });
    expect(g.assocCount(b, "followedBy")).toBe(0);
    expect(g.assocCount(c, "follows")).toBe(0);
    expect(g.assocRange(a, "follows", 0, 1)).toEqual([]);
    // Nobody keeps who likes it: such an edge stays.
    expect(g.assocCount(c, "likes")).toBe(1);
    failureSync("SITU_MISSING", () => g.assocAdd(c, "follows", a));
    expect((await db.verify()).problems).toEqual([]);
  });

  it("keeps them if asked to, and takes the object back", async () => {
    const { g } = await opened();
    const [a, b] = ["a", "b"].map((name) => g.objAdd("user", { name }));
    g.assocAdd(a, "follows", b, 1);
    expect(await g.objDelete("user", a, { edges: "keep" })).toEqual({ deleted: true, edges: 0 });
    expect(g.objGet(a)).toBeUndefined();
    expect(g.assocCount(a, "follows")).toBe(1);
    expect(g.assocAdd(a, "likes", 7, 1, { stars: 1 })).toBe(true);
    failureSync("SITU_MISSING", () => g.objUpdate("user", a, { name: "x" }));
    expect(g.objAdd("user", { name: "again" }, { id: a })).toBe(a);
    expect(g.objGet("user", a)).toEqual({ name: "again" });
    expect(g.assocCount(a, "likes")).toBe(1);
  });

  it("removes later what was kept", async () => {
    const { db, g } = await opened();
    const [a, b] = ["a", "b"].map((name) => g.objAdd("user", { name }));
    const keep = { edges: "keep" } as const;
    const cells = async () => (await db.verify()).tables.map(({ rows }) => rows);
    const before = await cells();
    const c = g.objAdd("user", { name: "c" });
    g.assocAdd(c, "follows", a, 1);
    g.assocAdd(b, "follows", c, 1);
    expect(await g.objDelete("user", c, keep)).toEqual({ deleted: true, edges: 0 });
    expect(await g.objDelete("user", c, keep)).toEqual({ deleted: false, edges: 0 });
    expect(await g.objDelete("post", c)).toEqual({ deleted: false, edges: 0 });
    // Its edges are those of a user.
    failureSync("SITU_TYPE", () => g.objAdd("post", { text: "" }, { id: c }));
    expect(await g.objDelete("user", c)).toEqual({ deleted: false, edges: 2 });
    expect(g.assocCount(a, "followedBy") + g.assocCount(b, "follows")).toBe(0);
    expect(await g.objDelete("user", c)).toEqual({ deleted: false, edges: 0 });
    expect(await cells()).toEqual(before);
    failureSync("SITU_MISSING", () => g.assocAdd(c, "follows", a));
    // Without edges, or with those that it may have, it may come back as another kind.
    const d = g.objAdd("user", { name: "d" });
    await g.objDelete("user", d, keep);
    expect(g.objAdd("post", { text: "d" }, { id: d })).toBe(d);
    // In several steps.
    for (let i = 1; i <= 1_100; i++) g.assocAdd(a, "likes", i, i, { stars: i });
    await g.objDelete("user", a, keep);
    expect(await g.objDelete("user", a)).toEqual({ deleted: false, edges: 1_100 });
    expect((await db.verify()).problems).toEqual([]);
  });

  it("takes several steps where there are many edges, and others finish them", async () => {
    const { db, g } = await opened();
    const EDGES = 2_500;
    const hub = g.objAdd("user", { name: "hub" });
    const ids: number[] = [];
    for (let i = 0; i < EDGES; i++) {
      const id = g.objAdd("user", { name: "" });
      g.assocAdd(id, "follows", hub, i);
      ids.push(id);
    }
    failureSync("SITU_TOO_LARGE", () => db.transactSync((tx) => g.in(tx).objDelete("user", hub)));
    const deleting = g.objDelete("user", hub);
    const again = social(db);
    expect(await deleting).toEqual({ deleted: true, edges: expect.any(Number) });
    await again.objDelete("user", ids[0]);
    expect(g.objGet(hub)).toBeUndefined();
    expect(g.assocRange(hub, "followedBy", 0, 1)).toEqual([]);
    failureSync("SITU_MISSING", () => g.assocAdd(ids[1], "follows", hub));
    expect(ids.filter((id) => g.assocCount(id, "follows") > 0)).toEqual([]);
    expect((await db.verify()).problems).toEqual([]);
  });
});

describe("pointers", () => {
  it("name an object until it is gone", async () => {
    const { db, g } = await opened();
    const a = g.objAdd("user", { name: "a" });
    const p = g.pointerTo(a)!;
    expect(Pointer.is(p)).toBe(true);
    expect(g.readBy(p)).toEqual({ id: a, kind: "user", data: { name: "a" } });
    expect(g.pointerTo(999)).toBeUndefined();
    await g.objDelete("user", a);
    failureSync("SITU_FREED", () => g.readBy(p));
    // Its cell is in use again: still not another's data.
    for (let i = 0; i < 200; i++) g.objAdd("user", { name: `n${i}` });
    failureSync("SITU_FREED", () => g.readBy(p));
    const own = db.transactSync((tx) => tx.alloc(64));
    failureSync("SITU_TYPE", () => g.readBy(own));
    failureSync("SITU_TYPE", () => g.readBy(7 as never));
  });

  it("lead to objects of their own graph only", async () => {
    const { db, g } = await opened();
    const other = graph(db, {
      name: "other",
      objects: { car: { seats: u32() } },
      associations: {},
    });
    const a = g.objAdd("user", { name: "a" });
    const car = other.objAdd("car", { seats: 5 }, { id: a });
    failureSync("SITU_TYPE", () => g.readBy(other.pointerTo(car)!));
    failureSync("SITU_TYPE", () => other.readBy(g.pointerTo(a)!));
    expect(other.readBy(other.pointerTo(car)!)).toEqual({
      id: car,
      kind: "car",
      data: { seats: 5 },
    });
    // Memory of the user's own that looks like an object, with and without a tag.
    const p = g.pointerTo(a)!;
    const bytes = db.transactSync((tx) => tx.read(p).slice());
    const tags = new Int32Array(bytes.buffer, 20, 1);
    for (const tag of [0, 7]) {
      tags[0] = tag;
      const own = db.transactSync((tx) => {
        const made = tx.alloc(bytes.length);
        tx.write(made, bytes);
        return made;
      });
      failureSync("SITU_TYPE", () => g.readBy(own));
    }
  });

  it("lead to objects that older versions made, which have no tag", async () => {
    const { db, g } = await opened();
    const other = graph(db, { name: "other", objects: { car: {} }, associations: {} });
    const a = g.objAdd("user", { name: "a" });
    other.objAdd("car", {}, { id: a });
    const p = g.pointerTo(a)!;
    db.transactSync((tx) => {
      const bytes = tx.read(p).slice();
      new Int32Array(bytes.buffer, 20, 1)[0] = 0;
      tx.write(p, bytes);
    });
    expect(g.readBy(p)).toEqual({ id: a, kind: "user", data: { name: "a" } });
    failureSync("SITU_TYPE", () => other.readBy(p));
    g.objUpdate("user", a, { name: "a".repeat(40) });
    expect(g.objGet("user", a)).toEqual({ name: "a".repeat(40) });
    expect((await db.verify()).problems).toEqual([]);
    await g.objDelete("user", a);
    failureSync("SITU_FREED", () => g.readBy(p));
  });
});

describe("what cannot be", () => {
  it("has a code", async () => {
    const { g } = await opened();
    const a = g.objAdd("user", { name: "a" });
    const wrong = <T>(value: unknown) => value as T;
    failureSync("SITU_TYPE", () => g.objAdd("car" as never, { name: "" } as never));
    failureSync("SITU_TYPE", () => g.objAdd("user", wrong({ name: 1 })));
    failureSync("SITU_TYPE", () => g.objAdd("user", wrong({ name: "a", age: 1 })));
    failureSync("SITU_TYPE", () => g.assocCount(a, "hates" as never));
    for (const id of [0, -1, 1.5, 2 ** 53, Number.NaN, "1", null]) {
      failureSync("SITU_TYPE", () => g.objGet("user", wrong(id)));
      failureSync("SITU_TYPE", () => g.assocAdd(a, "likes", wrong(id), 1, { stars: 1 }));
    }
    for (const time of [-1, 1.5, "now", Number.NaN, 2 ** 53, null]) {
      failureSync("SITU_TYPE", () => g.assocAdd(a, "likes", 5, wrong(time), { stars: 1 }));
      failureSync("SITU_TYPE", () => g.assocTimeRange(a, "likes", wrong(time), 0, 1));
    }
    for (const limit of [-1, 1.5, "1", undefined]) {
      failureSync("SITU_TYPE", () => g.assocRange(a, "likes", 0, wrong(limit)));
      failureSync("SITU_TYPE", () => g.assocRange(a, "likes", wrong(limit), 1));
    }
    failureSync("SITU_TOO_LARGE", () => g.assocRange(a, "likes", 0, 10_001));
    failureSync("SITU_TYPE", () => g.assocGet(a, "likes", wrong("all")));
    failureSync("SITU_TYPE", () => g.assocAdd(a, "likes", 5, 1, wrong({ stars: "x" })));
    await failure("SITU_TYPE", () => g.objDelete("user", a, { edges: wrong("burn") }));
    expect(g.assocCount(a, "likes")).toBe(0);
  });

  it("is refused when a graph is declared", async () => {
    const { db } = await opened();
    const objects = { user: { name: str(40) } };
    const bad = (associations: object, code: "SITU_SCHEMA" | "SITU_TYPE" = "SITU_SCHEMA") =>
      failureSync(code, () => graph(db, { name: "bad", objects, associations } as never));
    bad({ knows: { to: "car" } });
    bad({ knows: { inverse: "known" } });
    bad({ knows: { to: "user", inverse: "knows", from: [] } });
    bad({ knows: { too: "user" } });
    bad({ knows: { to: "user", inverse: "b" }, b: {} });
    bad({ knows: { data: { a: 1 } } });
    failureSync("SITU_TYPE", () => graph(db, undefined as never));
    failureSync("SITU_TYPE", () => graph({} as never, { objects, associations: {} }));
    failureSync("SITU_SCHEMA", () =>
      graph(db, { objects: { user: { name: str(80) } }, associations: {} }),
    );
    failureSync("SITU_SCHEMA", () => graph(db, { objects, associations: { follows: {} } }));
  });

  it("leaves room for more kinds, and for other graphs", async () => {
    const { db, g } = await opened();
    const a = g.objAdd("user", { name: "a" });
    const more = graph(db, { objects: { page: { url: str(80) } }, associations: { links: {} } });
    const page = more.objAdd("page", { url: "/" });
    more.assocAdd(page, "links", 5, 1);
    expect(more.assocCount(page, "links")).toBe(1);
    failureSync("SITU_SCHEMA", () => g.objGet(page));
    const other = graph(db, { name: "other", objects: { user: {} }, associations: {} });
    expect(other.objGet(a)).toBeUndefined();
    expect(other.objGet(other.objAdd("user", {}))?.data).toEqual({});
    await db.close();
  });
});

describe("in a store with a log", () => {
  it("a graph is recovered, from the log and from a checkpoint", async () => {
    const path = stores.folder();
    const fill = (db: LocalDatabase, from: number): void => {
      const g = social(db);
      for (let i = from; i < from + 300; i++) {
        const id = g.objAdd("user", { name: `user ${i}` }, { id: i });
        if (i > 1) g.assocAdd(id, "follows", 1, i);
        g.assocAdd(1, "likes", i, (i * 7_919) % 1_000, { stars: i });
      }
      for (let i = from; i < from + 300; i += 3) if (i > 1) g.assocDelete(i, "follows", 1);
    };
    const said = (db: LocalDatabase): unknown => {
      const g = social(db);
      return [g.assocRange(1, "followedBy", 0, 10_000), g.assocRange(1, "likes", 0, 10_000)];
    };
    const first = await stores.open({ path, durability: "lazy" });
    fill(first, 1);
    await first.checkpoint();
    fill(first, 301);
    const expected = said(first);
    await first.close();
    removeMemory(readIdentity(path)!);
    const second = await stores.open({ path });
    expect(second.recovered).toBeDefined();
    expect(said(second)).toEqual(expected);
    expect((await second.verify()).problems).toEqual([]);
    fill(second, 601);
    expect(social(second).assocCount(1, "likes")).toBe(900);
  });
});

describe("types", () => {
  it("are inferred", async () => {
    const { g } = await opened();
    expectTypeOf(g.objGet("user", 1)).toEqualTypeOf<{ name: string } | undefined>();
    const any = g.objGet(1);
    if (any?.kind === "post") expectTypeOf(any.data).toEqualTypeOf<{ text: string }>();
    expectTypeOf(g.assocRange(1, "friend", 0, 1)[0]?.data).toEqualTypeOf<{ since: number }>();
    expectTypeOf(g.assocGet(1, "likes", 2)?.data).toEqualTypeOf<{ stars: number } | undefined>();
    expectTypeOf(g.assocGet(1, "author", [2])[0]?.id2).toEqualTypeOf<number>();
    const never = (): void => {
      // @ts-expect-error: there is no such kind
      g.objAdd("car", {});
      // @ts-expect-error: a user has a name
      g.objAdd("user", {});
      // @ts-expect-error: there is no such association
      g.assocCount(1, "hates");
      // @ts-expect-error: such an edge has data
      g.assocAdd(1, "likes", 2, 3);
      // @ts-expect-error: and such a one has none
      g.assocAdd(1, "follows", 2, 3, { stars: 1 });
      // @ts-expect-error: they have other fields
      g.assocChangeType(1, "likes", 2, "friend");
    };
    expect(never).toBeTypeOf("function");
  });
});
