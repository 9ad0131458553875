/**
 * From settings to an executor. Three ways lead into a store:
 *
 *   join-threads.ts      it is shared by the threads of this process only
 *   join-beside.ts       processes share it, and its memory is there and needs nothing: beside others who join
 *   join-processes.ts    anything else, by one at a time: creates its memory, rebuilds it, unseals it, …
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { sealMemory } from "../engine/seal.ts";
import { joinOrChange, withOpenLock } from "../folder/open-lock.ts";
import { type Identity, makeFolder, memoryFolder, readIdentity } from "../folder/store-files.ts";
import { bootId } from "../memory/boot.ts";
import { CONTROL_NAME } from "../memory/store-memory.ts";
import { DEFAULT_TIMEOUT_MS, SWEPT_SLOTS } from "../runtime/limits.ts";
import type { Attached } from "./attached.ts";
import { joinBeside, mayJoinBeside } from "./join-beside.ts";
import { joinProcesses } from "./join-processes.ts";
import { joinProcessThreads } from "./join-threads.ts";
import type { StoreSettings } from "./settings.ts";

/** Runs `use` with an executor, before anyone else can join a store that is being created. */
export async function attach<T>(
  settings: StoreSettings,
  use: (attached: Attached) => T,
): Promise<T> {
  const { path } = settings;
  if (settings.sharing === "threads") return guarded(joinProcessThreads(settings), use);
  makeFolder(path);
  const patienceMs = Math.max(settings.timeoutMs ?? 0, DEFAULT_TIMEOUT_MS);
  const way = await joinOrChange<{ attached: Attached } | { used: T }>(path, patienceMs, {
    mayJoin: () => mayJoinBeside(settings),
    join: async () => {
      const attached = await joinBeside(settings);
      return attached && { attached };
    },
    change: async () => {
      const attached = await joinProcesses(settings);
      // What was made is for others only after `use`; what was there is theirs as soon as this one has a slot.
      if (isMade(attached)) return { used: guarded(attached, use) };
      share(attached);
      return { attached };
    },
  });
  return "used" in way ? way.used : guarded(way.attached, use);
}

function isMade({ fresh, recovered }: Attached): boolean {
  return fresh || recovered !== undefined;
}

function guarded<T>(attached: Attached, use: (attached: Attached) => T): T {
  try {
    // Some of the dead, if there are many executors: whoever meets another one recovers it, and so do the
    // sweeps in the background. A look at each would make joining dearer with every process that has joined.
    attached.executor.sweepSome(SWEPT_SLOTS);
    const used = use(attached);
    // What was made is published: others may join it.
    attached.lock?.share();
    return used;
  } catch (error) {
    attached.executor.close();
    throw error;
  }
}

/** Before open.lock is given back: whoever takes it next must find the folder's lock shared. */
function share({ lock, executor }: Attached): void {
  try {
    lock?.share();
  } catch (error) {
    executor.close();
    throw error;
  }
}

/** Leaves checksums of a store that nobody has open any more, for whoever opens it next. */
export async function sealIfLast(path: string, identity: Identity): Promise<void> {
  await withOpenLock(path, () => {
    // Destroyed meanwhile, or rebuilt: then that memory is somebody else's to seal.
    if (readIdentity(path)?.memoryId !== identity.memoryId) return;
    const folder = memoryFolder(identity);
    if (existsSync(join(folder, CONTROL_NAME))) sealMemory(folder, bootId());
  });
}
