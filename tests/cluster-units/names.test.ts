/** The names of transactions: what makes late and doubled messages harmless, and memory bounded. */

import { describe, expect, test } from "vitest";
import {
  ABORTED,
  COMMITTED,
  COORDINATORS_PER_NODE,
  firstSequenceOf,
  Name,
  SEQUENCES_PER_LIFE,
  Sequences,
  UnderWay,
} from "../../src/protocols/names.ts";
import { MAX_NODES, MAX_SEQUENCE_SPAN } from "../../src/runtime/limits.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync } from "../helpers/store.ts";
import { encoded } from "./fake-endpoint.ts";

function name(coordinator: number, sequence: number, low = 0): Name {
  return Object.assign(new Name(), { coordinator, sequence, low });
}

describe("a name", () => {
  test("travels as it is", () => {
    const given = name(255, 2 ** 52 + 1, 2 ** 52);
    const body = encoded((out) => {
      out.word(1);
      given.encode(out);
    });
    body.word();
    expect(new Name().decode(body)).toEqual(given);
    expect(body.left).toBe(0);
  });

  test("of a coordinator that cannot be is refused", () => {
    for (const coordinator of [-1, MAX_NODES * COORDINATORS_PER_NODE + 1]) {
      const body = encoded((out) => name(coordinator, 1).encode(out));
      failureSync("SITU_PROTOCOL", () => new Name().decode(body));
    }
  });
});

describe("what is under way", () => {
  test("is found until it ends, and then is over: for good, also below low", () => {
    const underWay = new UnderWay<string>();
    expect(underWay.isOver(name(1, 5))).toBe(false);
    underWay.begin(name(1, 5), "state");
    expect(underWay.find(name(1, 5))).toBe("state");
    expect(underWay.isOver(name(1, 5))).toBe(false);
    underWay.end(name(1, 5), COMMITTED);
    expect(underWay.find(name(1, 5))).toBeUndefined();
    expect(underWay.isOver(name(1, 5))).toBe(true);
    underWay.find(name(1, 9, 9));
    expect(underWay.isOver(name(1, 5))).toBe(true);
    // What never came, and is below: over, too.
    expect(underWay.isOver(name(1, 8))).toBe(true);
    expect(underWay.isOver(name(1, 9))).toBe(false);
    expect(underWay.isOver(name(2, 5))).toBe(false);
  });

  test("is remembered with its end until the coordinator is past it", () => {
    const underWay = new UnderWay<string>();
    underWay.begin(name(1, 5), "state");
    underWay.end(name(1, 5), COMMITTED);
    underWay.end(name(1, 6), ABORTED);
    expect([5, 6, 7].map((each) => underWay.endOf(name(1, each)))).toEqual([
      COMMITTED,
      ABORTED,
      undefined,
    ]);
    underWay.find(name(1, 9, 6));
    expect([5, 6].map((each) => underWay.endOf(name(1, each)))).toEqual([undefined, ABORTED]);
  });

  test("below a sequence, and how many: of one coordinator", () => {
    const underWay = new UnderWay<string>();
    for (const [coordinator, sequence] of [
      [1, 5],
      [1, 6],
      [2, 5],
    ]) {
      underWay.begin(name(coordinator, sequence), `${coordinator} ${sequence}`);
    }
    expect(underWay.below(name(1, 6))).toEqual([[5, "1 5"]]);
    expect([1, 2, 3].map((each) => underWay.count(each))).toEqual([2, 1, 0]);
  });

  test("an end before the beginning counts: the LOCK that comes after its ABORT finds it", () => {
    const underWay = new UnderWay<string>();
    underWay.end(name(1, 5), COMMITTED);
    expect(underWay.find(name(1, 5))).toBeUndefined();
    expect(underWay.isOver(name(1, 5))).toBe(true);
  });

  test("low never takes away what is not over here, and a late, lower low takes nothing back", () => {
    const underWay = new UnderWay<string>();
    underWay.begin(name(1, 5), "stuck");
    underWay.find(name(1, 100, 50));
    expect(underWay.find(name(1, 5, 2))).toBe("stuck");
    expect([...underWay.states()]).toEqual(["stuck"]);
    expect(underWay.isOver(name(1, 20, 3))).toBe(true);
    underWay.end(name(1, 5), COMMITTED);
    expect([...underWay.states()]).toEqual([]);
    expect(underWay.isOver(name(1, 5))).toBe(true);
    underWay.begin(name(1, 60), "x");
    underWay.forget();
    expect([...underWay.states()]).toEqual([]);
  });

  test("against a model that remembers everything", () => {
    const step = fc.record({
      kind: fc.constantFrom("begin", "end", "low"),
      coordinator: fc.nat(2),
      sequence: fc.nat(20),
    });
    check(
      fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
        const underWay = new UnderWay<string>();
        const over = new Set<string>();
        const states = new Map<string, string>();
        const lows = [0, 0, 0];
        for (const { kind, coordinator, sequence } of steps) {
          const key = `${coordinator} ${sequence}`;
          const low = lows[coordinator];
          const isOver = over.has(key) || (sequence < low && !states.has(key));
          if (kind === "begin") {
            if (isOver || states.has(key)) continue;
            states.set(key, key);
            underWay.begin(name(coordinator, sequence, low), key);
          } else if (kind === "end") {
            states.delete(key);
            over.add(key);
            underWay.end(name(coordinator, sequence, low), ABORTED);
          } else {
            lows[coordinator] = Math.max(low, sequence);
            underWay.find(name(coordinator, 1_000, lows[coordinator]));
          }
          for (let c = 0; c < 3; c++) {
            for (let s = 0; s < 21; s++) {
              const each = `${c} ${s}`;
              expect(underWay.find(name(c, s))).toBe(states.get(each));
              if (states.has(each)) continue;
              expect(underWay.isOver(name(c, s))).toBe(over.has(each) || s < lows[c]);
            }
          }
        }
      }),
      40,
    );
  });
});

