/**
 * A process without a socket: moves money between the accounts of Redis clients, and writes each
 * transfer down in a table of its own, in the same transaction. Ends after so many transfers.
 */

import { open } from "../../../src/database/open.ts";
import { RedisKeyspace } from "../../../src/gateways/redis/in-process.ts";
import { REDIS_TABLES } from "../../../src/gateways/redis/tables.ts";
import { Random } from "../../../src/runtime/random.ts";
import { Transfer } from "./in-process-tables.ts";

const [path, accounts, transfers, seed] = process.argv.slice(2);
const db = await open({ path, tables: [...REDIS_TABLES, Transfer], timeoutMs: 30_000 });
const redis = new RedisKeyspace(db);
const random = new Random(Number(seed));

for (let id = 0; id < Number(transfers); id++) {
  const from = random.below(Number(accounts));
  const to = (from + 1 + random.below(Number(accounts) - 1)) % Number(accounts);
  db.transactSync((tx) => {
    const keys = redis.in(tx);
    keys.set(`account:${from}`, String(Number(keys.get(`account:${from}`)) - 1));
    keys.set(`account:${to}`, String(Number(keys.get(`account:${to}`)) + 1));
    tx.insert(Transfer, { id, from, to });
  });
}
await db.close();
