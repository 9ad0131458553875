/** Scans outside of transactions, each with a snapshot of its own; and snapshots of threads. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareIndexes, type Reader } from "../helpers/indexes.ts";
import { MIB, sleep, temporaryStores } from "../helpers/store.ts";
import { startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const ROWS = 2_000;
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
interface Row {
  id: number;
  owner: string;
  note: string;
}
/** Both kinds in the same way, so their types say no more than this. */
const tables: readonly Table<Row, number, Partial<Row>>[] = [Hashed, Ordered];

const row = (id: number, owner = "ada", note = `note ${id}`) => ({ id, owner, note });

function fill(db: Database, rows: number): void {
  for (const Each of tables) {
    db.transactSync((tx) => {
      for (let id = 0; id < rows; id++) tx.put(Each, row(id));
    });
  }
}

async function filled(rows: number): Promise<Database> {
  const db = await stores.open({ tables, memoryBytes: 32 * MIB });
  fill(db, rows);
  return db;
}

describe("scans outside of transactions have a snapshot of their own", () => {
  const open = (db: Database): number => db.stats().snapshots.open;

  it("for each iteration, closed at the end, on break, on throw", async () => {
    const db = await filled(600);
    const scan = db.scan(Ordered);
    expect(open(db)).toBe(0);
    let isFirst = true;
    for (const { id } of scan) {
      if (isFirst) expect(open(db)).toBe(1);
      isFirst = false;
      // The rows are those of the beginning, whatever is changed meanwhile.
      db.transactSync((tx) => tx.update(Ordered, id, { owner: "seen" }));
    }
    expect(open(db)).toBe(0);
    for (const { owner } of scan) {
      expect([owner, open(db)]).toEqual(["seen", 1]);
      break;
    }
    expect(open(db)).toBe(0);
    expect(() => {
      for (const _ of scan) throw new Error("mine");
    }).toThrow("mine");
    expect(open(db)).toBe(0);
    for await (const { id } of scan) if (id === 300) break;
    expect(open(db)).toBe(0);
    await expect(async () => {
      for await (const _ of scan) throw new Error("mine");
    }).rejects.toThrow("mine");
    expect(open(db)).toBe(0);
    expect(scan.toArray().length).toBe(600);
    expect(db.count(Ordered)).toBe(600);
    const [first] = scan;
    expect(first.id).toBe(0);
    expect(db.scan(Ordered, { limit: 0 }).toArray()).toEqual([]);
    expect(open(db)).toBe(0);
  });

  it("for await lets the event loop turn; the rows are of one moment all the same", async () => {
    const db = await filled(ROWS);
    const snap = db.snapshot();
    let turns = 0;
    let isOver = false;
    const turn = (): void => {
      if (isOver) return;
      turns++;
      db.transactSync((tx) => {
        for (let id = turns % 10; id < ROWS; id += 10) {
          if (turns % 3 === 0) tx.delete(Ordered, id);
          else tx.put(Ordered, row(id, `turn ${turns}`));
        }
      });
      setImmediate(turn);
    };
    setImmediate(turn);
    let rows = 0;
    const startMs = performance.now();
    for await (const seen of snap.scan(Ordered)) {
      expect(seen).toEqual(row(rows++));
      while (performance.now() - startMs < rows * 0.01);
    }
    isOver = true;
    expect(rows).toBe(ROWS);
    expect(turns).toBeGreaterThan(1);
    const before = turns;
    for (const _ of snap.scan(Hashed)) rows++;
    expect([rows, turns]).toEqual([2 * ROWS, before]);
    snap.close();
  });
});

describe("threads only", () => {
  it("workers and snapshots share a store without files", async () => {
    const path = stores.folder();
    const options = { path, sharing: "threads", memoryBytes: 32 * MIB } as const;
    const db = await stores.open({ ...options, tables, maxSnapshotMs: 30_000 });
    fill(db, 200);
    const worker = startWorker(
      stores,
      `
      const { open, table, u32, str } = situ;
      const fields = { id: u32(), owner: str(12), note: str() };
      const Hashed = table("hashed", fields, { key: "id", indexes: { byOwner: { on: ["owner"], kind: "hash" } } });
      const Ordered = table("ordered", fields, { key: "id", ordered: true,
        indexes: { byOwner: { on: ["owner"] }, byNote: { on: ["note"], unique: true } } });
      const db = await open({ path: data.path, sharing: "threads", tables: [Hashed, Ordered] });
      for (let round = 0; round < 60; round++) {
        db.transactSync((tx) => {
          for (const Each of [Hashed, Ordered]) {
            for (const { id } of tx.scan(Each).toArray()) {
              if (id % 10 === round % 10) tx.delete(Each, id);
              else tx.update(Each, id, { owner: "w" + round });
            }
            for (let id = 0; id < 200; id++) {
              if (id % 10 === (round + 5) % 10) tx.put(Each, { id, owner: "w" + round, note: "w " + id });
            }
          }
        });
      }
      await db.close();`,
      { path },
    );
    const first = db.snapshot();
    const before = tables.map((Each) => first.scan(Each).toArray());
    let isOver = false;
    void worker.result.finally(() => {
      isOver = true;
    });
    let taken = 0;
    while (!isOver) {
      using snap = db.snapshot();
      const owners = tables.map(
        (Each) =>
          new Set(
            snap
              .scan(Each)
              .toArray()
              .map((each) => each.owner),
          ),
      );
      // Whole rounds, the same in both tables.
      for (const each of owners) expect([...each]).toEqual([...owners[0]]);
      expect(owners[0].size).toBe(1);
      expect(compareIndexes(db, Ordered, snap as unknown as Reader)).toBe(snap.count(Hashed));
      taken++;
      await sleep(0);
    }
    await worker.result;
    expect(taken).toBeGreaterThan(1);
    expect(tables.map((Each) => first.scan(Each).toArray())).toEqual(before);
    first.close();
    expect(db.stats().snapshots).toMatchObject({ open: 0, versionBytes: 0 });
  });
});
