// The two ways to put load on an engine.
//
// Closed loop: a set number in flight, the next one begins when one has ended. It finds the most
// that an engine can do. Its latencies are kind to stalls: while nothing ends, nothing begins.
//
// Open loop: transactions begin at a set rate, whatever has become of the earlier ones, and their
// latency counts from the moment at which they were meant to begin. So a stall costs everybody who
// came during it, as it would cost the users.
//
// Engines in this process's memory have the result when the call returns, for all transactions or,
// as lmdb, for reads. These are cheap next to a clock, so one of several is timed and stands for
// all of them. Which engine it is makes no difference to the loop.
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { DONE, type Outcome, type Session } from "../../workloads/workload.ts";
import { monotonicNs } from "../harness/timed-run.ts";
import { createLatencies, type Latencies } from "./latencies.ts";

export interface LoopResult {
  /** Transactions that ended, also those that were in flight when the time was over. */
  readonly transactions: number;
  readonly refused: number;
  /** Open loop: could not begin, for so many were waiting already. */
  readonly dropped: number;
  /** Until the last one had ended. */
  readonly elapsedMs: number;
  readonly latencies: Latencies;
}

/** Clock and histogram take a tenth of a read from memory: one of so many results at once is timed. */
const RESULTS_PER_SAMPLE = 16;
/** Engines have timers, and others in flight their turn, which results at once would keep waiting. */
const RESULTS_PER_TURN = 1_024;
/** Measured with lmdb's reads, 64 in flight: with 2 they take an eighth longer than one by one. */
const LEAST_SAMPLES_PER_TURN = 16;
/** Open loop: begun in one go, before what they send must leave. */
const BEGUN_PER_TURN = 32;
/** An open loop that is hopelessly behind: what comes then is counted, not begun. */
export const MOST_WAITING = 10_000;
/** Timers are late by about a millisecond: what is due sooner is waited for by turns. */
const TIMER_PRECISION_MS = 2;
/** A turn takes microseconds: what is due sooner is waited for on the spot. */
const TURN_PRECISION_MS = 0.05;

class Count {
  transactions = 0;
  refused = 0;
  dropped = 0;
  /** The first error ends the run: nothing begins any more. */
  failure: { readonly error: unknown } | undefined;
  readonly latencies = createLatencies();

  ended(outcome: Outcome): void {
    this.transactions++;
    if (outcome !== DONE) this.refused++;
  }

  failed(error: unknown): void {
    this.failure ??= { error };
  }

  /** Call it when nothing is in flight. */
  result(elapsedMs: number): LoopResult {
    if (this.failure !== undefined) throw this.failure.error;
    const { transactions, refused, dropped, latencies } = this;
    return { transactions, refused, dropped, elapsedMs, latencies };
  }
}

/** All processes of a run begin together: CLOCK_MONOTONIC is the same for them. */
export async function waitUntil(startNs: number): Promise<void> {
  const aheadMs = (startNs - monotonicNs()) / 1e6 - TIMER_PRECISION_MS;
  if (aheadMs > 0) await sleep(aheadMs);
  while (monotonicNs() < startNs) {
    // A busy wait, of two milliseconds at most.
  }
}

export async function closedLoop(
  session: Session,
  inFlight: number,
  ms: number,
): Promise<LoopResult> {
  const count = new Count();
  const samplesPerTurn = Math.max(
    LEAST_SAMPLES_PER_TURN,
    Math.round(RESULTS_PER_TURN / RESULTS_PER_SAMPLE / inFlight),
  );
  const startMs = performance.now();
  const deadlineMs = startMs + ms;
  const keepOne = (): Promise<void> =>
    keepOneInFlight(session, count, deadlineMs, samplesPerTurn).catch((error) =>
      count.failed(error),
    );
  await Promise.all(Array.from({ length: inFlight }, keepOne));
  return count.result(performance.now() - startMs);
}

async function keepOneInFlight(
  session: Session,
  count: Count,
  deadlineMs: number,
  samplesPerTurn: number,
): Promise<void> {
  const { latencies } = count;
  let samples = 0;
  let beforeMs = performance.now();
  while (beforeMs < deadlineMs && count.failure === undefined) {
    let result = session.next();
    if (typeof result === "number") {
      const sampleMs = performance.now() - beforeMs;
      let atOnce = 0;
      do {
        count.ended(result);
        if (++atOnce === RESULTS_PER_SAMPLE) break;
        result = session.next();
      } while (typeof result === "number");
      latencies.record(sampleMs, atOnce);
      // One that waits after others did not is timed from here: its call is short next to its wait.
      if (typeof result === "number" && ++samples % samplesPerTurn === 0) await nextTurn();
      beforeMs = performance.now();
      if (typeof result === "number") continue;
    }
    count.ended(await result);
    const endMs = performance.now();
    latencies.record(endMs - beforeMs);
    beforeMs = endMs;
  }
}

export async function openLoop(
  session: Session,
  perSecond: number,
  ms: number,
): Promise<LoopResult> {
  const count = new Count();
  const { latencies } = count;
  const startMs = performance.now();
  const intervalMs = 1_000 / perSecond;
  const intended = Math.floor((ms * perSecond) / 1_000);
  let open = 0;
  let atOnce = 0;
  const finish = async (result: Promise<Outcome>, intendedMs: number): Promise<void> => {
    try {
      count.ended(await result);
      latencies.record(performance.now() - intendedMs);
    } catch (error) {
      count.failed(error);
    } finally {
      open--;
    }
  };
  for (let index = 0; index < intended && count.failure === undefined; ) {
    const intendedMs = startMs + index * intervalMs;
    const aheadMs = intendedMs - performance.now();
    if (aheadMs > 0) {
      // Whatever has been begun may end meanwhile.
      if (open > 0 || aheadMs > TURN_PRECISION_MS) await waitAbout(aheadMs);
      continue;
    }
    index++;
    // Those that should have begun wait as well, be it for an engine that runs one at a time.
    if (open - aheadMs / intervalMs >= MOST_WAITING) {
      count.dropped++;
      if (count.dropped % BEGUN_PER_TURN === 0) await nextTurn();
      continue;
    }
    let result: ReturnType<Session["next"]>;
    try {
      result = session.next();
    } catch (error) {
      count.failed(error);
      break;
    }
    if (typeof result === "number") {
      count.ended(result);
      latencies.record(performance.now() - intendedMs);
      if (++atOnce % RESULTS_PER_TURN === 0) await nextTurn();
    } else {
      open++;
      void finish(result, intendedMs);
      // The requests of many due moments must not pile up unsent.
      if (open % BEGUN_PER_TURN === 0) await nextTurn();
    }
  }
  while (open > 0) await nextTurn();
  // The last one begins before the time is over: the rate is not above the intended one for that.
  return count.result(Math.max(ms, performance.now() - startMs));
}

async function waitAbout(aheadMs: number): Promise<void> {
  if (aheadMs > TIMER_PRECISION_MS) await sleep(aheadMs - TIMER_PRECISION_MS);
  else await nextTurn();
}
