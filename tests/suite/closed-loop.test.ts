// The closed loop: as many in flight as asked for and never more, whatever kind of results come.
import { describe, expect, test } from "vitest";
import { closedLoop } from "../../benchmarks/suite/loops.ts";
import { DONE } from "../../workloads/workload.ts";
import {
  afterTurns,
  atOnce,
  type Behaviour,
  block,
  CountingSession,
  outcomeOf,
  refusedOf,
} from "./sessions.ts";

const kinds: Readonly<Record<string, Behaviour>> = {
  "at once": (number) => outcomeOf(number),
  later: (number) => afterTurns(1 + (number % 3), outcomeOf(number)),
  "in the same turn": async (number) => outcomeOf(number),
  "a mix": (number) =>
    number % 5 === 2 ? afterTurns(number % 4, outcomeOf(number)) : outcomeOf(number),
  "at once, but for a few": (number) =>
    number % 97 === 96 ? afterTurns(1, outcomeOf(number)) : outcomeOf(number),
};

describe.each([1, 2, 7, 64])("with %i in flight", (inFlight) => {
  test.each(Object.keys(kinds))("results that come %s are counted, each once", async (kind) => {
    const session = new CountingSession(kinds[kind]);
    const result = await closedLoop(session, inFlight, 25);
    expect(result.transactions).toBe(session.begun);
    expect(result.transactions).toBe(session.ended);
    expect(result.refused).toBe(refusedOf(session.begun));
    expect(result.dropped).toBe(0);
    expect(session.inFlight).toBe(0);
    expect(session.mostInFlight).toBeLessThanOrEqual(inFlight);
    expect(result.elapsedMs).toBeGreaterThanOrEqual(25);
  });

  test("so many are in flight, not one less", async () => {
    const session = new CountingSession(() => afterTurns(2));
    await closedLoop(session, inFlight, 25);
    expect(session.mostInFlight).toBe(inFlight);
  });

  test("so many are in flight where most results come at once", async () => {
    const session = new CountingSession((number) => (number % 20 === 0 ? afterTurns(9) : DONE));
    await closedLoop(session, inFlight, 25);
    expect(session.mostInFlight).toBe(inFlight);
  });

  test("the error of one ends the run, and nothing is left in flight", async () => {
    const session = new CountingSession((number) =>
      number === 100 ? Promise.reject(new Error("the hundredth")) : afterTurns(1 + (number % 3)),
    );
    // Without the error it would run for a minute, and the test would fail for its time.
    await expect(closedLoop(session, inFlight, 120_000)).rejects.toThrow("the hundredth");
    expect(session.inFlight).toBe(0);
    const { begun } = session;
    expect(begun).toBeLessThanOrEqual(100 + 1 + inFlight);
    await afterTurns(5);
    expect(session.begun).toBe(begun);
  });

  test("an error that is thrown by the call ends the run as well", async () => {
    const session = new CountingSession((number) => {
      if (number === 100) throw new Error("at once");
      return number % 7 === 3 ? afterTurns(2) : DONE;
    });
    await expect(closedLoop(session, inFlight, 120_000)).rejects.toThrow("at once");
    expect(session.inFlight).toBe(0);
    const { begun } = session;
    await afterTurns(5);
    expect(session.begun).toBe(begun);
  });
});

test("even an error that is undefined ends the run", async () => {
  const session = new CountingSession(() => Promise.reject(undefined));
  await expect(closedLoop(session, 4, 120_000)).rejects.toBe(undefined);
});

test("timers fire while results come at once", async () => {
  let fired = 0;
  const timer = setInterval(() => fired++, 1);
  await closedLoop(new CountingSession(atOnce), 1, 300);
  clearInterval(timer);
  expect(fired).toBeGreaterThan(0);
});

describe("latencies", () => {
  test("of results that wait, each is timed", async () => {
    const result = await closedLoop(new CountingSession(() => afterTurns(1)), 8, 25);
    expect(result.latencies.summary()?.count).toBe(result.transactions);
  });

  test("of results at once, a part is timed", async () => {
    const result = await closedLoop(new CountingSession(atOnce), 1, 25);
    const count = result.latencies.summary()?.count ?? 0;
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThanOrEqual(Math.ceil(result.transactions / 16));
  });

  // A mix of 15 quick ones and a slow one: a sixteenth of the time would be wrong by far.
  test("of a mix, what is timed stands for all of its kind", async () => {
    const session = new CountingSession((number) => (number % 4 === 0 ? slow() : DONE));
    const { latencies } = await closedLoop(session, 1, 500);
    const at = (percent: number): number =>
      latencies.summary()?.percentiles.find((each) => each.percent === percent)?.nanoseconds ?? 0;
    // One of four is slow: 60 percent are quick, 90 percent are not.
    expect(at(60)).toBeLessThan(at(90) / 2);
    expect(at(90)).toBeGreaterThanOrEqual(2e6);
  });

  // lmdb's reads: the wait for the turn of others is none of its time.
  test("of results at once do not hold the turns of the others", async () => {
    const session = new CountingSession(() => {
      block(0.02);
      return DONE;
    });
    const { latencies } = await closedLoop(session, 64, 400);
    const { percentiles = [] } = latencies.summary() ?? {};
    const median = percentiles.find(({ percent }) => percent === 50)?.nanoseconds ?? 0;
    const high = percentiles.find(({ percent }) => percent === 90)?.nanoseconds ?? 0;
    // With turns of 64 times 32 results in it, one of 32 would be a thousand times the median.
    const p95 = percentiles.find(({ percent }) => percent === 95)?.nanoseconds ?? high;
    expect(p95).toBeLessThan(median * 500);
  });
});

async function slow(): Promise<typeof DONE> {
  await afterTurns(1);
  block(2);
  return DONE;
}
