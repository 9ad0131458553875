/** SUBMIT and CALL, their replies, and parts of transactions: what goes in comes out. */

import { describe, expect, test } from "vitest";
import { Call, decodeCalled, encodeReturned, type Returned } from "../../src/cluster/call.ts";
import { decodeNumbered, encodeNumbered, leftMsOf } from "../../src/cluster/session.ts";
import { decodeParts, encodeOutcome, Submit } from "../../src/cluster/submit.ts";
import { Writer } from "../../src/fabric/wire.ts";
import type { Outcome, Parts } from "../../src/protocols/coordinator.ts";
import type { Message } from "../../src/protocols/message.ts";
import { decodeOrigin, encodeOrigin } from "../../src/protocols/origin.ts";
import { Part, WriteList, writesIn } from "../../src/protocols/writes.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { MAX_SESSION_NAME_LENGTH, MAX_TIMEOUT_MS } from "../../src/runtime/limits.ts";
import { PUT } from "../../src/tables/served/requests.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded, readerOf } from "./fake-endpoint.ts";

const numbered = fc.record({
  session: fc.string({ unit: "grapheme", maxLength: 20 }),
  number: fc.maxSafeNat(),
});
const TIME = { leftMs: () => 700 };

type Write =
  | { kind: "put"; table: number; partition: number; row: number[] }
  | { kind: "remove"; table: number; partition: number; key: string | number };
const word = fc.integer();
const write: fc.Arbitrary<Write> = fc.oneof(
  fc.record({
    kind: fc.constant("put" as const),
    table: word,
    partition: fc.nat(255),
    row: fc.array(word, { maxLength: 10 }).map((list) => [...list, ...list]),
  }),
  fc.record({
    kind: fc.constant("remove" as const),
    table: word,
    partition: fc.nat(255),
    key: fc.oneof(fc.string(), fc.integer()),
  }),
);
const dependency = fc.tuple(word, word, word, word);
const part = fc.record({
  writes: fc.array(write, { maxLength: 8 }),
  dependencies: fc.array(dependency, { maxLength: 12 }),
});

function partOf(given: { writes: readonly Write[]; dependencies: readonly number[][] }): Part {
  const list = new WriteList(new Writer());
  for (const each of given.writes) {
    if (each.kind === "put") {
      list.put(each.table, each.partition, Int32Array.from(each.row), 0, each.row.length);
    } else list.remove(each.table, each.partition, each.key);
  }
  const made = new Part(list.words(), list.count);
  for (const [region, at, high, low] of given.dependencies) made.depend(region, at, high, low);
  return made;
}

/** The writes of a part as a participant sees them. */
function writesOf(from: Part): Write[] {
  const body = encoded((out) => {
    out.word(from.writeCount);
    out.word(from.writes.length);
    out.align();
    out.words(from.writes, 0, from.writes.length);
  });
  const found: Write[] = [];
  for (const request of writesIn(body)) {
    const { table, partition } = request;
    if (request.code === PUT) {
      const { views, at, words } = request;
      found.push({ kind: "put", table, partition, row: [...views.i32.subarray(at, at + words)] });
    } else found.push({ kind: "remove", table, partition, key: request.key as string });
  }
  expect(body.left).toBe(0);
  return found;
}

function answered<M extends Message>(message: M, write: (out: Writer) => void): M {
  message.waiting = { ended: () => {} };
  message.replied(encoded(write));
  if (message.error !== undefined) throw message.error;
  return message;
}

const NOTHING = { parts: new Map(), executedIn: 1 };

