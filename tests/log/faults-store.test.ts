/** Crashes in the middle of `open`, for stores that get a log: what is left can be opened again. */

import { mkdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { attach } from "../../src/attach/attach.ts";
import { settingsOf } from "../../src/database/open-options.ts";
import { startLogAnew } from "../../src/log/start.ts";
import { createCatalogue } from "../../src/tables/catalogue.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { Death } from "../helpers/engine-atomics.ts";
import { MIB, memoryOf, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
const Counts = table("counts", { id: u32(), value: u32() }, { key: "id" });
const LAZY = { durability: "lazy" as const, memoryBytes: 8 * MIB, tables: [Counts] };

describe("a new store", () => {
  test("whose creator died when its log had begun can be opened", async () => {
    const path = stores.folder();
    const settings = settingsOf({ ...LAZY, path });
    const dying = attach(settings, ({ executor, identity }) => {
      createCatalogue(executor);
      startLogAnew(settings.path, identity!, executor);
      throw new Death("before the store is published");
    });
    await expect(dying).rejects.toThrow(Death);
    const db = await stores.open({ ...LAZY, path });
    db.transactSync((tx) => tx.put(Counts, { id: 1, value: 2 }));
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    const again = await stores.open({ ...LAZY, path });
    expect(again.get(Counts, 1)).toEqual({ id: 1, value: 2 });
  });
});

describe("a store without a log that gets one", () => {
  test("when an attempt at it has failed half-way", async () => {
    const path = stores.folder();
    const before = await stores.open({ ...LAZY, durability: "none", path });
    before.transactSync((tx) => tx.put(Counts, { id: 1, value: 1 }));
    await before.close();
    // The last step of the attempt is to write store.json.
    mkdirSync(join(path, "store.json.new"));
    await expect(stores.open({ ...LAZY, path })).rejects.toThrow();
    rmdirSync(join(path, "store.json.new"));
    const db = await stores.open({ ...LAZY, path });
    db.transactSync((tx) => tx.put(Counts, { id: 2, value: 2 }));
    await db.close();
    rmSync(memoryOf(path), { recursive: true });
    const again = await stores.open({ ...LAZY, path });
    expect(again.get(Counts, 1)).toEqual({ id: 1, value: 1 });
    expect(again.get(Counts, 2)).toEqual({ id: 2, value: 2 });
  });
});

test("a checkpoint that could not be written is not told to be done", async () => {
  const path = stores.folder();
  const db = await stores.open({ ...LAZY, path });
  db.transactSync((tx) => tx.put(Counts, { id: 1, value: 1 }));
  const folder = join(path, "checkpoints");
  renameSync(folder, `${folder}.away`);
  writeFileSync(folder, "in the way of the folder");
  await expect(db.checkpoint()).rejects.toThrow(/checkpoint/);
  rmSync(folder);
  renameSync(`${folder}.away`, folder);
  await db.checkpoint();
  expect(db.stats().durability.checkpoints).toBe(1);
});
