/**
 * Keys as callers write them, made our own before an operation begins that looks at its key more
 * than once, or that is set up before it does: a list may have getters, be a proxy, or change
 * meanwhile. Strings and numbers are what they are, and most keys are one of these.
 */

import { byteLength, isBytes, isGone } from "../runtime/bytes.ts";
import { MAX_FIELDS } from "../runtime/limits.ts";
import { msOfDate } from "./codec/conversions.ts";
import type { Field } from "./fields.ts";
import type { Table } from "./table.ts";

/** The same key in a list of our own. What is no key stays none, for the codec to refuse. */
export function ownKey(key: unknown): unknown {
  return typeof key === "object" && Array.isArray(key) ? ownList(key) : key;
}

/** The same with copies of bytes, and numbers for Dates, for a key that is used later or sent. */
export function keptKey(key: unknown): unknown {
  if (typeof key !== "object") return key;
  return Array.isArray(key) ? ownList(key).map(keptValue) : keptValue(key);
}

/** The same in a form that tells the keys of a table apart. */
export function canonicalKey({ fields, key: names, singleKey }: Table, given: unknown): unknown {
  const key = keptKey(given);
  if (singleKey) return canonicalPart(fields[names[0]], key);
  if (!Array.isArray(key) || key.length !== names.length) return key;
  return key.map((part, i) => canonicalPart(fields[names[i]], part));
}

/** A part of a kept key in the one form that it has: a UUID may be written in upper case, too. */
export function canonicalPart({ kind }: Field, value: unknown): unknown {
  return kind === "uuid" && typeof value === "string" ? value.toLowerCase() : value;
}

function ownList(key: readonly unknown[]): unknown[] {
  const list: unknown[] = [];
  // No key has more values than a table has fields; the length of a proxy can be anything.
  const length = Math.min(key.length, MAX_FIELDS + 1);
  for (let i = 0; i < length; i++) list.push(key[i]);
  return list;
}

function keptValue(value: unknown): unknown {
  if (value instanceof Date) {
    const ms = msOfDate(value);
    // An invalid one stays what it is, for the codec to refuse.
    return Number.isNaN(ms) ? value : ms;
  }
  return isBytes(value) && (byteLength(value) > 0 || !isGone(value))
    ? new Uint8Array(value)
    : value;
}
