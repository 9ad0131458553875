/** node-redis, unmodified, in both protocols: what its users do works with the gateway. */

import { describe, expect, test } from "vitest";
import { needPeer } from "../../../benchmarks/harness/peers.ts";
import type { GatewayOptions } from "../../../src/gateways/gateway-options.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { MIB, temporaryStores } from "../../helpers/store.ts";

/** What is used of node-redis here. */
interface Multi {
  set(key: string, value: string): Multi;
  get(key: string): Multi;
  incr(key: string): Multi;
  hGetAll(key: string): Multi;
  exec(): Promise<unknown[]>;
}

interface NodeRedis {
  connect(): Promise<unknown>;
  destroy(): void;
  quit(): Promise<unknown>;
  on(event: string, listener: (error: unknown) => void): unknown;
  set(key: string, value: string | number, options?: object): Promise<unknown>;
  get(key: string): Promise<unknown>;
  mGet(keys: string[]): Promise<unknown>;
  incr(key: string): Promise<unknown>;
  hSet(key: string, fields: object): Promise<number>;
  hGetAll(key: string): Promise<object>;
  hRandFieldCountWithValues(key: string, count: number): Promise<unknown>;
  sAdd(key: string, members: string[]): Promise<number>;
  sMembers(key: string): Promise<string[]>;
  expireTime(key: string): Promise<number>;
  configGet(name: string): Promise<object>;
  clientInfo(): Promise<{ readonly name: string }>;
  dbSize(): Promise<number>;
  lcsIdx(a: string, b: string): Promise<{ readonly len: number; readonly matches: unknown[] }>;
  sendCommand(args: string[]): Promise<unknown>;
  watch(keys: string[]): Promise<unknown>;
  multi(): Multi;
  scanIterator(options: object): AsyncIterable<string[]>;
  sScanIterator(key: string): AsyncIterable<string[]>;
  duplicate(): NodeRedis;
}

interface NodeRedisModule {
  createClient(options: object): NodeRedis;
}

const stores = temporaryStores();

async function start(
  protocol: 2 | 3,
  options: object = {},
  gatewayOptions: Partial<GatewayOptions> = {},
): Promise<NodeRedis> {
  const { createClient } = needPeer<NodeRedisModule>("redis");
  const path = stores.folder();
  const gateway = await serve({
    ...{ path, port: 0, durability: "none", memoryBytes: 64 * MIB },
    ...gatewayOptions,
  });
  stores.later(() => gateway.close());
  const client = createClient({
    socket: { host: "127.0.0.1", port: gateway.port },
    RESP: protocol,
    ...options,
  });
  return connected(client);
}

async function connected(client: NodeRedis): Promise<NodeRedis> {
  // Without a listener an error of the connection would end the process.
  client.on("error", () => {});
  await client.connect();
  stores.later(() => client.destroy());
  return client;
}

describe.each([2, 3] as const)("node-redis in RESP%i", (protocol) => {
  test("reads and writes strings, hashes and sets", async () => {
    const redis = await start(protocol);
    expect(await redis.set("a", "grüße", { expiration: { type: "EX", value: 100 } })).toBe("OK");
    expect(await redis.get("a")).toBe("grüße");
    expect(await redis.expireTime("a")).toBeGreaterThan(1_600_000_000);
    expect(await redis.get("nosuch")).toBe(null);
    expect(await redis.incr("n")).toBe(1);
    expect(await redis.hSet("h", { one: 1, two: "zwei" })).toBe(2);
    expect({ ...(await redis.hGetAll("h")) }).toEqual({ one: "1", two: "zwei" });
    expect(await redis.hRandFieldCountWithValues("h", 2)).toHaveLength(2);
    expect(await redis.sAdd("s", ["a", "b", "a"])).toBe(2);
    expect([...(await redis.sMembers("s"))].sort()).toEqual(["a", "b"]);
    expect(await redis.mGet(["n", "nosuch", "h"])).toEqual(["1", null, null]);
    expect({ ...(await redis.configGet("databases")) }).toEqual({ databases: "1" });
    await redis.set("x", "ohmytext");
    await redis.set("y", "mynewtext");
    expect(await redis.lcsIdx("x", "y")).toMatchObject({ len: 6 });
    await expect(redis.get("h")).rejects.toThrow("WRONGTYPE");
    await expect(redis.sendCommand(["LPUSH", "l", "x"])).rejects.toThrow("unknown command");
  });

  test("sends what is asked for in one turn as a pipeline", async () => {
    const redis = await start(protocol);
    const sets = Array.from({ length: 2_000 }, (_, i) => redis.set(`k${i}`, i));
    const gets = Array.from({ length: 2_000 }, (_, i) => redis.get(`k${i}`));
    await Promise.all(sets);
    expect(await Promise.all(gets)).toEqual(Array.from({ length: 2_000 }, (_, i) => String(i)));
    expect(await redis.dbSize()).toBe(2_000);
  });

  test("MULTI is one transaction", async () => {
    const redis = await start(protocol);
    await redis.hSet("h", { f: "v" });
    const results = await redis.multi().set("a", "1").incr("a").hGetAll("h").get("a").exec();
    expect(results).toMatchObject(["OK", 2, { f: "v" }, "2"]);
  });

  test("WATCH sees what another client changed", async () => {
    const redis = await start(protocol);
    const other = await connected(redis.duplicate());
    await redis.set("balance", 10);
    await redis.watch(["balance"]);
    await other.set("balance", 20);
    await expect(redis.multi().set("balance", "11").exec()).rejects.toThrow(/watched keys/i);
    await redis.watch(["balance"]);
    expect(await redis.multi().set("balance", "21").exec()).toEqual(["OK"]);
    expect(await other.get("balance")).toBe("21");
  });

  test("iterators of SCAN and SSCAN meet everything", async () => {
    const redis = await start(protocol);
    const names = Array.from({ length: 1_000 }, (_, i) => `k${i}`);
    await Promise.all(names.map((name) => redis.set(name, "x")));
    await redis.sAdd("s", names);
    const found = new Set<string>();
    for await (const keys of redis.scanIterator({ MATCH: "k*", COUNT: 50 })) {
      for (const key of keys) found.add(key);
    }
    expect(found).toEqual(new Set(names));
    const members = new Set<string>();
    for await (const some of redis.sScanIterator("s")) for (const each of some) members.add(each);
    expect(members).toEqual(new Set(names));
  });

  test("a password, a name and QUIT", async () => {
    const redis = await start(protocol, { password: "sesame", name: "me" }, { password: "sesame" });
    expect((await redis.clientInfo()).name).toBe("me");
  });
});
