/**
 * Random expressions of every type and operator, on random rows: what compiled programs make of stored words and of row
 * objects is what plain JavaScript computes (model.ts).
 */

import { describe, expect, it } from "vitest";
import { SituError } from "../../src/runtime/errors.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { layoutOf } from "../../src/tables/codec/layout.ts";
import { orderedCodecOf } from "../../src/tables/codec/ordered.ts";
import { Programs } from "../../src/tables/expressions/compile.ts";
import { Failure } from "../../src/tables/expressions/library.ts";
import type { Node, Operator, ValueType } from "../../src/tables/expressions/node.ts";
import {
  type Program,
  programFrom,
  programText,
  shapeOf,
} from "../../src/tables/expressions/program.ts";
import { constantNode, fieldNode, operation } from "../../src/tables/expressions/rules.ts";
import {
  bool,
  bytes,
  enumOf,
  f64,
  i32,
  i53,
  i64,
  json,
  nullable,
  pointer,
  str,
  timestamp,
  u8,
  u16,
  u32,
  u53,
  u64,
  uuid,
} from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { SOAK } from "../helpers/seed.ts";
import { evaluate, ModelFailure, type Row } from "./model.ts";

const MAX = Number.MAX_SAFE_INTEGER;
const COLORS = ["red", "green", "Blue", "é"] as const;

const kinds = {
  u8: u8(),
  u16: u16(),
  u32: u32(),
  i32: i32(),
  u53: u53(),
  i53: i53(),
  f64: f64(),
  bool: bool(),
  u64: u64(),
  i64: i64(),
  short: str(20),
  long: str(),
  inline: bytes(9),
  bytes: bytes(),
  time: timestamp(),
  ms: timestamp({ as: "number" }),
  uuid: uuid(),
  color: enumOf(...COLORS),
};
const nullableKinds = Object.fromEntries(
  Object.entries(kinds).map(([name, field]) => [`${name}_`, nullable(field as never)]),
);
const All = table(
  "all",
  { id: u32(), ...kinds, ...nullableKinds, json: json(), pointer: pointer() },
  { key: "id" },
) as Table<Row, number>;
const Fixed = table(
  "fixed",
  { id: u32(), a: u16(), b: nullable(i64()), c: str(5), d: nullable(str(5)), e: f64() },
  { key: ["c", "id"], ordered: true },
);

const text = fc.oneof(
  fc.constantFrom("", "a", "ab", "abc", "AB", "\uffff", "\u{1f600}", "é", "\u0000", "aé"),
  fc.string({ unit: "binary", maxLength: 4 }),
);
const shortBytes = fc.uint8Array({ maxLength: 4, max: 3 });
const ids = fc.constantFrom(
  "0188d3c4-7a1e-7bb0-8f0c-0123456789ab",
  "ffffffff-ffff-4fff-8fff-ffffffffffff",
  "00000000-0000-4000-8000-000000000000",
);
const whole = (least: number, most: number): fc.Arbitrary<number> =>
  fc.oneof(
    fc.constantFrom(...[0, 1, 2, 3, least, most, -1].filter((n) => n >= least && n <= most)),
    fc.integer({ min: least, max: most }),
  );
const big = (least: bigint, most: bigint): fc.Arbitrary<bigint> =>
  fc.oneof(
    fc.constantFrom(...[0n, 1n, 2n, -1n, least, most].filter((n) => n >= least && n <= most)),
    fc.bigInt({ min: least, max: most }),
  );
const moment = fc.oneof(
  fc.constantFrom(0, 1, 8.64e15, -8.64e15),
  fc.integer({ min: -1000, max: 1000 }),
);
const doubles = fc.oneof(
  fc.constantFrom(0, 1, -1.5, 2, Number.NaN, Number.POSITIVE_INFINITY),
  fc.double(),
);

