/**
 * From the tree of an expression to the source of a function over one row. A node is one expression of
 * JavaScript; a value that may be null is kept in a temporary variable while it is looked at.
 *
 * Of a condition that decides whether a row matches, only whether it is true is asked, and of what is inside a `not`, whether
 * it is false: so `and`, `or` and `not` become those of JavaScript, and null needs no value of its own.
 *
 * Constants are parameters (program.ts): the code is the same for all programs of a shape.
 */

import type { Loads } from "./loads.ts";
import type { Node, Operator } from "./node.ts";

/** How a constant is handed to the code: its value, its bytes, the four words of a UUID, or a list as a set. */
export type ParameterForm = "value" | "bytes" | "uuid" | "set";

export interface Parameter {
  /** Which of the program's constants. */
  readonly constant: number;
  readonly form: ParameterForm;
}

const COMPARISONS: Partial<Record<Operator, string>> = {
  eq: "===",
  ne: "!==",
  lt: "<",
  lte: "<=",
  gt: ">",
  gte: ">=",
};

/** The constants of expressions in the order of their text; the list of an `in` is one. */
export function constantsIn(nodes: readonly Node[]): (readonly Node[])[] {
  const found: (readonly Node[])[] = [];
  const visit = (node: Node): void => {
    if (node.op === "constant") found.push([node]);
    else if (node.op === "in") {
      visit(node.args[0]);
      found.push(node.args.slice(1));
    } else for (const arg of node.args) visit(arg);
  };
  for (const node of nodes) visit(node);
  return found;
}

/** A copy in which no node stands in two places: each constant is a parameter of its own. */
export function separated(node: Node): Node {
  return { ...node, args: node.args.map(separated) };
}

/** The nodes must be `separated`. */
export class Generator {
  readonly parameters: Parameter[] = [];
  /** Whether something in the code may fail. */
  canFail = false;
  temporaries = 0;
  readonly #loads: Loads;
  readonly #constants = new Map<Node, number>();

  constructor(loads: Loads, nodes: readonly Node[]) {
    this.#loads = loads;
    let count = 0;
    const visit = (node: Node): void => {
      if (node.op === "constant") this.#constants.set(node, count++);
      else if (node.op === "in") {
        visit(node.args[0]);
        this.#constants.set(node, count++);
      } else for (const arg of node.args) visit(arg);
    };
    for (const node of nodes) visit(node);
  }

  /** Declares the temporary variables; for the beginning of the function. */
  get declarations(): string {
    if (this.temporaries === 0) return "";
    return `let ${Array.from({ length: this.temporaries }, (_, i) => `t${i}`).join(", ")};`;
  }

  /** An expression that is true if the condition is. */
  truth(node: Node): string {
    return this.#decided(node, true);
  }

