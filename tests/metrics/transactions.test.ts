/** What transactions leave in the counters: commits, aborts and failures by reason, retries, times. */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { Stats } from "../../src/database/local/stats.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, failureSync, MIB, sleep, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const Large = table("large", { id: u32(), text: str() }, { key: "id" });

async function opened(path?: string): Promise<Database> {
  const db = await stores.open({
    tables: [Cell, Large],
    memoryBytes: 8 * MIB,
    ...(path === undefined ? {} : { path }),
  });
  if (path === undefined) db.transactSync((tx) => tx.put(Cell, { id: 1, value: 0 }));
  return db;
}

/** What has changed since, without what stayed as it was. */
function growth(before: Stats, after: Stats): Record<string, number> {
  const flat = ({ aborts, failures, counters }: Stats): Record<string, number> => ({
    ...Object.fromEntries(Object.entries(aborts).map(([name, n]) => [`abort ${name}`, n])),
    ...Object.fromEntries(Object.entries(failures).map(([name, n]) => [`failure ${name}`, n])),
    commits: counters.commits,
    readOnlyCommits: counters.readOnlyCommits,
    conflicts: counters.conflicts,
    retries: counters.retries,
  });
  const [old, now] = [flat(before), flat(after)];
  return Object.fromEntries(
    Object.entries(now)
      .map(([name, count]) => [name, count - old[name]] as const)
      .filter(([, count]) => count !== 0),
  );
}

/** The same without what `stats` itself reads. */
async function counted(db: Database, work: () => unknown): Promise<Record<string, number>> {
  const own = growth(db.stats(), db.stats()).readOnlyCommits ?? 0;
  const before = db.stats();
  await work();
  const found = growth(before, db.stats());
  const readOnlyCommits = (found.readOnlyCommits ?? 0) - own;
  const { readOnlyCommits: _, ...others } = found;
  return readOnlyCommits === 0 ? others : { ...others, readOnlyCommits };
}

describe("transactSync", () => {
  it("commits", async () => {
    const db = await opened();
    expect(await counted(db, () => db.transactSync((tx) => tx.get(Cell, 1)))).toEqual({
      readOnlyCommits: 1,
    });
    const put = (): unknown => db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    expect(await counted(db, put)).toEqual({ commits: 1 });
  });

  it("a body that throws is rolled back, and so is one whose operation fails", async () => {
    const db = await opened();
    const thrown = (): unknown =>
      expect(() =>
        db.transactSync((tx) => {
          tx.put(Cell, { id: 1, value: 1 });
          throw new Error("no");
        }),
      ).toThrow("no");
    expect(await counted(db, thrown)).toEqual({ "abort rolledBack": 1, "failure rolledBack": 1 });
    const taken = (): unknown =>
      failureSync("SITU_EXISTS", () =>
        db.transactSync((tx) => tx.insert(Cell, { id: 1, value: 1 })),
      );
    expect(await counted(db, taken)).toEqual({ "abort rolledBack": 1, "failure rolledBack": 1 });
  });

  it("what was read and has changed: validation, and a retry", async () => {
    const db = await opened();
    const other = await opened(db.path);
    let interrupted = false;
    const work = (): unknown =>
      db.transactSync((tx) => {
        const row = tx.get(Cell, 1);
        if (!interrupted) other.transactSync((o) => o.put(Cell, { id: 1, value: 7 }));
        interrupted = true;
        tx.put(Cell, { id: 2, value: row?.value ?? 0 });
      });
    expect(await counted(db, work)).toEqual({
      commits: 2,
      conflicts: 1,
      "abort validation": 1,
      retries: 1,
    });
  });

  it("one who never gets through fails with a conflict, after as many aborts as attempts", async () => {
    const db = await opened();
    const other = await opened(db.path);
    let value = 0;
    const work = (): unknown =>
      failureSync("SITU_CONFLICT", () =>
        db.transactSync(
          (tx) => {
            tx.get(Cell, 1);
            other.transactSync((o) => o.put(Cell, { id: 1, value: value++ }));
            tx.put(Cell, { id: 2, value });
          },
          // Enough for a first attempt on any machine.
          { timeoutMs: 300 },
        ),
      );
    const found = await counted(db, work);
    expect(found["failure conflict"]).toBe(1);
    expect(found["abort validation"]).toBe(found.commits);
    // The other one yields when this one has the turn.
    const yielded = found["abort lock"] ?? 0;
    expect(found.conflicts).toBe(found.commits + yielded);
    expect(found.retries).toBe(found.commits - 1 + yielded);
  });

  it("a store that is full", async () => {
    const db = await opened();
    const text = "x".repeat(500_000);
    const work = (): unknown =>
      failureSync("SITU_FULL", () => {
        for (let id = 0; ; id++) db.transactSync((tx) => tx.put(Large, { id, text }));
      });
    const found = await counted(db, work);
    expect(found["failure full"]).toBe(1);
    expect(found["abort memory"]).toBeGreaterThan(0);
    expect(found.commits).toBeGreaterThan(5);
  });

  it("a value that is too large", async () => {
    const db = await opened();
    const text = "x".repeat(2 * MIB);
    const work = (): unknown =>
      failureSync("SITU_TOO_LARGE", () => db.transactSync((tx) => tx.put(Large, { id: 1, text })));
    expect(await counted(db, work)).toEqual({ "abort tooLarge": 1, "failure tooLarge": 1 });
  });

  it("a call that is wrong is no transaction", async () => {
    const db = await opened();
    const work = (): void => {
      failureSync("SITU_TYPE", () => db.transactSync(undefined as never));
      failureSync("SITU_CONFIG", () => db.transactSync(() => 1, { timeoutMs: -1 }));
    };
    expect(await counted(db, work)).toEqual({});
  });
});

