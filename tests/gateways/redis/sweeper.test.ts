/**
 * The sweeper removes what nobody sees, and nothing else, also where several are at work or one
 * dies. Its processes run the compiled form: `npm run build` first.
 */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/database/database.ts";
import { AllKeys } from "../../../src/gateways/redis/all-keys.ts";
import type { Keyspace } from "../../../src/gateways/redis/keyspace.ts";
import { Sweeper } from "../../../src/gateways/redis/sweeper.ts";
import { RedisExpiries, RedisKeys, STRING } from "../../../src/gateways/redis/tables.ts";
import { eventually, MIB, temporaryStores } from "../../helpers/store.ts";
import { CollectionsWorld } from "./collections-world.ts";

const SCRIPT = fileURLToPath(
  new URL("../../../dist/tests/gateways/redis/sweeper-process.js", import.meta.url),
);

const stores = temporaryStores();
const bytes = (from: string): Buffer => Buffer.from(from, "latin1");

/** Strings whose time was over some seconds ago. */
function putDead(keys: Keyspace, from: number, to: number, agoMs = 3_000): void {
  keys.run(() => {
    for (let i = from; i < to; i++) {
      keys.put(bytes(`dead:${i}`), STRING, bytes(`value ${i}`), keys.nowMs - agoMs - i);
    }
  }, undefined);
}

/** A set that is large enough for the table. */
function putLarge(world: CollectionsWorld, key: string, members: number): void {
  for (let from = 0; from < members; from += 500) {
    const names = Array.from({ length: Math.min(500, members - from) }, (_, i) => `m${from + i}`);
    world.run("sadd", key, ...names);
  }
}

function sweepAll(sweeper: Sweeper): void {
  while (sweeper.sweep(5));
}

function startProcess(db: Database): ChildProcess {
  const child = spawn(process.execPath, [SCRIPT, db.path], { stdio: ["pipe", "pipe", "inherit"] });
  child.stdin!.on("error", () => {});
  const closed = once(child, "close");
  stores.later(async () => {
    child.kill("SIGKILL");
    await closed;
  });
  return child;
}

async function line(child: ChildProcess): Promise<string> {
  const [said] = (await once(child.stdout!, "data")) as [Buffer];
  return said.toString().trim();
}

describe("keys whose time is over", () => {
  test("are not there before they are swept, and their rows are gone after", async () => {
    const world = await CollectionsWorld.open(stores);
    const { keys, db } = world;
    putDead(keys, 0, 500);
    keys.run(() => {
      keys.put(bytes("alive"), STRING, bytes("x"), keys.nowMs + 1e6);
      keys.put(bytes("for ever"), STRING, bytes("x"));
    }, undefined);
    world.inside(() => {
      for (let i = 0; i < 500; i++) expect(keys.find(bytes(`dead:${i}`))).toBeUndefined();
    });
    expect(new AllKeys(db, keys).size()).toBe(2);
    expect(db.count(RedisKeys)).toBe(502);

    const sweeper = new Sweeper(keys, db);
    sweepAll(sweeper);
    expect(sweeper.expired).toBe(500);
    expect(db.count(RedisKeys)).toBe(2);
    expect(db.count(RedisExpiries)).toBe(1);
    expect(sweeper.sweep(5)).toBe(false);
    expect(sweeper.expired).toBe(500);
  });

  test("go with the members of a large collection", async () => {
    const world = await CollectionsWorld.open(stores);
    const { keys, db } = world;
    putLarge(world, "s", 900);
    world.inside(() => keys.expire(bytes("s"), keys.find(bytes("s"))!, keys.nowMs - 2_000));
    expect(world.run("scard", "s")).toBe(0);
    expect(world.rows()).toEqual({ keys: 1, members: 900, garbage: 0 });
    sweepAll(new Sweeper(keys, db));
    expect(world.rows()).toEqual({ keys: 0, members: 0, garbage: 0 });
    expect(db.count(RedisExpiries)).toBe(0);
  });

  test("stay if they got more time, whoever gave it to them", async () => {
    const world = await CollectionsWorld.open(stores);
    const { keys, db } = world;
    putDead(keys, 0, 3);
    const later = Date.now() + 1e6;
    // As a program without the gateway might: the row of the expiry is not right any more.
    const dead = (i: number): Uint8Array => bytes(`dead:${i}`);
    db.transactSync((tx) => {
      tx.update(RedisKeys, dead(0), { expires: later });
      tx.update(RedisKeys, dead(1), { expires: 0 });
      tx.delete(RedisKeys, dead(2));
    });
    sweepAll(new Sweeper(keys, db));
    expect(db.get(RedisKeys, dead(0))?.expires).toBe(later);
    expect(db.get(RedisKeys, dead(1))?.expires).toBe(0);
    const left = db.scan(RedisExpiries).toArray();
    expect(left).toEqual([{ second: Math.floor(later / 1_000), key: new Uint8Array(dead(0)) }]);
  });

  test("are removed in steps, and members have their turn, too", async () => {
    const world = await CollectionsWorld.open(stores);
    putDead(world.keys, 0, 1_000);
    putLarge(world, "s", 1_000);
    world.inside(({ keys }) => keys.remove(bytes("s")));
    const sweeper = new Sweeper(world.keys, world.db);
    // No time at all is enough for one step of each.
    expect(sweeper.sweep(0)).toBe(true);
    expect(sweeper.expired).toBeGreaterThan(0);
    expect(sweeper.expired).toBeLessThan(1_000);
    expect(world.rows().members).toBeGreaterThan(0);
    expect(world.rows().members).toBeLessThan(1_000);
  });
});

