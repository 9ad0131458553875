/**
 * When commits are on disk. What is on disk at a moment is told by a copy of the store's folder, which
 * is recovered; that nothing gets there is seen to by a log whose writer does not move.
 */

import { describe, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { open, openLocal } from "../../src/database/open.ts";
import { str, u32 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { copyOfDisk, filesIn, identityOf, loseMemory, openHeld } from "../helpers/logged-stores.ts";
import { eventually, failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";
import { runChild, startWorker } from "../helpers/store-workers.ts";

const stores = temporaryStores();

const Cell = table("cell", { id: u32(), value: u32() }, { key: "id" });
const Note = table("note", { id: u32(), text: str() }, { key: "id" });
const put = (db: Database, id: number, value: number): void =>
  db.transactSync((tx) => tx.put(Cell, { id, value }));

/** The log moves only when it is called, for as long as a test takes. */
const SLOW = { lagMs: 10_000 };

/** What a power loss now would leave of the table. */
async function valuesOnDisk(path: string): Promise<Record<number, number>> {
  const db = await stores.open({ path: copyOfDisk(stores, path), tables: [Cell] });
  const values = Object.fromEntries(
    db
      .scan(Cell)
      .toArray()
      .map(({ id, value }) => [id, value]),
  );
  await db.close();
  return values;
}

describe("lazy", () => {
  it("a commit returns before it is on disk, and gets there by itself", async () => {
    const { db, log, path } = await openHeld(stores, { tables: [Cell] });
    put(db, 1, 11);
    expect(db.get(Cell, 1)).toEqual({ id: 1, value: 11 });
    expect(await valuesOnDisk(path)).toEqual({});
    const { epoch } = db.stats();
    log.letGo();
    await eventually(() => db.stats().durability.durableEpoch >= epoch);
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });

  it("nobody has to ask: after a while all is on disk", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell], durability: "lazy", lagMs: 5 });
    for (let id = 1; id <= 3; id++) put(db, id, id);
    await eventually(async () => Object.keys(await valuesOnDisk(path)).length === 3);
    expect(await valuesOnDisk(path)).toEqual({ 1: 1, 2: 2, 3: 3 });
  });

  it("the least lag that an open database asks for counts, as long as it is open", async () => {
    const path = stores.folder();
    const patient = await stores.open({ path, tables: [Cell], durability: "lazy", ...SLOW });
    const hasty = await stores.open({ path, tables: [Cell], durability: "lazy", lagMs: 5 });
    // The log's writer may be in a long sleep from before: this ends it.
    put(hasty, 1, 10);
    await hasty.durable();
    put(patient, 1, 11);
    // Not by the epoch: a later one may have begun before one looks, and be empty.
    await eventually(async () => (await valuesOnDisk(path))[1] === 11);
    await hasty.close();
    put(patient, 2, 22);
    await patient.durable();
    const { batches } = patient.stats().durability;
    put(patient, 3, 33);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(patient.stats().durability.batches).toBe(batches);
  });

  it("one transaction can be sync: it takes all before it along", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell], durability: "lazy", ...SLOW });
    put(db, 1, 11);
    db.transactSync((tx) => tx.put(Cell, { id: 2, value: 22 }), { durability: "sync" });
    expect(await valuesOnDisk(path)).toEqual({ 1: 11, 2: 22 });
    put(db, 3, 33);
    await db.transact((tx) => tx.put(Cell, { id: 4, value: 44 }), { durability: "sync" });
    put(db, 5, 55);
    expect(await valuesOnDisk(path)).toEqual({ 1: 11, 2: 22, 3: 33, 4: 44 });
  });
});

