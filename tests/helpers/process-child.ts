/** What the child programs of tests share: their orders, and when to stop. */

import { createInterface } from "node:readline";
import { sleepSync } from "../../src/runtime/clock.ts";
import type { Random } from "../../src/runtime/random.ts";
import { hookAtomics } from "./engine-atomics.ts";

/** The argument that the process was started with. */
export function orderOf<Order>(): Order {
  return JSON.parse(process.argv[2]) as Order;
}

let stopped = false;

/** Whether the parent has closed our standard input: time to come to an end. */
export function isStopped(): boolean {
  return stopped;
}

/** From now on `isStopped` tells. */
export function listenForStop(): void {
  process.stdin.on("close", () => {
    stopped = true;
  });
  process.stdin.resume();
}

/** Says "ready", and waits for the parent's word. */
export function waitForGo(): Promise<void> {
  return said("ready");
}

/** Says something, and waits for the next word of the parent. */
export function said(what: string): Promise<void> {
  const answered = new Promise<void>((resolve) => {
    process.stdin.once("data", () => resolve());
  });
  process.stdin.resume();
  process.stdout.write(`${what}\n`);
  return answered;
}

/** The orders of a crew's member, until there are no more. */
export async function* orders<Order>(): AsyncGenerator<Order> {
  process.stdout.write("ready\n");
  for await (const line of createInterface({ input: process.stdin })) {
    yield JSON.parse(line) as Order;
  }
}

/** Lets timers and signals have their turn. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** Kills itself before its n-th atomic step, wherever that is; with 0 it lives. */
export function dieAtStep(n: number): void {
  if (n === 0) return;
  let steps = 0;
  hookAtomics({
    before: () => {
      if (++steps === n) process.kill(process.pid, "SIGKILL");
    },
  });
}

const BATCH_MS = 4;

/** Runs `step` again and again, with turns of the event loop in between. */
export async function repeat(isOver: () => boolean, step: () => void): Promise<void> {
  while (!isOver()) {
    const end = performance.now() + BATCH_MS;
    while (performance.now() < end) step();
    await turn();
  }
}

/** Keeps a transaction open for a while, so that others get in between. */
export function linger(microseconds: number): void {
  const end = performance.now() + microseconds / 1_000;
  while (performance.now() < end);
}

const DAWDLE_STEPS = 60;

/**
 * Sleeps now and then after an atomic step, with everything half done: windows of a few
 * instructions get wide enough for others to come in.
 */
export function dawdle(random: Random): void {
  hookAtomics({
    after: () => {
      if (random.below(DAWDLE_STEPS) === 0) sleepSync(random.below(4) / 10);
    },
  });
}

/** The clock that all processes of the machine share, as list-append histories need it. */
export function nowNs(): number {
  return Number(process.hrtime.bigint());
}

/** The last thing that a child says: what its parent gets. */
export function report(what: unknown): void {
  process.stdout.write(`${JSON.stringify(what)}\n`);
}
