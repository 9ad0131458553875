/** A store without room: errors before anything is changed, and memory that comes back. */

import { describe, expect, it, vi } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy } from "../../src/database/open.ts";
import { Executor } from "../../src/engine/executor.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { RECLAIM_ATTEMPTS } from "../../src/runtime/limits.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { eventually, failure, failureSync, MIB, sleep, temporaryStores } from "../helpers/store.ts";
import { startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });

const tables = [Blob, Cell];
const opened = (path = stores.folder()): Promise<Database> =>
  stores.open({ path, tables, memoryBytes: 8 * MIB });

function blob(id: number, size: number): { id: number; data: Uint8Array } {
  return { id, data: new Uint8Array(size).fill(id & 255) };
}

/** Inserts rows of one size until there is no room; returns how many there are then. */
function fill(db: Database, size: number, from = 0): number {
  for (let id = from; ; id++) {
    try {
      db.transactSync((tx) => tx.insert(Blob, blob(id, size)));
    } catch (error) {
      if (error instanceof SituError && error.code === "SITU_FULL") return id - from;
      throw error;
    }
  }
}

function expectRows(db: Database, count: number, size: number, from = 0): void {
  for (let id = from; id < from + count; id++) {
    const row = db.get(Blob, id);
    if (row?.data.length !== size || row.data[size - 1] !== (id & 255)) {
      throw new Error(`row ${id} is ${row?.data.length} bytes, not ${size}`);
    }
  }
}

describe("full", () => {
  it("SITU_FULL says what to do; what is there stays, reads and deletes go on", async () => {
    const db = await opened();
    const rows = fill(db, 10_000);
    expect(rows).toBeGreaterThan(500);
    const error = failureSync("SITU_FULL", () =>
      db.transactSync((tx) => tx.insert(Blob, blob(100_000, 10_000))),
    );
    expect(error.message).toMatch(/no room for .*blob.*8 MiB.*delete rows.*situ resize --path /);
    expect(error.retryable).toBe(false);
    expectRows(db, rows, 10_000);
    expect(db.get(Blob, rows)).toBeUndefined();
    expect(db.get(Blob, 100_000)).toBeUndefined();
    db.transactSync((tx) => tx.update(Blob, 1, { data: blob(77, 10_000).data }));
    expect(db.get(Blob, 1)?.data[0]).toBe(77);
    db.transactSync((tx) => tx.delete(Blob, 0));
    db.transactSync((tx) => tx.insert(Blob, blob(0, 10_000)));
    expect(db.get(Blob, 0)?.data.length).toBe(10_000);
  });

  it("a whole transaction fails, not a part of it", async () => {
    const db = await opened();
    const rows = fill(db, 50_000);
    db.transactSync((tx) => tx.delete(Blob, 0));
    failureSync("SITU_FULL", () =>
      db.transactSync((tx) => {
        tx.put(Cell, { id: 1, value: 1 });
        for (let id = 1_000; id < 1_020; id++) tx.insert(Blob, blob(id, 50_000));
      }),
    );
    expect(db.get(Cell, 1)).toBeUndefined();
    for (let id = 1_000; id < 1_020; id++) expect(db.get(Blob, id)).toBeUndefined();
    expectRows(db, rows - 1, 50_000, 1);
    db.transactSync((tx) => tx.insert(Blob, blob(0, 50_000)));
  });

  it("in transact, awaited or not", async () => {
    const db = await opened();
    fill(db, 50_000);
    await failure("SITU_FULL", () => db.transact((tx) => tx.insert(Blob, blob(9_000, 50_000))));
    await failure("SITU_FULL", () =>
      db.transact((tx) => {
        void tx.insert(Blob, blob(9_000, 50_000));
      }),
    );
    await failure("SITU_FULL", () =>
      db.transact(async (tx) => {
        void tx.insert(Blob, blob(9_000, 50_000));
        await tx.get(Blob, 1);
        await tx.get(Blob, 2);
      }),
    );
    expect(db.get(Blob, 9_000)).toBeUndefined();
  });

  it("in transact, though each attempt gets memory back that it has just used itself", async () => {
    const db = await opened();
    fill(db, 50_000);
    const reclaim = vi.spyOn(Executor.prototype, "tryReclaim").mockReturnValue("room");
    try {
      await failure("SITU_FULL", () => db.transact((tx) => tx.insert(Blob, blob(9_000, 50_000))));
      expect(reclaim.mock.calls.length).toBe(RECLAIM_ATTEMPTS);
    } finally {
      reclaim.mockRestore();
    }
  });

  it("swallowed by the body: the transaction fails with SITU_FULL all the same", async () => {
    const db = await opened();
    fill(db, 50_000);
    for (const after of [false, true]) {
      failureSync("SITU_FULL", () =>
        db.transactSync((tx) => {
          try {
            tx.insert(Blob, blob(9_000, 50_000));
          } catch {
            // A body should not do this.
          }
          if (after) tx.get(Blob, 1);
        }),
      );
      await failure("SITU_FULL", () =>
        db.transact(async (tx) => {
          await tx.insert(Blob, blob(9_000, 50_000)).catch(() => {});
          if (after) await tx.get(Blob, 1);
        }),
      );
    }
    expect(db.get(Blob, 9_000)).toBeUndefined();
  });

  it("a table of small rows fills the store, too, and every row that was put is there", async () => {
    const db = await opened();
    let rows = 0;
    const error = failureSync("SITU_FULL", () => {
      for (; ; rows++) db.transactSync((tx) => tx.insert(Cell, { id: rows, value: rows }));
    });
    expect(error.message).toMatch(/cell/);
    expect(rows).toBeGreaterThan(50_000);
    let wrong = 0;
    for (let id = 0; id < rows; id++) if (db.get(Cell, id)?.value !== id) wrong++;
    expect(wrong).toBe(0);
    expect(db.get(Cell, rows)).toBeUndefined();
    db.transactSync((tx) => tx.update(Cell, 5, { value: 55 }));
    expect(db.get(Cell, 5)?.value).toBe(55);
    for (let id = 0; id < 100; id++) db.transactSync((tx) => tx.delete(Cell, id));
    for (let id = 0; id < 50; id++) db.transactSync((tx) => tx.insert(Cell, { id, value: 1 }));
    expect(db.get(Cell, 49)?.value).toBe(1);
  });

  it("opening with a new table in a full store", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Blob], memoryBytes: 8 * MIB });
    let id = 0;
    for (const size of [100_000, 5_000, 500, 60]) id += fill(db, size, id);
    const Late = table("late", { id: u32(), a: bytes(100), b: bytes(20) }, { key: "id" });
    const error = await failure("SITU_FULL", () => stores.open({ path, tables: [Late] }));
    expect(error.message).toMatch(/table late/);
    expect(db.stats().executors.length).toBe(1);
    expect(db.stats().tables.length).toBe(1);
  });
});