describe("sync", () => {
  it("what has returned is on disk, for both kinds of transactions", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell], durability: "sync", ...SLOW });
    const expected: Record<number, number> = {};
    for (let id = 1; id <= 6; id++) {
      const { epoch } = db.stats();
      if (id % 2 === 0) put(db, id, id);
      else await db.transact((tx) => tx.put(Cell, { id, value: id }));
      expected[id] = id;
      expect(db.stats().durability.durableEpoch).toBeGreaterThanOrEqual(epoch);
      expect(await valuesOnDisk(path)).toEqual(expected);
    }
  });

  it("many in flight share what gets them to disk", async () => {
    const { db, log } = await openHeld(stores, { tables: [Cell], durability: "sync" });
    const { batches, records } = db.stats().durability;
    let returned = 0;
    const running = Array.from({ length: 64 }, async (_, id) => {
      await db.transact((tx) => tx.put(Cell, { id, value: id }));
      returned++;
    });
    await eventually(() => db.count(Cell) === 64);
    expect(returned).toBe(0);
    expect(log.round()).toBe("done");
    await Promise.all(running);
    const after = db.stats().durability;
    expect(after.batches - batches).toBe(1);
    expect(after.records - records).toBeGreaterThanOrEqual(64);
  });

  it("one that fails has nothing to wait for", async () => {
    const { db } = await openHeld(stores, { tables: [Cell], durability: "sync" });
    const thrown = new Error("the caller's own");
    const body = (): never => {
      throw thrown;
    };
    expect(() => db.transactSync(body)).toThrow(thrown);
    await expect(db.transact(body)).rejects.toBe(thrown);
  });

  it("a deadline ends the waiting: SITU_NOT_DURABLE, which names who does not move", async () => {
    const { db, log, path } = await openHeld(stores, { tables: [Cell], durability: "sync" });
    const { slot } = log.executor;
    const body = { timeoutMs: 60 };
    const errors = [
      failureSync("SITU_NOT_DURABLE", () =>
        db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }), body),
      ),
      await failure("SITU_NOT_DURABLE", () =>
        db.transact((tx) => tx.put(Cell, { id: 2, value: 22 }), body),
      ),
      await failure("SITU_NOT_DURABLE", () => db.durable(body)),
    ];
    for (const { message, retryable } of errors) {
      expect(message).toMatch(/is committed, but not known to be on disk/);
      expect(message).toContain(`process ${process.pid} (thread 0, slot ${slot})`);
      expect(message).toContain("60 ms");
      // The transaction must not be run again: it is committed.
      expect(retryable).toBe(false);
    }
    expect([1, 2].map((id) => db.get(Cell, id)?.value)).toEqual([11, 22]);
    expect(await valuesOnDisk(path)).toEqual({});
    const waiting = db.durable();
    log.round();
    await waiting;
    expect(await valuesOnDisk(path)).toEqual({ 1: 11, 2: 22 });
  });

  it("the database's own deadline counts if the transaction has none", async () => {
    const options = { tables: [Cell], durability: "sync", timeoutMs: 500 } as const;
    const { db, log } = await openHeld(stores, options);
    expect(failureSync("SITU_NOT_DURABLE", () => put(db, 1, 1)).message).toContain("500 ms");
    log.round();
  });
});

