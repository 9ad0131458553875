/** Operations of a database itself: transactions of one operation, and reads beside a transaction. */

import { describe, expect, it } from "vitest";
import { RowError } from "../../src/runtime/errors.ts";
import {
  autoIncrement,
  enumOf,
  nullable,
  str,
  timestamp,
  u32,
  u53,
  uuid,
} from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { RemoteCluster } from "../helpers/remote-cluster.ts";
import { failure, failureSync, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

const Account = table(
  "account",
  { id: u32(), email: str(20), region: str(4), balance: u32() },
  {
    key: "id",
    indexes: {
      byEmail: { on: ["email"], unique: true },
      byPlace: { on: ["region", "balance"], unique: true, kind: "hash" },
    },
  },
);
const row = (id: number) => ({ id, email: `${id}@x`, region: "eu", balance: id });

describe("shorthands", () => {
  it("are transactions of one operation", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    expect(db.insert(Account, row(1))).toBeUndefined();
    db.put(Account, row(2));
    db.update(Account, 2, { balance: 9 });
    expect(db.getMany(Account, new Set([2, 3, 1]))).toEqual([
      { ...row(2), balance: 9 },
      undefined,
      row(1),
    ]);
    expect([db.delete(Account, 2), db.delete(Account, 2)]).toEqual([true, false]);
    failureSync("SITU_TYPE", () => db.getMany(Account, 5 as never));
    failureSync("SITU_UNKNOWN_TABLE", () => db.insert({ ...Account, ordinal: 9_999 }, row(3)));
    // What awaits them runs on a database of other machines, too.
    await db.put(Account, row(3));
    expect(await db.getMany(Account, [3])).toEqual([row(3)]);
  });

  it("getMany reads one state, whatever others do", async () => {
    const path = stores.folder();
    const db = await stores.open({ path, tables: [Account] });
    const other = await stores.open({ path, tables: [Account] });
    db.put(Account, row(1));
    db.put(Account, row(2));
    let moves = 0;
    const keys = {
      *[Symbol.iterator]() {
        yield 1;
        other.transactSync((tx) => {
          tx.update(Account, 1, { balance: 100 });
          tx.update(Account, 2, { balance: 200 });
        });
        moves++;
        yield 2;
      },
    };
    expect(db.getMany(Account, keys).map((each) => each?.balance)).toEqual([100, 200]);
    expect(moves).toBe(1);
  });

  it("are promises on a cluster", async () => {
    const cluster = new RemoteCluster({ seed: 1 });
    stores.later(() => cluster.close());
    const Plain = table("plain", { id: u32(), name: str(9) }, { key: "id" });
    const db = await cluster.client([Plain]);
    await cluster.run(async () => {
      await db.insert(Plain, { id: 1, name: "a" });
      await db.put(Plain, { id: 2, name: "b" });
      await db.update(Plain, 2, { name: "c" });
      expect(await db.getMany(Plain, [2, 3, 1])).toEqual([
        { id: 2, name: "c" },
        undefined,
        { id: 1, name: "a" },
      ]);
      expect(await db.delete(Plain, 1)).toBe(true);
      const error = await failure("SITU_EXISTS", () => db.insert(Plain, { id: 2, name: "d" }));
      expect(error).toMatchObject({ table: "plain", index: undefined, key: 2 });
    });
  });

  it("on a cluster, rows have all types, but nobody counts keys", async () => {
    const cluster = new RemoteCluster({ seed: 2 });
    stores.later(() => cluster.close());
    const Event = table(
      "event",
      {
        device: uuid(),
        at: timestamp(),
        level: enumOf("low", "high"),
        size: nullable(u53()),
        owner: nullable(uuid()),
      },
      {
        key: ["device", "at"],
        ordered: true,
        indexes: { bySize: { on: ["size"] }, byOwner: { on: ["owner"], kind: "hash" } },
      },
    );
    const Counted = table("counted", { id: autoIncrement(), size: u53() }, { key: "id" });
    const device = "0188d3c4-7a1e-7bb0-8f0c-0123456789ab";
    const event = (ms: number, size: number | null, owner: string | null) => ({
      device,
      at: new Date(ms),
      level: "high" as const,
      size,
      owner,
    });
    for (const byVerb of [false, true]) {
      const db = await cluster.client([Event, Counted], byVerb);
      await cluster.run(async () => {
        await db.transact(async (tx) => {
          for await (const row of tx.scan(Event)) await tx.delete(Event, [row.device, row.at]);
          await tx.insert(Event, event(5, null, null));
          await tx.insert(Event, { ...event(-5, 2 ** 40, device), device: device.toUpperCase() });
          // One row, however its key is written.
          await tx.update(Event, [device.toUpperCase(), 5], { level: "low" });
          await tx.put(Event, event(0, null, device));
          expect((await tx.get(Event, [device, new Date(5)]))?.level).toBe("low");
          expect(await tx.count(Event, { index: "byOwner", eq: device.toUpperCase() })).toBe(2);
          expect(await tx.count(Event, { index: "byOwner", eq: null })).toBe(1);
        });
        const rows = [
          event(-5, 2 ** 40, device),
          event(0, null, device),
          { ...event(5, null, null), level: "low" },
        ];
        expect(await db.scan(Event).toArray()).toEqual(rows);
        expect(await db.get(Event, [device.toUpperCase(), new Date(5)])).toEqual(rows[2]);
        expect(await db.scan(Event, { index: "bySize", eq: null }).toArray()).toEqual([
          rows[1],
          rows[2],
        ]);
        expect(await db.count(Event, { index: "bySize", gt: null })).toBe(1);
        expect(await db.count(Event, { gte: [device, new Date(0)] })).toBe(2);
        await db.put(Counted, { id: 5, size: 1 });
        const { message } = await failure("SITU_UNSUPPORTED", () =>
          db.insert(Counted, { size: 1 }),
        );
        expect(message).toContain("use a uuid() as the key");
      });
    }
  });
});

