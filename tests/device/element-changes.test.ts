/**
 * Updates and deletes in the threads of the device: they do what the host does, in one transaction, beside others
 * that change the same rows; and what is stopped or fails has changed nothing and gives its pages back.
 */

import { describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import type { Change } from "../../src/database/watch.ts";
import { knownDevice } from "../../src/device/device.ts";
import { AccessSet } from "../../src/engine/access-set.ts";
import { runReadOnly } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { readIdentity, removeMemory } from "../../src/folder/store-files.ts";
import { MAX_DEVICE_CHANGE_OBJECTS } from "../../src/runtime/limits.ts";
import { updateProgram } from "../../src/tables/bulk/requests.ts";
import { openTable } from "../../src/tables/catalogue.ts";
import { type DeviceWork, workOf } from "../../src/tables/device/device-work.ts";
import { ChangeJob } from "../../src/tables/device/elements/change-job.ts";
import { hasDeviceJobs } from "../../src/tables/device/elements/device-jobs.ts";
import { RememberedMaps } from "../../src/tables/device/elements/map-steps.ts";
import { SIGNAL_WORDS } from "../../src/tables/device/elements/messages.ts";
import { Projections } from "../../src/tables/device/elements/projection.ts";
import { count, sum } from "../../src/tables/expressions/aggregates.ts";
import { programText } from "../../src/tables/expressions/program.ts";
import { i32, nullable, str, timestamp, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, temporaryStores } from "../helpers/store.ts";
import { changeHere } from "./change-here.ts";

const stores = temporaryStores();
const fields = {
  id: u32(),
  branch: u32(),
  balance: i32(),
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
  indexed: table("item", fields, {
    ...options,
    indexes: { byBranch: { on: ["branch"] } },
  }) as unknown as Item,
  expiring: table("item", fields, { ...options, expires: "until" }) as unknown as Item,
};
const ROWS = 600;
const SHORT_ROWS = 3_000;
const place = "device" as const;

type Both = Database & LocalDatabase;

const workIn = (db: LocalDatabase): DeviceWork => workOf(knownDevice(db.executor)!)[0];

function flush(db: LocalDatabase): void {
  const { mover } = workIn(db);
  while (mover.move(Number.POSITIVE_INFINITY));
}

async function filled(Item: Item, more: object = {}): Promise<Both> {
  const db = await stores.open({ tables: [Item], memoryBytes: 32 * 2 ** 20, ...more });
  for (let from = 0; from < ROWS; from += 200) {
    db.transactSync((tx) => {
      for (let id = from; id < from + 200; id++) {
        const text = "x".repeat(id % 150 === 7 ? 20_000 : 200 + (id % 300));
        const until = id % 10 === 0 ? new Date(1) : null;
        tx.insert(Item, { id, branch: id % 7, balance: id, text, until });
      }
    });
  }
  flush(db);
  for (let id = 1; id < ROWS; id += 20) db.update(Item, id, { balance: 5 });
  return db as Both;
}

const byId = (a: { id: number }, b: { id: number }): number => a.id - b.id;
const rowsOf = (db: LocalDatabase, Item: Item) => db.scan(Item).toArray().sort(byId);

/** Nobody waits for the last step of an update. */
async function settled(db: LocalDatabase): Promise<void> {
  while (hasDeviceJobs(db.executor)) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Has the space of what was replaced looked after, until nothing is left to do. */
async function collect(db: LocalDatabase): Promise<void> {
  await settled(db);
  const { collector, table: shared } = workIn(db);
  shared.writtenPages = 2 ** 30;
  while (collector.work(Number.POSITIVE_INFINITY));
  while (!collector.isIdle) {
    collector.work(Number.POSITIVE_INFINITY);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function freePages(db: LocalDatabase): number {
  const { free } = workIn(db).table;
  const look = (tx: Transaction): number => {
    const cursor = free.cursor({ from: undefined, to: undefined }, false);
    let pages = 0;
    for (let some = cursor.skip(tx); some > 0; some = cursor.skip(tx)) pages += some;
    return pages;
  };
  return runReadOnly(db.executor, new Transaction(db.executor), look, undefined);
}

describe.each(Object.entries(SHAPES))("a table of shape %s", (shape, Item) => {
  it("is changed as by the host", async () => {
    const work = async (where: "host" | "device"): Promise<unknown[]> => {
      const db = await filled(Item);
      const found: unknown[] = [];
      const told = await db.updateWhere(Item, {
        place: where,
        where: (i) => i.branch.in([1, 3, 5]).and(i.id.lt(500)),
        set: (i) => ({ balance: i.balance.plus(1), text: i.text.concat("yz") }),
      });
      expect(told.place).toBe(where);
      found.push(told.matched, told.changed, rowsOf(db, Item));
      // Half of them have the value already; all rows become long ones, and short again.
      const half = await db.updateWhere(Item, {
        place: where,
        where: (i) => i.id.gt(300),
        set: { balance: 5 },
      });
      const long = await db.updateWhere(Item, {
        place: where,
        where: (i) => i.id.lt(9),
        set: { text: "t".repeat(9_000) },
      });
      const short = await db.updateWhere(Item, { place: where, set: { text: "s" } });
      found.push([half, long, short].map(({ matched, changed }) => [matched, changed]));
      if (shape !== "indexed" && shape !== "expiring") {
        const gone = await db.deleteWhere(Item, { place: where, where: (i) => i.branch.eq(2) });
        found.push(gone.matched);
      }
      found.push(rowsOf(db, Item));
      await collect(db);
      expect((await db.verify()).problems).toEqual([]);
      found.push(rowsOf(db, Item));
      await settled(db);
      return found;
    };
    expect(await work("device")).toEqual(await work("host"));
  });
});

describe("an update in the device", () => {
  it("counts every row once, beside transactions that move amounts and rows", async () => {
    const db = await filled(Item);
    const total = async (): Promise<number> => {
      const found = await db.aggregate(Item, {
        values: (i) => ({ n: count(), sum: sum(i.balance) }),
      });
      expect(found.n).toBe(ROWS);
      return found.sum;
    };
    const before = await total();
    let isDone = false;
    let transfers = 0;
    const transfer = async (seed: number): Promise<void> => {
      for (let i = seed; !isDone; i += 7) {
        await db.transact(async (tx) => {
          const from = (i * 31) % ROWS;
          const to = (i * 17 + 1) % ROWS;
          if (from === to) return;
          const [a, b] = [await tx.get(Item, from), await tx.get(Item, to)];
          await tx.update(Item, from, { balance: a!.balance - 1 });
          await tx.update(Item, to, { balance: b!.balance + 1 });
        });
        if (++transfers % 20 === 0) flush(db);
      }
    };
    const others = [transfer(1), transfer(2)];
    const rounds = 8;
    for (let round = 0; round < rounds; round++) {
      const { matched, changed } = await db.updateWhere(Item, {
        place,
        set: (i) => ({ balance: i.balance.plus(1) }),
      });
      expect([matched, changed]).toEqual([ROWS, ROWS]);
    }
    isDone = true;
    await Promise.all(others);
    expect(transfers).toBeGreaterThan(0);
    expect(await total()).toBe(before + rounds * ROWS);
    await collect(db);
    expect((await db.verify()).problems).toEqual([]);
    expect(await total()).toBe(before + rounds * ROWS);
  });

  it("is seen whole or not at all", async () => {
    const db = await filled(Item);
    await db.updateWhere(Item, { place, set: { balance: 0 } });
    const old = db.snapshot();
    let isDone = false;
    const look = (async () => {
      let last = 0;
      while (!isDone) {
        const seen = await db.aggregate(Item, {
          groupBy: ["balance"],
          values: () => ({ n: count() }),
        });
        expect(seen).toHaveLength(1);
        expect(seen[0].n).toBe(ROWS);
        expect(seen[0].balance).toBeGreaterThanOrEqual(last);
        last = seen[0].balance;
      }
    })();
    for (let balance = 1; balance <= 6; balance++) {
      await db.updateWhere(Item, { place, set: { balance } });
    }
    isDone = true;
    await look;
    const seen = await old.aggregate(Item, {
      groupBy: ["balance"],
      values: () => ({ n: count() }),
    });
    expect(seen).toEqual([{ balance: 0, n: ROWS }]);
    old.close();
  });

  it("changes nothing when it fails, and gives its pages back", async () => {
    const db = await filled(Item);
    const before = rowsOf(db, Item);
    const pages = workIn(db).table.file.pages();
    await failure("SITU_ARITHMETIC", () =>
      db.updateWhere(Item, {
        place,
        where: (i) => i.id.ne(7),
        set: (i) => ({ balance: i.balance.plus(2 ** 31 - ROWS / 2), text: "changed" }),
      }),
    );
    expect(rowsOf(db, Item)).toEqual(before);
    await settled(db);
    const added = workIn(db).table.file.pages() - pages;
    expect(freePages(db)).toBe(added);
    const { matched } = await db.updateWhere(Item, { place, set: { text: "changed" } });
    expect(matched).toBe(ROWS);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("keeps its pages when something fails after the commit point, and only then", async () => {
    const db = await filled(Item);
    const { executor } = db;
    const { committer } = executor;
    const before = rowsOf(db, Item);
    const update = { set: { text: "changed" } };
    const isOwn = (tx: Transaction): boolean => tx.set.mostObjects === MAX_DEVICE_CHANGE_OBJECTS;
    const commits = committer.commit.bind(committer);
    const commit = vi.spyOn(committer, "commit");
    const pages = workIn(db).table.file.pages();
    commit.mockImplementation((tx) => {
      if (isOwn(tx)) throw new Error("before the commit point");
      return commits(tx);
    });
    await expect(changeHere(db, Item, update)).rejects.toThrow("before the commit point");
    expect(rowsOf(db, Item)).toEqual(before);
    const added = workIn(db).table.file.pages() - pages;
    expect(added).toBeGreaterThan(0);
    expect(freePages(db)).toBe(added);

    let isCommitted = false;
    commit.mockImplementation((tx) => {
      const isDone = commits(tx);
      if (isDone && isOwn(tx)) isCommitted = true;
      return isDone;
    });
    const leaves = executor.leave.bind(executor);
    const leave = vi.spyOn(executor, "leave").mockImplementation((entered) => {
      leaves(entered);
      if (!isCommitted) return;
      isCommitted = false;
      throw new Error("after the commit point");
    });
    await expect(changeHere(db, Item, update)).rejects.toThrow("after the commit point");
    commit.mockRestore();
    leave.mockRestore();
    const after = before.map((row) => ({ ...row, text: "changed" }));
    expect(rowsOf(db, Item)).toEqual(after);
    expect(freePages(db)).toBeLessThan(added);
    // What is free is written to.
    await expect(
      db.updateWhere(Item, { place, where: (i) => i.id.lt(300), set: { text: "again" } }),
    ).resolves.toMatchObject({ changed: 300 });
    const last = after.map((row) => (row.id < 300 ? { ...row, text: "again" } : row));
    expect(rowsOf(db, Item)).toEqual(last);
    expect((await db.verify()).problems).toEqual([]);
    await collect(db);
    expect(rowsOf(db, Item)).toEqual(last);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("is stopped by a signal", async () => {
    const db = await filled(Item);
    const before = rowsOf(db, Item);
    const stopped = new AbortController();
    stopped.abort();
    const { signal } = stopped;
    await failure("SITU_ABORTED", () =>
      db.updateWhere(Item, { place, set: { balance: 1 } }, { signal }),
    );
    for (let delay = 0; delay < 8; delay++) {
      const controller = new AbortController();
      const running = db.updateWhere(
        Item,
        { place, set: { balance: 2_000 + delay, text: "t" } },
        { signal: controller.signal },
      );
      setTimeout(() => controller.abort(), delay);
      const ended = await running.catch((error: unknown) => error);
      const first = db.get(Item, 3)!.balance;
      if (ended instanceof Error) expect(ended).toMatchObject({ code: "SITU_ABORTED" });
      else expect(first).toBe(2_000 + delay);
      const found = rowsOf(db, Item);
      // All of them or none.
      expect(new Set(found.map(({ balance }) => balance > 1_999)).size).toBe(1);
      if (first < 2_000) expect(found).toEqual(before);
      await settled(db);
    }
    expect((await db.verify()).problems).toEqual([]);
  });

  it("uses the space again that rows have left", async () => {
    const db = await filled(Item);
    let most = 0;
    for (let round = 0; round < 12; round++) {
      await db.updateWhere(Item, { place, set: { balance: round } });
      await collect(db);
      const pages = workIn(db).table.file.pages();
      if (round === 4) most = pages;
      if (round > 4) expect(pages).toBeLessThanOrEqual(most);
    }
    expect((await db.verify()).problems).toEqual([]);
  });

  it("refuses to be part of a transaction", async () => {
    const db = await filled(Item);
    await failure("SITU_UNSUPPORTED", () =>
      db.transact((tx) => tx.updateWhere(Item, { place, set: { balance: 1 } })),
    );
  });

  it("changes indexed fields and rows with their entries, as the host does", async () => {
    const Indexed = SHAPES.indexed;
    const found = async (where: "host" | "device"): Promise<unknown[]> => {
      const db = await filled(Indexed);
      const updated = await db.updateWhere(Indexed, {
        place: where,
        where: (i) => i.balance.gt(40),
        set: (i) => ({ branch: i.branch.plus(10), text: "moved" }),
      });
      const gone = await db.deleteWhere(Indexed, { place: where, where: (i) => i.branch.eq(12) });
      expect((await db.verify()).problems).toEqual([]);
      const byBranch = db.scan(Indexed, { index: "byBranch", eq: 13 } as never).toArray();
      return [updated.matched, gone.matched, rowsOf(db, Indexed), byBranch.sort(byId)];
    };
    expect(await found("device")).toEqual(await found("host"));
  });

  it("changes nothing where a unique index would be violated", async () => {
    const Unique = table("item", fields, {
      ...options,
      indexes: { byBalance: { on: ["balance"], unique: true } },
    }) as unknown as Item;
    const db = (await stores.open({ tables: [Unique], memoryBytes: 32 * 2 ** 20 })) as Both;
    db.transactSync((tx) => {
      for (let id = 0; id < 50; id++) {
        tx.insert(Unique, { id, branch: 1, balance: id, text: "x", until: null });
      }
    });
    flush(db);
    const before = rowsOf(db, Unique);
    await failure("SITU_UNIQUE", () =>
      db.updateWhere(Unique, { place, where: (i) => i.id.gt(40), set: { balance: 3 } }),
    );
    expect(rowsOf(db, Unique)).toEqual(before);
    const moved = await db.updateWhere(Unique, {
      place,
      set: (i) => ({ balance: i.balance.plus(1_000) }),
    });
    expect(moved.changed).toBe(50);
    expect((await db.verify()).problems).toEqual([]);
  });

  it("is told to those who watch the table", async () => {
    const db = await filled(Item, { durability: "lazy" });
    const watch = db.watch(Item);
    await watch.ready();
    await db.updateWhere(Item, { place, where: (i) => i.id.lt(10), set: { balance: 77 } });
    await db.deleteWhere(Item, { place, where: (i) => i.id.eq(599) });
    const seen: [number, string, number][] = [];
    while (seen.length < 11) {
      const { value } = await watch.next();
      const { key, type, row } = value as Change<{ balance: number }, number>;
      seen.push([key, type, row.balance]);
    }
    await watch.return();
    expect(seen.sort(([a], [b]) => a - b)).toEqual([
      ...Array.from({ length: 10 }, (_, id) => [id, "update", 77]),
      [599, "delete", 599],
    ]);
  });

  it("reads more of the map than other transactions may read", async () => {
    const Short = table("short", { id: u32(), n: u32() }, options);
    const db = (await stores.open({ tables: [Short], memoryBytes: 32 * 2 ** 20 })) as Both;
    for (let from = 0; from < SHORT_ROWS; from += 500) {
      db.transactSync((tx) => {
        for (let id = from; id < from + 500; id++) tx.insert(Short, { id, n: 0 });
      });
    }
    flush(db);
    const { executor } = db;
    const store = openTable(executor, Short as never);
    type Row = { id: { eq(id: number): unknown } };
    const program = { where: (row: Row) => row.id.eq(7), set: { n: 1 } };
    const most = AccessSet.mostObjects;
    AccessSet.mostObjects = 256;
    try {
      const job = new ChangeJob(
        {
          executor,
          store,
          shared: workIn(db).table,
          projections: new Projections(),
          maps: new RememberedMaps(),
        },
        {
          kind: "change",
          id: 1,
          table: Short as never,
          root: store.root,
          program: programText(updateProgram(Short as never, program, true)),
          momentMs: 0,
          timeoutMs: 10_000,
          waits: false,
          signals: new Int32Array(new SharedArrayBuffer(SIGNAL_WORDS * 4)),
          death: undefined,
        },
      );
      const changed = await job.run(() => store);
      await job.end();
      expect(changed.matched).toBe(1);
      const all = new Transaction(executor);
      const cursor = workIn(db).table.map.cursor({ from: undefined, to: undefined }, false);
      const walk = (tx: Transaction): void => {
        while (cursor.skip(tx) > 0);
      };
      expect(() => runReadOnly(executor, all, walk, undefined)).toThrow("more than 256 objects");
    } finally {
      AccessSet.mostObjects = most;
    }
    expect(db.get(Short, 7)?.n).toBe(1);
  });

  it("is there after a restart, from the log", async () => {
    const path = stores.folder();
    const db = await filled(Item, { path, durability: "sync" });
    await db.updateWhere(Item, { place, set: (i) => ({ balance: i.balance.plus(1_000) }) });
    const rows = rowsOf(db, Item);
    await db.close();
    removeMemory(readIdentity(path)!);
    const again = await stores.open({ path, tables: [Item] });
    expect(again.recovered).toBeDefined();
    expect(rowsOf(again, Item)).toEqual(rows);
    expect((await again.verify()).problems).toEqual([]);
  });
});
