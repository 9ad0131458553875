/** Graphs as text: what was dumped is loaded with both directions of every edge, and mistakes are told with their line. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { graph } from "../../src/database/local/graph/open-graph.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { bytes, nullable, str, timestamp, u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { dump } from "../../src/transfer/dump.ts";
import { load } from "../../src/transfer/load.ts";
import { failure, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Score = table("score", { id: u32(), points: u32() }, { key: "id" });

const openGraph = (db: LocalDatabase) =>
  graph(db, {
    name: "social",
    objects: {
      user: { name: str(40), key: bytes(8), since: nullable(timestamp()) },
      post: { text: str() },
      tag: {},
    },
    associations: {
      follows: { from: "user", to: "user", inverse: "followedBy" },
      friend: { from: "user", to: "user", inverse: "friend", data: { n: u64() } },
      likes: { data: { stars: u32() } },
    },
  });

type Social = ReturnType<typeof openGraph>;
const openStore = (path: string) =>
  stores.open({ path, tables: [Score], memoryBytes: 64 * MIB }) as Promise<LocalDatabase>;

async function filled(fill: (g: Social, db: LocalDatabase) => void | Promise<void>) {
  const path = stores.folder();
  const db = await openStore(path);
  await fill(openGraph(db), db);
  await db.close();
  return path;
}

const user = (name: string) => ({ name, key: new Uint8Array([1, 2]), since: new Date(5) });

/** Five users that know each other, one of whom is gone with its edges kept, and more edges than one call reads. */
const small = (g: Social, db: LocalDatabase): void => {
  for (let id = 1; id <= 5; id++) g.objAdd("user", user(`user ${id}, "é"`), { id });
  g.objAdd("post", { text: "line\nbreak" }, { id: 70 });
  g.objAdd("tag", {}, { id: 2 ** 40 });
  g.assocAdd(1, "follows", 2, 10);
  g.assocAdd(3, "followedBy", 1, 11);
  g.assocAdd(4, "follows", 4, 12);
  g.assocAdd(2, "friend", 1, 13, { n: 2n ** 60n });
  g.assocAdd(3, "friend", 3, 14, { n: 0n });
  g.assocAdd(70, "likes", 123_456, 15, { stars: 5 });
  g.assocAdd(5, "follows", 1, 16);
  db.transactSync((tx) => g.in(tx).objDelete("user", 5, { edges: "keep" }));
  db.insert(Score, { id: 1, points: 2 });
};

async function dumped(path: string) {
  const folder = join(stores.folder(), "dump");
  const result = await dump(path, folder);
  const file = join(folder, "graph@social.jsonl");
  return { folder, result, file, lines: readFileSync(file, "utf8").split("\n").sort() };
}

function target(): string {
  const path = join(stores.folder(), "store");
  stores.adopt(path);
  return path;
}

describe("a graph", () => {
  it("is dumped and loaded, beside tables", async () => {
    const path = await filled(small);
    const { folder, result, lines } = await dumped(path);
    expect(result.tables).toMatchObject([{ name: "score", rows: 1 }]);
    // Seven objects, one of them without data, and seven edges.
    expect(result.graphs).toMatchObject([{ name: "social", rows: 14 }]);
    expect(lines).toContain('{"id":5,"kind":"user","deleted":true}');
    expect(lines).toContain(
      '{"from":1,"type":"friend","to":2,"time":13,"data":{"n":"1152921504606846976"}}',
    );
    const copy = target();
    const loaded = await load(folder, copy, { memoryBytes: 64 * MIB });
    expect(loaded.graphs).toEqual([{ name: "social", rows: 14, skipped: 0 }]);
    expect((await dumped(copy)).lines).toEqual(lines);
    const db = await openStore(copy);
    const g = openGraph(db);
    expect(g.objGet("user", 1)).toEqual(user('user 1, "é"'));
    expect(g.objGet(5)).toBeUndefined();
    expect(g.assocRange(1, "followedBy", 0, 10)).toEqual([{ id2: 5, time: 16, data: {} }]);
    expect(g.assocRange(1, "follows", 0, 10).map(({ id2 }) => id2)).toEqual([3, 2]);
    expect(g.assocGet(2, "friend", 1)).toEqual({ id2: 1, time: 13, data: { n: 2n ** 60n } });
    expect(g.assocCount(3, "friend")).toBe(1);
    expect(g.objAdd("tag", {})).toBeGreaterThan(2 ** 40);
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
  });

  it("is loaded in several calls, with lists that are longer than one call reads", async () => {
    const EDGES = 10_100;
    const path = await filled((g, db) => {
      g.objAdd("tag", {}, { id: 1 });
      for (let from = 0; from < EDGES; from += 505) {
        db.transactSync((tx) => {
          const inside = g.in(tx);
          for (let i = from; i < from + 505; i++)
            inside.assocAdd(1, "likes", i + 1, i, { stars: i });
        });
      }
    });
    const { folder, lines } = await dumped(path);
    const copy = target();
    let commits = 0;
    const signal = {
      throwIfAborted() {
        if (++commits === 8) throw new Error("not now");
      },
    } as unknown as AbortSignal;
    const memoryBytes = 64 * MIB;
    await expect(load(folder, copy, { memoryBytes, signal })).rejects.toThrow("not now");
    // Begun anew, it would meet what is there already.
    const rest = await load(folder, copy);
    expect(rest.graphs).toMatchObject([{ rows: EDGES + 1, skipped: 0 }]);
    expect((await dumped(copy)).lines).toEqual(lines);
  });

  it("is dumped without objects that are on their way out", async () => {
    const EDGES = 1_500;
    const path = await filled(async (g, db) => {
      g.objAdd("user", user("hub"), { id: 1 });
      for (let from = 0; from < EDGES; from += 500) {
        db.transactSync((tx) => {
          const inside = g.in(tx);
          for (let id = from + 2; id < from + 502; id++) {
            inside.objAdd("user", user(""), { id });
            inside.assocAdd(id, "follows", 1, id);
          }
        });
      }
      const deleting = g.objDelete("user", 1).catch(() => undefined);
      while (g.objGet(1) !== undefined) await Promise.resolve();
      await db.close();
      await deleting;
    });
    const { folder, lines } = await dumped(path);
    expect(lines.filter((line) => line.includes('"from"'))).toEqual([]);
    expect(lines).toHaveLength(EDGES + 1);
    const copy = target();
    await load(folder, copy, { memoryBytes: 64 * MIB });
    expect((await dumped(copy)).lines).toEqual(lines);
  });
});

