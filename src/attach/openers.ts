/**
 * Who has a store open, seen from outside: without opening it, so that it also works when all slots are
 * taken, or somebody does not move. A claimed slot whose lease can be had belongs to a dead executor,
 * which the next opener recovers; it is not listed.
 */

import { readFileSync } from "node:fs";
import { FileLockLeases } from "../engine/leases/file-lock.ts";
import type { Leases } from "../engine/leases/leases.ts";
import {
  ACTIVE,
  claimedSince,
  holderOf,
  IDLE,
  isClaimed,
  isOpener,
  phaseOf,
  STATUS,
} from "../engine/slot.ts";
import { FolderLock } from "../folder/folder-lock.ts";
import { findMemory } from "../folder/memory-search.ts";
import { withOpenLock } from "../folder/open-lock.ts";
import { memoryFolder, readIdentity } from "../folder/store-files.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";

/** A thread or process that has a store open. */
export interface Opener {
  readonly pid: number;
  readonly threadId: number;
  readonly slot: number;
  /** When it opened the store. */
  readonly since: string;
  /** A thread of the log belongs to a process that has the store open. */
  readonly role: "application" | "log";
  readonly state: "idle" | "in a transaction" | "committing" | "stopped";
  /** Its command line; undefined if the process is in another container, or of another user. */
  readonly command: string | undefined;
}

/** All that have the store open, as far as its memory can be seen here. */
export function openersOf(path: string): Opener[] {
  const identity = readIdentity(path);
  if (identity === undefined) return [];
  const { memory } = findMemory(path, identity);
  if (memory === undefined) return [];
  return openersIn(memory, new FileLockLeases(memoryFolder(identity)));
}

/** Whether a process has the store open, also one whose memory is not seen here. */
export async function isOpenSomewhere(path: string): Promise<boolean> {
  return withOpenLock(path, async () => {
    let lock: FolderLock | undefined;
    try {
      lock = await FolderLock.enter(path);
      return !(await lock.takeAlone());
    } catch (error) {
      if (error instanceof SituError && error.code === "SITU_IN_USE") return true;
      throw error;
    } finally {
      lock?.release();
    }
  });
}

/** Closes the memory and the leases that it is given. */
export function openersIn(memory: StoreMemory, leases: Leases): Opener[] {
  const { control } = memory;
  const openers: Opener[] = [];
  try {
    for (let slot = 0; slot < control.geometry.slots; slot++) {
      if (!isClaimed(control, slot)) continue;
      // Whoever gets the lease has found a dead owner; who does not, a living one.
      if (leases.tryAcquire(slot)) {
        leases.release(slot);
        continue;
      }
      const { pid, threadId } = holderOf(control, slot);
      const at = control.slotAt(slot);
      const isCommitting = phaseOf(Atomics.load(control.i32, at + STATUS)) !== IDLE;
      const isActive = Atomics.load(control.i32, at + ACTIVE) !== 0;
      const works = isCommitting ? "committing" : isActive ? "in a transaction" : "idle";
      openers.push({
        pid,
        threadId,
        slot,
        since: new Date(claimedSince(control, slot)).toISOString(),
        role: isOpener(control, slot) ? "application" : "log",
        state: isStopped(pid) ? "stopped" : works,
        command: commandOf(pid),
      });
    }
    return openers;
  } finally {
    leases.close();
    memory.close();
  }
}

/** By a signal or a debugger; false where the system does not tell. */
function isStopped(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return /^[Tt]/.test(stat.slice(stat.lastIndexOf(")") + 2));
  } catch {
    return false;
  }
}

function commandOf(pid: number): string | undefined {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").filter(Boolean);
    return words.length === 0 ? undefined : words.join(" ");
  } catch {
    return undefined;
  }
}
