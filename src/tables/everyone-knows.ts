/**
 * Changing the catalogue while others work by what it said before. Whoever changes it announces that by
 * the generation, and then waits for all transactions that had begun: one that begins later looks at the
 * generation first, and knows of the change. A process that dies meanwhile needs not be waited for.
 */

import type { Executor } from "../engine/executor.ts";
import { SCHEMA_GENERATION } from "../memory/control.ts";
import { nowMs, sleep } from "../runtime/clock.ts";
import { TimeoutError } from "../runtime/errors.ts";

const SWEEP_ROUNDS = 20;

/** Has all executors read the catalogue again, before their next operation. */
export function announceChange(executor: Executor): void {
  Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
}

/** Announces a change, and waits for transactions that may not know of it. */
export async function everyoneKnows(
  executor: Executor,
  timeoutMs: number,
  what = "building an index",
  outlook = "this will be finished when the store is opened again",
): Promise<void> {
  announceChange(executor);
  const epoch = executor.mark();
  const deadlineMs = nowMs() + timeoutMs;
  for (let round = 1; !executor.epochs.isPast(epoch); round++) {
    if (nowMs() > deadlineMs) throw tooLong(executor, epoch, timeoutMs, what, outlook);
    if (round % SWEEP_ROUNDS === 0) executor.sweep();
    await sleep(1);
  }
}

function tooLong(
  executor: Executor,
  epoch: number,
  timeoutMs: number,
  what: string,
  outlook: string,
): TimeoutError {
  const holder = executor.epochs.laggard(epoch);
  const who =
    holder === undefined
      ? "another process"
      : `process ${holder.pid} (thread ${holder.threadId}, slot ${holder.slot})`;
  return new TimeoutError(
    `${what}: ${who} has had a transaction open for more than ${timeoutMs} ms; ${outlook}`,
    holder,
  );
}
