/**
 * What `updateWhere`, `deleteWhere`, `aggregate` and `select` take, and the programs that are made of it. The caller's
 * functions run here, once, with expressions in place of a row's fields; what they return is checked against the
 * table. Nothing of the caller's is called after that.
 */

import { SituError } from "../../runtime/errors.ts";
import { refuseUnknownOptions } from "../../runtime/known-options.ts";
import { didYouMean } from "../../runtime/nearest.ts";
import { show } from "../../runtime/show.ts";
import { type Aggregate, aggregateOf } from "../expressions/aggregates.ts";
import { assignedNode } from "../expressions/assignment.ts";
import {
  type Expression,
  expressionOf,
  nodeOf,
  type RowExpressions,
} from "../expressions/expression.ts";
import { type Node, refuse } from "../expressions/node.ts";
import type { NamedAggregate, Program } from "../expressions/program.ts";
import { fieldNode } from "../expressions/rules.ts";
import type { Invalid } from "../invalid.ts";
import type { Simplify, Table } from "../table.ts";

/** Where an operation runs. Tables in memory have one place: the threads of the caller. */
export type Place = "auto" | "host" | "device";

/** The rows that an operation is about: those for which the condition is true. Default: all. */
export interface Where<Row> {
  readonly where?: ((row: RowExpressions<Row>) => Expression<boolean | null>) | undefined;
  /** Default: "auto". */
  readonly place?: Place | undefined;
}

/** What `set` is, or returns: values, or expressions of the row's fields as they were before. */
export type Assignments<Changes> = {
  readonly [Name in keyof Changes]?:
    | Changes[Name]
    | Unchanging<Changes[Name]>
    | Expression<ReadOf<Exclude<Changes[Name], undefined>>>;
};
/** A time is written as a Date or a number, and computed as either. */
type ReadOf<Input> = Date extends Input ? Input | Date : Input;
/** What is written where a compiler takes all that is returned for constant, as json. */
type Unchanging<T> = T extends Date | Uint8Array
  ? T
  : T extends readonly (infer Each)[]
    ? readonly Unchanging<Each>[]
    : T extends object
      ? { readonly [Name in keyof T]: Unchanging<T[Name]> }
      : T;
/** The names that are no fields, or are part of the key. */
export type NoOthers<S, Changes> = {
  readonly [Name in Exclude<
    keyof S,
    keyof Changes
  >]: Invalid<`${Name & string} is no field of the table, or part of its key`>;
};
/** What functions are not. */
interface PlainObject {
  readonly [Symbol.hasInstance]?: never;
}

/** What `updateWhere` takes. */
export interface UpdateWhereOptions<Row, Changes, S> extends Where<Row> {
  /** The new values of fields: an object, or a function of the row that returns one. */
  readonly set:
    | ((row: RowExpressions<Row>) => S & Assignments<Changes> & NoOthers<S, Changes>)
    | (Assignments<Changes> & PlainObject);
}

/** What `deleteWhere` takes: which rows, or "all". */
export interface DeleteWhereOptions<Row> {
  readonly where: ((row: RowExpressions<Row>) => Expression<boolean | null>) | "all";
  readonly place?: Place | undefined;
}

/** What `aggregate` takes. */
export interface AggregateOptions<Row, RowValues, Names extends keyof Row = never>
  extends Where<Row> {
  /** One result for each combination of values of these fields. Without it there is one result. */
  readonly groupBy?: readonly Names[] | undefined;
  readonly values: (row: RowExpressions<Row>) => RowValues;
}

/** What `aggregate` computes. */
export type AggregateValues<RowValues> = Simplify<{
  -readonly [Name in keyof RowValues]: RowValues[Name] extends Aggregate<infer T> ? T : never;
}>;

/** What `select` takes. */
export interface SelectOptions<Row, Names extends keyof Row = keyof Row> extends Where<Row> {
  /** The fields of the rows that are returned. Default: all. */
  readonly columns?: readonly Names[] | undefined;
  /** The most rows to return. */
  readonly limit?: number | undefined;
  /**
   * In a transaction: these rows will be changed. If another transaction is first to change one of them, this one is
   * run again, as always, and then has priority over others.
   */
  readonly forUpdate?: boolean | undefined;
}

