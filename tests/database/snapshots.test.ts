/** Snapshots as a user meets them: what they see, for how long, and what they say when misused. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { Snapshot } from "../../src/database/snapshot.ts";
import { MAX_SNAPSHOTS } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { i64, json, str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareIndexes, type Reader } from "../helpers/indexes.ts";
import {
  eventually,
  failure,
  failureSync,
  MIB,
  seed,
  sleep,
  temporaryStores,
} from "../helpers/store.ts";

const stores = temporaryStores();

const fields = { id: u32(), owner: str(12), note: str() };
const Hashed = table("hashed", fields, {
  key: "id",
  indexes: { byOwner: { on: ["owner"], kind: "hash" } },
});
const Ordered = table("ordered", fields, {
  key: "id",
  ordered: true,
  indexes: { byOwner: { on: ["owner"] }, byNote: { on: ["note"], unique: true } },
});
const Elsewhere = table("elsewhere", { id: u32() }, { key: "id" });
interface Row {
  id: number;
  owner: string;
  note: string;
}
/** Both kinds in the same way, so their types say no more than this. */
const tables: readonly Table<Row, number, Partial<Row>>[] = [Hashed, Ordered];

const row = (id: number, owner = "ada", note = `note ${id}`) => ({ id, owner, note });
const ids = (rows: Iterable<{ id: number }>): number[] => [...rows].map(({ id }) => id);
const upTo = (end: number): number[] => Array.from({ length: end }, (_, id) => id);

function fill(db: Database, rows: number): void {
  for (const Each of tables) {
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.put(Each, row(id));
    });
  }
}

async function filled(rows: number, options: { maxSnapshotMs?: number } = {}): Promise<Database> {
  const db = await stores.open({ tables, memoryBytes: 32 * MIB, ...options });
  fill(db, rows);
  return db;
}

function changeAll(db: Database, owner: string): void {
  for (const Each of tables) {
    db.transactSync((tx) => {
      for (const { id } of tx.scan(Each).toArray()) {
        if (id % 3 === 0) tx.delete(Each, id);
        else tx.update(Each, id, { owner, note: `${owner} ${id} ${"x".repeat(id % 200)}` });
      }
      for (let id = 10_000; id < 10_100; id++) tx.put(Each, row(id, owner, `${owner} ${id}`));
    });
  }
}

