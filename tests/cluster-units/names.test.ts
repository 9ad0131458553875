/** The names of transactions: what makes late and doubled messages harmless, and memory bounded. */

import { describe, expect, test } from "vitest";
import { COORDINATORS_PER_NODE, Name, Sequences, UnderWay } from "../../src/protocols/names.ts";
import { MAX_NODES } from "../../src/runtime/limits.ts";
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
    underWay.end(name(1, 5));
    expect(underWay.find(name(1, 5))).toBeUndefined();
    expect(underWay.isOver(name(1, 5))).toBe(true);
    underWay.find(name(1, 9, 9));
    expect(underWay.isOver(name(1, 5))).toBe(true);
    // What never came, and is below: over, too.
    expect(underWay.isOver(name(1, 8))).toBe(true);
    expect(underWay.isOver(name(1, 9))).toBe(false);
    expect(underWay.isOver(name(2, 5))).toBe(false);
  });

  test("an end before the beginning counts: the LOCK that comes after its ABORT finds it", () => {
    const underWay = new UnderWay<string>();
    underWay.end(name(1, 5));
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
    underWay.end(name(1, 5));
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
            underWay.end(name(coordinator, sequence, low));
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
  test("grow from the first; low is the first that is not over", () => {
    const sequences = new Sequences(3, 1_000);
    expect(sequences.low).toBe(1_000);
    const names = [1, 2, 3, 4].map(() => sequences.begin());
    expect(names.map(({ sequence }) => sequence)).toEqual([1_000, 1_001, 1_002, 1_003]);
    expect(names.map(({ low }) => low)).toEqual([1_000, 1_000, 1_000, 1_000]);
    expect(names.every(({ coordinator }) => coordinator === 3)).toBe(true);
    sequences.end(1_001);
    expect([sequences.low, sequences.open]).toEqual([1_000, 3]);
    sequences.end(1_000);
    expect([sequences.low, sequences.open]).toEqual([1_002, 2]);
    sequences.end(1_000);
    expect(sequences.begin().low).toBe(1_002);
    for (const each of [1_002, 1_003, 1_004]) sequences.end(each);
    expect([sequences.low, sequences.open]).toEqual([1_005, 0]);
  });
});
