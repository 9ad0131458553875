/** Whole stores as text: dump, load, and loads that are interrupted. */

import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/database/open.ts";
import { i64, json, str, timestamp, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { dump } from "../../src/transfer/dump.ts";
import { load } from "../../src/transfer/load.ts";
import { Loads } from "../../src/transfer/load-table.ts";
import { failure, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table(
  "account",
  { id: u32(), owner: str(24), balance: i64() },
  { key: "id", ordered: true, indexes: { byOwner: { on: ["owner"], kind: "hash" } } },
);
const Page = table("pages/of the web", { url: str(), body: json() }, { key: "url" });
const TABLES = [Account, Page];
const ROWS = 3_000;

async function filled(): Promise<string> {
  const path = stores.folder();
  const db = await stores.open({ path, tables: TABLES });
  for (let from = 0; from < ROWS; from += 500) {
    db.transactSync((tx) => {
      for (let id = from; id < from + 500; id++) {
        tx.insert(Account, { id, owner: `owner ${id % 10}`, balance: BigInt(id) });
      }
    });
  }
  db.transactSync((tx) => tx.insert(Page, { url: "https://example.org/", body: { a: [1, null] } }));
  await db.close();
  return path;
}

function target(): string {
  const path = stores.folder();
  stores.adopt(join(path, "store"));
  return join(path, "store");
}

it("rows that expire do so in the store that was loaded, too", async () => {
  const Session = table(
    "session",
    { id: u32(), until: timestamp(), user: str(20) },
    { key: "id", expires: "until", indexes: { byUser: { on: ["user"] } } },
  );
  const path = stores.folder();
  const db = await stores.open({ path, tables: [Session] });
  const [past, future] = [new Date(1_000), new Date("2200-01-01")];
  db.insert(Session, { id: 1, until: past, user: "a" });
  db.insert(Session, { id: 2, until: future, user: "b" });
  await db.close();
  const folder = join(stores.folder(), "dump");
  const dumped = await dump(path, folder);
  expect(dumped.tables.map(({ name, rows }) => [name, rows])).toEqual([["session", 1]]);
  const to = target();
  await load(folder, to, { memoryBytes: 16 * MIB, durability: "none" });
  await using loaded = await open({ path: to, tables: [Session] });
  expect(loaded.stats().tables.find(({ name }) => name === "session")?.expires).toBe("until");
  expect(loaded.scan(Session).toArray()).toEqual([{ id: 2, until: future, user: "b" }]);
  loaded.update(Session, 2, { until: past });
  expect(loaded.count(Session)).toBe(0);
});

it.each(["jsonl", "csv"] as const)("a store comes back from its dump: %s", async (format) => {
  const path = await filled();
  const folder = join(stores.folder(), "dump");
  const dumped = await dump(path, folder, { format });
  expect(dumped.tables.map(({ name, rows }) => [name, rows])).toEqual([
    ["account", ROWS],
    ["pages/of the web", 1],
  ]);
  const to = target();
  const loaded = await load(folder, to, { memoryBytes: 16 * MIB, durability: "none" });
  expect(loaded.tables).toEqual([
    { name: "account", rows: ROWS, skipped: 0 },
    { name: "pages/of the web", rows: 1, skipped: 0 },
  ]);
  await using db = await open({ path: to, tables: [...TABLES, Loads] });
  expect(db.count(Account, { index: "byOwner", eq: "owner 3" })).toBe(ROWS / 10);
  expect(db.get(Page, "https://example.org/")).toEqual({
    url: "https://example.org/",
    body: { a: [1, null] },
  });
  expect(db.get(Account, 7)).toEqual({ id: 7, owner: "owner 7", balance: 7n });
  expect(db.count(Loads)).toBe(0);
  expect((await db.verify()).problems).toEqual([]);
});

it("an interrupted load goes on where it was", async () => {
  const path = await filled();
  const folder = join(stores.folder(), "dump");
  await dump(path, folder);
  const to = target();
  const settings = { memoryBytes: 16 * MIB, durability: "none" } as const;
  const abort = new AbortController();
  const interrupted = load(folder, to, {
    ...settings,
    signal: abort.signal,
    // Asked before the first rows: they are committed, what comes after them is not.
    onProgress: () => abort.abort(),
  });
  await expect(interrupted).rejects.toThrow(/abort/i);
  await using before = await open({ path: to, tables: [...TABLES, Loads] });
  const rows = before.count(Account);
  expect(rows).toBeGreaterThan(0);
  // Loaded again, the first rows would fail with SITU_EXISTS.
  const loaded = await load(folder, to, settings);
  expect(loaded.tables[0]).toEqual({ name: "account", rows: ROWS, skipped: 0 });
  expect(before.count(Account)).toBe(ROWS);
  // It is done: the same files again are a new load.
  await failure("SITU_EXISTS", () => load(folder, to));
});

it("what cannot be dumped or loaded", async () => {
  const path = await filled();
  const folder = join(stores.folder(), "dump");
  await failure("SITU_CONFIG", () => dump(join(path, "nothing"), folder));
  await failure("SITU_UNKNOWN_TABLE", () => dump(path, folder, { tables: ["orders"] }));
  await dump(path, folder, { tables: ["account"] });
  await failure("SITU_CONFIG", () => dump(path, folder));
  const to = target();
  await failure("SITU_CONFIG", () => load(path, to));
  await failure("SITU_UNKNOWN_TABLE", () =>
    load(join(folder, "account.jsonl"), path, { table: "orders" }),
  );
  const list = join(folder, "dump.json");
  const text = readFileSync(list, "utf8");
  writeFileSync(list, text.replace('"version": 1', '"version": 99'));
  await failure("SITU_LAYOUT", () => load(folder, to));
  writeFileSync(list, text.slice(0, 100));
  await failure("SITU_CORRUPT", () => load(folder, to));
  writeFileSync(list, text);
  truncateSync(join(folder, "account.jsonl"), 500);
  await failure("SITU_CORRUPT", () => load(folder, to));
  rmSync(list);
  expect((await failure("SITU_CONFIG", () => load(folder, to))).message).toMatch(/cut short/);
});

it("a single file into a table of a store", async () => {
  const path = await filled();
  const file = join(stores.folder(), "more.csv");
  writeFileSync(file, 'balance,owner,id\n-5,"a, b",1000000\n');
  const loaded = await load(file, path, { table: "account" });
  expect(loaded.tables).toEqual([{ name: "account", rows: 1, skipped: 0 }]);
  await using db = await open({ path, tables: [Account] });
  expect(db.get(Account, 1_000_000)).toEqual({ id: 1_000_000, owner: "a, b", balance: -5n });
  writeFileSync(file, "balance,owner,id\n-5,x,2000000\n1,x\n");
  const error = await failure("SITU_TYPE", () => load(file, path, { table: "account" }));
  expect(error.message).toContain(`${file}, line 3`);
});
