/** Commands about keys answer as redis-server does, byte by byte. */

import { describe, expect, test } from "vitest";
import { isLiteral, matches } from "../../../src/gateways/redis/glob.ts";
import { temporaryStores } from "../../helpers/store.ts";
import { parseReplies } from "../resp/parse-replies.ts";
import { SideBySide } from "./against-redis.ts";
import { keyStep, patternStep } from "./keys-commands.ts";
import { type Argument, RawClient } from "./raw-client.ts";

const stores = temporaryStores();

describe("random commands", () => {
  test.each([2, 3] as const)("about keys in RESP%i", async (protocol) => {
    const both = await SideBySide.start(stores);
    await both.compare(keyStep, 5_000, protocol);
  });

  test("with patterns", async () => {
    const both = await SideBySide.start(stores);
    await both.compare(patternStep, 2_000, 2);
  });
});

describe("patterns", () => {
  const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

  test("with many stars take no more than the product of both lengths", () => {
    // Tried in all ways, this would be more ways than there are atoms.
    const pattern = bytes(`${"*a".repeat(300)}b`);
    expect(matches(pattern, bytes("a".repeat(1_000)))).toBe(false);
    expect(matches(pattern, bytes(`${"a".repeat(1_000)}b`))).toBe(true);
  });

  test("take an empty text only if they are empty, or one star", () => {
    expect(["", "*", "**", "?", "[^a]"].map((each) => matches(bytes(each), bytes("")))).toEqual([
      ...[true, true, false, false, false],
    ]);
  });

  test("without anything special are texts", () => {
    expect(["abc", "a]b-^", "a*", "a?", "[a", "a\\"].map((each) => isLiteral(bytes(each)))).toEqual(
      [...[true, true, false, false, false, false]],
    );
  });
});

test("DBSIZE counts no key whose time is over", async () => {
  const both = await SideBySide.start(stores);
  const client = await RawClient.connect(both.gateway.port);
  stores.later(() => client.close());
  const sets = Array.from({ length: 50 }, (_, i) => ["set", `k${i}`, "x"] as Argument[]);
  const past = Array.from({ length: 20 }, (_, i) => ["set", `p${i}`, "x", "pxat", "1"]);
  const later = Array.from({ length: 10 }, (_, i) => ["set", `l${i}`, "x", "ex", "100"]);
  // In one transaction of the gateway's, and then before the sweeper's turn.
  const replies = await client.sendAll([...sets, ...past, ...later, ["dbsize"]]);
  expect(replies.at(-1)?.toString()).toBe(":60\r\n");
  expect(await client.ask("info", "keyspace")).toContain("db0:keys=60,expires=10,");
});

describe("scanning", () => {
  /** All keys that a whole SCAN gives, and how many calls it took. */
  async function scan(client: RawClient, ...options: Argument[]): Promise<[string[], number]> {
    const found: string[] = [];
    let cursor = "0";
    let calls = 0;
    do {
      const [reply] = parseReplies(await client.send("scan", cursor, ...options));
      if (!("array" in reply)) throw new Error(JSON.stringify(reply));
      const [next, keys] = reply.array;
      if (!("bulk" in next) || !("array" in keys)) throw new Error("another form");
      cursor = next.bulk;
      found.push(...keys.array.map((key) => ("bulk" in key ? key.bulk : "?")));
      calls++;
    } while (cursor !== "0");
    return [found, calls];
  }

  async function startWithKeys(count: number): Promise<RawClient> {
    const both = await SideBySide.start(stores);
    const client = await RawClient.connect(both.gateway.port);
    stores.later(() => client.close());
    const commands = Array.from({ length: count }, (_, i) =>
      i % 10 === 0 ? ["sadd", `s${i}`, "1"] : ["set", `k${i}`, i],
    );
    await client.sendAll(commands);
    return client;
  }

  test("meets every key, by type and by pattern", async () => {
    const client = await startWithKeys(3_000);
    const [all, calls] = await scan(client);
    expect(new Set(all).size).toBe(3_000);
    expect(calls).toBeGreaterThan(1);
    expect(new Set((await scan(client, "TYPE", "SET"))[0]).size).toBe(300);
    expect(new Set((await scan(client, "type", "zset"))[0]).size).toBe(0);
    expect(new Set((await scan(client, "MATCH", "k1??", "COUNT", 100))[0]).size).toBe(90);
    expect((await scan(client, "COUNT", 1_000_000))[1]).toBe(1);
  });

  test("meets what stays while others come and go", async () => {
    const client = await startWithKeys(500);
    const found = new Set<string>();
    let cursor = "0";
    let i = 0;
    do {
      const [reply] = parseReplies(await client.send("scan", cursor));
      if (!("array" in reply)) throw new Error(JSON.stringify(reply));
      const [next, keys] = reply.array;
      cursor = "bulk" in next ? next.bulk : "?";
      if ("array" in keys) for (const key of keys.array) if ("bulk" in key) found.add(key.bulk);
      // The table grows a lot between two calls.
      const more = Array.from({ length: 400 }, () => ["set", `new${i++}`, "x"]);
      await client.sendAll(more);
    } while (cursor !== "0");
    for (let k = 0; k < 500; k++) {
      expect(found.has(k % 10 === 0 ? `s${k}` : `k${k}`), `key ${k}`).toBe(true);
    }
  });

  test("refuses what is no cursor, and takes any number", async () => {
    const client = await startWithKeys(10);
    for (const wrong of ["abc", "1x", " 1", "18446744073709551616"]) {
      expect(await client.ask("scan", wrong)).toBe("-ERR invalid cursor\r\n");
    }
    expect(await client.ask("scan", "18446744073709551615")).toBe("*2\r\n$1\r\n0\r\n*0\r\n");
    expect(await client.ask("scan", "0", "COUNT", "0")).toBe("-ERR syntax error\r\n");
    expect(await client.ask("scan", "0", "COUNT")).toBe("-ERR syntax error\r\n");
    expect(await client.ask("scan", "0", "COUNT", "x")).toBe(
      "-ERR value is not an integer or out of range\r\n",
    );
    await client.send("scan", "12345");
  });

  test("is part of a transaction inside of MULTI", async () => {
    const client = await startWithKeys(20);
    const replies = await client.sendAll([
      ["multi"],
      ["set", "new", "1"],
      ["dbsize"],
      ["keys", "new"],
      ["flushall"],
      ["dbsize"],
      ["randomkey"],
      ["exec"],
    ]);
    expect(replies.at(-1)?.toString()).toBe(
      "*6\r\n+OK\r\n:21\r\n*1\r\n$3\r\nnew\r\n+OK\r\n:0\r\n$-1\r\n",
    );
  });
});
