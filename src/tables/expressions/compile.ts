/**
 * Compiles programs, and keeps what it has compiled: one function for each shape of program and table, made again only
 * when it was dropped for others. An *instance* of it holds the constants of one program, and the columns of one
 * run.
 *
 * A generated function only reads the row, and returns what becomes of it. It may be given a row that a writer is
 * changing at that moment: it then returns something, or a Failure, that the caller of the cursor never gets to
 * see, because the cursor finds out and reads the row again.
 */

import { readPointer } from "../../memory/pointer.ts";
import type { Views } from "../../memory/views.ts";
import { MAX_COMPILED_PROGRAMS } from "../../runtime/limits.ts";
import { compile } from "../codec/compile.ts";
import * as conversions from "../codec/conversions.ts";
import * as values from "../codec/values.ts";
import type { Table } from "../table.ts";
import { type Accumulated, accumulateCode, tooManyGroups } from "./accumulate.ts";
import { constantsIn, Generator, type Parameter, separated } from "./generate.ts";
import * as library from "./library.ts";
import { type Loads, rowLoads, wordLoads } from "./loads.ts";
import type { Node } from "./node.ts";
import { nodesOf, type Program, shapeOf, type Task } from "./program.ts";
import { taskCode } from "./task-code.ts";

/** What the code shares with its caller. */
export interface Context {
  /** Rows of an expiring table that end by then are not there. */
  momentMs: number;
  /** The next position of the columns of an aggregate. */
  next: number;
}

export type WordFunction = (views: Views, at: number, words: number) => unknown;
export type RowFunction = (row: object) => unknown;

export interface Instance<Take> {
  readonly context: Context;
  /** False if the row does not match: -1 for aggregates. Else what the task makes of it, or a Failure. */
  readonly take: Take;
  /** Of aggregates: accumulates what `take` has returned, and says how many rows matched. */
  readonly add: (taken: readonly unknown[], count: number) => number;
  /** Of aggregates: both, for so many rows side by side, each of so many words. */
  readonly addRows: (views: Views, count: number, words: number) => void;
  readonly accumulated: Accumulated;
}

interface Compiled {
  readonly parameters: readonly Parameter[];
  readonly make: (parameters: readonly unknown[], context: Context) => Instance<unknown>;
}

/** Stands for a row that does not match. */
export const noMatchOf = ({ kind }: Task): false | -1 => (kind === "aggregate" ? -1 : false);

const LIBRARY = { ...values, ...conversions, ...library, readPointer, tooManyGroups };

/** The source of the code for a program: a function body that returns an instance. */
export function programSource(table: Table, program: Program, loads: Loads): [string, Parameter[]] {
  const { where, task } = withOwnNodes(program);
  const generator = new Generator(loads, nodesOf({ table: table.name, where, task }));
  const no = `return ${noMatchOf(task)};`;
  const matches = where === undefined ? "" : `if (!${generator.truth(where)}) ${no}`;
  const code = `${expiryCode(table, loads, no)} ${matches} ${taskCode(table, task, loads, generator)}`;
  const guarded = generator.canFail
    ? `try { ${code} } catch (error) { return new Failure(error); }`
    : code;
  const columns =
    task.kind === "aggregate" ? task.groupBy.length + task.values.filter(({ of }) => of).length : 0;
  const source = `"use strict";
${generator.parameters.map((_, i) => `const p${i} = parameters[${i}];`).join(" ")}
${Array.from({ length: columns }, (_, i) => `const c${i} = [];`).join(" ")}
${task.kind === "aggregate" ? accumulateCode(table, task) : "const add = undefined, addRows = undefined, groups = [], counts = [], sums = [];"}
function take(${loads.parameters}) {
  ${generator.declarations}
  ${guarded}
}
return { context, take, add, addRows, accumulated: { groups, counts, sums } };`;
  return [source, generator.parameters];
}

function withOwnNodes({ table, where, task }: Program): Program {
  const own = (node: Node | undefined): Node | undefined => node && separated(node);
  if (task.kind === "update") {
    const set = task.set.map(([name, node]) => [name, separated(node)] as const);
    return { table, where: own(where), task: { ...task, set } };
  }
  if (task.kind !== "aggregate") return { table, where: own(where), task };
  const all = task.values.map((value) => ({ ...value, of: own(value.of) }));
  return { table, where: own(where), task: { ...task, values: all } };
}

/** Rows of stored words include those that have expired. */
function expiryCode({ expires, fields }: Table, loads: Loads, no: string): string {
  if (expires === undefined || loads.parameters === "row") return "";
  const ended = `${loads.value(expires)} <= context.momentMs`;
  return `if (${fields[expires].nullable ? `!${loads.isNull(expires)} && ` : ""}${ended}) ${no}`;
}

function enumTables({ fields }: Table): { names: object; codes: object } {
  const enums = Object.entries(fields).filter(([, { kind }]) => kind === "enum");
  return {
    names: Object.fromEntries(enums.map(([name, field]) => [name, field.values])),
    codes: Object.fromEntries(
      enums.map(([name, { values: all }]) => [name, new Map(all!.map((each, i) => [each, i]))]),
    ),
  };
}

/** A constant in the form that the code takes it. */
function parameterOf({ form }: Parameter, nodes: readonly Node[]): unknown {
  if (form === "set") return new Set(nodes.map(keyOf));
  const [node] = nodes;
  if (form === "value") return constantValue(node);
  if (form === "uuid") {
    const words = new Int32Array(4);
    conversions.writeUuid(words, 0, node.value, "uuid");
    return words;
  }
  return node.type === "bytes" ? node.value : new Uint8Array(Buffer.from(node.value as string));
}

function constantValue({ type, value, values: names }: Node): unknown {
  return type === "enum" && value !== null ? names!.indexOf(value as string) : value;
}

function keyOf(node: Node): unknown {
  return node.type === "bytes" ? library.bytesKey(node.value as Uint8Array) : constantValue(node);
}

/** The programs of one table. */
export class Programs {
  readonly #table: Table;
  readonly #compiled = new Map<string, Compiled>();

  constructor(table: Table) {
    this.#table = table;
  }

  /** For the words of rows that are stored. */
  forWords(program: Program): Instance<WordFunction> {
    return this.#instance(program, wordLoads, "words ") as Instance<WordFunction>;
  }

  /** For row objects. */
  forRows(program: Program): Instance<RowFunction> {
    return this.#instance(program, rowLoads, "rows ") as Instance<RowFunction>;
  }

  #instance(program: Program, loadsOf: (table: Table) => Loads, form: string): Instance<unknown> {
    const shape = form + shapeOf(program);
    const compiled = this.#compiled.get(shape) ?? this.#compile(program, loadsOf(this.#table));
    // The last one is the one used last.
    this.#compiled.delete(shape);
    this.#compiled.set(shape, compiled);
    if (this.#compiled.size > MAX_COMPILED_PROGRAMS) {
      this.#compiled.delete(this.#compiled.keys().next().value!);
    }
    const constants = constantsIn(nodesOf(program));
    const parameters = compiled.parameters.map((each) =>
      parameterOf(each, constants[each.constant]),
    );
    return compiled.make(parameters, { momentMs: 0, next: 0 });
  }

  #compile(program: Program, loads: Loads): Compiled {
    const [source, parameters] = programSource(this.#table, program, loads);
    const shared = { ...LIBRARY, ...enumTables(this.#table) };
    const names = Object.keys(shared);
    const outer = `"use strict"; return function (parameters, context) {${source}};`;
    const make = compile(outer, names)(...Object.values(shared)) as Compiled["make"];
    return { parameters, make };
  }
}
