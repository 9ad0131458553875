/**
 * docs/FAULTS.md, "Disk", met for real: a log that cannot be written, a disk that is full, a checkpoint that
 * fails. Coded errors, reads go on, and the way back is the one that the errors name.
 */

import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy, open } from "../../src/database/open.ts";
import type { OpenOptions } from "../../src/database/open-options.ts";
import { MAX_LAG_MS } from "../../src/runtime/limits.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { filesIn, loseMemory } from "../helpers/logged-stores.ts";
import { eventually, failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
const TABLES = [Cell, Blob];
const put = (db: Database, id: number, value: number): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value }));

/** Closed after the test, whatever becomes of its log. */
async function opened(options: Partial<OpenOptions> & { path: string }): Promise<Database> {
  const db = await open({ tables: TABLES, memoryBytes: 32 * MIB, ...options });
  stores.later(() => db.close().catch(() => {}));
  return db;
}

/** Puts a file in the place of a folder, and back. */
function spoil(path: string, folder: "log" | "checkpoints"): () => void {
  const place = join(path, folder);
  mkdirSync(place, { recursive: true });
  renameSync(place, `${place}.aside`);
  writeFileSync(place, "not a folder");
  return () => {
    if (!existsSync(`${place}.aside`)) return;
    rmSync(place);
    renameSync(`${place}.aside`, place);
  };
}

/** A store with rows 1 and 2, whose log failed with row 2, which is only in memory. */
async function withFailedLog(durability: "sync" | "lazy" = "sync") {
  const path = stores.folder();
  const first = await open({ path, tables: TABLES, memoryBytes: 32 * MIB, durability: "sync" });
  put(first, 1, 11);
  await first.close();
  // Who opens it next begins a segment with the first commit, and cannot.
  const mend = spoil(path, "log");
  const db = await opened({ path, durability });
  if (durability === "sync") {
    const error = failureSync("SITU_NOT_DURABLE", () => put(db, 2, 22));
    expect(error.message).toMatch(/could not be written \(ENOTDIR\).*committed in memory/);
  } else {
    put(db, 2, 22);
    await eventually(() => db.stats().durability.state === "failed");
  }
  return { path, db, mend };
}

