/** How many transactions of a client run at once, and which of those that wait are refused. */

import { expect, test } from "vitest";
import { Admission } from "../../src/database/remote/admission.ts";
import type { Timer } from "../../src/fabric/fabric.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import {
  ADMISSION_WINDOW_MS,
  FIRST_RUNNING_TRANSACTIONS,
  MAX_RUNNING_TRANSACTIONS,
  MAX_WAITING_TRANSACTIONS,
  MIN_RUNNING_TRANSACTIONS,
  QUICK_TRANSACTION_MS,
  SLOW_TRANSACTION_MS,
} from "../../src/runtime/limits.ts";
import { ManualClock } from "./fake-endpoint.ts";

/** Where the timers of those who wait are many and of no interest. */
class QuickClock extends ManualClock {
  #passedMs = 0;

  override nowMs(): number {
    return super.nowMs() + this.#passedMs;
  }

  override after(): Timer {
    return { cancel: () => {} };
  }

  override advance(ms: number): void {
    this.#passedMs += ms;
  }
}

class Load {
  readonly clock: ManualClock;
  readonly admission: Admission;
  readonly running: { readonly leftMs: number; readonly end: () => void }[] = [];
  readonly codes: string[] = [];

  constructor(clock = new ManualClock()) {
    this.clock = clock;
    this.admission = new Admission(clock);
  }

  async add(count: number, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    for (let i = 0; i < count; i++) {
      const run = this.admission.run(
        timeoutMs,
        signal,
        (leftMs) => new Promise<void>((end) => void this.running.push({ leftMs, end })),
      );
      run.then(
        () => this.codes.push("done"),
        ({ code }: SituError) => this.codes.push(code),
      );
    }
    await turn();
  }

  /** Ends the first of those that run. */
  async end(count: number): Promise<void> {
    for (const { end } of this.running.splice(0, count)) end();
    await turn();
  }

  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await turn();
  }

  count(code: string): number {
    return this.codes.filter((each) => each === code).length;
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test("so many run at once; the others get their turn in order, with what is left of their time", async () => {
  const load = new Load();
  await load.add(FIRST_RUNNING_TRANSACTIONS, 1_000);
  await load.add(1, 2_000);
  await load.add(1, 3_000);
  expect([load.running.length, load.admission.waiting]).toEqual([FIRST_RUNNING_TRANSACTIONS, 2]);
  await load.pass(100);
  await load.end(2);
  expect(load.running.slice(-2).map(({ leftMs }) => leftMs)).toEqual([1_900, 2_900]);
  expect(load.admission.waiting).toBe(0);
  await load.end(FIRST_RUNNING_TRANSACTIONS);
  expect(load.codes).toEqual(Array(FIRST_RUNNING_TRANSACTIONS + 2).fill("done"));
});

test("one whose time is over is refused, and was not begun", async () => {
  const load = new Load();
  await load.add(FIRST_RUNNING_TRANSACTIONS, 60_000);
  await load.add(3, 500);
  await load.pass(500);
  expect(load.codes).toEqual(Array(3).fill("SITU_OVERLOADED"));
  await load.end(FIRST_RUNNING_TRANSACTIONS);
  expect(load.running).toEqual([]);
  // All can go on as before.
  await load.add(FIRST_RUNNING_TRANSACTIONS, 500);
  expect(load.running).toHaveLength(FIRST_RUNNING_TRANSACTIONS);
});

test("one that would not be done in time, as long as the others take, is not begun", async () => {
  const load = new Load();
  await load.add(FIRST_RUNNING_TRANSACTIONS, 60_000);
  await load.add(1, 60_000);
  await load.add(1, ADMISSION_WINDOW_MS + 150);
  await load.add(1, 60_000);
  // The measure begins with one that ends; then two that took 200 ms and more.
  await load.end(1);
  await load.pass(ADMISSION_WINDOW_MS);
  await load.end(1);
  expect(load.codes).toEqual(["done", "done", "SITU_OVERLOADED"]);
  expect(load.admission.waiting).toBe(0);
});

test("a signal ends the wait", async () => {
  const load = new Load();
  const aborter = new AbortController();
  await load.add(FIRST_RUNNING_TRANSACTIONS, 60_000);
  await load.add(2, 60_000, aborter.signal);
  aborter.abort();
  await turn();
  expect(load.codes).toEqual(["SITU_ABORTED", "SITU_ABORTED"]);
  expect(load.admission.waiting).toBe(0);
});

test("no more wait than there is room for", async () => {
  const load = new Load(new QuickClock());
  await load.add(FIRST_RUNNING_TRANSACTIONS + MAX_WAITING_TRANSACTIONS + 7, 60_000);
  expect(load.count("SITU_OVERLOADED")).toBe(7);
  await load.end(10);
  expect(load.admission.waiting).toBe(MAX_WAITING_TRANSACTIONS - 10);
});

test("fewer run while they take long, more while they are quick, within limits", async () => {
  const load = new Load(new QuickClock());
  await load.add(6_000, 10_000_000);
  const steady = async (ms: number, rounds: number): Promise<void> => {
    for (let i = 0; i < rounds; i++) {
      await load.pass(ms);
      await load.end(load.running.length);
    }
  };
  await steady(2 * SLOW_TRANSACTION_MS, 10);
  expect(load.admission.limit).toBe(MIN_RUNNING_TRANSACTIONS);
  expect(load.running).toHaveLength(MIN_RUNNING_TRANSACTIONS);
  await steady(QUICK_TRANSACTION_MS - 1, 8);
  expect(load.admission.waiting).toBeGreaterThan(0);
  expect(load.admission.limit).toBeGreaterThan(2 * MIN_RUNNING_TRANSACTIONS);
  await load.add(30_000, 10_000_000);
  await steady(QUICK_TRANSACTION_MS - 1, 30);
  expect(load.admission.limit).toBe(MAX_RUNNING_TRANSACTIONS);
});
