/** Keys of one field and of several, of every type that can be one. */

import { describe, expect, it } from "vitest";
import { bool, bytes, f64, i32, i64, str, u8, u16, u32, u64 } from "../../src/tables/fields.ts";
import { table } from "../../src/tables/table.ts";
import { check, fc } from "../helpers/property.ts";
import { failure, failureSync, MIB, temporaryStores } from "../helpers/store.ts";

const stores = temporaryStores();

describe("one field", () => {
  it.each([
    ["u8", u8(), [0, 1, 255]],
    ["u16", u16(), [0, 255, 256, 65_535]],
    ["u32", u32(), [0, 1, 2 ** 31, 2 ** 32 - 1]],
    ["i32", i32(), [0, -1, -(2 ** 31), 2 ** 31 - 1]],
    ["bool", bool(), [true, false]],
  ] as const)("%s", async (_, field, keys) => {
    const Keyed = table("keyed", { id: field as ReturnType<typeof u32>, n: u32() }, { key: "id" });
    const db = await stores.open({ tables: [Keyed] });
    for (const [n, key] of keys.entries())
      db.transactSync((tx) => tx.insert(Keyed, { id: key as number, n }));
    for (const [n, key] of keys.entries())
      expect(db.get(Keyed, key as number)).toEqual({ id: key, n });
    db.transactSync((tx) => tx.delete(Keyed, keys[0] as number));
    expect(db.get(Keyed, keys[0] as number)).toBeUndefined();
    expect(db.get(Keyed, keys[1] as number)).toBeDefined();
  });

  it("u64 and i64", async () => {
    const Unsigned = table("unsigned", { id: u64(), n: u32() }, { key: "id" });
    const Signed = table("signed", { id: i64(), n: u32() }, { key: "id" });
    const db = await stores.open({ tables: [Unsigned, Signed] });
    const unsigned = [0n, 1n, 2n ** 32n, 2n ** 32n + 1n, 2n ** 63n, 2n ** 64n - 1n];
    const signed = [0n, -1n, 2n ** 32n, -(2n ** 32n), 2n ** 63n - 1n, -(2n ** 63n)];
    db.transactSync((tx) => {
      for (const [n, id] of unsigned.entries()) tx.insert(Unsigned, { id, n });
      for (const [n, id] of signed.entries()) tx.insert(Signed, { id, n });
    });
    for (const [n, id] of unsigned.entries()) expect(db.get(Unsigned, id)).toEqual({ id, n });
    for (const [n, id] of signed.entries()) expect(db.get(Signed, id)).toEqual({ id, n });
    expect(db.get(Unsigned, 2n)).toBeUndefined();
  });

  it("-0 is 0", async () => {
    const Keyed = table("keyed", { id: i32(), n: u32() }, { key: "id" });
    const db = await stores.open({ tables: [Keyed] });
    db.transactSync((tx) => tx.insert(Keyed, { id: -0, n: 1 }));
    expect(db.get(Keyed, 0)?.n).toBe(1);
    failureSync("SITU_EXISTS", () => db.transactSync((tx) => tx.insert(Keyed, { id: 0, n: 2 })));
  });
});

describe.each([
  ["inline text", str(200)],
  ["text of any length", str()],
])("a key of %s", (_, field) => {
  const Word = table("word", { word: field, n: u32() }, { key: "word" });

  it("prefixes of each other, the empty one, zeroes, other alphabets", async () => {
    const db = await stores.open({ tables: [Word], memoryBytes: 32 * MIB });
    const words = [
      "",
      "\0",
      "\0\0",
      "a",
      "a\0",
      "aa",
      "aaa",
      "aaaa",
      "aaaaa",
      "é",
      "e\u0301",
      "🐘",
      "日本",
      "x".repeat(199),
      "x".repeat(200),
    ];
    for (const [n, word] of words.entries()) db.transactSync((tx) => tx.insert(Word, { word, n }));
    for (const [n, word] of words.entries()) expect(db.get(Word, word)).toEqual({ word, n });
    for (const absent of ["b", "aaaaaa", "\0\0\0", "x".repeat(198)]) {
      expect(db.get(Word, absent)).toBeUndefined();
    }
    db.transactSync((tx) => {
      for (const word of words) expect(tx.delete(Word, word)).toBe(true);
    });
    for (const word of words) expect(db.get(Word, word)).toBeUndefined();
  });

  it("as a Map of any strings", async () => {
    const db = await stores.open({ tables: [Word], memoryBytes: 32 * MIB });
    const model = new Map<string, number>();
    const word = fc
      .string({ unit: "grapheme", maxLength: 40 })
      .filter((w) => Buffer.byteLength(w) <= 200);
    check(
      fc.property(word, fc.nat(), fc.boolean(), (key, n, put) => {
        db.transactSync((tx) => {
          if (put) tx.put(Word, { word: key, n });
          else expect(tx.delete(Word, key)).toBe(model.has(key));
        });
        if (put) model.set(key, n);
        else model.delete(key);
        expect(db.get(Word, key)?.n).toBe(model.get(key));
      }),
      500,
    );
    for (const [key, n] of model) expect(db.get(Word, key)).toEqual({ word: key, n });
  });
});

