/**
 * The keys of Redis clients for TypeScript: read and changed inside an ordinary transaction of this
 * process, together with tables of its own, without a socket. What is written here is what the
 * gateway writes: expiry, packed and large collections, all of it.
 *
 *   const db = await open({ path, tables: [...REDIS_TABLES, Order] });
 *   const redis = new RedisKeyspace(db);
 *   db.transactSync((tx) => {
 *     const keys = redis.in(tx);
 *     …
 *   });
 */

import type { Database } from "../../database/database.ts";
import { type LocalDatabase, localDatabase } from "../../database/local/local-database.ts";
import { engineOf } from "../../database/local/sync-transaction.ts";
import type { Transaction } from "../../database/transaction.ts";
import { afterTurn, wallClockMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_KEY_BYTES, MAX_VALUE_BYTES } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import { Collection, formOf } from "./collections/collection.ts";
import type { Form } from "./collections/form.ts";
import { Keyspace } from "./keyspace.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";
import { HASH, SET, STRING, TYPE_NAMES } from "./tables.ts";

/** A key, field, member or value; a string stands for its UTF-8 bytes. */
export type RedisBytes = string | Uint8Array;

/** The keys of Redis clients, for code that has the store open itself. */
export class RedisKeyspace {
  readonly #database: LocalDatabase;
  readonly #keys: Keyspace;
  #isMaintained = true;

  /** The database must have been opened with REDIS_TABLES. */
  constructor(database: Database) {
    this.#database = localDatabase(database);
    this.#keys = new Keyspace(this.#database);
  }

