// Objects on Redis: one script, which reads whole rows (count, stamp, text) and adds up where they
// lie. Sending them to the client for that would only cost time.
import type { ObjectStore, ObjectTable } from "../../../workloads/objects/store.ts";
import { type RedisConnection, script } from "./connection.ts";
import { prefixOf } from "./layout.ts";

const access = script(`
local reads, writes, sum = tonumber(ARGV[1]), tonumber(ARGV[2]), 0
for index = 1, reads do
  local row = redis.call('HVALS', KEYS[index])
  sum = sum + row[1] + #row[3]
  if index <= writes then
    redis.call('HSET', KEYS[index], 'count', row[1] + 1, 'stamp', ARGV[3], 'text', ARGV[4])
  end
end
for index = reads + 1, writes do
  redis.call('HSET', KEYS[index], 'stamp', ARGV[3], 'text', ARGV[4])
end
return sum`);

export const objectScripts = [access];

export function redisObjects(redis: RedisConnection, table: ObjectTable): ObjectStore {
  const prefix = prefixOf(table);
  return {
    async access(keys, reads, writes, stamp, text) {
      const count = Math.max(reads, writes);
      const parts: (string | number)[] = [];
      for (let index = 0; index < count; index++) parts.push(prefix + keys[index]);
      if (writes === 0) parts.push(reads, 0);
      else parts.push(reads, writes, stamp, text);
      return (await redis.gathered.evalsha(access.sha, count, ...parts)) as number;
    },
  };
}
