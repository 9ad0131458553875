/** Tables on the device: the same operations as on tables in memory, on rows that lie on pages. */

import { rmSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { Random } from "../../src/runtime/random.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { bytes, json, str, timestamp, u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, memoryOf, seed, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const SHAPES = {
  hopscotch: table("t", { id: u32(), n: u32(), text: str(200) }, { key: "id", storage: "device" }),
  buckets: table(
    "t",
    { id: u32(), n: u32(), text: str() },
    { key: "id", storage: "device", layout: "buckets" },
  ),
  btree: table(
    "t",
    { id: u32(), n: u32(), text: str() },
    { key: "id", storage: "device", ordered: true },
  ),
} as const;
const T = SHAPES.hopscotch;

/** Moves all rows to pages. */
function flush(db: LocalDatabase): void {
  for (const each of workOf(knownDevice(db.executor)!)) {
    while (each.mover.move(Number.POSITIVE_INFINITY));
  }
}

/** Looks after space until nothing is left to do. */
async function collect(db: LocalDatabase): Promise<void> {
  const [work] = workOf(knownDevice(db.executor)!);
  work.table.writtenPages = 2 ** 30;
  await db.durable().catch(() => {});
  for (let round = 0; round < 20; round++) {
    while (db.device.work());
    if (work.collector.isIdle) return;
    await db.durable().catch(() => {});
  }
}

const textOf = (n: number): string => `${n}`.repeat(1 + (n % 20));

