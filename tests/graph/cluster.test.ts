/** Graphs on a simulated cluster: the calls against a model, by message and by verb, with lists longer than their heads. */

import { afterEach, describe, expect, it } from "vitest";
import { graph } from "../../src/database/local/graph/open-graph.ts";
import type { RemoteGraph } from "../../src/database/remote/graph/remote-graph.ts";
import type { RemoteDatabase } from "../../src/database/remote/remote-database.ts";
import { Random } from "../../src/runtime/random.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { collocatedName, Partitioner } from "../../src/tables/partitions.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { GraphModel, type ModelEdge, randomStep } from "../helpers/graph-model.ts";
import { RemoteCluster } from "../helpers/remote-cluster.ts";
import { freshSeed } from "../helpers/seed.ts";
import { failure } from "../helpers/store.ts";

const seed = freshSeed();
const data = { note: str(200) };
const openGraph = (db: RemoteDatabase) =>
  graph(db, {
    objects: { user: { name: str() }, post: {} },
    associations: {
      follows: { from: "user", to: "user", inverse: "followedBy", data },
      likes: { data: { note: str() } },
      saves: { data: { note: str() } },
    },
  });
type Opened = Awaited<ReturnType<typeof openGraph>>;
const TYPES = ["follows", "followedBy", "likes", "saves"] as const;
const insideOf = (g: Opened): RemoteGraph => g as unknown as RemoteGraph;

const clusters: RemoteCluster[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.close();
});

async function started(byVerb: boolean, nodes = 3) {
  const cluster = new RemoteCluster({ seed, nodes, backups: Math.min(1, nodes - 1) });
  clusters.push(cluster);
  const db = await cluster.client([], byVerb);
  const g = await cluster.run(() => openGraph(db));
  return { cluster, db, g };
}

type Reads = Pick<Opened, "objGet" | "assocCount" | "assocRange">;

async function expectSame(g: Reads, model: GraphModel, id: number): Promise<void> {
  expect(await g.objGet("user", id)).toEqual(model.objects.get(id));
  for (const type of TYPES) {
    const edges = model.list(id, type);
    expect(await g.assocCount(id, type)).toBe(edges.length);
    expect(await g.assocRange(id, type, 0, 10_000)).toEqual(edges);
  }
}

describe.each([
  ["by message", false],
  ["by verb", true],
])("%s", (_, byVerb) => {
  it.each([
    [3, 120],
    [30, 60],
  ])("random steps on %i objects are those of the model", async (ids, steps) => {
    const { cluster, db, g } = await started(byVerb);
    const other = await cluster.client([], byVerb);
    const reader = await cluster.run(() => openGraph(other));
    const model = new GraphModel();
    const random = new Random(seed + ids);
    await cluster.run(async () => {
      for (let id = 1; id <= ids; id++) {
        model.objAdd("user", { name: `user ${id}` }, { id });
        await g.objAdd("user", { name: `user ${id}` }, { id });
      }
      for (let step = 0; step < steps; step++) {
        const run = randomStep(random, ids);
        expect(await (run(g as never) as Promise<unknown>)).toEqual(run(model));
        // What this one remembers was changed by the other one.
        const id = 1 + random.below(ids);
        if (step % 8 === 0) await expectSame(reader, model, id);
      }
      const lists = Array.from({ length: ids }, (_x, i) => model.list(i + 1, "follows"));
      await using snapshot = await db.snapshot();
      for (let id = 1; id <= ids; id++) {
        await expectSame(reader, model, id);
        await expectSame(g.in(snapshot) as Reads, model, id);
        await db.transact((tx) => expectSame(g.in(tx), model, id));
      }
      expect((await g.objDelete("user", 1)).deleted).toBe(true);
      model.objDelete(1);
      for (let id = 1; id <= ids; id++) await expectSame(reader, model, id);
      expect(await g.in(snapshot).assocRange(2, "follows", 0, 10_000)).toEqual(lists[1]);
      const left: number[] = [];
      for await (const id of g.ids()) left.push(id);
      expect(left.sort((a, b) => a - b)).toEqual([...model.objects.keys()]);
    });
  });

  it("lists are longer than their heads, and edges are found in them", async () => {
    const { cluster, g } = await started(byVerb);
    const model = new GraphModel();
    const EDGES = 150;
    await cluster.run(async () => {
      await g.objAdd("user", { name: "" }, { id: 1 });
      for (let i = 0; i < EDGES; i++) {
        const edge = [1, "likes", 1 + ((i * 77) % EDGES), (i * 31) % 97, { note: `${i}` }] as const;
        expect(await g.assocAdd(...edge)).toBe(model.assocAdd(...edge));
      }
      const compare = async (): Promise<void> => {
        const all = model.list(1, "likes");
        expect(await g.assocCount(1, "likes")).toBe(all.length);
        for (const position of [0, 60, 100, all.length]) {
          const some = await g.assocRange(1, "likes", position, 10);
          expect(some).toEqual(all.slice(position, position + 10));
        }
        const within = all.filter(({ time }) => time <= 60 && time >= 20);
        expect(await g.assocTimeRange(1, "likes", 60, 20, 10_000)).toEqual(within);
        const wanted = [1, 77, EDGES, EDGES + 1];
        const found = all.filter(({ id2 }) => wanted.includes(id2));
        expect(await g.assocGet(1, "likes", wanted)).toEqual(found);
        expect(await g.assocGet(1, "likes", 77)).toEqual(all.find(({ id2 }) => id2 === 77));
      };
      await compare();
      const random = new Random(seed);
      for (;;) {
        const edges: ModelEdge[] = model.list(1, "likes");
        if (edges.length === 0) break;
        // Often the newest: a head that runs empty takes others in.
        for (let i = 0; i < 20 && edges.length > 0; i++) {
          const at = random.below(3) > 0 ? 0 : random.below(edges.length);
          const [{ id2 }] = edges.splice(at, 1);
          expect(await g.assocDelete(1, "likes", id2)).toBe(model.assocDelete(1, "likes", id2));
        }
        if (edges.length % 60 < 20) await compare();
      }
      expect(await g.assocRange(1, "likes", 0, 10)).toEqual([]);
    });
  });
});