/** What `explain` takes: the options of one of the others. */
export interface ExplainOptions<Row> extends Where<Row> {
  readonly set?: unknown;
  readonly groupBy?: readonly (keyof Row)[] | undefined;
  readonly values?: unknown;
  readonly columns?: readonly (keyof Row)[] | undefined;
  readonly limit?: number | undefined;
}

type Row = Record<string, unknown>;
type Given = Record<string, unknown>;

/** The fields of a table as expressions. A name that is no field is refused, also without a compiler. */
function rowOf(table: Table, call: string): Row {
  const row: Row = {};
  for (const [name, field] of Object.entries(table.fields)) {
    row[name] = expressionOf(fieldNode(name, field));
  }
  return new Proxy(row, {
    get: (target, name) => {
      if (typeof name !== "string" || Object.hasOwn(target, name)) return Reflect.get(target, name);
      return unknown(table, call, name);
    },
  });
}

function unknown(table: Table, call: string, name: unknown): never {
  const hint = typeof name === "string" ? didYouMean(name, Object.keys(table.fields)) : "";
  return refuse(`${call}: table ${table.name} has no field ${show(name)}${hint}`);
}

function checked(
  call: string,
  table: Table,
  options: unknown,
  known: readonly string[],
  canShip: boolean,
): Given {
  if (typeof table?.fields !== "object") refuse(`${call} takes a table, not ${show(table)}`);
  refuseUnknownOptions(call, options, known);
  const place = placeOf(options);
  if (place === "device") refuseDevice(call, table, canShip);
  if (place !== "auto" && place !== "host" && place !== "device") {
    refuse(`${call}: place is "auto", "host" or "device", not ${show(place)}`);
  }
  return options as Given;
}

/** Where the caller wants an operation to run. */
export function placeOf(options: unknown): Place {
  return ((options ?? {}) as Where<unknown>).place ?? "auto";
}

function refuseDevice(call: string, table: Table, canShip: boolean): void {
  if (table.storage !== "device") {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `${call}: table ${table.name} is in memory, and has no device: leave place out`,
    );
  }
  if (canShip) return;
  throw new SituError(
    "SITU_UNSUPPORTED",
    `${call}: as part of a transaction it runs on the host: leave place out, or call it on the database`,
  );
}

function conditionOf(call: string, table: Table, where: unknown): Node | undefined {
  if (where === undefined) return undefined;
  if (typeof where !== "function") {
    refuse(`${call}: where is a function, as in (row) => row.id.eq(1), not ${show(where)}`);
  }
  const node = nodeOf(where(rowOf(table, call)));
  if (node?.type !== "bool") refuse(`${call}: where returns a condition, as in row.id.eq(1)`);
  return node;
}

function fieldList(call: string, table: Table, option: string, names: unknown): string[] {
  if (!Array.isArray(names)) refuse(`${call}: ${option} is a list of fields, not ${show(names)}`);
  const list = [...(names as unknown[])];
  for (const name of list) {
    if (typeof name !== "string" || !Object.hasOwn(table.fields, name)) unknown(table, call, name);
  }
  if (new Set(list).size < list.length) refuse(`${call}: ${option} names a field twice`);
  return list as string[];
}

const WHERE = ["where", "place"];

/** The program of `updateWhere`. Who `canShip` takes those that are to run on the device. */
export function updateProgram(table: Table, options: unknown, canShip = false): Program {
  const call = "updateWhere";
  const { where, set } = checked(call, table, options, [...WHERE, "set"], canShip);
  const given: unknown = typeof set === "function" ? set(rowOf(table, call)) : set;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    refuse(`${call}: set is, or returns, an object with the fields to change, not ${show(given)}`);
  }
  const assigned = Object.entries(given).filter(([, value]) => value !== undefined);
  for (const [name] of assigned) {
    if (!Object.hasOwn(table.fields, name)) unknown(table, call, name);
  }
  return {
    table: table.name,
    where: conditionOf(call, table, where),
    task: {
      kind: "update",
      set: assigned.map(([name, value]) => [name, assignedNode(table, name, value)] as const),
    },
  };
}

