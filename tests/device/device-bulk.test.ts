/**
 * Bulk operations on tables on the device do what they do on tables in memory, wherever they are cut short for
 * a page: the buffer loses all pages whenever some are read, and between any two steps.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { type Device, knownDevice } from "../../src/device/device.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { avg, count, max, min, sum } from "../../src/tables/expressions/aggregates.ts";
import { i32, nullable, str, timestamp, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const fields = {
  id: u32(),
  branch: u32(),
  balance: i32(),
  name: nullable(str(10)),
  text: str(),
  until: nullable(timestamp()),
};
const indexes = { byBranch: { on: ["branch"] }, byName: { on: ["name"], unique: true } } as const;
const options = { key: "id", indexes } as const;
const onDevice = { ...options, storage: "device" } as const;
type Account = typeof InMemory;
const InMemory = table("memory", fields, options);
const SHAPES = {
  hopscotch: table("device", fields, onDevice),
  buckets: table("device", fields, { ...onDevice, layout: "buckets" }),
  btree: table("device", fields, { ...onDevice, ordered: true }) as unknown as Account,
  expiring: table("device", fields, { ...onDevice, expires: "until" }) as unknown as Account,
};

/** With the types of the calls, and what is behind them. */
type Both = Database & LocalDatabase;

const ROWS = 400;
const byId = (a: { id: number }, b: { id: number }): number => a.id - b.id;

/** Has all pages leave the buffer before others are read, and elsewhere; counts how often some were read. */
function forgetful(device: Device): { loads: number } {
  const seen = { loads: 0 };
  let areRead = false;
  const begin = device.beginOperation.bind(device);
  device.beginOperation = (isCuttable, tx) => {
    if (!areRead) empty(device);
    areRead = false;
    begin(isCuttable, tx);
  };
  const load = device.load.bind(device);
  device.load = async () => {
    seen.loads++;
    empty(device);
    await load();
    areRead = true;
  };
  return seen;
}

function empty(device: Device): void {
  for (const { table: each } of workOf(device)) {
    for (const page of [...each.file.frames.keys()]) device.buffer.forget(each.file, page);
  }
}

function flush(db: LocalDatabase): void {
  const device = knownDevice(db.executor)!;
  for (const { mover } of workOf(device)) while (mover.move(Number.POSITIVE_INFINITY));
  empty(device);
}

async function filled(Account: Account): Promise<Both> {
  const db = await stores.open({ tables: [InMemory, Account] });
  for (const each of [InMemory, Account]) {
    db.transactSync((tx) => {
      for (let id = 0; id < ROWS; id++) {
        const name = id % 2 === 0 ? `n${id}` : null;
        const text = "x".repeat(700 + (id % 50));
        tx.insert(each, { id, branch: id % 20, balance: id, name, text, until: null });
      }
    });
  }
  flush(db);
  // Some rows are in memory again.
  for (const each of [InMemory, Account]) {
    for (let id = 0; id < ROWS; id += 17) db.update(each, id, { balance: 1_000 });
  }
  return db as Both;
}

const rowsOf = (db: LocalDatabase, each: Account): unknown[] => db.scan(each).toArray().sort(byId);

/** What a transaction does, and what it finds meanwhile. */
async function program(db: LocalDatabase, each: Account): Promise<unknown[]> {
  const found: unknown[] = [];
  await db.transact(async (tx) => {
    found.length = 0;
    const totals = () =>
      tx.aggregate(each, {
        where: (a) => a.text.length().gt(600),
        values: (a) => ({ n: count(), sum: sum(a.balance), avg: avg(a.id), max: max(a.name) }),
      });
    found.push(await totals());
    // Rows that are on pages yet: gathered by an index, and then by the key.
    found.push(
      await tx.updateWhere(each, {
        where: (a) => a.branch.eq(6),
        set: (a) => ({ branch: 7, balance: a.balance.plus(5) }),
      }),
      await tx.deleteWhere(each, { where: (a) => a.id.in([11, 12, 13]) }),
    );
    found.push(
      await tx.updateWhere(each, { set: (a) => ({ balance: a.balance.plus(1) }) }),
      await totals(),
    );
    // By an index whose entries move; half of the rows have the new value already.
    found.push(
      await tx.updateWhere(each, {
        where: (a) => a.branch.gte(10),
        set: (a) => ({ branch: 19, balance: a.balance.plus(a.branch) }),
      }),
      await tx.updateWhere(each, { where: (a) => a.branch.gte(8), set: { branch: 19 } }),
    );
    await tx.put(each, { id: 7, branch: 3, balance: 0, name: "me", text: "", until: null });
    found.push(
      await tx.deleteWhere(each, { where: (a) => a.id.in([3, 5, 9, 9_999]) }),
      await tx.deleteWhere(each, { where: (a) => a.branch.eq(4) }),
      await tx.deleteWhere(each, { where: (a) => a.text.length().eq(710) }),
      await tx.count(each),
    );
    const groups = await tx.aggregate(each, {
      groupBy: ["branch"],
      values: (a) => ({ n: count(), first: min(a.id), sum: sum(a.balance) }),
    });
    found.push(groups.sort((a, b) => a.branch - b.branch));
    const late = await tx.select(each, { where: (a) => a.id.gte(150), columns: ["id", "balance"] });
    found.push((await late.toArray()).sort(byId));
    const some = await tx.select(each, { where: (a) => a.branch.eq(19), limit: 50 }).toArray();
    found.push(some.length);
  });
  return found;
}