describe("what a snapshot sees", () => {
  it("everything that was committed before it, and nothing after, in every way", async () => {
    const db = await filled(300);
    const snap = db.snapshot();
    for (const owner of ["bob", "cy", "dan"]) changeAll(db, owner);
    for (const Each of tables) {
      expect(snap.get(Each, 0)).toEqual(row(0));
      expect(snap.get(Each, 10_001)).toBeUndefined();
      expect([snap.has(Each, 3), snap.has(Each, 10_001)]).toEqual([true, false]);
      expect(snap.getMany(Each, [2, 10_002, 6])).toEqual([row(2), undefined, row(6)]);
      expect(ids(snap.scan(Each)).sort((a, b) => a - b)).toEqual(upTo(300));
      expect(snap.count(Each)).toBe(300);
      expect(compareIndexes(db, Each, snap as unknown as Reader)).toBe(300);
    }
    expect(ids(snap.scan(Ordered, { gte: 290, reverse: true }))).toEqual(
      upTo(300).slice(290).reverse(),
    );
    expect(snap.count(Ordered, { index: "byOwner", eq: "ada" })).toBe(300);
    expect(snap.count(Hashed, { index: "byOwner", eq: "bob" })).toBe(0);
    expect(snap.get(Ordered, "note 3", { index: "byNote" })).toEqual(row(3));
    expect(db.get(Ordered, "note 3", { index: "byNote" })).toBeUndefined();
    snap.close();
  });

  it("an empty store; and tables that have shrunk since", async () => {
    const db = await stores.open({ tables, memoryBytes: 32 * MIB });
    const empty = db.snapshot();
    fill(db, 2_000);
    const full = db.snapshot();
    for (const Each of tables) {
      db.transactSync((tx) => {
        for (let id = 0; id < 2_000; id++) tx.delete(Each, id);
      });
    }
    for (const Each of tables) {
      expect([empty.count(Each), full.count(Each), db.count(Each)]).toEqual([0, 2_000, 0]);
      expect(empty.scan(Each).toArray()).toEqual([]);
      expect(ids(full.scan(Each)).sort((a, b) => a - b)).toEqual(upTo(2_000));
      expect(empty.get(Each, 7)).toBeUndefined();
      expect(full.get(Each, 1_999)).toEqual(row(1_999));
    }
  });

  it("many at once, against a model", async () => {
    const db = await stores.open({ tables, memoryBytes: 64 * MIB });
    const other = await stores.open({ path: db.path, tables });
    const random = new Random(seed);
    const model = tables.map(() => new Map<number, ReturnType<typeof row>>());
    const held: { snap: Snapshot; was: Map<number, unknown>[] }[] = [];
    const anything = (): [number, string, string] => {
      const id = random.below(400);
      const size = random.below(4) === 0 ? random.below(500) : random.below(10);
      return [id, `owner ${random.below(9)}`, `${id} ${"n".repeat(size)}`];
    };
    for (let round = 0; round < 150; round++) {
      const writer = random.below(2) === 0 ? db : other;
      const isolation = random.below(3) === 0 ? "snapshot" : "strict-serializable";
      const which = random.below(2);
      const [Each, rows] = [tables[which], model[which]];
      writer.transactSync(
        (tx) => {
          for (let i = random.below(60); i >= 0; i--) {
            const [id, owner, note] = anything();
            if (random.below(3) > 0) {
              tx.put(Each, row(id, owner, note));
              rows.set(id, row(id, owner, note));
            } else {
              expect(tx.delete(Each, id)).toBe(rows.delete(id));
            }
          }
        },
        { isolation },
      );
      const taker = random.below(2) === 0 ? db : other;
      if (held.length < 6) {
        held.push({ snap: taker.snapshot(), was: model.map((each) => new Map(each)) });
      }
      const at = random.below(held.length);
      const { snap, was } = held[at];
      for (const [i, Table] of tables.entries()) {
        const seen = [...snap.scan(Table)].sort((a, b) => a.id - b.id);
        const expected = [...was[i].values()] as { id: number }[];
        expect(seen, `round ${round}, seed ${seed}`).toEqual(expected.sort((a, b) => a.id - b.id));
        const id = random.below(400);
        expect(snap.get(Table, id)).toEqual(was[i].get(id));
        expect(snap.count(Table)).toBe(was[i].size);
      }
      if (random.below(10) === 0) {
        for (const Table of tables) compareIndexes(taker, Table, snap as unknown as Reader);
      }
      if (random.below(3) === 0) {
        snap.close();
        held.splice(at, 1);
      }
    }
    for (const { snap } of held) snap.close();
    expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
  });

  it("what other tables of the same name declare does not matter", async () => {
    const Plain = table("hashed", fields, { key: "id" });
    const db = await filled(50);
    const other = await stores.open({ path: db.path, tables: [Plain] });
    const snap = db.snapshot();
    other.transactSync((tx) => tx.update(Plain, 7, { owner: "bob" }));
    expect(snap.count(Hashed, { index: "byOwner", eq: "bob" })).toBe(0);
    expect(db.count(Hashed, { index: "byOwner", eq: "bob" })).toBe(1);
  });
});

