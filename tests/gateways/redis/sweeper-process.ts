/**
 * A process that sweeps the store of a test: says "open", waits for a byte, sweeps until nothing is
 * left, and says how many keys it has removed.
 */

import { openLocal as open } from "../../../src/database/open.ts";
import { Keyspace } from "../../../src/gateways/redis/keyspace.ts";
import { Sweeper } from "../../../src/gateways/redis/sweeper.ts";
import { REDIS_TABLES } from "../../../src/gateways/redis/tables.ts";

const db = await open({ path: process.argv[2], tables: REDIS_TABLES, timeoutMs: 30_000 });
const sweeper = new Sweeper(new Keyspace(db), db);
process.stdout.write("open\n");
process.stdin.once("data", () => {
  let removed = 0;
  let hasMore = true;
  while (hasMore) {
    hasMore = sweeper.sweep(1);
    removed = sweeper.expired;
  }
  process.stdout.write(`${removed}\n`);
  process.stdin.destroy();
  void db.close();
});
