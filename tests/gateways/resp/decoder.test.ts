/** Requests of clients: what is accepted, what is refused and with which words, and what is kept. */

import { describe, expect, test } from "vitest";
import { Decoder, type DecoderLimits } from "../../../src/gateways/resp/decoder.ts";
import { check, fc } from "../../helpers/property.ts";
import { decodeAll, encode } from "./model.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
const LIMITS: DecoderLimits = {
  maxBulkBytes: 1 << 20,
  maxRequestBytes: 8 << 20,
  maxInlineBytes: 1 << 16,
};

function take(decoder: Decoder): string[][] {
  const requests: string[][] = [];
  while (decoder.next()) {
    const { bytes, count, starts, ends } = decoder.request;
    const args: string[] = [];
    for (let i = 0; i < count; i++) args.push(bytes.toString("latin1", starts[i], ends[i]));
    requests.push(args);
  }
  return requests;
}

function decode(text: string, limits = LIMITS): { requests: string[][]; error?: string } {
  const decoder = new Decoder(limits);
  decoder.push(Buffer.from(text, "latin1"));
  const requests = take(decoder);
  return decoder.error === undefined ? { requests } : { requests, error: decoder.error };
}

function fails(text: string, why: string, before: string[][] = []): void {
  const error = `ERR Protocol error: ${why}`;
  expect(decode(text)).toEqual({ requests: before, error });
}

describe("arrays of bulk strings", () => {
  test("one after the other, with any bytes in them", () => {
    const requests = [["GET", "key"], ["SET", "k\r\n\0", "\xff$*"], ["PING"], ["ECHO", ""]];
    expect(decode(requests.map(encode).join(""))).toEqual({ requests });
  });

  test("empty ones and those of a negative length are skipped", () => {
    expect(decode(`*0\r\n*-1\r\n*-9223372036854775808\r\n${encode(["PING"])}`)).toEqual({
      requests: [["PING"]],
    });
  });

  test("the byte behind \\r and the two behind an argument may be anything, as in Redis", () => {
    expect(decode("*1\rZ$4\rYPINGabECHO x\r\n")).toEqual({ requests: [["PING"], ["ECHO", "x"]] });
  });

  test("more arguments than there was room for at first", () => {
    const args = Array.from({ length: 100_000 }, (_, i) => String(i));
    expect(decode(encode(args)).requests).toEqual([args]);
  });

  test.each(["a", "", "00", "01", "+1", "-0", " 1", "1 ", "1\n", "\0"])(
    "%j is no count and no length",
    (number) => {
      fails(`*${number}\r\n`, "invalid multibulk length");
      fails(`PING\r\n*1\r\n$${number}\r\n`, "invalid bulk length", [["PING"]]);
    },
  );

  test("counts and lengths beyond 64 bits, or the limits", () => {
    for (const count of ["1048577", "2147483648", "9223372036854775808", "9".repeat(20)]) {
      fails(`*${count}\r\n`, "invalid multibulk length");
    }
    fails("*-9223372036854775809\r\n", "invalid multibulk length");
    for (const length of ["536870913", "99999999999", "9223372036854775808", "-1"]) {
      fails(`*1\r\n$${length}\r\n`, "invalid bulk length");
    }
    expect(decode("*1048576\r\n$1048576\r\n")).toEqual({ requests: [] });
  });

  test("something else where an argument should begin", () => {
    fails("*1\r\nX4\r\nPING\r\n", "expected '$', got 'X'");
    fails("*2\r\n$4\r\nPING\r\n:1\r\n", "expected '$', got ':'");
    fails("*1\r\n\r\n", "expected '$', got ' '");
    fails("*1\r\n\n\r\n", "expected '$', got ' '");
  });

  test("lines of a length without an end", () => {
    expect(decode(`*${"1".repeat(65_535)}`)).toEqual({ requests: [] });
    fails(`*${"1".repeat(65_536)}`, "too big mbulk count string");
    expect(decode(`*1\r\n$${"1".repeat(65_535)}`)).toEqual({ requests: [] });
    fails(`*1\r\n$${"1".repeat(65_536)}`, "too big bulk count string");
  });

  test("a request that is too large is refused when its last length is known", () => {
    const limits = { ...LIMITS, maxRequestBytes: 31 };
    expect(decode(encode(["SET", "k", "12345"]), limits).error).toBeUndefined();
    const text = encode(["SET", "k", "123456"]);
    expect(text.length).toBe(32);
    const { requests, error } = decode(text.slice(0, -8), limits);
    expect(requests).toEqual([]);
    const tooBig = "ERR Protocol error: too big request, at most 31 bytes are taken";
    expect(error).toBe(tooBig);
    const many = decode(`*1000\r\n${"$0\r\n\r\n".repeat(1000)}`, limits);
    expect(many.error).toBe(tooBig);
  });

  test("a request with an argument that is too long is passed over, and none of it kept", () => {
    const limits = { ...LIMITS, maxBulkBytes: 100, maxRequestBytes: 10_000 };
    const text =
      encode(["SET", "k", "x".repeat(9_000), "EX", "1"]) +
      encode(["PING"]) +
      encode(["x".repeat(101)]) +
      encode(["ECHO", "y".repeat(100)]);
    const bytes = Buffer.from(text);
    for (const piece of [bytes.length, 4_096, 1_000, 7, 1]) {
      const decoder = new Decoder(limits);
      const found: string[] = [];
      let most = 0;
      for (let at = 0; at < bytes.length; at += piece) {
        // A copy: what the decoder was given is no longer its own when `next` has said false.
        decoder.push(Buffer.from(bytes.subarray(at, at + piece)));
        while (decoder.next()) {
          const { request } = decoder;
          found.push(
            decoder.isTooLong
              ? "too long"
              : request.bytes.toString("latin1", request.starts[0], request.ends[0]),
          );
        }
        most = Math.max(most, decoder.buffered, decoder.ownBytes - 1_024);
      }
      expect(most).toBeLessThan(200);
      expect(decoder.error).toBeUndefined();
      expect(found).toEqual(["too long", "PING", "too long", "ECHO"]);
    }
  });

  test("the whole of such a request has its limit too", () => {
    const limits = { ...LIMITS, maxBulkBytes: 100, maxRequestBytes: 1_000 };
    const tooBig = "too big request, at most 1000 bytes are taken";
    expect(decode("*2\r\n$3\r\nSET\r\n$1001\r\n", limits).error).toMatch(tooBig);
    const many = encode(["SET", "x".repeat(500), "y".repeat(500)]);
    expect(decode(many, limits).error).toMatch(tooBig);
  });
});

