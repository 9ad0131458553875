/** Statements and values as they are typed, and as they are shown. */

import { describe, expect, test } from "vitest";
import { keyFor, rowFor, valueFor } from "../../src/cli/work/shell/fields.ts";
import { parseLiteral } from "../../src/cli/work/shell/literals.ts";
import { safeText, shownBytes, shownValue } from "../../src/cli/work/shell/show.ts";
import { splitStatements, wordsOf } from "../../src/cli/work/shell/words.ts";
import {
  autoIncrement,
  bytes,
  enumOf,
  i64,
  json,
  nullable,
  str,
  table,
  timestamp,
  u32,
  u53,
  u64,
  uuid,
} from "../../src/index.ts";
import { check, fc } from "../helpers/property.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
describe("statements", () => {
  test("end at semicolons and new lines, not inside quotes and brackets", () => {
    const text = `get a 1; put a {x: "a;b\n", y: [1,\n2]}\n# a comment; not one\nscan a ';';`;
    expect(splitStatements(text)).toEqual({
      statements: ["get a 1", `put a {x: "a;b\n", y: [1,\n2]}`, "scan a ';'"],
      rest: "",
    });
  });

  test.each(["put a {", 'put a {x: "', "get 'a", "put a {x: [1, 2}"])(
    "%s is not complete",
    (text) => {
      expect(splitStatements(`count b\n${text}`)).toEqual({ statements: ["count b"], rest: text });
      expect(() => wordsOf(text)).toThrow("not closed");
    },
  );

  test("the words of one", () => {
    const words = wordsOf(`update seat 12 'a b' [1, "]"] {a: {b: 1}}`);
    expect(words.map(({ kind, text }) => [kind, text])).toEqual([
      ["bare", "update"],
      ["bare", "seat"],
      ["bare", "12"],
      ["quoted", "'a b'"],
      ["group", '[1, "]"]'],
      ["group", "{a: {b: 1}}"],
    ]);
  });

  test("any text is split into what can be split again", () => {
    check(
      fc.property(fc.string({ unit: fc.constantFrom(..."a1 \n;\"'{}[]\\#:,") }), (text) => {
        const { statements } = splitStatements(text);
        for (const each of statements) {
          // A comment may be inside of a statement only as a word.
          if (each.includes("#")) continue;
          expect(splitStatements(each)).toEqual({ statements: [each], rest: "" });
          expect(wordsOf(each).length).toBeGreaterThan(0);
        }
      }),
    );
  });
});

describe("literals", () => {
  test.each<[string, unknown]>([
    ["7", 7],
    ["-1.5e3", -1500],
    ["7n", 7n],
    ["12345678901234567890", 12345678901234567890n],
    ["true", true],
    ["null", null],
    ["NaN", Number.NaN],
    ["-Infinity", Number.NEGATIVE_INFINITY],
    ["'a\\'b'", "a'b"],
    ['"tab\\t\\u00e9"', "tab\té"],
    ["0x00ff", new Uint8Array([0, 255])],
    ["0x", new Uint8Array()],
    ['"é\\xff"', new Uint8Array([0xc3, 0xa9, 0xff])],
    ["[1, 'a', ]", [1, "a"]],
    ["{a: 1, 'b c': {d: []}}", { a: 1, "b c": { d: [] } }],
  ])("%s", (text, value) => {
    expect(parseLiteral(text)).toEqual(value);
  });

  test.each([
    ["", "a value is missing"],
    ["ada", "put ada in quotes"],
    ["{a 1}", "a colon is missing"],
    ["{a: 1 b: 2}", "a comma or } is missing"],
    ["{a: 1, a: 2}", "a is given twice"],
    ["[1 2]", "a comma or ] is missing"],
    ["1 2", "unexpected text"],
    ["1.5n", "is not an integer"],
    ["12abc", "is not a number"],
    ['"\\x1"', "2 hexadecimal digits"],
    ["'open", "of a string is missing"],
    ["[".repeat(200), "nested too deeply"],
  ])("not %s", (text, why) => {
    expect(() => parseLiteral(text)).toThrow(why);
    expect(() => parseLiteral(text)).toThrow(expect.objectContaining({ code: "SITU_TYPE" }));
  });

  test("all of JSON", () => {
    // Whole numbers that a double cannot hold are bigints here.
    const value = fc.jsonValue({ noUnicodeString: false }).filter((each) => {
      const text = JSON.stringify(each);
      return !/\d{16}/.test(text) && !/__proto__/.test(text);
    });
    check(
      fc.property(value, (each) => {
        // What JSON makes of it: -0 is 0 there.
        const text = JSON.stringify(each);
        expect(parseLiteral(text)).toEqual(JSON.parse(text));
      }),
    );
  });
});

