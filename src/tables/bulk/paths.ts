/**
 * How a condition leads to rows: by the key, by an index, or not at all. Of a condition that is an `and`, every part must be
 * true; a part that compares a field with a constant restricts that field, and restrictions of the first fields of a
 * key or index are a range of it. The condition is checked for every row that is found all the same, so a path may
 * find more rows than match, and never fewer.
 *
 * A unique index leaves out rows with a null in it: it is a path only if the condition restricts each field that may be null.
 */

import { MAX_KEY_BYTES, PLAN_IN_VALUES } from "../../runtime/limits.ts";
import { bigRangeOfField, rangeOfField } from "../expressions/assignment.ts";
import type { Node } from "../expressions/node.ts";
import type { Field } from "../fields.ts";
import type { IndexDefinition } from "../indexes/definition.ts";
import type { Bounds } from "../indexes/read-options.ts";
import type { Table } from "../table.ts";

/** What is known of a field: it has one of these values, or lies between bounds. */
interface Restriction {
  values?: readonly unknown[];
  bounds: { gte?: unknown; gt?: unknown; lte?: unknown; lt?: unknown; prefix?: unknown };
}

export interface Path {
  readonly by: "key" | "index" | "scan";
  readonly index?: string;
  /** Exact keys, for lookups: every field of the key is known. */
  readonly keys?: readonly unknown[];
  /** Ranges of the key or index, which do not overlap. */
  readonly ranges: readonly Bounds<unknown>[];
  /** The fields that the ranges are made of. */
  readonly fields: readonly string[];
  /** At most so many rows are found, whatever the table holds. */
  readonly atMost: number;
  /** The part of the table's rows to assume where counting was given up. */
  readonly share: number;
}

export const FULL_SCAN: Path = {
  by: "scan",
  ranges: [{}],
  fields: [],
  atMost: Number.POSITIVE_INFINITY,
  share: 1,
};

/** Guesses for ranges that are too long to be counted. */
const EQUAL_SHARE = 0.05;
const RANGE_SHARE = 0.3;

/** What a condition says of single fields; undefined if no row can match. */
function restrictionsOf(
  table: Table,
  where: Node | undefined,
): Map<string, Restriction> | undefined {
  const found = new Map<string, Restriction>();
  const parts = where === undefined ? [] : where.op === "and" ? where.args : [where];
  for (const part of parts) {
    const [first, ...others] = part.args;
    if (part.op === "field") {
      if (!restrict(found, part.name!, "eq", [true])) return undefined;
      continue;
    }
    if (first?.op !== "field" || others.some(({ op }) => op !== "constant")) continue;
    const field = table.fields[first.name!];
    const values = others.map(({ value }) => value).filter((value) => fits(field, value));
    const isEqual = part.op === "eq" || part.op === "in";
    // A value that the field cannot have: no row is equal, and order is left to the condition.
    if (values.length < others.length && !isEqual) continue;
    if (part.op === "isNull") {
      if (field.nullable) restrict(found, first.name!, "eq", [null]);
    } else if (!restrict(found, first.name!, part.op, values)) return undefined;
  }
  return found;
}

/** Adds what a part of the condition says; false if nothing is left. */
function restrict(
  found: Map<string, Restriction>,
  name: string,
  op: Node["op"],
  values: readonly unknown[],
): boolean {
  const known = found.get(name) ?? { bounds: {} };
  found.set(name, known);
  switch (op) {
    case "eq":
    case "in":
      // One list is enough: the other part of the condition is checked for each row.
      known.values ??= distinct(values);
      return known.values.length > 0;
    case "lt":
    case "lte":
    case "gt":
    case "gte":
      known.bounds[op] ??= values[0];
      return true;
    case "startsWith":
      known.bounds.prefix ??= values[0];
      return true;
    default:
      return true;
  }
}

