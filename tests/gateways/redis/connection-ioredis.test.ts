/** ioredis, unmodified, in both protocols: what its users do with Redis works with the gateway. */

import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { needPeer } from "../../../benchmarks/harness/peers.ts";
import type { GatewayOptions } from "../../../src/gateways/gateway-options.ts";
import { serve } from "../../../src/gateways/serve.ts";
import { MIB, temporaryStores } from "../../helpers/store.ts";

type Result = [error: Error | null, value: unknown][] | null;

/** What is used of ioredis here. */
interface Chain {
  set(key: string, value: string | number): Chain;
  get(key: string): Chain;
  incr(key: string): Chain;
  hgetall(key: string): Chain;
  sadd(key: string, ...members: string[]): Chain;
  exec(): Promise<Result>;
}

interface Ioredis {
  set(...args: (string | number | Buffer)[]): Promise<string | null>;
  get(key: string | Buffer): Promise<string | null>;
  getBuffer(key: string | Buffer): Promise<Buffer | null>;
  incr(key: string): Promise<number>;
  incrbyfloat(key: string, by: number): Promise<string>;
  hset(key: string, fields: object): Promise<number>;
  hgetall(key: string): Promise<Record<string, string>>;
  sadd(key: string, ...members: string[]): Promise<number>;
  smembers(key: string): Promise<string[]>;
  mget(...keys: string[]): Promise<(string | null)[]>;
  ttl(key: string): Promise<number>;
  dbsize(): Promise<number>;
  info(section: string): Promise<string>;
  call(name: string, ...args: string[]): Promise<unknown>;
  client(what: string, ...args: string[]): Promise<unknown>;
  watch(...keys: string[]): Promise<string>;
  multi(): Chain;
  pipeline(): Chain;
  scanStream(options: object): AsyncIterable<string[]>;
  hscanStream(key: string, options: object): AsyncIterable<string[]>;
  sscanStream(key: string, options: object): AsyncIterable<string[]>;
  quit(): Promise<string>;
  disconnect(): void;
  duplicate(): Ioredis;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

interface IoredisModule {
  readonly Redis: new (options: object) => Ioredis;
}

const stores = temporaryStores();

async function start(
  protocol: 2 | 3,
  options: object = {},
  gatewayOptions: Partial<GatewayOptions> = {},
): Promise<Ioredis> {
  const { Redis } = needPeer<IoredisModule>("ioredis");
  const path = stores.folder();
  const gateway = await serve({
    ...{ path, port: 0, durability: "none", memoryBytes: 64 * MIB },
    ...gatewayOptions,
  });
  stores.later(() => gateway.close());
  const client = new Redis({ host: "127.0.0.1", port: gateway.port, protocol, ...options });
  stores.later(() => client.disconnect());
  await once(client as never, "ready");
  return client;
}

describe.each([2, 3] as const)("ioredis in RESP%i", (protocol) => {
  test("reads and writes strings, hashes and sets", async () => {
    const redis = await start(protocol);
    expect(await redis.set("a", "grüße", "EX", 100)).toBe("OK");
    expect(await redis.get("a")).toBe("grüße");
    expect(await redis.ttl("a")).toBeGreaterThan(90);
    expect(await redis.set("a", "x", "NX")).toBe(null);
    const bytes = Buffer.from([0, 255, 13, 10, 128]);
    await redis.set(bytes, bytes);
    expect(await redis.getBuffer(bytes)).toEqual(bytes);
    expect(await redis.incr("n")).toBe(1);
    expect(Number(await redis.incrbyfloat("f", 0.1))).toBe(0.1);
    expect(await redis.hset("h", { one: 1, two: "zwei" })).toBe(2);
    expect(await redis.hgetall("h")).toEqual({ one: "1", two: "zwei" });
    expect(await redis.sadd("s", "a", "b", "a")).toBe(2);
    expect((await redis.smembers("s")).sort()).toEqual(["a", "b"]);
    expect(await redis.mget("n", "nosuch", "h")).toEqual(["1", null, null]);
    await expect(redis.get("h")).rejects.toThrow("WRONGTYPE Operation against a key holding");
    await expect(redis.call("lpush", "l", "x")).rejects.toThrow("unknown command 'lpush'");
    expect(await redis.info("server")).toContain("redis_version:7.0.15");
  });

  test("pipelines", async () => {
    const redis = await start(protocol);
    const pipeline = redis.pipeline();
    for (let i = 0; i < 5_000; i++) pipeline.set(`k${i}`, i);
    for (let i = 0; i < 5_000; i++) pipeline.get(`k${i}`);
    const results = (await pipeline.exec())!;
    expect(results).toHaveLength(10_000);
    for (let i = 0; i < 5_000; i++) expect(results[5_000 + i]).toEqual([null, String(i)]);
    expect(await redis.dbsize()).toBe(5_000);
  });

  test("MULTI is one transaction, and errors in it are replies", async () => {
    const redis = await start(protocol);
    await redis.sadd("s", "a");
    const results = await redis.multi().set("a", 1).incr("a").get("s").get("a").exec();
    expect(results!.map(([error, value]) => error?.message.split(" ", 1)[0] ?? value)).toEqual([
      "OK",
      2,
      "WRONGTYPE",
      "2",
    ]);
  });

  test("WATCH sees what another client changed", async () => {
    const redis = await start(protocol);
    const other = redis.duplicate();
    stores.later(() => other.disconnect());
    await redis.set("balance", 10);
    await redis.watch("balance");
    await other.set("balance", 20);
    expect(await redis.multi().set("balance", 11).exec()).toBe(null);
    await redis.watch("balance", "nosuch");
    expect(await redis.multi().set("balance", 21).exec()).toEqual([[null, "OK"]]);
    expect(await other.get("balance")).toBe("21");
  });

  test("streams of SCAN, HSCAN and SSCAN meet everything", async () => {
    const redis = await start(protocol);
    const pipeline = redis.pipeline();
    const members = Array.from({ length: 1_000 }, (_, i) => `m${i}`);
    for (let i = 0; i < 1_000; i++) pipeline.set(`k${i}`, i);
    pipeline.sadd("s", ...members);
    await pipeline.exec();
    await redis.hset("h", Object.fromEntries(members.map((member) => [member, "v"])));
    const all = async (stream: AsyncIterable<string[]>): Promise<Set<string>> => {
      const found = new Set<string>();
      for await (const some of stream) for (const each of some) found.add(each);
      return found;
    };
    expect((await all(redis.scanStream({ match: "k*", count: 100 }))).size).toBe(1_000);
    expect((await all(redis.scanStream({ type: "hash" }))).size).toBe(1);
    expect(await all(redis.sscanStream("s", {}))).toEqual(new Set(members));
    expect((await all(redis.hscanStream("h", { match: "m99*" }))).size).toBe(11 + 1);
  });

  test("a password, a name and QUIT", async () => {
    const redis = await start(
      protocol,
      { password: "sesame", connectionName: "me" },
      { password: "sesame" },
    );
    expect(await redis.client("GETNAME")).toBe("me");
    expect(await redis.client("LIST")).toContain("lib-name=ioredis");
    expect(await redis.quit()).toBe("OK");
  });
});
