/**
 * Which expressions there are: from an operator and its operands to a node with its type. Whoever builds an
 * expression, and whoever reads one that was stored or sent, comes through here, so there is no tree that
 * breaks a rule.
 *
 * Numbers of both kinds compare and compute with each other; nothing else is converted, but an enum or a UUID
 * that meets a string is the string it stands for. Strings compare by their bytes in UTF-8, and enums by the order
 * of their values, as in keys and indexes.
 */

import { isBytes } from "../../runtime/bytes.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_EXPRESSION_DEPTH, MAX_EXPRESSION_NODES } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import { isUuid, msOf } from "../codec/conversions.ts";
import type { Field } from "../fields.ts";
import {
  isNumber,
  isText,
  mayBeNull,
  type Node,
  type Operator,
  refuse,
  TYPE_NAMES,
  typeOf,
  type ValueType,
} from "./node.ts";

const ORDERED: ReadonlySet<ValueType> = new Set([
  "bool",
  "whole",
  "double",
  "big",
  "str",
  "uuid",
  "enum",
  "time",
  "bytes",
]);

export function fieldNode(name: string, field: Field): Node {
  const { values } = field;
  const more = values === undefined ? {} : { values };
  const type = typeOf(field);
  return {
    op: "field",
    type,
    nullable: mayBeNull(field),
    args: [],
    name,
    size: 1,
    depth: 1,
    ...more,
  };
}

/** A value of the caller's, where one of this type is needed. */
export function constantNode(
  what: string,
  type: ValueType,
  given: unknown,
  values?: readonly string[],
): Node {
  if (given === null || given === undefined) {
    refuse(`${what}: ${show(given)} is no value to compare or compute with; use isNull()`);
  }
  const [actual, value] = checkedValue(type, given, values) ?? wrong(what, type, given, values);
  const more = actual === "enum" ? { values: values! } : {};
  const node = { op: "constant", type: actual, nullable: false, args: [], value } as const;
  return { ...node, size: 1, depth: 1, ...more };
}

/** Null as a value that is stored. */
export function nullNode(type: ValueType, values?: readonly string[]): Node {
  const more = values === undefined ? {} : { values };
  const node = { op: "constant", type, nullable: true, args: [], value: null } as const;
  return { ...node, size: 1, depth: 1, ...more };
}

function wrong(
  what: string,
  type: ValueType,
  given: unknown,
  values: readonly string[] | undefined,
): never {
  const expected = type === "enum" ? `one of ${values!.map(show).join(", ")}` : TYPE_NAMES[type];
  return refuse(`${what}: expected ${expected}, got ${show(given)}`);
}

/** The type and the value of a constant; undefined if it is of another type. */
function checkedValue(
  type: ValueType,
  given: unknown,
  values: readonly string[] | undefined,
): [ValueType, unknown] | undefined {
  switch (type) {
    case "whole":
    case "double":
      if (typeof given !== "number") return undefined;
      return Number.isSafeInteger(given) ? ["whole", given + 0] : ["double", given];
    case "big":
      return typeof given === "bigint" ? ["big", given] : undefined;
    case "bool":
      return typeof given === "boolean" ? ["bool", given] : undefined;
    case "time": {
      const ms = msOf(given);
      return ms === undefined ? undefined : ["time", ms];
    }
    case "str":
      return typeof given === "string" && given.isWellFormed() ? ["str", given] : undefined;
    case "uuid":
      return isUuid(given) ? ["uuid", given.toLowerCase()] : undefined;
    case "enum":
      return values!.includes(given as string) ? ["enum", given] : undefined;
    case "bytes":
      return isBytes(given) ? ["bytes", Uint8Array.from(given)] : undefined;
    default:
      return undefined;
  }
}

