/**
 * The life of a log thread: rounds of the log (group-commit.ts), as often as commits call for them, and
 * otherwise often enough for the lag that the open processes allow; checkpoints when they are due.
 * Between rounds it sleeps on a word of shared memory, event loop and all, and only now and then
 * lets its event loop turn for messages.
 *
 * When nothing was committed for a while it announces that it rests, and looks no more: whoever commits
 * next finds the announcement and calls it (engine/durability.ts). A commit stores its journal's head and
 * then loads the announcement; the writer stores the announcement and then looks at the heads. On processors
 * that let the load pass the store, both may miss the other for as long as a store takes to become visible;
 * so the writer looks again after SETTLE_MS, which is longer by orders of magnitude.
 */

import { isClaimed, LAG_MS, slotsInUse } from "../engine/slot.ts";
import { LOG_CALLS, LOG_SLEEPS } from "../memory/control.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { nowMs, sleepSync, turn } from "../runtime/clock.ts";
import {
  DEFAULT_LAG_MS,
  DISK_FULL_RETRY_MS,
  LOG_REST_AFTER_MS,
  LOG_SPIN_MS,
} from "../runtime/limits.ts";
import type { GroupCommit } from "./group-commit.ts";

/** The event loop turns at least so often. */
const TURN_MS = 20;
const MAX_SLEEP_MS = 50;
/** Between announcing a rest and the last look. */
const SETTLE_MS = 5;
/**
 * How long a rest is, before something else is looked after: whether a checkpoint is due. In one piece: a
 * process that ends wakes its thread (host.ts).
 */
const REST_MS = 1_000;
const SPINS_PER_LOOK = 16;

export interface Duties {
  /** Whether the thread is to end, after a last round. */
  isStopped(): boolean;
  /** Called between rounds: starts a checkpoint if one is due. Whether one is being taken. */
  lookAfterCheckpoints(): boolean;
}

/** Runs until it is stopped, or the log has failed. */
export async function runLog(log: GroupCommit, duties: Duties): Promise<void> {
  let turnedMs = nowMs();
  let busyMs = nowMs();
  while (!duties.isStopped()) {
    const { isCalled } = log;
    const round = log.round();
    if (round === "failed") return;
    if (round === "done") log.prepare();
    const isTakingCheckpoint = duties.lookAfterCheckpoints();
    const isIdle = round === "idle" && !isTakingCheckpoint;
    if (!isIdle) busyMs = nowMs();
    // Whoever calls cannot be answered before there is room.
    if (round === "disk full") sleepSync(DISK_FULL_RETRY_MS);
    else if (isIdle && nowMs() - busyMs >= LOG_REST_AFTER_MS) rest(log, duties);
    else if (!isCalled || !spinForCall(log)) {
      log.executor.durability.setRests(false);
      const ms = lagMs(log.executor.memory) / 2;
      // The end of a checkpoint is an event.
      sleep(log, isTakingCheckpoint ? Math.min(ms, TURN_MS) : ms);
    }
    if (nowMs() - turnedMs < TURN_MS) continue;
    await turn();
    turnedMs = nowMs();
  }
  log.round();
}

/** One who commits again and again calls soon after it was answered: no sleep is short enough. */
function spinForCall(log: GroupCommit): boolean {
  const startMs = nowMs();
  for (let spins = 1; !log.isCalled; spins++) {
    log.executor.memory.parking.yield();
    if (spins % SPINS_PER_LOOK === 0 && nowMs() - startMs >= LOG_SPIN_MS) return false;
  }
  return true;
}

function sleep(log: GroupCommit, ms: number, turnMs = MAX_SLEEP_MS): void {
  const { control, parking } = log.executor.memory;
  const calls = Atomics.load(control.i32, LOG_CALLS);
  Atomics.store(control.i32, LOG_SLEEPS, 1);
  // A call that came before the flag could be seen is seen here. In short turns: a process that
  // ends must wait for this one.
  for (let left = ms; left > 0 && !log.isCalled; left -= turnMs) {
    parking.sleepSync(LOG_CALLS, calls, Math.min(left, turnMs));
  }
  Atomics.store(control.i32, LOG_SLEEPS, 0);
}

/** Sleeps until somebody commits or calls. */
function rest(log: GroupCommit, duties: Duties): void {
  const { durability } = log.executor;
  // One rest after another needs one announcement: whoever has committed since then has called.
  if (!durability.rests) {
    durability.setRests(true);
    sleep(log, SETTLE_MS);
  }
  if (!log.isNeeded && !duties.isStopped()) sleep(log, REST_MS, REST_MS);
}

/** The least that an open process asks for. */
function lagMs({ control }: StoreMemory): number {
  let least = DEFAULT_LAG_MS;
  let asked = false;
  for (let slot = 0; slot < slotsInUse(control); slot++) {
    const lag = control.i32[control.slotAt(slot) + LAG_MS];
    if (lag === 0 || !isClaimed(control, slot)) continue;
    least = asked ? Math.min(least, lag) : lag;
    asked = true;
  }
  return least;
}
