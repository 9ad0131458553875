/** Expressions as plain JavaScript computes them: what compiled programs are compared with. */

import type { Node } from "../../src/tables/expressions/node.ts";

export type Row = Record<string, unknown>;

/** Thrown where a program fails with SITU_ARITHMETIC. */
export class ModelFailure extends Error {}

const MAX = BigInt(Number.MAX_SAFE_INTEGER);

function bytesOf(value: unknown): Buffer {
  return value instanceof Uint8Array ? Buffer.from(value) : Buffer.from(value as string);
}

/** Values of one type in their order. */
export function compareValues(node: Node, a: unknown, b: unknown): number {
  if (node.type === "enum") {
    return node.values!.indexOf(a as string) - node.values!.indexOf(b as string);
  }
  if (typeof a === "string" || a instanceof Uint8Array)
    return Buffer.compare(bytesOf(a), bytesOf(b));
  const [x, y] = [a, b].map((value) => (value instanceof Date ? value.getTime() : value)) as [
    number,
    number,
  ];
  return x < y ? -1 : x > y ? 1 : x === y ? 0 : Number.NaN;
}

function arithmetic(node: Node, a: unknown, b: unknown): unknown {
  const { op, type } = node;
  if (type === "double") {
    const [x, y] = [a as number, b as number];
    if (op === "plus") return x + y;
    if (op === "minus") return x - y;
    if (op === "times") return x * y;
    if (y === 0) throw new ModelFailure("division by zero");
    return x / y;
  }
  // All others are exact.
  const [x, y] = [a, b].map((v) => BigInt(v instanceof Date ? v.getTime() : (v as number)));
  if (op === "dividedBy" && y === 0n) throw new ModelFailure("division by zero");
  const exact = op === "plus" ? x + y : op === "minus" ? x - y : op === "times" ? x * y : x / y;
  if (type === "big") return exact;
  if (exact > MAX || exact < -MAX) throw new ModelFailure("out of range");
  if (type === "time" && (exact > 8_640_000_000_000_000n || exact < -8_640_000_000_000_000n)) {
    throw new ModelFailure("out of range");
  }
  return Number(exact);
}

/** The value of an expression for a row; times are numbers. */
export function evaluate(node: Node, row: Row): unknown {
  const { op, args } = node;
  if (op === "field") {
    const value = row[node.name!];
    return value instanceof Date ? value.getTime() : value;
  }
  if (op === "constant") return node.value;
  // What is never null is not computed.
  if (op === "isNull") return args[0].nullable && evaluate(args[0], row) === null;
  if (op === "and" || op === "or") {
    const decisive = op === "or";
    let isNull = false;
    for (const arg of args) {
      const value = evaluate(arg, row);
      if (value === decisive) return decisive;
      if (value === null) isNull = true;
    }
    return isNull ? null : !decisive;
  }
  const values: unknown[] = [];
  for (const arg of op === "in" ? args.slice(0, 1) : args) {
    const value = evaluate(arg, row);
    if (value === null) return null;
    values.push(value);
  }
  const [a, b] = values;
  switch (op) {
    case "eq":
      return compareValues(args[0], a, b) === 0;
    case "ne":
      return compareValues(args[0], a, b) !== 0;
    case "lt":
      return compareValues(args[0], a, b) < 0;
    case "lte":
      return compareValues(args[0], a, b) <= 0;
    case "gt":
      return compareValues(args[0], a, b) > 0;
    case "gte":
      return compareValues(args[0], a, b) >= 0;
    case "in":
      return args.slice(1).some(({ value }) => compareValues(args[0], a, value) === 0);
    case "startsWith": {
      const [whole, prefix] = [bytesOf(a), bytesOf(b)];
      return whole.subarray(0, prefix.length).equals(prefix);
    }
    case "not":
      return !a;
    case "concat":
      return values.join("");
    case "lower":
      return (a as string).toLowerCase();
    case "upper":
      return (a as string).toUpperCase();
    case "length":
      return (a as string | Uint8Array).length;
    case "text":
      return a;
    default:
      return arithmetic(node, a, b);
  }
}