describe("how a snapshot lives", () => {
  it("closes once, by hand or by `using`; a closed one reads nothing", async () => {
    const db = await filled(600);
    const snap = db.snapshot();
    expect([snap.isClosed, db.stats().snapshots.open]).toEqual([false, 1]);
    const scan = snap.scan(Ordered);
    const iterator = scan[Symbol.iterator]();
    const asyncIterator = scan[Symbol.asyncIterator]();
    iterator.next();
    await asyncIterator.next();
    snap.close();
    snap.close();
    expect([snap.isClosed, db.stats().snapshots.open]).toEqual([true, 0]);
    failureSync("SITU_CLOSED", () => snap.get(Ordered, 1));
    failureSync("SITU_CLOSED", () => snap.get(Ordered, "x", { index: "byNote" }));
    failureSync("SITU_CLOSED", () => snap.getMany(Ordered, [1]));
    failureSync("SITU_CLOSED", () => snap.has(Ordered, 1));
    failureSync("SITU_CLOSED", () => snap.scan(Ordered));
    failureSync("SITU_CLOSED", () => snap.count(Ordered));
    // Cursors end with it, also in the middle of what they have read.
    failureSync("SITU_CLOSED", () => iterator.next());
    await failure("SITU_CLOSED", () => asyncIterator.next());
    failureSync("SITU_CLOSED", () => [...scan]);
    failureSync("SITU_CLOSED", () => scan.toArray());
    expect(iterator.return?.()).toEqual({ done: true, value: undefined });

    const disposed = db.snapshot();
    disposed[Symbol.dispose]();
    expect(disposed.isClosed).toBe(true);
    let inside: Snapshot;
    {
      using used = db.snapshot();
      inside = used;
      expect(used.count(Ordered)).toBe(600);
    }
    expect(inside.isClosed).toBe(true);
    expect(db.stats().snapshots.open).toBe(0);
  });

  it("ends with its database", async () => {
    const db = await filled(10);
    const other = await stores.open({ path: db.path, tables });
    const snap = db.snapshot();
    const iterator = snap.scan(Ordered)[Symbol.iterator]();
    iterator.next();
    expect(other.stats().snapshots.open).toBe(1);
    await db.close();
    expect(other.stats().snapshots.open).toBe(0);
    failureSync("SITU_CLOSED", () => snap.get(Ordered, 1));
    failureSync("SITU_CLOSED", () => snap.count(Ordered));
    failureSync("SITU_CLOSED", () => iterator.next());
    failureSync("SITU_CLOSED", () => db.snapshot());
    snap.close();
  });

  it("is released after maxSnapshotMs, and then says so", async () => {
    const db = await filled(600, { maxSnapshotMs: 1_000 });
    const snap = db.snapshot();
    const iterator = snap.scan(Ordered)[Symbol.iterator]();
    expect(iterator.next().value).toEqual(row(0));
    changeAll(db, "bob");
    // By the background, which looks twice in a second.
    await eventually(() => db.stats().snapshots.open === 0);
    const { retryable } = failureSync("SITU_SNAPSHOT_TOO_OLD", () => snap.get(Hashed, 1));
    expect(retryable).toBe(true);
    failureSync("SITU_SNAPSHOT_TOO_OLD", () => snap.getMany(Ordered, [1, 2]));
    failureSync("SITU_SNAPSHOT_TOO_OLD", () => snap.has(Ordered, 1));
    failureSync("SITU_SNAPSHOT_TOO_OLD", () => snap.count(Ordered));
    failureSync("SITU_SNAPSHOT_TOO_OLD", () => snap.scan(Hashed).toArray());
    failureSync("SITU_SNAPSHOT_TOO_OLD", () => {
      for (;;) if (iterator.next().done) return;
    });
    await failure("SITU_SNAPSHOT_TOO_OLD", async () => {
      for await (const _ of snap.scan(Ordered));
    });
    expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
    expect(db.stats().counters.snapshotsReleased).toBe(1);
    // It is closed by its holder all the same, and a new one is at hand.
    snap.close();
    const next = db.snapshot();
    expect(next.count(Ordered)).toBe(500);
    next.close();
  });

  it("is released after maxSnapshotMs in code that never lets the event loop turn, too", async () => {
    const db = await filled(10, { maxSnapshotMs: 50 });
    const startMs = performance.now();
    const snap = db.snapshot();
    failureSync("SITU_SNAPSHOT_TOO_OLD", () => {
      while (performance.now() - startMs < 5_000) snap.get(Hashed, 1);
    });
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(49);
  });

  it("keeps versions only while it is open", async () => {
    const db = await filled(300);
    const { counters: before } = db.stats();
    changeAll(db, "bob");
    expect(db.stats().counters.versionsKept).toBe(before.versionsKept);
    const snap = db.snapshot();
    changeAll(db, "cy");
    await sleep(5);
    const { snapshots, counters } = db.stats();
    expect(counters.versionsKept).toBeGreaterThan(before.versionsKept);
    expect(counters.snapshots).toBeGreaterThan(before.snapshots);
    expect(snapshots.open).toBe(1);
    expect(snapshots.oldestMs).toBeGreaterThanOrEqual(4);
    expect(snapshots.versionBytes).toBeGreaterThan(0);
    expect(snapshots.versionBytes).toBeLessThanOrEqual(snapshots.limitBytes);
    // What nobody has seen between two changes is not kept a second time.
    changeAll(db, "dan");
    const kept = db.stats().counters.versionsKept;
    changeAll(db, "eve");
    expect(db.stats().counters.versionsKept - kept).toBeLessThan(
      (counters.versionsKept - before.versionsKept) / 2,
    );
    snap.close();
    expect(db.stats().snapshots).toMatchObject({ open: 0, oldestMs: 0, versionBytes: 0 });
  });

  it("there is room for so many, and then for one more when one is closed", async () => {
    const db = await filled(10);
    const open = Array.from({ length: MAX_SNAPSHOTS }, () => db.snapshot());
    expect(db.stats().snapshots.open).toBe(MAX_SNAPSHOTS);
    failureSync("SITU_FULL", () => db.snapshot());
    failureSync("SITU_FULL", () => db.count(Ordered));
    failureSync("SITU_FULL", () =>
      db.transactSync((tx) => tx.get(Ordered, 1), { isolation: "snapshot" }),
    );
    changeAll(db, "bob");
    expect(open[500].get(Ordered, 0)).toEqual(row(0));
    open[17].close();
    const last = db.snapshot();
    expect(last.get(Ordered, 0)).toBeUndefined();
    for (const snap of open) snap.close();
    last.close();
    expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
  });
});

