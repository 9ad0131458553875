/**
 * Backups of stores with tables on the device, made while rows are written, moved and updated and pages are used again; and
 * what restoring them refuses.
 */

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { LocalDatabase } from "../../src/database/local/local-database.ts";
import { backup, restore } from "../../src/database/store-tools.ts";
import { knownDevice } from "../../src/device/device.ts";
import type { StoreFile, StoreFiles } from "../../src/folder/files.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { workOf } from "../../src/tables/device/device-work.ts";
import { hasDeviceJobs } from "../../src/tables/device/elements/device-jobs.ts";
import { count, sum } from "../../src/tables/expressions/aggregates.ts";
import { i32, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { backupFiles } from "../../src/tools/files/copy.ts";
import { failure, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();
type Both = Database & LocalDatabase;

const Account = table(
  "account",
  { id: u32(), balance: i32(), text: str() },
  { key: "id", storage: "device" },
);
const ROWS = 400;
const SUM = ROWS * 100;

const textOf = (id: number): string => "x".repeat(id % 90 === 5 ? 12_000 : 300 + (id % 400));

function flush(db: LocalDatabase): void {
  for (const { mover } of workOf(knownDevice(db.executor)!)) {
    while (mover.move(Number.POSITIVE_INFINITY));
  }
}

async function filled(): Promise<Both> {
  const db = (await stores.open({
    tables: [Account],
    memoryBytes: 32 * 2 ** 20,
    durability: "lazy",
  })) as Both;
  db.transactSync((tx) => {
    for (let id = 0; id < ROWS; id++) tx.insert(Account, { id, balance: 100, text: textOf(id) });
  });
  flush(db);
  await db.durable();
  return db;
}

/** Moves money to and fro, writes pages and frees them, until it is told to end. */
async function busy(db: Both, isOver: () => boolean): Promise<number> {
  let rounds = 0;
  for (; !isOver(); rounds++) {
    await db.transact(async (tx) => {
      for (let i = 0; i < 20; i++) {
        const [from, to] = [(rounds * 7 + i) % ROWS, (rounds * 3 + i * 11 + 1) % ROWS];
        if (from === to) continue;
        const [a, b] = [(await tx.get(Account, from))!, (await tx.get(Account, to))!];
        await tx.update(Account, from, { balance: a.balance - 1 });
        await tx.update(Account, to, { balance: b.balance + 1 });
      }
    });
    flush(db);
    const [{ collector, table: shared }] = workOf(knownDevice(db.executor)!);
    shared.writtenPages = Number.MAX_SAFE_INTEGER;
    collector.work(Number.POSITIVE_INFINITY);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return rounds;
}

async function checked(path: string): Promise<void> {
  const db = (await stores.open({ path, tables: [Account], durability: "lazy" })) as Both;
  try {
    const all = await db.aggregate(Account, {
      values: (a) => ({ n: count(), sum: sum(a.balance) }),
    });
    expect(all).toEqual({ n: ROWS, sum: SUM });
    for (const { id, text } of db.scan(Account)) expect(text).toBe(textOf(id));
    // It is a store as any other: rows are written, moved and found again.
    db.update(Account, 3, { text: "new" });
    flush(db);
    expect(db.get(Account, 3)!.text).toBe("new");
    const report = await db.verify();
    expect(report.problems).toEqual([]);
  } finally {
    await db.close();
  }
}

describe("a backup of a store with a table on the device", () => {
  it("has one state of it, whatever is written and freed meanwhile", async () => {
    const db = await filled();
    let isOver = false;
    const working = busy(db, () => isOver);
    for (let round = 0; round < 3; round++) {
      const [folder, path] = [stores.folder(), stores.folder()];
      const copied = await db.backup(folder);
      expect(copied.pages).toHaveLength(1);
      await restore(folder, path);
      await checked(path);
    }
    isOver = true;
    expect(await working).toBeGreaterThan(0);
    expect(hasDeviceJobs(db.executor)).toBe(false);
  });

  it("is made of a store that nobody has open, too; and its folder can be restored as it is", async () => {
    const db = await filled();
    const { path } = db;
    await db.close();
    const [folder, first, second] = [stores.folder(), stores.folder(), stores.folder()];
    await backup(path, folder);
    await restore(folder, first);
    await checked(first);
    await restore(path, second);
    await checked(second);
  });

  it("holds no page any longer when it fails", async () => {
    const db = await filled();
    const stop = AbortSignal.abort(new Error("enough"));
    await expect(db.backup(stores.folder(), { signal: stop })).rejects.toThrow();
    expect(hasDeviceJobs(db.executor)).toBe(false);
  });

  it("is not restored to an earlier point, nor from a store that is open", async () => {
    const db = await filled();
    const early = new Date();
    await new Promise((resolve) => setTimeout(resolve, 20));
    db.update(Account, 1, { balance: 100 });
    db.update(Account, 1, { text: "later" });
    await db.durable();
    const folder = stores.folder();
    await db.backup(folder);
    await failure("SITU_UNSUPPORTED", () => restore(folder, stores.folder(), { to: early }));
    await failure("SITU_IN_USE", () => restore(db.path, stores.folder()));
  });

  it("is refused, and removed, where the disk has not kept what was written", async () => {
    const db = await filled();
    const folder = stores.folder();
    const files = new NodeFiles(folder);
    const forgetful = new Proxy(files, {
      get: (target, name) => {
        if (name !== "open") return Reflect.get(target, name).bind?.(target) ?? target.place;
        return (file: string, readOnly: boolean): StoreFile =>
          flipping(target.open(file, readOnly));
      },
    }) as unknown as StoreFiles;
    const refused = await failure("SITU_CORRUPT", () =>
      backupFiles(new NodeFiles(db.path), forgetful),
    );
    expect(refused.message).toContain(".pages");
    expect(existsSync(join(folder, "device"))).toBe(true);
    expect(readdirSync(join(folder, "device"))).toEqual([]);
  });
});

/** Reads pages with a bit that has flipped. */
function flipping(file: StoreFile): StoreFile {
  if (!file.name.endsWith(".pages")) return file;
  return {
    name: file.name,
    write: (parts, at) => file.write(parts, at),
    read: (into, at) => {
      const found = file.read(into, at);
      if (found > 9_000) into[9_000] ^= 4;
      return found;
    },
    sync: () => file.sync(),
    size: () => file.size(),
    truncate: (bytes) => file.truncate(bytes),
    close: () => file.close(),
  };
}
