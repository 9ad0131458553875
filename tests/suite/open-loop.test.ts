// The open loop: begins at its rate whatever becomes of the earlier ones, and counts from the moment
// at which a transaction was meant to begin.
import { describe, expect, test } from "vitest";
import {
  closedLoop,
  type LoopResult,
  MOST_WAITING,
  openLoop,
} from "../../benchmarks/suite/loops.ts";
import { DONE, type Outcome } from "../../workloads/workload.ts";
import {
  afterMs,
  afterTurns,
  atOnce,
  type Behaviour,
  block,
  CountingSession,
  outcomeOf,
  refusedOf,
} from "./sessions.ts";

/** Part of the transactions that took longer than this, as far as the curve tells. */
function partAbove({ latencies }: LoopResult, ms: number): number {
  const { percentiles = [] } = latencies.summary() ?? {};
  const below = percentiles.filter(({ nanoseconds }) => nanoseconds <= ms * 1e6);
  return 1 - Math.max(0, ...below.map(({ percent }) => percent)) / 100;
}

describe("begins as many as intended", () => {
  test.each([
    ["at once", (number: number) => outcomeOf(number)],
    ["later", (number: number) => afterTurns(number % 4, outcomeOf(number))],
    ["some at once, some later", (number: number) => mixed(number)],
  ])("with results that come %s", async (_, behaviour) => {
    const session = new CountingSession(behaviour);
    const result = await openLoop(session, 2_000, 100);
    expect(session.begun + result.dropped).toBe(200);
    // The rate that it reached is not above the one it had.
    expect(result.elapsedMs).toBeGreaterThanOrEqual(100);
    expect(result.transactions).toBe(session.begun);
    expect(result.refused).toBe(refusedOf(session.begun));
    expect(result.latencies.summary()?.count).toBe(result.transactions);
    expect(session.inFlight).toBe(0);
  });

  test("also at a rate below one in the time: none", async () => {
    const session = new CountingSession(atOnce);
    const result = await openLoop(session, 1, 100);
    expect(session.begun).toBe(0);
    expect(result.transactions).toBe(0);
    expect(result.latencies.summary()).toBe(undefined);
  });

  test("not before they are due", async () => {
    const beganMs: number[] = [];
    const startMs = performance.now();
    const session = new CountingSession(() => {
      beganMs.push(performance.now() - startMs);
      return DONE;
    });
    await openLoop(session, 1_000, 50);
    beganMs.forEach((ms, index) => {
      // The loop's own start is later than the test's.
      expect(ms).toBeGreaterThanOrEqual(index);
    });
  });
});

function mixed(number: number) {
  return number % 2 === 0 ? afterTurns(2, outcomeOf(number)) : outcomeOf(number);
}

describe("a stall", () => {
  const stallMs = 200;
  const stallsOnce: Behaviour = (number) => {
    if (number === 50) block(stallMs);
    return DONE;
  };

  test("shows in the latencies of all that came during it", async () => {
    // 400 transactions, of which 200 are meant to begin during the stall.
    const result = await openLoop(new CountingSession(stallsOnce), 1_000, 400);
    expect(result.transactions).toBe(400);
    // Half of those that came during the stall have waited half of it, or longer.
    expect(partAbove(result, stallMs / 2)).toBeGreaterThanOrEqual(0.2);
  });

  test("shows once in the closed loop", async () => {
    // The hundredth result is the first of a sample: timed, and one of thousands.
    let number = 0;
    const session = new CountingSession(async (): Promise<Outcome> => {
      if (number++ === 50) block(stallMs);
      return DONE;
    });
    const result = await closedLoop(session, 1, 400);
    const { max = 0 } = result.latencies.summary() ?? {};
    expect(max).toBeGreaterThanOrEqual(stallMs * 1e6 * 0.99);
    expect(partAbove(result, stallMs / 2)).toBeLessThan(0.2);
  });

  test("does not keep the next ones from beginning", async () => {
    const session = new CountingSession((number) => (number === 0 ? afterMs(100) : DONE));
    let atEnd = 0;
    const first = openLoop(session, 1_000, 50).then(() => {
      atEnd = session.begun;
    });
    await first;
    expect(atEnd).toBe(50);
  });
});

describe("beyond the limit of those that wait", () => {
  test("nothing begins, and it is counted", async () => {
    const intended = MOST_WAITING + 500;
    let finish = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const session = new CountingSession(() => all.then(() => DONE));
    const dueMs = performance.now() + 50;
    const run = openLoop(session, intended * 20, 50);
    // They end when no more begin: all others were counted by then.
    let before = -1;
    const poll = setInterval(() => {
      if (session.begun === before && performance.now() > dueMs) finish();
      before = session.begun;
    }, 50);
    const result = await run;
    clearInterval(poll);
    expect(session.mostInFlight).toBeLessThanOrEqual(MOST_WAITING);
    expect(result.transactions + result.dropped).toBe(intended);
    expect(result.dropped).toBeGreaterThan(0);
  });

  test("the same holds for an engine that runs one at a time", async () => {
    const intended = MOST_WAITING * 3;
    const session = new CountingSession((number) => {
      if (number === 10) block(50);
      return DONE;
    });
    // All are due within 20 ms, and the engine stalls for 50.
    const result = await openLoop(session, intended * 50, 20);
    expect(result.transactions + result.dropped).toBe(intended);
    expect(result.dropped).toBeGreaterThanOrEqual(intended - MOST_WAITING - 2_000);
  });
});

describe("an error", () => {
  test.each([
    ["of a promise", () => Promise.reject(new Error("the twentieth"))],
    [
      "of the call",
      () => {
        throw new Error("the twentieth");
      },
    ],
  ])("%s ends the run and leaves nothing in flight", async (_, failing) => {
    const session = new CountingSession((number) => (number === 20 ? failing() : afterTurns(5)));
    // It would last for two minutes otherwise.
    await expect(openLoop(session, 1_000, 120_000)).rejects.toThrow("the twentieth");
    expect(session.inFlight).toBe(0);
    const { begun } = session;
    await afterTurns(10);
    expect(session.begun).toBe(begun);
  });
});
