/** What tests of crash points share: somebody dies before or after each atomic step, and others look. */

import { expect } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { dieAt, type When } from "./engine-atomics.ts";
import type { EngineStore } from "./engine-store.ts";

export const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 200;

/** A store with somebody in it who is to die. */
export interface CrashStage {
  readonly store: EngineStore;
  readonly victim: Executor;
}

export function withStage<S extends CrashStage>(make: () => S, work: (stage: S) => void): void {
  const stage = make();
  try {
    work(stage);
  } finally {
    stage.store.dispose();
  }
}

/**
 * Calls `attempt` with 1, 2 and so on, on a stage of its own, for as long as it says that somebody died. Where stages are
 * expensive, only every `stride`-th step is tried.
 */
export function atEachStep<S extends CrashStage>(
  make: () => S,
  attempt: (stage: S, k: number) => boolean,
  stride = 1,
): void {
  for (let k = 1, died = true; died; k += stride) {
    expect(k).toBeLessThan(MOST_STEPS + stride);
    withStage(make, (stage) => {
      died = attempt(stage, k);
    });
  }
}

/**
 * `die` lets the victim die. Then the one who recovers it dies before and after each of its own steps, and a
 * third one, which is passed to `check`, finishes.
 */
export function recovererDies<S extends CrashStage>(
  make: () => S,
  die: (stage: S) => void,
  check: (stage: S, third: Executor, point: string) => void,
): void {
  atEachStep(make, (stage, halfStep) => {
    const recoverer = stage.store.open();
    die(stage);
    const died = dieAt((halfStep + 1) >> 1, halfStep % 2 === 1 ? "before" : "after", () => {
      recoverer.recoverIfDead(stage.victim.slot);
    });
    stage.store.kill(recoverer);
    const third = stage.store.open();
    third.sweep();
    check(stage, third, `its recoverer at half-step ${halfStep}`);
    return died;
  });
}
