/** Keys in their ordered form against the order that JavaScript has of them, and ranges of them. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { KeyRange, OrderedCodec } from "../../src/stores/store.ts";
import { orderedCodecOf } from "../../src/tables/codec/ordered.ts";
import {
  bool,
  bytes,
  enumOf,
  type Field,
  i32,
  i53,
  i64,
  nullable,
  str,
  timestamp,
  u8,
  u16,
  u32,
  u53,
  u64,
  uuid,
} from "../../src/tables/fields.ts";
import { type Bounds, rangeOf } from "../../src/tables/range.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { compareKeys } from "../helpers/btree.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync } from "../helpers/store.ts";

type Value = number | bigint | boolean | string | Uint8Array | Date | null;

/** In an order that is not that of their texts. */
const LEVELS = ["low", "high", "above"] as const;

function compareValues(a: Value, b: Value): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  if (a instanceof Date) return Math.sign(a.getTime() - (b as Date).getTime());
  const level = LEVELS.indexOf(a as "low");
  if (level >= 0) return Math.sign(level - LEVELS.indexOf(b as "low"));
  if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  if (a instanceof Uint8Array) return Buffer.compare(a, b as Uint8Array);
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function compareLists(a: readonly Value[], b: readonly Value[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const order = compareValues(a[i], b[i]);
    if (order !== 0) return order;
  }
  return 0;
}

/** Few different characters, zeroes and ends of the range among them, so that texts meet. */
const text = (most: number): fc.Arbitrary<string> =>
  fc
    .string({ unit: fc.constantFrom("\0", "\u0001", "a", "b", "é", "\u{10ffff}"), maxLength: 12 })
    .map((made) => {
      let cut = made;
      while (Buffer.byteLength(cut) > most) cut = [...cut].slice(0, -1).join("");
      return cut;
    });
const octets = (most: number): fc.Arbitrary<Uint8Array> =>
  fc
    .array(fc.constantFrom(0, 1, 0x7f, 0x80, 0xfe, 0xff), { maxLength: Math.min(most, 12) })
    .map((made) => Uint8Array.from(made));

const whole = (least: number, most: number): fc.Arbitrary<number> =>
  fc.oneof(
    fc.integer({ min: least, max: most }),
    fc.constantFrom(least, most),
    fc.integer({ min: Math.max(least, -3), max: 3 }),
  );
const long = (least: bigint, most: bigint): fc.Arbitrary<bigint> =>
  fc.oneof(
    fc.bigInt({ min: least, max: most }),
    fc.constantFrom(least, most, 2n ** 32n - 1n, 2n ** 32n),
  );

/** Both signs, with what lies around the ends of a word. */
const wide = (most: number): fc.Arbitrary<number> =>
  fc.oneof(
    whole(-most, most),
    fc.constantFrom(2 ** 32, 2 ** 32 - 1, -(2 ** 32), -(2 ** 32) - 1, -(2 ** 31), 2 ** 31),
  );
const orNull = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> =>
  fc.option(value, { nil: null, freq: 3 });

const FIELDS: Record<string, { field: Field<unknown>; value: fc.Arbitrary<Value> }> = {
  "u8()": { field: u8(), value: whole(0, 0xff) },
  "u16()": { field: u16(), value: whole(0, 0xffff) },
  "u32()": { field: u32(), value: whole(0, 0xffffffff) },
  "i32()": { field: i32(), value: whole(-0x80000000, 0x7fffffff) },
  "u64()": { field: u64(), value: long(0n, 2n ** 64n - 1n) },
  "i64()": { field: i64(), value: long(-(2n ** 63n), 2n ** 63n - 1n) },
  "u53()": { field: u53(), value: whole(0, Number.MAX_SAFE_INTEGER) },
  "i53()": { field: i53(), value: wide(Number.MAX_SAFE_INTEGER) },
  "timestamp()": { field: timestamp(), value: wide(8.64e15).map((ms) => new Date(ms)) },
  "uuid()": { field: uuid(), value: fc.uuid() },
  "enumOf()": { field: enumOf(...LEVELS), value: fc.constantFrom(...LEVELS) },
  "nullable(u8())": { field: nullable(u8()), value: orNull(whole(0, 0xff)) },
  "nullable(i53())": { field: nullable(i53()), value: orNull(wide(Number.MAX_SAFE_INTEGER)) },
  "nullable(uuid())": { field: nullable(uuid()), value: orNull(fc.uuid()) },
  "nullable(str(10))": { field: nullable(str(10)), value: orNull(text(10)) },
  "nullable(str())": { field: nullable(str()), value: orNull(text(60)) },
  "nullable(bytes())": { field: nullable(bytes()), value: orNull(octets(60)) },
  "bool()": { field: bool(), value: fc.boolean() },
  "str(3)": { field: str(3), value: text(3) },
  "str(10)": { field: str(10), value: text(10) },
  "str(28)": { field: str(28), value: text(28) },
  "str(29)": { field: str(29), value: text(29) },
  "str()": { field: str(), value: text(60) },
  "bytes(4)": { field: bytes(4), value: octets(4) },
  "bytes(9)": { field: bytes(9), value: octets(9) },
  "bytes(40)": { field: bytes(40), value: octets(40) },
  "bytes()": { field: bytes(), value: octets(60) },
};

