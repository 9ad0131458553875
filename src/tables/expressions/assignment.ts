/**
 * What `set` may store in a field: a value of the field's own type, whole numbers also in an f64. Strings that are
 * computed fit neither an enum nor a UUID. A value that does not fit its field, such as 300 in a u8, is found when it is
 * computed; a constant, here.
 */

import { show } from "../../runtime/show.ts";
import { jsonText } from "../codec/values.ts";
import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { nodeOf } from "./expression.ts";
import { mayBeNull, type Node, refuse, TYPE_NAMES, typeOf } from "./node.ts";
import { constantNode, nullNode } from "./rules.ts";

/** The range of whole numbers of a field; undefined if it has none. */
export function rangeOfField({ kind }: Field): readonly [number, number] | undefined {
  switch (kind) {
    case "u8":
      return [0, 0xff];
    case "u16":
      return [0, 0xffff];
    case "u32":
      return [0, 0xffffffff];
    case "i32":
      return [-0x80000000, 0x7fffffff];
    case "u53":
      return [0, Number.MAX_SAFE_INTEGER];
    case "i53":
      return [-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
    default:
      return undefined;
  }
}

/** The same for bigints. */
export function bigRangeOfField({ kind }: Field): readonly [bigint, bigint] | undefined {
  if (kind === "u64") return [0n, 2n ** 64n - 1n];
  return kind === "i64" ? [-(2n ** 63n), 2n ** 63n - 1n] : undefined;
}

/** What the caller wants a field to be: an expression or a value. */
export function assignedNode(table: Table, name: string, given: unknown): Node {
  const field = table.fields[name];
  const where = `${table.name}.${name}`;
  const node = nodeOf(given);
  if (node !== undefined) return checkAssignment(table, name, node);
  const type = typeOf(field);
  if (given === null && mayBeNull(field)) return nullNode(type, field.values);
  if (type === "json") return jsonConstant(jsonText(given, where));
  if (type === "pointer") refuse(`${where}: a pointer is set with update, row by row`);
  if (given === null) refuse(`${where} is not nullable, and cannot be set to null`);
  const constant = constantNode(where, type, given, field.values);
  return checkAssignment(table, name, constant);
}

/** A json value, which can only be stored. */
export function jsonConstant(text: string): Node {
  const node = { op: "constant", type: "json", nullable: false, args: [], value: text } as const;
  return { ...node, size: 1, depth: 1 };
}

/** Refuses to store what is of another type than the field. */
export function checkAssignment(table: Table, name: string, node: Node): Node {
  const where = `${table.name}.${name}`;
  if (table.key.includes(name)) {
    refuse(`${where} is part of the key and cannot be updated; delete the row and insert it anew`);
  }
  const field = table.fields[name];
  const type = typeOf(field);
  const isSame =
    type === node.type
      ? type !== "enum" || JSON.stringify(field.values) === JSON.stringify(node.values)
      : (type === "double" && node.type === "whole") || (type === "str" && isString(node));
  const isStorable = type !== "json" && type !== "pointer" ? true : node.op === "constant";
  if (!isSame || !isStorable) {
    refuse(`${where} is ${TYPE_NAMES[type]}, and cannot be set to ${TYPE_NAMES[node.type]}`);
  }
  if (node.op === "constant" && node.value !== null) checkRange(where, field, node.value);
  return node;
}

const isString = ({ type }: Node): boolean => type === "uuid" || type === "enum";

function checkRange(where: string, field: Field, value: unknown): void {
  const range = rangeOfField(field) ?? bigRangeOfField(field);
  if (range === undefined || field.kind === "f64") return;
  const number = value as number;
  if (number < range[0] || number > range[1]) {
    refuse(`${where}: expected ${range[0]} to ${range[1]}, got ${show(value)}`);
  }
}
