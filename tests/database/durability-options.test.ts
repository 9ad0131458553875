/** Durability as `open` and transactions take it: every option, its default, and what is refused. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy, open } from "../../src/database/open.ts";
import { type OpenOptions, settingsOf } from "../../src/database/open-options.ts";
import type { TransactSyncOptions } from "../../src/database/transact-options.ts";
import { u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { filesIn, identityOf, loseMemory } from "../helpers/logged-stores.ts";
import { failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import { runChild, startChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const put = (db: Database, id: number, value: number): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value }));

type Mode = NonNullable<OpenOptions["durability"]>;

/** Opened and closed again, with a row. */
async function closedStore(durability: Mode): Promise<string> {
  const path = stores.folder();
  const db = await open({ path, durability, tables: [Cell], memoryBytes: 8 * MIB });
  put(db, 1, 11);
  await db.close();
  return path;
}

describe("options", () => {
  it("have defaults", () => {
    const { durability, lagMs, checkpointMs, checkpointBytes, keepLogMs, onRecovery } = settingsOf({
      path: "x",
    });
    expect({ durability, lagMs, checkpointMs, checkpointBytes, keepLogMs, onRecovery }).toEqual({
      durability: undefined,
      lagMs: 20,
      checkpointMs: 5 * 60_000,
      checkpointBytes: 256 * MIB,
      keepLogMs: 0,
      onRecovery: undefined,
    });
  });

  it("are taken as they are given", () => {
    const given = {
      durability: "sync" as const,
      lagMs: 1,
      checkpointMs: 0.5,
      checkpointBytes: 65_536,
      keepLogMs: 7 * 24 * 3600 * 1000,
      onRecovery: () => {},
    };
    expect(settingsOf({ path: "x", ...given })).toMatchObject(given);
    expect(settingsOf({ path: "x", lagMs: 10_000 }).lagMs).toBe(10_000);
    // Log and checkpoints that are never removed.
    const kept = settingsOf({ path: "x", keepLogMs: Number.POSITIVE_INFINITY });
    expect(kept.keepLogMs).toBe(Number.POSITIVE_INFINITY);
  });

  it.each<[keyof OpenOptions, unknown, RegExp]>([
    ["durability", "async", /durability must be "sync", "lazy" or "none", not "async"/],
    ["durability", true, /durability must be "sync", "lazy" or "none", not true/],
    ["durability", null, /durability must be "sync", "lazy" or "none", not null/],
    ["durability", "SYNC", /not "SYNC"/],
    ["lagMs", 0, /lagMs must be a whole number of milliseconds from 1 to 10000, not 0/],
    ["lagMs", -1, /lagMs/],
    ["lagMs", 0.5, /lagMs/],
    ["lagMs", 10_001, /lagMs/],
    ["lagMs", Number.NaN, /lagMs/],
    ["lagMs", "20", /lagMs must be .* not "20"/],
    ["lagMs", null, /lagMs/],
    ["checkpointMs", 0, /checkpointMs must be a number of milliseconds, above 0/],
    ["checkpointMs", -5, /checkpointMs/],
    ["checkpointMs", Number.POSITIVE_INFINITY, /checkpointMs/],
    ["checkpointMs", "1", /checkpointMs/],
    ["checkpointBytes", 0, /checkpointBytes must be a whole number, at least 65536, not 0/],
    ["checkpointBytes", 65_535, /checkpointBytes/],
    ["checkpointBytes", 100_000.5, /checkpointBytes/],
    ["checkpointBytes", "1e6", /checkpointBytes/],
    ["keepLogMs", -1, /keepLogMs must be a number of milliseconds, 0 or more, not -1/],
    ["keepLogMs", Number.NaN, /keepLogMs/],
    ["keepLogMs", "0", /keepLogMs/],
    ["onRecovery", "yes", /onRecovery must be a function/],
    ["onRecovery", {}, /onRecovery must be a function/],
  ])("%s: %s is refused, and nothing is made", async (name, value, why) => {
    const path = stores.folder();
    const error = await failure("SITU_CONFIG", () =>
      open({ path, [name]: value } as unknown as OpenOptions),
    );
    expect(error.message).toMatch(why);
    expect(error.retryable).toBe(false);
    expect(filesIn(path, "log")).toEqual([]);
  });

  it("a misspelt one is refused, and the right ones are named", async () => {
    const path = stores.folder();
    const error = await failure("SITU_CONFIG", () =>
      open({ path, durable: true } as unknown as OpenOptions),
    );
    expect(error.message).toMatch(/open has no option durable; (did you mean|it has)/);
  });
});

