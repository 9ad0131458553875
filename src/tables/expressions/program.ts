/**
 * A program: what a bulk operation does with each row of a table. It is data: `programText` makes a text of it
 * for another thread or machine, and `programFrom` checks and reads such a text, for the table as it is there.
 *
 *   { "version": 1, "table": "order",
 *     "where": ["and", ["eq", ["field", "status"], ["enum", "open"]], …],
 *     "task": { "kind": "update", "set": [["total", ["times", ["field", "total"], ["big", "2"]]]] } }
 *
 * Its *shape* is the same text without the values of constants. Programs of one shape share the code that they are
 * compiled to, and their constants, in the order in which they stand in the text, are its parameters.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_EXPRESSION_DEPTH } from "../../runtime/limits.ts";
import { show } from "../../runtime/show.ts";
import type { Table } from "../table.ts";
import { AGGREGATES, type AggregateName, aggregateNode } from "./aggregates.ts";
import { checkAssignment, jsonConstant } from "./assignment.ts";
import { type Node, OPERATORS, type Operator, refuse, TYPE_NAMES, type ValueType } from "./node.ts";
import { constantNode, fieldNode, nullNode, operation } from "./rules.ts";

export const PROGRAM_VERSION = 1;

export interface NamedAggregate {
  readonly as: string;
  readonly name: AggregateName;
  readonly of: Node | undefined;
}

export type Task =
  | { readonly kind: "update"; readonly set: readonly (readonly [string, Node])[] }
  | { readonly kind: "delete" }
  | { readonly kind: "select"; readonly columns: readonly string[] }
  | {
      readonly kind: "aggregate";
      readonly groupBy: readonly string[];
      readonly values: readonly NamedAggregate[];
    };

export interface Program {
  readonly table: string;
  readonly where: Node | undefined;
  readonly task: Task;
}

/** The expressions of a program, in the order of its text. */
export function nodesOf({ where, task }: Program): Node[] {
  const nodes = where === undefined ? [] : [where];
  if (task.kind === "update") return [...nodes, ...task.set.map(([, node]) => node)];
  if (task.kind !== "aggregate") return nodes;
  return [...nodes, ...task.values.flatMap(({ of }) => (of === undefined ? [] : [of]))];
}

type Json = unknown;

function written(program: Program, constant: (node: Node) => Json): Json {
  const write = (node: Node): Json => {
    if (node.op === "field") return ["field", node.name];
    if (node.op === "constant") return constant(node);
    return [node.op, ...node.args.map(write)];
  };
  const { table, where, task } = program;
  return {
    version: PROGRAM_VERSION,
    table,
    where: where === undefined ? null : write(where),
    task:
      task.kind === "update"
        ? { kind: task.kind, set: task.set.map(([name, node]) => [name, write(node)]) }
        : task.kind === "aggregate"
          ? {
              ...task,
              values: task.values.map(({ as, name, of }) => [as, name, of ? write(of) : null]),
            }
          : task,
  };
}

/** A program as a text. */
export function programText(program: Program): string {
  return JSON.stringify(
    written(program, ({ type, value, values }) => {
      if (type === "enum") return [type, value, values];
      if (value === null) return [type, null];
      if (type === "big") return [type, String(value)];
      if (type === "bytes") return [type, Buffer.from(value as Uint8Array).toString("base64")];
      // JSON has no NaN and no infinity.
      return [type, type === "double" ? String(value) : value];
    }),
  );
}

/** What programs have in common that differ in their constants only. */
export function shapeOf(program: Program): string {
  return JSON.stringify(
    written(program, ({ type, value, values }) => [type, value === null ? null : "?", values ?? 0]),
    // The list of an `in` is one parameter, however long it is.
    (_, value: Json) => (Array.isArray(value) && value[0] === "in" ? value.slice(0, 3) : value),
  );
}

