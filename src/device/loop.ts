/**
 * The life of a device thread: rounds of the log (device.ts), as often as commits call for them, and
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
import { DEVICE_CALLS, DEVICE_SLEEPS } from "../memory/control.ts";
import type { StoreMemory } from "../memory/region.ts";
import { nowMs, sleepSync, turn } from "../runtime/clock.ts";
import {
  DEFAULT_LAG_MS,
  DEVICE_REST_AFTER_MS,
  DEVICE_SPIN_MS,
  DISK_FULL_RETRY_MS,
} from "../runtime/limits.ts";
import type { Device } from "./device.ts";

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
export async function runDevice(device: Device, duties: Duties): Promise<void> {
  let turnedMs = nowMs();
  let busyMs = nowMs();
  while (!duties.isStopped()) {
    const { isCalled } = device;
    const round = device.round();
    if (round === "failed") return;
    if (round === "done") device.prepare();
    const isTakingCheckpoint = duties.lookAfterCheckpoints();
    const isIdle = round === "idle" && !isTakingCheckpoint;
    if (!isIdle) busyMs = nowMs();
    // Whoever calls cannot be answered before there is room.
    if (round === "disk full") sleepSync(DISK_FULL_RETRY_MS);
    else if (isIdle && nowMs() - busyMs >= DEVICE_REST_AFTER_MS) rest(device, duties);
    else if (!isCalled || !spinForCall(device)) {
      device.executor.durability.setRests(false);
      const ms = lagMs(device.executor.memory) / 2;
      // The end of a checkpoint is an event.
      sleep(device, isTakingCheckpoint ? Math.min(ms, TURN_MS) : ms);
    }
    if (nowMs() - turnedMs < TURN_MS) continue;
    await turn();
    turnedMs = nowMs();
  }
  device.round();
}

/** One who commits again and again calls soon after it was answered: no sleep is short enough. */
function spinForCall(device: Device): boolean {
  const startMs = nowMs();
  for (let spins = 1; !device.isCalled; spins++) {
    device.executor.memory.parking.yield();
    if (spins % SPINS_PER_LOOK === 0 && nowMs() - startMs >= DEVICE_SPIN_MS) return false;
  }
  return true;
}

function sleep(device: Device, ms: number, turnMs = MAX_SLEEP_MS): void {
  const { control, parking } = device.executor.memory;
  const calls = Atomics.load(control.i32, DEVICE_CALLS);
  Atomics.store(control.i32, DEVICE_SLEEPS, 1);
  // A call that came before the flag could be seen is seen here. In short turns: a process that
  // ends must wait for this one.
  for (let left = ms; left > 0 && !device.isCalled; left -= turnMs) {
    parking.sleepSync(DEVICE_CALLS, calls, Math.min(left, turnMs));
  }
  Atomics.store(control.i32, DEVICE_SLEEPS, 0);
}

/** Sleeps until somebody commits or calls. */
function rest(device: Device, duties: Duties): void {
  const { durability } = device.executor;
  // One rest after another needs one announcement: whoever has committed since then has called.
  if (!durability.rests) {
    durability.setRests(true);
    sleep(device, SETTLE_MS);
  }
  if (!device.isNeeded && !duties.isStopped()) sleep(device, REST_MS, REST_MS);
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
