/**
 * The keys, as commands see them inside a transaction. A key whose time is over is not there: not
 * for reading, and not for conditions such as NX. The time is that of the transaction, so no key
 * expires between two of its steps; the sweeper removes such keys in transactions of its own.
 *
 * What belongs together changes together: a key that expires has a row in the sweeper's table, and
 * a large collection that goes away leaves a note about its members, in the same transaction.
 */

import type { LocalDatabase as Database } from "../../database/local/local-database.ts";
import { VERSION_HIGH, VERSION_LOW } from "../../engine/access-set.ts";
import type { Executor } from "../../engine/executor.ts";
import { runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS } from "../../runtime/limits.ts";
import { Hopscotch } from "../../stores/hopscotch/hopscotch.ts";
import type { Store } from "../../stores/store.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import type { TableStore } from "../../tables/indexes/table-store.ts";
import { COUNTER, CommandMetrics } from "../metrics/command-metrics.ts";
import type { Replies } from "../resp/replies.ts";
import { largeIn } from "./collections/large.ts";
import {
  type Entry,
  EntryCodec,
  Slice,
  VALUE_COPIED,
  VALUE_REPLIED,
  VALUE_SKIPPED,
} from "./entry-codec.ts";
import { ReplyError, WRONG_TYPE } from "./reply-error.ts";
import {
  RedisExpiries,
  RedisGarbage,
  RedisKeys,
  RedisMembers,
  STRING,
  secondOf,
} from "./tables.ts";

/** A key that is there. */
export interface Found {
  readonly type: number;
  /** Milliseconds of the wall clock, or 0. */
  readonly expires: number;
  /** A copy. */
  readonly value: Buffer;
}

const { keyspaceHits: HITS, keyspaceMisses: MISSES } = COUNTER;
const NO_BODY = (): void => {};

export class Keyspace {
  readonly executor: Executor;
  readonly metrics: CommandMetrics;
  /** The transaction that commands run in. */
  tx: Transaction;
  /** Large hashes and sets; see collections/. */
  readonly members: TableStore;
  /** The time of the transaction, or of reads outside of one, by the wall clock. */
  nowMs = 0;
  /** Whether a transaction is under way. */
  isInside = false;
  /** Whether somebody waits for the disk: then `tx.epoch` says for which epoch. */
  waits = false;
  /** A large collection was deleted, and its members are to be swept away. */
  leavesGarbage = false;
  /** See `findVersion`. */
  versionHigh = 0;
  versionLow = 0;
  #body: (argument: unknown) => void = NO_BODY;
  readonly #attempt: (argument: unknown) => void;
  readonly #expiries: Store<RowValues, unknown>;
  readonly #garbage: Store<RowValues, unknown>;
  readonly #codec = new EntryCodec();
  readonly #store: Hopscotch<Entry, Slice>;
  readonly #key = new Slice();

