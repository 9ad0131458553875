/**
 * Memory gone, disk left: what `open` rebuilds is what was there, of every kind, and goes on from there.
 * Each test compares all that is in the store with what was in it before.
 */

import { existsSync, readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { destroy, open } from "../../src/database/open.ts";
import type { OpenOptions } from "../../src/database/open-options.ts";
import type { RecoveryProgress } from "../../src/log/recovery/progress.ts";
import { Random } from "../../src/runtime/random.ts";
import { bytes, str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { filesIn, identityOf, loseMemory } from "../helpers/logged-stores.ts";
import { Chain, change, describeWorld, WORLD, worldProblems } from "../helpers/logged-world.ts";
import { failure, failureSync, MIB, memoryOf, seed, temporaryStores } from "../helpers/store.ts";
import { runChild } from "../helpers/store-workers.ts";

const stores = temporaryStores();
const replay = `SITU_SEED=${seed}`;

const openWorld = (path: string, options: Partial<OpenOptions> = {}): Promise<Database> =>
  stores.open({ path, tables: WORLD, memoryBytes: 64 * MIB, durability: "lazy", ...options });

/** Closes a store, loses its memory, opens it again, and compares. */
async function reboot(db: Database, options: Partial<OpenOptions> = {}): Promise<Database> {
  const before = describeWorld(db);
  await db.close();
  loseMemory(db.path);
  const again = await openWorld(db.path, options);
  expect(again.recovered, replay).toBeDefined();
  expect(describeWorld(again), replay).toEqual(before);
  return again;
}

async function expectSound(db: Database): Promise<void> {
  expect(await worldProblems(db), replay).toEqual([]);
}

describe("what comes back", () => {
  it("all kinds of rows, indexes and objects, from the log alone", async () => {
    const random = new Random(seed);
    const db = await openWorld(stores.folder());
    change(db, random, 1_500);
    const { records } = db.stats().durability;
    const again = await reboot(db);
    await expectSound(again);
    expect(again.recovered).toMatchObject({ cut: undefined, damage: [] });
    // The one that the store was made with, before it had a table.
    expect(again.recovered?.checkpoints).toHaveLength(1);
    expect(again.recovered?.checkpointBytes).toBeLessThan(100_000);
    const { epoch, logBytes, transactions, threads, ms } = again.recovered!;
    expect(transactions).toBeGreaterThanOrEqual(Math.max(records, 500));
    expect(logBytes).toBeGreaterThan(transactions * 16);
    expect(epoch).toBeGreaterThan(0);
    expect(threads).toBe(Math.min(availableParallelism(), 16));
    expect(ms).toBeGreaterThan(0);
    // The epoch goes on: no TID comes twice.
    expect(again.stats().epoch).toBeGreaterThan(epoch);
    expect(again.stats().durability.durableEpoch).toBeGreaterThanOrEqual(epoch);
  });

  it("from a full checkpoint with nothing after it", async () => {
    const random = new Random(seed + 1);
    const db = await openWorld(stores.folder());
    change(db, random, 800);
    await db.checkpoint();
    const { lastCheckpoint } = db.stats().durability;
    expect(lastCheckpoint?.kind).toBe("full");
    const again = await reboot(db);
    await expectSound(again);
    const { checkpoints, checkpointBytes } = again.recovered!;
    expect(checkpoints).toHaveLength(1);
    expect(checkpoints[0]).toMatch(/^checkpoints\/\d{16}\.full$/);
    expect(checkpointBytes).toBe(statSync(join(db.path, checkpoints[0])).size);
    expect(checkpointBytes).toBe(lastCheckpoint?.bytes);
  });

  it("from a full checkpoint, several deltas, and the log after them", async () => {
    const random = new Random(seed + 2);
    const db = await openWorld(stores.folder());
    change(db, random, 2_500);
    await db.checkpoint();
    const kinds: string[] = ["full"];
    for (let round = 0; round < 3; round++) {
      change(db, random, 8);
      await db.checkpoint();
      kinds.push(db.stats().durability.lastCheckpoint!.kind);
    }
    // Whether the last ones are incremental depends on how large the changes were.
    expect(kinds[1], replay).toBe("delta");
    change(db, random, 40);
    const again = await reboot(db);
    await expectSound(again);
    const { checkpoints, transactions } = again.recovered!;
    const chain = checkpoints.map((name) => name.split(".")[1]);
    expect(chain, replay).toEqual(kinds.slice(kinds.lastIndexOf("full")));
    // Only what came after the last one.
    expect(transactions).toBeLessThan(1_000);
    expect(transactions).toBeGreaterThan(20);
  });

  it("an empty store, and one whose tables nobody has filled", async () => {
    const empty = await stores.open({ durability: "lazy" });
    await empty.close();
    loseMemory(empty.path);
    const again = await stores.open({ path: empty.path, tables: WORLD });
    expect(again.recovered).toBeDefined();
    expect(describeWorld(again)).toEqual([]);
    const third = await reboot(again);
    await third.checkpoint();
    const fourth = await reboot(third);
    await expectSound(fourth);
  });

  it("what was freed stays freed, and pointers to it are refused", async () => {
    // An object of a chain: it points to no other.
    const MARK = new Uint8Array(40).fill(7, 24);
    const db = await openWorld(stores.folder());
    const { kept, gone, reused } = db.transactSync((tx) => {
      const [kept, gone, reused] = [tx.alloc(40), tx.alloc(40), tx.alloc(40)];
      tx.write(kept, MARK);
      tx.put(Chain, { id: 1, head: kept, list: null });
      return { kept, gone, reused };
    });
    db.transactSync((tx) => {
      tx.free(gone);
      tx.free(reused);
    });
    db.transactSync((tx) => tx.put(Chain, { id: 2, head: tx.alloc(40), list: null }));
    await db.checkpoint();
    const again = await reboot(db);
    expect(again.readObject(kept)).toEqual(MARK);
    failureSync("SITU_FREED", () => again.readObject(gone));
    failureSync("SITU_FREED", () => again.readObject(reused));
    // Nor after others have taken the place.
    again.transactSync((tx) => {
      for (let id = 10; id < 200; id++) tx.put(Chain, { id, head: tx.alloc(40), list: null });
    });
    failureSync("SITU_FREED", () => again.readObject(gone));
    failureSync("SITU_FREED", () => again.readObject(reused));
  });

  it("the schema and the state of its indexes: nothing is built again", async () => {
    const path = stores.folder();
    const random = new Random(seed + 3);
    const db = await openWorld(path);
    change(db, random, 300);
    const tables = db.stats().tables;
    const again = await reboot(db);
    expect(again.stats().tables).toEqual(tables);
    await again.close();
    // Another table under a known name is refused as before.
    const Other = table("account", { id: str(9) }, { key: "id" });
    loseMemory(path);
    await failure("SITU_SCHEMA", () => open({ path, tables: [Other] }));
    await expectSound(await openWorld(path));
  });

  it("an index that was added later", async () => {
    const path = stores.folder();
    const fields = { id: u32(), group: u32() };
    const Plain = table("item", fields, { key: "id" });
    const Indexed = table("item", fields, { key: "id", indexes: { byGroup: { on: ["group"] } } });
    const first = await open({ path, tables: [Plain], memoryBytes: 16 * MIB });
    first.transactSync((tx) => {
      for (let id = 0; id < 500; id++) tx.insert(Plain, { id, group: id % 7 });
    });
    await first.close();
    const second = await stores.open({ path, tables: [Indexed] });
    await second.checkpoint();
    await second.close();
    loseMemory(path);
    const third = await stores.open({ path, tables: [Indexed] });
    expect(third.count(Indexed, { index: "byGroup", eq: 3 })).toBe(71);
    third.transactSync((tx) => tx.delete(Indexed, 3));
    expect(third.count(Indexed, { index: "byGroup", eq: 3 })).toBe(70);
  });

  it("is where memoryDir said, and as large as memoryBytes said", async () => {
    const path = stores.folder();
    const memoryDir = stores.folder();
    const db = await openWorld(path, { memoryDir, memoryBytes: 16 * MIB });
    change(db, new Random(seed), 50);
    const { limitBytes } = db.stats().memory;
    const before = describeWorld(db);
    await db.close();
    loseMemory(path);
    // Whoever asks for less than it had gets it as it was.
    const again = await openWorld(path, { memoryBytes: 8 * MIB });
    expect(memoryOf(path).startsWith(memoryDir)).toBe(true);
    expect(again.stats().memory.limitBytes).toBe(limitBytes);
    expect(describeWorld(again)).toEqual(before);
  });

  it("a store that fills several regions, and rows of the largest size", async () => {
    const path = stores.folder();
    const Large = table("large", { id: u32(), a: bytes(), b: bytes(), c: bytes() }, { key: "id" });
    const options = { path, tables: [Large], memoryBytes: 160 * MIB };
    const db = await open({ ...options, durability: "lazy" });
    const fill = (id: number): Uint8Array => new Uint8Array(MIB - 64).fill(id + 1);
    for (let id = 0; id < 40; id++) {
      db.transactSync((tx) => tx.put(Large, { id, a: fill(id), b: fill(id), c: fill(id) }));
      if (id === 25) await db.checkpoint();
    }
    await db.close();
    loseMemory(path);
    const again = await stores.open(options);
    expect(again.count(Large)).toBe(40);
    for (let id = 0; id < 40; id += 3) {
      const row = again.get(Large, id)!;
      for (const part of [row.a, row.b, row.c]) expect(Buffer.compare(part, fill(id))).toBe(0);
    }
    again.transactSync((tx) => tx.put(Large, { id: 0, a: fill(9), b: fill(9), c: fill(9) }));
  });
});

describe("with several threads", () => {
  const Big = table("big", { id: u32(), data: bytes() }, { key: "id" });

  it("data over 4 MiB, in checkpoint and log, with progress", async () => {
    const random = new Random(seed + 4);
    const path = stores.folder();
    const tables = [...WORLD, Big];
    const db = await stores.open({ path, tables, memoryBytes: 96 * MIB, durability: "lazy" });
    const grow = (from: number): void => {
      for (let id = from; id < from + 300; id++) {
        db.transactSync((tx) => tx.put(Big, { id, data: new Uint8Array(20_000).fill(id) }));
      }
    };
    grow(0);
    change(db, random, 500);
    await db.checkpoint();
    grow(200);
    change(db, random, 500);
    const before = describeWorld(db);
    await db.close();
    loseMemory(path);
    const told: RecoveryProgress[] = [];
    const again = await stores.open({ path, tables, onRecovery: (each) => told.push(each) });
    expect(describeWorld(again), replay).toEqual(before);
    expect(again.count(Big)).toBe(500);
    for (const { id, data } of again.scan(Big)) {
      expect([data.length, data.every((byte) => byte === (id & 255))]).toEqual([20_000, true]);
    }
    await expectSound(again);

    const { checkpointBytes, logBytes } = again.recovered!;
    expect(Math.min(checkpointBytes, logBytes)).toBeGreaterThan(4 * MIB);
    expect(told.length).toBeGreaterThan(0);
    for (const { phase, doneBytes, totalBytes } of told) {
      expect(totalBytes).toBe(phase === "checkpoint" ? checkpointBytes : logBytes);
      expect(doneBytes).toBeLessThanOrEqual(totalBytes);
    }
    expect(told.at(-1)).toEqual({ phase: "log", doneBytes: logBytes, totalBytes: logBytes });
    const order = told.map(({ phase, doneBytes }) => (phase === "log" ? 1e12 : 0) + doneBytes);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  it("a callback that throws ends the recovery, not the store", async () => {
    const db = await openWorld(stores.folder());
    change(db, new Random(seed), 100);
    const before = describeWorld(db);
    await db.close();
    loseMemory(db.path);
    const onRecovery = (): never => {
      throw new Error("the caller's own");
    };
    await expect(openWorld(db.path, { onRecovery })).rejects.toThrow("the caller's own");
    const again = await openWorld(db.path);
    expect(describeWorld(again)).toEqual(before);
  });
});

describe("again and again", () => {
  it("each time with changes before and after, checkpoints now and then", async () => {
    const random = new Random(seed + 5);
    let db = await openWorld(stores.folder());
    for (let round = 0; round < 8; round++) {
      change(db, random, random.below(250));
      if (random.below(2) === 0) await db.checkpoint();
      change(db, random, random.below(80));
      db = await reboot(db);
    }
    await expectSound(db);
  });

  it("twice in a row, with nothing in between", async () => {
    const random = new Random(seed + 6);
    let db = await openWorld(stores.folder());
    change(db, random, 300);
    const epochs: number[] = [];
    for (let round = 0; round < 3; round++) {
      db = await reboot(db);
      epochs.push(db.recovered!.epoch);
    }
    // Opening commits nothing, so there is nothing new to recover.
    expect(new Set(epochs).size).toBe(1);
    change(db, random, 30);
    await expectSound(await reboot(db));
  });

  it("memory that is there is joined, whatever is on disk: nothing is recovered", async () => {
    const db = await openWorld(stores.folder());
    change(db, new Random(seed), 100);
    const before = describeWorld(db);
    await db.close();
    const again = await openWorld(db.path);
    expect(again.recovered).toBeUndefined();
    expect(describeWorld(again)).toEqual(before);
  });

  it("those who open it meanwhile wait, and join what one of them has rebuilt", async () => {
    const db = await openWorld(stores.folder());
    change(db, new Random(seed), 400);
    const before = describeWorld(db);
    await db.close();
    loseMemory(db.path);
    const all = await Promise.all([1, 2, 3].map(() => openWorld(db.path)));
    expect(all.filter(({ recovered }) => recovered !== undefined)).toHaveLength(1);
    for (const each of all) expect(describeWorld(each)).toEqual(before);
    expect(existsSync(join(db.path, "recovering"))).toBe(false);
  });
});

describe("a recovery that is interrupted", () => {
  /** Opens the store, and is gone as soon as it hears of progress. */
  const INTERRUPTED = `
    let heard = 0;
    await situ.open({ path: data.path, onRecovery: () => {
      if (++heard === data.at) process.kill(process.pid, "SIGKILL");
    } });
    return heard;`;

  it("is begun again by the next, as often as that happens", async () => {
    const random = new Random(seed + 7);
    const db = await openWorld(stores.folder());
    change(db, random, 1_000);
    await db.checkpoint();
    change(db, random, 200);
    const before = describeWorld(db);
    await db.close();
    loseMemory(db.path);
    for (let round = 0; round < 3; round++) {
      const { signal } = await runChild(stores, INTERRUPTED, { path: db.path, at: 1 });
      expect(signal).toBe("SIGKILL");
      expect(existsSync(memoryOf(db.path)), "it had begun").toBe(true);
    }
    const again = await openWorld(db.path);
    expect(again.recovered).toBeDefined();
    expect(describeWorld(again), replay).toEqual(before);
    await expectSound(again);
    expect(existsSync(join(db.path, "recovering"))).toBe(false);
  });

  it("leaves the disk as it was", async () => {
    const db = await openWorld(stores.folder());
    change(db, new Random(seed), 300);
    await db.close();
    loseMemory(db.path);
    const files = (): string[] =>
      (["log", "checkpoints"] as const).flatMap((folder) =>
        filesIn(db.path, folder).map((name) => {
          const content = readFileSync(join(db.path, folder, name));
          return `${name} ${content.length} ${Buffer.from(content).toString("base64")}`;
        }),
      );
    const before = files();
    const { signal } = await runChild(stores, INTERRUPTED, { path: db.path, at: 1 });
    expect(signal).toBe("SIGKILL");
    expect(files()).toEqual(before);
  });

  it("does not keep a store from being destroyed", async () => {
    const db = await openWorld(stores.folder());
    change(db, new Random(seed), 50);
    await db.close();
    loseMemory(db.path);
    await runChild(stores, INTERRUPTED, { path: db.path, at: 1 });
    const memory = memoryOf(db.path);
    const { id } = identityOf(db.path);
    await destroy(db.path);
    expect(existsSync(memory)).toBe(false);
    const fresh = await openWorld(db.path);
    expect(identityOf(db.path).id).not.toBe(id);
    expect(fresh.recovered).toBeUndefined();
    expect(describeWorld(fresh)).toEqual([]);
  });
});
