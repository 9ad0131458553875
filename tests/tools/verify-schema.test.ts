/** Tables made from the schemas in a store: the same schema text, the same rows. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Field, FieldKind } from "../../src/tables/fields.ts";
import { bool, bytes, enumOf, json, nullable, str, u32 } from "../../src/tables/fields.ts";
import { type Schema, schemaOf } from "../../src/tables/schema.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { tableFromSchema } from "../../src/tables/table-from-schema.ts";
import { CheckedStore } from "../helpers/checks.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync } from "../helpers/store.ts";

let store: CheckedStore;
beforeEach(() => {
  store = new CheckedStore();
});
afterEach(() => store.dispose());

const KEY_KINDS: readonly FieldKind[] = [
  "u8",
  "u16",
  "u32",
  "i32",
  "u53",
  "i53",
  "u64",
  "i64",
  "bool",
  "str",
  "bytes",
  "timestamp",
  "uuid",
];
const OTHER_KINDS: readonly FieldKind[] = ["f64", "json", "pointer"];

/** Values that a careless parser of schemas would stumble over, too. */
const someEnum = fc
  .uniqueArray(fc.oneof(fc.string(), fc.constantFrom('"', ")", ",", "a,b", "enumOf(", "\n")), {
    minLength: 1,
    maxLength: 5,
  })
  .map((values) => enumOf(...(values as [string])) as Field);
const orNull = (value: fc.Arbitrary<Field>): fc.Arbitrary<Field> =>
  fc.tuple(value, fc.boolean()).map(([each, isNullable]) => {
    const cannot = each.kind === "json" || each.kind === "pointer" || !isNullable;
    return cannot ? each : (nullable(each as Field<never, "u8">) as Field);
  });

const field = (kinds: readonly FieldKind[]): fc.Arbitrary<Field<unknown>> => {
  const max = fc.option(fc.integer({ min: 1, max: 2 ** 20 }), { nil: undefined });
  return fc.record({ kind: fc.constantFrom(...kinds), max }).map(({ kind, max: length }) => {
    return { kind, max: kind === "str" || kind === "bytes" ? length : undefined };
  });
};

/** Names that a careless round trip would confuse, too. */
const name = fc.oneof(
  fc.string({ minLength: 1, maxLength: 12 }),
  fc.constantFrom("1", "10", "2", "constructor", "toString", 'a"b', "ö", "position"),
);

const declared = fc
  .record({
    name,
    keys: fc.dictionary(name, fc.oneof(field(KEY_KINDS), someEnum), {
      minKeys: 1,
      maxKeys: 4,
      noNullPrototype: true,
    }),
    others: fc.dictionary(name, orNull(fc.oneof(field([...KEY_KINDS, ...OTHER_KINDS]), someEnum)), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
    ordered: fc.boolean(),
    indexes: fc.dictionary(
      name,
      fc.record({ unique: fc.boolean(), kind: fc.constantFrom("ordered", "hash") }),
      { maxKeys: 4, noNullPrototype: true },
    ),
    keyLength: fc.integer({ min: 1, max: 4 }),
  })
  .filter(
    ({ keys, others }) =>
      !("__proto__" in keys && Object.hasOwn(keys, "__proto__")) &&
      !Object.hasOwn(others, "__proto__"),
  );

describe("a table from its schema", () => {
  test("has the same schema text", () => {
    const property = fc.property(
      declared,
      ({ name, keys, others, ordered, indexes, keyLength }) => {
        const indexed = Object.keys(keys);
        const made = table(
          name,
          { ...others, ...keys } as Record<string, Field<unknown>>,
          {
            key: indexed.slice(0, keyLength),
            ordered,
            indexes: Object.fromEntries(
              Object.entries(indexes).map(([each, options], i) => [
                each,
                { ...options, on: indexed.slice(0, 1 + (i % indexed.length)) },
              ]),
            ),
          } as never,
        ) as Table;
        const text = JSON.stringify(schemaOf(made));
        const again = tableFromSchema(JSON.parse(text) as Schema);
        expect(JSON.stringify(schemaOf(again))).toBe(text);
        expect(again.singleKey).toBe(made.key.length === 1);
        expect(again.ordinal).not.toBe(made.ordinal);
      },
    );
    check(property, 500);
  });

  test("keeps indexes in the order of the store", () => {
    const schema: Schema = {
      name: "t",
      fields: { a: "u32" },
      key: ["a"],
      ordered: false,
      // As numbers, JavaScript would put them into another order.
      indexes: ["9", "b", "1"].map((each) => ({
        name: each,
        on: ["a"],
        unique: false,
        kind: "hash",
      })),
    };
    expect(JSON.stringify(schemaOf(tableFromSchema(schema)))).toBe(JSON.stringify(schema));
  });

  test("reads and writes the same rows", () => {
    const Declared = table(
      "declared",
      { z: u32(), a: str(10), flag: bool(), data: bytes(), more: json<{ n: number }>() },
      { key: ["z", "a"], indexes: { byFlag: { on: ["flag"] } } },
    );
    const opened = store.open(Declared);
    const row = { z: 7, a: "x", flag: true, data: Uint8Array.of(1, 2), more: { n: 1 } };
    store.fill(opened, [row]);
    const again = store.open(tableFromSchema(schemaOf(Declared as Table)));
    const read = (key: unknown) => store.run((tx) => again.store.read(tx, key));
    expect(read([7, "x"])).toEqual(row);
    store.change(again, (tx) => again.store.put(tx, { ...row, z: 8, flag: false }));
    expect(store.run((tx) => opened.store.read(tx, [8, "x"]))).toEqual({
      ...row,
      z: 8,
      flag: false,
    });
  });

  test.each([
    ["null", /makes no sense: it is no object/],
    ['{"name":"t"}', /it has no fields/],
    ['{"name":"t","fields":{},"key":[],"indexes":[]}', /1 to 256 fields/],
    ['{"name":"t","fields":{"a":"u32"},"indexes":[]}', /it has no key/],
    ['{"name":"t","fields":{"a":"u32"},"key":["a"]}', /no list of indexes/],
    ['{"name":"","fields":{"a":"u32"},"key":["a"],"indexes":[]}', /the name must be a string/],
    ['{"name":"t","fields":{"a":"u32(4)"},"key":["a"],"indexes":[]}', /u32 has no length/],
    ['{"name":"t","fields":{"a":"str(0)"},"key":["a"],"indexes":[]}', /is no type of a field/],
    ['{"name":"t","fields":{"a":7},"key":["a"],"indexes":[]}', /7 is no type of a field/],
    ['{"name":"t","fields":{"a":"constructor"},"key":["a"],"indexes":[]}', /is no type of a field/],
    ['{"name":"t","fields":{"a":"json"},"key":["a"],"indexes":[]}', /json field a cannot be/],
    ['{"name":"t","fields":{"a":"u8"},"key":["b"],"indexes":[]}', /"b" does not exist/],
    ['{"name":"t","fields":{"a":"u8"},"key":["a"],"indexes":[{"name":"i"}]}', /say which fields/],
    ['{"name":"t","fields":{"a":"u8"},"key":["a"],"ordered":1,"indexes":[]}', /ordered is true or/],
  ])("is refused: %s", (text, expected) => {
    const stored = JSON.parse(text) as Schema;
    expect(failureSync("SITU_CORRUPT", () => tableFromSchema(stored)).message).toMatch(expected);
  });
});
