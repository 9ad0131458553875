/**
 * Removes what nobody can see any more: keys whose time is over, and the members of large
 * collections that were deleted. Nothing depends on when that happens.
 *
 * Any number of sweepers may be at work in one store, in threads and processes, and each may die at
 * any moment. What there is to do is in the store's tables, is looked up outside of a transaction,
 * and is looked at again inside the one that does it: whatever another sweeper or a command has done
 * in between is seen there, or is a conflict that runs it again.
 */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { nowMs, wallClockMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { COUNTER } from "../metrics/command-metrics.ts";
import { MemberTable } from "./collections/member-table.ts";
import type { Keyspace } from "./keyspace.ts";
import { RedisExpiries, RedisGarbage, secondOf } from "./tables.ts";

/** Keys that one transaction removes: few enough that commands seldom meet it. */
const KEYS_AT_ONCE = 200;
/** Members that one transaction removes. */
const MEMBERS_AT_ONCE = 200;
/** Deleted collections that are looked up at once. */
const COLLECTIONS_AT_ONCE = 20;

/** What may happen where others are at work, or little memory is left: it is done another time. */
const LATER: ReadonlySet<string> = new Set([
  "SITU_CONFLICT",
  "SITU_TIMEOUT",
  "SITU_FULL",
  "SITU_DISK_FULL",
]);

type ExpiryRow = { readonly second: number; readonly key: Uint8Array };

export class Sweeper {
  readonly #keys: Keyspace;
  readonly #database: Database;
  /** Keys that it has removed. */
  expired = 0;
  /** Of the transaction that runs. */
  #removed = 0;
  #membersLeft = 0;

  constructor(keys: Keyspace, database: Database) {
    this.#keys = keys;
    this.#database = database;
  }

  /** Works for about so long, not inside a transaction; says whether there is more to do. */
  sweep(mostMs: number): boolean {
    const startMs = nowMs();
    try {
      // Each has its part of the time, so that neither waits for the other for ever.
      const hasKeys = this.#sweepKeys(startMs + mostMs / 2);
      return this.#sweepMembers(startMs + mostMs) || hasKeys;
    } catch (error) {
      if (error instanceof SituError && LATER.has(error.code)) return true;
      throw error;
    }
  }

  /** The same for members alone. */
  sweepMembers(mostMs: number): boolean {
    try {
      return this.#sweepMembers(nowMs() + mostMs);
    } catch (error) {
      // Whoever meets others leaves it to the sweeper's next turn.
      if (error instanceof SituError && LATER.has(error.code)) return false;
      throw error;
    }
  }

  #sweepKeys(endMs: number): boolean {
    for (;;) {
      // Of a second that is over all keys are.
      const lt: [number] = [Math.floor(wallClockMs() / 1_000)];
      const rows = this.#database.scan(RedisExpiries, { lt, limit: KEYS_AT_ONCE }).toArray();
      if (rows.length > 0) {
        this.#keys.run(this.#removeKeys, rows);
        this.expired += this.#removed;
        this.#keys.metrics.add(COUNTER.keysExpired, this.#removed);
      }
      if (rows.length < KEYS_AT_ONCE) return false;
      if (nowMs() >= endMs) return true;
    }
  }

  readonly #removeKeys = (rows: readonly ExpiryRow[]): void => {
    this.#removed = 0;
    for (let i = 0; i < rows.length; i++) this.#removeKey(rows[i]);
  };

  /**
   * The key may have got more time, or be gone. Those who write keys without the gateway may have
   * left this row behind; so the row goes in any case, and the key gets the one that is right.
   */
  #removeKey({ second, key }: ExpiryRow): void {
    const keys = this.#keys;
    const { tx } = keys;
    const expiries = this.#database.tableOf(RedisExpiries).store;
    // Another sweeper was here.
    if (!expiries.has(tx, [second, key])) return;
    if (keys.typeOf(key) === 0) {
      keys.remove(key);
      this.#removed++;
    } else {
      const right = secondOf(keys.find(key)!.expires);
      if (right === second) return;
      if (right > 0) expiries.put(tx, { second: right, key });
    }
    expiries.remove(tx, [second, key]);
  }

  #sweepMembers(endMs: number): boolean {
    const rows = this.#database.scan(RedisGarbage, { limit: COLLECTIONS_AT_ONCE }).toArray();
    for (const { id } of rows) {
      do {
        this.#keys.run(this.#removeMembers, id);
        if (nowMs() >= endMs) return true;
      } while (this.#membersLeft > 0);
    }
    return rows.length === COLLECTIONS_AT_ONCE;
  }

  /** From the highest position down, so that what the row says stays true. */
  readonly #removeMembers = (id: bigint): void => {
    const { tx } = this.#keys;
    const garbage = this.#database.tableOf(RedisGarbage).store;
    const members = MemberTable.of(this.#keys);
    this.#membersLeft = 0;
    const row = garbage.read(tx, id) as { members: number } | undefined;
    if (row === undefined) return;
    const left = Math.max(0, row.members - MEMBERS_AT_ONCE);
    for (let position = row.members - 1; position >= left; position--) {
      const member = members.nameAt(id, position);
      // The last command may have removed members itself.
      if (member !== undefined) members.remove(id, member);
    }
    if (left === 0) garbage.remove(tx, id);
    else garbage.put(tx, { id, members: left });
    this.#membersLeft = left;
  };
}
