/** The keys of Redis clients in TypeScript, without the socket: the same rows, the same transactions. */

import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, describe, expect, test } from "vitest";
import type { Database } from "../../../src/database/database.ts";
import { open } from "../../../src/database/open.ts";
import type { SyncResult } from "../../../src/database/transact-options.ts";
import { type RedisKeys, RedisKeyspace } from "../../../src/gateways/redis/in-process.ts";
import { RedisKeys as KeysTable, REDIS_TABLES } from "../../../src/gateways/redis/tables.ts";
import { sleepSync, turn, wallClockMs } from "../../../src/runtime/clock.ts";
import { Random } from "../../../src/runtime/random.ts";
import { endAll, enter, MIB, newFolder, startGateway } from "../gateways.ts";
import { Transfer } from "./in-process-tables.ts";
import type { RawClient } from "./raw-client.ts";

const TELLER = fileURLToPath(
  new URL("../../../dist/tests/gateways/redis/in-process-teller.js", import.meta.url),
);
const run = promisify(execFile);
const databases: Database[] = [];

afterEach(async () => {
  await Promise.all(databases.splice(0).map((db) => db.close()));
  await endAll();
});

interface Both {
  readonly client: RawClient;
  readonly db: Database;
  readonly inside: <T>(body: (keys: RedisKeys) => SyncResult<T>) => T;
}

async function bothDoors(): Promise<Both> {
  const path = join(newFolder(), "store");
  const gateway = await startGateway({ path, durability: "none" });
  const db = await open({ path, tables: [...REDIS_TABLES, Transfer] });
  databases.push(db);
  const redis = new RedisKeyspace(db);
  return {
    client: await enter(gateway),
    db,
    inside: (body) => db.transactSync((tx) => body(redis.in(tx))),
  };
}

describe("a key that one door has written is there at the other", () => {
  test("strings, and the plain row behind them", async () => {
    const { client, db, inside } = await bothDoors();
    expect(await client.ask("set", "greeting", "hello")).toBe("+OK\r\n");
    expect(inside((keys) => keys.get("greeting"))).toBe("hello");
    expect(db.get(KeysTable, Buffer.from("greeting"))).toEqual({
      key: new Uint8Array(Buffer.from("greeting")),
      type: 1,
      expires: 0,
      value: new Uint8Array(Buffer.from("hello")),
    });
    inside((keys) => keys.set("greeting", "grüß Gott"));
    expect((await client.send("get", "greeting")).toString()).toBe("$11\r\ngrüß Gott\r\n");
    expect(inside((keys) => keys.delete("greeting"))).toBe(true);
    expect(await client.ask("exists", "greeting")).toBe(":0\r\n");
  });

  test("hashes and sets, small and large", async () => {
    const { client, inside } = await bothDoors();
    const many = Array.from({ length: 700 }, (_, i) => [`field ${i}`, `value ${i}`]);
    await client.ask("hset", "large", ...many.flat());
    await client.ask("hset", "small", "a", "1", "b", "2");
    await client.ask("sadd", "tags", "red", "blue");
    expect(inside((keys) => keys.hash("large"))).toEqual(new Map(many as [string, string][]));
    expect(inside((keys) => keys.hashGet("small", "b"))).toBe("2");
    inside((keys) => {
      keys.hashSet("small", { c: "3" });
      keys.hashDelete("small", "a");
      keys.hashSet("large", { "field 7": "seven" });
      keys.addMembers("tags", "green");
      keys.removeMembers("tags", "red");
      keys.addMembers("new", "one");
    });
    expect(await client.ask("hgetall", "small")).toBe(
      "*4\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\nc\r\n$1\r\n3\r\n",
    );
    expect(await client.ask("hget", "large", "field 7")).toBe("$5\r\nseven\r\n");
    expect(await client.ask("smismember", "tags", "red", "blue", "green")).toBe(
      "*3\r\n:0\r\n:1\r\n:1\r\n",
    );
    expect(inside((keys) => keys.members("new"))).toEqual(new Set(["one"]));
    expect(inside((keys) => keys.hasMember("tags", "blue"))).toBe(true);
    expect(inside((keys) => keys.type("large"))).toBe("hash");
  });

  test("expiry, in both directions, and the sweeper finds what was written here", async () => {
    const { client, db, inside } = await bothDoors();
    await client.ask("set", "a", "1", "ex", "100");
    const expires = inside((keys) => keys.expires("a"))!;
    expect(Math.abs(expires - wallClockMs() - 100_000)).toBeLessThan(60_000);
    expect(inside((keys) => keys.expire("a", undefined))).toBe(true);
    expect(await client.ask("ttl", "a")).toBe(":-1\r\n");
    inside((keys) => keys.set("gone", "x", { expires: wallClockMs() - 5_000 }));
    expect(inside((keys) => keys.get("gone"))).toBeUndefined();
    expect(await client.ask("get", "gone")).toBe("$-1\r\n");
    const isSwept = () => db.get(KeysTable, Buffer.from("gone")) === undefined;
    await expect.poll(isSwept, { timeout: 10_000 }).toBe(true);
  });

  test("no key expires within a transaction, and none outlives its time after it", async () => {
    const { client, inside } = await bothDoors();
    const seen = inside((keys) => {
      keys.set("brief", "x", { expires: wallClockMs() + 20 });
      sleepSync(60);
      return [keys.get("brief"), keys.type("brief")];
    });
    expect(seen).toEqual(["x", "string"]);
    expect(inside((keys) => keys.get("brief"))).toBeUndefined();
    expect(await client.ask("exists", "brief")).toBe(":0\r\n");
  });

  test("a change here fails an EXEC there", async () => {
    const { client, inside } = await bothDoors();
    await client.ask("set", "a", "1");
    await client.ask("watch", "a");
    inside((keys) => keys.set("a", "1"));
    await client.ask("multi");
    await client.ask("set", "a", "2");
    expect(await client.ask("exec")).toBe("*-1\r\n");
    expect(inside((keys) => keys.get("a"))).toBe("1");
  });
});

