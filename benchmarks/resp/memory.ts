// What a key costs in memory: a million keys of 16 bytes with values of 32, and what the servers
// say about their memory before and after.
import { open } from "situ";
import { Connection, request } from "./connection.ts";
import type { SituServer, Target } from "./servers.ts";

const keysAtOnce = 100;
const value = "v".repeat(32);

export interface BytesPerKey {
  readonly situ: number;
  readonly redis: number;
}

export async function measureMemory(
  situ: SituServer,
  redis: Target,
  keys: number,
): Promise<BytesPerKey> {
  const measure = async (target: Target, used: () => Promise<number>): Promise<number> => {
    const before = await used();
    await fill(target, keys);
    return ((await used()) - before) / keys;
  };
  return {
    situ: await measure(situ, () => situBytes(situ)),
    redis: await measure(redis, () => redisBytes(redis)),
  };
}

async function fill({ port }: Target, keys: number): Promise<void> {
  const connection = await Connection.open(port);
  for (let first = 0; first < keys; first += keysAtOnce) {
    const pairs = Array.from({ length: keysAtOnce }, (_, i) => [keyOf(first + i), value]).flat();
    await connection.ask(request("MSET", ...pairs), 1);
  }
  const [size] = await connection.ask(request("DBSIZE"), 1);
  connection.close();
  if (Number(size.slice(1)) < keys) throw new Error(`DBSIZE says ${size.trim()}`);
}

function keyOf(i: number): string {
  return `row:${String(i).padStart(12, "0")}`;
}

/** What the store has taken from the system and not got back: all of a block that is used in part. */
async function situBytes({ path }: SituServer): Promise<number> {
  const db = await open({ path, tables: [] });
  const { reservedBytes, freeBytes } = db.stats().memory;
  await db.close();
  return reservedBytes - freeBytes;
}

/** What Redis has asked its allocator for. */
async function redisBytes({ port }: Target): Promise<number> {
  const connection = await Connection.open(port);
  const [info] = await connection.ask(request("INFO", "memory"), 1);
  connection.close();
  return Number(/used_memory:(\d+)/.exec(info)?.[1]);
}
