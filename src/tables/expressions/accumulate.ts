/**
 * Accumulates what an aggregate has read: one position of the columns after the other, into arrays with one place for
 * each group. Generated for each program, so that a million rows cost a million additions and no look at what is
 * to be computed.
 */

import { SituError } from "../../runtime/errors.ts";
import { MAX_GROUPS } from "../../runtime/limits.ts";
import type { Table } from "../table.ts";
import type { Node } from "./node.ts";
import type { NamedAggregate, Task } from "./program.ts";
import { fieldNode } from "./rules.ts";

/** Rows that are read before they are accumulated, where many lie side by side. */
const ROWS_AT_ONCE = 256;

type AggregateTask = Task & { kind: "aggregate" };

/** The column that an aggregate is computed of; -1 for `count()`. */
function columnOf(task: AggregateTask, index: number): number {
  if (task.values[index].of === undefined) return -1;
  const before = task.values.slice(0, index).filter(({ of }) => of !== undefined).length;
  return task.groupBy.length + before;
}

/** Statements that add position `n` to group `g` of aggregate `i`. */
function addCode({ name, of }: NamedAggregate, i: number, column: number): string {
  if (of === undefined) return `N${i}[g]++;`;
  const value = `c${column}[n]`;
  const step = {
    count: "",
    sum: of.type === "whole" ? `S${i}[g] = whole(S${i}[g] + v);` : `S${i}[g] += v;`,
    avg: `S${i}[g] += v;`,
    min: `if (N${i}[g] === 0 || ${less(of, "v", `S${i}[g]`)}) S${i}[g] = v;`,
    max: `if (N${i}[g] === 0 || ${less(of, `S${i}[g]`, "v")}) S${i}[g] = v;`,
  }[name];
  const added = `${step} N${i}[g]++;`;
  return of.nullable
    ? `{ const v = ${value}; if (v !== null) { ${added} } }`
    : `{ const v = ${value}; ${added} }`;
}

function less({ type }: Node, a: string, b: string): string {
  if (type === "str") return `compareText(${a}, ${b}) < 0`;
  return type === "bytes" ? `compareBytes(${a}, ${b}) < 0` : `${a} < ${b}`;
}

/** What a sum begins with; min and max begin with their first value. */
function initialOf({ name, of }: NamedAggregate): string {
  if (name !== "sum" && name !== "avg") return "null";
  return of!.type === "big" ? "0n" : "0";
}

/** Declarations, and a function `add(rows, count)` for what the cursor has found. */
export function accumulateCode(table: Table, task: AggregateTask): string {
  const { groupBy, values } = task;
  const begin = values
    .map((value, i) => `N${i}.push(0); S${i}.push(${initialOf(value)});`)
    .join(" ");
  const keys = groupBy.map((name, i) => {
    const isBytes = table.fields[name].kind === "bytes";
    return isBytes ? `(c${i}[n] === null ? null : bytesKey(c${i}[n]))` : `c${i}[n]`;
  });
  const steps = keys.map((key, i) =>
    i < keys.length - 1
      ? `const k${i} = ${key}; let m${i + 1} = m${i}.get(k${i});
         if (m${i + 1} === undefined) m${i}.set(k${i}, m${i + 1} = new Map());`
      : `const k${i} = ${key}; let g = m${i}.get(k${i});
         if (g === undefined) { g = begin(n); m${i}.set(k${i}, g); }`,
  );
  const find = groupBy.length === 0 ? "const g = 0;" : steps.join("\n      ");
  return `${values.map((_, i) => `const N${i} = [], S${i} = [];`).join(" ")}
  const groups = [], m0 = new Map();
  function begin(n) {
    if (groups.length === ${MAX_GROUPS}) tooManyGroups();
    ${begin}
    return groups.push([${groupBy.map((_, i) => `c${i}[n]`).join(", ")}]) - 1;
  }
  ${groupBy.length === 0 ? "begin(0);" : ""}
  function add(rows, count) {
    let matched = 0;
    for (let i = 0; i < count; i++) {
      const n = rows[i];
      if (n < 0) continue;
      if (typeof n !== "number") throw n.error;
      matched++;
      ${find}
      ${values.map((value, i) => addCode(value, i, columnOf(task, i))).join("\n      ")}
    }
    return matched;
  }
  const taken = new Array(${ROWS_AT_ONCE}).fill(0);
  function addRows(views, count, words) {
    let at = 0;
    for (let left = count; left > 0; left -= ${ROWS_AT_ONCE}) {
      const some = Math.min(left, ${ROWS_AT_ONCE});
      context.next = 0;
      for (let i = 0; i < some; i++) {
        taken[i] = take(views, at, words);
        at += words;
      }
      add(taken, some);
    }
    context.next = 0;
  }
  const counts = [${values.map((_, i) => `N${i}`).join(", ")}];
  const sums = [${values.map((_, i) => `S${i}`).join(", ")}];`;
}

/** What has been accumulated: a row for each group. */
export interface Accumulated {
  readonly groups: readonly (readonly unknown[])[];
  readonly counts: readonly (readonly number[])[];
  readonly sums: readonly (readonly unknown[])[];
}

/** The rows of the result, with values as rows of the table have them. */
export function resultsOf(table: Table, task: AggregateTask, all: Accumulated): object[] {
  const nodes = task.groupBy.map((name) => fieldNode(name, table.fields[name]));
  return all.groups.map((group, g) => {
    const row: Record<string, unknown> = {};
    task.groupBy.forEach((name, i) => {
      row[name] = shown(table, nodes[i], group[i]);
    });
    task.values.forEach(({ as, name, of }, i) => {
      const count = all.counts[i][g];
      const sum = all.sums[i][g];
      if (name === "count") row[as] = count;
      else if (name === "avg") row[as] = count === 0 ? null : Number(sum) / count;
      else if (name === "sum") row[as] = sum;
      else row[as] = shown(table, of!, sum);
    });
    return row;
  });
}

function shown(table: Table, node: Node, value: unknown): unknown {
  if (value === null) return null;
  if (node.type === "enum") return node.values![value as number];
  return node.type === "time" && !isNumberTime(table, node) ? new Date(value as number) : value;
}

/** Whether a time is shown as a number: as the field is that it was computed of. */
function isNumberTime(table: Table, node: Node): boolean {
  if (node.op === "field") return table.fields[node.name!].as === "number";
  const of = node.args.find(({ type }) => type === "time");
  return of !== undefined && isNumberTime(table, of);
}

export function tooManyGroups(): never {
  throw new SituError(
    "SITU_TOO_LARGE",
    `aggregate: more than ${MAX_GROUPS} groups; narrow the where, or group by fewer fields`,
  );
}