/** A codec is generated code, which takes longer to make than to use. */
const codecs = new Map<string, OrderedCodec<unknown, unknown>>();

function codecFor(fields: readonly Field<unknown>[], names: readonly string[]) {
  const known = JSON.stringify(fields);
  let codec = codecs.get(known);
  if (codec === undefined) {
    // As the hidden table of an index, whose keys may be null.
    const declared = Object.fromEntries(fields.map((field, i) => [names[i], field]));
    const made = { ...table("t", { id: u32() }, { key: ["id"] }), fields: declared, key: names };
    codec = orderedCodecOf(made as unknown as Table);
    codecs.set(known, codec);
  }
  return codec;
}

function orderedForm(fields: readonly Field<unknown>[], values: readonly Value[]): Int32Array {
  const names = fields.map((_, index) => `f${index}`);
  const codec = codecFor(fields, names);
  const words = codec.stageOrdered(values as never);
  assert.ok(codec.orderedWords === 0 || codec.orderedWords === words);
  assert.ok(words <= codec.mostOrderedWords);
  const form = codec.ordered.slice(0, words);
  const row = Object.fromEntries(values.map((value, i) => [names[i], value]));
  assert.deepEqual(codec.ordered.slice(0, codec.stageOrderedOf(row as never)), form);
  const rowWords = codec.encode(row as never);
  assert.deepEqual(codec.ordered.slice(0, codec.stageOrderedEncoded()), form);
  // The row is found by its key, and by the hash of it, in each of these forms.
  const hash = codec.stageKey(values as never, 7);
  assert.ok(codec.matches(codec.scratch, 0));
  assert.equal(codec.stageEncoded(7), hash);
  assert.equal(codec.stageKeyOf(codec.decode(codec.scratch, 0, rowWords), 7), hash);
  return form;
}

describe("the order of keys", () => {
  it.each(Object.entries(FIELDS))("%s", (_, { field, value }) => {
    check(
      fc.property(value, value, (a, b) => {
        const order = compareKeys(orderedForm([field], [a]), orderedForm([field], [b]));
        assert.equal(Math.sign(order), compareValues(a, b));
      }),
      200,
    );
  });

  it("several fields, field by field", () => {
    const names = fc.array(fc.constantFrom(...Object.keys(FIELDS)), { minLength: 2, maxLength: 4 });
    const keys = names.chain((chosen) => {
      const key = fc.tuple(...chosen.map((name) => FIELDS[name].value));
      return fc.tuple(fc.constant(chosen), key, key);
    });
    check(
      fc.property(keys, fc.nat(3), ([chosen, a, b], same) => {
        const other = b.map((value, index) => (index < same ? a[index] : value));
        const fields = chosen.map((name) => FIELDS[name].field);
        const order = compareKeys(orderedForm(fields, a), orderedForm(fields, other));
        assert.equal(Math.sign(order), compareLists(a, other));
      }),
      400,
    );
  });

  it("has one size for short keys", () => {
    const wordsOf = (...fields: Field<unknown>[]): number =>
      orderedCodecOf(
        table("t", Object.fromEntries(fields.map((field, i) => [`f${i}`, field])), {
          key: fields.map((_, i) => `f${i}`),
        }),
      ).orderedWords;
    expect(wordsOf(u32())).toBe(1);
    expect(wordsOf(i64())).toBe(2);
    expect(wordsOf(u32(), str(10))).toBe(5);
    expect(wordsOf(str(28))).toBe(8);
    expect(wordsOf(str(29))).toBe(0);
    expect(wordsOf(str(20), str(20))).toBe(0);
    expect(wordsOf(u32(), str())).toBe(0);
  });

  it("refuses keys that are too long or of another type", () => {
    const codec = orderedCodecOf(table("t", { id: str(), more: str() }, { key: ["id", "more"] }));
    expect(codec.stageOrdered(["x".repeat(500), "y".repeat(500)])).toBeLessThanOrEqual(256);
    const tooLong = failureSync("SITU_TOO_LARGE", () =>
      codec.stageOrdered(["x".repeat(600), "y".repeat(600)]),
    );
    expect(tooLong.message).toMatch(/table t: the key takes 12\d\d bytes .* at most 1024/);
    failureSync("SITU_TOO_LARGE", () => codec.stageOrdered(["\0".repeat(520), ""]));
    expect(failureSync("SITU_TYPE", () => codec.stageOrdered(["x"] as never)).message).toBe(
      "table t: expected a key of 2 values, got a list of 1",
    );
    expect(failureSync("SITU_TYPE", () => codec.stageOrdered(["x", 1] as never)).message).toBe(
      "t.more: expected a string, got the number 1",
    );
    failureSync("SITU_TYPE", () => codec.stageOrdered(["\ud800", ""]));
    failureSync("SITU_TYPE", () => codec.stageOrderedOf({ id: "a" } as never));
  });
});

