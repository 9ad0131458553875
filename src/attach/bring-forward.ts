/**
 * Memory of an earlier layout, brought forward. Layout 5 (Situ 0.1) had a control segment without room to
 * grow; what lies in regions is the same. So regions stay as they are, and the control segment is replaced:
 *
 *   1. The store is closed: no slot is claimed, every commit has ended and, if there is a log, is in it.
 *      Otherwise it is refused: what a killed process has left behind can be completed only by the
 *      version that wrote it.
 *   2. With a log: nothing else is needed. Memory is made anew from the log, as after a reboot.
 *   3. Without one: a new control segment is written beside the old one, with what must stay: the epoch, the
 *      catalogue, regions and blocks. Then it is renamed over the old one.
 *   4. Journals and old versions, which nobody needs, are removed.
 *
 * Whoever dies before the rename leaves the old memory, and after it the new one. Everything here is done by
 * one who has the store's folder to itself.
 */

import { readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { sizeOfRebuilt } from "../folder/memory-size.ts";
import { writeOwner } from "../folder/owner-file.ts";
import { explained, type Identity, memoryFolder, writeIdentity } from "../folder/store-files.ts";
import { BlockTable } from "../memory/blocks.ts";
import { bootId } from "../memory/boot.ts";
import {
  CATALOGUE_REGION,
  CATALOGUE_WORD,
  type Control,
  controlBytes,
  EPOCH_HIGH,
  EPOCH_LOW,
  type Geometry,
  LIMIT_RISES,
  layoutOf,
  SCHEMA_GENERATION,
  UNIT_ENTRY_WORDS,
} from "../memory/control.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { CONTROL_NAME, StoreMemory } from "../memory/store-memory.ts";
import { SituError } from "../runtime/errors.ts";
import { UNIT_BYTES } from "../runtime/limits.ts";
import type { StoreSettings } from "./settings.ts";

const READABLE_LAYOUT = 5;
const NEW_CONTROL = "control.new";
const NEEDLESS = /^(journal-|versions-|overflow-)/;

/** Layout 5, as far as it is read here: words of the control segment. */
const SLOTS_AT = 1024;
const SLOT_WORDS = 64;
const STATUS = 0;
const HEAD = 3;
const CLAIMED = 16;
const TAIL = 24;
const WORD_LOGGED = 11;
const READY = 1;
const OWNER_MASK = 0xff;

class OldControl {
  readonly i32: Int32Array;
  readonly geometry: Geometry;

  constructor(i32: Int32Array) {
    this.i32 = i32;
    const [slots, journalBytes, regionBytes, regions, ringBytes, chunkBytes, chunks] =
      i32.subarray(4);
    this.geometry = { slots, journalBytes, regionBytes, regions, ringBytes, chunkBytes, chunks };
  }

  get isLogged(): boolean {
    return this.i32[WORD_LOGGED] !== 0;
  }

  /** Whether no slot is claimed, every commit has ended, and all of them are in the log. */
  get isLeft(): boolean {
    const { i32 } = this;
    for (let slot = 0; slot < this.geometry.slots; slot++) {
      const at = SLOTS_AT + slot * SLOT_WORDS;
      if (i32[at + CLAIMED] !== 0 || i32[at + STATUS] !== 0) return false;
      if (this.isLogged && i32[at + HEAD] !== i32[at + TAIL]) return false;
    }
    return true;
  }

  isReady(region: number): boolean {
    return this.i32[this.#regionsAt + region] === READY;
  }

  unitAt(unit: number): number {
    const { slots, regions } = this.geometry;
    return this.#regionsAt + regions + slots + unit * UNIT_ENTRY_WORDS;
  }

  get #regionsAt(): number {
    return SLOTS_AT + this.geometry.slots * SLOT_WORDS;
  }
}

/**
 * What to do with memory that this version cannot join because of its layout: "joined" says that it can be
 * now, "rebuild" that it is to be made anew from the log. Refuses what cannot be brought forward.
 */
export function bringForward(
  settings: StoreSettings,
  identity: Identity,
  problem: SituError,
): "joined" | "rebuild" {
  const folder = memoryFolder(identity);
  const bytes = explained(folder, () => readFileSync(join(folder, CONTROL_NAME)));
  const i32 = new Int32Array(Uint8Array.from(bytes).buffer);
  if (layoutOf(i32) !== READABLE_LAYOUT) throw problem;
  const old = new OldControl(i32);
  if (!old.isLeft) throw leftOpen(settings.path, folder, old.isLogged, problem);
  if (old.isLogged) return "rebuild";
  explained(folder, () => replaceControl(settings, identity, old));
  return "joined";
}

function leftOpen(path: string, folder: string, isLogged: boolean, problem: SituError): SituError {
  const other = isLogged
    ? `. Or remove ${folder}: the store is then rebuilt from its log, without what was committed in the last ` +
      `moments before the process was killed`
    : "";
  return new SituError(
    "SITU_LAYOUT",
    `the store at ${path} was left behind by a killed process of an earlier version of Situ. Open and close it ` +
      `once with that version, then open it with this one${other}`,
    { cause: problem },
  );
}

function replaceControl(settings: StoreSettings, known: Identity, old: OldControl): void {
  const folder = memoryFolder(known);
  const segments = new MappedSegments(folder);
  const size = sizeOfRebuilt(settings.memoryBytes, known.memoryBytes, old.geometry, undefined);
  const { geometry, rises } = size;
  // All regions that exist stay, however small the store is to be from now on.
  const regionLimit = Math.max(size.regionLimit, old.geometry.regions);
  const segment = segments.create(
    NEW_CONTROL,
    controlBytes(geometry),
    controlBytes(geometry, regionLimit),
  );
  const memory = new StoreMemory(segments, segment, geometry);
  try {
    memory.control.format(bootId(), known.memoryId, regionLimit);
    if (rises) Atomics.store(memory.control.i32, LIMIT_RISES, 1);
    copyState(old, memory.control);
    freeOwners(memory, old);
    memory.control.publish();
  } finally {
    memory.close();
  }
  writeIdentity(settings.path, {
    ...known,
    memoryBytes: rises ? "auto" : regionLimit * geometry.regionBytes,
  });
  writeOwner(folder, settings.path);
  renameSync(join(folder, NEW_CONTROL), join(folder, CONTROL_NAME));
  for (const name of segments.list()) {
    if (NEEDLESS.test(name)) rmSync(join(folder, name), { force: true });
  }
}

function copyState(old: OldControl, control: Control): void {
  const { i32, unitsPerRegion } = control;
  for (const at of [CATALOGUE_REGION, CATALOGUE_WORD, SCHEMA_GENERATION]) i32[at] = old.i32[at];
  // The next epoch: no TID is used again.
  i32[EPOCH_LOW] = old.i32[EPOCH_LOW] + 1;
  i32[EPOCH_HIGH] = old.i32[EPOCH_HIGH] + (i32[EPOCH_LOW] === 0 ? 1 : 0);
  for (let region = 0; region < old.geometry.regions; region++) {
    if (!old.isReady(region)) continue;
    i32[control.regionStateAt(region)] = READY;
    for (let unit = region * unitsPerRegion; unit < (region + 1) * unitsPerRegion; unit++) {
      const from = old.unitAt(unit);
      i32.set(old.i32.subarray(from, from + UNIT_ENTRY_WORDS), control.unitAt(unit));
    }
  }
}

/** Blocks that a slot still prefers become everyone's, as when their owner dies. */
function freeOwners(memory: StoreMemory, old: OldControl): void {
  const owners = new Set<number>();
  const units = old.geometry.regions * (old.geometry.regionBytes / UNIT_BYTES);
  for (let unit = 0; unit < units; unit++) owners.add(old.i32[old.unitAt(unit)] & OWNER_MASK);
  const blocks = new BlockTable(memory);
  for (const owner of owners) if (owner !== 0) blocks.orphan(owner - 1);
}
