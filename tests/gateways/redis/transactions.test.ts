/** MULTI, EXEC, DISCARD, WATCH and UNWATCH: as in redis-server, and as one transaction. */

import { describe, expect, test } from "vitest";
import { serve } from "../../../src/gateways/serve.ts";
import { eventually, MIB, seed, temporaryStores } from "../../helpers/store.ts";
import { Dice, SideBySide } from "./against-redis.ts";
import { RawClient } from "./raw-client.ts";
import { round, type Turn } from "./transactions-commands.ts";

const ROUNDS = 400;

const stores = temporaryStores();

async function enter(port: number): Promise<RawClient> {
  const client = await RawClient.connect(port);
  stores.later(() => client.close());
  return client;
}

/** Two clients of a gateway. */
async function start(): Promise<[RawClient, RawClient]> {
  const gateway = await serve({
    ...{ path: stores.folder(), port: 0, durability: "none", memoryBytes: 64 * MIB },
  });
  stores.later(() => gateway.close());
  return [await enter(gateway.port), await enter(gateway.port)];
}

/** One after the other, for the order is what it is about. */
async function play(turns: readonly Turn[], clients: readonly RawClient[]): Promise<string[]> {
  const replies: string[] = [];
  for (const { client, args } of turns) replies.push(await clients[client].ask(...args));
  return replies;
}

test.each([2, 3] as const)("two clients around a WATCH, in RESP%i", async (protocol) => {
  const both = await SideBySide.start(stores);
  const redis = [await enter(both.redisPort), await enter(both.redisPort)];
  const situ = [await enter(both.gateway.port), await enter(both.gateway.port)];
  for (const client of [...redis, ...situ]) await client.send("hello", protocol);
  const dice = new Dice(seed * 4 + protocol);
  for (let i = 0; i < ROUNDS; i++) {
    const turns = round(dice);
    const [expected, found] = await Promise.all([play(turns, redis), play(turns, situ)]);
    const shown = (replies: readonly string[]): string[] =>
      turns.map(({ client, args }, k) => `${client}: ${args.join(" ")} -> ${replies[k]}`);
    expect(shown(found), `round ${i}, SITU_SEED=${seed}`).toEqual(shown(expected));
  }
});

describe("WATCH", () => {
  test("of a key that comes and goes again finds it as it was", async () => {
    const [first, second] = await start();
    await first.send("watch", "a");
    await second.sendAll([
      ["set", "a", "1"],
      ["del", "a"],
    ]);
    // Redis refuses this one, though nothing has changed.
    const replies = await first.sendAll([["multi"], ["exists", "a"], ["exec"]]);
    expect(replies[2].toString()).toBe("*1\r\n:0\r\n");
  });

  test("of a key that goes and comes back is not the same", async () => {
    const [first, second] = await start();
    await second.send("set", "a", "1");
    await first.send("watch", "a");
    await second.sendAll([
      ["del", "a"],
      ["set", "a", "1"],
    ]);
    const replies = await first.sendAll([["multi"], ["get", "a"], ["exec"]]);
    expect(replies[2].toString()).toBe("*-1\r\n");
  });

  test("of a key that expires before EXEC makes it fail", async () => {
    const [first, second] = await start();
    await first.sendAll([
      ["set", "a", "1", "px", "20"],
      ["watch", "a"],
    ]);
    await eventually(async () => (await second.ask("exists", "a")) === ":0\r\n");
    const replies = await first.sendAll([["multi"], ["set", "b", "1"], ["exec"]]);
    expect(replies[2].toString()).toBe("*-1\r\n");
    expect(await second.ask("exists", "b")).toBe(":0\r\n");
  });

  test("of a key whose time was over already does not", async () => {
    const [first] = await start();
    const replies = await first.sendAll([
      ["set", "a", "1", "pxat", "1"],
      ["watch", "a"],
      ["multi"],
      ["get", "a"],
      ["exec"],
    ]);
    expect(replies[4].toString()).toBe("*1\r\n$-1\r\n");
  });

  test("looks at its keys only: others may change, come and go", async () => {
    const [first, second] = await start();
    const others = Array.from({ length: 3_000 }, (_, i) => `k${i}`);
    await second.sendAll(others.slice(0, 1_000).map((key) => ["set", key, "1"]));
    await first.sendAll(others.slice(0, 10).map((key) => ["watch", key]));
    await first.send("watch", "absent");
    // So many that the table grows, and what is beside the watched rows changes.
    await second.sendAll(others.slice(10).map((key) => ["set", key, "a longer value than before"]));
    await second.sendAll(others.slice(10).map((key) => ["del", key]));
    const replies = await first.sendAll([["multi"], ["get", "k0"], ["exec"]]);
    expect(replies[2].toString()).toBe("*1\r\n$1\r\n1\r\n");
  });

  test("is over with the connection, and no concern of another", async () => {
    const [first, second] = await start();
    await first.send("watch", "a");
    await second.send("set", "a", "1");
    const replies = await second.sendAll([["multi"], ["get", "a"], ["exec"]]);
    expect(replies[2].toString()).toBe("*1\r\n$1\r\n1\r\n");
  });
});

describe("EXEC", () => {
  test("takes the time once: a key is there for all of its commands or for none", async () => {
    const [first] = await start();
    const look = ["pttl", "a"];
    for (let i = 0; i < 30; i++) {
      await first.send("set", "a", "1", "px", 3);
      const looks = Array.from({ length: 200 }, () => look);
      const replies = await first.sendAll([["multi"], ...looks, ["exec"]]);
      const times = replies.at(-1)!.toString().split("\r\n").slice(1, -1);
      expect(times).toHaveLength(200);
      expect(new Set(times).size).toBe(1);
    }
  });

  test("that is too large changes nothing, and the client goes on", async () => {
    const [first, second] = await start();
    const mebibyte = "x".repeat(MIB);
    for (const args of [
      ["multi"],
      ...Array.from({ length: 18 }, (_, i) => ["set", `k${i}`, mebibyte]),
    ]) {
      expect(await first.ask(...args)).toMatch(/^(\+OK|\+QUEUED|-ERR )/);
    }
    expect(await first.ask("exec")).toMatch(/^-/);
    expect(await second.ask("dbsize")).toBe(":0\r\n");
    expect(await first.ask("set", "a", "1")).toBe("+OK\r\n");
    const replies = await first.sendAll([["multi"], ["get", "a"], ["exec"]]);
    expect(replies[2].toString()).toBe("*1\r\n$1\r\n1\r\n");
  });

  test("with an error of the store in it is undone as a whole", async () => {
    const [first, second] = await start();
    const replies = await first.sendAll([
      ["multi"],
      ["set", "a", "1"],
      ["set", "k".repeat(1_025), "1"],
      ["set", "b", "1"],
      ["exec"],
    ]);
    expect(replies[4].toString()).toMatch(/^-ERR .*1025 bytes.*SITU_TOO_LARGE/);
    expect(await second.ask("exists", "a", "b")).toBe(":0\r\n");
  });
});
