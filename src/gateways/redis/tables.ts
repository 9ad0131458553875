/**
 * The tables behind the Redis protocol: ordinary ones, so a TypeScript process on the same machine
 * reads and changes the same keys without a socket (docs/REDIS.md shows how).
 *
 *   redis            one row for each key: its type, when it expires, and its value. The value of a
 *                    string is its bytes; that of a small hash or set is all of it, packed; that of
 *                    a large one says where its members are (collections/)
 *   redis:members    the members of large hashes and sets, found by name and by position
 *   redis:expiries   the keys that expire, by the second, for the sweeper; written with their keys
 *   redis:garbage    members of large collections that were deleted, until the sweeper gets there
 */

import { bytes, f64, u8, u32, u64 } from "../../tables/fields.ts";
import { table } from "../../tables/table.ts";

export const STRING = 1;
export const HASH = 2;
export const SET = 3;

/** What TYPE says, by the number in a row. */
export const TYPE_NAMES = ["none", "string", "hash", "set"] as const;

export const RedisKeys = table(
  "redis",
  {
    key: bytes(),
    type: u8(),
    /** Milliseconds of the wall clock, or 0 if it does not expire. */
    expires: f64(),
    value: bytes(),
  },
  { key: "key" },
);

export const RedisMembers = table(
  "redis:members",
  {
    /** Of the collection: from its key's row. */
    id: u64(),
    member: bytes(),
    /** From 0 on, without gaps: the last one takes the place of one that is removed. */
    position: u32(),
    /** Of a hash's field; empty in a set. */
    value: bytes(),
  },
  {
    key: ["id", "member"],
    indexes: { position: { on: ["id", "position"], kind: "hash", unique: true } },
  },
);

export const RedisExpiries = table(
  "redis:expiries",
  { second: u32(), key: bytes() },
  { key: ["second", "key"], ordered: true },
);

/** Under which second a key is in `redis:expiries`. 0 is for keys that do not expire; later than the year 2106 is then. */
export function secondOf(expires: number): number {
  return expires === 0 ? 0 : Math.min(Math.max(1, Math.floor(expires / 1_000)), 0xffffffff);
}

export const RedisGarbage = table("redis:garbage", { id: u64(), members: u32() }, { key: "id" });

/** The tables that hold the keys of Redis clients; pass them to `open`. */
export const REDIS_TABLES = [RedisKeys, RedisMembers, RedisExpiries, RedisGarbage] as const;
