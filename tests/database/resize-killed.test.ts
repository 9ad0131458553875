/**
 * A process is killed before a step of making a store larger or smaller: an atomic change of memory, or a
 * change of a file. Others write all the time, in both isolations. Afterwards the store has its old size or its
 * new one, the next opener goes on, and no money is lost.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open } from "../../src/database/open.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { bytes, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { MIB, temporaryStores } from "../helpers/store.ts";
import { runChild, startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const ACCOUNTS = 64;
const Account = table("account", { id: u32(), balance: u32() }, { key: "id" });
const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
const tables = [Account, Blob];

/** So many of the steps of each resize are tried, evenly spread, and the last two. */
const STEPS = Number(process.env.SITU_CRASH_STEPS ?? 5);

const TABLES = `
  const { open, table, u32, bytes } = situ;
  const Account = table("account", { id: u32(), balance: u32() }, { key: "id" });
  const Blob = table("blob", { id: u32(), data: bytes() }, { key: "id" });
  const db = await open({ path: data.path, tables: [Account, Blob] });`;

/** Takes part of a region beyond the first, gives it back, and dies while it resizes the store. */
const VICTIM = `${TABLES}
  if (data.to < data.from) {
    for (let id = 0; id < 30; id++) db.transactSync((tx) => tx.put(Blob, { id, data: new Uint8Array(500_000) }));
    for (let id = 0; id < 30; id++) db.transactSync((tx) => tx.delete(Blob, id));
  }
  let steps = 0;
  const strike = () => { if (steps++ === data.at) process.kill(process.pid, "SIGKILL"); };
  const { createRequire, syncBuiltinESMExports } = await import("node:module");
  const fs = createRequire(data.script)("node:fs");
  const hooked = [[Atomics, ["store", "compareExchange", "add"]], [fs, ["writeFileSync", "renameSync", "ftruncateSync"]]];
  for (const [owner, names] of hooked) {
    for (const name of names) {
      const real = owner[name];
      owner[name] = (...args) => { strike(); return real(...args); };
    }
  }
  syncBuiltinESMExports();
  await db.resize(data.to);
  const done = steps;
  await db.close();
  return done;`;

const WRITER = `${TABLES}
  let isOver = false;
  process.once("SIGTERM", () => { isOver = true; });
  process.stdout.write("open");
  let commits = 0;
  for (; !isOver; commits++) {
    const [from, to] = [commits % 64, (commits * 7 + 1) % 64];
    db.transactSync((tx) => {
      const [a, b] = [tx.get(Account, from), tx.get(Account, to)];
      if (from === to || a.balance === 0) return;
      tx.update(Account, from, { balance: a.balance - 1 });
      tx.update(Account, to, { balance: b.balance + 1 });
    }, { isolation: data.isolation, timeoutMs: 60_000 });
    if (commits % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await db.close();
  return commits;`;

interface Change {
  readonly from: number;
  readonly to: number;
}

async function runVictim(path: string, change: Change, at: number): Promise<number | "killed"> {
  const data = { path, ...change, at, script: import.meta.url };
  const { result, signal, error } = await runChild(stores, VICTIM, data, 120_000);
  if (signal === "SIGKILL") return "killed";
  expect(error).toBeUndefined();
  return result as number;
}

function stepsOf(all: number): number[] {
  const steps = new Set([all - 2, all - 1]);
  for (let i = 0; i < STEPS; i++) steps.add(Math.floor((i * all) / STEPS));
  return [...steps].filter((step) => step >= 0);
}

function sumOf(db: Database): number {
  let sum = 0;
  for (const { balance } of db.scan(Account)) sum += balance;
  return sum;
}

/** The size, set by one who has the store open, whatever is left of a dead one's attempt. */
async function setSize(path: string, bytes: number): Promise<void> {
  const db = await open({ path, tables });
  // Blocks that a dead process had in use are given back in a moment.
  for (let attempt = 0; ; attempt++) {
    const error = await db.resize(bytes).then(
      () => undefined,
      (thrown: SituError) => thrown,
    );
    if (error === undefined) break;
    expect(error.code).toBe("SITU_FULL");
    expect(attempt, error.message).toBeLessThan(30);
  }
  await db.close();
}

describe("killed at a step", () => {
  it.each([
    ["of growing", "lazy", { from: 8 * MIB, to: 24 * MIB }],
    ["of shrinking", "none", { from: 24 * MIB, to: 8 * MIB }],
  ] as const)(
    "%s, while others write",
    async (_, durability, change) => {
      const path = stores.folder();
      const db = await stores.open({ path, tables, memoryBytes: 8 * MIB, durability });
      db.transactSync((tx) => {
        for (let id = 0; id < ACCOUNTS; id++) tx.insert(Account, { id, balance: 100 });
      });
      const writers = ["strict-serializable", "snapshot"].map((isolation) =>
        startChild(stores, WRITER, { path, isolation }),
      );
      await Promise.all(
        writers.map(({ child }) => new Promise((resolve) => child.stdout!.once("data", resolve))),
      );
      await setSize(path, change.from);
      const all = await runVictim(path, change, -1);
      expect(all).toBeGreaterThan(2);
      const sizes = new Set<number>();
      for (const at of stepsOf(all as number)) {
        await setSize(path, change.from);
        // How many steps there are differs with what others do at the time.
        await runVictim(path, change, at);
        const next = await open({ path, tables });
        const { limitBytes, reservedBytes } = next.stats().memory;
        sizes.add(limitBytes);
        expect([change.from, change.to], `step ${at} of ${all}`).toContain(limitBytes);
        expect(reservedBytes).toBeLessThanOrEqual(limitBytes);
        expect(sumOf(next), `step ${at} of ${all}`).toBe(100 * ACCOUNTS);
        await next.close();
      }
      expect([...sizes]).toContain(change.from);
      for (const { child } of writers) child.kill("SIGTERM");
      for (const { outcome } of writers) {
        const { result, error } = await outcome;
        expect(error).toBeUndefined();
        expect(result).toBeGreaterThan(0);
      }
      expect(sumOf(db)).toBe(100 * ACCOUNTS);
      expect((await db.verify()).problems).toEqual([]);
    },
    300_000,
  );
});
