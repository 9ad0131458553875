// YCSB on Redis: rows are hashes, as in YCSB's own binding (redis/RedisClient.java); keys for scans
// are in a sorted set. What takes more than one command is a script.
import type { FieldName, YcsbRow, YcsbStore, YcsbTable } from "../../../workloads/ycsb/store.ts";
import { type RedisConnection, script } from "./connection.ts";
import { orderKey, prefixOf } from "./layout.ts";

const readModifyWrite = script(`
local row = redis.call('HVALS', KEYS[1])
if #row > 0 then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end
return row`);

const insertOrdered = script(`
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
redis.call('ZADD', KEYS[2], 0, ARGV[1])`);

// The keys of the rows are known only here; without a cluster, scripts may use them undeclared. A row
// is one text in the answer, its fields between zero bytes, which YCSB's values do not have: ten
// texts per row take the client three times as long to read.
const scan = script(`
local keys = redis.call('ZRANGE', KEYS[1], ARGV[1], '+', 'BYLEX', 'LIMIT', 0, ARGV[2])
local rows = {}
for index = 1, #keys do
  rows[index] = table.concat(redis.call('HVALS', ARGV[3] .. keys[index]), '\\0')
end
return {keys, rows}`);

export const ycsbScripts = [readModifyWrite, insertOrdered, scan];

export function redisYcsb(redis: RedisConnection, table: YcsbTable): YcsbStore {
  return new RedisYcsb(redis, table);
}

class RedisYcsb implements YcsbStore {
  readonly #redis: RedisConnection;
  readonly #prefix: string;
  /** The sorted set, if the table has an order. */
  readonly #order: string | undefined;

  constructor(redis: RedisConnection, table: YcsbTable) {
    this.#redis = redis;
    this.#prefix = prefixOf(table);
    this.#order = table.ordered ? orderKey(table) : undefined;
  }

  async read(key: string): Promise<YcsbRow | undefined> {
    return rowOf(key, await this.#redis.gathered.hvals(this.#prefix + key));
  }

  /**
   * YCSB's binding sets blindly, and all rows exist. Had this one not, the field would be new: then
   * what was made is taken back.
   */
  async update(key: string, field: FieldName, value: string): Promise<boolean> {
    const added = await this.#redis.gathered.hset(this.#prefix + key, field, value);
    if (added === 0) return true;
    await this.#redis.gathered.del(this.#prefix + key);
    return false;
  }

  async insert(row: YcsbRow): Promise<void> {
    const { key, ...fields } = row;
    const values = Object.entries(fields).flat();
    if (this.#order === undefined) {
      await this.#redis.gathered.hset(this.#prefix + key, ...values);
    } else {
      const { sha } = insertOrdered;
      await this.#redis.gathered.evalsha(sha, 2, this.#prefix + key, this.#order, key, ...values);
    }
  }

  async scan(key: string, count: number): Promise<readonly YcsbRow[]> {
    if (this.#order === undefined) throw new Error("redis: this table has no order");
    const reply = this.#redis.gathered.evalsha(
      scan.sha,
      1,
      this.#order,
      `[${key}`,
      count,
      this.#prefix,
    );
    const [keys, rows] = (await reply) as [string[], string[]];
    const found: YcsbRow[] = [];
    for (let index = 0; index < keys.length; index++) {
      const row = rowOf(keys[index], rows[index].split("\0"));
      if (row !== undefined) found.push(row);
    }
    return found;
  }

  async readModifyWrite(
    key: string,
    field: FieldName,
    value: string,
  ): Promise<YcsbRow | undefined> {
    const { sha } = readModifyWrite;
    const reply = this.#redis.gathered.evalsha(sha, 1, this.#prefix + key, field, value);
    return rowOf(key, (await reply) as string[]);
  }
}

function rowOf(key: string, values: readonly string[]): YcsbRow | undefined {
  if (values.length === 0) return undefined;
  return {
    key,
    field0: values[0],
    field1: values[1],
    field2: values[2],
    field3: values[3],
    field4: values[4],
    field5: values[5],
    field6: values[6],
    field7: values[7],
    field8: values[8],
    field9: values[9],
  };
}
