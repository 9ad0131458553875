/**
 * Transactions that span machines are *prepared* at each of them: executed, locked and validated, and
 * then held until a message says how they ended. An executor holds many of them at once, each in a
 * `Transaction` of its own; `Committer.prepare`, `commitPrepared` and `release` are the steps.
 *
 * Locks are taken as INSTALLING at once: whoever has seen one part of a transaction that spans
 * machines must not then read the old state of another part (docs/decisions/0014). So nobody who
 * could be the holder himself may wait for such a lock: `executor.isPatient` is false in all threads
 * that prepare.
 *
 * No journal record names these locks while they are held: a record is written when the outcome is
 * known. Should the holder die, its slot's word `prepares` tells whoever recovers it to look through
 * all of memory for locks of the slot. That takes a second per gigabyte and happens once per death of
 * a node, where a record for each lock would cost every transaction. What was prepared is then
 * aborted here; what other machines decided, they know.
 */

import { wordOf } from "../memory/address.ts";
import { BLOCK_CELLS, BlockTable } from "../memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  ELEMENT_COUNT,
  ELEMENT_WORDS,
  HEADER_WORDS,
  INCARNATION,
  LOCK,
  lockOwner,
  unchanged,
} from "../memory/object.ts";
import { CELL_BYTES } from "../memory/size-classes.ts";
import type { StoreMemory } from "../memory/store-memory.ts";
import {
  KIND,
  LOCKED,
  READ,
  VERSION_HIGH as SEEN_HIGH,
  INCARNATION as SEEN_INCARNATION,
  VERSION_LOW as SEEN_LOW,
} from "./access-set.ts";
import { PREPARES, type SlotId } from "./slot.ts";
import type { Transaction } from "./transaction.ts";

/**
 * Makes a version that was read elsewhere, by another, part of a transaction's read set: from a
 * message. False if it is known by now that the object has another one.
 */
export function dependOn(
  { set, executor }: Transaction,
  regionId: number,
  word: number,
  versionHigh: number,
  versionLow: number,
): boolean {
  let entry = set.find(regionId, word);
  if (entry < 0) {
    entry = set.add(executor.memory.region(regionId), word);
    set.words[entry + SEEN_HIGH] = versionHigh;
    set.words[entry + SEEN_LOW] = versionLow;
    set.words[entry + SEEN_INCARNATION] = set.regionOf(entry).i32[word + INCARNATION];
  } else if (
    set.words[entry + SEEN_HIGH] !== versionHigh ||
    set.words[entry + SEEN_LOW] !== versionLow
  ) {
    return false;
  }
  set.words[entry + KIND] |= READ;
  // What the transaction has locked itself nobody changes.
  if ((set.words[entry + KIND] & LOCKED) !== 0) return true;
  return unchanged(set.regionOf(entry).i32, word, versionHigh, versionLow);
}

/**
 * Lets go of all locks that a dead slot held between its commits. Blocks may be given back and made anew
 * while they are looked at, and what looks like a lock then is not one: the class is looked at again. A
 * block with a cell that is locked indeed is not empty, and stays what it is.
 */
export function releasePrepared(memory: StoreMemory, slot: SlotId): void {
  const { control } = memory;
  const at = control.slotAt(slot) + PREPARES;
  if (Atomics.load(control.i32, at) === 0) return;
  const blocks = new BlockTable(memory);
  for (let block = 0; block < blocks.count; block++) {
    const sizeClass = blocks.classOf(block);
    if (sizeClass >= 0) releaseIn(memory, blocks, block, sizeClass, slot);
  }
  Atomics.store(control.i32, at, 0);
}

function releaseIn(
  memory: StoreMemory,
  blocks: BlockTable,
  block: number,
  sizeClass: number,
  slot: SlotId,
): void {
  const regionId = blocks.regionIdOf(block);
  if (!memory.hasRegion(regionId)) return;
  const { i32 } = memory.region(regionId);
  const release = (word: number): void => {
    const lock = Atomics.load(i32, word + LOCK);
    if (lock === 0 || lockOwner(lock) !== slot || blocks.classOf(block) !== sizeClass) return;
    Atomics.store(i32, word + LOCK, 0);
  };
  for (let index = 0; index < BLOCK_CELLS[sizeClass]; index++) {
    const word = wordOf(blocks.cellAt(block, index, sizeClass));
    release(word);
    if ((i32[word + INCARNATION] & (ARRAY | ALLOCATED)) !== (ARRAY | ALLOCATED)) continue;
    const stride = HEADER_WORDS + i32[word + ELEMENT_WORDS];
    const end = word + CELL_BYTES[sizeClass] / 4;
    let element = word + ARRAY_HEADER_WORDS;
    for (let left = i32[word + ELEMENT_COUNT]; left > 0 && stride > 0; left--) {
      if (element + stride > end) break;
      release(element);
      element += stride;
    }
  }
}