  #decided(node: Node, wanted: boolean): string {
    const { op, args } = node;
    if (op === "not") return this.#decided(args[0], !wanted);
    if (op === "and" || op === "or") {
      const all = (op === "and") === wanted;
      return `(${args.map((arg) => this.#decided(arg, wanted)).join(all ? " && " : " || ")})`;
    }
    if (!node.nullable || op === "field") {
      const value = wanted ? this.#plain(node) : `!${this.#plain(node)}`;
      return node.nullable ? `(!${this.#loads.isNull(node.name!)} && ${value})` : value;
    }
    // A field that is compared with a constant: asked for null, then compared in its place.
    const [first, ...others] = args;
    if (first?.op === "field" && others.every((arg) => arg.op === "constant")) {
      const compared = this.#apply(node, [this.#loads.value(first.name!), ...this.#codes(others)]);
      return `(!${this.#loads.isNull(first.name!)} && ${wanted ? compared : `!${compared}`})`;
    }
    return `(${this.value(node)} === ${wanted})`;
  }

  #codes(nodes: readonly Node[]): string[] {
    return nodes.map((node) => (this.#constants.has(node) ? this.#parameter(node, "value") : ""));
  }

  /** An expression for the value of a node, or null. */
  value(node: Node): string {
    const { op, args } = node;
    if (node.op === "constant") return this.#parameter(node, "value");
    if (op === "field") {
      const value = this.#loads.value(node.name!);
      return node.nullable ? `(${this.#loads.isNull(node.name!)} ? null : ${value})` : value;
    }
    if (!node.nullable) return this.#plain(node);
    if (op === "and" || op === "or") return this.#threeValued(args, op === "or");
    const isList = op === "in";
    const names: string[] = [];
    const tests: string[] = [];
    for (const arg of isList ? args.slice(0, 1) : args) {
      if (arg.op === "constant") {
        names.push(this.#parameter(arg, "value"));
        continue;
      }
      const name = `t${this.temporaries++}`;
      names.push(name);
      const value = this.value(arg);
      tests.push(arg.nullable ? `(${name} = ${value}) === null` : `(${name} = ${value}, false)`);
    }
    return `(${tests.join(" || ")} ? null : ${this.#apply(node, names, false)})`;
  }

  /** The value of a node that is never null. */
  #plain(node: Node): string {
    const { op, args } = node;
    if (op === "field") return this.#loads.value(node.name!);
    if (op === "constant") return this.#parameter(node, "value");
    if (op === "isNull") {
      const [arg] = args;
      if (arg.op === "field") return this.#loads.isNull(arg.name!);
      return arg.nullable ? `(${this.value(arg)} === null)` : "false";
    }
    if (op === "and" || op === "or") {
      return `(${args.map((arg) => this.#plain(arg)).join(op === "and" ? " && " : " || ")})`;
    }
    if (op === "in") return this.#apply(node, [this.value(args[0])]);
    return this.#apply(
      node,
      args.map((arg) => this.value(arg)),
    );
  }

  #threeValued(args: readonly Node[], decisive: boolean): string {
    const names = args.map(() => `t${this.temporaries++}`);
    const looks = args.map((arg, i) => `(${names[i]} = ${this.value(arg)}) === ${decisive}`);
    const nulls = names.map((name) => `${name} === null`);
    return `(${looks.join(" || ")} ? ${decisive} : ${nulls.join(" || ")} ? null : ${!decisive})`;
  }

  /** An operator applied to operands that are not null. */
  #apply(node: Node, operands: readonly string[], mayCompareInPlace = true): string {
    const { op, args, type } = node;
    const [a, b] = operands;
    if (mayCompareInPlace) {
      const inPlace = this.#inPlace(node);
      if (inPlace !== undefined) return inPlace;
    }
    switch (op) {
      case "eq":
      case "ne":
      case "lt":
      case "lte":
      case "gt":
      case "gte":
        return compare(args[0].type, COMPARISONS[op]!, a, b);
      case "in": {
        const key = args[0].type === "bytes" ? `bytesKey(${a})` : a;
        return `${this.#parameter(node, "set")}.has(${key})`;
      }
      case "startsWith":
        return args[0].type === "bytes" ? `bytesStartWith(${a}, ${b})` : `${a}.startsWith(${b})`;
      case "not":
        return `!${a}`;
      case "concat":
        return `(${operands.join(" + ")})`;
      case "lower":
        return `${a}.toLowerCase()`;
      case "upper":
        return `${a}.toUpperCase()`;
      case "length":
        return `${a}.length`;
      case "text":
        // Only fields are enums: constants are texts by now.
        return args[0].type === "enum" ? `names[${JSON.stringify(args[0].name)}][${a}]` : a;
      default:
        return this.#arithmetic(op as Operator, type, a, b);
    }
  }

  #arithmetic(op: Operator, type: Node["type"], a: string, b: string): string {
    this.canFail = true;
    if (op === "dividedBy") {
      const divide = { whole: "divideWhole", double: "divideDouble", big: "divideBig" };
      return `${divide[type as keyof typeof divide]}(${a}, ${b})`;
    }
    const computed = `(${a} ${op === "plus" ? "+" : op === "minus" ? "-" : "*"} ${b})`;
    if (type === "whole") return `whole${computed}`;
    return type === "time" ? `time${computed}` : computed;
  }

  /** Compares a field of the stored row with a constant, without reading it. */
  #inPlace({ op, args }: Node): string | undefined {
    const [field, constant] = args;
    if (field?.op !== "field" || constant?.op !== "constant" || args.length !== 2) return undefined;
    const isEqual = op === "eq" || op === "ne";
    const not = op === "ne" ? "!" : "";
    if (field.type === "uuid" && isEqual) {
      const same = this.#loads.uuidIs(field.name!, "$");
      return same && not + same.replaceAll("$", this.#parameter(constant, "uuid"));
    }
    if (field.type !== "str" && field.type !== "bytes") return undefined;
    if (!isEqual && op !== "startsWith") return undefined;
    const same = this.#loads.bytesAre(field.name!, "$", op === "startsWith");
    return same && not + same.replace("$", this.#parameter(constant, "bytes"));
  }

  #parameter(node: Node, form: ParameterForm): string {
    const constant = this.#constants.get(node)!;
    const known = this.parameters.findIndex(
      (each) => each.constant === constant && each.form === form,
    );
    return `p${known < 0 ? this.parameters.push({ constant, form }) - 1 : known}`;
  }
}

function compare(type: Node["type"], operator: string, a: string, b: string): string {
  if (type === "bytes") return `(compareBytes(${a}, ${b}) ${operator} 0)`;
  const isEqual = operator === "===" || operator === "!==";
  if (type === "str" && !isEqual) return `(compareText(${a}, ${b}) ${operator} 0)`;
  return `(${a} ${operator} ${b})`;
}