describe("calls", () => {
  it("fail as they do on one machine", async () => {
    const { cluster, db, g } = await started(false);
    await cluster.run(async () => {
      const a = await g.objAdd("user", { name: "a" });
      const b = await g.objAdd("user", { name: "b" });
      const post = await g.objAdd("post", {});
      expect(new Set([a, b, post]).size).toBe(3);
      const wrong = <T>(value: unknown) => value as T;
      await failure("SITU_EXISTS", () => g.objAdd("user", { name: "" }, { id: a }));
      await failure("SITU_MISSING", () => g.objUpdate("user", post, { name: "" }));
      await failure("SITU_MISSING", () => g.assocAdd(a, "follows", 99, 1, { note: "" }));
      await failure("SITU_MISSING", () => g.assocAdd(99, "follows", a, 1, { note: "" }));
      await failure("SITU_TYPE", () => g.assocAdd(a, "follows", post, 1, { note: "" }));
      await failure("SITU_TYPE", () => g.assocAdd(a, "likes", 5, wrong("now"), { note: "" }));
      await failure("SITU_TYPE", () => g.assocCount(a, wrong<"likes">("hates")));
      await failure("SITU_TYPE", () => g.objGet("user", wrong("1")));
      await failure("SITU_TOO_LARGE", () => g.assocRange(a, "likes", 0, 10_001));
      await failure("SITU_TYPE", async () => g.in(wrong({})));
      await failure("SITU_SCHEMA", () =>
        graph(db, { objects: { user: { name: u32() } }, associations: {} }),
      );
      expect(await g.objGet(a)).toEqual({ id: a, kind: "user", data: { name: "a" } });
      expect(await g.objGet("post", a)).toBeUndefined();
      await g.assocAdd(a, "follows", b, 5, { note: "x" });
      const edge = { id2: a, time: 5, data: { note: "x" } };
      expect(await g.assocGet(b, "followedBy", a)).toEqual(edge);
      expect(await g.objDelete("user", b, { edges: "keep" })).toEqual({ deleted: true, edges: 0 });
      expect(await g.objGet(b)).toBeUndefined();
      expect(await g.assocCount(a, "follows")).toBe(1);
      await g.objAdd("user", { name: "again" }, { id: b });
      expect(await g.assocCount(b, "followedBy")).toBe(1);
      // What was kept is removed later, and makes no edges of another kind.
      const kept = await g.objAdd("user", { name: "kept" });
      await g.assocAdd(kept, "follows", b, 6, { note: "y" });
      await g.objDelete("user", kept, { edges: "keep" });
      await failure("SITU_TYPE", () => g.objAdd("post", {}, { id: kept }));
      expect(await g.objDelete("user", kept)).toEqual({ deleted: false, edges: 1 });
      expect(await g.assocCount(b, "followedBy")).toBe(1);
      await g.objAdd("post", {}, { id: kept });
      expect(await g.objDelete("post", kept)).toEqual({ deleted: true, edges: 0 });
      await db
        .transact(async (tx) => {
          await g.in(tx).assocDelete(a, "follows", b);
          throw new Error("not this one");
        })
        .catch(() => {});
      expect(await g.assocCount(a, "follows")).toBe(1);
    });
  });

  it("take several transactions to delete an object with many edges", async () => {
    const { cluster, db, g } = await started(false);
    await cluster.run(async () => {
      const EDGES = 1_005;
      await g.objAdd("user", { name: "hub" }, { id: 1 });
      await g.objAdd("user", { name: "other" }, { id: 2 });
      for (let first = 10; first < 10 + EDGES; first += 67) {
        await db.transact(async (tx) => {
          const inside = g.in(tx);
          for (let i = first; i < first + 67; i++) {
            await inside.assocAdd(1, "likes", i, i, { note: "" });
          }
        });
      }
      await g.assocAdd(2, "follows", 1, 1, { note: "" });
      expect(await g.assocCount(1, "likes")).toBe(EDGES);
      await failure("SITU_TOO_LARGE", () =>
        db.transact((tx) => g.in(tx).objDelete("user", 1) as Promise<unknown>),
      );
      const deleting = g.objDelete("user", 1);
      expect(await deleting).toEqual({ deleted: true, edges: EDGES + 1 });
      expect(await g.assocRange(1, "likes", 0, 10)).toEqual([]);
      expect(await g.assocCount(2, "follows")).toBe(0);
      expect(await g.objGet(1)).toBeUndefined();
      const { edges, finder, lists, leaving } = insideOf(g).operations.rows;
      for (const each of [edges, finder, leaving, lists] as Table[]) {
        expect(await db.count(each)).toBe(0);
      }
    });
  });
});

