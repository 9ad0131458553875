/**
 * Coroutines of a NIC (Xenic §4.3.1, continuation passing). A coroutine yields what it waits for: a function that is given
 * the continuation and sees to it that it is called once. That may be a DMA transfer, answers from other nodes, or the
 * host. It knows no clock and no network: those who wait for something are given it (ports.ts).
 */

export type Wait = (resume: () => void) => void;
export type NicRoutine<T> = Generator<Wait, T, void>;

/** Runs a coroutine up to its end, over all its waits. */
export function start<T>(routine: NicRoutine<T>, done: (result: T) => void): void {
  const advance = (): void => {
    // What has come before the wait returns does not deepen the stack.
    for (;;) {
      const step = routine.next();
      if (step.done === true) {
        done(step.value);
        return;
      }
      let isOver = false;
      let isWaiting = true;
      step.value(() => {
        isOver = true;
        if (!isWaiting) advance();
      });
      isWaiting = false;
      if (!isOver) return;
    }
  };
  advance();
}

/** Runs coroutines at the same time, and waits for all of them. */
export function* together<T>(routines: readonly NicRoutine<T>[]): NicRoutine<T[]> {
  const results: T[] = new Array(routines.length);
  let left = routines.length;
  if (left === 0) return results;
  yield (resume) => {
    for (const [i, routine] of routines.entries()) {
      start(routine, (result) => {
        results[i] = result;
        if (--left === 0) resume();
      });
    }
  };
  return results;
}