describe.each(Object.keys(SHAPES) as (keyof typeof SHAPES)[])("%s", (shape) => {
  const Account = SHAPES[shape] as unknown as Account;

  it("in transactions", async () => {
    const db = await filled(Account);
    const device = knownDevice(db.executor)!;
    const seen = forgetful(device);
    expect(await program(db, Account)).toEqual(await program(db, InMemory));
    expect(seen.loads).toBeGreaterThan(20);
    expect(rowsOf(db, Account)).toEqual(rowsOf(db, InMemory));
    flush(db);
    const again = await Promise.all([program(db, Account), program(db, InMemory)]);
    expect(again[0]).toEqual(again[1]);
    expect(rowsOf(db, Account)).toEqual(rowsOf(db, InMemory));
    expect((await db.verify()).problems).toEqual([]);
  });

  it("on the database, on snapshots, and in synchronous transactions", async () => {
    const db = await filled(Account);
    forgetful(knownDevice(db.executor)!);
    const before = db.snapshot();
    const results = [];
    for (const each of [Account, InMemory]) {
      const found: unknown[] = [];
      found.push(
        await db.updateWhere(each, {
          where: (a) => a.name.isNull().not(),
          set: (a) => ({ balance: a.balance.times(3), name: a.name.upper() }),
        }),
        await db.deleteWhere(each, { where: (a) => a.branch.lt(2) }),
        db.transactSync((tx) => [
          tx.updateWhere(each, {
            where: (a) => a.branch.eq(5),
            set: (a) => ({ balance: a.balance.minus(1) }),
          }),
          tx.aggregate(each, { values: (a) => ({ n: count(), sum: sum(a.balance) }) }),
          tx.deleteWhere(each, { where: (a) => a.balance.gt(1_100) }),
          [...tx.select(each, { where: (a) => a.id.lt(60), columns: ["id", "text"] })].sort(byId),
        ]),
        await before.aggregate(each, { values: (a) => ({ n: count(), sum: sum(a.balance) }) }),
        before
          .select(each, { where: (a) => a.branch.eq(1) })
          .toArray()
          .sort(byId),
        db
          .select(each, { where: (a) => a.name.startsWith("N1") })
          .toArray()
          .sort(byId),
      );
      results.push(found);
      flush(db);
    }
    before.close();
    expect(results[0]).toEqual(results[1]);
    expect(rowsOf(db, Account)).toEqual(rowsOf(db, InMemory));
    // One that fails half way has changed nothing.
    await failure("SITU_UNIQUE", () =>
      db.updateWhere(Account, { where: (a) => a.id.gt(100), set: { name: "same" } }),
    );
    expect(rowsOf(db, Account)).toEqual(rowsOf(db, InMemory));
    expect((await db.verify()).problems).toEqual([]);
  });
});

it("rows that have expired do not match, and plans are made without reading pages", async () => {
  const Account = SHAPES.expiring;
  const db = await filled(Account);
  const device = knownDevice(db.executor)!;
  await db.updateWhere(Account, { where: (a) => a.id.lt(100), set: { until: new Date(1_000) } });
  flush(db);
  const { misses } = device.buffer;
  const plan = await db.explain(Account, { where: (a) => a.branch.eq(3) });
  expect(plan.access).toBe("index");
  expect(device.buffer.misses).toBe(misses);
  forgetful(device);
  await db.transact(async (tx) => {
    const { n } = await tx.aggregate(Account, { values: () => ({ n: count() }) });
    const gone = await tx.deleteWhere(Account, { where: (a) => a.id.lt(150) });
    expect([n, gone.matched]).toEqual([ROWS - 100, 50]);
  });
  expect((await db.verify()).problems).toEqual([]);
});