describe("deleted collections", () => {
  test("give back the memory of their members", async () => {
    const world = await CollectionsWorld.open(stores, {}, { memoryBytes: 8 * MIB });
    const sweeper = new Sweeper(world.keys, world.db);
    // 32,000 members would fit, if it did not come back.
    for (let round = 0; round < 8; round++) {
      putLarge(world, "s", 5_000);
      world.inside(({ keys }) => keys.remove(bytes("s")));
      sweepAll(sweeper);
      expect(world.rows()).toEqual({ keys: 0, members: 0, garbage: 0 });
    }
  });

  test("are not mixed up with a new one under the same name", async () => {
    const world = await CollectionsWorld.open(stores);
    putLarge(world, "s", 700);
    expect((world.run("spop", "s", 700) as string[]).length).toBe(700);
    putLarge(world, "s", 600);
    expect(world.rows()).toEqual({ keys: 1, members: 1_300, garbage: 1 });
    sweepAll(new Sweeper(world.keys, world.db));
    expect(world.rows()).toEqual({ keys: 1, members: 600, garbage: 0 });
    expect((world.run("smembers", "s") as string[]).length).toBe(600);
  });

  test("may have lost members one by one before", async () => {
    const world = await CollectionsWorld.open(stores);
    putLarge(world, "s", 300);
    const all = world.run("smembers", "s") as string[];
    expect(world.run("srem", "s", ...all)).toBe(300);
    sweepAll(new Sweeper(world.keys, world.db));
    expect(world.rows()).toEqual({ keys: 0, members: 0, garbage: 0 });
  });
});

describe("several sweepers", () => {
  test("of two databases share the work", async () => {
    const world = await CollectionsWorld.open(stores);
    const other = await CollectionsWorld.open(stores, {}, { path: world.db.path });
    putDead(world.keys, 0, 1_000);
    putLarge(world, "s", 2_000);
    world.inside(({ keys }) => keys.remove(bytes("s")));
    const sweepers = [world, other].map(({ keys, db }) => new Sweeper(keys, db));
    while (sweepers.map((each) => each.sweep(0.1)).includes(true));
    expect(sweepers[0].expired + sweepers[1].expired).toBe(1_000);
    expect(other.rows()).toEqual({ keys: 0, members: 0, garbage: 0 });
  });

  test("in two processes at the same time remove each key once", async () => {
    const world = await CollectionsWorld.open(stores, {}, { memoryBytes: 32 * MIB });
    const children = [startProcess(world.db), startProcess(world.db)];
    await Promise.all(children.map(line));
    for (let i = 0; i < 6_000; i += 1_000) putDead(world.keys, i, i + 1_000);
    for (const key of ["a", "b", "c"]) putLarge(world, key, 3_000);
    world.inside(({ keys }) => {
      for (const key of ["a", "b", "c"]) keys.remove(bytes(key));
    });
    for (const child of children) child.stdin!.write("x");
    const removed = await Promise.all(children.map(line));
    expect(removed.reduce((sum, each) => sum + Number(each), 0)).toBe(6_000);
    expect(world.rows()).toEqual({ keys: 0, members: 0, garbage: 0 });
    expect(world.db.count(RedisExpiries)).toBe(0);
  });

  test("one is killed, and another goes on", async () => {
    const world = await CollectionsWorld.open(stores, {}, { memoryBytes: 32 * MIB });
    const child = startProcess(world.db);
    await line(child);
    for (let i = 0; i < 6_000; i += 1_000) putDead(world.keys, i, i + 1_000);
    putLarge(world, "s", 6_000);
    putLarge(world, "stays", 600);
    world.inside(({ keys }) => keys.remove(bytes("s")));
    const before = world.db.count(RedisExpiries);
    child.stdin!.write("x");
    await eventually(() => world.db.count(RedisExpiries) < before);
    child.kill("SIGKILL");
    await once(child, "close");
    sweepAll(new Sweeper(world.keys, world.db));
    expect(world.rows()).toEqual({ keys: 1, members: 600, garbage: 0 });
    expect(world.db.count(RedisExpiries)).toBe(0);
    expect((world.run("smembers", "stays") as string[]).length).toBe(600);
  });
});
