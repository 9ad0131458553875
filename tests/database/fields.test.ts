/** Every type of field, at its limits: what was put in comes out, in and after a transaction. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import {
  bool,
  bytes,
  enumOf,
  type Field,
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
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

interface Case {
  readonly field: () => Field<unknown>;
  readonly good: readonly unknown[];
  /** A wrong value and a part of the message that says so. */
  readonly bad: readonly (readonly [unknown, RegExp])[];
}

const WHOLE = /whole number/;
const BIGINT = /a bigint/;

const SAFE = Number.MAX_SAFE_INTEGER;
const MOMENT = /a Date or a whole number of milliseconds/;
const UUID = /a UUID/;
const IDS = [
  "00000000-0000-0000-0000-000000000000",
  "ffffffff-ffff-ffff-ffff-ffffffffffff",
  "0188d3c4-7a1e-7bb0-8f0c-0123456789ab",
];

/** Short texts are built by characters, unless one of these is not ASCII: of each length, and wherever that one is. */
const SHORT_TEXTS = Array.from({ length: 14 }, (_, n) => "abcdefghijklm".slice(0, n)).flatMap(
  (text) => [text, `${text}é`, `é${text}`],
);

const CASES: Record<string, Case> = {
  u53: {
    field: u53,
    good: [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 52 + 1, SAFE],
    bad: [
      [-1, WHOLE],
      [0.5, WHOLE],
      [SAFE + 1, WHOLE],
      [Number.NaN, WHOLE],
      [Number.POSITIVE_INFINITY, WHOLE],
      [1n, WHOLE],
      ["1", WHOLE],
      [null, WHOLE],
      [new Date(0), WHOLE],
    ],
  },
  i53: {
    field: i53,
    good: [0, -1, -(2 ** 32), SAFE, -SAFE],
    bad: [
      [-SAFE - 1, WHOLE],
      [1.5, WHOLE],
      [true, WHOLE],
    ],
  },
  timestamp: {
    field: timestamp,
    good: [new Date(0), new Date(-1), new Date(8.64e15), new Date("2026-01-05T10:00:00.123Z")],
    bad: [
      [new Date(Number.NaN), MOMENT],
      [1.5, MOMENT],
      [8.64e15 + 1, MOMENT],
      ["2026-01-05", MOMENT],
      [null, MOMENT],
      [{ getTime: () => 5 }, MOMENT],
    ],
  },
  "timestamp as a number": {
    field: () => timestamp({ as: "number" }),
    good: [0, -1, 1_767_607_200_123, -8.64e15],
    bad: [[Number.NaN, MOMENT]],
  },
  uuid: {
    field: uuid,
    good: IDS,
    bad: [
      ["", UUID],
      [IDS[0].slice(1), UUID],
      [IDS[0].replaceAll("-", "0"), UUID],
      [IDS[2].replace("b", "g"), UUID],
      [IDS[2].replace("b", "é"), UUID],
      [new Uint8Array(16), UUID],
      [null, UUID],
    ],
  },
  enumOf: {
    field: () => enumOf("draft", "sent", ""),
    good: ["draft", "sent", ""],
    bad: [
      ["lost", /one of "draft", "sent", "", got the string "lost"/],
      [0, /one of/],
      [null, /one of/],
      ["toString", /one of/],
    ],
  },
  "nullable(u32)": {
    field: () => nullable(u32()),
    good: [null, 0, 7, 2 ** 32 - 1],
    bad: [[-1, /whole number from 0 to 4294967295, or null/]],
  },
  "nullable(u8)": { field: () => nullable(u8()), good: [255, null, 0], bad: [["x", /or null/]] },
  "nullable(timestamp)": {
    field: () => nullable(timestamp()),
    good: [null, new Date(0), new Date(5)],
    bad: [["x", MOMENT]],
  },
  "nullable(uuid)": { field: () => nullable(uuid()), good: [IDS[2], null], bad: [["x", UUID]] },
  "nullable(enum)": {
    field: () => nullable(enumOf("a", "b")),
    good: [null, "a", "b"],
    bad: [["c", /one of "a", "b", or null/]],
  },
  "nullable(str(24))": {
    field: () => nullable(str(24)),
    good: [null, "", "x".repeat(24), "é"],
    bad: [
      ["x".repeat(25), /25 bytes, at most 24/],
      [1, /a string, or null/],
    ],
  },
  "nullable(str)": {
    field: () => nullable(str()),
    good: [null, "", "x".repeat(500)],
    bad: [[1, /a string, or null/]],
  },
  "nullable(bytes)": {
    field: () => nullable(bytes()),
    good: [new Uint8Array([1]), null, new Uint8Array()],
    bad: [[1, /a Uint8Array, or null/]],
  },
  "nullable(i64)": {
    field: () => nullable(i64()),
    good: [null, 0n, -5n],
    bad: [[1, BIGINT]],
  },
  u8: {
    field: u8,
    good: [0, 1, 127, 128, 255],
    bad: [
      [-1, WHOLE],
      [256, WHOLE],
      [1.5, WHOLE],
      [Number.NaN, WHOLE],
      ["1", WHOLE],
      [1n, WHOLE],
      [null, WHOLE],
      [undefined, /got nothing/],
      [true, WHOLE],
    ],
  },
  u16: {
    field: u16,
    good: [0, 1, 255, 256, 65_535],
    bad: [
      [-1, WHOLE],
      [65_536, WHOLE],
      [0.1, WHOLE],
      [[], WHOLE],
    ],
  },
  u32: {
    field: u32,
    good: [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
    bad: [
      [-1, WHOLE],
      [2 ** 32, WHOLE],
      [Number.POSITIVE_INFINITY, WHOLE],
      [{}, WHOLE],
    ],
  },
  i32: {
    field: i32,
    good: [0, -1, 2 ** 31 - 1, -(2 ** 31)],
    bad: [
      [2 ** 31, WHOLE],
      [-(2 ** 31) - 1, WHOLE],
      [0.5, WHOLE],
      ["", WHOLE],
    ],
  },
  f64: {
    field: f64,
    good: [
      0,
      -0,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      Number.MAX_VALUE,
      Number.MIN_VALUE,
      Number.MAX_SAFE_INTEGER,
    ],
    bad: [
      ["1", /a number/],
      [1n, /the bigint 1n/],
      [undefined, /got nothing/],
      [null, /got null/],
    ],
  },
  bool: {
    field: bool,
    good: [true, false],
    bad: [
      [0, /a boolean/],
      ["true", /the string "true"/],
      [null, /null/],
    ],
  },
  u64: {
    field: u64,
    good: [0n, 1n, 2n ** 32n, 2n ** 63n, 2n ** 64n - 1n],
    bad: [
      [1, BIGINT],
      [-1n, BIGINT],
      [2n ** 64n, BIGINT],
      ["1", BIGINT],
    ],
  },
  i64: {
    field: i64,
    good: [0n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n],
    bad: [
      [0, BIGINT],
      [2n ** 63n, BIGINT],
      [-(2n ** 63n) - 1n, BIGINT],
      [true, BIGINT],
    ],
  },
  "str(24)": {
    field: () => str(24),
    good: [...SHORT_TEXTS, "a".repeat(24), "é".repeat(12), "🐘".repeat(6), "\0zero\0", "日本語"],
    bad: [
      ["a".repeat(25), /25 bytes, at most 24/],
      ["é".repeat(13), /26 bytes/],
      [1, /a string/],
      [null, /a string/],
    ],
  },
  "str(255)": {
    field: () => str(255),
    good: ["", "x".repeat(255), "é".repeat(127), "x".repeat(17)],
    bad: [["x".repeat(256), /at most 255/]],
  },
  "str(256)": {
    field: () => str(256),
    good: ["", "x".repeat(256), "é".repeat(128)],
    bad: [["x".repeat(257), /at most 256/]],
  },
  str: {
    field: () => str(),
    good: [
      "",
      "a",
      "🐘 elephant",
      ...SHORT_TEXTS,
      "x".repeat(70_000),
      "é".repeat(MIB / 2),
      "x".repeat(MIB),
    ],
    bad: [
      ["x".repeat(MIB + 1), /at most 1048576/],
      [Symbol("s"), /a string/],
      [new String("s"), /a string/],
    ],
  },
  "bytes(16)": {
    field: () => bytes(16),
    good: [new Uint8Array(), new Uint8Array([0]), new Uint8Array(16).fill(255)],
    bad: [
      [new Uint8Array(17), /17 bytes, at most 16/],
      ["bytes", /a Uint8Array/],
      [[1, 2], /a Uint8Array/],
      [new Uint16Array(2), /Uint16Array/],
    ],
  },
  bytes: {
    field: () => bytes(),
    good: [
      new Uint8Array(),
      new Uint8Array([0, 255, 1]),
      new Uint8Array(300).fill(7),
      new Uint8Array(MIB).fill(9),
    ],
    bad: [
      [new Uint8Array(MIB + 1), /at most 1048576/],
      [new ArrayBuffer(3), /a Uint8Array/],
      [null, /a Uint8Array/],
    ],
  },
  json: {
    field: () => json(),
    good: [
      null,
      true,
      0,
      "",
      "text",
      [],
      {},
      [1, [2, [3, { four: "🐘" }]]],
      { a: { b: { c: [null, false] } }, "": 1, 'quo"te': "\n" },
      "x".repeat(MIB - 2),
    ],
    bad: [
      [undefined, /JSON can hold/],
      [() => 1, /JSON can hold/],
      [Symbol("s"), /JSON can hold/],
      [1n, /serialize a BigInt/],
      [{ deep: [2n] }, /serialize a BigInt/],
      [circular(), /circular structure/],
      ["x".repeat(MIB), /at most 1048576/],
    ],
  },
  pointer: {
    field: pointer,
    good: [null],
    bad: [
      [undefined, /a Pointer or null/],
      [0, /a Pointer or null/],
      [{ address: 1, size: 2, incarnation: 3, count: 0 }, /a Pointer or null/],
    ],
  },
};

function circular(): unknown {
  const value: { self?: unknown } = {};
  value.self = value;
  return value;
}

describe.each(Object.keys(CASES))("%s", (name) => {
  const { field, good, bad } = CASES[name];
  // Neighbours on both sides show whether a value keeps to its place.
  const fields = { id: u32(), before: u8(), value: field(), after: u8(), wide: f64() };
  const Kind = table("kind", fields, { key: "id" });
  const rowOf = (id: number, value: unknown) => ({
    id,
    before: 255,
    value,
    after: 254,
    wide: -1 / 3,
  });

  it("comes out as it was put in, in the transaction and after it", async () => {
    const db = await stores.open({ tables: [Kind], memoryBytes: 48 * MIB });
    for (const [id, value] of good.entries()) {
      db.transactSync((tx) => {
        tx.insert(Kind, rowOf(id, value));
        assert.deepEqual(tx.get(Kind, id), rowOf(id, value));
      });
      assert.deepEqual(db.get(Kind, id), rowOf(id, value));
      db.transactSync((tx) => {
        for (const other of good.slice(0, 3)) {
          tx.update(Kind, id, { value: other });
          assert.deepEqual(tx.get(Kind, id)?.value, other);
        }
        tx.update(Kind, id, { after: 1 });
        tx.update(Kind, id, { value, after: 254 });
      });
      assert.deepEqual(db.get(Kind, id), rowOf(id, value));
    }
    for (const [id, value] of good.entries()) {
      assert.deepEqual(db.get(Kind, id), rowOf(id, value));
    }
  });

  it("refuses other values, says what it expects, and changes nothing", async () => {
    const db = await stores.open({ tables: [Kind], memoryBytes: 16 * MIB });
    db.transactSync((tx) => tx.insert(Kind, rowOf(1, good[0])));
    for (const [value, message] of bad) {
      const code = /at most|bytes/.test(message.source) ? "SITU_TOO_LARGE" : "SITU_TYPE";
      for (const work of [
        () => db.transactSync((tx) => tx.insert(Kind, rowOf(2, value))),
        () => db.transactSync((tx) => tx.put(Kind, rowOf(1, value))),
        () => db.transactSync((tx) => tx.update(Kind, 1, { before: 9, value, after: 9 })),
      ].slice(0, value === undefined ? 2 : 3)) {
        const error = failureSync(code, work);
        expect(error.message).toMatch(message);
        expect(error.message).toContain("kind.value");
        expect(error.retryable).toBe(false);
      }
    }
    assert.deepEqual(db.get(Kind, 1), rowOf(1, good[0]));
    expect(db.get(Kind, 2)).toBeUndefined();
  });

  it("a refused update that the body survives leaves the whole row as it was", async () => {
    const db = await stores.open({ tables: [Kind], memoryBytes: 16 * MIB });
    db.transactSync((tx) => tx.insert(Kind, rowOf(1, good[0])));
    db.transactSync((tx) => {
      // Undefined is no value: it leaves a field as it is.
      for (const [value] of bad.filter(([each]) => each !== undefined)) {
        expect(() => tx.update(Kind, 1, { before: 9, value, after: 9 })).toThrow();
        expect(() => tx.update(Kind, 1, { after: 9, before: 9, value })).toThrow();
        expect(() => tx.put(Kind, { ...rowOf(1, value), before: 9 })).toThrow();
        assert.deepEqual(tx.get(Kind, 1), rowOf(1, good[0]));
      }
      tx.update(Kind, 1, { wide: 4 });
    });
    assert.deepEqual(db.get(Kind, 1), { ...rowOf(1, good[0]), wide: 4 });
  });
});

describe("all types in one row", () => {
  const All = table(
    "all",
    {
      id: u32(),
      a: u8(),
      b: u16(),
      c: i32(),
      d: f64(),
      e: bool(),
      f: u64(),
      g: i64(),
      h: str(20),
      i: bytes(20),
      j: str(),
      k: bytes(),
      l: json(),
      m: pointer(),
    },
    { key: "id" },
  );

  const row = fc.record({
    id: fc.nat(30),
    a: fc.nat(255),
    b: fc.nat(65_535),
    c: fc.integer(),
    d: fc.double(),
    e: fc.boolean(),
    f: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    g: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    h: fc
      .string({ unit: "grapheme", maxLength: 20 })
      .filter((text) => Buffer.byteLength(text) <= 20),
    i: fc.uint8Array({ maxLength: 20 }),
    j: fc.string({ unit: "grapheme", maxLength: 600 }),
    k: fc.uint8Array({ maxLength: 600 }),
    l: fc.jsonValue().filter((value) => !JSON.stringify(value).includes("-0")),
    m: fc.constant(null),
  });

  it("survive any values", async () => {
    const db = await stores.open({ tables: [All], memoryBytes: 32 * MIB });
    const model = new Map<number, unknown>();
    check(
      fc.property(row, (values) => {
        db.transactSync((tx) => tx.put(All, values));
        model.set(values.id, { ...values, l: JSON.parse(JSON.stringify(values.l)) });
        for (const [id, wanted] of model) assert.deepEqual(db.get(All, id), wanted);
      }),
      150,
    );
  });

  it("what is returned is the caller's own copy", async () => {
    const db = await stores.open({ tables: [All] });
    const put = {
      id: 1,
      a: 1,
      b: 1,
      c: 1,
      d: 1,
      e: true,
      f: 1n,
      g: 1n,
      h: "h",
      i: new Uint8Array([1]),
      j: "j",
      k: new Uint8Array([2]),
      l: { list: [1] },
      m: null,
    };
    db.transactSync((tx) => {
      tx.put(All, put);
      const mine = tx.get(All, 1)!;
      mine.i[0] = 99;
      mine.k[0] = 99;
      mine.a = 99;
      put.k[0] = 77;
    });
    const row = db.get(All, 1)!;
    expect([row.a, row.i[0], row.k[0]]).toEqual([1, 1, 2]);
    row.k[0] = 55;
    expect(db.get(All, 1)?.k[0]).toBe(2);
  });

  it("a Buffer is a Uint8Array too, and a view of a larger buffer is only its part", async () => {
    const db = await stores.open({ tables: [All] });
    const large = new Uint8Array([9, 9, 1, 2, 3, 9]);
    db.transactSync((tx) =>
      tx.put(All, {
        id: 1,
        a: 0,
        b: 0,
        c: 0,
        d: 0,
        e: false,
        f: 0n,
        g: 0n,
        h: "",
        i: Buffer.from("buf"),
        j: "",
        k: large.subarray(2, 5),
        l: null,
        m: null,
      }),
    );
    assert.deepEqual(db.get(All, 1)?.i, new Uint8Array([98, 117, 102]));
    assert.deepEqual(db.get(All, 1)?.k, new Uint8Array([1, 2, 3]));
  });
});

describe("names of fields", () => {
  it("may be anything that is not a trap", async () => {
    const Odd = table(
      "od\"d\n'table",
      {
        'i"d': u32(),
        constructor: u32(),
        toString: str(8),
        "a b\n`${x}`": f64(),
        "\u2028": bool(),
      },
      { key: 'i"d' },
    );
    const db = await stores.open({ tables: [Odd] });
    const row = { 'i"d': 1, constructor: 2, toString: "three", "a b\n`${x}`": 4, "\u2028": true };
    db.transactSync((tx) => tx.insert(Odd, row));
    assert.deepEqual(db.get(Odd, 1), row);
    db.transactSync((tx) => tx.update(Odd, 1, { constructor: 7, toString: "three" }));
    assert.deepEqual(db.get(Odd, 1), { ...row, constructor: 7 });
  });
});
