/** The cells of a transaction's new objects: taken from the slabs, and given back if it fails. */

import { type Address, addressOf, NO_ADDRESS, regionIdOf, wordOf } from "../memory/address.ts";
import { HEADER_BYTES } from "../memory/object.ts";
import { CELL_BYTES, sizeClassOf } from "../memory/size-classes.ts";
import type { Slabs } from "../memory/slabs.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_CELL_BYTES, MAX_CELL_EXCESS } from "../runtime/limits.ts";
import { type AccessSet, CELL, ENTRY_WORDS, KIND, NEW, REGION_ID, WORD } from "./access-set.ts";

function cellBytes(dataBytes: number): number {
  return HEADER_BYTES + Math.ceil(dataBytes / 8) * 8;
}

/** The class of an object with so many bytes of data. */
export function classFor(dataBytes: number): number {
  const sizeClass = sizeClassOf(cellBytes(dataBytes));
  if (sizeClass >= 0) return sizeClass;
  throw new SituError(
    "SITU_TOO_LARGE",
    `an object of ${dataBytes} bytes is larger than ${MAX_CELL_BYTES - HEADER_BYTES}`,
  );
}

/** Whether an object of a class may lie in a cell of another one. */
export function mayLieIn(sizeClass: number, cellClass: number): boolean {
  const [wanted, found] = [CELL_BYTES[sizeClass], CELL_BYTES[cellClass]];
  return found >= wanted && found <= MAX_CELL_EXCESS * wanted;
}

/** Data bytes that an object allocated for `bytes` can hold without moving to another class. */
export function dataCapacity(bytes: number): number {
  return CELL_BYTES[sizeClassOf(cellBytes(bytes))] - HEADER_BYTES;
}

/** A free cell, but not one whose former object the transaction has seen: it has an entry. */
export function unseenCell(
  set: AccessSet,
  slabs: Slabs,
  sizeClass: number,
  near: Address,
): Address {
  const seen: Address[] = [];
  for (;;) {
    const cell = slabs.allocate(sizeClass, near);
    if (cell === NO_ADDRESS || set.find(regionIdOf(cell), wordOf(cell)) < 0) {
      for (const each of seen) slabs.returned(each);
      return cell;
    }
    seen.push(cell);
  }
}

/** The cells of an attempt that did not commit. */
export function returnCells(set: AccessSet, slabs: Slabs): void {
  for (let entry = 0; entry < set.end; entry += ENTRY_WORDS) {
    if ((set.words[entry + KIND] & (NEW | CELL)) !== (NEW | CELL)) continue;
    slabs.returned(addressOf(set.words[entry + REGION_ID], set.words[entry + WORD]));
  }
}