const VALUES: Record<keyof typeof kinds, fc.Arbitrary<unknown>> = {
  u8: whole(0, 255),
  u16: whole(0, 0xffff),
  u32: whole(0, 0xffffffff),
  i32: whole(-0x80000000, 0x7fffffff),
  u53: whole(0, MAX),
  i53: whole(-MAX, MAX),
  f64: doubles,
  bool: fc.boolean(),
  u64: big(0n, 2n ** 64n - 1n),
  i64: big(-(2n ** 63n), 2n ** 63n - 1n),
  short: text,
  long: text,
  inline: shortBytes,
  bytes: shortBytes,
  time: moment.map((ms) => new Date(ms)),
  ms: moment,
  uuid: ids,
  color: fc.constantFrom(...COLORS),
};

const row = fc.record({
  id: fc.constant(1),
  ...VALUES,
  ...Object.fromEntries(
    Object.entries(VALUES).map(([name, values]) => [`${name}_`, fc.option(values, { freq: 3 })]),
  ),
  json: fc.constantFrom<unknown>(null, 1, "null", { a: null }, []),
  pointer: fc.constant(null),
}) as unknown as fc.Arbitrary<Row>;

const CONSTANTS: Partial<Record<ValueType, fc.Arbitrary<unknown>>> = {
  whole: fc.oneof(whole(-MAX, MAX), fc.integer({ min: -3, max: 300 })),
  double: doubles,
  big: big(-(2n ** 64n), 2n ** 64n),
  bool: fc.boolean(),
  str: text,
  uuid: ids,
  enum: fc.constantFrom(...COLORS),
  time: moment,
  bytes: shortBytes,
};

const fieldsOf = (type: ValueType): fc.Arbitrary<Node> =>
  fc.constantFrom(
    ...Object.entries(All.fields)
      .map(([name, field]) => fieldNode(name, field))
      .filter((node) => node.type === type),
  );
const constantOf = (type: ValueType): fc.Arbitrary<Node> =>
  CONSTANTS[type]!.map((value) => constantNode("test", type, value, COLORS));

const op = (name: Operator, ...args: fc.Arbitrary<Node>[]): fc.Arbitrary<Node> =>
  fc.tuple(...args).map((nodes) => operation(name, nodes));
const ARITHMETIC = ["plus", "minus", "times", "dividedBy"] as const;
const COMPARISONS = ["eq", "ne", "lt", "lte", "gt", "gte"] as const;
const TYPES = ["whole", "double", "big", "str", "uuid", "enum", "time", "bytes", "bool"] as const;

/** Expressions of a type, up to so deep. */
function valuesOf(type: ValueType, depth: number): fc.Arbitrary<Node> {
  const leaf = fc.oneof(
    { weight: 3, arbitrary: fieldsOf(type) },
    { weight: 1, arbitrary: constantOf(type) },
  );
  if (depth === 0) return leaf;
  const sub = (each: ValueType): fc.Arbitrary<Node> => valuesOf(each, depth - 1);
  const more: fc.Arbitrary<Node>[] = [];
  if (type === "whole" || type === "big" || type === "double") {
    for (const name of ARITHMETIC) more.push(op(name, sub(type), sub(type)));
  }
  if (type === "double")
    for (const name of ARITHMETIC) more.push(op(name, sub("double"), sub("whole")));
  if (type === "whole") {
    more.push(
      op("length", sub("str")),
      op("length", sub("bytes")),
      op("minus", sub("time"), sub("time")),
    );
  }
  if (type === "time")
    more.push(op("plus", sub("time"), sub("whole")), op("minus", sub("time"), sub("whole")));
  if (type === "str") {
    more.push(op("concat", sub("str"), sub("uuid"), sub("enum")), op("lower", sub("str")));
    more.push(op("upper", sub("enum")), op("upper", sub("str")));
  }
  if (type === "bool") more.push(condition(depth - 1));
  return fc.oneof(leaf, ...more);
}

