/** What `get`, `scan` and `count` take beside the table: their types, and the checks of them. */

import { SituError } from "../../runtime/errors.ts";
import { show } from "../../runtime/show.ts";
import { keptKey } from "../copied-key.ts";
import type { Invalid } from "../invalid.ts";
import type { Way } from "../table.ts";

/** The first one to all of the values of a composite key, as types. */
export type Leading<T extends readonly unknown[]> = T extends readonly [
  ...infer Before,
  infer _Last,
]
  ? Before extends readonly []
    ? T
    : T | Leading<Before>
  : never;

/** How a bound is written: a value, or a list of the first values of a composite key. */
export type BoundOf<Key> = Key extends readonly unknown[] ? Leading<Key> : Key;
type PrefixOf<Key> = Key extends readonly unknown[]
  ? Leading<Key>
  : Key extends string | Uint8Array
    ? Key
    : never;

/** Bounds that are given together all count. */
export interface Bounds<Bound, Prefix = Bound> {
  readonly eq?: Bound | undefined;
  readonly gte?: Bound | undefined;
  readonly gt?: Bound | undefined;
  readonly lte?: Bound | undefined;
  readonly lt?: Bound | undefined;
  /**
   * Matches strings or bytes that start with the given value. In a composite key it applies to the
   * last field given; the fields before it must be equal.
   */
  readonly prefix?: Prefix | undefined;
}

type BoundsOf<W, Name> = W extends Way
  ? W["kind"] extends "ordered"
    ? Bounds<BoundOf<W["key"]>, PrefixOf<W["key"]>>
    : Name extends ""
      ? unknown
      : { readonly eq: W["key"] }
  : never;

type NameOf<Name> = Name extends "" ? { readonly index?: undefined } : { readonly index: Name };

export interface Limits {
  /** The most rows to give out. */
  readonly limit?: number | undefined;
}
export interface Direction {
  /** From the last one to the first. */
  readonly reverse?: boolean | undefined;
}
type DirectionOf<W> = W extends { readonly kind: "ordered" } ? Direction : unknown;

/** For tables of which nothing is known at compile time. */
export type AnyCountOptions = Bounds<unknown> & { readonly index?: string | undefined };
export type AnyScanOptions = AnyCountOptions & Limits & Direction;

/** What `count` takes: an index, and bounds of its key or of the table's. */
export type CountOptions<Ways> = unknown extends Ways
  ? AnyCountOptions
  : { [Name in keyof Ways]: NameOf<Name> & BoundsOf<Ways[Name], Name> }[keyof Ways];

/** What `scan` takes: an index, bounds, `limit`, and `reverse` where there is an order. */
export type ScanOptions<Ways> = unknown extends Ways
  ? AnyScanOptions
  : {
      [Name in keyof Ways]: NameOf<Name> &
        BoundsOf<Ways[Name], Name> &
        DirectionOf<Ways[Name]> &
        Limits;
    }[keyof Ways];

/** The names of the indexes. */
export type IndexName<Ways> = Exclude<keyof Ways & string, "">;

/** The name of an index that leads to one row at most, or why it does not. */
export type UniqueIndex<Ways, Name extends string> = Name extends keyof Ways
  ? Ways[Name] extends { readonly unique: true }
    ? Name
    : Invalid<`index ${Name} is not unique and leads to many rows: use scan`>
  : Name;

export type IndexKey<Ways, Name> = Name extends keyof Ways
  ? Ways[Name] extends { readonly key: infer Key }
    ? Key
    : never
  : never;

/** What `get` takes to find a row through a unique index. */
export interface GetOptions<Name> {
  /** The index that the key is one of. */
  readonly index: Name;
}

const BOUNDS = ["eq", "gte", "gt", "lte", "lt", "prefix"] as const;
const SCAN = ["index", ...BOUNDS, "reverse", "limit"];
const COUNT = ["index", ...BOUNDS];
const GET = ["index"];

function refuse(why: string): never {
  throw new SituError("SITU_TYPE", why);
}

function checkNames(call: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    refuse(`${call}: the options are an object, such as { ${known.at(-1)}: … }`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) refuse(`${call} has no option ${name}; it has ${known.join(", ")}`);
  }
}

/** The options of a scan with everything that was left out filled in. */
export interface CheckedScan {
  readonly index: string | undefined;
  readonly bounds: Bounds<unknown>;
  /** The names of the bounds that are there. */
  readonly given: readonly string[];
  readonly reverse: boolean;
  readonly limit: number;
}

export function checkedScan(
  call: "scan" | "count",
  table: string,
  options: unknown = {},
): CheckedScan {
  const what = `${call}(${table}, …)`;
  checkNames(what, options, call === "scan" ? SCAN : COUNT);
  const { index, reverse = false, limit = Number.POSITIVE_INFINITY } = options as AnyScanOptions;
  if (typeof reverse !== "boolean") {
    refuse(`${what}: reverse is true or false, not ${show(reverse)}`);
  }
  if (limit !== Number.POSITIVE_INFINITY && !(Number.isSafeInteger(limit) && limit >= 0)) {
    refuse(`${what}: limit is a whole number from 0 on, not ${show(limit)}`);
  }
  // Each is read once, and is then our own: the scan may begin much later.
  const bounds: Partial<Record<(typeof BOUNDS)[number], unknown>> = {};
  for (const name of BOUNDS) bounds[name] = keptKey((options as Bounds<unknown>)[name]);
  const given = BOUNDS.filter((name) => bounds[name] !== undefined);
  return { index, bounds, given, reverse, limit };
}

/** The index that a `get` names; undefined for the key. */
export function checkedGet(table: string, options: unknown): string | undefined {
  if (!isPlainGet(options)) checkNames(`get(${table}, …)`, options, GET);
  return (options as Partial<GetOptions<string>>).index;
}

/** Options that are right, found out without making anything: a `get` takes less than a list. */
function isPlainGet(options: unknown): boolean {
  if (typeof options !== "object" || options === null || Array.isArray(options)) return false;
  for (const name in options) if (name !== "index") return false;
  return true;
}