describe("a log that has failed", () => {
  it("acknowledges nothing further, refuses commits, and lets reads go on", async () => {
    const { db, path } = await withFailedLog();
    const { durability } = db.stats();
    expect(durability.state).toBe("failed");
    for (const error of [
      failureSync("SITU_LOG_FAILED", () => put(db, 3, 33)),
      await failure("SITU_LOG_FAILED", () =>
        db.transact((tx) => tx.put(Cell, { id: 3, value: 33 })),
      ),
      failureSync("SITU_LOG_FAILED", () => db.transactSync((tx) => tx.delete(Cell, 1))),
      await failure("SITU_LOG_FAILED", () => db.checkpoint()),
    ]) {
      expect(error.message).toMatch(/ENOTDIR/);
      expect(error.message).toMatch(/close the store in all processes and open it again/);
      expect(error.retryable).toBe(false);
    }
    await failure("SITU_NOT_DURABLE", () => db.durable());
    // Reads of all kinds, also in transactions; those in sync only of what is on disk.
    expect(db.get(Cell, 2)?.value).toBe(22);
    expect(db.scan(Cell).toArray()).toHaveLength(2);
    expect(db.count(Cell)).toBe(2);
    const snapshot = db.snapshot();
    expect(snapshot.get(Cell, 2)?.value).toBe(22);
    snapshot.close();
    const other = await opened({ path });
    expect(other.stats().durability.state).toBe("failed");
    expect(other.transactSync((tx) => tx.get(Cell, 2)?.value)).toBe(22);
    failureSync("SITU_LOG_FAILED", () => put(other, 3, 33));
    failureSync("SITU_NOT_DURABLE", () => db.transactSync((tx) => tx.get(Cell, 2)));
    expect(db.stats().durability.durableEpoch).toBe(durability.durableEpoch);
  });

  it("a lazy database learns of it with its next commit", async () => {
    const { db } = await withFailedLog("lazy");
    failureSync("SITU_LOG_FAILED", () => put(db, 3, 33));
    expect(db.get(Cell, 3)).toBeUndefined();
    expect(db.get(Cell, 2)?.value).toBe(22);
    await failure("SITU_NOT_DURABLE", () => db.close());
  });

  it("opening it again, when all have left, writes all of memory anew", async () => {
    const { db, path, mend } = await withFailedLog();
    const other = await opened({ path });
    mend();
    await failure("SITU_NOT_DURABLE", () => db.close());
    // One is still there: memory may change under a checkpoint, and it stays as it is.
    const third = await opened({ path });
    expect(third.stats().durability.state).toBe("failed");
    failureSync("SITU_LOG_FAILED", () => put(third, 3, 33));
    // These two have nothing of their own that could be lost.
    await third.close();
    await other.close();

    const again = await opened({ path, durability: "sync" });
    expect(again.recovered).toBeUndefined();
    expect(again.stats().durability.state).toBe("running");
    expect([1, 2].map((id) => again.get(Cell, id)?.value)).toEqual([11, 22]);
    put(again, 3, 33);
    await again.checkpoint();
    await again.close();
    loseMemory(path);
    const recovered = await opened({ path });
    expect([1, 2, 3].map((id) => recovered.get(Cell, id)?.value)).toEqual([11, 22, 33]);
  });

  it("what is written anew is on disk before anything else is acknowledged", async () => {
    const { db, path, mend } = await withFailedLog();
    mend();
    await failure("SITU_NOT_DURABLE", () => db.close());
    const again = await opened({ path });
    await again.close();
    loseMemory(path);
    const recovered = await opened({ path });
    expect([1, 2].map((id) => recovered.get(Cell, id)?.value)).toEqual([11, 22]);
    expect(recovered.recovered?.checkpoints).toHaveLength(1);
  });

  it("opening it again before the disk is seen to is refused, and loses nothing", async () => {
    const { db, path, mend } = await withFailedLog();
    await failure("SITU_NOT_DURABLE", () => db.close());
    for (let round = 0; round < 2; round++) {
      const error = await failure("SITU_CONFIG", () => open({ path, tables: TABLES }));
      expect(error.message).toContain(path);
    }
    mend();
    const again = await opened({ path });
    expect([1, 2].map((id) => again.get(Cell, id)?.value)).toEqual([11, 22]);
    put(again, 3, 33);
    await again.durable();
  });

  it("a reboot instead brings back what was acknowledged", async () => {
    const { db, path, mend } = await withFailedLog();
    mend();
    await failure("SITU_NOT_DURABLE", () => db.close());
    loseMemory(path);
    const again = await opened({ path });
    expect([1, 2].map((id) => again.get(Cell, id)?.value)).toEqual([11, undefined]);
    put(again, 2, 222);
    await again.durable();
  });

  it("all processes that die over it are no hindrance", async () => {
    const path = stores.folder();
    await (await open({ path, tables: TABLES, memoryBytes: 32 * MIB })).close();
    const mend = spoil(path, "log");
    const { result, signal } = await runChild(
      stores,
      `
      const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
      const db = await situ.open({ path: data.path, tables: [Cell], durability: "sync" });
      try {
        db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
      } catch (error) {
        if (error.code === "SITU_NOT_DURABLE") process.kill(process.pid, "SIGKILL");
        return error.code;
      }`,
      { path },
    );
    expect([result, signal]).toEqual([undefined, "SIGKILL"]);
    mend();
    const db = await opened({ path, durability: "sync" });
    expect(db.get(Cell, 1)?.value).toBe(11);
    put(db, 2, 22);
    await db.close();
    loseMemory(path);
    const recovered = await opened({ path });
    expect([1, 2].map((id) => recovered.get(Cell, id)?.value)).toEqual([11, 22]);
  });

  it("a log folder that vanishes under the writer is noticed with its next segment", async () => {
    const path = stores.folder();
    const db = await opened({ path, durability: "sync" });
    put(db, 1, 11);
    rmSync(join(path, "log"), { recursive: true });
    const data = new Uint8Array(MIB).fill(0xa5);
    let code: string | undefined;
    for (let id = 0; id < 24 && code === undefined; id++) {
      try {
        db.transactSync((tx) => tx.put(Blob, { id: id % 8, data }));
      } catch (error) {
        ({ code } = error as { code?: string });
      }
    }
    expect(code).toBeOneOf(["SITU_NOT_DURABLE", "SITU_LOG_FAILED"]);
    expect(db.stats().durability.state).toBe("failed");
    const rows = db.count(Blob);
    await failure("SITU_NOT_DURABLE", () => db.close());
    const again = await opened({ path, durability: "sync" });
    expect(again.stats().durability.state).toBe("running");
    await again.close();
    loseMemory(path);
    const recovered = await opened({ path });
    expect(recovered.get(Cell, 1)?.value).toBe(11);
    expect(recovered.count(Blob)).toBe(rows);
  });
});

