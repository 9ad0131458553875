/**
 * The code of a program's task: what is done with a row that matches. It only reads: what it returns is taken when it is
 * known that the row was read in one piece.
 *
 *   select      the columns, as an object
 *   delete      { key }
 *   update      { key, changes }, or true if all fields have their new values already
 *   aggregate   a position, at which the columns hold what is to be accumulated
 */

import type { Field } from "../fields.ts";
import type { Table } from "../table.ts";
import { bigRangeOfField, rangeOfField } from "./assignment.ts";
import type { Generator } from "./generate.ts";
import type { Loads } from "./loads.ts";
import { mayBeNull, type Node, typeOf } from "./node.ts";
import type { Program, Task } from "./program.ts";
import { fieldNode } from "./rules.ts";

const prop = (name: string): string => JSON.stringify(name);

/** Statements that end with a `return`. */
export function taskCode(table: Table, task: Task, loads: Loads, generator: Generator): string {
  switch (task.kind) {
    case "select": {
      const columns = task.columns.map((name) => `${prop(name)}: ${loads.shown(name)}`);
      return `return { ${columns.join(", ")} };`;
    }
    case "delete":
      return `return { key: ${keyCode(table, loads)} };`;
    case "update":
      return updateCode(table, task.set, loads, generator);
    case "aggregate":
      return `const n = context.next++; ${columnsOf(table, task)
        .map((node, i) => `c${i}[n] = ${generator.value(node)};`)
        .join(" ")} return n;`;
  }
}

/** What an aggregate reads of each row: the groups, then what is computed of. */
export function columnsOf(table: Table, task: Task & { kind: "aggregate" }): Node[] {
  const groups = task.groupBy.map((name) => fieldNode(name, table.fields[name]));
  return [...groups, ...task.values.flatMap(({ of }) => (of === undefined ? [] : [of]))];
}

/** The fields that a program names. */
export function fieldsOf({ where, task }: Program): Set<string> {
  const names = new Set<string>();
  const visit = (node: Node): void => {
    if (node.op === "field") names.add(node.name!);
    for (const arg of node.args) visit(arg);
  };
  if (where !== undefined) visit(where);
  if (task.kind === "select") for (const name of task.columns) names.add(name);
  if (task.kind === "update") {
    for (const [name, node] of task.set) {
      names.add(name);
      visit(node);
    }
  }
  if (task.kind === "aggregate") {
    for (const name of task.groupBy) names.add(name);
    for (const { of } of task.values) if (of !== undefined) visit(of);
  }
  return names;
}

function keyCode(table: Table, loads: Loads): string {
  const parts = table.key.map((name) =>
    table.fields[name].kind === "timestamp" ? loads.value(name) : loads.shown(name),
  );
  return table.singleKey ? parts[0] : `[${parts.join(", ")}]`;
}

function updateCode(
  table: Table,
  set: readonly (readonly [string, Node])[],
  loads: Loads,
  generator: Generator,
): string {
  const values: string[] = [];
  const checks: string[] = [];
  const same: string[] = [];
  const changes: string[] = [];
  set.forEach(([name, node], i) => {
    const value = `v${i}`;
    const field = table.fields[name];
    values.push(`const ${value} = ${generator.value(node)};`);
    checks.push(checkCode(table, name, field, node, value, generator));
    same.push(sameCode(name, field, value, loads));
    changes.push(`${prop(name)}: ${storedCode(name, field, value)}`);
  });
  return `${values.join(" ")} ${checks.join(" ")}
    if (${same.join(" && ") || "true"}) return true;
    return { key: ${keyCode(table, loads)}, changes: { ${changes.join(", ")} } };`;
}

/** Refuses null where it cannot be, and numbers that do not fit. Constants were checked before. */
function checkCode(
  table: Table,
  name: string,
  field: Field,
  node: Node,
  value: string,
  generator: Generator,
): string {
  if (node.op === "constant") return "";
  const where = prop(`${table.name}.${name}`);
  const statements: string[] = [];
  if (node.nullable && !mayBeNull(field)) {
    generator.canFail = true;
    statements.push(`if (${value} === null) notNull(${where});`);
  }
  const range = rangeOfField(field);
  const big = bigRangeOfField(field);
  if (range !== undefined || big !== undefined) {
    generator.canFail = true;
    const bounds = range ?? big!.map((bound) => `${bound}n`);
    const unlessNull = node.nullable ? `${value} !== null && ` : "";
    statements.push(`${unlessNull}inRange(${value}, ${bounds.join(", ")}, ${where});`);
  }
  return statements.join(" ");
}

/** Whether the field has its new value already. */
function sameCode(name: string, field: Field, value: string, loads: Loads): string {
  const type = typeOf(field);
  if (type === "json") return "false";
  const old = loads.value(name);
  const same =
    type === "bytes"
      ? `compareBytes(${old}, ${value}) === 0`
      : type === "double"
        ? `Object.is(${old}, ${value})`
        : `${old} === ${value}`;
  if (!field.nullable) return `(${same})`;
  const isNull = loads.isNull(name);
  return `(${value} === null ? ${isNull} : (!${isNull} && ${same}))`;
}

/** A value as `update` takes it. */
function storedCode(name: string, field: Field, value: string): string {
  if (field.kind === "enum") {
    const text = `names[${prop(name)}][${value}]`;
    return field.nullable ? `${value} === null ? null : ${text}` : text;
  }
  return field.kind === "json" ? `new JsonText(${value} ?? "null")` : value;
}
