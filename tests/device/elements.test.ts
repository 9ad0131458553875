/**
 * Aggregates and selections by the threads of the device: what they find is what the host finds, in one state, on
 * tables of all shapes, with rows on pages, in memory and in runs of pages, by one thread and by several.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { knownDevice } from "../../src/device/device.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { aggregateProgram } from "../../src/tables/bulk/requests.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { RememberedMaps } from "../../src/tables/device/elements/map-steps.ts";
import { SIGNAL_WORDS } from "../../src/tables/device/elements/messages.ts";
import { Projections } from "../../src/tables/device/elements/projection.ts";
import { runRead } from "../../src/tables/device/elements/read-job.ts";
import { avg, count, max, min, sum } from "../../src/tables/expressions/aggregates.ts";
import { programText } from "../../src/tables/expressions/program.ts";
import { bytes, enumOf, f64, i64, nullable, str, timestamp, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const fields = {
  id: u32(),
  branch: u32(),
  total: i64(),
  weight: nullable(f64()),
  status: enumOf("open", "late", "paid"),
  mark: nullable(bytes(4)),
  text: str(),
  until: nullable(timestamp()),
};
const options = { key: "id", storage: "device" } as const;
type Item = typeof Item;
const Item = table("item", fields, options);
const SHAPES = {
  hopscotch: Item,
  buckets: table("item", fields, { ...options, layout: "buckets" }) as unknown as Item,
  btree: table("item", fields, { ...options, ordered: true }) as unknown as Item,
  expiring: table("item", fields, { ...options, expires: "until" }) as unknown as Item,
};
const ROWS = 900;
const sumOfTotal = (i: { total: never }) => ({ s: sum(i.total) });
const STATUSES = ["open", "late", "paid"] as const;

type Both = Database & LocalDatabase;

function flush(db: LocalDatabase): void {
  for (const { mover } of workOf(knownDevice(db.executor)!)) {
    while (mover.move(Number.POSITIVE_INFINITY));
  }
}

function rowOf(id: number) {
  const text = "x".repeat(id % 200 === 7 ? 20_000 : 200 + (id % 300));
  return {
    id,
    branch: id % 7,
    total: BigInt(id) * 10n ** 12n,
    weight: id % 3 === 0 ? null : id / 8,
    status: STATUSES[id % 3],
    mark: id % 5 === 0 ? null : new Uint8Array([id % 11, 1]),
    text,
    until: id % 10 === 0 ? new Date(1) : null,
  };
}

async function filled(Item: Item, threads = 1): Promise<Both> {
  const db = await stores.open({ tables: [Item], memoryBytes: 32 * 2 ** 20 });
  db.elements.size = threads;
  for (let from = 0; from < ROWS; from += 300) {
    db.transactSync((tx) => {
      for (let id = from; id < from + 300; id++) tx.insert(Item, rowOf(id));
    });
  }
  flush(db);
  // Some rows are in memory again, and some pages have gaps.
  for (let id = 1; id < ROWS; id += 20) db.update(Item, id, { total: 5n });
  for (let id = 0; id < ROWS; id += 31) db.delete(Item, id);
  return db as Both;
}

const byId = (a: { id: number }, b: { id: number }): number => a.id - b.id;

async function everything(db: Both, Item: Item, place: "host" | "device"): Promise<unknown[]> {
  const whole = await db.aggregate(Item, {
    place,
    values: (i) => ({
      n: count(),
      weights: count(i.weight),
      total: sum(i.total),
      id: sum(i.id),
      avg: avg(i.id),
      min: min(i.text),
      max: max(i.mark),
      first: min(i.status),
      least: min(i.total),
    }),
  });
  const grouped = await db.aggregate(Item, {
    place,
    where: (i) => i.weight.gt(10).and(i.status.ne("paid")),
    groupBy: ["branch", "status", "mark"],
    values: (i) => ({ n: count(), total: sum(i.total), last: max(i.id) }),
  });
  const rows: { id: number }[] = [];
  const found = db.select(Item, {
    place,
    where: (i) => i.id.gte(100),
    columns: ["id", "mark", "status"],
  });
  for await (const row of found) rows.push(row);
  const all: { id: number }[] = [];
  for await (const row of db.select(Item, { place })) all.push(row);
  return [
    whole,
    grouped
      .map((each) => JSON.stringify(each, (_, v) => (typeof v === "bigint" ? `${v}` : v)))
      .sort(),
    rows.sort(byId),
    all.sort(byId),
  ];
}

describe.each(Object.entries(SHAPES))("a table of shape %s", (_, Item) => {
  it.each([1, 3])("finds with %i threads what the host finds", async (threads) => {
    const db = await filled(Item, threads);
    expect(await everything(db, Item, "device")).toEqual(await everything(db, Item, "host"));
  });
});

describe("operations on the device", () => {
  it("see one state while rows change", async () => {
    const db = await filled(Item, 2);
    await db.updateWhere(Item, { set: { total: 1n } });
    const n = db.count(Item);
    let isDone = false;
    const writer = (async () => {
      for (let round = 2n; !isDone; round++) {
        // All or none of two rows have the value of a round.
        await db.transact(async (tx) => {
          await tx.update(Item, 1, { total: 1n + round });
          await tx.update(Item, 898, { total: 1n - round });
        });
        if (round % 5n === 0n) flush(db);
      }
    })();
    for (let i = 0; i < 30; i++) {
      const found = await db.aggregate(Item, {
        place: "device",
        values: (item) => ({ n: count(), total: sum(item.total) }),
      });
      expect(found).toEqual({ n, total: BigInt(n) });
    }
    isDone = true;
    await writer;
  });

  it("read through a snapshot what was there when it was taken", async () => {
    const db = await filled(Item);
    const snapshot = db.snapshot();
    const before = await snapshot.aggregate(Item, { values: (i) => ({ s: sum(i.total) }) });
    await db.deleteWhere(Item, { where: "all" });
    flush(db);
    const place = "device" as const;
    expect(await snapshot.aggregate(Item, { place, values: (i) => ({ s: sum(i.total) }) })).toEqual(
      before,
    );
    expect(await db.aggregate(Item, { place, values: () => ({ n: count() }) })).toEqual({ n: 0 });
    let rows = 0;
    for await (const row of snapshot.select(Item, { place, columns: ["id"] }))
      rows += row.id >= 0 ? 1 : 0;
    expect(rows).toBe(ROWS - Math.ceil(ROWS / 31));
    snapshot.close();
  });

  it("stop at a limit, and when the reader leaves", async () => {
    const db = await filled(Item, 2);
    const place = "device" as const;
    const some: unknown[] = [];
    for await (const row of db.select(Item, { place, limit: 5 })) some.push(row);
    expect(some).toHaveLength(5);
    for await (const row of db.select(Item, { place })) {
      expect(row.id).toBeGreaterThanOrEqual(0);
      break;
    }
    for await (const _ of db.select(Item, { place, limit: 0 })) expect.unreachable();
    // Nothing holds a snapshot any more.
    expect(db.stats().snapshots.open).toBe(0);
  });

  it("refuse what they cannot do", async () => {
    const InMemory = table("memory", { id: u32() }, { key: "id" });
    const db = (await stores.open({ tables: [Item, InMemory] })) as Both;
    const place = "device" as const;
    const values = () => ({ n: count() });
    await failure("SITU_UNSUPPORTED", () => db.aggregate(InMemory, { place, values }));
    await failure("SITU_UNSUPPORTED", () =>
      db.transact((tx) => tx.aggregate(Item, { place, values })),
    );
    expect(() => db.select(Item, { place }).toArray()).toThrow(/for await/);
    expect(() => [...db.select(Item, { place })]).toThrow(/for await/);
    expect(await db.aggregate(Item, { place, values })).toEqual({ n: 0 });
    const failing = () =>
      db.aggregate(Item, { place, values: (i) => ({ s: sum(i.id.dividedBy(i.branch)) }) });
    expect(await failing()).toEqual({ s: 0 });
    db.insert(Item, rowOf(7));
    await failure("SITU_ARITHMETIC", failing);
  });

  it("tell of a damaged page", async () => {
    const db = await filled(Item);
    const { file } = workOf(knownDevice(db.executor)!)[0].table;
    file.write(Buffer.from("nothing"), 3);
    await failure("SITU_CORRUPT", () =>
      db.aggregate(Item, { place: "device", values: (i) => ({ s: sum(i.total) }) }),
    );
  });

  it("take a page that was used again for no damage, if their snapshot is gone", async () => {
    const db = await filled(Item);
    const { executor } = db;
    const { table: shared } = workOf(knownDevice(executor)!)[0];
    const store = openTable(executor, Item as never);
    const snapshot = Snapshot.take(executor, 60_000, 60_000);
    const { file } = shared;
    const readLater = file.readLater.bind(file);
    // When the places are known, and before any page is read.
    file.readLater = (first, pages, into) => {
      file.readLater = readLater;
      snapshot.release();
      file.write(Buffer.from("another row"), first);
      return readLater(first, pages, into);
    };
    const order = {
      kind: "aggregate" as const,
      id: 1,
      table: Item as never,
      root: store.root,
      program: programText(aggregateProgram(Item as never, { values: sumOfTotal }, true)),
      snapshot: snapshot.share(),
      part: 0,
      parts: 1,
      signals: new Int32Array(new SharedArrayBuffer(SIGNAL_WORDS * 4)),
    };
    const opened = {
      executor,
      store,
      shared,
      projections: new Projections(),
      maps: new RememberedMaps(),
    };
    const listener = { rows: () => {}, taken: async () => {}, manyInDelta: () => {} };
    await failure("SITU_SNAPSHOT_TOO_OLD", () => runRead(opened, order, listener));
  });

  it("end when the database is closed", async () => {
    const db = await filled(Item);
    const rows = db.select(Item, { place: "device" })[Symbol.asyncIterator]();
    await rows.next();
    const aggregate = db
      .aggregate(Item, { place: "device", values: (i) => ({ s: sum(i.total) }) })
      .catch((error: unknown) => expect(error).toMatchObject({ code: "SITU_ABORTED" }));
    await db.close();
    await aggregate;
    await rows.return?.();
  });
});
