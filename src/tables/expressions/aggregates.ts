/**
 * What can be computed over many rows: count, sum, min, max, avg. Each leaves out the rows for which its
 * expression is null. The sum of no rows is 0; of no rows there is no smallest, no largest and no average value: they are
 * null.
 */

import { show } from "../../runtime/show.ts";
import { type Expression, nodeOf } from "./expression.ts";
import { isNumber, type Node, refuse, TYPE_NAMES } from "./node.ts";

declare const resultType: unique symbol;

/** A value over many rows, for `aggregate`. */
export interface Aggregate<T> {
  /** Only for the type checker. */
  readonly [resultType]?: T;
}

export const AGGREGATES = ["count", "sum", "min", "max", "avg"] as const;
export type AggregateName = (typeof AGGREGATES)[number];

/** What is computed, and of what: `count()` alone counts rows. */
export interface AggregateNode {
  readonly name: AggregateName;
  readonly of: Node | undefined;
}

const made = new WeakMap<object, AggregateNode>();

/** What an aggregate of the caller's is; undefined if it is none. */
export function aggregateOf(value: unknown): AggregateNode | undefined {
  return typeof value === "object" && value !== null ? made.get(value) : undefined;
}

/** Checks that an aggregate can be computed of an expression. */
export function aggregateNode(name: AggregateName, of: Node | undefined): AggregateNode {
  if (of === undefined) {
    if (name !== "count") refuse(`${name} needs an expression, as in ${name}(row.total)`);
    return { name, of };
  }
  const { type } = of;
  const isRight =
    name === "count" ||
    (name === "sum" || name === "avg"
      ? isNumber(of) || type === "big"
      : type !== "json" && type !== "pointer");
  if (!isRight) refuse(`${name} cannot be computed of ${TYPE_NAMES[type]}`);
  return { name, of };
}

function aggregate<T>(name: AggregateName, of: unknown): Aggregate<T> {
  const node = nodeOf(of);
  if (of !== undefined && node === undefined) {
    refuse(`${name} takes an expression, as in ${name}(row.total), not ${show(of)}`);
  }
  const value: Aggregate<T> = Object.freeze({});
  made.set(value, aggregateNode(name, node));
  return value;
}

/** The number of rows; with an expression, of those for which it is not null. */
export const count = (of?: Expression<unknown>): Aggregate<number> => aggregate("count", of);

/** The sum of numbers, or of bigints. */
export const sum = <T extends number | bigint | null>(
  of: Expression<T>,
): Aggregate<[Exclude<T, null>] extends [bigint] ? bigint : number> => aggregate("sum", of);

/** The smallest value. */
export const min = <T>(of: Expression<T>): Aggregate<T | null> => aggregate("min", of);

/** The largest value. */
export const max = <T>(of: Expression<T>): Aggregate<T | null> => aggregate("max", of);

/** The average, a number also of bigints. */
export const avg = (of: Expression<number | bigint | null>): Aggregate<number | null> =>
  aggregate("avg", of);
