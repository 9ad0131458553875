/** The files of a store, when they are not what they should be. */

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { memoryRoot } from "../../benchmarks/harness/guard/guard.ts";
import type { Database } from "../../src/database/database.ts";
import { destroy, open, openLocal } from "../../src/database/open.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import {
  failure,
  failureSync,
  MIB,
  memoryOf,
  PATIENCE_MS,
  temporaryStores,
} from "../helpers/store.ts";
import { runChild, startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });

/** A closed store with one row. */
async function closedStore(durability: "lazy" | "none" = "lazy"): Promise<string> {
  const path = stores.folder();
  const db = await open({ path, tables: [Cell], memoryBytes: 8 * MIB, durability });
  db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
  await db.close();
  return path;
}

async function expectIntact(path: string): Promise<void> {
  const db = await open({ path, tables: [Cell] });
  const row = db.get(Cell, 1);
  await db.close();
  expect(row).toEqual({ id: 1, value: 11 });
}

/** Changes a file for the time of `work`. */
async function changed(file: string, change: () => void, work: () => Promise<void>): Promise<void> {
  const before = readFileSync(file);
  change();
  await work();
  writeFileSync(file, before);
}

function patchWord(file: string, word: number, value: number): void {
  const content = readFileSync(file);
  content.writeInt32LE(value, word * 4);
  writeFileSync(file, content);
}

/** As after a crash: what the checksums of a clean close find is tested in damaged-memory.test.ts. */
function unsealedMemoryOf(path: string): string {
  const memory = memoryOf(path);
  rmSync(join(memory, "seal"), { force: true });
  return memory;
}

