/** A graph against a model of plain maps: random steps, read lock-free, in transactions and from snapshots. */

import { describe, expect, it } from "vitest";
import { graph } from "../../src/database/local/graph/open-graph.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { Random } from "../../src/runtime/random.ts";
import { str } from "../../src/tables/fields.ts";
import { expectSame, GraphModel, randomStep } from "../helpers/graph-model.ts";
import { MIB, seed, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const data = { note: str(200) };
const open = (db: LocalDatabase) =>
  graph(db, {
    objects: { user: { name: str() } },
    associations: {
      follows: { from: "user", to: "user", inverse: "followedBy", data },
      likes: { data: { note: str() } },
      saves: { data: { note: str() } },
    },
  });

const opened = async (options = {}) => {
  const db = await stores.open({ memoryBytes: 64 * MIB, ...options });
  return { db, g: open(db) };
};

describe("random steps", () => {
  it.each([
    [3, 2_000],
    [40, 3_000],
    [300, 6_000],
  ])("on %i objects", async (ids, steps) => {
    const { db, g } = await opened();
    const model = new GraphModel();
    const random = new Random(seed + ids);
    for (let id = 1; id <= ids; id++) {
      for (const each of [g, model]) each.objAdd("user", { name: `user ${id}` }, { id });
    }
    for (let step = 0; step < steps; step++) {
      const run = randomStep(random, ids);
      expect(run(g)).toEqual(run(model));
    }
    using snapshot = db.snapshot();
    const before = structuredClone(
      Array.from({ length: ids }, (_, i) => model.list(i + 1, "follows")),
    );
    for (let id = 1; id <= ids; id++) {
      expectSame(g, model, id);
      db.transactSync((tx) => expectSame(g.in(tx), model, id));
      expectSame(g.in(snapshot), model, id);
    }
    for (let step = 0; step < steps / 4; step++) {
      const run = randomStep(random, ids);
      db.transactSync((tx) => run(g.in(tx)));
      run(model);
    }
    for (let id = 1; id <= ids; id++) {
      expectSame(g, model, id);
      expect(g.in(snapshot).assocRange(id, "follows", 0, 10_000)).toEqual(before[id - 1]);
    }
    expect((await db.verify()).problems).toEqual([]);
  });

  it("are undone with their transaction, several at a time", async () => {
    const { db, g } = await opened();
    const model = new GraphModel();
    const random = new Random(seed);
    for (let id = 1; id <= 5; id++) {
      for (const each of [g, model]) each.objAdd("user", { name: "" }, { id });
    }
    for (let round = 0; round < 150; round++) {
      const steps = Array.from({ length: 1 + random.below(40) }, () => randomStep(random, 5));
      const keeps = random.below(3) > 0;
      const run = (): void =>
        db.transactSync((tx) => {
          const inside = g.in(tx);
          for (const step of steps) step(inside);
          if (!keeps) throw new Error("not this one");
        });
      if (keeps) {
        run();
        for (const step of steps) step(model);
      } else expect(run).toThrow("not this one");
      for (let id = 1; id <= 5; id++) expectSame(g, model, id);
    }
  });
});

describe("a list of many edges", () => {
  const EDGES = 5_000;
  const orders = {
    rising: (i: number) => i,
    falling: (i: number) => EDGES - i,
    mixed: (i: number) => (i * 7_919) % EDGES,
    "all the same": () => 7,
  };

  it.each(Object.entries(orders))("times %s", async (_, timeOf) => {
    const { db, g } = await opened();
    const model = new GraphModel();
    g.objAdd("user", { name: "" }, { id: 1 });
    for (let i = 0; i < EDGES; i++) {
      const note = String(i);
      const id2 = 1 + ((i * 4_049) % EDGES);
      g.assocAdd(1, "likes", id2, timeOf(i), { note });
      model.assocAdd(1, "likes", id2, timeOf(i), { note });
    }
    const all = model.list(1, "likes");
    const compare = (): void => {
      const edges = model.list(1, "likes");
      expect(g.assocCount(1, "likes")).toBe(edges.length);
      expect(g.assocRange(1, "likes", 0, 10_000)).toEqual(edges);
      for (const position of [0, 1, 62, 63, 64, 1_000, 4_999, 5_000, 6_000]) {
        expect(g.assocRange(1, "likes", position, 10)).toEqual(
          edges.slice(position, position + 10),
        );
      }
    };
    compare();
    for (const id2 of [1, 2, 77, EDGES]) {
      expect(g.assocGet(1, "likes", id2)).toEqual(all.find((edge) => edge.id2 === id2));
    }
    expect(g.assocGet(1, "likes", EDGES + 1)).toBeUndefined();
    const high = Math.floor(EDGES / 2);
    const within = all.filter(({ time }) => time <= high && time >= 100);
    expect(g.assocTimeRange(1, "likes", high, 100, 10_000)).toEqual(within);
    expect(g.assocTimeRange(1, "likes", high, 100, 5)).toEqual(within.slice(0, 5));
    const random = new Random(seed);
    while (model.list(1, "likes").length > 0) {
      const edges = model.list(1, "likes");
      for (let i = 0; i < Math.max(1, edges.length / 3); i++) {
        const { id2 } = edges[random.below(edges.length)];
        expect(g.assocDelete(1, "likes", id2)).toBe(model.assocDelete(1, "likes", id2));
      }
      if (edges.length > 10 || edges.length < 3) compare();
    }
    expect(g.assocRange(1, "likes", 0, 10)).toEqual([]);
    expect((await db.verify()).problems).toEqual([]);
  });
});