describe("clients that have not said the password", () => {
  function decodeUnauthenticated(text: string): string | undefined {
    const decoder = new Decoder(LIMITS);
    decoder.authenticated = false;
    decoder.push(Buffer.from(text));
    take(decoder);
    return decoder.error;
  }

  test("have at most ten arguments of 16 KiB", () => {
    const ten = Array.from({ length: 10 }, () => "x".repeat(16_384));
    expect(decodeUnauthenticated(encode(ten))).toBeUndefined();
    expect(decodeUnauthenticated("*11\r\n")).toMatch("unauthenticated multibulk length");
    expect(decodeUnauthenticated("*1\r\n$16385\r\n")).toMatch("unauthenticated bulk length");
    expect(decodeUnauthenticated("*1\r\n$1048577\r\n")).toMatch("unauthenticated bulk length");
    expect(decodeUnauthenticated("*1\r\n$536870913\r\n")).toMatch("invalid bulk length");
    expect(decodeUnauthenticated("*1048577\r\n")).toMatch("invalid multibulk length");
  });

  test("have the usual limits from the request on that follows AUTH", () => {
    const decoder = new Decoder(LIMITS);
    decoder.authenticated = false;
    const large = Array.from({ length: 11 }, () => "x".repeat(16_385));
    decoder.push(Buffer.from(encode(["AUTH", "secret"]) + encode(large)));
    expect(decoder.next()).toBe(true);
    decoder.authenticated = true;
    expect(take(decoder)).toEqual([large]);
    expect(decoder.authenticated).toBe(true);
  });
});

