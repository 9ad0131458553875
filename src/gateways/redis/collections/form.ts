/**
 * What the members of a hash or a set lie in: a set is a hash whose values are empty. There are
 * three forms (packed.ts, integers.ts, in-table.ts), and collection.ts chooses.
 *
 * A form has a current member, found by name or by position. What it gives of the current member is
 * valid until the next change.
 */

import type { Replies } from "../../resp/replies.ts";

export interface Form {
  readonly size: number;
  /** Makes a member the current one; false if it is not there, and then there is none. */
  find(member: Uint8Array): boolean;
  /** Makes the member at a position the current one: from 0 to size − 1, in the form's order. */
  go(position: number): void;
  /** The current one's name: perhaps a view, to be copied by one who keeps it. */
  readonly member: Uint8Array;
  readonly value: Uint8Array;
  /** The same as bulk strings. */
  replyMember(replies: Replies): void;
  replyValue(replies: Replies): void;
  /** Adds a member; it must not be there, which `find` has said last. */
  add(member: Uint8Array, value: Uint8Array): void;
  /** Gives the current member another value. */
  change(value: Uint8Array): void;
  /** Removes the current member. The order of the others may change, from its position on. */
  remove(): void;
  /** What the key's row says of all this. */
  row(): Uint8Array;
}

export const NO_VALUE = new Uint8Array(0);

/** The first byte of a row's value says which form it is; LARGE (large.ts) is 1. */
export const PACKED_HASH = 2;
export const PACKED_SET = 3;
export const INTEGERS = 4;

/**
 * The beginning of all of them: the form, three bytes of its own, and how many members there are.
 */
export const COUNT_AT = 4;
export const HEAD_BYTES = 8;

export function copyBytes(from: Uint8Array, to: Uint8Array, at: number): void {
  const { length } = from;
  if (length > LOOP_BYTES) to.set(from, at);
  else for (let i = 0; i < length; i++) to[at + i] = from[i];
}

/** Up to here a loop beats the call into native code. */
const LOOP_BYTES = 32;