describe("reads of a sync transaction", () => {
  const LATE = { durability: "sync", timeoutMs: 40 } as const;

  it("wait for what they have seen, and for nothing else", async () => {
    const { db, log } = await openHeld(stores, { tables: [Cell, Note] });
    for (const id of [1, 2]) put(db, id, id);
    db.transactSync((tx) => tx.put(Note, { id: 1, text: "durable" }));
    log.round();
    put(db, 1, 100);
    const seen = (id: number): number | undefined =>
      db.transactSync((tx) => tx.get(Cell, id)?.value, LATE);
    failureSync("SITU_NOT_DURABLE", () => seen(1));
    // Another object, of a commit that is on disk.
    expect(db.transactSync((tx) => tx.get(Note, 1)?.text, LATE)).toBe("durable");
    // Reads outside of transactions never wait.
    expect(db.get(Cell, 1)?.value).toBe(100);
    expect(db.scan(Cell).toArray()).toHaveLength(2);
    expect(db.transactSync((tx) => tx.get(Cell, 1)?.value)).toBe(100);
    log.round();
    expect(seen(1)).toBe(100);
  });

  it("in asynchronous ones and in snapshots too", async () => {
    const { db, log } = await openHeld(stores, { tables: [Cell] });
    put(db, 1, 1);
    log.round();
    put(db, 1, 100);
    await failure("SITU_NOT_DURABLE", () => db.transact((tx) => tx.get(Cell, 1), LATE));
    const isolation = "snapshot" as const;
    failureSync("SITU_NOT_DURABLE", () =>
      db.transactSync((tx) => tx.get(Cell, 1), { ...LATE, isolation }),
    );
    await failure("SITU_NOT_DURABLE", () =>
      db.transact((tx) => tx.get(Cell, 1), { ...LATE, isolation }),
    );
    log.round();
    expect(db.transactSync((tx) => tx.get(Cell, 1)?.value, { ...LATE, isolation })).toBe(100);
  });

  it("also for what is not there any more", async () => {
    const { db, log } = await openHeld(stores, { tables: [Cell, Note] });
    db.transactSync((tx) => tx.put(Note, { id: 1, text: "x".repeat(5_000) }));
    put(db, 1, 1);
    log.round();
    db.transactSync((tx) => tx.delete(Cell, 1));
    failureSync("SITU_NOT_DURABLE", () => db.transactSync((tx) => tx.get(Cell, 1), LATE));
    db.transactSync((tx) => tx.delete(Note, 1));
    failureSync("SITU_NOT_DURABLE", () => db.transactSync((tx) => tx.get(Note, 1), LATE));
    log.round();
    expect(db.transactSync((tx) => tx.get(Note, 1), LATE)).toBeUndefined();
  });

  it("and a scan for all that it has passed", async () => {
    const { db, log } = await openHeld(stores, { tables: [Cell] });
    for (let id = 0; id < 500; id++) put(db, id, id);
    log.round();
    const count = (): number => db.transactSync((tx) => tx.scan(Cell).toArray().length, LATE);
    expect(count()).toBe(500);
    put(db, 321, 0);
    failureSync("SITU_NOT_DURABLE", count);
  });
});

describe("durable()", () => {
  it("waits for what others have committed, too", async () => {
    const path = stores.folder();
    const options = { path, tables: [Cell], durability: "lazy" as const, ...SLOW };
    const one = await stores.open(options);
    const two = await stores.open(options);
    put(one, 1, 11);
    await two.durable();
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });

  it("does not wait for what comes after it", async () => {
    const { db, log, path } = await openHeld(stores, { tables: [Cell] });
    put(db, 1, 11);
    const waiting = db.durable();
    log.round();
    put(db, 2, 22);
    await waiting;
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });

  it("with nothing committed it returns all the same", async () => {
    const db = await stores.open({ durability: "lazy", ...SLOW });
    await db.durable();
    await Promise.all([db.durable(), db.durable(), db.durable({ timeoutMs: 1_000 })]);
  });

  it.each([0, -1, Number.NaN, "5", null])("timeoutMs: %s is refused", async (timeoutMs) => {
    const db = await stores.open({ durability: "lazy" });
    await failure("SITU_CONFIG", () => db.durable({ timeoutMs: timeoutMs as number }));
  });

  it("of a closed database is refused", async () => {
    const db = await stores.open({ durability: "lazy" });
    await db.close();
    await failure("SITU_CLOSED", () => db.durable());
    await failure("SITU_CLOSED", () => db.checkpoint());
  });
});