/** Reads a program for a table. Fails with SITU_PROTOCOL if the text is none. */
export function programFrom(text: string, table: Table): Program {
  try {
    return read(JSON.parse(text) as Json, table);
  } catch (cause) {
    if (cause instanceof SituError && cause.code === "SITU_UNSUPPORTED") throw cause;
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new SituError("SITU_PROTOCOL", `not a program for table ${table.name}: ${why}`, {
      cause,
    });
  }
}

function objectOf(value: Json): Record<string, Json> {
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as Record<string, Json>;
  return refuse(`expected an object, got ${show(value)}`);
}

function listOf(value: Json): readonly Json[] {
  return Array.isArray(value) ? value : refuse(`expected a list, got ${show(value)}`);
}

function read(value: Json, table: Table): Program {
  const { version, table: name, where, task } = objectOf(value);
  if (version !== PROGRAM_VERSION) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `programs of version ${show(version)}: this one reads version ${PROGRAM_VERSION}`,
    );
  }
  if (name !== table.name) refuse(`it is for table ${show(name)}`);
  const condition = where === null ? undefined : readNode(where, table, 0);
  if (condition !== undefined && condition.type !== "bool") refuse("its where is no condition");
  return { table: table.name, where: condition, task: readTask(objectOf(task), table) };
}

function fieldName(name: Json, table: Table): string {
  if (typeof name === "string" && Object.hasOwn(table.fields, name)) return name;
  return refuse(`there is no field ${show(name)}`);
}

function readTask(task: Record<string, Json>, table: Table): Task {
  switch (task.kind) {
    case "delete":
      return { kind: "delete" };
    case "select":
      return {
        kind: "select",
        columns: listOf(task.columns).map((name) => fieldName(name, table)),
      };
    case "update":
      return {
        kind: "update",
        set: listOf(task.set).map((each) => {
          const [given, node] = listOf(each);
          const name = fieldName(given, table);
          return [name, checkAssignment(table, name, readNode(node, table, 0))] as const;
        }),
      };
    case "aggregate":
      return {
        kind: "aggregate",
        groupBy: listOf(task.groupBy).map((name) => fieldName(name, table)),
        values: listOf(task.values).map((each) => {
          const [as, name, of] = listOf(each) as [string, AggregateName, Json];
          if (typeof as !== "string" || !AGGREGATES.includes(name))
            refuse(`no aggregate ${show(each)}`);
          const node = of === null ? undefined : readNode(of, table, 0);
          return { as, ...aggregateNode(name, node) };
        }),
      };
    default:
      return refuse(`unknown task ${show(task.kind)}`);
  }
}

function readNode(value: Json, table: Table, depth: number): Node {
  if (depth > MAX_EXPRESSION_DEPTH) refuse("it is nested too deep");
  const [op, ...args] = listOf(value);
  if (op === "field") {
    const name = fieldName(args[0], table);
    return fieldNode(name, table.fields[name]);
  }
  if (OPERATORS.includes(op as Operator)) {
    const least = UNARY.has(op as Operator) ? 1 : 2;
    if (args.length < least) refuse(`${show(op)} has too few operands`);
    return operation(
      op as Operator,
      args.map((arg) => readNode(arg, table, depth + 1)),
    );
  }
  return readConstant(op as ValueType, args);
}

/** Those that need no second operand. */
const UNARY: ReadonlySet<Operator> = new Set([
  "isNull",
  "not",
  "lower",
  "upper",
  "length",
  "text",
  "in",
  "and",
  "or",
  "concat",
]);

function readConstant(type: ValueType, [given, values]: readonly Json[]): Node {
  if (!Object.hasOwn(TYPE_NAMES, type)) refuse(`unknown operator or type ${show(type)}`);
  const names = type === "enum" ? (listOf(values) as readonly string[]) : undefined;
  if (given === null) return nullNode(type, names);
  switch (type) {
    case "big":
      return constantNode("big", type, BigInt(given as string));
    case "bytes":
      return constantNode("bytes", type, new Uint8Array(Buffer.from(given as string, "base64")));
    case "double":
      return constantNode("double", type, Number(given));
    case "json":
      JSON.parse(given as string);
      return jsonConstant(given as string);
    default:
      return constantNode(type, type, given, names);
  }
}
