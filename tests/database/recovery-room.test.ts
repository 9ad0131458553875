/**
 * Recovery where there is little shared memory, as in a container with Docker's default of 64 MB: a store whose regions
 * do not fit is refused with the ways out, its log stays as it was, and each of the ways works.
 */

import { readdirSync } from "node:fs";
import { expect, it } from "vitest";
import { whyNoOwnMemory } from "../../benchmarks/harness/own-memory.ts";
import { open } from "../../src/database/open.ts";
import { verify } from "../../src/database/store-tools.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { failure, MIB, memoryOf, temporaryStores } from "../helpers/store.ts";
import { type ChildOutcome, startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const CELL = `const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });`;

/** Makes a store with regions of 64 MiB, in memory that goes with the process. */
async function makeStore(path: string): Promise<void> {
  const { outcome } = startChild(
    stores,
    `${CELL}
    const db = await situ.open({ path: data.path, tables: [Cell], memoryBytes: 128 << 20, durability: "sync" });
    db.transactSync((tx) => { for (let id = 0; id < 100; id++) tx.insert(Cell, { id, value: id }); });
    await db.close();`,
    { path },
    { ownMemory: "512m" },
  );
  expect((await outcome).error).toBeUndefined();
}

/** Opens it in a /dev/shm of that size and counts its rows. */
function countIn(size: string, path: string, memoryDir?: string): Promise<ChildOutcome> {
  const code = `${CELL}
    const { path, memoryDir } = data;
    const db = await situ.open({ path, tables: [Cell], ...(memoryDir && { memoryDir }) });
    const rows = db.count(Cell);
    await db.close();
    return rows;`;
  return startChild(stores, code, { path, memoryDir }, { ownMemory: size }).outcome;
}

it("is refused in 64 MB with the ways out, and succeeds with more", async ({ skip }) => {
  const why = whyNoOwnMemory();
  if (why !== undefined) return skip(why);
  const path = stores.folder();
  await makeStore(path);
  for (let attempt = 0; attempt < 2; attempt++) {
    const { error } = await countIn("64m", path);
    expect(error?.code).toBe("SITU_NO_MEMORY");
    expect(error?.message).toMatch(/regions of 64 MiB.*unharmed.*--shm-size=1g.*memoryDir/);
  }
  expect(await countIn("256m", path)).toMatchObject({ result: 100, error: undefined });
});

it("succeeds in 64 MB with another memoryDir, which the store then keeps", async ({ skip }) => {
  const why = whyNoOwnMemory();
  if (why !== undefined) return skip(why);
  const path = stores.folder();
  await makeStore(path);
  const memoryDir = stores.folder();
  expect(await countIn("64m", path, memoryDir)).toMatchObject({ result: 100, error: undefined });
  expect(await countIn("64m", path)).toMatchObject({ result: 100, error: undefined });
  const db = await stores.open({ path, tables: [Cell] });
  expect(db.count(Cell)).toBe(100);
  expect(db.recovered).toBeUndefined();
  await db.close();
  expect((await verify(path)).isSound).toBe(true);
});

it("leaves nothing behind when the log needs more regions than there is room for", async ({
  skip,
}) => {
  const why = whyNoOwnMemory();
  if (why !== undefined) return skip(why);
  const path = stores.folder();
  const { outcome } = startChild(
    stores,
    `const Row = situ.table("row", { id: situ.u32(), text: situ.str(200) }, { key: "id" });
    const db = await situ.open({ path: data.path, tables: [Row], memoryBytes: 128 << 20, durability: "lazy" });
    const text = "x".repeat(200);
    for (let from = 0; from < 280_000; from += 1_000) {
      db.transactSync((tx) => { for (let id = from; id < from + 1_000; id++) tx.insert(Row, { id, text }); });
      await new Promise(setImmediate);
    }
    await db.close();`,
    { path },
    { ownMemory: "512m" },
  );
  expect((await outcome).error).toBeUndefined();
  const tried = startChild(
    stores,
    `const { readdirSync } = await import("node:fs");
    const code = await situ.open({ path: data.path }).then(() => "opened", (error) => error.code);
    return [code, readdirSync("/dev/shm").length];`,
    { path },
    { ownMemory: "100m" },
  );
  expect(await tried.outcome).toMatchObject({ result: ["SITU_NO_MEMORY", 0], error: undefined });
  const db = await stores.open({ path });
  expect((await verify(path)).isSound).toBe(true);
  await db.close();
});

it("moves no memory that is there", async () => {
  const path = stores.folder();
  const options = { path, tables: [Cell], memoryBytes: 8 * MIB, durability: "sync" as const };
  const db = await stores.open(options);
  const other = stores.folder();
  for (let closed = 0; closed < 2; closed++) {
    const error = await failure("SITU_CONFIG", () => open({ path, memoryDir: other }));
    expect(error.message).toMatch(/leave memoryDir out/);
    if (closed === 0) await db.close();
  }
  expect(readdirSync(other)).toEqual([]);
  expect(readdirSync(memoryOf(path))).not.toEqual([]);
});
