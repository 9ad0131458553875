/**
 * One folder, one memory: whoever does not see the memory of those who have a store open is refused, and
 * nothing is rebuilt or removed while anyone lives in the store.
 */

import { mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { whyNoOwnMemory } from "../../benchmarks/harness/own-memory.ts";
import { destroy, open } from "../../src/database/open.ts";
import { backup, inspect, restore, verify } from "../../src/database/store-tools.ts";
import { libc } from "../../src/memory/libc.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { startChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const SYNC = { tables: [Cell], memoryBytes: 8 * MIB, durability: "sync" as const };

/** A memoryDir that can be made to be another one: what processes in two containers see. */
function changingMemory(): { memoryDir: string; change: (to: "first" | "second") => void } {
  const folder = stores.folder();
  const memoryDir = join(folder, "memory");
  const change = (to: string): void => {
    rmSync(memoryDir, { force: true });
    symlinkSync(join(folder, to), memoryDir);
  };
  for (const name of ["first", "second"]) mkdirSync(join(folder, name));
  change("first");
  return { memoryDir, change };
}

describe("a second memory", () => {
  it("is refused while the first is in use, and by every tool", async () => {
    const { memoryDir, change } = changingMemory();
    const path = stores.folder();
    const db = await stores.open({ ...SYNC, path, memoryDir });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    change("second");
    const error = await failure("SITU_OTHER_MEMORY", () => open({ ...SYNC, path }));
    expect(error.message).toMatch(/--ipc=host.*--shm-size.*memoryDir on a volume/);
    const copy = join(stores.folder(), "copy");
    await failure("SITU_OTHER_MEMORY", () => verify(path));
    await failure("SITU_OTHER_MEMORY", () => inspect(path, { table: "cell" }));
    await failure("SITU_OTHER_MEMORY", () => backup(path, copy));
    expect((await failure("SITU_IN_USE", () => destroy(path))).message).toMatch(/not visible here/);
    expect(readdirSync(memoryDir)).toEqual([]);
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
  });

  it("takes over from the log when nobody has the store open, and the first is never joined again", async () => {
    const { memoryDir, change } = changingMemory();
    const path = stores.folder();
    const put = async (id: number): Promise<boolean> => {
      const db = await open({ ...SYNC, path });
      db.transactSync((tx) => tx.put(Cell, { id, value: id }));
      for (let each = 1; each <= id; each++) expect(db.get(Cell, each)?.value).toBe(each);
      const wasRebuilt = db.recovered !== undefined;
      await db.close();
      return wasRebuilt;
    };
    await (await open({ ...SYNC, path, memoryDir })).close();
    expect(await put(1)).toBe(false);
    change("second");
    expect(await put(2)).toBe(true);
    expect(await put(3)).toBe(false);
    // The memory of the first is still there, without rows 2 and 3.
    change("first");
    expect(readdirSync(memoryDir)).toHaveLength(1);
    expect(await put(4)).toBe(true);
    expect(readdirSync(memoryDir)).toHaveLength(1);
  });

  it("restore does not write over a store that somebody has open", async () => {
    const path = stores.folder();
    const saved = join(stores.folder(), "backup");
    const first = await stores.open({ ...SYNC, path: stores.folder() });
    await first.backup(saved);
    const db = await stores.open({ ...SYNC, path });
    const memory = memoryOf(path);
    stores.later(() => rmSync(memory, { recursive: true, force: true }));
    rmSync(join(path, "store.json"));
    await failure("SITU_IN_USE", () => restore(saved, path));
    await failure("SITU_IN_USE", () => open({ ...SYNC, path }));
    await db.close();
  });
});

describe("who is in", () => {
  it("is a worker thread, until it ends or is terminated", async () => {
    const { memoryDir, change } = changingMemory();
    const path = stores.folder();
    await (await open({ ...SYNC, path, memoryDir })).close();
    const code = `
      await situ.open({ path: data.path, durability: "sync" });
      port.postMessage("open");
      await new Promise(() => setInterval(() => {}, 1_000));`;
    const running = startWorker(stores, code, { path });
    await new Promise((resolve) => running.worker.once("message", resolve));
    change("second");
    await failure("SITU_OTHER_MEMORY", () => open({ ...SYNC, path }));
    await running.end();
    await (await open({ ...SYNC, path })).close();
  });

  it("is a stopped process; one that was killed is not", async () => {
    const { memoryDir, change } = changingMemory();
    const path = stores.folder();
    const { child, outcome } = startChild(
      stores,
      `
      await situ.open({ path: data.path, memoryDir: data.memoryDir, memoryBytes: 8 << 20 });
      process.stdout.write("open");
      await new Promise(() => setInterval(() => {}, 1_000));`,
      { path, memoryDir },
    );
    await new Promise((resolve) => child.stdout!.once("data", resolve));
    child.kill("SIGSTOP");
    change("second");
    await failure("SITU_OTHER_MEMORY", () => open({ path }));
    child.kill("SIGKILL");
    await outcome;
    await (await open({ path })).close();
  });
});

describe("processes with a /dev/shm of their own", () => {
  it("refused again and again while a writer commits; all that was acknowledged is there", async ({
    skip,
  }) => {
    const why = whyNoOwnMemory();
    if (why !== undefined) return skip(why);
    const path = stores.folder();
    const cell = `const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });`;
    const { child: writer, outcome: written } = startChild(
      stores,
      `${cell}
      const db = await situ.open({ path: data.path, tables: [Cell], memoryBytes: 8 << 20, durability: "sync" });
      process.stdout.write("open");
      let isOver = false;
      process.once("SIGTERM", () => { isOver = true; });
      let id = 0;
      for (; !isOver; id++) {
        db.transactSync((tx) => tx.insert(Cell, { id, value: id }));
        await new Promise(setImmediate);
      }
      await db.close();
      return id;`,
      { path },
      { ownMemory: true },
    );
    await new Promise((resolve) => writer.stdout!.once("data", resolve));
    const { outcome } = startChild(
      stores,
      `
      const codes = [];
      for (let attempt = 0; attempt < 10; attempt++) {
        await situ.open({ path: data.path, durability: "sync" }).then(
          (db) => db.close().then(() => codes.push("opened")),
          (error) => codes.push(error.code));
      }
      return codes;`,
      { path },
      { ownMemory: true },
    );
    const refused = await outcome;
    expect(refused.error).toBeUndefined();
    expect(refused.result).toEqual(Array(10).fill("SITU_OTHER_MEMORY"));
    writer.kill("SIGTERM");
    const { result, stderr } = await written;
    expect(stderr).toBe("");
    expect(result).toBeGreaterThan(0);
    // The memory of both went with their mounts.
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.recovered).toBeDefined();
    expect(db.count(Cell)).toBe(result);
    expect((await verify(path)).isSound).toBe(true);
  });
});

describe("a file system without working locks", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("is refused when every lock is granted", async () => {
    vi.spyOn(libc(), "tryLock").mockReturnValue(true);
    const path = stores.folder();
    const error = await failure("SITU_UNSUPPORTED", () => open({ ...SYNC, path }));
    expect(error.message).toMatch(/locks have no effect.*network or FUSE/);
    expect(readdirSync(path)).toEqual(["open.lock"]);
  });

  it("is refused for the memory, too", async () => {
    const path = stores.folder();
    const memoryDir = stores.folder();
    const real = libc().tryLock;
    let grants = 0;
    vi.spyOn(libc(), "tryLock").mockImplementation((fd) => {
      const granted = real(fd);
      // The folder of the store is asked about first.
      return granted || ++grants > 1;
    });
    await failure("SITU_UNSUPPORTED", () => open({ ...SYNC, path, memoryDir }));
    vi.restoreAllMocks();
    await (await open({ ...SYNC, path })).close();
    expect(memoryOf(path).startsWith(memoryDir)).toBe(true);
  });
});
