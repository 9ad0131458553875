/**
 * Letting the event loop turn. Promises alone never do: their callbacks all run before the next timer,
 * socket or message gets its turn, however long the chain of them is. So asynchronous work of this
 * library asks `isTurnDue` before each piece, and awaits `nextTurn` when this thread has been at it for
 * EVENT_LOOP_TURN_MS without a turn in between.
 *
 * Whether the loop has turned by itself meanwhile is found out at no cost for those who work in short
 * pieces: an immediate that does not keep the loop awake is left behind at most once in
 * EVENT_LOOP_TURN_MS, and says so when it runs. There is one such state for each thread, shared by all
 * stores that it has open.
 *
 * Those who wait for a turn form one queue, and go on one after the other for as long as the turn
 * lasts. Were all of them woken in every turn, many would take longer to find out that it is not
 * theirs than the turn may take.
 */

import { nowMs } from "./clock.ts";
import { EVENT_LOOP_TURN_MS } from "./limits.ts";

/** Since when this thread is watched, and whether the event loop has turned since. */
let sinceMs = Number.NEGATIVE_INFINITY;
let hasTurned = true;
/** Those who wait, from `first` on. */
let waiting: (() => void)[] = [];
let first = 0;

function watch(now: number): void {
  sinceMs = now;
  hasTurned = false;
  setImmediate(turned).unref();
}

function turned(): void {
  hasTurned = true;
}

/** Whether the event loop should turn before more is done here. For those who know what time it is: `now`. */
export function isTurnDue(now = nowMs()): boolean {
  if (now - sinceMs < EVENT_LOOP_TURN_MS) return false;
  if (!hasTurned) return true;
  watch(now);
  return false;
}

/** Resolves after the event loop has turned. Ask `isTurnDue` again then: others went on, too. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(begin);
  });
}

function begin(): void {
  watch(nowMs());
  goOn();
}

/** Lets the next one go on, and looks again when that one has begun. */
function goOn(): void {
  if (first === waiting.length) {
    waiting = [];
    first = 0;
  } else if (isTurnDue()) {
    setImmediate(begin);
  } else {
    waiting[first++]();
    // Not by a callback of its own kind: after the promise that was just resolved.
    queueMicrotask(goOn);
  }
}
