/**
 * Expressions as callers write them: `o.status.eq("open").and(o.day.lt(20260101))`. The types below say what
 * there is for a field of each type; one class does all of it, and the rules (rules.ts) check it again for
 * callers without a compiler.
 */

import { show } from "../../runtime/show.ts";
import { isText, type Node, type Operator, refuse, type ValueType } from "./node.ts";
import { constantNode, operation } from "./rules.ts";

declare const valueType: unique symbol;

/** A value that is computed for each row. `T` has null in it if the value may be null. */
export interface Expression<T> {
  /** Whether the value is null. */
  isNull(): Condition<boolean>;
  /** Only for the type checker. */
  readonly [valueType]?: T;
}

/** What an expression of type `T` is compared or computed with: a value, or another expression. */
export type Operand<T> = Value<T> | Expression<Exclude<T, null> | null>;
/** A value of the caller's. Times are Dates, or milliseconds since 1970. */
export type Value<T> = Exclude<T, null> extends Date ? Date | number : Exclude<T, null>;
type NullIn<O> = O extends Expression<infer T> ? Extract<T, null> : never;
type NullOf<T, O = never> = Extract<T, null> | NullIn<O>;

/** What can be compared: everything but json and pointers. */
export interface Comparable<T> extends Expression<T> {
  /** Whether both are equal. */
  eq<O extends Operand<T>>(other: O): Condition<boolean | NullOf<T, O>>;
  /** Whether they differ. */
  ne<O extends Operand<T>>(other: O): Condition<boolean | NullOf<T, O>>;
  /** Whether it is less. */
  lt<O extends Operand<T>>(other: O): Condition<boolean | NullOf<T, O>>;
  /** Whether it is less, or equal. */
  lte<O extends Operand<T>>(other: O): Condition<boolean | NullOf<T, O>>;
  /** Whether it is greater. */
  gt<O extends Operand<T>>(other: O): Condition<boolean | NullOf<T, O>>;
  /** Whether it is greater, or equal. */
  gte<O extends Operand<T>>(other: O): Condition<boolean | NullOf<T, O>>;
  /** Whether the value is one of these. */
  in(values: Iterable<Value<T>>): Condition<boolean | NullOf<T>>;
}

/** True, false, or null: not known. */
export interface Condition<T extends boolean | null = boolean | null> extends Comparable<T> {
  /** True if all are true, false if one is false. */
  and(...others: readonly Expression<boolean | null>[]): Condition<boolean | null>;
  /** True if one is true, false if all are false. */
  or(...others: readonly Expression<boolean | null>[]): Condition<boolean | null>;
  /** False if it is true, true if it is false. */
  not(): Condition<T>;
}

/** A number or a bigint. */
export interface Numeric<T> extends Comparable<T> {
  /** The sum. */
  plus<O extends Operand<T>>(other: O): Numeric<T | NullOf<T, O>>;
  /** The difference. */
  minus<O extends Operand<T>>(other: O): Numeric<T | NullOf<T, O>>;
  /** The product. */
  times<O extends Operand<T>>(other: O): Numeric<T | NullOf<T, O>>;
  /** Of whole numbers and bigints the quotient is whole: what is behind the point is left out. */
  dividedBy<O extends Operand<T>>(other: O): Numeric<T | NullOf<T, O>>;
}

/** A string, also of a `uuid()` or an `enumOf()`. */
export interface Text<T> extends Comparable<T> {
  /** Whether it begins with this string. */
  startsWith<O extends Operand<string>>(prefix: O): Condition<boolean | NullOf<T, O>>;
  /** The strings, one after the other. */
  concat<O extends Operand<string>>(...others: O[]): Text<string | NullOf<T, O>>;
  /** In lower case. */
  lower(): Text<string | NullOf<T>>;
  /** In upper case. */
  upper(): Text<string | NullOf<T>>;
  /** The `length` of the string, as JavaScript has it. */
  length(): Numeric<number | NullOf<T>>;
}

/** Bytes of a `bytes()`. */
export interface ByteString<T> extends Comparable<T> {
  /** Whether they begin with these bytes. */
  startsWith<O extends Operand<Uint8Array>>(prefix: O): Condition<boolean | NullOf<T, O>>;
  /** How many bytes they are. */
  length(): Numeric<number | NullOf<T>>;
}

