/**
 * Damage in checkpoints: the one before serves, with a warning, as long as there is one and the log
 * reaches back to it; what is damaged is neither read as data nor built upon.
 */

import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import type { Damage } from "../../src/folder/files.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { type CheckpointInfo, listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import {
  batchesOf,
  copyOfDisk,
  filesIn,
  flipBit,
  loseMemory,
  warnings,
} from "../helpers/logged-stores.ts";
import { failure, MIB, PATIENCE_MS, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32(), text: str() }, { key: "id" });
const SMALL = { tables: [Cell], memoryBytes: 8 * MIB, timeoutMs: PATIENCE_MS } as const;
const put = (db: Database, id: number, value = id): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value, text: `text ${id}` }));

const made = (path: string): Promise<Database> => open({ ...SMALL, path, durability: "sync" });
const again = (path: string): Promise<Database> => stores.open({ path, tables: [Cell] });

const ids = (db: Database): number[] =>
  db
    .scan(Cell)
    .toArray()
    .map(({ id }) => id)
    .sort((a, b) => a - b);

const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("damage in checkpoints", () => {
  /** Two full checkpoints and rows after each, 405 in all; their names, the newest last. */
  async function withCheckpoints(): Promise<{ path: string; names: string[] }> {
    const path = stores.folder();
    const putAll = async (from: number, to: number, takes: boolean): Promise<void> => {
      const db = await open({ ...SMALL, path, durability: "lazy" });
      db.transactSync((tx) => {
        for (let id = from; id <= to; id++) tx.put(Cell, { id, value: id, text: `text ${id}` });
      });
      if (takes) await db.checkpoint();
      await db.close();
    };
    // Each in a segment of its own, the first of which is then not needed any more.
    await putAll(1, 5, false);
    await putAll(6, 10, true);
    // More than half is new, so the next one is full as well.
    await putAll(11, 400, true);
    await putAll(401, 405, false);
    loseMemory(path);
    const names = filesIn(path, "checkpoints").map((name) => `checkpoints/${name}`);
    expect(names).toHaveLength(2);
    expect(names.every((name) => name.endsWith(".full"))).toBe(true);
    expect(filesIn(path, "log")).not.toContain("0000000001.log");
    return { path, names };
  }

  it.each<[string, (file: string) => void]>([
    ["a bit of its head", (file) => flipBit(file, 30)],
    ["a bit of its first chunk's header", (file) => flipBit(file, HEAD_BYTES + 9)],
    ["a bit of a chunk", (file) => flipBit(file, HEAD_BYTES + 100)],
    ["a bit in its middle", (file) => flipBit(file, Math.floor(statSync(file).size / 2))],
    ["a bit of its index", (file) => flipBit(file, statSync(file).size - 80)],
    ["a bit of its trailer", (file) => flipBit(file, statSync(file).size - 20)],
    ["its end", (file) => writeFileSync(file, readFileSync(file).subarray(0, -1_000))],
    ["all of it", (file) => writeFileSync(file, "")],
  ])("%s: the one before it serves, with a warning", async (_, spoil) => {
    const { path, names } = await withCheckpoints();
    const heard = warnings();
    spoil(join(path, names[1]));
    const db = await again(path);
    await turn();
    expect(ids(db)).toEqual(upTo(405));
    const { checkpoints, damage } = db.recovered!;
    expect(checkpoints).toEqual([names[0]]);
    expect(damage).toHaveLength(1);
    expect(damage[0].file).toBe(names[1]);
    const warned = heard.filter(({ code }) => code === "SITU_DAMAGED");
    expect(warned).toHaveLength(1);
    expect(warned[0].message).toContain(`${path}/${names[1]}, byte ${damage[0].offset}`);
    // The next checkpoints take its place.
    put(db, 406);
    await db.checkpoint();
    await db.close();
    loseMemory(path);
    const third = await again(path);
    expect(ids(third)).toEqual(upTo(406));
  });

  it("the newest is missing: the one before it serves, without a word", async () => {
    const { path, names } = await withCheckpoints();
    rmSync(join(path, names[1]));
    const db = await again(path);
    expect(ids(db)).toEqual(upTo(405));
    expect(db.recovered).toMatchObject({ checkpoints: [names[0]], damage: [] });
  });

  it("the older one is not needed", async () => {
    const { path, names } = await withCheckpoints();
    flipBit(join(path, names[0]), HEAD_BYTES + 100);
    const db = await again(path);
    expect(ids(db)).toEqual(upTo(405));
    expect(db.recovered?.checkpoints).toEqual([names[1]]);
  });

  it("both are damaged and the log does not reach back: refused, with the place", async () => {
    const { path, names } = await withCheckpoints();
    for (const name of names) flipBit(join(path, name), HEAD_BYTES + 100);
    const error = await failure("SITU_CORRUPT", () => open({ path, tables: [Cell] }));
    const told = (error.cause as Damage[]).map(({ file }) => file);
    expect(told).toEqual(expect.arrayContaining([...names].reverse()));
    expect(error.message).toContain(path);
    for (const name of names) flipBit(join(path, name), HEAD_BYTES + 100);
    expect(ids(await again(path))).toEqual(upTo(405));
  });

  it("one that is not finished is not looked at, and removed by the next", async () => {
    const { path, names } = await withCheckpoints();
    const unfinished = `${names[1]}.new`;
    writeFileSync(join(path, unfinished), readFileSync(join(path, names[1])).subarray(0, 5_000));
    const db = await again(path);
    expect(ids(db)).toEqual(upTo(405));
    await db.checkpoint();
    expect(filesIn(path, "checkpoints").filter((name) => name.endsWith(".new"))).toEqual([]);
  });

  it("a delta whose base is damaged is passed over with it", async () => {
    const path = stores.folder();
    const db = await made(path);
    db.transactSync((tx) => {
      for (let id = 1; id <= 400; id++) tx.put(Cell, { id, value: id, text: "" });
    });
    await db.checkpoint();
    put(db, 401);
    await db.checkpoint();
    put(db, 402);
    await db.close();
    loseMemory(path);
    const names = filesIn(path, "checkpoints").map((name) => `checkpoints/${name}`);
    expect(names.map((name) => name.split(".")[1])).toEqual(["full", "full", "delta"]);
    flipBit(join(path, names[1]), HEAD_BYTES + 100);
    // The one that the store was made with is kept, and the log since.
    const third = await again(path);
    expect(ids(third)).toEqual(upTo(402));
    expect(third.recovered?.checkpoints).toEqual([names[0]]);
    expect(third.recovered?.damage.map(({ file }) => file).sort()).toEqual(names.slice(1));
  });

  it("whose log ends too early is refused, not believed", async () => {
    const path = stores.folder();
    const db = await stores.open({
      path,
      tables: [Cell],
      memoryBytes: 64 * MIB,
      durability: "lazy",
    });
    const text = "t".repeat(300_000);
    for (let id = 1; id <= 10; id++) db.transactSync((tx) => tx.put(Cell, { id, value: 0, text }));
    const take = async (): Promise<CheckpointInfo> => {
      let isTaken = false;
      const taking = db.checkpoint().finally(() => {
        isTaken = true;
      });
      for (let id = 0; !isTaken; id++) {
        put(db, 100 + (id % 50));
        await turn();
      }
      await taking;
      return listCheckpoints(new NodeFiles(path)).sound[0];
    };
    // Commits go on while it is taken, so it has some of what comes after its start.
    let newest = await take();
    for (let n = 0; n < 10 && newest.logEpoch <= newest.startEpoch; n++) newest = await take();
    expect(newest.logEpoch, "it needs the log").toBeGreaterThan(newest.startEpoch);
    await db.durable();
    const copy = copyOfDisk(stores, path);

    // The log as if it had never got further: nothing but room behind its last batch.
    const first = batchesOf(copy).find(({ last }) => last > newest.startEpoch)!;
    const file = join(copy, first.file);
    const content = readFileSync(file);
    writeFileSync(file, content.fill(0, first.offset));
    const error = await failure("SITU_CORRUPT", () => open({ path: copy, tables: [Cell] }));
    expect(error.message).toContain(`${copy}/${newest.name}`);
    expect(error.message).toMatch(/the log ends with epoch \d+, and this checkpoint/);
  });
});
