/** A process that sets a key without a socket, and stops itself in the middle of the commit. */

import { open } from "../../../src/database/open.ts";
import { RedisKeyspace } from "../../../src/gateways/redis/in-process.ts";
import { REDIS_TABLES } from "../../../src/gateways/redis/tables.ts";

const [path, key] = process.argv.slice(2);
let isCommitting = false;
let hasLock = false;

const { compareExchange, store } = Atomics;
Atomics.compareExchange = ((array: Int32Array, at: number, expected: number, value: number) => {
  const found = compareExchange(array, at, expected, value);
  if (isCommitting && expected === 0 && value !== 0) hasLock = true;
  return found;
}) as typeof Atomics.compareExchange;
Atomics.store = ((array: Int32Array, at: number, value: number) => {
  const stored = store(array, at, value);
  // The first store after the locks: readers may not pass any more.
  if (hasLock) {
    hasLock = false;
    isCommitting = false;
    process.kill(process.pid, "SIGSTOP");
  }
  return stored;
}) as typeof Atomics.store;

const db = await open({ path, tables: REDIS_TABLES, timeoutMs: 30_000 });
const redis = new RedisKeyspace(db);
db.transactSync((tx) => {
  redis.in(tx).set(key, "from the other process");
  isCommitting = true;
});
await db.close();
