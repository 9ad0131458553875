/** Replies in both protocols: exact bytes, any values through an independent parser, and memory. */

import { describe, expect, test } from "vitest";
import { formatDouble } from "../../../src/gateways/resp/doubles.ts";
import { OutputLimitError, Replies } from "../../../src/gateways/resp/replies.ts";
import { check, fc } from "../../helpers/property.ts";
import { parseReplies, type Reply } from "./parse-replies.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
function written(protocol: 2 | 3, write: (replies: Replies) => void): string {
  const replies = new Replies(1);
  replies.protocol = protocol;
  write(replies);
  return replies.take().toString("latin1");
}

describe("bytes on the wire", () => {
  test.each<[string, (replies: Replies) => void, string, string]>([
    ["ok", (r) => r.ok(), "+OK\r\n", "+OK\r\n"],
    ["simple", (r) => r.simple("PONG"), "+PONG\r\n", "+PONG\r\n"],
    ["a simple string without line ends", (r) => r.simple("a\r\nb"), "+a  b\r\n", "+a  b\r\n"],
    ["error", (r) => r.error("ERR no\n"), "-ERR no \r\n", "-ERR no \r\n"],
    ["error in UTF-8", (r) => r.error("ERR é"), "-ERR Ã©\r\n", "-ERR Ã©\r\n"],
    ["error of bytes", (r) => r.error("ERR é\r", "latin1"), "-ERR é \r\n", "-ERR é \r\n"],
    ["integer", (r) => r.integer(-12), ":-12\r\n", ":-12\r\n"],
    [
      "integer of 64 bits",
      (r) => r.integer(-(2n ** 63n)),
      `:-${2n ** 63n}\r\n`,
      `:-${2n ** 63n}\r\n`,
    ],
    ["bulk", (r) => r.bulk(Buffer.from("abcd"), 1, 3), "$2\r\nbc\r\n", "$2\r\nbc\r\n"],
    ["empty bulk", (r) => r.bulk(Buffer.alloc(0)), "$0\r\n\r\n", "$0\r\n\r\n"],
    [
      "text",
      (r) => r.text("é€😀"),
      "$9\r\nÃ©â\x82¬ð\x9f\x98\x80\r\n",
      "$9\r\nÃ©â\x82¬ð\x9f\x98\x80\r\n",
    ],
    ["nil", (r) => r.nil(), "$-1\r\n", "_\r\n"],
    ["nilArray", (r) => r.nilArray(), "*-1\r\n", "_\r\n"],
    ["array", (r) => r.array(10), "*10\r\n", "*10\r\n"],
    ["map", (r) => r.map(3), "*6\r\n", "%3\r\n"],
    ["set", (r) => r.set(0), "*0\r\n", "~0\r\n"],
    ["push", (r) => r.push(2), "*2\r\n", ">2\r\n"],
    ["double", (r) => r.double(0.1), "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n"],
    ["infinity", (r) => r.double(-Infinity), "$4\r\n-inf\r\n", ",-inf\r\n"],
    ["true", (r) => r.boolean(true), ":1\r\n", "#t\r\n"],
    ["false", (r) => r.boolean(false), ":0\r\n", "#f\r\n"],
    ["verbatim", (r) => r.verbatim("txt", "é"), "$2\r\nÃ©\r\n", "=6\r\ntxt:Ã©\r\n"],
    [
      "bigNumber",
      (r) => r.bigNumber("-1".padEnd(30, "0")),
      `$30\r\n-1${"0".repeat(28)}\r\n`,
      `(-1${"0".repeat(28)}\r\n`,
    ],
    ["raw", (r) => r.raw(Buffer.from(":1\r\n:2\r\n")), ":1\r\n:2\r\n", ":1\r\n:2\r\n"],
  ])("%s", (_, write, second, third) => {
    expect(written(2, write)).toBe(second);
    expect(written(3, write)).toBe(third);
  });

  test("whole numbers of every length", () => {
    for (let digits = 0; digits <= 15; digits++) {
      for (const value of [10 ** digits - 1, 10 ** digits, -(10 ** digits)]) {
        expect(written(2, (r) => r.integer(value))).toBe(`:${value}\r\n`);
      }
    }
    for (const value of [2 ** 31 - 1, 2 ** 31, -(2 ** 31), 2 ** 53, -(2 ** 53)]) {
      expect(written(2, (r) => r.integer(value))).toBe(`:${value}\r\n`);
    }
  });

  test("bulk strings and texts of every length up to 300", () => {
    const bytes = Buffer.from(Array.from({ length: 302 }, (_, i) => i & 255));
    for (let length = 0; length <= 300; length++) {
      const part = bytes.toString("latin1", 1, length + 1);
      const bulk = `$${length}\r\n${part}\r\n`;
      expect(written(2, (r) => r.bulk(bytes, 1, length + 1))).toBe(bulk);
      expect(written(2, (r) => r.bulk(bytes.subarray(1, length + 1)))).toBe(bulk);
      const text = "t".repeat(length);
      expect(written(2, (r) => r.text(text))).toBe(`$${length}\r\n${text}\r\n`);
      expect(written(3, (r) => r.simple(text))).toBe(`+${text}\r\n`);
      expect(written(3, (r) => r.error(`${text}é`))).toBe(`-${text}Ã©\r\n`);
    }
  });
});