describe("the mode of a store", () => {
  it.each<[Mode | undefined, Mode]>([
    [undefined, "lazy"],
    ["lazy", "lazy"],
    ["sync", "sync"],
    ["none", "none"],
  ])("a new one opened with %s is %s", async (durability, mode) => {
    const path = stores.folder();
    const db = await open({ path, memoryBytes: 8 * MIB, ...(durability && { durability }) });
    const { logId, logStarted } = identityOf(path);
    expect(db.stats().durability.mode).toBe(mode);
    expect(db.recovered).toBeUndefined();
    await db.close();
    if (mode === "none") {
      expect({ logId, logStarted }).toEqual({ logId: undefined, logStarted: undefined });
      expect(filesIn(path, "log")).toEqual([]);
    } else {
      expect(logId).toMatch(/^[0-9a-f]{24}$/);
      expect(logStarted).toBe(true);
      expect(filesIn(path, "log")).toContain("0000000001.log");
    }
  });

  it("one with a log is lazy if nothing is said, and may be joined with lazy or sync", async () => {
    const path = await closedStore("sync");
    const lazy = await stores.open({ path, tables: [Cell] });
    const sync = await stores.open({ path, tables: [Cell], durability: "sync" });
    expect([lazy, sync].map((db) => db.stats().durability.mode)).toEqual(["lazy", "sync"]);
    put(sync, 2, 22);
    expect(lazy.get(Cell, 2)).toEqual({ id: 2, value: 22 });
  });

  it("one without a log stays so if nothing is said", async () => {
    const path = await closedStore("none");
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.stats().durability).toMatchObject({ mode: "none", writer: undefined, logBytes: 0 });
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
    await db.close();
    expect(filesIn(path, "log")).toEqual([]);
  });

  it("one with a log is not opened with none", async () => {
    const path = await closedStore("lazy");
    const error = await failure("SITU_CONFIG", () => open({ path, durability: "none" }));
    expect(error.message).toContain(path);
    expect(error.message).toMatch(/has a log/);
    const db = await stores.open({ path, tables: [Cell] });
    await failure("SITU_CONFIG", () => open({ path, durability: "none" }));
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
  });

  it("one with a log is not opened with none when its memory is gone either", async () => {
    const path = await closedStore("lazy");
    loseMemory(path);
    const error = await failure("SITU_CONFIG", () => open({ path, durability: "none" }));
    expect(error.message).toMatch(/has a log/);
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
  });

  it.each<Mode>(["lazy", "sync"])("one without gets a log, opened with %s", async (durability) => {
    const path = await closedStore("none");
    const { id } = identityOf(path);
    const db = await open({ path, tables: [Cell], durability });
    expect(db.stats().durability.mode).toBe(durability);
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
    put(db, 2, 22);
    await db.close();
    expect(identityOf(path)).toMatchObject({ id, logStarted: true });
    loseMemory(path);
    const again = await stores.open({ path, tables: [Cell] });
    expect(again.stats().durability.mode).toBe("lazy");
    expect([1, 2].map((id) => again.get(Cell, id)?.value)).toEqual([11, 22]);
  });

  it("one without a log whose memory is gone starts empty, and with a log if one is asked for", async () => {
    const path = await closedStore("none");
    loseMemory(path);
    const db = await open({ path, tables: [Cell], durability: "sync", memoryBytes: 8 * MIB });
    expect(db.get(Cell, 1)).toBeUndefined();
    expect(db.stats().durability.mode).toBe("sync");
    put(db, 2, 22);
    await db.close();
    loseMemory(path);
    const again = await stores.open({ path, tables: [Cell] });
    expect(again.get(Cell, 2)).toEqual({ id: 2, value: 22 });
  });

  it("one without a log that is open elsewhere gets none: SITU_IN_USE, with the process", async () => {
    const path = await closedStore("none");
    const other = await stores.open({ path, tables: [Cell] });
    const error = await failure("SITU_IN_USE", () => open({ path, durability: "lazy" }));
    expect(error.message).toContain(String(process.pid));
    expect(error.message).toContain(path);
    put(other, 2, 22);
    expect(filesIn(path, "log")).toEqual([]);
    await other.close();
    const db = await stores.open({ path, tables: [Cell], durability: "lazy" });
    expect(db.stats().durability.mode).toBe("lazy");
    expect([1, 2].map((id) => db.get(Cell, id)?.value)).toEqual([11, 22]);
  });

  it("one that another process has open, or died over, is told apart", async () => {
    const path = await closedStore("none");
    const code = `
      const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
      const db = await situ.open({ path: data.path, tables: [Cell] });
      db.transactSync((tx) => tx.put(Cell, { id: 2, value: 22 }));
      process.stdout.write("open\\n");
      await new Promise((resolve) => setTimeout(resolve, 60_000));`;
    const { child, outcome } = startChild(stores, code, { path });
    await new Promise((resolve) => child.stdout?.once("data", resolve));
    const error = await failure("SITU_IN_USE", () => open({ path, durability: "sync" }));
    expect(error.message).toContain(String(child.pid));
    child.kill("SIGKILL");
    await outcome;
    const db = await stores.open({ path, tables: [Cell], durability: "sync" });
    expect([1, 2].map((id) => db.get(Cell, id)?.value)).toEqual([11, 22]);
    expect(db.stats().durability.mode).toBe("sync");
  });

  it("a log that was removed and a store that was destroyed leave nothing behind", async () => {
    const path = await closedStore("lazy");
    await destroy(path);
    expect([filesIn(path, "log"), filesIn(path, "checkpoints")]).toEqual([[], []]);
    const db = await stores.open({ path, tables: [Cell], durability: "lazy" });
    expect(db.get(Cell, 1)).toBeUndefined();
    expect(db.recovered).toBeUndefined();
  });

  it("damaged names of a log in store.json are told", async () => {
    const path = await closedStore("lazy");
    const before = identityOf(path);
    const write = (identity: object): void =>
      writeFileSync(join(path, "store.json"), JSON.stringify(identity));
    write({ ...before, logId: "../../etc" });
    const error = await failure("SITU_CORRUPT", () => open({ path }));
    expect(error.message).toContain(join(path, "store.json"));
    write(before);
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
  });
});