describe.each(Object.keys(SHAPES) as (keyof typeof SHAPES)[])("a table of layout %s", (shape) => {
  // All have the same rows; none of the calls here depends on their order.
  const Shape = SHAPES[shape] as unknown as typeof T;

  it("does what a Map does, while rows move and pages are used again", async () => {
    const db = await stores.open({ tables: [Shape] });
    const random = new Random(seed);
    const model = new Map<number, { id: number; n: number; text: string }>();
    for (let step = 0; step < 1_500; step++) {
      const id = random.below(120);
      const n = random.below(1_000_000);
      const row = { id, n, text: textOf(n).slice(0, 200) };
      switch (random.below(9)) {
        case 0:
        case 1:
        case 2:
          db.put(Shape, row);
          model.set(id, row);
          break;
        case 3:
          expect(db.delete(Shape, id)).toBe(model.delete(id));
          break;
        case 4: {
          const before = model.get(id);
          if (before === undefined) failureSync("SITU_MISSING", () => db.update(Shape, id, { n }));
          else {
            db.update(Shape, id, { n });
            model.set(id, { ...before, n });
          }
          break;
        }
        case 5:
          if (model.has(id)) failureSync("SITU_EXISTS", () => db.insert(Shape, row));
          else {
            db.insert(Shape, row);
            model.set(id, row);
          }
          break;
        case 6:
          expect(db.get(Shape, id)).toEqual(model.get(id));
          break;
        case 7:
          expect(db.transactSync((tx) => tx.get(Shape, id))).toEqual(model.get(id));
          break;
        default:
          if (step % 5 === 0) flush(db);
          else if (step % 7 === 0) await collect(db);
      }
    }
    flush(db);
    const rows = [...db.scan(Shape)].sort((a, b) => a.id - b.id);
    expect(rows).toEqual([...model.values()].sort((a, b) => a.id - b.id));
    expect(db.count(Shape)).toBe(model.size);
    const ids = [...Array(120).keys()];
    const read = await db.transact((tx) => tx.getMany(Shape, ids));
    expect(read).toEqual(ids.map((id) => model.get(id)));
    const found: unknown[] = [];
    await db.transact(async (tx) => {
      found.length = 0;
      for await (const row of tx.scan(Shape)) found.push(row);
    });
    expect(found).toHaveLength(model.size);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("shows snapshots what they were taken of, whatever moves", async () => {
    const db = await stores.open({ tables: [Shape] });
    const ids = [...Array(60).keys()];
    const put = (n: number): void =>
      db.transactSync((tx) => {
        for (const id of ids) tx.put(Shape, { id, n, text: "x".repeat(150) });
      });
    put(1);
    const inMemory = db.snapshot();
    flush(db);
    const onPages = db.snapshot();
    put(2);
    flush(db);
    db.delete(Shape, 7);
    const later = db.snapshot();
    put(3);
    flush(db);
    for (let round = 0; round < 3; round++) {
      await collect(db);
      put(4 + round);
      flush(db);
    }
    for (const [snapshot, n] of [
      [inMemory, 1],
      [onPages, 1],
      [later, 2],
    ] as const) {
      const seen = snapshot.scan(Shape).toArray();
      expect(seen.every((row) => row.n === n)).toBe(true);
      expect(seen).toHaveLength(n === 2 ? 59 : 60);
      expect(snapshot.get(Shape, 9)?.n).toBe(n);
      snapshot.close();
    }
    expect(db.count(Shape)).toBe(60);
    expect((await db.verify()).problems).toEqual([]);
  });
});

it("uses pages again that nobody needs, and only those", async () => {
  const db = await stores.open({ tables: [T] });
  const put = (n: number): void =>
    db.transactSync((tx) => {
      for (let id = 0; id < 400; id++) tx.put(T, { id, n, text: "x".repeat(150) });
    });
  put(0);
  flush(db);
  const { file } = workOf(knownDevice(db.executor)!)[0].table;
  const once = file.pages();
  for (let n = 1; n < 12; n++) {
    put(n);
    flush(db);
    await collect(db);
  }
  expect(file.pages()).toBeLessThan(5 * once);
  expect(workOf(knownDevice(db.executor)!)[0].collector.freed).toBeGreaterThan(once);
  expect(
    db
      .scan(T)
      .toArray()
      .every(({ n }) => n === 11),
  ).toBe(true);
  expect((await db.verify()).problems).toEqual([]);
});

it("empties pages that are sparsely filled", async () => {
  const db = await stores.open({ tables: [T] });
  for (let id = 0; id < 1_000; id++) db.put(T, { id, n: id, text: "x".repeat(150) });
  flush(db);
  for (let id = 0; id < 1_000; id++) if (id % 10 > 0) db.delete(T, id);
  await collect(db);
  const { collector } = workOf(knownDevice(db.executor)!)[0];
  expect(collector.compacted).toBeGreaterThan(50);
  await collect(db);
  expect(collector.freed).toBeGreaterThan(10);
  for (let id = 0; id < 1_000; id++) expect(db.get(T, id)?.n).toBe(id % 10 > 0 ? undefined : id);
  expect((await db.verify()).problems).toEqual([]);
});

it("keeps rows of all sizes, and keys of all types", async () => {
  const Wide = table(
    "wide",
    { at: timestamp(), name: str(), id: u64(), blob: bytes(), data: json() },
    { key: ["name", "at", "id"], storage: "device", ordered: true },
  );
  const db = await stores.open({ tables: [Wide], memoryBytes: 32 * MIB });
  const sizes = [0, 1, 5_000, 8_100, 8_160, 8_200, 40_000, 1_000_000];
  const at = new Date(1_800_000_000_000);
  for (const size of sizes) {
    db.put(Wide, { at, name: `row ${size}`, id: 5n, blob: Buffer.alloc(size, 7), data: { size } });
  }
  flush(db);
  for (const size of sizes) {
    const row = db.get(Wide, [`row ${size}`, at, 5n])!;
    expect([row.blob.length, row.data, row.at]).toEqual([size, { size }, at]);
  }
  db.update(Wide, ["row 40000", at, 5n], { data: 1 });
  flush(db);
  expect(db.get(Wide, ["row 40000", at, 5n])?.blob.length).toBe(40_000);
  expect(db.scan(Wide, { reverse: true }).toArray()[0].name).toBe("row 8200");
  expect((await db.verify()).problems).toEqual([]);
});

it("holds a table that is much larger than the store's memory", async () => {
  const Large = table("large", { id: u32(), text: str() }, { key: "id", storage: "device" });
  const db = await stores.open({ tables: [Large], memoryBytes: 8 * MIB });
  const rows = 1_100;
  for (let id = 0; id < rows; id++) db.put(Large, { id, text: `${id} `.padEnd(30_000, "x") });
  const { file } = workOf(knownDevice(db.executor)!)[0].table;
  flush(db);
  expect(file.pages() * 8_192).toBeGreaterThan(4 * 8 * MIB);
  for (let i = 0; i < 200; i++) {
    const id = (i * 977) % rows;
    expect(db.get(Large, id)?.text.startsWith(`${id} `)).toBe(true);
  }
});

describe("indexes, expiry and changes", () => {
  const Indexed = table(
    "indexed",
    { id: u32(), owner: str(20), email: str(40), until: u64() },
    {
      key: "id",
      storage: "device",
      expires: "until",
      indexes: { byOwner: { on: ["owner"] }, byEmail: { on: ["email"], unique: true } },
    },
  );

  it("work on rows on pages", async () => {
    const db = await stores.open({ tables: [Indexed] });
    const until = 9_000_000_000_000n;
    for (let id = 0; id < 200; id++) {
      db.put(Indexed, { id, owner: `o${id % 10}`, email: `e${id}`, until });
    }
    flush(db);
    expect(db.scan(Indexed, { index: "byOwner", prefix: "o3" }).toArray()).toHaveLength(20);
    expect(db.get(Indexed, "e77", { index: "byEmail" })?.id).toBe(77);
    failureSync("SITU_UNIQUE", () => db.update(Indexed, 5, { email: "e6" }));
    await db.transact((tx) => tx.update(Indexed, 5, { owner: "another" }));
    expect(db.scan(Indexed, { index: "byOwner", prefix: "another" }).toArray()).toHaveLength(1);
    db.update(Indexed, 6, { until: 1n });
    expect(db.get(Indexed, 6)).toBeUndefined();
    flush(db);
    db.expiry.sweep(1_000);
    expect(db.expiry.swept).toBe(1);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("are told to those who watch", async () => {
    const db = await stores.open({ tables: [T], durability: "lazy" });
    const watch = db.watch(T);
    const changes = watch[Symbol.asyncIterator]();
    const first = changes.next();
    await new Promise((resolve) => setTimeout(resolve, 50));
    db.put(T, { id: 1, n: 1, text: "a" });
    expect((await first).value).toMatchObject({ type: "insert", row: { id: 1, n: 1 } });
    flush(db);
    db.update(T, 1, { n: 2 });
    expect((await changes.next()).value).toMatchObject({ type: "update", row: { id: 1, n: 2 } });
    flush(db);
    db.delete(T, 1);
    expect((await changes.next()).value).toMatchObject({ type: "delete" });
    await changes.return?.();
  });
});

describe("recovery", () => {
  it("finds rows on pages and in the log, from a checkpoint or without", async () => {
    const path = stores.folder();
    const options = { path, tables: [T], durability: "lazy" as const };
    let db = await stores.open(options);
    db.transactSync((tx) => {
      for (let id = 0; id < 500; id++) tx.put(T, { id, n: id, text: "x".repeat(150) });
    });
    flush(db);
    await db.checkpoint();
    db.transactSync((tx) => {
      for (let id = 0; id < 500; id += 2) tx.update(T, id, { n: id + 1_000 });
    });
    flush(db);
    for (let id = 0; id < 500; id += 4) db.update(T, id, { n: id + 2_000 });
    await collect(db);
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    db = await stores.open(options);
    for (let id = 0; id < 500; id++) {
      const more = id % 4 === 0 ? 2_000 : id % 2 === 0 ? 1_000 : 0;
      expect(db.get(T, id)?.n).toBe(id + more);
    }
    expect((await db.verify()).problems).toEqual([]);
    await db.close();
  });

  it("begins with nothing where there is no log", async () => {
    const path = stores.folder();
    let db = await stores.open({ path, tables: [T] });
    for (let id = 0; id < 100; id++) db.put(T, { id, n: id, text: "" });
    flush(db);
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    db = await stores.open({ path, tables: [T] });
    expect(db.count(T)).toBe(0);
    db.put(T, { id: 1, n: 1, text: "" });
    flush(db);
    expect(db.get(T, 1)?.n).toBe(1);
  });
});

describe("what cannot be done is refused", () => {
  it("a migration of rows", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [T], durability: "lazy" });
    db.put(T, { id: 1, n: 1, text: "" });
    flush(db);
    const More = table(
      "t",
      { id: u32(), n: u64(), text: str(200) },
      { key: "id", storage: "device" },
    );
    await failure("SITU_UNSUPPORTED", () => db.migrate([], { tables: [More] }));
  });

  it("an unknown storage, and a declaration without it", async () => {
    const wrong = { key: "id", storage: "disk" } as never;
    failureSync("SITU_SCHEMA", () => table("t", { id: u32() }, wrong));
    const path = stores.folder();
    const db = await stores.open({ path, tables: [T] });
    const InMemory = table("t", { id: u32(), n: u32(), text: str(200) }, { key: "id" });
    await failure("SITU_SCHEMA", () => stores.open({ path, tables: [InMemory] }));
    await db.close();
  });
});
