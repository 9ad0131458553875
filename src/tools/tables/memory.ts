/**
 * Checks the allocator's tables and the headers of all cells (memory/blocks.ts, memory/object.ts):
 * that units belong to blocks and blocks to executors that exist, that no cell is locked by one who
 * does not commit, and that no version comes from the future. Others may be at work: what looks
 * wrong is looked at again after a while, and told only if it has stayed as it was.
 */

import { isClaimed } from "../../engine/slot.ts";
import { epochOf } from "../../engine/tid.ts";
import { BLOCK_CELLS, classOfState, SPAN } from "../../memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_WORDS,
  INCARNATION,
  LOCK,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../memory/object.ts";
import { loadAcquire } from "../../memory/ordering.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import { CONTINUED } from "../../memory/units.ts";
import { sleep } from "../../runtime/clock.ts";
import type { Problems } from "../structures/check.ts";
import { lockFault } from "../structures/locks.ts";
import type { ToolRun, Work } from "./tool-run.ts";

/** A block is made, or given back, within a millisecond or so. */
const SETTLE_MS = 20;
const ROUNDS = 5;

export interface MemoryFigures {
  /** Cells in use, with those that only users' own objects take. */
  readonly cells: number;
  readonly cellBytes: number;
  readonly blocks: number;
}

/** What looked wrong about a unit when its state was this. */
interface Suspicion {
  readonly unit: number;
  readonly state: number;
  readonly what: string;
}

export async function checkMemory(tool: ToolRun, problems: Problems): Promise<MemoryFigures> {
  const { slabs, memory } = tool.executor;
  const { control } = memory;
  const stateOf = (unit: number): number => Atomics.load(control.i32, control.unitAt(unit));
  tool.subject = "memory";
  tool.rows = 0;
  let suspicions: Suspicion[] = [];
  for (let unit = 0; unit < slabs.blocks.count; unit++) {
    const what = unitFault(tool, stateOf, unit);
    if (what !== undefined) suspicions.push({ unit, state: stateOf(unit), what });
  }
  for (let round = 0; round < ROUNDS && suspicions.length > 0; round++) {
    await sleep(SETTLE_MS);
    tool.executor.sweep();
    suspicions = suspicions.filter(
      ({ unit, state, what }) => stateOf(unit) === state && unitFault(tool, stateOf, unit) === what,
    );
  }
  for (const { unit, what } of suspicions) problems.add(unitPlace(tool, unit), what);
  return await tool.complete(lookAtCells(tool, stateOf, problems));
}

function unitPlace({ executor }: ToolRun, unit: number): string {
  const { unitsPerRegion } = executor.memory.control;
  return `unit ${unit % unitsPerRegion} of region ${Math.floor(unit / unitsPerRegion)}`;
}

/** What is wrong with the state of a unit, or undefined. */
function unitFault(
  { executor }: ToolRun,
  stateOf: (unit: number) => number,
  unit: number,
): string | undefined {
  const { control } = executor.memory;
  const state = stateOf(unit);
  if (state === 0) return undefined;
  const owner = (state & 0xff) - 1;
  if (owner >= control.geometry.slots || (owner >= 0 && !isClaimed(control, owner))) {
    // A later unit bears the name of whoever took it first.
    const isLater = (state & CONTINUED) !== 0 && ((state >>> 8) & 0xff) > 0;
    if (!isLater) return `it belongs to slot ${owner}, which nobody has`;
  }
  if ((state & CONTINUED) !== 0) {
    const distance = (state >>> 8) & 0xff;
    if (distance === 0) return "it belongs to a block that nobody makes";
    const first = stateOf(unit - distance);
    const sizeClass = classOfState(first);
    const isInside = sizeClass in BLOCK_CELLS && distance < SPAN[sizeClass];
    return isInside ? undefined : `it continues a block that does not begin ${distance} before it`;
  }
  const sizeClass = classOfState(state);
  if (!(sizeClass in BLOCK_CELLS)) return `it begins a block of class ${sizeClass}`;
  const units = SPAN[sizeClass];
  if (unit % units !== 0) return `it begins a block of ${units} units, at no multiple of them`;
  for (let distance = 1; distance < units; distance++) {
    const later = stateOf(unit + distance);
    if ((later & CONTINUED) === 0 || ((later >>> 8) & 0xff) !== distance) {
      const which = `the one ${distance} on does not belong to it`;
      return `it begins a block of ${units} units, and ${which}`;
    }
  }
  return undefined;
}

