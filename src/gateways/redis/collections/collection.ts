/**
 * Hashes and sets as commands use them. Those who only read take the form as it lies there; those
 * who change it go through a Collection, which moves all members into another form when the limits
 * of the one they are in are passed. They never move back, as in Redis. In the end `save` writes the
 * key's row, once; an empty collection is not there.
 *
 * The row is written after every change, also where only a member's row has changed: its version is
 * what WATCH looks at.
 */

import { MAX_KEY_BYTES, MAX_VALUE_BYTES } from "../../../runtime/limits.ts";
import type { Call } from "../call.ts";
import type { Found, Keyspace } from "../keyspace.ts";
import { parseInt64 } from "../numbers.ts";
import { ReplyError, TOO_LONG } from "../reply-error.ts";
import type { PackingLimits } from "../settings.ts";
import { HASH, SET } from "../tables.ts";
import { type Form, HEAD_BYTES, INTEGERS, NO_VALUE, PACKED_HASH, PACKED_SET } from "./form.ts";
import { InTable } from "./in-table.ts";
import { Integers } from "./integers.ts";
import { LARGE, largeIn } from "./large.ts";
import { Packed } from "./packed.ts";

/** Longer members of sets are not packed (Redis 7.2 has this limit: set-max-listpack-value). */
const MAX_PACKED_MEMBER_BYTES = 64;
/** However far the settings go: every change writes all of it. */
const MAX_PACKED_BYTES = 64 * 1024;

/** Keys are rows of an ordinary table, and anyone may have written them. */
const UNKNOWN_FORM = "ERR the value of this key is not in the form of a hash or set";
export const MEMBER_TOO_LONG = `ERR fields and members have at most ${MAX_KEY_BYTES} bytes`;

/** The form of a hash or set that was found. */
export function formOf(keys: Keyspace, { value }: Found): Form {
  const large = largeIn(value);
  if (large !== undefined) return new InTable(keys, large);
  if (value.length < HEAD_BYTES || value[0] === LARGE) throw new ReplyError(UNKNOWN_FORM);
  return value[0] === INTEGERS ? new Integers(value) : new Packed(value);
}

/** A hash to read; undefined if there is none. */
export function readHash(call: Call, index: number): Form | undefined {
  const found = call.keys.findOf(call.arg(index), HASH);
  return found === undefined ? undefined : formOf(call.keys, found);
}

/** A set to read; undefined if there is none. */
export function readSet(call: Call, index: number): Form | undefined {
  const found = call.keys.findOf(call.arg(index), SET);
  return found === undefined ? undefined : formOf(call.keys, found);
}

/** A hash to change, which may not be there yet. */
export function writeHash(call: Call, index: number): Collection {
  const key = call.arg(index);
  return new Collection(call, key, HASH, call.keys.findOf(key, HASH));
}

export function writeSet(call: Call, index: number): Collection {
  const key = call.arg(index);
  return new Collection(call, key, SET, call.keys.findOf(key, SET));
}

/** To be called for all members and values of a command before the first change. */
export function checkMember({ request }: Call, index: number): void {
  const { starts, ends } = request;
  if (ends[index] - starts[index] > MAX_KEY_BYTES) throw new ReplyError(MEMBER_TOO_LONG);
}

export function checkValue({ request }: Call, index: number): void {
  const { starts, ends } = request;
  if (ends[index] - starts[index] > MAX_VALUE_BYTES) throw new ReplyError(TOO_LONG);
}

/** What a collection needs of the call that it is changed by. */
interface Owner {
  readonly keys: Keyspace;
  readonly server: { readonly settings: PackingLimits };
}

export class Collection {
  form: Form;
  readonly #keys: Keyspace;
  readonly #settings: PackingLimits;
  readonly #key: Uint8Array;
  readonly #type: number;
  readonly #found: Found | undefined;
  #isChanged = false;

  /** Without `found` an empty one, which replaces what the key has when it is saved. */
  constructor(call: Owner, key: Uint8Array, type: number, found: Found | undefined) {
    this.#keys = call.keys;
    this.#settings = call.server.settings;
    this.#key = key;
    this.#type = type;
    this.#found = found;
    if (found !== undefined) this.form = formOf(call.keys, found);
    else this.form = type === HASH ? Packed.empty(PACKED_HASH) : Integers.empty();
  }

  get size(): number {
    return this.form.size;
  }

  /** Sets a field of a hash; says whether it is new. */
  set(field: Uint8Array, value: Uint8Array): boolean {
    const { hashMaxPackedValue, hashMaxPackedEntries } = this.#settings;
    this.#isChanged = true;
    if (Math.max(field.length, value.length) > hashMaxPackedValue) this.#moveIntoTable();
    if (this.form.find(field)) {
      this.form.change(value);
      this.#limitBytes();
      return false;
    }
    this.form.add(field, value);
    if (this.form.size > hashMaxPackedEntries) this.#moveIntoTable();
    else this.#limitBytes();
    return true;
  }

  /** Adds a member to a set; false if it is there. */
  add(member: Uint8Array): boolean {
    if (this.form.find(member)) return false;
    this.#isChanged = true;
    if (this.form instanceof Integers) this.#addToIntegers(member);
    else this.#addToOthers(member);
    return true;
  }

  /** Removes a member; false if it is not there. */
  remove(member: Uint8Array): boolean {
    if (!this.form.find(member)) return false;
    this.form.remove();
    this.#isChanged = true;
    return true;
  }

  /** Removes the form's current member. */
  removeCurrent(): void {
    this.form.remove();
    this.#isChanged = true;
  }

  /** Writes the key's row, if anything has changed. */
  save(): void {
    if (!this.#isChanged) return;
    if (this.form.size === 0) this.#keys.remove(this.#key);
    else if (this.#found === undefined) this.#keys.put(this.#key, this.#type, this.form.row());
    else this.#keys.change(this.#key, this.#found, this.form.row());
  }

  #addToIntegers(member: Uint8Array): void {
    const { setMaxIntsetEntries } = this.#settings;
    if (parseInt64(member) === undefined) {
      this.#leaveIntegers(member.length, 1);
      this.#addToOthers(member);
      return;
    }
    this.form.add(member, NO_VALUE);
    if (this.form.size > setMaxIntsetEntries) this.#leaveIntegers(0, 0);
  }

  #addToOthers(member: Uint8Array): void {
    if (member.length > MAX_PACKED_MEMBER_BYTES) this.#moveIntoTable();
    this.form.add(member, NO_VALUE);
    if (this.form.size > this.#settings.setMaxPackedEntries) this.#moveIntoTable();
    else this.#limitBytes();
  }

  /** For a form that takes a member of this length, or so many more. */
  #leaveIntegers(bytes: number, more: number): void {
    const isSmall = this.form.size + more <= this.#settings.setMaxPackedEntries;
    if (isSmall && bytes <= MAX_PACKED_MEMBER_BYTES) this.#moveTo(Packed.empty(PACKED_SET));
    else this.#moveIntoTable();
  }

  #limitBytes(): void {
    if (this.form instanceof Packed && this.form.bytes > MAX_PACKED_BYTES) this.#moveIntoTable();
  }

  #moveIntoTable(): void {
    if (!(this.form instanceof InTable)) this.#moveTo(InTable.empty(this.#keys));
  }

  #moveTo(to: Form): void {
    addAll(this.form, to);
    this.form = to;
  }
}

/** Adds all members of one to another, which has none of them. */
export function addAll(from: Form, to: Form): void {
  for (let i = 0; i < from.size; i++) {
    from.go(i);
    to.add(from.member, from.value);
  }
}