  /** The keys as a transaction sees them; usable until the transaction ends. */
  in(tx: Transaction): RedisKeys {
    const keys = this.#keys;
    keys.tx = engineOf(tx);
    keys.nowMs = wallClockMs();
    if (this.#isMaintained) {
      this.#isMaintained = false;
      afterTurn(this.#maintain);
    }
    return new RedisKeys(keys, tx);
  }

  readonly #maintain = (): void => {
    this.#isMaintained = true;
    if (isOpen(this.#database)) this.#keys.maintain();
  };
}

/** All keys, inside one transaction. Fails with SITU_TYPE for a key of another type. */
export class RedisKeys {
  readonly #keys: Keyspace;
  readonly #tx: Transaction;
  /** Of the transaction: no key expires while it runs. */
  readonly #nowMs: number;

  constructor(keys: Keyspace, tx: Transaction) {
    this.#keys = keys;
    this.#tx = tx;
    this.#nowMs = keys.nowMs;
  }

  /** "string", "hash", "set", or "none" if the key does not exist. */
  type(key: RedisBytes): (typeof TYPE_NAMES)[number] {
    return TYPE_NAMES[this.#enter().typeOf(keyBytes(key))];
  }

  /** The value of a string key, decoded as UTF-8. */
  get(key: RedisBytes): string | undefined {
    return this.getBytes(key)?.toString();
  }

  /** The bytes of a string. */
  getBytes(key: RedisBytes): Buffer | undefined {
    return this.#find(key, STRING)?.value;
  }

  /** Sets a key to a string, whatever its type was; `expires` is a time like `Date.now()`. */
  set(key: RedisBytes, value: RedisBytes, options: { readonly expires?: number } = {}): void {
    const { expires = 0 } = options;
    if (!(Number.isFinite(expires) && expires >= 0)) {
      throw new SituError(
        "SITU_TYPE",
        `expires must be a time in milliseconds, not ${show(expires)}`,
      );
    }
    this.#enter().put(keyBytes(key), STRING, valueBytes(value), expires);
  }

  /** Deletes a key of any type; returns whether it existed. */
  delete(key: RedisBytes): boolean {
    return this.#enter().remove(keyBytes(key));
  }

  /** When a key expires, a time like `Date.now()`; undefined if it never does or does not exist. */
  expires(key: RedisBytes): number | undefined {
    return this.#enter().find(keyBytes(key))?.expires || undefined;
  }

  /** Sets when a key expires; undefined means never. Returns whether the key exists. */
  expire(key: RedisBytes, expires: number | undefined): boolean {
    const keys = this.#enter();
    const bytes = keyBytes(key);
    const found = keys.find(bytes);
    if (found === undefined) return false;
    keys.expire(bytes, found, expires ?? 0);
    return true;
  }

  /** The fields of a hash, in no particular order; undefined if the key does not exist. */
  hash(key: RedisBytes): Map<string, string> | undefined {
    return this.#read(key, HASH, (form) => {
      const fields = new Map<string, string>();
      for (let i = 0; i < form.size; i++) {
        form.go(i);
        fields.set(textOf(form.member), textOf(form.value));
      }
      return fields;
    });
  }

  /** One field of a hash. */
  hashGet(key: RedisBytes, field: RedisBytes): string | undefined {
    const wanted = keyBytes(field);
    return this.#read(key, HASH, (form) => (form.find(wanted) ? textOf(form.value) : undefined));
  }

  /** Sets fields of a hash, which is created if it does not exist. */
  hashSet(key: RedisBytes, fields: Readonly<Record<string, RedisBytes>>): void {
    const checked = Object.entries(fields).map(
      ([field, value]) => [keyBytes(field), valueBytes(value)] as const,
    );
    this.#change(key, HASH, (hash) => {
      for (const [field, value] of checked) hash.set(field, value);
    });
  }

  /** Deletes fields of a hash, and the hash with its last field. */
  hashDelete(key: RedisBytes, ...fields: readonly RedisBytes[]): void {
    const checked = fields.map(keyBytes);
    this.#change(key, HASH, (hash) => {
      for (const field of checked) hash.remove(field);
    });
  }

  /** The members of a set; undefined if the key does not exist. */
  members(key: RedisBytes): Set<string> | undefined {
    return this.#read(key, SET, (form) => {
      const members = new Set<string>();
      for (let i = 0; i < form.size; i++) {
        form.go(i);
        members.add(textOf(form.member));
      }
      return members;
    });
  }

  /** Whether a set has this member. */
  hasMember(key: RedisBytes, member: RedisBytes): boolean {
    const wanted = keyBytes(member);
    return this.#read(key, SET, (form) => form.find(wanted)) ?? false;
  }

  /** Adds members to a set. */
  addMembers(key: RedisBytes, ...members: readonly RedisBytes[]): void {
    const checked = members.map(keyBytes);
    this.#change(key, SET, (set) => {
      for (const member of checked) set.add(member);
    });
  }

  /** Removes members from a set. */
  removeMembers(key: RedisBytes, ...members: readonly RedisBytes[]): void {
    const checked = members.map(keyBytes);
    this.#change(key, SET, (set) => {
      for (const member of checked) set.remove(member);
    });
  }

  #enter(): Keyspace {
    const keys = this.#keys;
    keys.tx = engineOf(this.#tx);
    keys.nowMs = this.#nowMs;
    return keys;
  }

  #find(key: RedisBytes, type: number) {
    const found = this.#enter().find(keyBytes(key));
    if (found === undefined || found.type === type) return found;
    throw new SituError(
      "SITU_TYPE",
      `key ${show(textOf(keyBytes(key)))} is a ${TYPE_NAMES[found.type]}, not a ${TYPE_NAMES[type]}`,
    );
  }

  #read<T>(key: RedisBytes, type: number, read: (form: Form) => T): T | undefined {
    const found = this.#find(key, type);
    return found === undefined ? undefined : read(formOf(this.#keys, found));
  }

  #change(key: RedisBytes, type: number, change: (collection: Collection) => void): void {
    const found = this.#find(key, type);
    const owner = { keys: this.#keys, server: { settings: DEFAULT_SETTINGS } };
    const collection = new Collection(owner, keyBytes(key), type, found);
    change(collection);
    collection.save();
  }
}

function isOpen(database: LocalDatabase): boolean {
  try {
    return database.executor !== undefined;
  } catch (error) {
    if (error instanceof SituError && error.code === "SITU_CLOSED") return false;
    throw error;
  }
}

function keyBytes(key: RedisBytes): Uint8Array {
  return bytesOf("a key, field or member", key, MAX_KEY_BYTES);
}

function valueBytes(value: RedisBytes): Uint8Array {
  return bytesOf("a value", value, MAX_VALUE_BYTES);
}

function bytesOf(what: string, given: RedisBytes, most: number): Uint8Array {
  const bytes = typeof given === "string" ? Buffer.from(given) : given;
  if (!(bytes instanceof Uint8Array)) {
    throw new SituError(
      "SITU_TYPE",
      `${what} must be a string or a Uint8Array, not ${show(given)}`,
    );
  }
  if (bytes.length <= most) return bytes;
  throw new SituError(
    "SITU_TOO_LARGE",
    `${what} may have at most ${most} bytes, not ${bytes.length}`,
  );
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}
