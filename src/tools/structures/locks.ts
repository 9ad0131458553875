/**
 * Whether the lock word of an object makes sense. Its owner holds it for microseconds, from the
 * intent of a commit to its end; so a lock whose owner is at no commit, or does not exist, is one
 * that nobody will ever release.
 */

import type { Executor } from "../../engine/executor.ts";
import { IDLE, isClaimed, PREPARES, phaseOf, STATUS } from "../../engine/slot.ts";
import {
  INSTALLING,
  LOCK,
  lockMode,
  lockOwner,
  PREPARED,
  VERSION_LOW,
} from "../../memory/object.ts";
import type { Region } from "../../memory/store-memory.ts";

/** An owner may lock, commit and lock again between two looks, but not so often in a row. */
const LOOKS = 16;

/** What is wrong with the lock of the object at `word`, or undefined. */
export function lockFault(executor: Executor, region: Region, word: number): string | undefined {
  const { i32 } = region;
  const { control } = executor.memory;
  let lock = Atomics.load(i32, word + LOCK);
  if (lock === 0) return undefined;
  for (let look = 0; look < LOOKS; look++) {
    const owner = lockOwner(lock);
    const mode = lockMode(lock);
    const isMode = mode === PREPARED || mode === INSTALLING;
    if (!isMode || owner < 0 || owner >= control.geometry.slots) {
      return `its lock word is ${lock}, which is no lock`;
    }
    const version = i32[word + VERSION_LOW];
    // One who died over a commit is not damage: the commit is ended, and the lock goes.
    if (look === 0) executor.recoverIfDead(owner);
    const status = Atomics.load(control.i32, control.slotAt(owner) + STATUS);
    const isAtWork = isClaimed(control, owner) && phaseOf(status) !== IDLE;
    if (isAtWork && owner !== executor.slot) return undefined;
    // One who takes part in transactions across machines holds locks between his commits.
    const prepares = Atomics.load(control.i32, control.slotAt(owner) + PREPARES) === 1;
    if (prepares && isClaimed(control, owner)) return undefined;
    const again = Atomics.load(i32, word + LOCK);
    if (again === 0 || i32[word + VERSION_LOW] !== version) return undefined;
    lock = again;
  }
  return `it is locked by slot ${lockOwner(lock)}, which is at no commit`;
}

/** Whether nobody may read the object while it is locked so. */
export function isUnreadable(region: Region, word: number): boolean {
  return lockMode(Atomics.load(region.i32, word + LOCK)) === INSTALLING;
}
