/**
 * Changing the size of a store that others may be using. What the size is stands in two places: in store.json,
 * which decides, and as the limit in the control segment, which those who allocate go by. Both are changed
 * under open.lock, by one at a time:
 *
 *   larger    1. the part of the control segment that describes the new regions is backed by memory
 *             2. store.json names the new size            (from here on it is the new one)
 *             3. the limit is raised: one store to a word that everybody reads who runs short of memory
 *   smaller   1. the limit is lowered and the regions beyond it are given back (memory/shrink.ts)
 *             2. store.json names the new size            (from here on it is the new one)
 *
 * A death leaves a limit that may differ from store.json. Whoever opens the store next makes it follow
 * (`followSize`), also under open.lock, before it uses the store. So it is the old size or the new one. Others who
 * have it open meanwhile go by the limit as they find it, which is at most the larger of the two.
 *
 * Nobody waits for a resize: those who commit read no word that they did not read before.
 */

import type { Executor } from "../engine/executor.ts";
import { refuseIfNoRoom } from "../folder/memory-creation.ts";
import type { MemoryBytes } from "../folder/memory-size.ts";
import { withOpenLock } from "../folder/open-lock.ts";
import { readOwner, writeOwner } from "../folder/owner-file.ts";
import { type Identity, memoryFolder, readIdentity, writeIdentity } from "../folder/store-files.ts";
import { LIMIT_RISES, REGION_LIMIT } from "../memory/control.ts";
import { Shrinking } from "../memory/shrink.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import { nowMs, sleep } from "../runtime/clock.ts";
import { ResizeError, SituError } from "../runtime/errors.ts";
import { SHRINK_PATIENCE_MS } from "../runtime/limits.ts";
import { shownSize } from "../runtime/units.ts";
import type { StoreSettings } from "./settings.ts";

const LOOK_MS = 5;

/** Makes the store larger, or smaller if what it holds allows; returns the size that it has then. */
export async function resizeStore(
  path: string | undefined,
  executor: Executor,
  wanted: MemoryBytes,
): Promise<number> {
  if (path === undefined) return resizeInThreads(executor, wanted);
  return withOpenLock(path, async () => {
    const identity = readIdentity(path);
    if (identity === undefined || identity.memoryId !== executor.memory.control.memoryId) {
      throw new SituError(
        "SITU_MEMORY_LOST",
        `the store at ${path} is not the one that is open here: its folder was removed or replaced`,
      );
    }
    await change(path, identity, executor, wanted);
    return sizeOf(executor);
  });
}

function sizeOf({ memory: { control } }: Executor): number {
  return control.regionLimit * control.geometry.regionBytes;
}

async function change(
  path: string,
  identity: Identity,
  executor: Executor,
  wanted: MemoryBytes,
): Promise<void> {
  const { control } = executor.memory;
  if (wanted === "auto") {
    writeIdentity(path, { ...identity, memoryBytes: "auto" });
    Atomics.store(control.i32, LIMIT_RISES, 1);
    return;
  }
  // Before the limit is looked at: see memory/automatic-limit.ts.
  Atomics.store(control.i32, LIMIT_RISES, 0);
  try {
    const regions = regionsFor(executor, wanted);
    if (regions < control.regionLimit) await shrink(path, identity, executor, regions);
    else grow(path, identity, executor, regions);
  } catch (error) {
    if (identity.memoryBytes === "auto") Atomics.store(control.i32, LIMIT_RISES, 1);
    throw error;
  }
}

/** Sizes are whole regions, whose size was chosen when the store was created. */
function regionsFor({ memory }: { readonly memory: StoreMemory }, bytes: number): number {
  const { regionBytes, regions: room } = memory.control.geometry;
  const regions = Math.max(1, Math.ceil(bytes / regionBytes));
  if (regions <= room) return regions;
  throw new SituError(
    "SITU_CONFIG",
    `the store was created with regions of ${shownSize(regionBytes)}, so it can grow to at most ` +
      `${shownSize(room * regionBytes)}, not to ${shownSize(bytes)}: to make it larger, back it up and load ` +
      `it into a store that is created with a larger memoryBytes`,
  );
}

function grow(path: string, identity: Identity, executor: Executor, regions: number): Identity {
  const { memory } = executor;
  const { regionBytes } = memory.control.geometry;
  const more = Math.max(0, regions - memory.regionCount);
  refuseIfNoRoom(identity.memoryDir, more * regionBytes);
  memory.reserveUnits(regions);
  const grown = recorded(path, identity, regions * regionBytes);
  memory.raiseLimit(regions);
  return grown;
}

async function shrink(
  path: string,
  identity: Identity,
  executor: Executor,
  regions: number,
): Promise<void> {
  const shrinking = new Shrinking(executor.slabs, executor.slot, executor, regions);
  await vacate(shrinking, executor, regions);
  try {
    recorded(path, identity, regions * executor.memory.control.geometry.regionBytes);
  } catch (error) {
    shrinking.undo();
    throw error;
  }
}