function* lookAtCells(
  tool: ToolRun,
  stateOf: (unit: number) => number,
  problems: Problems,
): Work<MemoryFigures> {
  const { slabs, memory } = tool.executor;
  let cells = 0;
  let cellBytes = 0;
  let blocks = 0;
  for (let unit = 0; unit < slabs.blocks.count; unit++) {
    const state = stateOf(unit);
    const sizeClass = classOfState(state);
    if (!(sizeClass in BLOCK_CELLS)) continue;
    blocks++;
    const region = memory.region(slabs.blocks.regionIdOf(unit));
    const first = slabs.blocks.firstWordOf(unit);
    const words = CELL_BYTES[sizeClass] / 4;
    const faults: string[] = [];
    for (let cell = 0; cell < BLOCK_CELLS[sizeClass]; cell++) {
      const at = first + cell * words;
      // A damaged table may name a block that does not fit its region; that is told already.
      if (at + words > region.i32.length) break;
      const incarnation = loadAcquire(region.i32, at + INCARNATION);
      if ((incarnation & ALLOCATED) !== 0) {
        cells++;
        cellBytes += CELL_BYTES[sizeClass];
      }
      const fault = headerFault(tool, region, at) ?? elementFault(tool, region, at, words);
      // What has been freed, or taken, while it was looked at is looked at another time.
      if (fault !== undefined && loadAcquire(region.i32, at + INCARNATION) === incarnation) {
        faults.push(`the cell at word ${at} of region ${region.id}: ${fault}`);
      }
    }
    // A block that was given back meanwhile has no such cells any more.
    if (stateOf(unit) === state) for (const fault of faults) problems.add(undefined, fault);
    tool.rows = cells;
    yield;
  }
  return { cells, cellBytes, blocks };
}

type Region = Parameters<typeof lockFault>[1];

function headerFault({ executor }: ToolRun, region: Region, at: number): string | undefined {
  const { i32 } = region;
  const lock = lockFault(executor, region, at);
  if (lock !== undefined) return lock;
  const incarnation = i32[at + INCARNATION];
  const high = loadAcquire(i32, at + VERSION_HIGH);
  const low = loadAcquire(i32, at + VERSION_LOW);
  // Somebody is at it: what was read may belong to different versions.
  if (Atomics.load(i32, at + LOCK) !== 0 || !unchanged(i32, at, high, low)) return undefined;
  if ((incarnation & ALLOCATED) !== 0 && high === 0 && low === 0) {
    return "it is in use, and has no version";
  }
  const epoch = epochOf(high, low);
  const now = executor.epochs.current();
  return epoch <= now ? undefined : `its version is of epoch ${epoch}, and it is ${now} now`;
}

/** What is wrong with the elements of a cell that is an array, or undefined. */
function elementFault(
  tool: ToolRun,
  region: Region,
  at: number,
  cellWords: number,
): string | undefined {
  const { i32 } = region;
  const array = i32[at + INCARNATION];
  // While it is locked it is being made, or freed.
  if ((array & (ALLOCATED | ARRAY)) !== (ALLOCATED | ARRAY) || i32[at + LOCK] !== 0)
    return undefined;
  const stride = HEADER_WORDS + i32[at + ELEMENT_WORDS];
  const count = i32[at + ELEMENT_COUNT];
  if (stride <= HEADER_WORDS || count < 1 || ARRAY_HEADER_WORDS + count * stride > cellWords) {
    return `it is an array of ${count} elements of ${stride} words, in ${cellWords} words`;
  }
  for (let index = 0; index < count; index++) {
    const element = at + ARRAY_HEADER_WORDS + index * stride;
    const fault = headerFault(tool, region, element);
    if (fault !== undefined) return `element ${index}: ${fault}`;
    const incarnation = i32[element + INCARNATION];
    if (incarnation === (array & ~ARRAY) || i32[element + LOCK] !== 0) continue;
    return `element ${index}: its incarnation word is ${incarnation}, that of the array ${array}`;
  }
  return undefined;
}