describe("in pieces", () => {
  const word = fc
    .uint8Array({ maxLength: 40 })
    .map((bytes) => Buffer.from(bytes).toString("latin1"));
  const request = fc.array(word, { minLength: 1, maxLength: 20 });

  test("any requests, cut anywhere, are what they were", () => {
    check(
      fc.property(
        fc.array(request, { maxLength: 8 }),
        fc.array(fc.nat(1 << 12)),
        fc.boolean(),
        (requests, cuts, reuse) => {
          const bytes = Buffer.from(requests.map(encode).join(""), "latin1");
          const places = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
          const decoder = new Decoder(LIMITS);
          const decoded: string[][] = [];
          let from = 0;
          for (const to of [...places, bytes.length]) {
            const chunk = Buffer.from(bytes.subarray(from, to));
            decoder.push(chunk);
            decoded.push(...take(decoder));
            if (reuse) chunk.fill("*");
            from = to;
          }
          expect(decoder.error).toBeUndefined();
          expect(decoder.buffered).toBe(0);
          expect(decoded).toEqual(requests);
        },
      ),
      { numRuns: 500 },
    );
  });

  test("chunks that come before the requests of the last ones were taken", () => {
    const requests = Array.from({ length: 100 }, (_, i) => ["SET", `key:${i}`, "v".repeat(i)]);
    const bytes = Buffer.from(requests.map(encode).join(""));
    const decoder = new Decoder(LIMITS);
    const decoded: string[][] = [];
    for (let at = 0; at < bytes.length; at += 50) {
      decoder.push(bytes.subarray(at, at + 50));
      if (at % 150 !== 0 || !decoder.next()) continue;
      const { request } = decoder;
      decoded.push([request.bytes.toString("latin1", request.starts[1], request.ends[1])]);
    }
    const early = decoded.length;
    expect(early).toBeGreaterThan(10);
    decoded.push(...take(decoder).map((args) => [args[1]]));
    expect(decoded).toEqual(requests.map((args) => [args[1]]));
  });

  test("a large argument is kept in as much memory as came, not as was announced", () => {
    const decoder = new Decoder(LIMITS);
    const value = "x".repeat(1 << 20);
    const bytes = Buffer.from(encode(["SET", "key", value]));
    decoder.push(bytes.subarray(0, 100));
    expect(decoder.next()).toBe(false);
    expect(decoder.buffered).toBe(100);
    expect(decoder.ownBytes).toBeLessThanOrEqual(1024);
    for (let at = 100; at < bytes.length; at += 65_536) {
      expect(decoder.next()).toBe(false);
      decoder.push(bytes.subarray(at, at + 65_536));
      expect(decoder.ownBytes).toBeLessThanOrEqual(2 * Math.max(decoder.buffered, 1024));
    }
    expect(take(decoder)).toEqual([["SET", "key", value]]);
    expect(decoder.ownBytes).toBe(0);
    expect(decoder.request.bytes.length).toBe(0);
  });

  test("a chunk with nothing before it is read where it lies, and not held afterwards", () => {
    const decoder = new Decoder(LIMITS);
    const chunk = Buffer.from(encode(["GET", "key"]).repeat(2) + encode(["GET", "k"]).slice(0, 9));
    decoder.push(chunk);
    expect(decoder.next()).toBe(true);
    expect(decoder.request.bytes).toBe(chunk);
    expect(decoder.next()).toBe(true);
    expect(decoder.next()).toBe(false);
    expect(decoder.request.bytes).not.toBe(chunk);
    expect(decoder.buffered).toBe(9);
  });

  test("much that was kept is given back although something is left", () => {
    const decoder = new Decoder(LIMITS);
    const bytes = Buffer.from(`${encode(["SET", "k", "x".repeat(1 << 20)])}*1\r\n`);
    decoder.push(bytes.subarray(0, 1 << 19));
    take(decoder);
    decoder.push(bytes.subarray(1 << 19));
    expect(decoder.ownBytes).toBeGreaterThan(1 << 20);
    expect(take(decoder).length).toBe(1);
    expect(decoder.buffered).toBe(4);
    expect(decoder.ownBytes).toBeLessThanOrEqual(1024);
    decoder.push(Buffer.from("$4\r\nPING\r\n"));
    expect(take(decoder)).toEqual([["PING"]]);
  });
});