const isIn = (key: Int32Array, { from, to }: KeyRange): boolean =>
  (from === undefined || compareKeys(key, from) >= 0) &&
  (to === undefined || compareKeys(key, to) < 0);

const NAMES = ["eq", "gte", "gt", "lte", "lt"] as const;

/** The same values, but for the last, which is a beginning if it is a text. */
function beginsWith(key: readonly Value[], values: readonly Value[]): boolean {
  const last = values.length - 1;
  const [own, given] = [key[last], values[last]];
  if (typeof given !== "string" && !(given instanceof Uint8Array)) {
    return compareLists(key, values) === 0;
  }
  if (own === null) return false;
  const beginning = Buffer.from(given as string);
  const isSame = Buffer.from(own as string)
    .subarray(0, beginning.length)
    .equals(beginning);
  return isSame && (last === 0 || compareLists(key, values.slice(0, last)) === 0);
}

function allows(bounds: Bounds, key: readonly Value[]): boolean {
  return Object.entries(bounds).every(([name, bound]) => {
    const order = Math.sign(compareLists(key, bound as Value[]));
    if (name === "eq") return order === 0;
    if (name === "prefix") return beginsWith(key, bound as Value[]);
    if (name === "gte") return order >= 0;
    if (name === "gt") return order > 0;
    return name === "lte" ? order <= 0 : order < 0;
  });
}