describe("the folder", () => {
  it("is a file, or lies below one", async () => {
    const path = join(stores.folder(), "file");
    writeFileSync(path, "text");
    const error = await failure("SITU_CONFIG", () => open({ path }));
    expect(error.message).toMatch(/is not a folder/);
    expect(error.message).toContain(path);
    await failure("SITU_CONFIG", () => open({ path: join(path, "below") }));
    expect(readFileSync(path, "utf8")).toBe("text");
  });

  it("is made if it is not there, for its owner only", async () => {
    const path = join(stores.folder(), "a", "b");
    const db = await open({ path, memoryBytes: 8 * MIB });
    const memory = unsealedMemoryOf(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(statSync(memory).mode & 0o077).toBe(0);
    for (const name of readdirSync(memory))
      expect(statSync(join(memory, name)).mode & 0o077).toBe(0);
    await db.close();
    await destroy(path);
    expect(existsSync(memory)).toBe(false);
    expect(readdirSync(path).filter((name) => name !== "open.lock")).toEqual([]);
  });

  it("may not be written, or the store belongs to somebody else", async () => {
    const path = stores.folder();
    chmodSync(path, 0o755);
    const theirs = await closedStore();
    chmodSync(theirs, 0o755);
    const { result, stderr, error } = await runChild(
      stores,
      `
      const codes = [];
      const { open, destroy } = situ;
      // Loads what it needs while it still may; then it is nobody.
      const db = await open({ path: data.warm, memoryBytes: 8 << 20 });
      await db.close();
      await destroy(data.warm);
      process.setgid(65534);
      process.setuid(65534);
      for (const path of [data.path, data.path + "/new", data.theirs]) {
        await open({ path, memoryBytes: 8 << 20 }).then((db) => db.close().then(() => codes.push("opened")), (error) => codes.push([error.code, error.message]));
      }
      await destroy(data.theirs).then(() => codes.push("destroyed"), (error) => codes.push([error.code, error.message]));
      return codes;`,
      { path, theirs, warm: stores.folder() },
    );
    expect({ stderr, error }).toEqual({ stderr: "", error: undefined });
    const codes = result as [string, string][];
    expect(codes.map(([code]) => code)).toEqual(Array(4).fill("SITU_PERMISSION"));
    for (const [, message] of codes)
      expect(message).toMatch(/no permission for .*the user who owns it/);
    await expectIntact(theirs);
  });
});

describe("the memory folder", () => {
  it("is another one than the store's", async () => {
    const path = await closedStore();
    const memoryDir = stores.folder();
    const error = await failure("SITU_CONFIG", () => open({ path, memoryDir }));
    expect(error.message).toMatch(/has its memory in \/dev\/shm\S*, not in/);
    expect(error.message).toContain(memoryDir);
    await expectIntact(path);
  });

  it("may be named, and then be left out", async () => {
    const memoryDir = stores.folder();
    const path = stores.folder();
    const db = await open({ path, memoryDir, tables: [Cell], memoryBytes: 8 * MIB });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    await db.close();
    expect(unsealedMemoryOf(path).startsWith(memoryDir)).toBe(true);
    await expectIntact(path);
    await destroy(path);
    expect(readdirSync(memoryDir)).toEqual([]);
  });

  it("comes from SITU_MEMORY_DIR, for new stores", async () => {
    const memoryDir = stores.folder();
    const path = stores.folder();
    const old = await closedStore();
    const { result } = await runChild(
      stores,
      `
      process.env.SITU_MEMORY_DIR = data.memoryDir;
      for (const path of [data.path, data.old]) await (await situ.open({ path, memoryBytes: 8 << 20 })).close();
      return "ok";`,
      { path, memoryDir, old },
    );
    expect(result).toBe("ok");
    expect(unsealedMemoryOf(path).startsWith(memoryDir)).toBe(true);
    expect(memoryOf(old).startsWith(memoryRoot())).toBe(true);
    await destroy(path);
  });

  it("is not there", async () => {
    const path = stores.folder();
    const error = await failure("SITU_CONFIG", () => open({ path, memoryDir: "/nowhere/at/all" }));
    expect(error.message).toContain("/nowhere/at/all");
    await expectOpens(path);
  });

  it("is smaller than memoryBytes", async () => {
    const path = stores.folder();
    const error = await failure("SITU_NO_MEMORY", () => open({ path, memoryBytes: 2 ** 40 }));
    expect(error.message).toMatch(
      /no room for 1099511627776 bytes in \/dev\/shm\S*, which has \d+ bytes free/,
    );
    expect(error.message).toMatch(/remount|another memoryDir|fewer memoryBytes/);
    expect(
      readdirSync(path).filter((name) => name !== "open.lock" && name !== "store.json"),
    ).toEqual([]);
    const memoryDir = stores.folder();
    const elsewhere = await open({ path, memoryDir, memoryBytes: 8 * MIB });
    await elsewhere.close();
    await destroy(path);
    await expectOpens(path);
  });

  /** The failed attempt left nothing behind that hinders a better one. */
  async function expectOpens(path: string): Promise<void> {
    const db = await open({ path, tables: [Cell], memoryBytes: 8 * MIB, timeoutMs: PATIENCE_MS });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    await db.close();
    await destroy(path);
  }
});

/** Mounts a small file system in memory; says why if that is not possible. */
function mounted(mebibytes: number): string | { why: string } {
  const folder = join(stores.folder(), "memory");
  mkdirSync(folder);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${mebibytes}m`, "situ-test", folder], {
      stdio: "pipe",
    });
  } catch (error) {
    return { why: `cannot mount a tmpfs here: ${String(error).split("\n")[0]}` };
  }
  stores.later(() => execFileSync("umount", ["-l", folder]));
  return folder;
}

describe("a memory folder that fills up", () => {
  it("while the store is created", async ({ skip }) => {
    const memoryDir = mounted(12);
    if (typeof memoryDir !== "string") return skip(memoryDir.why);
    writeFileSync(join(memoryDir, "somebody else's"), Buffer.alloc(3.9 * MIB));
    const path = stores.folder();
    const error = await failure("SITU_NO_MEMORY", () =>
      open({ path, memoryDir, memoryBytes: 8 * MIB }),
    );
    expect(error.message).toMatch(/no room|bytes free/);
    rmSync(join(memoryDir, "somebody else's"));
    execFileSync("mount", ["-o", "remount,size=40m", memoryDir]);
    const db = await open({ path, tables: [Cell], memoryDir, memoryBytes: 8 * MIB });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    await db.close();
    await expectIntact(path);
    await destroy(path);
    expect(readdirSync(memoryDir)).toEqual([]);
  });

  it("when a second one joins: it is refused, leaves nothing, and the first goes on", async ({
    skip,
  }) => {
    const memoryDir = mounted(16);
    if (typeof memoryDir !== "string") return skip(memoryDir.why);
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell], memoryDir, memoryBytes: 8 * MIB });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    for (let round = 0; round < 3; round++) {
      await failure("SITU_NO_MEMORY", () => open({ path, tables: [Cell] }));
    }
    expect(db.stats().executors.length).toBe(1);
    await failure("SITU_IN_USE", () => destroy(path));
    db.transactSync((tx) => tx.put(Cell, { id: 2, value: 22 }));
    expect([db.get(Cell, 1)?.value, db.get(Cell, 2)?.value]).toEqual([11, 22]);
    await db.close();
    await destroy(path);
    expect(readdirSync(memoryDir)).toEqual([]);
  });

  it("when a region is needed: what returned is there, what threw is not", async ({ skip }) => {
    const memoryDir = mounted(200);
    if (typeof memoryDir !== "string") return skip(memoryDir.why);
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell, Blob], memoryDir, memoryBytes: 128 * MIB });
    const rest = 200 * MIB - usedBytes(memoryDir);
    writeFileSync(join(memoryDir, "somebody else's"), Buffer.alloc(rest - MIB));
    let blobs = 0;
    const error = failureSync("SITU_FULL", () => {
      for (; ; blobs++) {
        db.transactSync((tx) =>
          tx.insert(Blob, { id: blobs, data: new Uint8Array(600_000).fill(blobs) }),
        );
      }
    });
    expect(error.message).toMatch(/no room for 67108864 bytes|remount/);
    expect(blobs).toBeGreaterThan(50);
    for (let id = 0; id < blobs; id++) expect(db.get(Blob, id)?.data[599_999]).toBe(id);
    expect(db.get(Blob, blobs)).toBeUndefined();
    const missing = fillCells(db);
    expect(missing).toEqual([]);
    // With room, it goes on where it stopped.
    rmSync(join(memoryDir, "somebody else's"));
    db.transactSync((tx) => tx.insert(Blob, { id: blobs, data: new Uint8Array(600_000) }));
    for (let id = 100_000; id < 101_000; id++)
      db.transactSync((tx) => tx.insert(Cell, { id, value: id }));
    expect(db.get(Cell, 100_999)?.value).toBe(100_999);
  });

  it("of 64 MB, as Docker gives it: the default opens, says what it did, and grows later", async ({
    skip,
  }) => {
    const memoryDir = mounted(64);
    if (typeof memoryDir !== "string") return skip(memoryDir.why);
    const warnings: (Error & { code?: string })[] = [];
    const listen = (warning: Error): unknown => warnings.push(warning);
    process.on("warning", listen);
    stores.later(() => process.off("warning", listen));
    const path = stores.folder();
    const db = await openLocal({ path, tables: [Cell, Blob], memoryDir });
    stores.later(() => db.close());
    const second = await openLocal({ path, tables: [Cell, Blob] });
    stores.later(() => second.close());
    await new Promise(setImmediate);
    expect(warnings.map(({ code }) => code)).toEqual(["SITU_SMALL_MEMORY"]);
    expect(warnings[0].message).toMatch(/6\d.* free.*32 MiB .*instead of 256 MiB.*--shm-size/);
    expect(db.stats().memory.limitBytes).toBe(32 * MIB);
    await failure("SITU_NO_MEMORY", () => db.resize(256 * MIB));
    // The log has its writer, which needs memory, too.
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
    await db.durable();
    // Others use the memory that it may still have: full, and not ended by a bus error.
    writeFileSync(
      join(memoryDir, "somebody else's"),
      Buffer.alloc(64 * MIB - usedBytes(memoryDir)),
    );
    const error = failureSync("SITU_FULL", () => {
      for (let id = 0; ; id++) {
        db.transactSync((tx) => tx.insert(Blob, { id, data: new Uint8Array(600_000) }));
      }
    });
    expect(error.message).toMatch(
      /8 MiB of the store's 32 MiB are in use.*no room for 8388608 bytes/,
    );
    rmSync(join(memoryDir, "somebody else's"));
    execFileSync("mount", ["-o", "remount,size=400m", memoryDir]);
    expect(await second.resize(256 * MIB)).toBe(256 * MIB);
    for (let id = 100; id < 160; id++) {
      db.transactSync((tx) => tx.insert(Blob, { id, data: new Uint8Array(600_000) }));
    }
    await second.close();
    await db.close();
    await destroy(path);
  });

  function usedBytes(folder: string): number {
    const [, line] = execFileSync("df", ["-B1", folder]).toString().trim().split("\n");
    return Number(line.split(/\s+/)[2]);
  }

  /** Adds small rows, also past errors; returns every one whose outcome was told wrongly. */
  function fillCells(db: Database): string[] {
    const wrong: string[] = [];
    for (let id = 0, failures = 0; id < 60_000 && failures < 200; id++) {
      let code = "";
      try {
        db.transactSync((tx) => tx.insert(Cell, { id, value: id }));
      } catch (error) {
        code = error instanceof SituError ? error.code : String(error);
        failures++;
      }
      if (code !== "" && code !== "SITU_FULL") wrong.push(`${id}: ${code}`);
      if ((db.get(Cell, id) === undefined) !== (code !== ""))
        wrong.push(`${id}: ${code} but there`);
    }
    return wrong;
  }
});

describe("files that are not what they were", () => {
  it("memory that is gone, as after a reboot: the store is rebuilt from its log", async () => {
    const path = await closedStore();
    rmSync(unsealedMemoryOf(path), { recursive: true });
    await expectIntact(path);
  });

  it("memory that is gone: without a log the store starts empty", async () => {
    const path = await closedStore("none");
    rmSync(unsealedMemoryOf(path), { recursive: true });
    const db = await stores.open({ path, tables: [Cell], memoryBytes: 8 * MIB });
    expect(db.get(Cell, 1)).toBeUndefined();
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    await db.close();
    await expectIntact(path);
  });

  it("memory of an earlier run of the machine is not joined", async () => {
    const path = await closedStore("none");
    // The first word of the boot id.
    patchWord(join(unsealedMemoryOf(path), "control"), 12, 1);
    const db = await stores.open({ path, tables: [Cell], memoryBytes: 8 * MIB });
    expect(db.get(Cell, 1)).toBeUndefined();
  });

  it("a control file that nobody finished is made anew", async () => {
    const path = await closedStore("none");
    patchWord(join(unsealedMemoryOf(path), "control"), 3, 0);
    const db = await stores.open({ path, tables: [Cell], memoryBytes: 8 * MIB });
    expect(db.get(Cell, 1)).toBeUndefined();
    db.transactSync((tx) => tx.put(Cell, { id: 2, value: 22 }));
    expect(db.get(Cell, 2)?.value).toBe(22);
  });

  it("another version of the layout: both are named", async () => {
    const path = await closedStore();
    const control = join(unsealedMemoryOf(path), "control");
    const version = readFileSync(control).readInt32LE(4);
    await changed(
      control,
      () => patchWord(control, 1, version + 41),
      async () => {
        const error = await failure("SITU_LAYOUT", () => open({ path, tables: [Cell] }));
        expect(error.message).toContain(`layout version ${version + 41}`);
        expect(error.message).toContain(`reads version ${version}`);
      },
    );
    await expectIntact(path);
  });

  it("another version can be destroyed, as its message says", async () => {
    const path = await closedStore();
    const memory = unsealedMemoryOf(path);
    patchWord(join(memory, "control"), 1, 99);
    expect((await failure("SITU_LAYOUT", () => open({ path }))).message).toMatch(/destroy\(\) it/);
    await destroy(path);
    expect(existsSync(memory)).toBe(false);
  });

  it("another byte order: refused with both, and not taken for an unfinished store", async () => {
    const path = await closedStore();
    const control = join(unsealedMemoryOf(path), "control");
    await changed(
      control,
      () => patchWord(control, 2, 0x04030201),
      async () => {
        const error = await failure("SITU_LAYOUT", () => open({ path, tables: [Cell] }));
        expect(error.message).toMatch(/byte order.*0x4030201.*0x1020304/);
      },
    );
    const swapped = Buffer.from(readFileSync(control)).swap32();
    await changed(
      control,
      () => writeFileSync(control, swapped),
      async () => {
        const error = await failure("SITU_LAYOUT", () => open({ path, tables: [Cell] }));
        expect(error.message).toMatch(/byte order/);
      },
    );
    await expectIntact(path);
  });

  it("a control file of something else", async () => {
    const path = await closedStore();
    const control = join(unsealedMemoryOf(path), "control");
    await changed(
      control,
      () => patchWord(control, 0, 0x12345678),
      async () => {
        const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
        expect(error.message).toMatch(/not a Situ store/);
      },
    );
    await expectIntact(path);
  });

  it.each([0, 100, 4_095, 4_096, 8_192, -4_096, -1])(
    "a control file cut at %i bytes",
    async (at) => {
      const path = await closedStore();
      const control = join(unsealedMemoryOf(path), "control");
      const { size } = statSync(control);
      await changed(
        control,
        () => truncateSync(control, at < 0 ? size + at : at),
        async () => {
          const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
          expect(error.message).toMatch(/control has (only )?\d+ bytes/);
        },
      );
      await expectIntact(path);
    },
  );

  it.each([0, 4_096, 8 * MIB - 1])("a region file cut at %i bytes", async (at) => {
    const path = await closedStore();
    const region = join(unsealedMemoryOf(path), "region-0");
    await changed(
      region,
      () => truncateSync(region, at),
      async () => {
        const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
        expect(error.message).toContain(`region-0 has ${at} bytes and should have ${8 * MIB}`);
      },
    );
    await expectIntact(path);
  });

  it.each(["region-0", "journal-0"])("%s is missing: rebuilt from the log", async (name) => {
    const path = await closedStore();
    rmSync(join(unsealedMemoryOf(path), name));
    const db = await open({ path, tables: [Cell] });
    expect(db.recovered).toBeDefined();
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
    await db.close();
  });

  it.each(["region-0", "journal-0"])("%s is missing, and there is no log", async (name) => {
    const path = await closedStore("none");
    const file = join(unsealedMemoryOf(path), name);
    await changed(
      file,
      () => rmSync(file),
      async () => {
        const error = await failure("SITU_MEMORY_LOST", () => open({ path, tables: [Cell] }));
        expect(error.message).toMatch(new RegExp(`lacks ${name}.*has no log.*destroy`));
      },
    );
    chmodSync(file, 0o600);
    await expectIntact(path);
  });

  it("a journal that is cut", async () => {
    const path = await closedStore();
    const file = join(unsealedMemoryOf(path), "journal-0");
    await changed(
      file,
      () => truncateSync(file, 4_096),
      async () => {
        await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
      },
    );
    await expectIntact(path);
    // The attempts that failed hold nothing.
    await destroy(path);
  });

  it.each([
    "",
    "{",
    "null",
    "[]",
    '{"id": "../../etc", "memoryDir": "/dev/shm"}',
    '{"id": "0123456789abcdef01234567"}',
  ])("a damaged store.json: %s", async (text) => {
    const path = await closedStore();
    const file = join(path, "store.json");
    const memory = unsealedMemoryOf(path);
    await changed(
      file,
      () => writeFileSync(file, text),
      async () => {
        const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
        expect(error.message).toMatch(/store\.json is damaged/);
        expect(existsSync(memory)).toBe(true);
      },
    );
    await expectIntact(path);
  });

  it("a damaged store.json: what the message says to do leads to an empty store", async () => {
    const path = await closedStore();
    const file = join(path, "store.json");
    const memory = unsealedMemoryOf(path);
    stores.later(() => rmSync(memory, { recursive: true, force: true }));
    writeFileSync(file, "{");
    const { message } = await failure("SITU_CORRUPT", () => open({ path }));
    expect(message).toMatch(/remove it, with the folders log and checkpoints beside it/);
    rmSync(file);
    const { message: without } = await failure("SITU_CORRUPT", () => open({ path }));
    expect(without).toMatch(/has a log but no store.json/);
    for (const folder of ["log", "checkpoints"]) {
      rmSync(join(path, folder), { recursive: true, force: true });
    }
    const db = await stores.open({ path, memoryBytes: 8 * MIB });
    expect(db.stats().tables).toEqual([]);
  });
});

describe("destroy", () => {
  it("of a store that this process has open", async () => {
    const db = await stores.open({ tables: [Cell] });
    db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    const error = await failure("SITU_IN_USE", () => destroy(db.path));
    expect(error.message).toContain(String(process.pid));
    expect(db.get(Cell, 1)?.value).toBe(11);
    expect(db.stats().executors.length).toBe(1);
    await db.close();
    await destroy(db.path);
  });

  it("of a store that another process has open; when that one is killed, it goes", async () => {
    const path = stores.folder();
    const { child, outcome } = startChild(
      stores,
      `
      const db = await situ.open({ path: data.path, memoryBytes: 8 << 20 });
      process.stdout.write("open");
      setInterval(() => {}, 1000);
      await new Promise(() => {});`,
      { path },
    );
    await new Promise((resolve) => child.stdout!.once("data", resolve));
    const error = await failure("SITU_IN_USE", () => destroy(path));
    expect(error.message).toContain(String(child.pid));
    child.kill("SIGKILL");
    await outcome;
    const memory = unsealedMemoryOf(path);
    await destroy(path);
    expect(existsSync(memory)).toBe(false);
  });

  it("then the path is free for a store with other tables", async () => {
    const path = await closedStore();
    await destroy(path);
    await destroy(path);
    const Other = table("cell", { name: u32() }, { key: "name" });
    const db = await stores.open({ path, tables: [Other] });
    expect(db.get(Other, 1)).toBeUndefined();
  });
});

describe("slots", () => {
  it("all 255 in use: SITU_FULL, and destroy still knows that the store is in use", async () => {
    const path = stores.folder();
    const handles: Database[] = [];
    stores.later(async () => {
      for (const db of handles) await db.close();
    });
    for (let n = 0; n < 255; n++) {
      const options = { path, tables: [Cell], memoryBytes: 8 * MIB };
      handles.push(await open({ ...options, durability: "none" }));
    }
    const error = await failure("SITU_FULL", () => open({ path, tables: [Cell] }));
    expect(error.message).toMatch(/all 255 slots.*close it in some/);
    await failure("SITU_IN_USE", () => destroy(path));
    handles[254].transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
    expect(handles[0].get(Cell, 1)?.value).toBe(11);
    await handles.pop()!.close();
    const again = await open({ path, tables: [Cell] });
    expect(again.get(Cell, 1)?.value).toBe(11);
    handles.push(again);
  });
});