/** Each value once: two ranges must not find the same row. */
function distinct(values: readonly unknown[]): unknown[] {
  const byText = new Map<unknown, unknown>();
  for (const value of values) {
    byText.set(value instanceof Uint8Array ? Buffer.from(value).toString("latin1") : value, value);
  }
  return [...byText.values()];
}

/** Whether a field can have a value, and a key with it can be written. */
function fits(field: Field, value: unknown): boolean {
  const range = rangeOfField(field) ?? bigRangeOfField(field);
  if (range !== undefined) {
    const isWhole = typeof value === "bigint" || Number.isSafeInteger(value);
    return isWhole && (value as number) >= range[0] && (value as number) <= range[1];
  }
  if (field.kind !== "str" && field.kind !== "bytes") return true;
  const bytes = typeof value === "string" ? Buffer.byteLength(value) : (value as Uint8Array).length;
  return bytes <= Math.min(field.max ?? MAX_KEY_BYTES, MAX_KEY_BYTES);
}

/** All ways to the rows of a condition. None if no row can match. */
export function pathsOf(
  table: Table,
  indexes: readonly IndexDefinition[],
  where: Node | undefined,
): Path[] {
  const known = restrictionsOf(table, where);
  if (known === undefined) return [];
  const paths: Path[] = [];
  const byKey = pathBy(table.key, table.singleKey, table.ordered, true, known);
  if (byKey !== undefined) paths.push({ ...byKey, by: "key" });
  for (const { name, on, kind, unique } of indexes) {
    const isWhole =
      !unique || on.every((field) => !table.fields[field].nullable || isKnown(known.get(field)));
    const path = isWhole
      ? pathBy(on, on.length === 1, kind === "ordered", unique, known)
      : undefined;
    if (path !== undefined) paths.push({ ...path, by: "index", index: name });
  }
  return [...paths, FULL_SCAN];
}

/** Whether a field is known not to be null. */
function isKnown(known: Restriction | undefined): boolean {
  if (known === undefined) return false;
  return known.values === undefined
    ? Object.keys(known.bounds).length > 0
    : !known.values.includes(null);
}

function pathBy(
  names: readonly string[],
  isSingle: boolean,
  isOrdered: boolean,
  isUnique: boolean,
  known: ReadonlyMap<string, Restriction>,
): Omit<Path, "by"> | undefined {
  let lists: unknown[][] = [[]];
  let used = 0;
  while (used < names.length) {
    const values = known.get(names[used])?.values;
    if (values === undefined || lists.length * values.length > PLAN_IN_VALUES) break;
    lists = lists.flatMap((list) => values.map((value) => [...list, value]));
    used++;
  }
  const written = (list: readonly unknown[]): unknown => (isSingle ? list[0] : list);
  const isExact = used === names.length;
  const fields = names.slice(0, used);
  if (isExact) {
    const atMost = isUnique ? lists.length : Number.POSITIVE_INFINITY;
    const share = Math.min(1, lists.length * EQUAL_SHARE);
    const ranges = lists.map((list) => ({ eq: written(list) }));
    const hasNull = lists.some((list) => list.includes(null));
    // Only an ordered index can be asked for null.
    if (hasNull && !isOrdered) return undefined;
    return { keys: lists.map(written), ranges, fields, atMost, share };
  }
  if (!isOrdered) return undefined;
  const bounds = known.get(names[used])?.bounds ?? {};
  const given = Object.entries(bounds);
  if (used === 0 && given.length === 0) return undefined;
  const ranges = lists.map((list): Bounds<unknown> => {
    const range: Record<string, unknown> = used > 0 ? { eq: list } : {};
    for (const [name, value] of given) range[name] = isSingle ? value : [...list, value];
    return range;
  });
  const share = Math.min(
    1,
    lists.length * EQUAL_SHARE ** used * (given.length > 0 ? RANGE_SHARE : 1),
  );
  const named = given.length > 0 ? [...fields, names[used]] : fields;
  return { ranges, fields: named, atMost: Number.POSITIVE_INFINITY, share };
}