describe("places", () => {
  it("an object and its edges are in one partition", () => {
    const fields = { id: { kind: "u53" }, type: { kind: "u8" } };
    const of = (what: string, graph: string) =>
      new Partitioner({ name: collocatedName(what, graph), key: ["id", "type"], fields }, 64);
    const met = new Set<number>();
    for (let id = 1; id < 500; id++) {
      const partition = of("objects", "social").ofKey(id, 1);
      expect(of("lists", "social").ofKey([id, 3], 2)).toBe(partition);
      expect(of("lists", "social").ofRow({ id, type: 9 }, 3)).toBe(partition);
      met.add(partition);
    }
    expect(met.size).toBe(64);
    const Other = table("@graph", { id: u32() }, { key: "id" });
    expect(new Partitioner(Other, 64).ofFirst(1)).toBeUndefined();
  });

  it("are remembered: a lock-free operation is one read", async () => {
    const { cluster, g } = await started(true);
    const { objects, lists } = insideOf(g);
    await cluster.run(async () => {
      const IDS = 60;
      for (let id = 1; id <= IDS; id++) await g.objAdd("user", { name: "x".repeat(id) }, { id });
      for (let id = 1; id <= IDS; id += 2) await g.assocAdd(id, "likes", 7, id, { note: "y" });
      const readAll = async (): Promise<void> => {
        for (let id = 1; id <= IDS; id++) {
          expect(await g.objGet("user", id)).toEqual({ name: "x".repeat(id) });
          expect(await g.assocCount(id, "likes")).toBe(id % 2);
          expect(await g.assocRange(id, "likes", 0, 10)).toHaveLength(id % 2);
        }
      };
      await readAll();
      for (const each of [objects, lists]) {
        each.reads = 0;
        each.lookups = 0;
      }
      await readAll();
      expect(objects).toMatchObject({ reads: IDS, lookups: IDS });
      expect(lists).toMatchObject({ reads: 2 * IDS, lookups: 2 * IDS });
      // One that has moved, and one that is gone and has come back, are found again.
      await g.objUpdate("user", 1, { name: "z".repeat(900) });
      expect(await g.objGet("user", 1)).toEqual({ name: "z".repeat(900) });
      await g.objDelete("user", 2);
      expect(await g.objGet("user", 2)).toBeUndefined();
      await g.objAdd("user", { name: "back" }, { id: 2 });
      expect(await g.objGet("user", 2)).toEqual({ name: "back" });
    });
  });
});