describe("values of fields", () => {
  const Thing = table("thing", { id: u32(), name: str(20), at: u64() }, { key: ["id", "name"] });
  const words = (text: string) => wordsOf(text);

  test("the kind of a field decides", () => {
    expect(valueFor(u64(), 7)).toBe(7n);
    expect(valueFor(i64(), "-12")).toBe(-12n);
    expect(valueFor(u64(), 1.5)).toBe(1.5);
    expect(valueFor(bytes(), "ab")).toEqual(new Uint8Array([97, 98]));
    expect(valueFor(bytes(), "0x00ff")).toEqual(new Uint8Array([0, 255]));
    expect(valueFor(str(), new Uint8Array([0xc3, 0xa9]))).toBe("é");
    expect(() => valueFor(str(), new Uint8Array([0xff]))).toThrow("not valid UTF-8");
    expect(valueFor(json(), { a: [1n, new Uint8Array([97])] })).toEqual({ a: [1, "a"] });
  });

  test("keys as words or as a list", () => {
    const key = (text: string, isWhole = true) =>
      keyFor(Thing, Thing.key, words(text), "the key", isWhole);
    expect(key("7 ada")).toEqual([7, "ada"]);
    expect(key("7 007")).toEqual([7, "007"]);
    expect(key('[7, "a b"]')).toEqual([7, "a b"]);
    expect(key("7", false)).toEqual([7]);
    expect(() => key("7")).toThrow("the key must be id name, not 7");
    expect(() => key("")).toThrow("not nothing");
    expect(() => key("1 2 3")).toThrow("the key must be id name");
    expect(() => key("seven ada")).toThrow("put seven in quotes");
    expect(keyFor(Thing, ["name"], words("x"), "the key")).toBe("x");
  });

  test("rows", () => {
    const row = (text: string) => rowFor(Thing, words(text)[0]);
    expect(row("{id: 1, name: 'a', at: 5}")).toEqual({ id: 1, name: "a", at: 5n });
    expect(() => row("{nme: 1}")).toThrow("no field nme; did you mean name?");
    expect(() => row("{zzz: 1}")).toThrow("it has id, name, at");
    expect(() => row("7")).toThrow("write the row as { id: …, name: … }");
    expect(() => rowFor(Thing, undefined)).toThrow("write the row as");
  });
});

describe("shown", () => {
  test.each<[unknown, string]>([
    ["plain", "plain"],
    ["a\x1b[31m\n\u202e", "a\\x1b[31m\\n\\u202e"],
    [7n, "7n"],
    [null, "null"],
    [undefined, ""],
    [{ a: [1, "x"] }, '{"a":[1,"x"]}'],
    [[1], "[1]"],
    [Buffer.from("text"), "text"],
    [Buffer.from("some text and \0"), "some text and \\x00"],
    [new Uint8Array([0, 1, 255]), "0x0001ff"],
    [Buffer.from("0x12"), "0x30783132"],
    [new Uint8Array(), ""],
  ])("%o", (value, text) => {
    expect(shownValue(value)).toBe(text);
  });

  test("nothing that a terminal would obey is left in a text or in bytes", () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is them that must not be there
    const obeyed = /[\u0000-\u001f\u007f-\u009f]/;
    check(
      fc.property(fc.string({ unit: "binary" }), fc.uint8Array({ maxLength: 100 }), (text, raw) => {
        expect(safeText(text)).not.toMatch(obeyed);
        expect(shownBytes(raw)).not.toMatch(obeyed);
      }),
    );
  });

  test("bytes are typed again as they are shown", () => {
    check(
      fc.property(fc.uint8Array({ maxLength: 40 }), (raw) => {
        const shown = shownBytes(raw);
        const typed = shown.startsWith("0x") ? shown : `"${shown.replaceAll('"', '\\"')}"`;
        expect(valueFor(bytes(), parseLiteral(typed))).toEqual(raw);
      }),
    );
  });
});

describe("moments, UUIDs, enums and nulls", () => {
  const Task = table(
    "task",
    {
      id: autoIncrement(),
      at: timestamp(),
      due: nullable(timestamp()),
      owner: uuid(),
      state: enumOf("open", "null"),
      size: nullable(u53()),
      note: nullable(str()),
    },
    { key: "id" },
  );
  const owner = "0188d3c4-7a1e-7bb0-8f0c-0123456789ab";

  test("as they are typed in a row", () => {
    const [, , row] = wordsOf(
      `put task { at: "2026-01-05T10:00:00.000Z", due: 5, owner: "${owner}", state: "open", size: null }`,
    );
    expect(rowFor(Task, row)).toEqual({
      at: new Date("2026-01-05T10:00:00Z"),
      due: 5,
      owner,
      state: "open",
      size: null,
    });
  });

  test("as they are typed in a key", () => {
    const names = ["at", "due", "owner", "state", "note", "size"];
    const typed = (text: string): unknown => keyFor(Task, names, wordsOf(text), "the key");
    expect(typed(`2026-01-05 null ${owner} null null 7`)).toEqual([
      new Date("2026-01-05"),
      null,
      owner,
      "null",
      null,
      7,
    ]);
    expect(typed(`1767607200123 -1 ${owner} open "null" null`)).toEqual([
      1_767_607_200_123,
      -1,
      owner,
      "open",
      "null",
      null,
    ]);
  });

  test("what is no moment is left for the table to refuse", () => {
    expect(valueFor(timestamp(), "tomorrow")).toBe("tomorrow");
    expect(valueFor(timestamp(), "2026-13-45")).toBe("2026-13-45");
  });

  test("as they are shown", () => {
    expect(shownValue(new Date(0))).toBe("1970-01-01T00:00:00.000Z");
    expect(shownValue(null)).toBe("null");
  });
});