describe("reads beside a transaction", () => {
  it("are refused inside the callback of transactSync", async () => {
    const db = await stores.open({ tables: [Account] });
    db.put(Account, row(1));
    const before = db.scan(Account);
    using snapshot = db.snapshot();
    for (const read of [
      () => db.get(Account, 1),
      () => db.get(Account, "1@x", { index: "byEmail" }),
      () => db.getMany(Account, [1]),
      () => db.scan(Account),
      () => before.toArray(),
      () => db.scan(Account, { limit: 1 }).toArray(),
      () => db.count(Account),
      () => db.insert(Account, row(2)),
      () => db.transactSync(() => 1),
    ]) {
      db.transactSync((tx) => {
        failureSync("SITU_NESTED", read);
        // A snapshot is another state, and says so.
        expect(snapshot.get(Account, 1)).toEqual(row(1));
        expect(tx.get(Account, 1)).toEqual(row(1));
      });
      read();
      db.delete(Account, 2);
    }
    const { message } = failureSync("SITU_NESTED", () => db.transactSync(() => db.get(Account, 1)));
    expect(message).toContain("use its tx");
    expect(db.get(Account, 1)).toEqual(row(1));
  });
});

describe("the errors of rows", () => {
  it("say which table, index and key", async () => {
    const db = await stores.open({ tables: [Account] });
    db.put(Account, row(1));
    const exists = failureSync("SITU_EXISTS", () => db.insert(Account, row(1)));
    expect(exists).toBeInstanceOf(RowError);
    expect(exists).toMatchObject({ table: "account", index: undefined, key: 1 });
    const missing = await failure("SITU_MISSING", () =>
      db.transact((tx) => tx.update(Account, 7, { balance: 1 })),
    );
    expect(missing).toMatchObject({ table: "account", index: undefined, key: 7 });
    const taken = { ...row(2), email: "1@x" };
    const unique = failureSync("SITU_UNIQUE", () => db.insert(Account, taken)) as RowError;
    expect(unique).toMatchObject({ table: "account", index: "byEmail", key: "1@x" });
    expect(db.get(Account, unique.key as string, { index: "byEmail" })).toEqual(row(1));
    db.put(Account, row(2));
    const both = failureSync("SITU_UNIQUE", () => db.update(Account, 2, { balance: 1 }));
    expect(both).toMatchObject({ index: "byPlace", key: ["eu", 1] });
  });
});
