/**
 * Processes that are killed while they make a store, give it a log, rebuild it with several threads, or
 * build an index in it, at moments that a seed chooses: the next one finds a store that is whole.
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import { Random } from "../../src/runtime/random.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { compareIndexes } from "../helpers/indexes.ts";
import { copyOfDisk, identityOf, loseMemory } from "../helpers/logged-stores.ts";
import { MIB, memoryOf, seed, sleep, temporaryStores } from "../helpers/store.ts";
import { runChild, startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const replay = `SITU_SEED=${seed}`;

const fields = { id: u32(), group: u32(), data: bytes() };
const Item = table("item", fields, { key: "id" });
const Indexed = table("item", fields, { key: "id", indexes: { byGroup: { on: ["group"] } } });

const PRELUDE = `
  const fields = { id: situ.u32(), group: situ.u32(), data: situ.bytes() };
  const Item = situ.table("item", fields, { key: "id" });
  const Indexed = situ.table("item", fields, { key: "id", indexes: { byGroup: { on: ["group"] } } });
  process.stdout.write("begun\\n");`;

/** Starts a process, and kills it so long after it has begun; says whether it was done by then. */
async function killed(code: string, data: unknown, afterMs: number): Promise<"killed" | "done"> {
  const { child, outcome } = startChild(stores, PRELUDE + code, data);
  await new Promise((resolve) => child.stdout?.once("data", resolve));
  await sleep(afterMs);
  child.kill("SIGKILL");
  const { signal, error, stderr } = await outcome;
  expect([error, stderr], replay).toEqual([undefined, ""]);
  return signal === "SIGKILL" ? "killed" : "done";
}

function fill(db: Database, rows: number, size: number): void {
  for (let from = 0; from < rows; from += 100) {
    db.transactSync((tx) => {
      for (let id = from; id < from + 100; id++) {
        tx.put(Item, { id, group: id % 13, data: new Uint8Array(size).fill(id) });
      }
    });
  }
}

function expectRows(db: Database, rows: number, size: number): void {
  expect(db.count(Item), replay).toBe(rows);
  for (const { id, group, data } of db.scan(Item)) {
    expect([group, data.length, data.every((byte) => byte === (id & 255))]).toEqual([
      id % 13,
      size,
      true,
    ]);
  }
}

describe("killed at some moment", () => {
  it("of making a store: the next one makes it, or finds it made", async () => {
    const random = new Random(seed);
    const code = `
      const { writeFileSync } = await import("node:fs");
      const options = { path: data.path, tables: [Item], durability: "sync", memoryBytes: 8 << 20 };
      const db = await situ.open(options);
      db.transactSync((tx) => tx.put(Item, { id: 1, group: 1, data: new Uint8Array(1) }));
      writeFileSync(data.path + "/acknowledged", "");
      await new Promise((resolve) => setTimeout(resolve, 60_000));`;
    for (let round = 0; round < 8; round++) {
      const path = stores.folder();
      await killed(code, { path }, random.below(250));
      const isThere = existsSync(join(path, "store.json")) && existsSync(memoryOf(path));
      if (isThere && random.below(2) === 0) loseMemory(path);
      const what = `${replay}, round ${round}`;
      const isAcknowledged = existsSync(join(path, "acknowledged"));
      const db = await stores.open({
        path,
        tables: [Item],
        durability: "lazy",
        memoryBytes: 8 * MIB,
      });
      if (isAcknowledged) expect(db.get(Item, 1), what).toBeDefined();
      const row = { id: 2, group: 2, data: new Uint8Array(2) };
      db.transactSync((tx) => tx.put(Item, row), { durability: "sync" });
      const copy = await stores.open({ path: copyOfDisk(stores, path), tables: [Item] });
      expect(copy.get(Item, 2), what).toEqual(row);
      expect(copy.get(Item, 1), what).toEqual(db.get(Item, 1));
    }
  });

  it("of giving a store a log: its memory is whole, and so is the disk once it counts", async () => {
    const random = new Random(seed + 1);
    const path = stores.folder();
    const first = await open({ path, tables: [Item], memoryBytes: 32 * MIB, durability: "none" });
    fill(first, 1_000, 5_000);
    await first.close();
    const code = `
      await situ.open({ path: data.path, tables: [Item], durability: "lazy" });
      await new Promise((resolve) => setTimeout(resolve, 60_000));`;
    let begun = false;
    for (let round = 0; round < 8; round++) {
      await killed(code, { path }, random.below(120));
      const { logStarted = false } = identityOf(path);
      if (begun) expect(logStarted, "it does not go back").toBe(true);
      begun = logStarted;
      if (!begun) continue;
      const copy = await stores.open({ path: copyOfDisk(stores, path), tables: [Item] });
      expectRows(copy, 1_000, 5_000);
      await copy.close();
    }
    const db = await stores.open({ path, tables: [Item], durability: "lazy" });
    expect(db.recovered, replay).toBeUndefined();
    expectRows(db, 1_000, 5_000);
    await db.close();
    loseMemory(path);
    expectRows(await stores.open({ path, tables: [Item] }), 1_000, 5_000);
  });

  it("of rebuilding it with several threads: begun again until it is done", async () => {
    const random = new Random(seed + 2);
    const path = stores.folder();
    const first = await open({ path, tables: [Item], memoryBytes: 64 * MIB });
    fill(first, 1_000, 9_000);
    await first.checkpoint();
    fill(first, 1_000, 10_000);
    await first.close();
    loseMemory(path);
    const code = `await situ.open({ path: data.path, tables: [Item] });
      await new Promise((resolve) => setTimeout(resolve, 60_000));`;
    for (let round = 0; round < 6; round++) {
      await killed(code, { path }, random.below(300));
      // Also where the last one was done.
      if (random.below(3) === 0 && existsSync(memoryOf(path))) loseMemory(path);
    }
    const db = await stores.open({ path, tables: [Item] });
    expectRows(db, 1_000, 10_000);
    await db.close();
    loseMemory(path);
    const again = await stores.open({ path, tables: [Item] });
    expect(again.recovered!.logBytes).toBeGreaterThan(4 * MIB);
    expectRows(again, 1_000, 10_000);
  });

  it("of building an index, with the memory lost: it is built by the next", async () => {
    const random = new Random(seed + 3);
    const path = stores.folder();
    const first = await open({ path, tables: [Item], memoryBytes: 32 * MIB });
    fill(first, 3_000, 10);
    await first.close();
    const code = `await situ.open({ path: data.path, tables: [Indexed] });
      await new Promise((resolve) => setTimeout(resolve, 60_000));`;
    for (let round = 0; round < 4; round++) {
      await killed(code, { path }, random.below(200));
      // One that was killed early has made none.
      if (existsSync(memoryOf(path))) loseMemory(path);
    }
    const db = await stores.open({ path, tables: [Indexed] });
    expect(compareIndexes(db, Indexed), replay).toBe(3_000);
    db.transactSync((tx) => tx.delete(Indexed, 26));
    expect(db.count(Indexed, { index: "byGroup", eq: 0 })).toBe(Math.ceil(3_000 / 13) - 1);
  });
});

