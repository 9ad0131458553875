/**
 * Commands about all keys: how many, which, any one, none any more. Inside MULTI they are part of
 * the transaction, which may only be so large; outside, each does what can be had for any number of
 * keys: counts and lists see one moment, a walk goes on from where it was, and flushing a large
 * keyspace takes it away piece by piece.
 */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { readAtSnapshot, runReadOnly } from "../../engine/run.ts";
import { Snapshot } from "../../engine/snapshots/snapshot.ts";
import { Transaction } from "../../engine/transaction.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import { DEFAULT_MAX_SNAPSHOT_MS } from "../../runtime/limits.ts";
import { Random } from "../../runtime/random.ts";
import type { Hopscotch } from "../../stores/hopscotch/hopscotch.ts";
import type { Keyspace } from "./keyspace.ts";
import { RedisKeys } from "./tables.ts";

/** What a walk reads of a key. */
interface KeyRow {
  readonly key: Uint8Array;
  readonly type: number;
  readonly expires: number;
}

/** Where a walk is over. */
export const WALK_END = 0;
/** A keyspace of so many keys is flushed in one transaction. */
const MAX_FLUSHED_AT_ONCE = 5_000;

export class AllKeys {
  readonly #database: Database;
  readonly #keys: Keyspace;
  readonly #rows: Hopscotch<KeyRow, Uint8Array>;
  readonly #reader: Transaction;
  readonly #random = new Random();
  readonly #found: KeyRow[] = [];

  constructor(database: Database, keys: Keyspace) {
    this.#database = database;
    this.#keys = keys;
    const { structure, root } = database.tableOf(RedisKeys);
    const part = structure.openPart(database.executor, root, ["key", "type", "expires"]);
    this.#rows = part as unknown as Hopscotch<KeyRow, Uint8Array>;
    this.#reader = new Transaction(database.executor);
  }

  /** How many keys there are. */
  size(): number {
    let count = 0;
    this.each(() => count++);
    return count;
  }

  /** All keys, of one moment. */
  each(visit: (key: Buffer, type: number) => void): void {
    const keys = this.#keys;
    if (keys.isInside) {
      let place = 0;
      do place = this.walk(place, visit);
      while (place !== WALK_END);
      return;
    }
    const { executor } = keys;
    const snapshot = Snapshot.take(executor, DEFAULT_MAX_SNAPSHOT_MS, executor.timeoutMs);
    try {
      const nowMs = wallClockMs();
      let place = 0;
      do {
        place = readAtSnapshot(executor, this.#reader, snapshot, this.#readStep, place);
        this.#visit(nowMs, visit);
      } while (place !== WALK_END);
    } finally {
      snapshot.release();
    }
  }

  readonly #readStep = (tx: Transaction, place: number): number =>
    this.#rows.step(tx, place, this.#found);

  #visit(nowMs: number, visit: (key: Buffer, type: number) => void): void {
    for (const { key, type, expires } of this.#found) {
      if (expires === 0 || expires > nowMs) visit(bufferOf(key), type);
    }
  }

  /**
   * Some keys from a place on; returns the place after them. A key that is there from the first step
   * of a walk to the last is met, however the table grows meanwhile.
   */
  walk(place: number, visit: (key: Buffer, type: number) => void): number {
    const keys = this.#keys;
    const nowMs = keys.isInside ? keys.nowMs : wallClockMs();
    const next = this.#step(place);
    this.#visit(nowMs, visit);
    return next;
  }

  /** Any key, or undefined if there is none. */
  random(): Buffer | undefined {
    const first = this.#random.below(this.#rows.places);
    let place = first;
    let isRound = false;
    for (;;) {
      const met: Buffer[] = [];
      place = this.walk(place, (key) => met.push(key));
      if (met.length > 0) return met[this.#random.below(met.length)];
      if (isRound && place > first) return undefined;
      if (place === WALK_END) {
        if (isRound || first === 0) return undefined;
        isRound = true;
      }
    }
  }

  /** Takes all keys away. */
  flush(): void {
    const keys = this.#keys;
    if (keys.isInside) {
      this.#flushInside();
      return;
    }
    if (this.#database.count(RedisKeys) <= MAX_FLUSHED_AT_ONCE) {
      keys.run(this.#flushInside, undefined);
      return;
    }
    let place = 0;
    do {
      const found: Buffer[] = [];
      place = this.walk(place, (key) => found.push(key));
      keys.run(this.#removeAll, found);
    } while (place !== WALK_END);
  }

  readonly #flushInside = (): void => {
    const all: Buffer[] = [];
    this.each((key) => all.push(key));
    this.#removeAll(all);
  };

  readonly #removeAll = (keys: readonly Buffer[]): void => {
    for (const key of keys) this.#keys.remove(key);
  };

  #step(place: number): number {
    const keys = this.#keys;
    if (keys.isInside) return this.#rows.step(keys.tx, place, this.#found);
    return runReadOnly(keys.executor, this.#reader, this.#readStep, place);
  }
}

function bufferOf({ buffer, byteOffset, length }: Uint8Array): Buffer {
  return Buffer.from(buffer as ArrayBuffer, byteOffset, length);
}
