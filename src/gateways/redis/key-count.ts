/**
 * How many keys there are. Redis knows; here rows are counted, some ten million a second. So what
 * is asked for often, by clients that only connect, may be a little old.
 */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { nowMs, wallClockMs } from "../../runtime/clock.ts";
import type { Server } from "./server.ts";
import { RedisExpiries, RedisKeys } from "./tables.ts";

export interface KeyCount {
  readonly keys: number;
  /** Of these, those that expire. */
  readonly expires: number;
}

interface Counted extends KeyCount {
  /** When they may be counted again. */
  readonly againMs: number;
}

/** Counting that takes no longer is done whenever somebody asks. */
const QUICK_MS = 1;
/** Else it may take this part of the time. */
const COUNTING_SHARE = 1 / 50;

const counts = new WeakMap<Database, Counted>();

/** Of now, or of a moment ago if counting takes long. */
export function countKeys({ database, allKeys }: Server, isInside: boolean): KeyCount {
  const before = counts.get(database);
  const startMs = nowMs();
  // A transaction that has counted all keys would be in conflict with all who add one.
  if (before !== undefined && (isInside || startMs < before.againMs)) return before;
  const counted = isInside ? { keys: allKeys.size(), expires: 0 } : countOutside(database);
  const endMs = nowMs();
  const tookMs = endMs - startMs;
  const pauseMs = tookMs <= QUICK_MS ? 0 : tookMs / COUNTING_SHARE;
  counts.set(database, { ...counted, againMs: endMs + pauseMs });
  return counted;
}

/**
 * How many keys there are, and how many of them expire, at one moment. Rows are counted without a
 * look at them; those whose time is over, and which the sweeper has not met, are found by their time.
 */
export function countOutside(database: Database): KeyCount {
  const snapshot = database.snapshot();
  try {
    const timeMs = wallClockMs();
    let over = 0;
    for (const { key } of snapshot.scan(RedisExpiries, { lte: [Math.floor(timeMs / 1000)] })) {
      const row = snapshot.get(RedisKeys, key);
      if (row !== undefined && row.expires !== 0 && row.expires <= timeMs) over++;
    }
    const expires = snapshot.count(RedisExpiries) - over;
    return { keys: snapshot.count(RedisKeys) - over, expires };
  } finally {
    snapshot.close();
  }
}