describe("several processes at once", () => {
  const CODE = `
    const options = { path: data.path, tables: [Item], durability: "sync", memoryBytes: 16 << 20 };
    const db = await situ.open(options);
    for (let n = 0; n < 20; n++) {
      const id = data.from + n;
      db.transactSync((tx) => tx.put(Item, { id, group: id % 13, data: new Uint8Array(3).fill(id) }));
    }
    const recovered = db.recovered !== undefined;
    await db.close();
    return recovered;`;

  const run = async (path: string): Promise<unknown[]> => {
    const outcomes = await Promise.all(
      [0, 20, 40, 60].map((from) => runChild(stores, PRELUDE + CODE, { path, from }, 40_000)),
    );
    expect(outcomes.map(({ error }) => error)).toEqual(Array(4).fill(undefined));
    return outcomes.map(({ result }) => result);
  };

  it("make a store, and commit in sync; then rebuild it", async () => {
    const path = stores.folder();
    expect(await run(path)).toEqual(Array(4).fill(false));
    const copy = await stores.open({ path: copyOfDisk(stores, path), tables: [Item] });
    expectRows(copy, 80, 3);
    await copy.close();
    loseMemory(path);
    // Whoever comes when all others have left finds the memory that they have left.
    expect((await run(path)).filter((recovered) => recovered === true)).toHaveLength(1);
    expectRows(await stores.open({ path, tables: [Item] }), 80, 3);
  });
});

describe("memory that a reboot has left on a disk", () => {
  /** Where the control segment says in which run of the machine it was made. */
  const BOOT_BYTE = 12 * 4;

  function asOfAnotherBoot(path: string): void {
    const file = join(memoryOf(path), "control");
    const content = readFileSync(file);
    content.writeInt32LE(content.readInt32LE(BOOT_BYTE) ^ 1, BOOT_BYTE);
    writeFileSync(file, content);
    // Its checksums name the run of the machine, too.
    rmSync(join(memoryOf(path), "seal"), { force: true });
  }

  it("is not joined: it is pages of different moments. With a log it is rebuilt", async () => {
    const path = stores.folder();
    const memoryDir = stores.folder();
    const first = await open({ path, memoryDir, tables: [Item], memoryBytes: 16 * MIB });
    fill(first, 200, 50);
    await first.close();
    asOfAnotherBoot(path);
    const db = await stores.open({ path, tables: [Item] });
    expect(db.recovered).toBeDefined();
    expectRows(db, 200, 50);
    await db.close();
    // Of this run, now.
    expect((await stores.open({ path, tables: [Item] })).recovered).toBeUndefined();
  });

  it("without a log the store is empty", async () => {
    const path = stores.folder();
    const options = { path, tables: [Item], memoryBytes: 16 * MIB, durability: "none" as const };
    const first = await open(options);
    fill(first, 200, 50);
    await first.close();
    asOfAnotherBoot(path);
    const db = await stores.open(options);
    expect(db.recovered).toBeUndefined();
    expect(db.count(Item)).toBe(0);
  });
});