describe("stores that only threads share", () => {
  it.each<Mode>(["lazy", "sync"])("%s is not to be had", async (durability) => {
    const path = stores.folder();
    const error = await failure("SITU_UNSUPPORTED", () =>
      open({ path, sharing: "threads", durability, memoryBytes: 8 * MIB }),
    );
    expect(error.message).toContain(`"${durability}"`);
    expect(error.message).toMatch(/threads/);
  });

  it("they have none, by default or said so", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, sharing: "threads", tables: [Cell] });
    expect(db.stats().durability.mode).toBe("none");
    await failure("SITU_CONFIG", () => db.durable());
    await failure("SITU_CONFIG", () => db.checkpoint());
    await db.close();
  });

  it("where processes cannot share memory, a store that must be durable is refused", async () => {
    const { result, error } = await runChild(
      stores,
      `
      const Module = (await import("node:module")).default;
      const load = Module._load;
      Module._load = (name, ...rest) => {
        if (name === "koffi") throw new Error("no koffi here");
        return load(name, ...rest);
      };
      const codes = [];
      for (const durability of ["sync", "lazy", "none", undefined]) {
        try {
          const db = await situ.open({ path: data.path, durability, memoryBytes: 8 << 20 });
          codes.push(db.stats().durability.mode);
          await db.close();
          await situ.destroy(data.path);
        } catch (error) {
          codes.push(error.code);
        }
      }
      return codes;`,
      { path: stores.folder() },
    );
    expect(error).toBeUndefined();
    expect(result).toEqual(["SITU_UNSUPPORTED", "SITU_UNSUPPORTED", "none", "none"]);
  });
});

describe("the durability of a transaction", () => {
  const tryBoth = async (
    db: Database,
    options: object,
    expected: { code: "SITU_CONFIG"; why: RegExp } | undefined,
  ): Promise<void> => {
    let ran = 0;
    const given = options as TransactSyncOptions;
    const sync = (): unknown => db.transactSync(() => ++ran, given);
    const async = (): unknown => db.transact(() => ++ran, given);
    if (expected === undefined) {
      sync();
      await async();
      expect(ran).toBe(2);
      return;
    }
    expect(failureSync(expected.code, sync).message).toMatch(expected.why);
    expect((await failure(expected.code, async)).message).toMatch(expected.why);
    expect(ran, "the body was not run").toBe(0);
  };

  it("can be stricter than its database, not laxer", async () => {
    const path = await closedStore("lazy");
    const lazy = await stores.open({ path, tables: [Cell] });
    const sync = await stores.open({ path, tables: [Cell], durability: "sync" });
    await tryBoth(lazy, { durability: "sync" }, undefined);
    await tryBoth(lazy, { durability: "lazy" }, undefined);
    await tryBoth(lazy, { durability: undefined }, undefined);
    await tryBoth(sync, { durability: "sync" }, undefined);
    await tryBoth(sync, { durability: undefined }, undefined);
    const laxer = { code: "SITU_CONFIG" as const, why: /stricter .* not less strict/ };
    await tryBoth(sync, { durability: "lazy" }, laxer);
    const unknown = { code: "SITU_CONFIG" as const, why: /must be "sync" or "lazy", not/ };
    for (const durability of ["none", "SYNC", "", 1, null, true]) {
      await tryBoth(sync, { durability }, unknown);
      await tryBoth(lazy, { durability }, unknown);
    }
  });

  it("cannot be had where there is no log", async () => {
    const db = await stores.open({ tables: [Cell] });
    const expected = { code: "SITU_CONFIG" as const, why: /the store has no log/ };
    await tryBoth(db, { durability: "sync" }, expected);
    await tryBoth(db, { durability: "lazy" }, expected);
    await tryBoth(db, { durability: undefined }, undefined);
    const error = await failure("SITU_CONFIG", () => db.durable());
    expect(error.message).toMatch(/durable\(\): the store has no log/);
    await failure("SITU_CONFIG", () => db.checkpoint());
  });
});