describe("memory comes back", () => {
  it("for rows of the same size, again and again", async () => {
    const db = await opened();
    const rows = fill(db, 20_000);
    for (let round = 0; round < 5; round++) {
      for (let id = 0; id < rows; id++) db.transactSync((tx) => tx.delete(Blob, id));
      expect(fill(db, 20_000)).toBe(rows);
    }
    expectRows(db, rows, 20_000);
  });

  it("for rows of other sizes: small after large, large after small", async () => {
    const db = await opened();
    const capacity = new Map<number, number>();
    for (const size of [3_000, 200_000, 1_000_000, 40_000, 3_000, 200_000, 1_000_000]) {
      const rows = fill(db, size);
      expectRows(db, rows, size);
      // The buckets of a table that has grown stay, so a later round may have a little less.
      const before = capacity.get(size) ?? 1;
      expect(rows).toBeGreaterThanOrEqual(Math.floor(before * 0.6));
      capacity.set(size, rows);
      for (let id = 0; id < rows; id++) db.transactSync((tx) => tx.delete(Blob, id));
    }
  });

  it("that another handle has freed, and that another handle owns", async () => {
    const path = stores.folder();
    const a = await opened(path);
    const b = await opened(path);
    const rows = fill(a, 30_000);
    for (let id = 0; id < rows; id++) b.transactSync((tx) => tx.delete(Blob, id));
    // Same size, for the one who owns the memory: at once.
    a.transactSync((tx) => tx.insert(Blob, blob(1, 30_000)));
    a.transactSync((tx) => tx.delete(Blob, 1));
    // For the other, and of another size: the owner gives it back in the background.
    await eventually(() => {
      try {
        b.transactSync((tx) => {
          for (let id = 0; id < 3; id++) tx.put(Blob, blob(id, 300_000));
        });
        return true;
      } catch (error) {
        if (error instanceof SituError && error.code === "SITU_FULL") return false;
        throw error;
      }
    });
    expectRows(a, 3, 300_000);
  });

  it("of one who closed, and of one who was killed", async () => {
    const path = stores.folder();
    const keeper = await opened(path);
    const first = await opened(path);
    const rows = fill(first, 60_000);
    for (let id = 0; id < rows; id++) first.transactSync((tx) => tx.delete(Blob, id));
    await first.close();
    expect(fill(keeper, 500_000)).toBeGreaterThan(5);
    for (let id = 0; id < 50; id++) keeper.transactSync((tx) => tx.delete(Blob, id));
    const { child, outcome } = startChild(
      stores,
      `
      const { open, table, u32, bytes } = situ;
      const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
      const db = await open({ path: data.path, tables: [Blob] });
      let id = 0;
      try { for (;; id++) db.transactSync((tx) => tx.insert(Blob, { id, data: new Uint8Array(60_000) })); } catch {}
      while (id-- > 0) db.transactSync((tx) => tx.delete(Blob, id));
      process.kill(process.pid, "SIGKILL");`,
      { path },
    );
    expect((await outcome).signal).toBe("SIGKILL");
    expect(child.pid).toBeGreaterThan(0);
    expect(fill(keeper, 500_000)).toBeGreaterThan(5);
  });

  describe("in transact, when a transaction that began before it was freed has ended", () => {
    /** A full store that gives nearly all back, and a transaction of `holder` that may still see it. */
    async function heldBack(
      isOwn: boolean,
    ): Promise<{ db: Database; release: () => Promise<void> }> {
      const path = stores.folder();
      const db = await opened(path);
      const holder = isOwn ? db : await opened(path);
      const rows = fill(db, 20_000);
      let end!: () => void;
      let hasRead!: () => void;
      const reads = new Promise<void>((resolve) => {
        hasRead = resolve;
      });
      const running = holder.transact(async (tx) => {
        await tx.get(Blob, 0);
        hasRead();
        await new Promise<void>((resolve) => {
          end = resolve;
        });
      });
      await reads;
      for (let id = 1; id < rows; id++) db.transactSync((tx) => tx.delete(Blob, id));
      const release = (): Promise<void> => {
        end();
        return running;
      };
      return { db, release };
    }

    it.each([
      ["of this handle", true],
      ["of another", false],
    ])("%s, while the event loop turns", async (_, isOwn) => {
      const { db, release } = await heldBack(isOwn);
      let looks = 0;
      const looking = vi.spyOn(Executor.prototype, "tryReclaim");
      try {
        // The transaction that is in the way ends only after it has been looked for memory again and again.
        const timer = setInterval(() => {
          looks = looking.mock.calls.length;
          if (looks < 5) return;
          clearInterval(timer);
          void release();
        }, 0);
        await db.transact((tx) => tx.insert(Blob, blob(9_000, 300_000)));
        clearInterval(timer);
      } finally {
        looking.mockRestore();
      }
      expect(looks).toBeGreaterThanOrEqual(5);
      expectRows(db, 1, 300_000, 9_000);
    });

    it("until the deadline: it can be retried", async () => {
      const { db, release } = await heldBack(true);
      const insert = (): Promise<void> =>
        db.transact((tx) => tx.insert(Blob, blob(9_000, 300_000)), { timeoutMs: 50 });
      const error = await failure("SITU_TIMEOUT", insert);
      expect(error.message).toMatch(new RegExp(`no room for .*blob.*process ${process.pid}`));
      expect(error.retryable).toBe(true);
      const signal = AbortSignal.timeout(20);
      await failure("SITU_ABORTED", () =>
        db.transact((tx) => tx.insert(Blob, blob(9_000, 300_000)), { signal }),
      );
      await release();
      await db.transact((tx) => tx.insert(Blob, blob(9_000, 300_000)));
      expectRows(db, 1, 300_000, 9_000);
    });

    it("for one of begin, by beginning again", async () => {
      const { db, release } = await heldBack(true);
      const tx = await db.begin();
      const error = await failure("SITU_CONFLICT", () => tx.insert(Blob, blob(9_000, 300_000)));
      expect(error.message).toMatch(/no memory for .*blob/);
      expect(tx.isOpen).toBe(false);
      await release();
      await using again = await db.begin();
      await again.insert(Blob, blob(9_000, 300_000));
      await again.commit();
      expectRows(db, 1, 300_000, 9_000);
    });
  });

  it("a transaction that is thrown away keeps none", async () => {
    const db = await opened();
    const rows = fill(db, 100_000);
    for (let id = 0; id < rows; id++) db.transactSync((tx) => tx.delete(Blob, id));
    for (let round = 0; round < 100; round++) {
      expect(() =>
        db.transactSync((tx) => {
          for (let id = 0; id < 10; id++) tx.insert(Blob, blob(id, 100_000));
          throw new Error("no");
        }),
      ).toThrow("no");
    }
    expect(fill(db, 100_000)).toBe(rows);
  });

  it("objects and arrays as well", async () => {
    const db = await opened();
    const fillObjects = (make: () => void): number => {
      for (let count = 0; ; count++) {
        try {
          make();
        } catch (error) {
          if (error instanceof SituError && error.code === "SITU_FULL") return count;
          throw error;
        }
      }
    };
    for (let round = 0; round < 3; round++) {
      const pointers = [db.transactSync((tx) => tx.allocArray(1_000, 20))];
      fillObjects(() => {
        pointers.push(db.transactSync((tx) => tx.allocArray(1_000, 20)));
      });
      expect(pointers.length).toBeGreaterThan(200);
      for (const pointer of pointers) db.transactSync((tx) => tx.free(pointer));
      // The cells of freed arrays rest until everybody has moved on.
      await sleep(1);
      const singles = [db.transactSync((tx) => tx.alloc(20_000))];
      fillObjects(() => {
        singles.push(db.transactSync((tx) => tx.alloc(20_000)));
      });
      expect(singles.length).toBeGreaterThan(200);
      for (const pointer of singles) db.transactSync((tx) => tx.free(pointer));
    }
  });

  it("a destroyed store gives everything back", async () => {
    const path = stores.folder();
    const db = await opened(path);
    fill(db, 60_000);
    await db.close();
    await destroy(path);
    const again = await opened(path);
    expect(again.get(Blob, 0)).toBeUndefined();
    expect(fill(again, 60_000)).toBeGreaterThan(50);
  });
});
