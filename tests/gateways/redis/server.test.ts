/** Server commands: COMMAND as redis-server has it, CONFIG, INFO. */

import { describe, expect, test } from "vitest";
import { COMMANDS } from "../../../src/gateways/redis/commands/command-table.ts";
import { temporaryStores } from "../../helpers/store.ts";
import { parseReplies, type Reply } from "../resp/parse-replies.ts";
import { SideBySide } from "./against-redis.ts";
import { RawClient } from "./raw-client.ts";

const stores = temporaryStores();

async function clients(): Promise<{ redis: RawClient; situ: RawClient }> {
  const both = await SideBySide.start(stores);
  const redis = await RawClient.connect(both.redisPort);
  const situ = await RawClient.connect(both.gateway.port);
  stores.later(() => {
    redis.close();
    situ.close();
  });
  return { redis, situ };
}

function elements(reply: Reply): readonly Reply[] {
  if ("array" in reply) return reply.array;
  if ("set" in reply) return reply.set;
  throw new Error(`no array: ${JSON.stringify(reply)}`);
}

/** Name, arity, flags, keys and categories; those of subcommands after them. */
function described(reply: Reply): unknown[] {
  const fields = elements(reply);
  const [name] = fields;
  if (!("bulk" in name)) throw new Error("a command without a name");
  const numbers = [1, 3, 4, 5].map((i) => Number((fields[i] as { integer: bigint }).integer));
  const texts = (i: number): string[] =>
    elements(fields[i])
      .map((each) => ("simple" in each ? each.simple : "?"))
      .sort();
  const own = { name: name.bulk, numbers, flags: texts(2), categories: texts(6) };
  return [own, ...elements(fields[9]).flatMap(described)];
}

/** SETINFO is of Redis 7.2. */
const NEWER = ["client|setinfo"];

test("COMMAND INFO tells of every command what redis-server does", async () => {
  const { redis, situ } = await clients();
  for (const { name, subcommands = [] } of COMMANDS) {
    const parts = subcommands.map((each) => `${name}|${each.name}`);
    for (const each of [name, ...parts].filter((one) => !NEWER.includes(one))) {
      const [expected] = elements(parseReplies(await redis.send("command", "info", each))[0]);
      const [found] = elements(parseReplies(await situ.send("command", "info", each))[0]);
      expect(described(found)[0], each).toEqual(described(expected)[0]);
    }
  }
});

test("COMMAND DOCS has the texts of redis-server", async () => {
  const { redis, situ } = await clients();
  const texts = async (client: RawClient, name: string): Promise<Map<string, string>> => {
    const [reply] = parseReplies(await client.send("command", "docs", name));
    const [, fields] = elements(reply);
    const flat = elements(fields);
    const found = new Map<string, string>();
    for (let i = 0; i < flat.length; i += 2) {
      const key = flat[i];
      const value = flat[i + 1];
      if ("bulk" in key && "bulk" in value) found.set(key.bulk, value.bulk);
    }
    return found;
  };
  for (const { name } of COMMANDS) {
    const expected = await texts(redis, name);
    const found = await texts(situ, name);
    for (const key of ["summary", "since", "group", "complexity"]) {
      expect(found.get(key), `${name}: ${key}`).toBe(expected.get(key));
    }
  }
});

test("COMMAND, COUNT and LIST agree", async () => {
  const { situ } = await clients();
  const count = COMMANDS.length;
  expect(await situ.ask("command", "count")).toBe(`:${count}\r\n`);
  expect(elements(parseReplies(await situ.send("command"))[0])).toHaveLength(count);
  expect(elements(parseReplies(await situ.send("command", "list"))[0])).toHaveLength(count);
  expect(elements(parseReplies(await situ.send("command", "info"))[0])).toHaveLength(count);
  expect(await situ.ask("command", "list", "filterby", "pattern", "getr*")).toBe(
    "*1\r\n$8\r\ngetrange\r\n",
  );
  const [transactions] = parseReplies(
    await situ.send("command", "list", "filterby", "aclcat", "transaction"),
  );
  expect(elements(transactions)).toHaveLength(5);
});