describe("transact", () => {
  it("counts as the synchronous one does", async () => {
    const db = await opened();
    const other = await opened(db.path);
    let interrupted = false;
    const retried = (): unknown =>
      db.transact(async (tx) => {
        await tx.get(Cell, 1);
        if (!interrupted) other.transactSync((o) => o.put(Cell, { id: 1, value: 7 }));
        interrupted = true;
        await tx.put(Cell, { id: 2, value: 1 });
      });
    expect(await counted(db, retried)).toEqual({
      commits: 2,
      conflicts: 1,
      "abort validation": 1,
      retries: 1,
    });
    const thrown = (): unknown =>
      expect(
        db.transact(async () => {
          throw new Error("no");
        }),
      ).rejects.toThrow("no");
    expect(await counted(db, thrown)).toEqual({ "abort rolledBack": 1, "failure rolledBack": 1 });
  });

  it("a body that does not end in time, and one that its signal aborts", async () => {
    const db = await opened();
    const slow = (): unknown =>
      failure("SITU_TIMEOUT", () => db.transact(() => sleep(300), { timeoutMs: 20 }));
    expect(await counted(db, slow)).toEqual({ "abort timeout": 1, "failure timeout": 1 });
    const aborted = (): unknown =>
      failure("SITU_ABORTED", () => {
        const controller = new AbortController();
        const running = db.transact(() => sleep(300), { signal: controller.signal });
        controller.abort();
        return running;
      });
    expect(await counted(db, aborted)).toEqual({ "abort other": 1, "failure other": 1 });
  });
});

describe("times", () => {
  it("asynchronous ones are timed each, synchronous ones by a sample that stands for all", async () => {
    const db = await opened();
    for (let i = 0; i < 10; i++) await db.transact((tx) => tx.get(Cell, 1));
    expect(db.stats().latency.async.count).toBe(10);

    const times = 20_000;
    const before = db.stats().latency.sync;
    for (let i = 0; i < times; i++) db.transactSync((tx) => tx.get(Cell, 1));
    const { sync } = db.stats().latency;
    const found = sync.count - before.count;
    // The last one that was timed lies less than two averages back, on both sides.
    expect(found).toBeGreaterThan(times - 128);
    expect(found).toBeLessThan(times + 128);
    expect(sync.sumMs).toBeGreaterThan(before.sumMs);
    // Far fewer looks at the clock than transactions: a bucket grows by dozens at a time.
    const steps = sync.buckets.map((bucket, i) => bucket - before.buckets[i]);
    expect(steps.reduce((sum, step) => sum + step)).toBe(found);
  });

  it("those that wait for the disk are timed each", async () => {
    const db = await stores.open({ tables: [Cell], durability: "sync", path: stores.folder() });
    const before = db.stats().latency.sync.count;
    for (let i = 0; i < 5; i++) db.transactSync((tx) => tx.put(Cell, { id: i, value: i }));
    expect(db.stats().latency.sync.count - before).toBe(5);
  });
});