describe("a checkpoint that cannot be written", () => {
  it("is told to who asked for it, and the store goes on with its log", async () => {
    const path = stores.folder();
    const db = await opened({ path, durability: "sync" });
    put(db, 1, 11);
    const mend = spoil(path, "checkpoints");
    for (let round = 0; round < 3; round++) {
      const error = await failure("SITU_DISK_FULL", () => db.checkpoint());
      expect(error.message).toMatch(/checkpoint could not be written/);
    }
    expect(db.stats().durability).toMatchObject({ checkpoints: 0, state: "running" });
    put(db, 2, 22);
    mend();
    await db.checkpoint();
    expect(db.stats().durability.checkpoints).toBe(1);
    expect(filesIn(path, "checkpoints").filter((name) => name.endsWith(".full"))).toHaveLength(2);
    await db.close();
    loseMemory(path);
    const recovered = await opened({ path });
    expect([1, 2].map((id) => recovered.get(Cell, id)?.value)).toEqual([11, 22]);
  });
});

/** A small disk, where the system lets us have one. */
function smallDisk(mebibytes: number): string | undefined {
  const path = stores.folder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "tmpfs", path], {
      stdio: "ignore",
    });
  } catch {
    return undefined;
  }
  stores.later(async () => {
    // The store first: nobody knows of its memory once its folder is gone.
    await destroy(path);
    execFileSync("umount", ["-l", path]);
  });
  return path;
}

const DISK_MIB = 40;
const BALLAST = "ballast";

/** Leaves so much of a disk free. */
function takeRoom(path: string, mebibytes: number): void {
  const { bavail, bsize } = statfsSync(path);
  writeFileSync(join(path, BALLAST), new Uint8Array(bavail * bsize - mebibytes * MIB));
}