describe("the sequences of a coordinator", () => {
  const FIRST = firstSequenceOf(7);

  test("grow from the first of the life; low is the first that is not over", () => {
    const sequences = new Sequences(3, 7, () => 8);
    expect(sequences.low).toBe(FIRST);
    const names = [1, 2, 3, 4].map(() => sequences.begin());
    expect(names.map(({ sequence }) => sequence - FIRST)).toEqual([0, 1, 2, 3]);
    expect(names.map(({ low }) => low - FIRST)).toEqual([0, 0, 0, 0]);
    expect(names.every(({ coordinator }) => coordinator === 3)).toBe(true);
    sequences.end(FIRST + 1);
    expect([sequences.low - FIRST, sequences.open]).toEqual([0, 3]);
    sequences.end(FIRST);
    expect([sequences.low - FIRST, sequences.open]).toEqual([2, 2]);
    sequences.end(FIRST);
    expect(sequences.begin().low).toBe(FIRST + 2);
    for (const each of [2, 3, 4]) sequences.end(FIRST + each);
    expect([sequences.low - FIRST, sequences.open]).toEqual([5, 0]);
  });

  test("a life whose sequences have run out is followed by another one", () => {
    const sequences = new Sequences(3, 7, () => 9);
    sequences.skip(SEQUENCES_PER_LIFE - 1);
    const last = sequences.begin();
    const next = sequences.begin();
    expect(last.sequence).toBe(firstSequenceOf(8) - 1);
    expect([next.sequence, next.low]).toEqual([firstSequenceOf(9), last.sequence]);
  });

  test("nothing begins far behind one that is not over", () => {
    const sequences = new Sequences(3, 7, () => 8);
    const stuck = sequences.begin();
    sequences.skip(MAX_SEQUENCE_SPAN - 2);
    expect(sequences.isFull).toBe(false);
    sequences.end(sequences.begin().sequence);
    expect(sequences.isFull).toBe(true);
    sequences.end(stuck.sequence);
    expect(sequences.isFull).toBe(false);
  });

  test("there are more lives than a node is ever started", () => {
    expect(Number.isSafeInteger(firstSequenceOf(2 ** 20 - 1))).toBe(true);
    expect(() => firstSequenceOf(2 ** 20)).toThrow(/lives/);
  });
});

test("where what a coordinator has left is recovered, its next life makes nobody forget how it ended", () => {
  const [first, second] = [firstSequenceOf(1), firstSequenceOf(2)];
  for (const remembersLives of [false, true]) {
    const underWay = new UnderWay<string>();
    underWay.remembersLives = remembersLives;
    underWay.end(name(1, first + 1), COMMITTED);
    underWay.begin(name(1, first + 2), "left");
    underWay.begin(name(1, second, second), "new");
    underWay.end(name(1, first + 2), ABORTED);
    expect(underWay.isOver(name(1, first + 1))).toBe(true);
    expect(underWay.endOf(name(1, first + 1))).toBe(remembersLives ? COMMITTED : undefined);
    expect(underWay.endOf(name(1, first + 2))).toBe(remembersLives ? ABORTED : undefined);
  }
});

test("what an earlier life has left, and was not heard of here, is not over because the next life speaks", () => {
  const [first, second] = [firstSequenceOf(1), firstSequenceOf(2)];
  const underWay = new UnderWay<string>();
  underWay.remembersLives = true;
  underWay.find(name(1, first + 3, first + 3));
  underWay.begin(name(1, second, second), "new");
  // Below what the first life said of itself.
  expect(underWay.isOver(name(1, first + 2))).toBe(true);
  expect(underWay.isOver(name(1, first + 4))).toBe(false);
  expect(underWay.isOver(name(1, second - 1))).toBe(false);
  underWay.begin(name(1, first + 4), "taken over");
  underWay.end(name(1, first + 4), ABORTED);
  expect(underWay.isOver(name(1, first + 4))).toBe(true);
  underWay.forgetEnd(name(1, first + 4));
  expect(underWay.endOf(name(1, first + 4))).toBeUndefined();
  expect(underWay.isOver(name(1, first + 4))).toBe(false);
});
