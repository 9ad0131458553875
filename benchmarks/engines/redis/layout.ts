// How rows of a table lie in Redis, as its users model them:
//
//   usertable:user42        → hash of all fields but the key, in the order of the table
//   savings:42              → the value itself, where there is but one: INCRBY, MGET
//   call_forwarding:42:3    → hash of the rows of one facility, start_time → "end_time number"
//   bySubNbr:000000000000042 → the key of the row with this value: a unique index
//   order:usertable_ordered → sorted set of all keys, with the same score: ordered by their bytes
//                             (as the Redis binding of YCSB, which orders by a hash)
//
// Whole rows are read by HVALS: half of what HGETALL answers. It gives the values in the order of
// insertion while the hash is a listpack (redis.conf), which `checkOrder` makes sure of.
import type { Table } from "situ";
import { type Column, columnsOf } from "../tables.ts";
import type { RowWriter } from "./bulk.ts";
import { answers, type RedisClient } from "./connection.ts";

export type Row = Record<string, unknown>;

export interface Layout {
  put(writer: RowWriter, row: Row): void;
  rows(client: RedisClient): AsyncIterable<Row>;
}

const keysPerScan = 5_000;

export function prefixOf(table: Table): string {
  return `${table.name}:`;
}

export function orderKey(table: Table): string {
  return `order:${table.name}`;
}

/** For hashes and single values: one row, one key. */
export class RowLayout implements Layout {
  readonly #table: Table;
  readonly #prefix: string;
  readonly #keys: readonly Column[];
  readonly #values: readonly Column[];
  readonly #names: readonly string[];

  constructor(table: Table) {
    this.#table = table;
    this.#prefix = prefixOf(table);
    const columns = columnsOf(table);
    this.#keys = table.key.map((name) => columns.find((each) => each.name === name) as Column);
    this.#values = columns.filter(({ isKey }) => !isKey);
    this.#names = this.#values.map(({ name }) => name);
  }

  put(writer: RowWriter, row: Row): void {
    const key = this.#table.key.map((name) => encode(row[name])).join(":");
    if (this.#names.length === 1) {
      writer.set(this.#prefix + key, encode(row[this.#names[0]]));
    } else {
      const pairs = this.#names.flatMap((name) => [name, encode(row[name])]);
      writer.hset(this.#prefix + key, ...pairs);
    }
    for (const { name, on } of this.#table.indexes) {
      writer.set(`${name}:${on.map((field) => encode(row[field])).join(":")}`, key);
    }
    if (this.#table.ordered) writer.zadd(orderKey(this.#table), 0, key);
  }

  async *rows(client: RedisClient): AsyncIterable<Row> {
    for await (const keys of scanKeys(client, this.#prefix)) {
      const pipeline = client.pipeline();
      for (const key of keys) {
        if (this.#names.length === 1) pipeline.get(key);
        else pipeline.hvals(key);
      }
      const replies = await answers(pipeline);
      for (let index = 0; index < keys.length; index++) {
        const values = [replies[index]].flat() as string[];
        yield this.decode(this.#keyOf(keys[index]), values);
      }
    }
  }

  /** Adds what HVALS of its hash gave to a row that has its key. */
  decode(row: Row, values: readonly string[]): Row {
    for (let index = 0; index < values.length; index++) {
      row[this.#names[index]] = decode(values[index], this.#values[index].kind);
    }
    return row;
  }

  /** Throws if HVALS of a row that is there would not give the fields in order. */
  async checkOrder(client: RedisClient): Promise<void> {
    if (this.#names.length === 1) return;
    for await (const [key] of scanKeys(client, this.#prefix)) {
      if (key === undefined) continue;
      const encoding = await client.object("ENCODING", key);
      const fields = await client.hkeys(key);
      if (encoding === "listpack" && fields.join() === this.#names.join()) return;
      throw new Error(`redis keeps ${key} as ${encoding} with ${fields.join()}`);
    }
  }

  #keyOf(key: string): Row {
    const parts = key.slice(this.#prefix.length).split(":");
    return Object.fromEntries(
      this.#keys.map(({ name, kind }, index) => [name, decode(parts[index], kind)]),
    );
  }
}

/** In no order. SCAN may give a key twice while a table grows; here it is at rest. */
export async function* scanKeys(client: RedisClient, prefix: string): AsyncIterable<string[]> {
  let cursor = "0";
  do {
    const [next, keys] = await client.scan(cursor, "MATCH", `${prefix}*`, "COUNT", keysPerScan);
    if (keys.length > 0) yield keys;
    cursor = next;
  } while (cursor !== "0");
}

export function encode(value: unknown): string {
  if (typeof value === "boolean") return value ? "1" : "0";
  return String(value);
}

function decode(text: string, kind: Column["kind"]): unknown {
  if (kind === "str") return text;
  if (kind === "bool") return text === "1";
  return Number(text);
}