describe("a disk that is full", () => {
  /** A store on a small disk, with row 1. */
  async function onSmallDisk(context: { skip: (note: string) => never }) {
    const path = smallDisk(DISK_MIB);
    if (path === undefined) return context.skip("no permission to mount a small disk");
    const db = await open({ path, tables: TABLES, memoryBytes: 32 * MIB, durability: "sync" });
    put(db, 1, 11);
    await db.close();
    return { path, makeRoom: () => rmSync(join(path, BALLAST)) };
  }

  it("sync commits say so, lazy ones go on while they may; then all resumes", async (context) => {
    const { path, makeRoom } = await onSmallDisk(context);
    takeRoom(path, 2);
    // So long that it is the journal that gets full first.
    const db = await opened({ path, timeoutMs: 400, lagMs: MAX_LAG_MS });
    put(db, 2, 21);
    await eventually(() => db.stats().durability.state === "disk full");
    const error = failureSync("SITU_NOT_DURABLE", () =>
      db.transactSync((tx) => tx.put(Cell, { id: 2, value: 22 }), { durability: "sync" }),
    );
    expect(error.message).toMatch(/the disk is full \(ENOSPC\)/);

    const data = new Uint8Array(MIB / 2);
    let full: { code: string; retryable: boolean; message: string } | undefined;
    let rows = 0;
    for (; full === undefined && rows < 40; rows++) {
      try {
        db.transactSync((tx) => tx.put(Blob, { id: rows, data }));
      } catch (thrown) {
        full = thrown as NonNullable<typeof full>;
        rows--;
      }
    }
    expect(rows, "the journal took some").toBeGreaterThan(3);
    expect(full).toMatchObject({ code: "SITU_DISK_FULL", retryable: true });
    expect(full?.message).toMatch(/nothing was committed: the log is behind.*ENOSPC/);
    const async = await failure("SITU_DISK_FULL", () =>
      db.transact((tx) => tx.put(Blob, { id: 100, data })),
    );
    expect(async.message).toMatch(/nothing was committed/);
    // Reads go on, and nobody has taken what was refused for done.
    expect(db.count(Blob)).toBe(rows);
    expect(db.transactSync((tx) => tx.get(Cell, 2)?.value)).toBe(22);

    makeRoom();
    await eventually(() => db.stats().durability.state === "running");
    db.transactSync((tx) => tx.put(Blob, { id: rows, data }), {
      durability: "sync",
      timeoutMs: 20_000,
    });
    await db.close();
    loseMemory(path);
    const recovered = await opened({ path });
    expect(recovered.count(Blob)).toBe(rows + 1);
    expect([1, 2].map((id) => recovered.get(Cell, id)?.value)).toEqual([11, 22]);
  });

  it("one that waits gets through when there is room", async (context) => {
    const { path, makeRoom } = await onSmallDisk(context);
    takeRoom(path, 2);
    const db = await opened({ path, durability: "sync", timeoutMs: 20_000 });
    const running = db.transact((tx) => tx.put(Cell, { id: 2, value: 22 }));
    await eventually(() => db.stats().durability.state === "disk full");
    makeRoom();
    await running;
    await eventually(() => db.stats().durability.state === "running");
  });

  it("a checkpoint for which there is no room", async (context) => {
    const { path, makeRoom } = await onSmallDisk(context);
    const db = await opened({ path, durability: "sync" });
    const data = new Uint8Array(MIB).fill(0xa5);
    for (let id = 0; id < 6; id++) db.transactSync((tx) => tx.put(Blob, { id, data }));
    const before = filesIn(path, "checkpoints");
    // The log has its room; what is left is not enough for six blobs.
    takeRoom(path, 3);
    await failure("SITU_DISK_FULL", () => db.checkpoint());
    put(db, 2, 22);
    expect(filesIn(path, "checkpoints").filter((name) => !name.endsWith(".new"))).toEqual(before);
    makeRoom();
    await db.checkpoint();
    expect(db.stats().durability.lastCheckpoint).toMatchObject({ kind: "full" });
  });

  it("when a store is made: a code, and nothing that is in the way later", async (context) => {
    const path = smallDisk(DISK_MIB);
    if (path === undefined) return context.skip("no permission to mount a small disk");
    takeRoom(path, 2);
    const error = await failure("SITU_DISK_FULL", () => open({ path, tables: TABLES }));
    expect(error.message).toContain(path);
    rmSync(join(path, BALLAST));
    const db = await opened({ path, durability: "sync" });
    put(db, 1, 11);
    await db.close();
    loseMemory(path);
    expect((await opened({ path })).get(Cell, 1)?.value).toBe(11);
  });
});
