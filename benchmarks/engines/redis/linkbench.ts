// LinkBench on Redis: a node is a hash, the links of a node and a type are a sorted set of targets by time, and a hash
// beside it has their data. The count is the size of the set. Scripts where both change, or both are read.
import {
  type FoundLink,
  Link,
  LinkCount,
  LinkNode,
  type LinkStore,
} from "../../../workloads/linkbench/store.ts";
import type { RowWriter } from "./bulk.ts";
import { answers, type RedisClient, type RedisConnection, script } from "./connection.ts";
import { type Layout, prefixOf, type Row, scanKeys } from "./layout.ts";

const nodes = prefixOf(LinkNode);
const lists = prefixOf(Link);
const texts = "linkdata:";

const keyOf = (id1: unknown, type: unknown): string => `${id1}:${type}`;

const addLink = script(`
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
return redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])`);

const deleteLink = script(`
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('ZREM', KEYS[1], ARGV[1])`);

const changeType = script(`
local time = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not time then return 0 end
local data = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[4], ARGV[1], data)
if redis.call('ZADD', KEYS[3], time, ARGV[1]) == 1 then return 1 end
return -1`);

const withData = `
local found = {}
for i = 1, #links, 2 do found[#found + 1] = links[i] end
if #found == 0 then return {links, {}} end
return {links, redis.call('HMGET', KEYS[2], unpack(found))}`;

const getList = script(`
local links = redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'REV', 'WITHSCORES')
${withData}`);

const getTimeRange = script(`
local links = redis.call('ZRANGE', KEYS[1], ARGV[1], ARGV[2], 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[3], 'WITHSCORES')
${withData}`);

const getLinks = script(`
local links = {}
for _, id in ipairs(ARGV) do
  local time = redis.call('ZSCORE', KEYS[1], id)
  if time then
    links[#links + 1] = id
    links[#links + 1] = time
  end
end
${withData}`);

const updateNode = script(`
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'time', ARGV[1], 'data', ARGV[2])
return 1`);

export const linkScripts = [
  addLink,
  deleteLink,
  changeType,
  getList,
  getTimeRange,
  getLinks,
  updateNode,
];

/** A node is a hash, too long for a listpack in most cases: its fields are in no order. */
export class NodeLayout implements Layout {
  put(writer: RowWriter, { id, version, time, data }: Row): void {
    const fields = ["version", String(version), "time", String(time), "data", String(data)];
    writer.hset(nodes + id, ...fields);
  }

  async *rows(client: RedisClient): AsyncIterable<Row> {
    for await (const keys of scanKeys(client, nodes)) {
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.hgetall(key);
      const replies = (await answers(pipeline)) as Record<string, string>[];
      for (const [index, key] of keys.entries()) {
        const { version, time, data } = replies[index];
        const id = Number(key.slice(nodes.length));
        yield { id, version: Number(version), time: Number(time), data };
      }
    }
  }
}

/** How links and counts lie; counts are the sizes of the sets. */
export class LinkLayout implements Layout {
  readonly #isCount: boolean;

  constructor(isCount: boolean) {
    this.#isCount = isCount;
  }

  put(writer: RowWriter, { id1, link_type, id2, time, data }: Row): void {
    if (this.#isCount) return;
    const key = keyOf(id1, link_type);
    writer.zadd(lists + key, Number(time), String(id2));
    writer.hset(texts + key, String(id2), String(data));
  }

  async *rows(client: RedisClient): AsyncIterable<Row> {
    for await (const keys of scanKeys(client, lists)) {
      const pipeline = client.pipeline();
      for (const key of keys) pipeline.zrange(key, 0, -1, "WITHSCORES");
      const replies = (await answers(pipeline)) as string[][];
      for (const [index, key] of keys.entries()) {
        const [id1, link_type] = key.slice(lists.length).split(":").map(Number);
        const found = replies[index];
        if (this.#isCount) yield { id1, link_type, links: found.length / 2 };
        else {
          for (let i = 0; i < found.length; i += 2) {
            yield { id1, link_type, id2: Number(found[i]), time: Number(found[i + 1]) };
          }
        }
      }
    }
  }
}

export function linkLayoutOf(name: string): Layout | undefined {
  if (name === LinkNode.name) return new NodeLayout();
  if (name !== Link.name && name !== LinkCount.name) return undefined;
  return new LinkLayout(name === LinkCount.name);
}

export function redisLinks(redis: RedisConnection): LinkStore {
  const run = (
    { sha }: { readonly sha: string },
    keys: readonly string[],
    ...values: (string | number)[]
  ): Promise<unknown> => redis.gathered.evalsha(sha, keys.length, ...keys, ...values);
  const keysOf = (id1: number, type: number): readonly [string, string] => {
    const key = keyOf(id1, type);
    return [lists + key, texts + key];
  };
  const found = async (reply: Promise<unknown>): Promise<FoundLink[]> => {
    const [links, data] = (await reply) as [string[], string[]];
    return data.map((text, i) => ({
      id2: Number(links[2 * i]),
      time: Number(links[2 * i + 1]),
      data: text,
    }));
  };
  return {
    getNode: async (id) => (await redis.gathered.hvals(nodes + id)).length > 0,
    async addNode(id, time, data) {
      await redis.gathered.hset(nodes + id, "version", "1", "time", String(time), "data", data);
    },
    updateNode: async (id, time, data) => (await run(updateNode, [nodes + id], time, data)) === 1,
    deleteNode: async (id) => (await redis.gathered.del(nodes + id)) === 1,
    addLink: async (id1, type, id2, time, data) =>
      (await run(addLink, keysOf(id1, type), id2, time, data)) === 1,
    deleteLink: async (id1, type, id2) => (await run(deleteLink, keysOf(id1, type), id2)) === 1,
    changeType: async (id1, type, id2, newType) =>
      (await run(changeType, [...keysOf(id1, type), ...keysOf(id1, newType)], id2)) as number,
    countLinks: (id1, type) => redis.gathered.zcard(lists + keyOf(id1, type)),
    getLinks: (id1, type, ids) => found(run(getLinks, keysOf(id1, type), ...ids)),
    getList: (id1, type, limit) => found(run(getList, keysOf(id1, type), limit)),
    getTimeRange: (id1, type, high, low, limit) =>
      found(run(getTimeRange, keysOf(id1, type), high, low, limit)),
  };
}