describe("submit", () => {
  test("numbers and parts go through, wherever a body begins", () => {
    check(
      fc.property(numbered, fc.array(fc.tuple(fc.nat(127), part), { maxLength: 4 }), (n, list) => {
        const given = new Map(list);
        const parts: Parts = new Map([...given].map(([node, each]) => [node, partOf(each)]));
        const body = encoded((out) => new Submit(1, n, { parts, executedIn: 9 }, TIME).encode(out));
        expect(decodeNumbered(body)).toEqual(n);
        expect(leftMsOf(body)).toBe(700);
        expect(body.word()).toBe(9);
        expect(decodeOrigin(body)).toBeUndefined();
        const found = decodeParts(body);
        expect([...found.keys()]).toEqual([...given.keys()]);
        for (const [node, each] of found) {
          const { writes, dependencies } = given.get(node)!;
          expect(writesOf(each)).toEqual(writes);
          expect(each.writeCount).toBe(writes.length);
          expect(each.dependencyCount).toBe(dependencies.length);
          expect([...each.dependencies]).toEqual(dependencies.flat());
        }
        expect(body.left).toBe(0);
      }),
      150,
    );
  });

  test("every outcome comes back, with its error", () => {
    const error = new SituError("SITU_FULL", "the store is full: größer");
    const outcomes: Outcome[] = [
      { kind: "committed" },
      { kind: "aborted" },
      { kind: "refused", error },
      { kind: "unknown", error },
    ];
    for (const given of outcomes) {
      const submit = new Submit(1, { session: "", number: 0 }, NOTHING, TIME);
      const { outcome } = answered(submit, (out) => encodeOutcome(out, given));
      expect(outcome.kind).toBe(given.kind);
      if (!("error" in outcome)) continue;
      expect([outcome.error.code, outcome.error.message]).toEqual([error.code, error.message]);
    }
  });

  test("parts that are cut short, or whose counts lie, are refused", () => {
    const whole = encoded((out) => {
      out.word(1);
      out.word(2);
      partOf({
        writes: [{ kind: "put", table: 1, partition: 2, row: [1, 2] }],
        dependencies: [[1, 2, 3, 4]],
      }).encode(out);
    });
    const words = whole.views.i32.slice(0, whole.end);
    expect(decodeParts(readerOf(words)).size).toBe(1);
    for (let length = 0; length < words.length; length++) {
      failureSync("SITU_PROTOCOL", () => decodeParts(readerOf(words.slice(0, length))));
    }
    // Nodes, the node, dependencies, writes, and the length of the first write.
    for (const at of [0, 1, 2, 7, 8]) {
      for (const lie of [-1, 2 ** 30]) {
        const changed = words.slice();
        changed[at] = lie;
        failureSync("SITU_PROTOCOL", () => decodeParts(readerOf(changed)));
      }
    }
  });
});

test("the time that is left is a time, whatever a message says", () => {
  const told = (ms: number) => leftMsOf(encoded((out) => out.wide(ms)));
  expect([-1, Number.NaN, 0, 5, Number.POSITIVE_INFINITY].map(told)).toEqual([
    0,
    0,
    0,
    5,
    MAX_TIMEOUT_MS,
  ]);
});

describe("origin", () => {
  test("goes through, or that there is none", () => {
    for (const origin of [undefined, { session: "größer 1", number: 2 ** 52 }]) {
      const body = encoded((out) => {
        out.word(7);
        encodeOrigin(out, origin);
      });
      body.word();
      expect(decodeOrigin(body)).toEqual(origin);
      expect(body.left).toBe(0);
    }
  });

  test("names have a limit, and numbers count something", () => {
    const written = (session: string, number: number) => () =>
      decodeOrigin(encoded((out) => encodeOrigin(out, { session, number })));
    const longest = "x".repeat(MAX_SESSION_NAME_LENGTH);
    expect(written(longest, 0)()).toEqual({ session: longest, number: 0 });
    failureSync("SITU_PROTOCOL", written(`${longest}x`, 0));
    for (const number of [-1, 0.5, Number.NaN, 2 ** 53]) {
      failureSync("SITU_PROTOCOL", written("s", number));
    }
  });
});

describe("call", () => {
  const value = fc
    .jsonValue({ maxDepth: 3 })
    .filter((each) => !JSON.stringify(each).includes("__proto__"));

  test("what is called comes through", () => {
    check(
      fc.property(
        numbered,
        fc.string(),
        fc.array(value, { maxLength: 4 }),
        fc.boolean(),
        (n, procedure, values, isPassedOn) => {
          const origin = isPassedOn ? { session: "s", number: 7 } : undefined;
          const called = { procedure, values, isPassedOn, origin };
          const body = encoded((out) => new Call(1, n, called, TIME).encode(out));
          expect(decodeCalled(body)).toEqual({ numbered: n, called, leftMs: 700 });
          expect(body.left).toBe(0);
        },
      ),
      100,
    );
  });

  test("arguments are a list", () => {
    const body = encoded((out) => {
      encodeNumbered(out, { session: "", number: 0 });
      out.text("p");
      out.wide(1);
      out.word(0);
      encodeOrigin(out, undefined);
      out.value({ length: 1 });
    });
    failureSync("SITU_PROTOCOL", () => decodeCalled(body));
  });

  test("what it returned comes back, or its error", () => {
    const called = { procedure: "p", values: [], isPassedOn: false };
    const n = { session: "", number: 0 };
    const given: Returned[] = [
      { isDone: true, value: undefined },
      { isDone: true, value: { a: [1, "x", 2n ** 63n, new Uint8Array([1, 2])] } },
      { isDone: false, error: new SituError("SITU_PROCEDURE", "failed") },
    ];
    for (const each of given) {
      const { returned } = answered(new Call(1, n, called, TIME), (out) =>
        encodeReturned(out, each),
      );
      if (each.isDone) expect(returned).toEqual(each);
      else {
        expect(returned).toMatchObject({
          isDone: false,
          error: { code: "SITU_PROCEDURE", message: "failed" },
        });
      }
    }
  });
});