describe("ranges", () => {
  it.each(Object.entries(FIELDS))("of one field, %s", (_, { field, value }) => {
    const bounds = fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 3 });
    check(
      fc.property(bounds, value, (given, key) => {
        const range = rangeOf("t", [{ name: "f0", field }], true, given);
        const lists = Object.fromEntries(Object.entries(given).map(([name, one]) => [name, [one]]));
        assert.equal(isIn(orderedForm([field], [key]), range), allows(lists, [key]));
      }),
      300,
    );
  });

  it.each(Object.entries(FIELDS).filter(([name]) => /str|bytes/.test(name)))(
    "of a prefix, %s",
    (_, { field, value }) => {
      check(
        fc.property(value, value, fc.nat(6), (key, other, length) => {
          const fallback = field.kind === "bytes" ? Uint8Array.of(1) : "a";
          const from = (length < 4 ? key : other) ?? fallback;
          const prefix =
            typeof from === "string"
              ? [...from].slice(0, length).join("")
              : (from as Uint8Array).slice(0, length);
          const range = rangeOf("t", [{ name: "f0", field }], true, { prefix });
          const begins =
            key !== null &&
            Buffer.from(key as string)
              .subarray(0, Buffer.from(prefix as string).length)
              .compare(Buffer.from(prefix as string)) === 0;
          assert.equal(isIn(orderedForm([field], [key]), range), begins);
        }),
        400,
      );
    },
  );

  it("of several fields, by the first of them", () => {
    const chosen = ["u8()", "nullable(str(10))", "bytes()", "i64()"];
    const fields = chosen.map((name, index) => ({
      name: `f${index}`,
      field: FIELDS[name].field,
    }));
    const key = fc.tuple(...chosen.map((name) => FIELDS[name].value));
    const bounds = fc.dictionary(
      fc.constantFrom(...NAMES, "prefix"),
      fc.tuple(key, fc.integer({ min: 1, max: 4 })),
      { maxKeys: 3 },
    );
    check(
      fc.property(bounds, key, fc.nat(4), (made, other, same) => {
        // The key that is looked for begins as one of the bounds does.
        const [first] = Object.values(made);
        const wanted = other.map((value, i) => (first && i < same ? first[0][i] : value));
        // And sometimes goes on where the bound ends, as what has a prefix does.
        const text = first?.[0][1];
        if (same === 2 && typeof text === "string" && Buffer.byteLength(text) < 10) {
          wanted[1] = `${text}x`;
        }
        const given = Object.fromEntries(
          Object.entries(made).map(([name, [values, count]]) => [name, values.slice(0, count)]),
        );
        const form = orderedForm(
          fields.map(({ field }) => field),
          wanted,
        );
        assert.equal(isIn(form, rangeOf("t", fields, false, given)), allows(given, wanted));
      }),
      600,
    );
  });

  it("takes undefined for no bound", () => {
    const fields = [{ name: "id", field: u32() }];
    const open = { from: undefined, to: undefined };
    expect(rangeOf("t", fields, true, {})).toEqual(open);
    expect(rangeOf("t", fields, true, { gte: undefined, prefix: undefined })).toEqual(open);
    expect(rangeOf("t", fields, true, { lte: 0xffffffff })).toEqual(open);
    const nothing = rangeOf("t", fields, true, { gt: 0xffffffff });
    expect(isIn(Int32Array.of(-1), nothing)).toBe(false);
  });

  it.each([
    [{ gte: "1" }, "accounts: gte of id: expected a whole number", 'the string "1"'],
    [{ eq: Number.NaN }, "accounts: eq of id", "the number NaN"],
    [{ lt: 1.5 }, "accounts: lt of id", "the number 1.5"],
    [{ lte: -1 }, "accounts: lte of id", "the number -1"],
    [{ gt: [1] }, "accounts: gt of id", "a list of 1"],
    [{ gt: null }, "accounts: gt of id", "null"],
    [{ prefix: 1 }, "accounts: prefix is for text and bytes, and id is a u32 field", "use eq"],
  ])("refuses %o on one field", (bounds, ...parts) => {
    const fields = [{ name: "id", field: u32() }];
    const { message } = failureSync("SITU_TYPE", () => rangeOf("accounts", fields, true, bounds));
    for (const part of parts) expect(message).toContain(part);
  });

  it.each([
    [{ gte: 1 }, "accounts.byOwner: gte: expected a list of 1 to 2 values (owner, at)", "number 1"],
    [{ eq: [] }, "eq: expected a list", "a list of 0"],
    [{ eq: ["a", 1n, 2] }, "a list of 1 to 2 values", "a list of 3"],
    [{ lt: [1] }, "accounts.byOwner: lt of owner: expected a string", "the number 1"],
    [{ prefix: ["a", 1] }, "prefix of at: expected a bigint", "the number 1"],
    [{ prefix: "a" }, "prefix: expected a list", 'the string "a"'],
    [{ gt: [undefined] }, "gt of owner: expected a string", "nothing"],
  ])("refuses %o on two fields", (bounds, ...parts) => {
    const fields = [
      { name: "owner", field: str(20) },
      { name: "at", field: i64() },
    ];
    const { message } = failureSync("SITU_TYPE", () =>
      rangeOf("accounts.byOwner", fields, false, bounds),
    );
    for (const part of parts) expect(message).toContain(part);
  });

  it("refuses text that no key can have", () => {
    const fields = [{ name: "owner", field: str(5) }];
    failureSync("SITU_TOO_LARGE", () => rangeOf("t", fields, true, { gte: "123456" }));
    failureSync("SITU_TOO_LARGE", () => rangeOf("t", fields, true, { prefix: "123456" }));
    failureSync("SITU_TYPE", () => rangeOf("t", fields, true, { eq: "\ud800" }));
    const long = [{ name: "owner", field: str() }];
    failureSync("SITU_TOO_LARGE", () => rangeOf("t", long, true, { eq: "\0".repeat(600) }));
  });
});