describe("close()", () => {
  it("waits until all is on disk", async () => {
    const path = stores.folder();
    const db = await open({
      path,
      tables: [Cell],
      memoryBytes: 8 * MIB,
      durability: "lazy",
      ...SLOW,
    });
    put(db, 1, 11);
    await db.close();
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });

  it("rejects where that cannot be had, and is closed all the same", async () => {
    const { db, log, path } = await openHeld(stores, { tables: [Cell] });
    const other = await open({ path, tables: [Cell], timeoutMs: 80 });
    put(other, 1, 11);
    const error = await failure("SITU_NOT_DURABLE", () => other.close());
    expect(error.message).toContain(`process ${process.pid}`);
    failureSync("SITU_CLOSED", () => other.get(Cell, 1));
    expect(db.stats().executors).toHaveLength(2);
    expect(db.get(Cell, 1)?.value).toBe(11);
    log.letGo();
    await db.durable();
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });

  it("of the one who writes the log leaves it to another", async () => {
    const path = stores.folder();
    const options = { path, tables: [Cell], durability: "sync" as const };
    const first = await stores.open(options);
    put(first, 1, 11);
    const second = await stores.open(options);
    const before = first.stats().durability.writer;
    await first.close();
    put(second, 2, 22);
    const after = second.stats().durability.writer;
    expect(after?.pid).toBe(process.pid);
    expect(after).not.toEqual(before);
    expect(await valuesOnDisk(path)).toEqual({ 1: 11, 2: 22 });
  });

  it("ends who waits for the disk beside it, and who then touches no memory that is gone", async () => {
    const { log, path } = await openHeld(stores, { tables: [Cell] });
    const other = await openLocal({ path, tables: [Cell], timeoutMs: 80 });
    put(other, 1, 11);
    // As a node's thread waits before it answers.
    const { durability, committer } = other.executor;
    const waiting = failure("SITU_CLOSED", () => durability.await(committer.lastEpoch, 60_000));
    await failure("SITU_NOT_DURABLE", () => other.close());
    await waiting;
    log.letGo();
  });

  it("waits for a transaction that waits for the disk", async () => {
    const { db, log, path } = await openHeld(stores, { tables: [Cell], durability: "sync" });
    const running = db.transact((tx) => tx.put(Cell, { id: 1, value: 11 }));
    await eventually(() => db.get(Cell, 1) !== undefined);
    let closed = false;
    const closing = db.close().then(() => {
      closed = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(closed).toBe(false);
    log.letGo();
    // The log has nobody left but the one who is closing.
    await Promise.all([running, closing]);
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });
});

describe("who else is there", () => {
  it("two databases of one process, and what they say of the log", async () => {
    const path = stores.folder();
    const options = { path, tables: [Cell], durability: "sync" as const };
    const one = await stores.open(options);
    const two = await stores.open(options);
    for (let id = 1; id <= 20; id++) put(id % 2 === 0 ? one : two, id, id);
    const [a, b] = [one.stats(), two.stats()];
    expect(a.durability).toEqual(b.durability);
    expect(a.durability).toMatchObject({
      mode: "sync",
      state: "running",
      checkpoints: 0,
      lastCheckpoint: undefined,
    });
    const { writer, batches, records, logBytes, durableEpoch } = a.durability;
    expect(writer?.pid).toBe(process.pid);
    expect(writer?.threadId).toBeGreaterThan(0);
    // The log's writer has a slot of its own, and is not one of those who have the store open.
    expect(a.executors).toHaveLength(2);
    expect(a.executors.map(({ slot }) => slot)).not.toContain(writer?.slot);
    expect(batches).toBeGreaterThanOrEqual(20);
    expect(records).toBeGreaterThanOrEqual(batches);
    expect(logBytes).toBeGreaterThan(20 * 48);
    expect(durableEpoch).toBeLessThanOrEqual(a.epoch);
    expect(Object.keys(await valuesOnDisk(path))).toHaveLength(20);
  });

  it("a process that leaves without closing: the next one sees to what it has left", async () => {
    const path = stores.folder();
    const { status } = await runChild(
      stores,
      `
      const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
      const db = await situ.open({ path: data.path, tables: [Cell], lagMs: 10_000 });
      await db.durable();
      db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
      process.exit(7);`,
      { path },
    );
    expect(status).toBe(7);
    // On a busy machine the log's writer may just have been at it.
    expect([{}, { 1: 11 }]).toContainEqual(await valuesOnDisk(path));
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.recovered).toBeUndefined();
    expect(db.get(Cell, 1)?.value).toBe(11);
    await db.durable();
    expect(await valuesOnDisk(path)).toEqual({ 1: 11 });
  });

  it("a process that has forgotten to close its store ends all the same", async () => {
    const { result, status } = await runChild(
      stores,
      `
      const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
      const db = await situ.open({ path: data.path, tables: [Cell], durability: "sync" });
      db.transactSync((tx) => tx.put(Cell, { id: 1, value: 11 }));
      return db.get(Cell, 1).value;`,
      { path: stores.folder() },
    );
    expect([result, status]).toEqual([11, 0]);
  });

  it("stores of their own do not meet", async () => {
    const paths = [stores.folder(), stores.folder()];
    const [one, two] = await Promise.all(
      paths.map((path) => stores.open({ path, tables: [Cell], durability: "sync" })),
    );
    put(one, 1, 11);
    put(two, 2, 22);
    expect(await valuesOnDisk(paths[0])).toEqual({ 1: 11 });
    expect(await valuesOnDisk(paths[1])).toEqual({ 2: 22 });
    expect(identityOf(paths[0]).logId).not.toBe(identityOf(paths[1]).logId);
  });

  const WORK = `
    const Cell = situ.table("cell", { id: situ.u32(), value: situ.u32() }, { key: "id" });
    const db = await situ.open({ path: data.path, tables: [Cell], durability: "sync" });
    for (let id = 100; id < 130; id++) {
      if (id % 2 === 0) db.transactSync((tx) => tx.put(Cell, { id, value: id }));
      else await db.transact((tx) => tx.put(Cell, { id, value: id }));
    }`;

  it("a worker thread commits in sync, with the log written in the main thread's name", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Cell], durability: "lazy" });
    put(db, 1, 11);
    const worker = startWorker(stores, `${WORK} await db.close(); return "done";`, { path });
    expect(await worker.result).toBe("done");
    expect(Object.keys(await valuesOnDisk(path))).toHaveLength(31);
  });

  it("a worker thread whose database writes the log may be terminated", async () => {
    const path = stores.folder();
    await (await open({ path, tables: [Cell], memoryBytes: 8 * MIB })).close();
    const code = `${WORK} port.postMessage("open"); await new Promise(() => {});`;
    const worker = startWorker(stores, code, { path });
    await eventually(() => worker.messages.length > 0);
    const db = await stores.open({ path, tables: [Cell], durability: "sync" });
    const before = db.stats().durability.writer;
    await worker.end();
    put(db, 1, 11);
    // It may have been written without a writer; but there will be one.
    await eventually(() => {
      const { writer } = db.stats().durability;
      return writer !== undefined && writer.threadId !== before?.threadId;
    });
    expect(Object.keys(await valuesOnDisk(path))).toHaveLength(31);
  });

  it("a store is left by all and joined again: nothing is recovered, the log goes on", async () => {
    const path = stores.folder();
    const segments: number[] = [];
    for (let round = 1; round <= 3; round++) {
      const db = await open({ path, tables: [Cell], memoryBytes: 8 * MIB, durability: "sync" });
      expect(db.recovered).toBeUndefined();
      put(db, round, round);
      await db.close();
      segments.push(filesIn(path, "log").length);
      expect(Object.keys(await valuesOnDisk(path))).toHaveLength(round);
    }
    expect(segments[2]).toBeGreaterThan(segments[0]);
    loseMemory(path);
    const db = await stores.open({ path, tables: [Cell] });
    expect(db.count(Cell)).toBe(3);
  });
});