/** A time of a `timestamp()`. */
export interface Time<T> extends Comparable<T> {
  /** So many milliseconds later. */
  plus<O extends Operand<number>>(milliseconds: O): Time<T | NullOf<T, O>>;
  /** So many milliseconds earlier. */
  minus<O extends Operand<number>>(milliseconds: O): Time<T | NullOf<T, O>>;
}

/** The expression for a field whose values are of type `T`. */
export type FieldExpression<T> = unknown extends T
  ? Expression<T>
  : [Exclude<T, null>] extends [boolean]
    ? Condition<T & (boolean | null)>
    : [Exclude<T, null>] extends [number]
      ? Numeric<number | Extract<T, null>>
      : [Exclude<T, null>] extends [bigint]
        ? Numeric<bigint | Extract<T, null>>
        : [Exclude<T, null>] extends [string]
          ? Text<T>
          : [Exclude<T, null>] extends [Date]
            ? Time<T>
            : [Exclude<T, null>] extends [Uint8Array]
              ? ByteString<T>
              : Expression<T>;

/** The fields of a row, as expressions. */
export type RowExpressions<Row> = { readonly [Name in keyof Row]: FieldExpression<Row[Name]> };

const nodes = new WeakMap<object, Node>();

/** The tree of an expression; undefined if it is none. */
export function nodeOf(value: unknown): Node | undefined {
  return typeof value === "object" && value !== null ? nodes.get(value) : undefined;
}

/** All operations, on whatever node: the rules say which it has. */
class NodeExpression {
  constructor(node: Node) {
    nodes.set(this, node);
  }

  isNull() {
    return this.#apply("isNull");
  }
  eq(other: unknown) {
    return this.#apply("eq", other);
  }
  ne(other: unknown) {
    return this.#apply("ne", other);
  }
  lt(other: unknown) {
    return this.#apply("lt", other);
  }
  lte(other: unknown) {
    return this.#apply("lte", other);
  }
  gt(other: unknown) {
    return this.#apply("gt", other);
  }
  gte(other: unknown) {
    return this.#apply("gte", other);
  }
  in(values: Iterable<unknown>) {
    const node = nodes.get(this)!;
    if (typeof values !== "object" || typeof values?.[Symbol.iterator] !== "function") {
      refuse(`in takes a list of values, not ${show(values)}`);
    }
    const list = [...values].map((value) => constantNode("in", node.type, value, node.values));
    return expressionOf(operation("in", [node], list));
  }
  and(...others: unknown[]) {
    return this.#apply("and", ...others);
  }
  or(...others: unknown[]) {
    return this.#apply("or", ...others);
  }
  not() {
    return this.#apply("not");
  }
  plus(other: unknown) {
    return this.#apply("plus", other);
  }
  minus(other: unknown) {
    return this.#apply("minus", other);
  }
  times(other: unknown) {
    return this.#apply("times", other);
  }
  dividedBy(other: unknown) {
    return this.#apply("dividedBy", other);
  }
  startsWith(prefix: unknown) {
    return this.#apply("startsWith", prefix);
  }
  concat(...others: unknown[]) {
    return this.#apply("concat", ...others);
  }
  lower() {
    return this.#apply("lower");
  }
  upper() {
    return this.#apply("upper");
  }
  length() {
    return this.#apply("length");
  }

  #apply(op: Operator, ...others: unknown[]): NodeExpression {
    const node = nodes.get(this)!;
    const args = others.map((other) => {
      const given = nodeOf(other);
      if (given !== undefined) return given;
      return constantNode(op, operandType(op, node), other, node.values);
    });
    return new NodeExpression(operation(op, [node, ...args]));
  }
}

/** The type of a value that a node is compared or computed with. */
function operandType(op: Operator, node: Node): ValueType {
  if ((op === "concat" || op === "startsWith") && isText(node)) return "str";
  if (node.type === "time" && (op === "plus" || op === "minus")) return "whole";
  return node.type;
}

/** A tree as an expression. */
export function expressionOf(node: Node): NodeExpression {
  return new NodeExpression(node);
}