test("bad input is refused, and changes nothing", async () => {
  const { client, inside } = await bothDoors();
  await client.ask("sadd", "tags", "red");
  const code = (body: (keys: RedisKeys) => unknown) => {
    try {
      inside(body);
      return "no error";
    } catch (error) {
      return (error as { code?: string }).code;
    }
  };
  expect(code((keys) => keys.get("tags"))).toBe("SITU_TYPE");
  expect(code((keys) => keys.hashSet("tags", { a: "1" }))).toBe("SITU_TYPE");
  expect(code((keys) => keys.set("a", 7 as unknown as string))).toBe("SITU_TYPE");
  expect(code((keys) => keys.set("a", "1", { expires: Number.NaN }))).toBe("SITU_TYPE");
  expect(code((keys) => keys.set("x".repeat(1_025), "1"))).toBe("SITU_TOO_LARGE");
  expect(code((keys) => keys.set("a", "x".repeat(MIB + 1)))).toBe("SITU_TOO_LARGE");
  let kept: RedisKeys | undefined;
  inside((keys) => {
    kept = keys;
  });
  expect(() => kept!.get("tags")).toThrow(/has ended/);
  expect(await client.ask("dbsize")).toBe(":1\r\n");
});

test("a database that is closed in the turn of its last transaction", async () => {
  const path = join(newFolder(), "store");
  await startGateway({ path, durability: "none" });
  const db = await open({ path, tables: REDIS_TABLES });
  const redis = new RedisKeyspace(db);
  db.transactSync((tx) => redis.in(tx).set("a", "1"));
  await db.close();
  await turn();
  expect(() => db.transactSync((tx) => redis.in(tx).get("a"))).toThrow(/closed/);
});

test("options that there are not", async () => {
  const path = join(newFolder(), "store");
  const wrong = startGateway({ path, pot: 1 } as object);
  await expect(wrong).rejects.toMatchObject({ code: "SITU_CONFIG" });
});

/** WATCH two accounts, read them, MULTI, write, EXEC; how many were refused. */
async function transferByClient(
  client: RawClient,
  accounts: number,
  transfers: number,
  random: Random,
): Promise<number> {
  let refused = 0;
  for (let done = 0; done < transfers; ) {
    const from = random.below(accounts);
    const to = (from + 1 + random.below(accounts - 1)) % accounts;
    const names = [`account:${from}`, `account:${to}`];
    await client.ask("watch", ...names);
    const reply = await client.ask("mget", ...names);
    const [, , fromText, , toText] = reply.split("\r\n");
    const [, , , outcome] = await client.sendAll([
      ["multi"],
      ["set", names[0], Number(fromText) - 1],
      ["set", names[1], Number(toText) + 1],
      ["exec"],
    ]);
    if (outcome.toString("latin1").startsWith("*-1")) refused++;
    else done++;
  }
  return refused;
}

test("clients of two threads and a process without a socket: no money is lost", async () => {
  const accounts = 8;
  const transfers = 150;
  const seed = 20261115;
  const path = join(newFolder(), "store");
  const gateway = await startGateway({ path, threads: 2, durability: "none" });
  const clients = await Promise.all(Array.from({ length: 4 }, () => enter(gateway)));
  for (let i = 0; i < accounts; i++) await clients[0].ask("set", `account:${i}`, 1_000);
  const teller = run(process.execPath, [TELLER, path, `${accounts}`, "3000", `${seed}`]);
  await Promise.all([
    ...clients.map((client, i) =>
      transferByClient(client, accounts, transfers, new Random(seed + i)),
    ),
    teller,
  ]);
  const names = Array.from({ length: accounts }, (_, i) => `account:${i}`);
  const balances = (await clients[1].ask("mget", ...names))
    .split("\r\n")
    .filter((_, i) => i > 0 && i % 2 === 0);
  const sum = balances.reduce((total, balance) => total + Number(balance), 0);
  expect(sum, `seed ${seed}`).toBe(accounts * 1_000);
  const db = await open({ path, tables: [...REDIS_TABLES, Transfer] });
  databases.push(db);
  expect(db.count(Transfer)).toBe(3_000);
});