/** As glibc's printf writes them with %.17g. */
test.each<[number, string]>([
  [0, "0"],
  [-0, "-0"],
  [1, "1"],
  [-1.5, "-1.5"],
  [3.14, "3.1400000000000001"],
  [1e15, "1000000000000000"],
  [123456789012345680000, "1.2345678901234568e+20"],
  [12345678901234568, "12345678901234568"],
  [1e16, "10000000000000000"],
  [1e17, "1e+17"],
  [1e100, "1e+100"],
  [0.0001, "0.0001"],
  [0.00012, "0.00012"],
  [0.00001, "1.0000000000000001e-05"],
  [1.5e-7, "1.4999999999999999e-07"],
  [5e-324, "4.9406564584124654e-324"],
  [1.7976931348623157e308, "1.7976931348623157e+308"],
  // Exactly in the middle: C rounds to even.
  [123456789012345 + 0.625, "123456789012345.62"],
  [123456789012345 + 0.875, "123456789012345.88"],
  [Number.NaN, "nan"],
  [Number.POSITIVE_INFINITY, "inf"],
])("the double %d is %s", (value, text) => {
  expect(formatDouble(value)).toBe(text);
});

test("every double is read back as what it was", () => {
  check(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(Number(formatDouble(value))).toBe(value);
    }),
    { numRuns: 2_000 },
  );
});

interface Written {
  /** Writes it, and gives what a client should see. */
  write(replies: Replies): Reply;
}

const utf8 = (text: string): string => Buffer.from(text).toString("latin1");

/** A lone surrogate has no UTF-8. */
const texts = fc.string({ unit: "grapheme", maxLength: 80 });

const leaves: fc.Arbitrary<Written> = fc.oneof(
  fc.string({ unit: "grapheme" }).map((text) => ({
    write(replies: Replies): Reply {
      replies.simple(text);
      return { simple: utf8(text.replace(/[\r\n]/g, " ")) };
    },
  })),
  fc.string({ unit: "grapheme" }).map((text) => ({
    write(replies: Replies): Reply {
      replies.error(text);
      return { error: utf8(text.replace(/[\r\n]/g, " ")) };
    },
  })),
  fc.oneof(fc.maxSafeInteger(), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n)).map((value) => ({
    write(replies: Replies): Reply {
      replies.integer(value);
      return { integer: BigInt(value) };
    },
  })),
  fc.tuple(fc.uint8Array({ maxLength: 300 }), fc.nat(), fc.nat()).map(([bytes, a, b]) => ({
    write(replies: Replies): Reply {
      const [start, end] = [a % (bytes.length + 1), b % (bytes.length + 1)].sort((x, y) => x - y);
      replies.bulk(bytes, start, end);
      return { bulk: Buffer.from(bytes.subarray(start, end)).toString("latin1") };
    },
  })),
  texts.map((text) => ({
    write(replies: Replies): Reply {
      replies.text(text);
      return { bulk: utf8(text) };
    },
  })),
  fc.tuple(fc.constantFrom("txt", "mkd"), texts).map(([format, text]) => ({
    write(replies: Replies): Reply {
      replies.verbatim(format, text);
      return replies.protocol === 2 ? { bulk: utf8(text) } : { verbatim: [format, utf8(text)] };
    },
  })),
  fc.boolean().map((value) => ({
    write(replies: Replies): Reply {
      replies.boolean(value);
      return replies.protocol === 2 ? { integer: value ? 1n : 0n } : { boolean: value };
    },
  })),
  fc.double().map((value) => ({
    write(replies: Replies): Reply {
      replies.double(value);
      const text = formatDouble(value);
      return replies.protocol === 2 ? { bulk: text } : { double: text };
    },
  })),
  fc.bigInt().map((value) => ({
    write(replies: Replies): Reply {
      replies.bigNumber(String(value));
      return replies.protocol === 2 ? { bulk: String(value) } : { bigNumber: value };
    },
  })),
  fc.boolean().map((isArray) => ({
    write(replies: Replies): Reply {
      if (isArray) replies.nilArray();
      else replies.nil();
      return { nil: replies.protocol === 3 ? "null" : isArray ? "array" : "bulk" };
    },
  })),
);

