/** Copies of a store's folder, made with cp or by a backup of files: each is a store of its own. */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DurabilityMode } from "../../src/attach/settings.ts";
import { destroy, open } from "../../src/database/open.ts";
import { verify } from "../../src/database/store-tools.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });

async function closedStore(durability: DurabilityMode): Promise<string> {
  const path = join(stores.folder(), "store");
  stores.adopt(path);
  const db = await open({ path, tables: [Cell], memoryBytes: 8 * MIB, durability });
  db.transactSync((tx) => tx.put(Cell, { id: 1, value: 1 }));
  await db.close();
  return path;
}

function copyOf(path: string): string {
  const copy = join(stores.folder(), "copy");
  stores.adopt(copy);
  execFileSync("cp", ["-a", path, copy]);
  return copy;
}

async function put(path: string, id: number): Promise<void> {
  const db = await open({ path, tables: [Cell] });
  db.transactSync((tx) => tx.put(Cell, { id, value: id }));
  await db.close();
}

async function rowsOf(path: string): Promise<number[]> {
  const db = await open({ path, tables: [Cell] });
  const rows = [...db.scan(Cell)].map(({ id }) => id);
  await db.close();
  return rows.sort((a, b) => a - b);
}

describe("a copy of a store with a log", () => {
  it.each(["sync", "lazy"] as const)(
    "of a closed one: neither sees the other (%s)",
    async (mode) => {
      const path = await closedStore(mode);
      const copy = copyOf(path);
      await put(copy, 2);
      await put(path, 3);
      expect(memoryOf(copy)).not.toBe(memoryOf(path));
      expect(await rowsOf(copy)).toEqual([1, 2]);
      expect(await rowsOf(path)).toEqual([1, 3]);
      // Also after both have lost their memory.
      for (const each of [path, copy]) rmSync(memoryOf(each), { recursive: true });
      expect(await rowsOf(copy)).toEqual([1, 2]);
      expect(await rowsOf(path)).toEqual([1, 3]);
      for (const each of [path, copy]) expect((await verify(each)).isSound).toBe(true);
    },
  );

  it("of an open one, which goes on", async () => {
    const path = await closedStore("sync");
    const db = await stores.open({ path, tables: [Cell], durability: "sync" });
    db.transactSync((tx) => tx.put(Cell, { id: 2, value: 2 }));
    const copy = copyOf(path);
    db.transactSync((tx) => tx.put(Cell, { id: 3, value: 3 }));
    expect(await rowsOf(copy)).toEqual([1, 2]);
    await put(copy, 4);
    expect(db.count(Cell)).toBe(3);
    expect(await rowsOf(copy)).toEqual([1, 2, 4]);
  });

  it("in the place of the original, whose memory is still there", async () => {
    const path = await closedStore("sync");
    const copy = copyOf(path);
    await put(path, 2);
    const memory = memoryOf(path);
    stores.later(() => rmSync(memory, { recursive: true, force: true }));
    rmSync(path, { recursive: true });
    // The folder is made anew, and may get the inode of the one that was removed.
    execFileSync("cp", ["-a", copy, path]);
    expect(await rowsOf(path)).toEqual([1]);
  });

  it("is destroyed, and the original is not", async () => {
    const path = await closedStore("sync");
    const copy = copyOf(path);
    const memory = memoryOf(path);
    await destroy(copy);
    expect(existsSync(join(copy, "store.json"))).toBe(false);
    expect(existsSync(memory)).toBe(true);
    expect(await rowsOf(path)).toEqual([1]);
  });
});

describe("a store without a log", () => {
  it("is not joined by a copy, which is refused until it is told what to do", async () => {
    const path = await closedStore("none");
    const copy = copyOf(path);
    const error = await failure("SITU_OTHER_MEMORY", () => open({ path: copy, tables: [Cell] }));
    expect(error.message).toMatch(/copy of a store without a log.*destroy\(\).*backup\(\)/);
    await destroy(copy);
    const db = await stores.open({ path: copy, tables: [Cell] });
    expect(db.count(Cell)).toBe(0);
    expect(await rowsOf(path)).toEqual([1]);
  });

  it("can be claimed by the folder that takes the place of the original", async () => {
    const path = await closedStore("none");
    const copy = copyOf(path);
    rmSync(path, { recursive: true });
    await failure("SITU_OTHER_MEMORY", () => open({ path: copy }));
    const file = join(copy, "store.json");
    const { folder: _, ...identity } = JSON.parse(readFileSync(file, "utf8"));
    writeFileSync(file, JSON.stringify(identity));
    expect(await rowsOf(copy)).toEqual([1]);
  });

  it("starts empty where the memory is gone, as after a reboot", async () => {
    const path = await closedStore("none");
    const copy = copyOf(path);
    rmSync(memoryOf(path), { recursive: true });
    expect(await rowsOf(copy)).toEqual([]);
  });
});

it("a folder that is renamed keeps its memory", async () => {
  const path = await closedStore("none");
  const moved = `${path}-moved`;
  stores.adopt(moved);
  renameSync(path, moved);
  expect(await rowsOf(moved)).toEqual([1]);
});

it("a store.json of an earlier version has no id of its memory: rebuilt from the log", async () => {
  const path = await closedStore("lazy");
  rmSync(memoryOf(path), { recursive: true });
  const file = join(path, "store.json");
  const { folder: _, memoryId: __, ...identity } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify(identity));
  expect(await rowsOf(path)).toEqual([1]);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({
    id: identity.id,
    memoryId: expect.stringMatching(/^[0-9a-f]{24}$/),
    folder: expect.stringMatching(/^\d+:\d+:\d+$/),
  });
});