function condition(depth: number): fc.Arbitrary<Node> {
  const compared = fc
    .constantFrom(...TYPES)
    .chain((type) =>
      fc
        .tuple(
          fc.constantFrom(...COMPARISONS),
          valuesOf(type, Math.min(depth, 2)),
          valuesOf(type, Math.min(depth, 1)),
        )
        .map(([name, a, b]) => operation(name, [a, b])),
    );
  const listed = fc
    .constantFrom(...TYPES)
    .chain((type) =>
      fc
        .tuple(valuesOf(type, Math.min(depth, 1)), fc.array(constantOf(type), { maxLength: 3 }))
        .map(([a, list]) => operation("in", [a], list)),
    );
  const tested = fc.oneof(
    op("startsWith", valuesOf("str", 0), valuesOf("str", 0)),
    op("startsWith", valuesOf("enum", 0), valuesOf("str", 0)),
    op("startsWith", valuesOf("bytes", 0), valuesOf("bytes", 0)),
    op("eq", valuesOf("enum", 0), valuesOf("str", 0)),
    op("eq", valuesOf("double", 0), valuesOf("whole", 0)),
    op("isNull", fc.constantFrom(...Object.entries(All.fields).map(([n, f]) => fieldNode(n, f)))),
    op("isNull", valuesOf("whole", 1)),
  );
  const leaf = fc.oneof({ weight: 4, arbitrary: compared }, listed, tested, fieldsOf("bool"));
  if (depth === 0) return leaf;
  const sub = condition(depth - 1);
  return fc.oneof(leaf, op("and", sub, sub), op("or", sub, sub, sub), op("not", sub));
}

const programs = new Programs(All);
const codec = codecOf(All);

/** What a program makes of a row: of its words, and of its object. */
function bothOf(program: Program, given: Row): unknown[] {
  const words = codec.encode(given);
  const stored = programs.forWords(program);
  const ofWords = stored.take(codec.scratch, 0, words);
  const objects = programs.forRows(program);
  const ofRow = objects.take(codec.decode(codec.scratch, 0, words));
  return [ofWords, ofRow];
}

function expectFailure(result: unknown): void {
  expect(result).toBeInstanceOf(Failure);
  expect((result as Failure).error).toBeInstanceOf(SituError);
  expect(((result as Failure).error as SituError).code).toBe("SITU_ARITHMETIC");
}

const RUNS = 200 * SOAK;

