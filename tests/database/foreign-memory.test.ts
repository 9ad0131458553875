/** Memory that another user made, or may write to: never joined, never removed. */

import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DurabilityMode } from "../../src/attach/settings.ts";
import { open } from "../../src/database/open.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const STRANGER = 12_345;
const whyNotRoot = process.geteuid?.() === 0 ? undefined : "only root can give files away";

/** A closed store with one row that is in its log. */
async function closedStore(durability: DurabilityMode): Promise<string> {
  const path = stores.folder();
  const memoryDir = stores.folder();
  const db = await open({ path, memoryDir, tables: [Cell], memoryBytes: 8 * MIB, durability });
  db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
  await db.close();
  return path;
}

/** What a stranger does to the memory, by its name. */
const TAMPERINGS: [string, (memory: string) => void][] = [
  ["the folder is another user's", (memory) => chownSync(memory, STRANGER, STRANGER)],
  ["the control is another user's", (memory) => chownSync(join(memory, "control"), STRANGER, 0)],
  ["a region is another user's", (memory) => chownSync(join(memory, "region-0"), STRANGER, 0)],
  ["all may write to the folder", (memory) => chmodSync(memory, 0o777)],
  ["all may write to the control", (memory) => chmodSync(join(memory, "control"), 0o666)],
  ["the group may write to a region", (memory) => chmodSync(join(memory, "region-0"), 0o660)],
  [
    "the folder is a symbolic link",
    (memory) => {
      renameSync(memory, `${memory}.there`);
      symlinkSync(`${memory}.there`, memory);
    },
  ],
  [
    "the control is a symbolic link",
    (memory) => {
      renameSync(join(memory, "control"), join(dirname(memory), "control"));
      symlinkSync(join(dirname(memory), "control"), join(memory, "control"));
    },
  ],
  [
    "the folder is a file",
    (memory) => {
      rmSync(memory, { recursive: true });
      writeFileSync(memory, "a file");
    },
  ],
];

describe.skipIf(whyNotRoot !== undefined)("memory under a store's name", () => {
  it.each(TAMPERINGS)("%s: rebuilt from the log, elsewhere", async (_, tamper) => {
    const path = await closedStore("sync");
    const memory = memoryOf(path);
    tamper(memory);
    const db = await stores.open({ path, tables: [Cell], durability: "sync" });
    expect(db.recovered).toBeDefined();
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
    expect(memoryOf(path)).not.toBe(memory);
  });

  it.each(TAMPERINGS)("%s, and there is no log: refused", async (_, tamper) => {
    const path = await closedStore("none");
    const memory = memoryOf(path);
    tamper(memory);
    const error = await failure("SITU_PERMISSION", () => open({ path, tables: [Cell] }));
    expect(error.message).toMatch(/belongs to user 12345|other users|symbolic link|not a folder/);
    expect(existsSync(memory)).toBe(true);
  });

  it("another user's is not removed", async () => {
    const path = await closedStore("sync");
    const memory = memoryOf(path);
    chownSync(memory, STRANGER, STRANGER);
    await (await open({ path })).close();
    expect(existsSync(join(memory, "control"))).toBe(true);
    expect(existsSync(memoryOf(path))).toBe(true);
  });

  it("is not replaced while the store is open", async () => {
    const path = await closedStore("sync");
    const db = await stores.open({ path, tables: [Cell] });
    chmodSync(join(memoryOf(path), "control"), 0o666);
    const error = await failure("SITU_OTHER_MEMORY", () => open({ path }));
    expect(error.message).toMatch(/other users/);
    chmodSync(join(memoryOf(path), "control"), 0o600);
    db.transactSync((tx) => tx.put(Cell, { id: 2, value: 22 }));
  });

  it("of a store of another user is that user's: root does not take it over", async () => {
    const path = stores.folder();
    const memoryDir = stores.folder();
    for (const folder of [path, memoryDir]) {
      chmodSync(folder, 0o755);
      chownSync(folder, STRANGER, STRANGER);
    }
    const outcome = await runChild(
      stores,
      `
      // Loads what it needs while it still may.
      await (await situ.open({ path: data.warm, memoryBytes: 8 << 20, durability: "none" })).close();
      await situ.destroy(data.warm);
      process.setgid(${STRANGER});
      process.setuid(${STRANGER});
      const { path, memoryDir } = data;
      await (await situ.open({ path, memoryDir, memoryBytes: 8 << 20, durability: "none" })).close();
      return "made";`,
      { path, memoryDir, warm: stores.folder() },
    );
    expect(outcome).toMatchObject({ result: "made", error: undefined });
    const error = await failure("SITU_PERMISSION", () => open({ path }));
    expect(error.message).toMatch(/belong to user 12345: open the store as that user/);
  });
});

it("a memoryDir may itself be a symbolic link", async () => {
  const folder = stores.folder();
  mkdirSync(join(folder, "there"));
  symlinkSync(join(folder, "there"), join(folder, "memory"));
  const path = stores.folder();
  const memoryDir = join(folder, "memory");
  await (await open({ path, memoryDir, memoryBytes: 8 * MIB })).close();
  const db = await stores.open({ path });
  expect(db.recovered).toBeUndefined();
});