/** Gives the regions beyond the new size back, or refuses and leaves everything as it was. */
async function vacate(shrinking: Shrinking, executor: Executor, regions: number): Promise<void> {
  const endMs = nowMs() + SHRINK_PATIENCE_MS;
  for (;;) {
    const needed = shrinking.regionsInUse();
    if (needed <= regions && shrinking.announce()) break;
    if (nowMs() > endMs) throw tooSmall(executor, regions, Math.max(needed, regions + 1));
    await sleep(LOOK_MS);
  }
  while (!shrinking.isWaitedOut) {
    if (nowMs() > endMs) {
      shrinking.undo();
      throw tooSmall(executor, regions, executor.memory.regionCount);
    }
    await sleep(LOOK_MS);
  }
  shrinking.finish();
}

function tooSmall({ memory }: Executor, regions: number, needed: number): ResizeError {
  const { regionBytes } = memory.control.geometry;
  return new ResizeError(
    `the store cannot be as small as ${shownSize(regions * regionBytes)}: the smallest size ` +
      `possible now is ${shownSize(needed * regionBytes)} (${needed * regionBytes} bytes). Rows stay where ` +
      `they are, so a few of them can keep a whole region in use; to pack them, dump the store ` +
      `(situ dump) and load it into a new one (situ load)`,
    needed * regionBytes,
  );
}

function recorded(path: string, identity: Identity, memoryBytes: number): Identity {
  if (identity.memoryBytes === memoryBytes) return identity;
  return writeIdentity(path, { ...identity, memoryBytes });
}

/**
 * For one who has joined a store, under open.lock: ends a resize that somebody died over, and grows the store if
 * this opener asks for more than it has. One who asks for less gets the store as it is.
 */
export function followSize(
  { path, memoryBytes: wanted }: StoreSettings,
  identity: Identity,
  executor: Executor,
): Identity {
  const { memory } = executor;
  const { control } = memory;
  memory.path = path;
  followFolder(path, identity);
  const { memoryBytes: kept = sizeOf(executor) } = identity;
  Atomics.store(control.i32, LIMIT_RISES, kept === "auto" ? 1 : 0);
  if (typeof kept === "number") followLimit(executor, regionsFor(executor, kept));
  if (wanted === undefined || wanted === kept) return identity;
  if (wanted === "auto") {
    const automatic = writeIdentity(path, { ...identity, memoryBytes: "auto" });
    Atomics.store(control.i32, LIMIT_RISES, 1);
    return automatic;
  }
  const regions = regionsFor(executor, wanted);
  // In an automatic store it is how large it may be at once; it goes on growing by itself.
  if (kept === "auto") memory.raiseLimit(Math.max(regions, control.regionLimit));
  return kept === "auto" || regions <= control.regionLimit
    ? identity
    : grow(path, identity, executor, regions);
}

/** Whether `followSize` has nothing to do for one who joins. */
export function isSizeAsWanted(
  { path, memoryBytes: wanted }: StoreSettings,
  identity: Identity,
  memory: StoreMemory,
): boolean {
  const { memoryBytes: kept } = identity;
  const { control } = memory;
  if (kept === undefined || readOwner(memoryFolder(identity))?.path !== path) return false;
  const rises = Atomics.load(control.i32, LIMIT_RISES) === 1;
  if (rises !== (kept === "auto")) return false;
  if (kept !== "auto" && regionsFor({ memory }, kept) !== control.regionLimit) return false;
  if (wanted === undefined || wanted === kept) return true;
  return wanted !== "auto" && regionsFor({ memory }, wanted) <= control.regionLimit;
}

/** The limit as store.json has it, or as near as there is memory, and rows, for. */
function followLimit(executor: Executor, regions: number): void {
  const { memory } = executor;
  const { i32, regionLimit } = memory.control;
  if (regions === regionLimit) return;
  if (regions < regionLimit) {
    // Its regions stay until somebody resizes the store again; they were not given back.
    Atomics.store(i32, REGION_LIMIT, Math.max(regions, memory.regionCount));
    return;
  }
  try {
    memory.raiseLimit(regions);
  } catch (error) {
    if (!(error instanceof SituError) || error.code !== "SITU_NO_MEMORY") throw error;
    // There is no memory for it now. The store works as it is, and the next opener tries again.
  }
}

/** A folder that was renamed: the memory names it by its new path. */
function followFolder(path: string, identity: Identity): void {
  const folder = memoryFolder(identity);
  if (readOwner(folder)?.path !== path) writeOwner(folder, path);
}

function resizeInThreads(executor: Executor, wanted: MemoryBytes): number {
  const { control } = executor.memory;
  const regions = wanted === "auto" ? Number.POSITIVE_INFINITY : regionsIn(executor, wanted);
  if (regions > control.geometry.regions) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `a store that only the threads of one process share cannot grow beyond the memoryBytes that it ` +
        `was created with (${shownSize(control.geometry.regions * control.geometry.regionBytes)}): all ` +
        `of its memory exists from the start`,
    );
  }
  const needed = Math.max(executor.memory.regionCount, executor.slabs.blocks.regionsInUse());
  if (regions < needed) throw tooSmall(executor, regions, needed);
  Atomics.store(control.i32, REGION_LIMIT, regions);
  return sizeOf(executor);
}

function regionsIn({ memory }: Executor, bytes: number): number {
  return Math.max(1, Math.ceil(bytes / memory.control.geometry.regionBytes));
}