describe("programs compute what JavaScript does", () => {
  it("conditions", () => {
    check(
      fc.property(condition(3), row, (where, given) => {
        const program: Program = { table: "all", where, task: { kind: "select", columns: ["id"] } };
        let wanted: unknown;
        try {
          wanted = evaluate(where, given) === true ? { id: 1 } : false;
        } catch (error) {
          expect(error).toBeInstanceOf(ModelFailure);
          // Where the model fails, a program may have known earlier that the row does not match.
          for (const result of bothOf(program, given)) {
            if (result !== false && !(result instanceof Failure)) expect(result).toEqual({ id: 1 });
          }
          return;
        }
        for (const result of bothOf(program, given)) expect(result).toEqual(wanted);
      }),
      RUNS,
    );
  });

  it("values of every type", () => {
    const typed = fc.constantFrom(...TYPES).chain((type) => valuesOf(type, 3));
    check(
      fc.property(typed, row, (of, given) => {
        const values = [{ as: "least", name: "min" as const, of }];
        const task = { kind: "aggregate" as const, groupBy: [], values };
        const program: Program = { table: "all", where: undefined, task };
        let wanted: unknown;
        try {
          wanted = evaluate(of, given);
        } catch {
          for (const result of bothOf(program, given)) expectFailure(result);
          return;
        }
        if (of.type === "enum" && wanted !== null) wanted = COLORS.indexOf(wanted as "red");
        for (const instance of [programs.forWords(program), programs.forRows(program)]) {
          const words = codec.encode(given);
          const at =
            instance.take.length === 3
              ? (instance.take as (...call: unknown[]) => unknown)(codec.scratch, 0, words)
              : (instance.take as (row: unknown) => unknown)(codec.decode(codec.scratch, 0, words));
          expect(at).toBe(0);
          instance.add([at], 1);
          expect(instance.accumulated.sums[0][0]).toEqual(wanted);
        }
      }),
      RUNS,
    );
  });

  it("the same shape has the same code, with other constants", () => {
    check(
      fc.property(condition(2), row, (where, given) => {
        const program: Program = { table: "all", where, task: { kind: "delete" } };
        const shared = { ...program, where: operation("or", [where, where]) };
        const [ofWords] = bothOf(shared, given);
        const [once] = bothOf(program, given);
        if (once instanceof Failure || ofWords instanceof Failure) return;
        expect(ofWords).toEqual(once);
      }),
      300,
    );
    const eq = (value: number): Program => ({
      table: "all",
      where: operation("eq", [fieldNode("u8", u8()), constantNode("t", "whole", value)]),
      task: { kind: "delete" },
    });
    expect(shapeOf(eq(1))).toBe(shapeOf(eq(2)));
  });

  it("a program that was written and read again is the same", () => {
    check(
      fc.property(condition(3), (where) => {
        const program: Program = { table: "all", where, task: { kind: "delete" } };
        const read = programFrom(programText(program), All);
        expect(programText(read)).toBe(programText(program));
        expect(read.where).toEqual(where);
      }),
      300,
    );
  });

  it("rows without variable parts, with a composite key", () => {
    const ordered = orderedCodecOf(Fixed);
    const given = { id: 7, a: 300, b: null, c: "xy", d: "é", e: 2.5 };
    const words = ordered.encode(given);
    expect(words).toBe(layoutOf(Fixed).fixedBytes / 4);
    const program: Program = {
      table: "fixed",
      where: operation("and", [
        operation("eq", [fieldNode("d", Fixed.fields.d), constantNode("t", "str", "é")]),
        operation("isNull", [fieldNode("b", Fixed.fields.b)]),
      ]),
      task: {
        kind: "update",
        set: [
          ["a", operation("plus", [fieldNode("a", Fixed.fields.a), constantNode("t", "whole", 1)])],
        ],
      },
    };
    const { take } = new Programs(Fixed).forWords(program);
    expect(take(ordered.scratch, 0, words)).toEqual({ key: ["xy", 7], changes: { a: 301 } });
  });
});

describe("programs that are not", () => {
  const good = programText({
    table: "all",
    where: operation("eq", [fieldNode("u8", u8()), constantNode("t", "whole", 1)]),
    task: { kind: "delete" },
  });

  it.each([
    ["no JSON", "{"],
    ["no object", "[]"],
    ["another table", good.replace('"all"', '"other"')],
    ["an unknown field", good.replace('"u8"', '"u9"')],
    ["an unknown operator", good.replace('"eq"', '"like"')],
    ["an operand too few", good.replace(',["whole",1]', "")],
    ["a value of another type", good.replace('"whole"', '"str"')],
    ["an unknown task", good.replace('"delete"', '"drop"')],
    ["no condition", good.replace('["eq",["field","u8"],["whole",1]]', '["field","u8"]')],
    [
      "a key that is set",
      good.replace('{"kind":"delete"}', '{"kind":"update","set":[["id",["whole",1]]]}'),
    ],
    [
      "nested too deep",
      good.replace('["field","u8"]', `${'["not",'.repeat(500)}["field","bool"]${"]".repeat(500)}`),
    ],
  ])("%s", (_, text) => {
    expect(() => programFrom(text, All)).toThrowError(
      expect.objectContaining({ code: "SITU_PROTOCOL" }),
    );
  });

  it("a later version", () => {
    const later = good.replace('"version":1', '"version":2');
    expect(() => programFrom(later, All)).toThrowError(
      expect.objectContaining({ code: "SITU_UNSUPPORTED" }),
    );
  });
});