describe("long keys", () => {
  const Word = table("word", { word: str(), n: u32() }, { key: "word" });
  const Raw = table("raw", { raw: bytes(), n: u32() }, { key: "raw" });

  it("up to 1,024 bytes, then an error that says so", async () => {
    const db = await stores.open({ tables: [Word, Raw] });
    const longest = "k".repeat(1_024);
    db.transactSync((tx) => {
      tx.insert(Word, { word: longest, n: 1 });
      tx.insert(Word, { word: longest.slice(1), n: 2 });
      tx.insert(Raw, { raw: new Uint8Array(1_024), n: 3 });
      tx.insert(Raw, { raw: new Uint8Array(1_023), n: 4 });
    });
    expect(db.get(Word, longest)?.n).toBe(1);
    expect(db.get(Word, longest.slice(1))?.n).toBe(2);
    expect(db.get(Raw, new Uint8Array(1_024))?.n).toBe(3);
    expect(db.get(Raw, new Uint8Array(1_023))?.n).toBe(4);
    expect(db.get(Raw, new Uint8Array(1_022))).toBeUndefined();
    for (const work of [
      () => db.get(Word, `${longest}k`),
      () => db.transactSync((tx) => tx.insert(Word, { word: `${longest}k`, n: 1 })),
      () => db.transactSync((tx) => tx.delete(Word, "é".repeat(513))),
      () => db.get(Raw, new Uint8Array(1_025)),
    ]) {
      expect(failureSync("SITU_TOO_LARGE", work).message).toMatch(/at most 1024/);
    }
  });
});

describe("several fields", () => {
  const Edge = table(
    "edge",
    { from: u32(), kind: str(12), to: u64(), flag: bool(), weight: f64() },
    { key: ["to", "kind", "from", "flag"] },
  );
  type Key = readonly [bigint, string, number, boolean];

  it("all of them count, and their borders too", async () => {
    const db = await stores.open({ tables: [Edge] });
    const keys: Key[] = [
      [1n, "a", 2, true],
      [2n, "a", 1, true],
      [1n, "a", 2, false],
      [1n, "aa", 2, true],
      [1n, "", 2, true],
      [2n ** 40n, "a", 2, true],
    ];
    for (const [weight, [to, kind, from, flag]] of keys.entries())
      db.transactSync((tx) => tx.insert(Edge, { from, kind, to, flag, weight }));
    for (const [weight, key] of keys.entries()) expect(db.get(Edge, key)?.weight).toBe(weight);
    expect(db.get(Edge, [1n, "a", 3, true])).toBeUndefined();
    db.transactSync((tx) => {
      tx.update(Edge, [1n, "a", 2, true], { weight: -1 });
      expect(tx.delete(Edge, [1n, "a", 2, false])).toBe(true);
      expect(tx.getMany(Edge, keys).map((row) => row?.weight)).toEqual([-1, 1, undefined, 3, 4, 5]);
    });
  });

  it("text next to text: the border between them is part of the key", async () => {
    const Pair = table("pair", { a: str(), b: str(), n: u32() }, { key: ["a", "b"] });
    const db = await stores.open({ tables: [Pair] });
    const keys = [
      ["", "ab"],
      ["a", "b"],
      ["ab", ""],
      ["abcd", "e"],
      ["abc", "de"],
    ] as const;
    for (const [n, [a, b]] of keys.entries()) db.transactSync((tx) => tx.insert(Pair, { a, b, n }));
    for (const [n, key] of keys.entries()) expect(db.get(Pair, key)?.n).toBe(n);
  });

  it("a list with one name is a key of one value in a list", async () => {
    const One = table("one", { id: u32(), n: u32() }, { key: ["id"] });
    const db = await stores.open({ tables: [One] });
    db.transactSync((tx) => tx.insert(One, { id: 7, n: 1 }));
    expect(db.get(One, [7])?.n).toBe(1);
    failureSync("SITU_TYPE", () => db.get(One, 7 as never));
  });

  it("mistakes are named", async () => {
    const db = await stores.open({ tables: [Edge] });
    for (const key of [
      1n,
      [],
      [1n, "a", 2],
      [1n, "a", 2, true, 1],
      undefined,
      null,
      "1,a,2,true",
    ]) {
      const { message } = failureSync("SITU_TYPE", () => db.get(Edge, key as never));
      expect(message).toContain("a key of 4 values");
    }
    const { message } = failureSync("SITU_TYPE", () => db.get(Edge, [1n, "a", 2n, true] as never));
    expect(message).toContain("edge.from");
    failureSync("SITU_TOO_LARGE", () => db.get(Edge, [1n, "a".repeat(13), 2, true]));
    const missing = failureSync("SITU_MISSING", () =>
      db.transactSync((tx) => tx.update(Edge, [9n, "x", 9, true], { weight: 1 })),
    );
    expect(missing.message).toContain("9,x,9,true");
  });

  it("as a Map of any keys", async () => {
    const db = await stores.open({ tables: [Edge] });
    const model = new Map<string, number>();
    const key = fc.tuple(fc.bigInt(0n, 3n), fc.constantFrom("", "a", "b"), fc.nat(2), fc.boolean());
    check(
      fc.property(key, fc.nat(2), ([to, kind, from, flag], action) => {
        const name = [to, kind, from, flag].join("|");
        db.transactSync((tx) => {
          if (action < 2) tx.put(Edge, { to, kind, from, flag, weight: action });
          else expect(tx.delete(Edge, [to, kind, from, flag])).toBe(model.has(name));
        });
        if (action < 2) model.set(name, action);
        else model.delete(name);
        expect(db.get(Edge, [to, kind, from, flag])?.weight).toBe(model.get(name));
      }),
      300,
    );
  });
});

describe("text that UTF-8 cannot hold", () => {
  it("is refused as a key, or kept apart: two keys never become one", async () => {
    const Word = table("word", { word: str(20), n: u32() }, { key: "word" });
    const db = await stores.open({ tables: [Word] });
    const put = (word: string): Promise<unknown> =>
      failure("SITU_TYPE", () => db.transactSync((tx) => tx.insert(Word, { word, n: 1 })));
    await put("\ud800");
    await put("a\udfff");
    failureSync("SITU_TYPE", () => db.get(Word, "\ud801"));
  });
});