  constructor(database: Database) {
    const { executor } = database;
    this.executor = executor;
    this.metrics = new CommandMetrics(executor.metrics);
    this.#attempt = (argument) => {
      this.nowMs = wallClockMs();
      this.#body(argument);
    };
    this.tx = new Transaction(executor);
    this.members = database.tableOf(RedisMembers);
    this.#expiries = database.tableOf(RedisExpiries).store;
    this.#garbage = database.tableOf(RedisGarbage).store;
    this.#store = new Hopscotch(executor, this.#codec, database.tableOf(RedisKeys).root);
  }

  /**
   * Runs `body` as one strictly serializable transaction, and again if another one got in between:
   * so it changes nothing but keys, and what it sets right at its beginning.
   */
  run<A>(body: (argument: A) => void, argument: A): void {
    this.#body = body as (argument: unknown) => void;
    this.isInside = true;
    try {
      const { executor, tx, waits } = this;
      const { timeoutMs } = executor;
      runSync(executor, tx, timeoutMs, this.#attempt, argument, 0, waits, DEFAULT_TIMEOUT_MS);
    } finally {
      this.isInside = false;
      this.maintain();
    }
  }

  /** The type of a key, or 0. */
  typeOf(key: Uint8Array): number {
    const entry = this.#read(key, VALUE_SKIPPED);
    return entry === undefined ? 0 : entry.type;
  }

  find(key: Uint8Array): Found | undefined {
    const entry = this.#read(key, VALUE_COPIED);
    if (entry === undefined) return undefined;
    const { type, expires, value } = entry;
    return { type, expires, value: value.bytes as Buffer };
  }

  /** The same for a key that must be of this type, if it is there. */
  findOf(key: Uint8Array, type: number): Found | undefined {
    const found = this.find(key);
    if (found !== undefined && found.type !== type) throw new ReplyError(WRONG_TYPE);
    return found;
  }

  /** The value of a string. */
  string(key: Uint8Array): Buffer | undefined {
    return this.findOf(key, STRING)?.value;
  }

  /** Sets a key, whatever it was before. */
  put(key: Uint8Array, type: number, value: Uint8Array, expires = 0): void {
    this.#key.set(key, 0, key.length);
    this.#codec.entry.value.set(value, 0, value.length);
    this.putSlice(this.#key, type, expires);
  }

  /** Sets the value of a key that was found, and leaves the rest of it as it is. */
  change(key: Uint8Array, found: Found, value: Uint8Array): void {
    this.#write(key, found.type, value, found.expires);
  }

  /** Sets when a key that was found expires; 0: it does not. */
  expire(key: Uint8Array, found: Found, expires: number): void {
    if (found.expires === expires) return;
    this.#write(key, found.type, found.value, expires);
    this.#moveExpiry(key, found.expires, expires);
  }

  /** Removes a key; says whether it was there. */
  remove(key: Uint8Array): boolean {
    const codec = this.#codec;
    this.#key.set(key, 0, key.length);
    codec.matchedType = 0;
    if (!this.#store.remove(this.tx, this.#key)) return false;
    const { matchedType, matchedExpires } = codec;
    if (matchedType > STRING) this.#leaveMembers(codec.matchedHead);
    this.#moveExpiry(key, matchedExpires, 0);
    return !this.isOver(matchedExpires);
  }

  /** A key under another name, with all that it has. The caller knows that it is there. */
  move(from: Uint8Array, to: Uint8Array): void {
    const { type, expires, value } = this.find(from)!;
    this.#key.set(from, 0, from.length);
    this.#store.remove(this.tx, this.#key);
    this.#moveExpiry(from, expires, 0);
    this.put(to, type, value, expires);
  }

  /**
   * Leaves the number of the last transaction that wrote the key, unique among all, in `versionHigh`
   * and `versionLow`; zeros if it is not there. A key with the same number as before is the same, and
   * was not written in between.
   */
  findVersion(key: Uint8Array): void {
    const isThere = this.#read(key, VALUE_SKIPPED) !== undefined;
    const { words } = this.tx.set;
    const entry = this.#store.foundEntry;
    this.versionHigh = isThere ? words[entry + VERSION_HIGH] : 0;
    this.versionLow = isThere ? words[entry + VERSION_LOW] : 0;
  }

  /**
   * Writes the string at a key to a reply, and returns the type of the key, or 0. Where no
   * transaction is under way it is a read of its own, without locks.
   */
  replyString(key: Slice, replies: Replies): number {
    const codec = this.#codec;
    const start = replies.length;
    codec.reads = VALUE_REPLIED;
    codec.replies = replies;
    codec.replyAt = start;
    const entry = this.isInside ? this.#store.read(this.tx, key) : this.#store.get(key);
    if (entry !== undefined && !this.isOver(entry.expires)) {
      this.metrics.add(HITS, 1);
      return entry.type;
    }
    this.metrics.add(MISSES, 1);
    replies.rewind(start);
    return 0;
  }

  /** What the next `putSlice` writes. */
  get value(): Slice {
    return this.#codec.entry.value;
  }

  /** `put` for a key in a request, with the value in `value`. */
  putSlice(key: Slice, type: number, expires: number): void {
    const codec = this.#codec;
    const { entry } = codec;
    entry.key.set(key.bytes, key.start, key.end);
    entry.type = type;
    entry.expires = expires;
    codec.matchedType = 0;
    this.#store.put(this.tx, entry);
    const { matchedType, matchedExpires } = codec;
    if (expires === 0 && matchedExpires === 0 && matchedType <= STRING) return;
    this.#replaced(matchedType, matchedType === 0 ? 0 : matchedExpires, expires);
  }

  /** After a key was put: what the one before it had apart from its row goes, too. */
  #replaced(type: number, expiresBefore: number, expires: number): void {
    const { key } = this.#codec.entry;
    const bytes = key.bytes.subarray(key.start, key.end);
    if (type > STRING) this.#leaveMembers(this.#codec.matchedHead);
    this.#moveExpiry(bytes, expiresBefore, expires);
  }

  #leaveMembers(head: Uint8Array): void {
    const large = largeIn(head);
    if (large === undefined) return;
    this.#garbage.put(this.tx, { ...large });
    this.leavesGarbage = true;
  }

  #moveExpiry(key: Uint8Array, before: number, after: number): void {
    const from = secondOf(before);
    const to = secondOf(after);
    if (from === to) return;
    if (before !== 0) this.#expiries.remove(this.tx, [from, key]);
    if (after !== 0) this.#expiries.put(this.tx, { second: to, key });
  }

  /** The row of a key, also of one whose time is over. */
  #row(key: Uint8Array, reads: number): Entry | undefined {
    this.#key.set(key, 0, key.length);
    this.#codec.reads = reads;
    return this.#store.read(this.tx, this.#key);
  }

  #read(key: Uint8Array, reads: number): Entry | undefined {
    const entry = this.#row(key, reads);
    return entry === undefined || this.isOver(entry.expires) ? undefined : entry;
  }

  #write(key: Uint8Array, type: number, value: Uint8Array, expires: number): void {
    const { entry } = this.#codec;
    entry.key.set(key, 0, key.length);
    entry.value.set(value, 0, value.length);
    entry.type = type;
    entry.expires = expires;
    this.#store.put(this.tx, entry);
  }

  /** Whether a key with this time is gone. */
  isOver(expires: number): boolean {
    return expires !== 0 && expires <= this.nowMs;
  }

  /**
   * Work that transactions left for later, such as growing. Its failure is not the failure of the
   * transaction that came before it.
   */
  maintain(): void {
    try {
      this.#store.maintain();
      this.members.store.maintain();
      this.#expiries.maintain();
      this.#garbage.maintain();
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
    }
  }
}
