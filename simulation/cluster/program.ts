/**
 * What a client of a simulation does, as a coroutine in virtual time: it performs steps (coroutines of
 * the protocols, each with a time-out of its own, and pauses) and knows nothing of promises, so that
 * the order of events is a function of the seed.
 */

import type { Clock } from "../../src/fabric/fabric.ts";
import type { Driver } from "../../src/protocols/driver.ts";
import type { Routine } from "../../src/protocols/message.ts";

export interface Step {
  /** Calls `done` once, perhaps before it returns. */
  begin(driver: Driver, clock: Clock, done: () => void): void;
}

export type Program<T> = Generator<Step, T, void>;

/** Runs a coroutine of the protocols; throws what it throws. */
export function* perform<T>(routine: Routine<T>, timeoutMs: number): Program<T> {
  let ended: { readonly result: T } | { readonly error: unknown } | undefined;
  yield {
    begin(driver, _clock, done) {
      const end = (how: typeof ended): void => {
        ended = how;
        done();
      };
      driver.run(
        routine,
        timeoutMs,
        (result) => end({ result }),
        (error) => end({ error }),
      );
    },
  };
  if (ended === undefined) throw new Error("a step went on before it had ended");
  if ("error" in ended) throw ended.error;
  return ended.result;
}

export function* pause(ms: number): Program<void> {
  yield { begin: (_driver, clock, done) => clock.after(ms, done) };
}

/** Runs a program to its end. */
export function runProgram<T>(
  program: Program<T>,
  driver: Driver,
  ended: (result: T) => void,
  failed: (error: unknown) => void,
): void {
  const { clock } = driver.endpoint;
  const advance = (): void => {
    for (;;) {
      let step: IteratorResult<Step, T>;
      try {
        step = program.next();
      } catch (error) {
        failed(error);
        return;
      }
      if (step.done === true) {
        ended(step.value);
        return;
      }
      let isDone = false;
      let isWaited = false;
      step.value.begin(driver, clock, () => {
        isDone = true;
        if (isWaited) advance();
      });
      isWaited = true;
      if (!isDone) return;
    }
  };
  advance();
}
