/** Verbs from one who means no good: errors with a code, and no word changed outside the bounds. */

import { afterAll, expect, test } from "vitest";
import {
  COMPARE_AND_SWAP_WIDE,
  GUARDED,
  isWriting,
  READ,
  READ_OBJECT,
  serveVerb,
  WRITE,
} from "../../src/fabric/verbs.ts";
import { Reader, Writer } from "../../src/fabric/wire.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { MAX_VERB_WORDS } from "../../src/runtime/limits.ts";
import { makeTestMemory } from "../helpers/fabric-memory.ts";
import { check, fc } from "../helpers/property.ts";

const { memory, close } = makeTestMemory();
const { i32 } = memory.region(0);

afterAll(() => close());

const word = fc.oneof(
  fc.nat(10),
  fc.integer(),
  fc.constantFrom(-1, i32.length - 1, i32.length, MAX_VERB_WORDS, MAX_VERB_WORDS + 1, 2 ** 31 - 1),
);

/** This memory has no guard, so such a verb is refused, whatever it asks for. */
function isGuarded(kind: number): boolean {
  const verb = kind - GUARDED;
  return verb >= READ && verb <= COMPARE_AND_SWAP_WIDE;
}

test("any kind with any body is a reply or a coded error", () => {
  const counts = { replied: 0, refused: 0 };
  const kinds = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.nat(20));
  const body = fc.oneof(
    fc.array(word, { maxLength: 12 }),
    fc.array(word, { maxLength: 12 }).map((words) => [0, ...words]),
  );
  const verb = fc.tuple(kinds, body);
  check(
    fc.property(verb, ([kind, words]) => {
      const given = new Writer();
      for (const each of words) given.word(each);
      const out = new Writer();
      try {
        serveVerb(memory, kind, new Reader(given.views).reset(given.views, 0, words.length), out);
        counts.replied++;
      } catch (error) {
        if (!(error instanceof SituError)) throw error;
        expect(error.code).toBe(isGuarded(kind) ? "SITU_UNSUPPORTED" : "SITU_PROTOCOL");
        counts.refused++;
        return;
      }
      expect(out.at).toBeLessThanOrEqual(MAX_VERB_WORDS + 6);
      if (kind === READ) expect(out.at).toBe(words[2]);
      if (kind === READ_OBJECT) expect([6, 6 + words[2]]).toContain(out.at);
      expect(words[0]).toBe(0);
      expect(words[1]).toBeGreaterThanOrEqual(0);
      expect(words[1]).toBeLessThan(i32.length + (isWriting(kind) && kind !== WRITE ? 0 : 1));
    }),
    { numRuns: 20_000 },
  );
  expect(counts.replied).toBeGreaterThan(50);
  expect(counts.refused).toBeGreaterThan(50);
});
