// Redis over loopback: one connection, one request at a time, as a service that reads a key before
// it can go on.
import { keyMask } from "../harness/random.ts";
import type { RedisServer } from "../harness/redis-server.ts";
import type { Contestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import {
  type AccountRow,
  checkRow,
  decodeValue,
  encodeValue,
  makeRow,
  rowBytes,
  type ValueView,
  valueBytes,
  viewValue,
} from "./rows.ts";

export interface IoredisModule {
  readonly Redis: new (options: {
    readonly host: string;
    readonly port: number;
    readonly retryStrategy: () => null;
  }) => RedisClient;
}

interface RedisClient {
  getBuffer(key: string): Promise<Buffer | null>;
  mset(pairs: (string | Buffer)[]): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  disconnect(): void;
}

export interface RedisBank {
  readonly get: Contestant;
  /** Also ends the server. */
  close(): Promise<void>;
}

const rowsPerRequest = 1000;

export async function openRedisBank(
  { Redis }: IoredisModule,
  { host, port, stop }: RedisServer,
  rows: number,
  keys: Int32Array,
): Promise<RedisBank> {
  // No reconnecting: a server that is gone should fail the run, not slow it down.
  const client = new Redis({ host, port, retryStrategy: () => null });
  // The pending request rejects as well; without a listener ioredis prints the error.
  client.on("error", () => {});
  for (let first = 0; first < rows; first += rowsPerRequest) {
    const pairs: (string | Buffer)[] = [];
    for (let id = first; id < Math.min(first + rowsPerRequest, rows); id++) {
      pairs.push(String(id), encodeRow(makeRow(id)));
    }
    await client.mset(pairs);
  }
  const scratch = viewValue(new ArrayBuffer(valueBytes), 0);
  for (const id of [0, 1, rows >> 1, rows - 1]) {
    checkRow("redis", await read(client, scratch, id), id);
  }
  return {
    get: redisGet(client, scratch, keys),
    close() {
      client.disconnect();
      return stop();
    },
  };
}

/** All 52 bytes: the value first, where it is aligned, then the id. */
function encodeRow(row: AccountRow): Buffer {
  const view = viewValue(new ArrayBuffer(rowBytes), 0);
  encodeValue(view, row);
  const bytes = Buffer.from(view.bytes.buffer);
  bytes.writeUInt32LE(row.id, valueBytes);
  return bytes;
}

async function read(client: RedisClient, scratch: ValueView, id: number): Promise<AccountRow> {
  const bytes = await client.getBuffer(String(id));
  if (bytes?.length !== rowBytes) throw new Error(`redis lost row ${id}`);
  // The reply lies at any offset of a socket buffer; typed arrays need it aligned.
  bytes.copy(scratch.bytes, 0, 0, valueBytes);
  return decodeValue(scratch, bytes.readUInt32LE(valueBytes));
}

function redisGet(client: RedisClient, scratch: ValueView, keys: Int32Array): Contestant {
  let kept = 0;
  return {
    name: "redis get",
    async run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        const row = await read(client, scratch, keys[cursor]);
        cursor = (cursor + 1) & keyMask;
        sink.value = row;
        sum += row.id;
      }
      kept = cursor;
      return sum;
    },
  };
}