describe("CONFIG", () => {
  test("SET changes all or nothing", async () => {
    const { situ } = await clients();
    const get = ["config", "get", "hash-max-*-entries", "timeout"] as const;
    const before = await situ.ask(...get);
    expect(await situ.ask("config", "set", "hash-max-ziplist-entries", 7, "timeout", "x")).toMatch(
      /^-ERR CONFIG SET failed \(possibly related to argument 'timeout'\)/,
    );
    expect(await situ.ask(...get)).toBe(before);
    expect(await situ.ask("config", "set", "hash-max-ziplist-entries", 7, "timeout", "9")).toBe(
      "+OK\r\n",
    );
    expect(await situ.ask("config", "get", "hash-max-listpack-entries", "timeout")).toBe(
      "*4\r\n$25\r\nhash-max-listpack-entries\r\n$1\r\n7\r\n$7\r\ntimeout\r\n$1\r\n9\r\n",
    );
    const fields = ["hset", "h", ...Array.from({ length: 16 }, (_, i) => `f${i}`)];
    await situ.send(...fields);
    expect(await situ.ask("object", "encoding", "h")).toBe("$9\r\nhashtable\r\n");
  });

  test("an old name and the new one are the same setting", async () => {
    const { situ } = await clients();
    expect(
      await situ.ask(
        ...["config", "set", "hash-max-ziplist-entries", 7, "hash-max-listpack-entries", 8],
      ),
    ).toBe(
      "-ERR CONFIG SET failed (possibly related to argument 'hash-max-listpack-entries') - " +
        "duplicate parameter\r\n",
    );
  });
});

describe("INFO", () => {
  const field = (text: string, name: string): string | undefined =>
    new RegExp(`^${name}:(.*)\r$`, "m").exec(text)?.[1];

  test("has the sections and fields that clients read", async () => {
    const { situ } = await clients();
    const text = await situ.ask("info");
    const sections = [...text.matchAll(/^# (\w+)\r$/gm)].map(([, name]) => name);
    expect(sections).toEqual([
      ...["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU"],
      ...["Modules", "Errorstats", "Cluster", "Keyspace"],
    ]);
    expect(field(text, "redis_version")).toBe("7.0.15");
    expect(field(text, "situ_version")).toMatch(/^\d+\.\d+\.\d+/);
    expect(field(text, "loading")).toBe("0");
    expect(field(text, "role")).toBe("master");
    expect(field(text, "connected_clients")).toBe("1");
    expect(Number(field(text, "used_memory"))).toBeGreaterThan(0);
  });

  test("gives the sections that are asked for", async () => {
    const { situ } = await clients();
    const text = await situ.ask("info", "KEYSPACE", "clients");
    expect([...text.matchAll(/^# (\w+)\r$/gm)].map(([, name]) => name)).toEqual([
      "Clients",
      "Keyspace",
    ]);
    expect(await situ.ask("info", "everything")).toContain("# Server");
  });

  test("counts commands, hits and keys", async () => {
    const { situ } = await clients();
    await situ.sendAll([
      ["config", "resetstat"],
      ["set", "a", "1"],
      ["set", "b", "1", "ex", "1000"],
    ]);
    await situ.send("get", "a");
    await situ.send("get", "nosuch");
    const text = await situ.ask("info");
    expect(field(text, "keyspace_hits")).toBe("1");
    expect(field(text, "keyspace_misses")).toBe("1");
    expect(field(text, "db0")).toBe("keys=2,expires=1,avg_ttl=0");
    expect(Number(field(text, "total_commands_processed"))).toBeGreaterThanOrEqual(4);
    const inside = await situ.sendAll([["multi"], ["info", "keyspace"], ["exec"]]);
    expect(inside[2].toString()).toContain("db0:keys=2");
  });
});
