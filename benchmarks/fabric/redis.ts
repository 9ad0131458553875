// Redis over loopback, many requests in flight: one connection, on which ioredis sends everything
// that is asked for in one turn together.
import type { InFlightContestant } from "../harness/in-flight.ts";
import { loadPeer, missingPeer, type Peer } from "../harness/peers.ts";
import { keyMask } from "../harness/random.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { sink } from "../harness/sink.ts";
import { type AccountRow, checkRow, decodeValue, encodeValue, makeRow } from "./accounts.ts";

interface IoredisModule {
  readonly Redis: new (options: {
    readonly host: string;
    readonly port: number;
    readonly enableAutoPipelining: boolean;
    readonly retryStrategy: () => null;
  }) => RedisClient;
}

interface RedisClient {
  getBuffer(key: string): Promise<Buffer | null>;
  mset(pairs: (string | Buffer)[]): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  disconnect(): void;
}

export interface RedisRows {
  get(name: string, keys: Int32Array): InFlightContestant;
  /** Also ends the server. */
  close(): Promise<void>;
}

const rowsPerRequest = 1000;

export async function openRedisRows(rows: number): Promise<Peer<RedisRows>> {
  const module = loadPeer<IoredisModule>("ioredis");
  if (!module.available) return module;
  const server = await startRedisServer();
  if (!server.available) return missingPeer(server.missing);
  const { host, port, stop } = server.value;
  // No reconnecting: a server that is gone should fail the run, not slow it down.
  const client = new module.value.Redis({
    host,
    port,
    enableAutoPipelining: true,
    retryStrategy: () => null,
  });
  // The pending request rejects as well; without a listener ioredis prints the error.
  client.on("error", () => {});
  for (let first = 0; first < rows; first += rowsPerRequest) {
    const pairs: (string | Buffer)[] = [];
    for (let id = first; id < Math.min(first + rowsPerRequest, rows); id++) {
      pairs.push(String(id), encodeValue(makeRow(id)));
    }
    await client.mset(pairs);
  }
  for (const id of [0, 1, rows >> 1, rows - 1]) checkRow("redis", await read(client, id), id);
  const version = `${server.version} with ioredis ${module.version}`;
  const value: RedisRows = {
    get: (name, keys) => redisGet(name, client, keys),
    close: () => {
      client.disconnect();
      return stop();
    },
  };
  return { available: true, version, value };
}

async function read(client: RedisClient, id: number): Promise<AccountRow> {
  return decodeValue(await client.getBuffer(String(id)), id);
}

function redisGet(name: string, client: RedisClient, keys: Int32Array): InFlightContestant {
  let cursor = 0;
  return {
    name,
    async one() {
      cursor = (cursor + 1) & keyMask;
      sink.value = await read(client, keys[cursor]);
    },
  };
}
