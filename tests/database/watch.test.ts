/** `db.watch`: what happens to rows, told from the log, in the order of the commits. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import type { OpenOptions } from "../../src/database/open-options.ts";
import { inspect, restore, verify } from "../../src/database/store-tools.ts";
import type { Change, Watch } from "../../src/database/watch.ts";
import { epochIn, parsePosition } from "../../src/log/feed/position.ts";
import { SCHEMA_GENERATION } from "../../src/memory/control.ts";
import { ChangeDecoder } from "../../src/tables/changes/decoder.ts";
import { formatId, withFormat } from "../../src/tables/changes/format.ts";
import { turnOnChanges } from "../../src/tables/changes/turn-on.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { bool, f64, i64, json, str, u8, u32, u64 } from "../../src/tables/fields.ts";
import { schemaOf } from "../../src/tables/schema.ts";
import { table } from "../../src/tables/table.ts";
import { filesIn, loseMemory } from "../helpers/logged-stores.ts";
import { failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
const Other = table("other", { id: u32(), text: str() }, { key: "id" });

const opened = (options: Partial<OpenOptions> = {}): ReturnType<typeof stores.open> =>
  stores.open({ tables: [Account, Other], durability: "sync", ...options });

/** The next changes, so many; the watch stays open. */
async function take<C>(watch: Watch<C>, count: number): Promise<C[]> {
  const found: C[] = [];
  while (found.length < count) {
    const { done, value } = await watch.next();
    if (done) break;
    found.push(value);
  }
  return found;
}

const short = ({ type, key, row }: Change): unknown[] => [type, key, row];
const add = (db: Database, id: number, balance = 0n): void =>
  db.transactSync((tx) => tx.put(Account, { id, balance }));
const ids = (changes: readonly Change[]): unknown[] => changes.map(({ key }) => key);