describe("bad input", () => {
  it("gets a code", async () => {
    const db = await filled(10);
    const snap = db.snapshot();
    failureSync("SITU_UNKNOWN_TABLE", () => snap.get(Elsewhere, 1));
    failureSync("SITU_UNKNOWN_TABLE", () => snap.scan(Elsewhere));
    failureSync("SITU_UNKNOWN_TABLE", () => snap.count(Elsewhere));
    failureSync("SITU_UNKNOWN_TABLE", () => snap.has(undefined as never, 1 as never));
    failureSync("SITU_UNKNOWN_INDEX", () => snap.scan(Hashed, { index: "byNote" } as never));
    failureSync("SITU_UNKNOWN_INDEX", () => snap.count(Hashed, { index: 5 } as never));
    failureSync("SITU_UNKNOWN_INDEX", () =>
      snap.get(Hashed, "x" as never, { index: "no" } as never),
    );
    failureSync("SITU_TYPE", () => snap.get(Ordered, "x" as never, { index: "byOwner" } as never));
    failureSync("SITU_TYPE", () => snap.get(Ordered, "one" as never));
    failureSync("SITU_TYPE", () => snap.get(Ordered, -1));
    failureSync("SITU_TYPE", () => snap.getMany(Ordered, 5 as never));
    failureSync("SITU_TYPE", () => snap.getMany(Ordered, ["x"] as never));
    failureSync("SITU_TYPE", () => snap.scan(Hashed, { gte: 5 } as never));
    failureSync("SITU_TYPE", () => snap.scan(Ordered, { gte: "5" } as never));
    failureSync("SITU_TYPE", () => snap.scan(Ordered, { limit: -1 }));
    failureSync("SITU_TYPE", () => snap.scan(Ordered, { from: 1 } as never));
    failureSync("SITU_TYPE", () => snap.count(Ordered, { limit: 1 } as never));
    for (const maxSnapshotMs of [0, -1, Number.NaN, "1" as never]) {
      await failure("SITU_CONFIG", () => stores.open({ maxSnapshotMs }));
    }
    for (const versionBytes of [0, 1.5, -1, Number.NaN]) {
      await failure("SITU_CONFIG", () => stores.open({ versionBytes }));
    }
    // None of this has harmed it.
    expect(snap.count(Ordered)).toBe(10);
  });
});

describe("snapshots among transactions", () => {
  it("one taken inside of a body sees what is committed, not what the body does", async () => {
    const db = await filled(10);
    let snap: Snapshot | undefined;
    db.transactSync((tx) => {
      tx.update(Ordered, 1, { owner: "bob" });
      snap = db.snapshot();
      expect(snap.get(Ordered, 1)?.owner).toBe("ada");
      expect(snap.count(Ordered, { index: "byOwner", eq: "bob" })).toBe(0);
      expect(tx.count(Ordered, { index: "byOwner", eq: "bob" })).toBe(1);
      tx.update(Ordered, 2, { owner: "bob" });
    });
    expect(snap?.get(Ordered, 2)?.owner).toBe("ada");
    expect(db.count(Ordered, { index: "byOwner", eq: "bob" })).toBe(2);
    snap?.close();
    await db.transact(async (tx) => {
      await tx.update(Ordered, 3, { owner: "bob" });
      using inside = db.snapshot();
      expect(inside.get(Ordered, 3)?.owner).toBe("ada");
    });
    expect(db.get(Ordered, 3)?.owner).toBe("bob");
  });

  it("reads of several snapshots and transactions can be mixed at will", async () => {
    const db = await filled(1_000);
    const old = db.snapshot();
    changeAll(db, "bob");
    const now = db.snapshot();
    changeAll(db, "cy");
    let together = 0;
    const later = now.scan(Ordered)[Symbol.iterator]();
    for (const { id } of old.scan(Ordered)) {
      if (id % 3 === 0) expect(now.get(Ordered, id)).toBeUndefined();
      else {
        expect(later.next().value?.id).toBe(id);
        together++;
      }
      db.transactSync((tx) => tx.put(Ordered, row(id, "dan")));
    }
    expect(together).toBe(666);
    old.close();
    now.close();
  });

  it("json and large rows come as they were", async () => {
    const Document = table("document", { id: u32(), body: json(), sum: i64() }, { key: "id" });
    const db = await stores.open({ tables: [Document], memoryBytes: 32 * MIB });
    const body = (round: number) => ({ round, text: "t".repeat(20_000) });
    db.transactSync((tx) => tx.put(Document, { id: 1, body: body(0), sum: 0n }));
    const held: Snapshot[] = [];
    for (let round = 1; round < 8; round++) {
      held.push(db.snapshot());
      db.transactSync((tx) => tx.put(Document, { id: 1, body: body(round), sum: BigInt(round) }));
      if (round === 5) db.transactSync((tx) => tx.delete(Document, 1));
    }
    held.forEach((snap, round) => {
      const expected = round === 5 ? undefined : { id: 1, body: body(round), sum: BigInt(round) };
      expect(snap.get(Document, 1)).toEqual(expected);
    });
    for (const snap of held) snap.close();
  });
});
