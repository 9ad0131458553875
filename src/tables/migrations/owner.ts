/** Who does the work of a migration. If its process ends, or it gives the work up, somebody else goes on. */

import type { Executor } from "../../engine/executor.ts";
import { claimedSince, isClaimed } from "../../engine/slot.ts";
import type { Owner } from "./stored.ts";

/** No slot has this number. */
const NOBODY = -1;

export function ownerIn(executor: Executor): Owner {
  const { pid, threadId, slot } = executor.holder(executor.slot);
  return { slot, pid, threadId, since: claimedSince(executor.memory.control, slot) };
}

/** An owner that has given its work up: whoever comes next takes it over. */
export function givenUp(owner: Owner): Owner {
  return { ...owner, slot: NOBODY };
}

export function isOwn(executor: Executor, owner: Owner): boolean {
  return owner.slot === executor.slot && isThere(executor, owner);
}

/** Whether the owner still has the store open. One that is dead is recovered first. */
export function isAlive(executor: Executor, owner: Owner): boolean {
  if (!isThere(executor, owner)) return false;
  return !executor.recoverIfDead(owner.slot) && isThere(executor, owner);
}

function isThere(executor: Executor, { slot, pid, since }: Owner): boolean {
  const { control } = executor.memory;
  if (!(slot >= 0 && slot < control.geometry.slots) || !isClaimed(control, slot)) return false;
  return executor.holder(slot).pid === pid && claimedSince(control, slot) === since;
}