test("after an error nothing is given and nothing is kept", () => {
  const decoder = new Decoder(LIMITS);
  decoder.push(Buffer.from(`${encode(["PING"])}*x\r\n${encode(["PING"])}`));
  expect(take(decoder)).toEqual([["PING"]]);
  const { error } = decoder;
  expect(error).toBe("ERR Protocol error: invalid multibulk length");
  decoder.push(Buffer.from(encode(["PING"])));
  expect(decoder.next()).toBe(false);
  expect(decoder.error).toBe(error);
  expect(decoder.buffered).toBe(0);
  expect(decoder.ownBytes).toBe(0);
});

describe("inline commands", () => {
  test.each<[string, string[]]>([
    ["PING\r\n", ["PING"]],
    ["PING\n", ["PING"]],
    ["PING\r\r\n", ["PING"]],
    ["  SET\tkey   value \r\n", ["SET", "key", "value"]],
    ["\vSET \fkey a\vb\r\n", ["SET", "key", "a\vb"]],
    ["SET a\rb\r\n", ["SET", "a", "b"]],
    [`SET "a b" 'c d'\r\n`, ["SET", "a b", "c d"]],
    [`SET a"b c" d'e f'\r\n`, ["SET", "ab c", "de f"]],
    [`SET "" ''\r\n`, ["SET", "", ""]],
    [`ECHO "\\n\\r\\t\\b\\a\\q\\\\\\""\r\n`, ["ECHO", '\n\r\t\b\x07q\\"']],
    [`ECHO "\\x41\\xfF\\x4\\xg1"\r\n`, ["ECHO", "A\xffx4xg1"]],
    [`ECHO '\\n\\'\\"'\r\n`, ["ECHO", `\\n'\\"`]],
    ["ECHO a\\n\r\n", ["ECHO", "a\\n"]],
    ["ECHO \0\xff\r\n", ["ECHO", "\0\xff"]],
  ])("%j", (line, args) => {
    expect(decode(line)).toEqual({ requests: [args] });
  });

  test.each([`"a\r\n`, `'a\r\n`, `"a"b\r\n`, `'a'b\r\n`, `"a\\\r\n`, `"a\\"\r\n`, `'a\\'\r\n`])(
    "%j has quotes that are not in order",
    (line) => fails(`PING\r\n${line}`, "unbalanced quotes in request", [["PING"]]),
  );

  test("empty lines are skipped", () => {
    expect(decode("\r\n\n  \r\nPING\r\n\r\n")).toEqual({ requests: [["PING"]] });
  });

  test("a line has an end within 64 KiB", () => {
    expect(decode("x".repeat(65_536))).toEqual({ requests: [] });
    fails("x".repeat(65_537), "too big inline request");
    expect(decode(`${"x".repeat(65_536)}\n`).requests[0][0].length).toBe(65_536);
  });

  test("any words, quoted and cut anywhere, are what they were", () => {
    const byte = fc.nat(255).map((code) => String.fromCharCode(code));
    const words = fc.array(
      fc.array(byte).map((bytes) => bytes.join("")),
      { minLength: 1 },
    );
    check(
      fc.property(words, fc.nat(), (args, cut) => {
        const line = `${args.map(quote).join(" ")}\r\n`;
        const bytes = Buffer.from(line, "latin1");
        const decoder = new Decoder(LIMITS);
        const at = cut % bytes.length;
        decoder.push(bytes.subarray(0, at));
        expect(take(decoder)).toEqual([]);
        decoder.push(bytes.subarray(at));
        expect(take(decoder)).toEqual([args]);
      }),
      { numRuns: 500 },
    );
  });

  test("any line is what the model says", () => {
    const piece = fc.constantFrom(..."ab \t\v\r\"'\\xn4g\0".split(""), "\\x41", '" ', "' ", "\xff");
    check(
      fc.property(fc.array(piece), (pieces) => {
        const text = `${pieces.join("")}\n`;
        const { requests, error } = decodeAll(Buffer.from(text, "latin1"), LIMITS, true);
        expect(decode(text)).toEqual(error === undefined ? { requests } : { requests, error });
      }),
      { numRuns: 2_000 },
    );
  });
});

/** As redis-cli would: whatever is no plain letter is written by its number. */
function quote(word: string): string {
  const quoted = word.replace(
    /[^a-z ]/gi,
    (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return `"${quoted}"`;
}