/** The program of `deleteWhere`. To delete all rows, one says so: an option that was forgotten does not. */
export function deleteProgram(table: Table, options: unknown, canShip = false): Program {
  const call = "deleteWhere";
  const { where } = checked(call, table, options, WHERE, canShip);
  if (where === undefined) refuse(`${call}: say which rows: where: (row) => …, or where: "all"`);
  const condition = where === "all" ? undefined : conditionOf(call, table, where);
  return { table: table.name, where: condition, task: { kind: "delete" } };
}

/** The program of `select`. */
export function selectProgram(table: Table, options: unknown = {}, canShip = false): Program {
  const call = "select";
  const { where, columns, limit } = checked(
    call,
    table,
    options,
    [...WHERE, "columns", "limit", "forUpdate"],
    canShip,
  );
  if (isForUpdate(options) && canShip) {
    refuse(`${call}: forUpdate is for transactions: use tx.${call}`);
  }
  if (limit !== undefined && !(Number.isSafeInteger(limit) && (limit as number) >= 0)) {
    refuse(`${call}: limit is a whole number from 0 on, not ${show(limit)}`);
  }
  const all = Object.keys(table.fields);
  const names = columns === undefined ? all : fieldList(call, table, "columns", columns);
  const condition = conditionOf(call, table, where);
  return { table: table.name, where: condition, task: { kind: "select", columns: names } };
}

/** Whether the rows of a selection are to be changed by its transaction. */
export function isForUpdate(options: unknown): boolean {
  const { forUpdate = false } = (options ?? {}) as { readonly forUpdate?: unknown };
  if (typeof forUpdate !== "boolean") {
    refuse(`select: forUpdate is true or false, not ${show(forUpdate)}`);
  }
  return forUpdate;
}

/** The program of `aggregate`. */
export function aggregateProgram(table: Table, options: unknown, canShip = false): Program {
  const call = "aggregate";
  const { where, groupBy, values } = checked(
    call,
    table,
    options,
    [...WHERE, "groupBy", "values"],
    canShip,
  );
  const groups = groupBy === undefined ? [] : fieldList(call, table, "groupBy", groupBy);
  for (const name of groups) {
    const { kind } = table.fields[name];
    if (kind === "json" || kind === "pointer") refuse(`${call}: rows cannot be grouped by ${kind}`);
  }
  if (typeof values !== "function") {
    refuse(`${call}: values is a function, as in (row) => ({ n: count() }), not ${show(values)}`);
  }
  const given: unknown = values(rowOf(table, call));
  if (typeof given !== "object" || given === null) refuse(`${call}: values returns an object`);
  const list = Object.entries(given).map(([as, value]): NamedAggregate => {
    const aggregate = aggregateOf(value);
    if (aggregate === undefined) {
      refuse(`${call}: ${as} is count(), sum(…), min(…), max(…) or avg(…), not ${show(value)}`);
    }
    if (groups.includes(as)) refuse(`${call}: ${as} is the name of a field of groupBy`);
    return { as, ...aggregate! };
  });
  const condition = conditionOf(call, table, where);
  return {
    table: table.name,
    where: condition,
    task: { kind: "aggregate", groupBy: groups, values: list },
  };
}

/** The program that `explain` is asked about: which, its options tell. */
export function explainedProgram(table: Table, options: unknown, canShip = false): Program {
  const given = options as Given | undefined;
  if (given?.set !== undefined) return updateProgram(table, options, canShip);
  if (given?.values !== undefined) return aggregateProgram(table, options, canShip);
  if (given?.where === "all") return deleteProgram(table, options, canShip);
  return selectProgram(table, options, canShip);
}
