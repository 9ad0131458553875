// The peers of this bench, opened and loaded, or the reason why one is missing.
import { describePeer, loadPeer, mapPeer, missingPeer, type Peer } from "../harness/peers.ts";
import type { Progress } from "../harness/progress.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { temporaryFolder } from "../harness/resources.ts";
import { type LmdbBank, type LmdbModule, openLmdbBank } from "./lmdb.ts";
import { type IoredisModule, openRedisBank, type RedisBank } from "./redis.ts";
import type { Keys } from "./rows.ts";
import { openSqliteBank, type SqliteBank, type SqliteModule } from "./sqlite.ts";

export interface Peers {
  readonly lmdb: Peer<LmdbBank>;
  readonly sqlite: Peer<SqliteBank>;
  readonly redis: Peer<RedisBank>;
}

export async function openPeers(
  memoryFolder: string,
  rows: number,
  keys: Keys,
  progress: Progress,
): Promise<Peers> {
  progress.show("loading lmdb");
  const lmdb = mapPeer(loadPeer<LmdbModule>("lmdb"), (module) =>
    openLmdbBank(module, temporaryFolder(memoryFolder), rows, keys),
  );
  progress.show("loading sqlite");
  const sqlite = mapPeer(loadPeer<SqliteModule>("better-sqlite3"), (module) =>
    openSqliteBank(module, rows, keys),
  );
  progress.show("loading redis");
  return { lmdb, sqlite, redis: await openRedis(rows, keys) };
}

/** Checks that no transfer lost money, then closes. */
export async function closePeers({ lmdb, sqlite, redis }: Peers): Promise<void> {
  if (lmdb.available) {
    lmdb.value.check();
    await lmdb.value.close();
  }
  if (sqlite.available) {
    sqlite.value.check();
    sqlite.value.close();
  }
  if (redis.available) await redis.value.close();
}

export function describePeers(peers: Peers): string[] {
  return [
    ...describeEmbedded(peers),
    describePeer("redis-server", peers.redis, "loopback, no persistence"),
  ];
}

export function describeEmbedded({
  lmdb,
  sqlite,
}: Readonly<Record<"lmdb" | "sqlite", Peer<unknown>>>): string[] {
  return [
    describePeer("lmdb", lmdb, "noSync, useWritemap, uint32 keys, on /dev/shm"),
    describePeer("better-sqlite3", sqlite, ":memory:, safeIntegers, journal in memory"),
  ];
}

async function openRedis(rows: number, keys: Keys): Promise<Peer<RedisBank>> {
  const client = loadPeer<IoredisModule>("ioredis");
  if (!client.available) return client;
  const server = await startRedisServer();
  if (!server.available) return missingPeer(server.missing);
  const value = await openRedisBank(client.value, server.value, rows, keys.single);
  return { available: true, version: `${server.version} with ioredis ${client.version}`, value };
}