const trees: fc.Arbitrary<Written> = fc.letrec<{ tree: Written }>((tie) => ({
  tree: fc.oneof({ maxDepth: 4, withCrossShrink: true }, leaves, aggregate(tie("tree"))),
})).tree;

function aggregate(tree: fc.Arbitrary<Written>): fc.Arbitrary<Written> {
  const kind = fc.constantFrom("array", "set", "push", "map");
  return fc.tuple(kind, fc.array(fc.tuple(tree, tree), { maxLength: 6 })).map(([name, pairs]) => ({
    write(replies: Replies): Reply {
      if (name === "map") {
        replies.map(pairs.length);
        const map = pairs.map(
          ([key, value]) => [key.write(replies), value.write(replies)] as const,
        );
        return replies.protocol === 2 ? { array: map.flat() } : { map };
      }
      if (name === "array") replies.array(pairs.length);
      else if (name === "set") replies.set(pairs.length);
      else replies.push(pairs.length);
      const elements = pairs.map(([element]) => element.write(replies));
      if (name === "array" || replies.protocol === 2) return { array: elements };
      return name === "set" ? { set: elements } : { push: elements };
    },
  }));
}

test("any replies, however nested, are what a client reads", () => {
  const protocols = fc.constantFrom<2 | 3>(2, 3);
  check(
    fc.property(protocols, fc.array(trees, { maxLength: 10 }), (protocol, values) => {
      const replies = new Replies(1);
      replies.protocol = protocol;
      const expected = values.map((value) => value.write(replies));
      expect(parseReplies(replies.take())).toEqual(expected);
    }),
    { numRuns: 1_000 },
  );
});

describe("the buffer", () => {
  test("what a transaction wrote before it is run again is taken back", () => {
    const replies = new Replies(8);
    replies.ok();
    const { length } = replies;
    replies.array(2);
    replies.bulk(Buffer.alloc(5_000, "x"));
    replies.rewind(length);
    replies.array(1);
    replies.integer(7);
    expect(replies.take().toString()).toBe("+OK\r\n*1\r\n:7\r\n");
    expect(replies.length).toBe(0);
  });

  test("hot paths write in place", () => {
    const replies = new Replies(1);
    replies.ok();
    const buffer = replies.reserve(100);
    expect(buffer.length).toBeGreaterThanOrEqual(105);
    buffer.write(":1\r\n", replies.length);
    replies.length += 4;
    expect(replies.take().toString()).toBe("+OK\r\n:1\r\n");
  });

  test("what was taken stays as it is, small or large", () => {
    const replies = new Replies();
    for (const size of [0, 10, 2_000, 16_000, 40_000, 1 << 20]) {
      const value = Buffer.alloc(size, "a");
      replies.bulk(value);
      const taken = replies.take();
      expect(replies.length).toBe(0);
      replies.bulk(Buffer.alloc(size, "b"));
      expect(replies.length).toBeGreaterThan(size);
      expect(taken.toString()).toBe(`$${size}\r\n${value}\r\n`);
      replies.take();
      expect(replies.buffer.length).toBeLessThanOrEqual(64 * 1024);
    }
  });

  test("replies beyond the limit are refused before memory is taken for them", () => {
    const replies = new Replies(1);
    replies.limit = 100_000;
    replies.bulk(Buffer.alloc(60_000));
    expect(replies.buffer.length).toBeLessThanOrEqual(100_000);
    const { length } = replies;
    expect(() => replies.bulk(Buffer.alloc(60_000))).toThrow(OutputLimitError);
    expect(() => replies.text("€".repeat(20_000))).toThrow(OutputLimitError);
    expect(replies.buffer.length).toBeLessThanOrEqual(100_000);
    expect(replies.length).toBe(length);
    replies.limit = Number.POSITIVE_INFINITY;
    replies.ok();
    expect(parseReplies(replies.take()).length).toBe(2);
  });

  test("what nobody wants is dropped", () => {
    const replies = new Replies();
    replies.bulk(Buffer.alloc(1 << 20));
    replies.clear();
    expect(replies.length).toBe(0);
    expect(replies.buffer.length).toBeLessThanOrEqual(64 * 1024);
  });
});