/** An operator with its operands; what it cannot be applied to is refused. */
export function operation(op: Operator, args: readonly Node[], values?: readonly Node[]): Node {
  if (op === "in") return inNode(args[0], values ?? args.slice(1));
  const [a, b] = args;
  switch (op) {
    case "isNull":
      return made(op, "bool", false, [a]);
    case "and":
    case "or":
      for (const arg of args) need(op, arg, arg.type === "bool", "a condition");
      return made(
        op,
        "bool",
        args.some(({ nullable }) => nullable),
        flattened(op, args),
      );
    case "not":
      need(op, a, a.type === "bool", "a condition");
      return made(op, "bool", a.nullable, [a]);
    case "eq":
    case "ne":
    case "lt":
    case "lte":
    case "gt":
    case "gte":
      return made(op, "bool", a.nullable || b.nullable, compared(op, a, b));
    case "startsWith": {
      const isBytes = a.type === "bytes" && b.type === "bytes";
      if (!isBytes) for (const arg of [a, b]) need(op, arg, isText(arg), "a string");
      return made(op, "bool", a.nullable || b.nullable, isBytes ? [a, b] : [text(a), text(b)]);
    }
    case "plus":
    case "minus":
    case "times":
    case "dividedBy":
      return computed(op, a, b);
    case "concat":
      for (const arg of args) need(op, arg, isText(arg), "a string");
      return made(
        op,
        "str",
        args.some(({ nullable }) => nullable),
        args.map(text),
      );
    case "lower":
    case "upper":
      need(op, a, isText(a), "a string");
      return made(op, "str", a.nullable, [text(a)]);
    case "length":
      need(op, a, isText(a) || a.type === "bytes", "a string or bytes");
      return made(op, "whole", a.nullable, [a.type === "bytes" ? a : text(a)]);
    case "text":
      need(op, a, isText(a), "a string");
      return text(a);
  }
}

function inNode(a: Node, values: readonly Node[]): Node {
  need("in", a, ORDERED.has(a.type), "a value that can be compared");
  for (const value of values) {
    const isSame = value.type === a.type || (isNumber(a) && isNumber(value));
    if (value.op !== "constant" || !isSame) refuse("in takes a list of values of its field's type");
  }
  return made("in", "bool", a.nullable, [a, ...values]);
}

/** Both sides of a comparison, in types that can be compared. */
function compared(op: Operator, a: Node, b: Node): Node[] {
  for (const arg of [a, b]) need(op, arg, ORDERED.has(arg.type), "a value that can be compared");
  if (isNumber(a) && isNumber(b)) return [a, b];
  if (a.type === "enum" && b.type === "enum") {
    if (JSON.stringify(a.values) === JSON.stringify(b.values)) return [a, b];
  } else if (a.type === b.type) return [a, b];
  if (!isText(a) || !isText(b)) {
    refuse(`${op}: ${TYPE_NAMES[a.type]} cannot be compared with ${TYPE_NAMES[b.type]}`);
  }
  const isOrder = op !== "eq" && op !== "ne";
  if (isOrder && (a.type === "enum" || b.type === "enum")) {
    refuse(
      `${op}: an enum is ordered by its own values, and cannot be compared with other strings`,
    );
  }
  return [text(a), text(b)];
}

function computed(op: Operator, a: Node, b: Node): Node {
  const nullable = a.nullable || b.nullable;
  const both = [a, b];
  if (a.type === "big" && b.type === "big") return made(op, "big", nullable, both);
  if (isNumber(a) && isNumber(b)) {
    const isDouble = a.type === "double" || b.type === "double";
    return made(op, isDouble ? "double" : "whole", nullable, both);
  }
  if (a.type === "time" && (op === "plus" || op === "minus")) {
    if (b.type === "whole") return made(op, "time", nullable, both);
    if (b.type === "time" && op === "minus") return made(op, "whole", nullable, both);
  }
  return refuse(`${op}: not of ${TYPE_NAMES[a.type]} and ${TYPE_NAMES[b.type]}`);
}

/** An enum or a UUID as the string that it stands for. */
function text(a: Node): Node {
  if (a.type === "str") return a;
  if (a.op === "constant") {
    const { values: _, ...constant } = a;
    return { ...constant, type: "str" };
  }
  return made("text", "str", a.nullable, [a]);
}

/** `a.and(b).and(c)` is one condition of three parts. */
function flattened(op: Operator, args: readonly Node[]): Node[] {
  return args.flatMap((arg) => (arg.op === op ? arg.args : [arg]));
}

function need(op: Operator, arg: Node, isRight: boolean, expected: string): void {
  if (!isRight) refuse(`${op} needs ${expected}, not ${TYPE_NAMES[arg.type]}`);
}

function made(op: Operator, type: ValueType, nullable: boolean, args: readonly Node[]): Node {
  let size = 1;
  let depth = 0;
  for (const arg of args) {
    size += arg.size;
    depth = Math.max(depth, arg.depth);
  }
  if (size > MAX_EXPRESSION_NODES || depth >= MAX_EXPRESSION_DEPTH) {
    throw new SituError(
      "SITU_TOO_LARGE",
      `an expression has at most ${MAX_EXPRESSION_NODES} parts, nested at most ` +
        `${MAX_EXPRESSION_DEPTH} deep: use in() for lists of values, or several calls`,
    );
  }
  return { op, type, nullable, args, size, depth: depth + 1 };
}