const MISTAKES = [
  ['{"id":9,"kind":"nobody","data":{}}', "SITU_TYPE", /line 1: .*no kind of objects "nobody"/],
  ['{"id":"9","kind":"tag"}', "SITU_TYPE", /line 1: .*whole number/],
  ['{"kind":"tag"}', "SITU_TYPE", /line 1: .*whole number/],
  ['{"id":9,"kind":"tag","deleted":false}', "SITU_TYPE", /line 1: deleted is true/],
  ['{"id":9,"kind":"tag","colour":1}', "SITU_TYPE", /line 1: .*no "colour"/],
  ['{"from":9,"type":"follows","to":8,"time":1}', "SITU_MISSING", /line 1: .*no object 9/],
  ['{"from":9,"type":"likes","to":8}', "SITU_TYPE", /line 1: time is a whole number/],
  ["[]", "SITU_TYPE", /line 1: a row is a JSON object/],
] as const;

describe("what cannot be", () => {
  it("CSV has no form for a graph; tables by name leave it out", async () => {
    const path = await filled(small);
    await failure("SITU_UNSUPPORTED", () => dump(path, stores.folder(), { format: "csv" }));
    const only = await dump(path, stores.folder(), { format: "csv", tables: ["score"] });
    expect(only).toMatchObject({ tables: [{ name: "score" }], graphs: [] });
  });

  it("a conflict fails, replaces or is skipped", async () => {
    const { folder } = await dumped(await filled(small));
    const copy = await filled((g) => {
      g.objAdd("user", user("other"), { id: 1 });
    });
    await failure("SITU_EXISTS", () => load(folder, copy));
    await load(folder, copy, { onConflict: "skip" });
    const again = await load(folder, copy, { onConflict: "skip" });
    expect(again.graphs).toMatchObject([{ rows: 0, skipped: 14 }]);
    await load(folder, copy, { onConflict: "replace" });
    const db = await openStore(copy);
    const g = openGraph(db);
    expect(g.objGet("user", 1)?.name).toBe('user 1, "é"');
    expect(g.assocCount(1, "follows")).toBe(2);
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
  });

  it("a mistake is told with its line", async () => {
    const { folder, file } = await dumped(await filled(small));
    const size = Buffer.byteLength(readFileSync(file, "utf8"));
    const path = target();
    for (const [line, code, message] of MISTAKES) {
      // As long as before: the sizes of files are in the manifest.
      writeFileSync(file, `${line}\n`.padEnd(size));
      const { message: told } = await failure(code, () =>
        load(folder, path, { memoryBytes: 64 * MIB, onConflict: "replace" }),
      );
      expect(told).toMatch(message);
    }
  });

  it("a manifest with a definition that makes no sense", async () => {
    const { folder } = await dumped(await filled(small));
    const manifest = join(folder, "dump.json");
    const text = readFileSync(manifest, "utf8");
    writeFileSync(manifest, text.replace('"followedBy"', '"lost"'));
    await failure("SITU_CORRUPT", () => load(folder, target(), { memoryBytes: 64 * MIB }));
    writeFileSync(manifest, text.replace('"version": 2', '"version": 3'));
    await failure("SITU_LAYOUT", () => load(folder, target(), { memoryBytes: 64 * MIB }));
  });
});