describe("tells what happens to rows", () => {
  it("of bulk operations, only those that were changed", async () => {
    const db: Database = await opened();
    for (let id = 1; id <= 3; id++) add(db, id, BigInt(id));
    const watch = db.watch(Account);
    await db.updateWhere(Account, {
      where: (a) => a.id.gt(1),
      set: () => ({ balance: 3n }),
    });
    await db.deleteWhere(Account, { where: (a) => a.balance.eq(1n) });
    const changes = await take(watch, 2);
    expect(changes.map(short)).toEqual([
      ["update", 2, { id: 2, balance: 3n }],
      ["delete", 1, { id: 1, balance: 1n }],
    ]);
  });

  it("inserts, updates, puts and deletes, with the row, in order", async () => {
    const db = await opened();
    const watch = db.watch(Account);
    db.transactSync((tx) => {
      tx.insert(Account, { id: 1, balance: 10n });
      tx.update(Account, 1, { balance: 20n });
      tx.put(Account, { id: 1, balance: 30n });
      tx.put(Account, { id: 2, balance: 40n });
    });
    db.transactSync((tx) => tx.delete(Account, 1));
    const changes = await take(watch, 5);
    expect(changes.map(short)).toEqual([
      ["insert", 1, { id: 1, balance: 10n }],
      ["update", 1, { id: 1, balance: 20n }],
      ["update", 1, { id: 1, balance: 30n }],
      ["insert", 2, { id: 2, balance: 40n }],
      ["delete", 1, { id: 1, balance: 30n }],
    ]);
    expect(new Set(changes.map(({ position }) => position)).size).toBe(5);
    expect(changes[0].table).toBe("account");
    expect(Math.abs(Date.now() - changes[0].time)).toBeLessThan(3_600_000);
  });

  it("is typed by the table", async () => {
    const db = await opened();
    const watch = db.watch(Account, { where: (row) => row.balance > 0n });
    expectTypeOf(watch).toEqualTypeOf<Watch<Change<{ id: number; balance: bigint }, number>>>();
    const both = db.watch([Account, Other] as const);
    expectTypeOf(both).toEqualTypeOf<
      Watch<
        | Change<{ id: number; balance: bigint }, number>
        | Change<{ id: number; text: string }, number>
      >
    >();
  });

  const SHAPES = {
    "hopscotch, short rows": table("t", { id: u32(), a: u8(), b: f64(), c: bool() }, { key: "id" }),
    "hopscotch, long rows": table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool(), fixed: str(200) },
      { key: "id" },
    ),
    "hopscotch, rows of many sizes": table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool(), text: str(), data: json() },
      { key: "id" },
    ),
    buckets: table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool() },
      { key: "id", layout: "buckets" },
    ),
    "ordered, short rows": table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool() },
      { key: "id", ordered: true },
    ),
    "ordered, long rows": table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool(), fixed: str(200) },
      { key: "id", ordered: true },
    ),
    "ordered, rows of many sizes": table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool(), text: str() },
      { key: "id", ordered: true },
    ),
    indexed: table(
      "t",
      { id: u32(), a: u8(), b: f64(), c: bool() },
      { key: "id", indexes: { byA: { on: ["a"] } } },
    ),
  } as const;

  it.each(Object.keys(SHAPES) as (keyof typeof SHAPES)[])("of a table: %s", async (name) => {
    // biome-ignore lint/suspicious/noExplicitAny: tables of different rows
    const Shape = SHAPES[name] as any;
    const db = await opened({ tables: [Shape] });
    const watch = db.watch(Shape);
    const more: Record<string, unknown> = {};
    if ("fixed" in Shape.fields) more.fixed = "x".repeat(150);
    if ("text" in Shape.fields) more.text = "y".repeat(3_000);
    if ("data" in Shape.fields) more.data = { a: [1, 2] };
    const model = new Map<number, object>();
    const expected: unknown[] = [];
    for (let round = 0; round < 6; round++) {
      db.transactSync((tx) => {
        const id = round % 3;
        const row = { id, a: round, b: round / 2, c: false, ...more };
        expected.push([model.has(id) ? "update" : "insert", id, row]);
        model.set(id, row);
        tx.put(Shape, row);
        // One field that fills its words, one that shares them, and several.
        for (const changes of [{ b: round + 0.25 }, { c: true }, { a: round + 100, b: -1 }]) {
          tx.update(Shape, id, changes);
          model.set(id, { ...model.get(id), ...changes });
          expected.push(["update", id, model.get(id)]);
        }
        if (round === 4) {
          expected.push(["delete", id, model.get(id)]);
          tx.delete(Shape, id);
          model.delete(id);
        }
      });
    }
    expect((await take(watch, expected.length)).map((each) => short(each as Change))).toEqual(
      expected,
    );
    expect(await db.verify()).toMatchObject({ problems: [] });
  });

  it("composite keys, as a caller writes them", async () => {
    const Pair = table("pair", { a: u32(), b: str(8), n: u64() }, { key: ["a", "b"] });
    const db = await opened({ tables: [Pair] });
    const watch = db.watch(Pair);
    db.transactSync((tx) => tx.insert(Pair, { a: 1, b: "x", n: 7n }));
    db.transactSync((tx) => tx.delete(Pair, [1, "x"]));
    const changes = await take(watch, 2);
    expect(changes.map(({ key }) => key)).toEqual([
      [1, "x"],
      [1, "x"],
    ]);
  });

  it("only what was done: not what was refused, nor what was rolled back", async () => {
    const Unique = table(
      "unique",
      { id: u32(), name: str(20) },
      { key: "id", indexes: { byName: { on: ["name"], unique: true } } },
    );
    const db = await opened({ tables: [Unique] });
    const watch = db.watch(Unique);
    db.transactSync((tx) => {
      tx.insert(Unique, { id: 1, name: "a" });
      expect(() => tx.insert(Unique, { id: 1, name: "b" })).toThrow();
      expect(() => tx.insert(Unique, { id: 2, name: "a" })).toThrow();
      expect(() => tx.update(Unique, 9, { name: "c" })).toThrow();
      expect(tx.delete(Unique, 9)).toBe(false);
    });
    expect(() =>
      db.transactSync((tx) => {
        tx.delete(Unique, 1);
        throw new Error("no");
      }),
    ).toThrow("no");
    await expect(
      db.transact(async (tx) => {
        await tx.put(Unique, { id: 3, name: "z" });
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    await db.transact(async (tx) => tx.update(Unique, 1, { name: "end" }), {
      isolation: "snapshot",
    });
    expect((await take(watch, 2)).map(short)).toEqual([
      ["insert", 1, { id: 1, name: "a" }],
      ["update", 1, { id: 1, name: "end" }],
    ]);
  });

  it("of several tables in one order, and only of rows that are asked for", async () => {
    const db = await opened();
    const watch = db.watch([Account, Other] as const);
    const rich = db.watch(Account, { where: ({ balance }) => balance >= 100n });
    for (let i = 0; i < 6; i++) {
      db.transactSync((tx) => {
        tx.insert(Account, { id: i, balance: BigInt(i * 50) });
        tx.insert(Other, { id: i, text: `n ${i}` });
      });
    }
    const all = await take(watch, 12);
    expect(all.map(({ table: name, key }) => `${name} ${key}`)).toEqual(
      [0, 1, 2, 3, 4, 5].flatMap((i) => [`account ${i}`, `other ${i}`]),
    );
    expect(ids(await take(rich, 4))).toEqual([2, 3, 4, 5]);
  });

  it("does not record what nobody watches", async () => {
    const db = await opened();
    const { logBytes: before } = db.stats().durability;
    add(db, 1);
    await db.durable();
    const { logBytes: first } = db.stats().durability;
    db.watch(Other).return();
    await db.durable();
    const { logBytes: second } = db.stats().durability;
    add(db, 1);
    await db.durable();
    expect(db.stats().durability.logBytes - second).toBeLessThanOrEqual(first - before);
  });

  it("a slow reader reads the log batch by batch", async () => {
    const db = await opened({ durability: "lazy" });
    const watch = db.watch(Account);
    for (let i = 0; i < 2_000; i++) add(db, i);
    const first = await take(watch, 1);
    for (let i = 2_000; i < 3_000; i++) add(db, i);
    const rest = await take(watch, 2_999);
    expect(ids([...first, ...rest])).toEqual(Array.from({ length: 3_000 }, (_, i) => i));
  });
});

describe("positions", () => {
  it("go on after a change, also in the middle of a transaction", async () => {
    const db = await opened();
    const watch = db.watch(Account);
    db.transactSync((tx) => {
      for (let id = 0; id < 5; id++) tx.insert(Account, { id, balance: 0n });
    });
    add(db, 5);
    const changes = await take(watch, 6);
    for (const [i, { position }] of changes.entries()) {
      expect(ids(await take(db.watch(Account, { from: position }), 5 - i))).toEqual(
        [0, 1, 2, 3, 4, 5].slice(i + 1),
      );
    }
    expect(watch.position).toBe(changes[5].position);
    expect(ids(await take(db.watch(Account, { from: "start" }), 6))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it("hold after the store was closed, its memory lost, and recovered", async () => {
    let db = await opened();
    const { path } = db;
    const watch = db.watch(Account);
    const start = watch.position;
    add(db, 1);
    add(db, 2);
    const [{ position }] = await take(watch, 1);
    await db.close();
    db = await opened({ path });
    add(db, 3);
    await db.close();
    loseMemory(path);
    db = await opened({ path });
    expect(db.recovered).toBeDefined();
    add(db, 4);
    expect(ids(await take(db.watch(Account, { from: position }), 3))).toEqual([2, 3, 4]);
    expect(ids(await take(db.watch(Account, { from: start }), 4))).toEqual([1, 2, 3, 4]);
    await db.close();
    loseMemory(path);
    db = await opened({ path });
    const again = db.watch(Account, { from: position });
    expect(ids(await take(again, 3))).toEqual([2, 3, 4]);
    add(db, 5);
    expect(ids(await take(again, 1))).toEqual([5]);
  });

  it("from where nothing had happened yet, after a recovery", async () => {
    let db = await opened();
    const { path } = db;
    add(db, 1);
    const watch = db.watch(Account);
    const waiting = watch.next();
    await db.durable();
    // The watch sees that its place is the end of the last batch.
    const { durability } = db.executor;
    while (epochIn(parsePosition(watch.position)) > durability.written) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const { position } = watch;
    await watch.return();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await db.close();
    loseMemory(path);
    db = await opened({ path });
    add(db, 2);
    expect(ids(await take(db.watch(Account, { from: position }), 1))).toEqual([2]);
  });

  it("lie in log that was removed: a gap, unless it is kept", async () => {
    const run = async (keepLogBytes: number): Promise<unknown> => {
      const db = await opened({ keepLogBytes });
      const watch = db.watch(Account);
      add(db, 1);
      const [{ position }] = await take(watch, 1);
      await watch.return();
      const { path } = db;
      let next = db;
      // Each writer of the log begins a segment of its own.
      for (let round = 0; round < 4; round++) {
        next.transactSync((tx) => {
          for (let id = 0; id < 2_000; id++) tx.put(Account, { id, balance: BigInt(round) });
        });
        await next.checkpoint();
        await next.close();
        next = await opened({ path, keepLogBytes });
      }
      add(next, 5);
      if (keepLogBytes === 0) {
        expect(filesIn(path, "log")).not.toContain("0000000001.log");
        return failureSync("SITU_GAP", () => next.watch(Account, { from: position }));
      }
      return ids(await take(next.watch(Account, { from: position }), 8_001)).length;
    };
    expect(String(await run(0))).toContain("the log no longer has what follows it");
    expect(await run(64 * MIB)).toBe(8_001);
  });

  it("of a time that a restore has undone: a gap", async () => {
    const db = await opened({ keepLogMs: Number.POSITIVE_INFINITY });
    const watch = db.watch(Account);
    add(db, 1);
    const [early] = await take(watch, 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const at = new Date();
    await new Promise((resolve) => setTimeout(resolve, 50));
    add(db, 2);
    const [late] = await take(watch, 1);
    await db.close();
    const folder = stores.folder();
    await restore(db.path, folder, { to: at });
    stores.adopt(folder);
    const back = await opened({ path: folder });
    expect(back.count(Account)).toBe(1);
    failureSync("SITU_GAP", () => back.watch(Account, { from: late.position }));
    add(back, 3);
    await back.durable();
    failureSync("SITU_GAP", () => back.watch(Account, { from: late.position }));
    expect(ids(await take(back.watch(Account, { from: early.position }), 1))).toEqual([3]);
  });

  it("of before the recording was turned off and on again: a gap", async () => {
    const db = await opened();
    const watch = db.watch(Account);
    add(db, 1);
    const [{ position }] = await take(watch, 1);
    expect(db.unwatch(Account)).toBe(true);
    expect(db.unwatch(Account)).toBe(false);
    await failure("SITU_GAP", () => watch.next());
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    failureSync("SITU_GAP", () => db.watch(Account, { from: position }));
    add(db, 2);
    const again = db.watch(Account);
    add(db, 3);
    expect(ids(await take(again, 1))).toEqual([3]);
    failureSync("SITU_GAP", () => db.watch(Account, { from: position }));
    // What was told before is not told again, as if nothing were missing behind it.
    expect(ids(await take(db.watch(Account, { from: "start" }), 1))).toEqual([3]);
  });

  it("that are none are refused", async () => {
    const db = await opened();
    for (const from of ["", "then", 7, `${"0".repeat(24)}:0:0`]) {
      failureSync("SITU_TYPE", () => db.watch(Account, { from: from as string }));
    }
    db.watch(Account);
    const unknown = `${"0".repeat(24)}:ffffffff00000000:0`;
    failureSync("SITU_GAP", () => db.watch(Account, { from: unknown }));
  });
});

describe("ends", () => {
  it("with an error when the database is closed, or by its signal", async () => {
    const db = await opened();
    const controller = new AbortController();
    const stopped = db.watch(Account, { signal: controller.signal });
    const aborted = failure("SITU_ABORTED", () => stopped.next());
    controller.abort();
    await aborted;
    failureSync("SITU_ABORTED", () => db.watch(Account, { signal: controller.signal }));
    const watch = db.watch(Account);
    const closed = failure("SITU_CLOSED", () => watch.next());
    await db.close();
    await closed;
    failureSync("SITU_CLOSED", () => db.watch(Account));
  });

  it("when its loop is left, and without one that waits", async () => {
    const db = await opened();
    const watch = db.watch(Account);
    add(db, 1);
    for await (const { key } of watch) {
      expect(key).toBe(1);
      break;
    }
    add(db, 2);
    expect(await watch.next()).toEqual({ done: true, value: undefined });
    const waiting = db.watch(Account);
    const next = waiting.next();
    await waiting.return();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  it("with the error of `where`", async () => {
    const db = await opened();
    const watch = db.watch(Account, {
      where: () => {
        throw new RangeError("mine");
      },
    });
    add(db, 1);
    await expect(watch.next()).rejects.toThrow("mine");
    expect(await watch.next()).toEqual({ done: true, value: undefined });
  });

  it("is refused where it cannot be", async () => {
    const db = await stores.open({ tables: [Account] });
    expect(failureSync("SITU_CONFIG", () => db.watch(Account)).message).toContain("lazy");
    const logged = await opened();
    failureSync("SITU_CONFIG", () => logged.watch(Account, { form: "now" } as object));
    failureSync("SITU_TYPE", () => logged.watch(Account, { where: 1 } as object));
    failureSync("SITU_TYPE", () => logged.watch([]));
    failureSync("SITU_UNKNOWN_TABLE", () => logged.watch(table("x", { id: u32() }, { key: "id" })));
    failureSync("SITU_NESTED", () => logged.transactSync(() => logged.watch(Account)));
  });
});

it("ready() waits for transactions that do not know of the watch", async () => {
  const db = await opened();
  const other = await opened({ path: db.path });
  const running = await other.begin();
  await running.put(Account, { id: 1, balance: 1n });
  const watch = db.watch(Account);
  let isReady = false;
  const ready = watch.ready().then(() => {
    isReady = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(isReady).toBe(false);
  await running.commit();
  await ready;
  other.transactSync((tx) => tx.put(Account, { id: 2, balance: 2n }));
  const [change] = await take(watch, 1);
  expect(change.key).toBe(2);
});

it("one who turned the recording on and died before it told the others", async () => {
  const db = await opened();
  const other = await opened({ path: db.path });
  const { i32 } = db.executor.memory.control;
  add(other, 1);
  turnOnChanges(db.executor, db.tableOf(Account), 5_000);
  // As if nobody had been told.
  Atomics.sub(i32, SCHEMA_GENERATION, 1);
  add(other, 2);
  const watch = other.watch(Account);
  add(db, 3);
  add(other, 4);
  expect(ids(await take(watch, 2))).toEqual([3, 4]);
});

it("a log with changes is sound, and shows them", async () => {
  const db = await opened();
  const watch = db.watch(Account);
  add(db, 1);
  await take(watch, 1);
  await db.close();
  expect((await verify(db.path)).problems).toEqual([]);
  const changes: unknown[] = [];
  for (const name of filesIn(db.path, "log").filter((each) => each.endsWith(".log"))) {
    const found = await inspect(db.path, { file: `log/${name}`, records: true });
    const batches = "batches" in found ? found.batches : [];
    const transactions = batches.flatMap((each) => each.transactions ?? []);
    for (const each of transactions) changes.push(...(each.changes ?? []));
  }
  expect(changes).toEqual([{ table: 0, type: "insert", words: 4 }]);
});

it("rows are decoded by the fields that they were written with, or not at all", async () => {
  const db = await opened();
  const watch = db.watch(Account);
  const { codec } = db.tableOf(Account).structure;
  const words = codec.encode({ id: 7, balance: 8n });
  const row = codec.scratch.i32.slice(0, words);
  const old = schemaOf(Account);
  const New = table("account", { id: u32(), balance: i64(), name: str(10) }, { key: "id" });
  const changes = { since: 0, formats: [] };
  const before = withFormat({ ...old, changes });
  const { changes: stored } = withFormat({ ...schemaOf(New), changes: before.changes });
  expect(stored.formats).toHaveLength(2);
  const schema = { ...schemaOf(New), migrations: 1, defaults: { name: "none" } };
  const decoder = new ChangeDecoder(New, codecOf(New) as never, { ...stored, schema });
  const shifted = Int32Array.of(0, ...row);
  const shown = { id: 7, balance: 8n, name: "none" };
  expect(decoder.rowAt(shifted, 1, words, formatId(old))).toEqual(shown);
  const nameless = { ...schema, defaults: {} };
  const strict = new ChangeDecoder(New, codecOf(New) as never, { ...stored, schema: nameless });
  failureSync("SITU_SCHEMA", () => strict.rowAt(shifted, 1, words, formatId(old)));
  failureSync("SITU_SCHEMA", () => decoder.rowAt(row, 0, words, formatId(old) ^ 1));
  await watch.return();
});

it("in a worker thread, of what the main thread does", async () => {
  const db = await opened();
  const worker = new Worker(
    `const { parentPort, workerData } = require("node:worker_threads");
    (async () => {
      const { open, table, u32, i64 } = await import(workerData.situ);
      const Account = table("account", { id: u32(), balance: i64() }, { key: "id" });
      const db = await open({ path: workerData.path, tables: [Account], timeoutMs: 60_000 });
      const watch = db.watch(Account);
      parentPort.postMessage("watching");
      for await (const change of watch) {
        parentPort.postMessage(change);
        break;
      }
      await db.close();
    })();`,
    {
      eval: true,
      workerData: { path: db.path, situ: new URL("../../dist/situ.js", import.meta.url).href },
    },
  );
  stores.later(() => worker.terminate());
  const [begun] = (await once(worker, "message")) as [string];
  expect(begun).toBe("watching");
  const told = once(worker, "message");
  add(db, 5, 6n);
  expect(await told).toMatchObject([{ type: "insert", key: 5, row: { id: 5, balance: 6n } }]);
  await once(worker, "exit");
});
