/**
 * open.lock keeps those apart who change which memory a store has, or how it lies there, from each other and
 * from those who are just joining. The former hold it alone, the latter shared: hundreds of processes may join
 * at once. The kernel drops it with whoever holds it (flock), so there is nothing to recover.
 *
 * Nobody waits inside of the kernel: a process that waits looks again and again, the less often the longer
 * it has waited, so that the looks of hundreds do not take the processor from those who hold the lock. Those
 * who want it alone have no precedence. Joining takes milliseconds and is over when the crowd has joined;
 * in the meantime there are moments at which nobody holds it.
 */

import { closeSync, constants, existsSync, futimesSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { libc } from "../memory/libc.ts";
import { nowMs, sleep, wallClockMs } from "../runtime/clock.ts";
import { TimeoutError } from "../runtime/errors.ts";
import {
  DEFAULT_TIMEOUT_MS,
  OPEN_RETRY_CROWD_MS,
  OPEN_RETRY_MAX_MS,
  OPEN_RETRY_MIN_MS,
  OPEN_RETRY_SHARE,
  RECOVERY_PATIENCE_MS,
} from "../runtime/limits.ts";
import { explained, RECOVERING } from "./store-files.ts";

const OPEN_LOCK = "open.lock";

/** Two ways to open a store, of which `change` always leads there. */
export interface WaysToOpen<T> {
  /** Without any lock: whether to try `join`. */
  mayJoin(): boolean;
  /** Beside others who join; undefined if that was not enough. */
  join(): Promise<T | undefined>;
  /** While nobody else joins, creates, changes or destroys the store. */
  change(): Promise<T>;
}

/** Joins the store as it is, or changes it: whichever can be done first. */
export async function joinOrChange<T>(
  path: string,
  patienceMs: number,
  ways: WaysToOpen<T>,
): Promise<T> {
  const { value } = await patiently(path, patienceMs, async () => {
    if (ways.mayJoin()) {
      const shared = await holding(path, "shared", () => ways.join());
      if (shared?.value !== undefined) return { value: shared.value };
    }
    return holding(path, "alone", () => ways.change());
  });
  return value;
}

/** Runs `work` while nobody else creates, joins or destroys the store of this folder. */
export async function withOpenLock<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  const { value } = await patiently(path, DEFAULT_TIMEOUT_MS, () => holding(path, "alone", work));
  return value;
}

/** Runs `work` under the lock; undefined if it cannot be had now. */
async function holding<T>(
  path: string,
  how: "shared" | "alone",
  work: () => T | Promise<T>,
): Promise<{ value: T } | undefined> {
  const file = join(path, OPEN_LOCK);
  const fd = explained(file, () => openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600));
  try {
    if (!(how === "alone" ? libc().tryLock(fd) : libc().tryLockShared(fd))) return undefined;
    tellHeld(fd);
    return { value: await work() };
  } finally {
    // Closing gives the lock back.
    closeSync(fd);
  }
}

/** Tries until there is a result, or one process has held the lock for longer than `patienceMs`. */
async function patiently<T>(
  path: string,
  patienceMs: number,
  attempt: () => Promise<T | undefined>,
): Promise<T> {
  const firstMs = nowMs();
  let startMs = firstMs;
  let lookedMs = firstMs;
  let held = heldSince(path);
  for (let pauseMs = OPEN_RETRY_MIN_MS; ; ) {
    const result = await attempt();
    if (result !== undefined) return result;
    await sleep(pauseMs);
    const now = nowMs();
    const longestMs = Math.max((now - firstMs) * OPEN_RETRY_SHARE, OPEN_RETRY_MAX_MS);
    pauseMs = Math.min(1.5 * pauseMs, longestMs, OPEN_RETRY_CROWD_MS);
    if (now - lookedMs < OPEN_RETRY_CROWD_MS) continue;
    lookedMs = now;
    // Patience is with each who opens it, not with all of them: many may have come before.
    const heldNow = heldSince(path);
    if (heldNow !== held) startMs = now;
    held = heldNow;
    const isRecovering = existsSync(join(path, RECOVERING));
    const heldMs = isRecovering ? RECOVERY_PATIENCE_MS : patienceMs;
    if (now > startMs + heldMs || now > firstMs + RECOVERY_PATIENCE_MS) {
      throw new TimeoutError(`another process has been opening ${path} for too long`);
    }
  }
}

/** Changes when somebody else takes the lock. */
function heldSince(path: string): number | undefined {
  return statSync(join(path, OPEN_LOCK), { throwIfNoEntry: false })?.mtimeMs;
}

/** Lets those who wait see that the one before has made way. */
function tellHeld(fd: number): void {
  try {
    const seconds = wallClockMs() / 1_000;
    futimesSync(fd, seconds, seconds);
  } catch {
    // They have patience with two of us as with one, then.
  }
}
