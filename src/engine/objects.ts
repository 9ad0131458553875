/**
 * FaRM's objects for those who build structures of their own (§3.2): allocate, read, write, free,
 * through fat pointers that users keep and store. A pointer from outside is not to be trusted: its
 * object may have been freed, its cell used again, its block given to another class. So before a
 * header is believed, the allocator's tables must say that an object of this size begins there.
 */

import { type Address, addressOf, NO_ADDRESS, regionIdOf, wordOf } from "../memory/address.ts";
import {
  ARRAY,
  ARRAY_HEADER_BYTES,
  ARRAY_HEADER_WORDS,
  HEADER_BYTES,
  HEADER_WORDS,
  INCARNATION,
  INSTALLING,
  LOCK,
  lockMode,
  unchanged,
  VERSION_HIGH,
  VERSION_LOW,
} from "../memory/object.ts";
import { loadAcquire } from "../memory/ordering.ts";
import { isPointer, Pointer, wordsFor } from "../memory/pointer.ts";
import { sizeClassOf } from "../memory/size-classes.ts";
import type { Region } from "../memory/store-memory.ts";
import { byteLength, isBytes, isGone } from "../runtime/bytes.ts";
import { SituError } from "../runtime/errors.ts";
import { LOOKUP_ATTEMPTS, MAX_CELL_BYTES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { mayLieIn } from "./cells.ts";
import type { Executor } from "./executor.ts";
import type { Transaction } from "./transaction.ts";

function freed(pointer: Pointer): never {
  throw new SituError("SITU_FREED", `${pointer} leads to an object that was freed`);
}

function checkPointer(pointer: Pointer): void {
  if (!isPointer(pointer)) {
    throw new SituError("SITU_TYPE", `expected a Pointer, got ${show(pointer)}`);
  }
}

function refuseArray(pointer: Pointer): void {
  checkPointer(pointer);
  if (pointer.count === 0) return;
  throw new SituError("SITU_TYPE", `${pointer} is an array: use .at(i) for one of its elements`);
}

function checkSize(size: number): void {
  const most = MAX_CELL_BYTES - HEADER_BYTES;
  if (Number.isInteger(size) && size >= 1 && size <= most) return;
  const code = typeof size === "number" && size > most ? "SITU_TOO_LARGE" : "SITU_TYPE";
  throw new SituError(code, `an object has 1 to ${most} bytes, not ${show(size)}`);
}

/**
 * Whether the allocator's tables agree that the pointer's object begins at its address. The cell of
 * an array tells its incarnation as of the transaction, if there is one.
 */
function isPlausible(executor: Executor, pointer: Pointer, tx?: Transaction): boolean {
  const { blocks } = executor.slabs;
  const { address, size, count } = pointer;
  const block = blocks.blockOf(address);
  const cell = blocks.cellOf(address);
  if (cell === NO_ADDRESS) return false;
  const sizeClass = blocks.classOf(block);
  const stride = HEADER_BYTES + wordsFor(size) * 4;
  if (count > 0) {
    const wanted = sizeClassOf(ARRAY_HEADER_BYTES + count * stride);
    return cell === address && mayLieIn(wanted, sizeClass);
  }
  if (cell === address) return mayLieIn(sizeClassOf(stride), sizeClass);
  // An element of an array: the array's cell must be of the same incarnation.
  const inCell = (wordOf(address) - wordOf(cell)) * 4 - ARRAY_HEADER_BYTES;
  const region = executor.memory.regionOf(cell);
  const word = wordOf(cell);
  const cellWord =
    tx?.snapshot === undefined
      ? incarnationNow(executor, region, word)
      : incarnationAt(tx, region, word);
  return inCell >= 0 && inCell % stride === 0 && cellWord === (pointer.incarnation | ARRAY);
}

/** As of the transaction's snapshot; 0, which no object has, if there was none. */
function incarnationAt(tx: Transaction, region: Region, word: number): number {
  for (;;) {
    const entry = tx.openIfThere(region, word);
    if (entry < 0) return 0;
    if (tx.settle(entry)) return tx.incarnationOf(entry);
  }
}

function incarnationNow(executor: Executor, region: Region, word: number): number {
  if (lockMode(loadAcquire(region.i32, word + LOCK)) === INSTALLING) {
    executor.awaitReadable(region, word);
  }
  return region.i32[word + INCARNATION];
}

/** Lock-free: one consistent read of the object. */
export function readObject(executor: Executor, pointer: Pointer): Uint8Array {
  refuseArray(pointer);
  const word = wordOf(pointer.address);
  for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
    if (!isPlausible(executor, pointer)) freed(pointer);
    const region = executor.memory.regionOf(pointer.address);
    const { i32 } = region;
    if (lockMode(loadAcquire(i32, word + LOCK)) === INSTALLING) {
      executor.awaitReadable(region, word);
    }
    const high = loadAcquire(i32, word + VERSION_HIGH);
    const low = loadAcquire(i32, word + VERSION_LOW);
    const incarnation = i32[word + INCARNATION];
    const start = (word + HEADER_WORDS) * 4;
    const data = region.u8.slice(start, start + pointer.size);
    if (!unchanged(i32, word, high, low) || !isPlausible(executor, pointer)) continue;
    if (incarnation !== pointer.incarnation) freed(pointer);
    return data;
  }
  throw new SituError("SITU_CONFLICT", `${pointer} kept changing while it was read`);
}

/** Opens the object for a transaction, as part of its read set. */
function openObject(tx: Transaction, pointer: Pointer): number {
  checkPointer(pointer);
  const { executor } = tx;
  for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
    const region = isPlausible(executor, pointer, tx)
      ? executor.memory.regionOf(pointer.address)
      : unseen(tx, pointer);
    const entry = tx.openIfThere(region, wordOf(pointer.address));
    if (entry < 0) freed(pointer);
    // Nothing that is read from a snapshot is validated later; opened again, it is an old version.
    if (tx.snapshot !== undefined && !tx.settle(entry)) continue;
    tx.depend(entry);
    if (tx.incarnationOf(entry) !== pointer.incarnation) freed(pointer);
    return entry;
  }
  return tx.conflict(-1);
}

/** An array element that this transaction allocated is not in the allocator's tables yet. */
function unseen(tx: Transaction, pointer: Pointer): ReturnType<typeof tx.executor.memory.region> {
  const entry = tx.set.find(regionIdOf(pointer.address), wordOf(pointer.address));
  if (entry < 0 || tx.set.bufferOf(entry) < 0) freed(pointer);
  return tx.set.regionOf(entry);
}

export function readInTransaction(tx: Transaction, pointer: Pointer): Uint8Array {
  refuseArray(pointer);
  for (let attempt = 0; attempt < LOOKUP_ATTEMPTS; attempt++) {
    const entry = openObject(tx, pointer);
    const start = tx.at * 4;
    const data = tx.views.u8.slice(start, start + pointer.size);
    // What a transaction depends on must not change; a snapshot has the old version.
    if (tx.settle(entry)) return data;
  }
  return tx.conflict(-1);
}

/** Replaces the first `data.length` bytes of the object. */
export function writeInTransaction(tx: Transaction, pointer: Pointer, data: Uint8Array): void {
  refuseArray(pointer);
  if (!isBytes(data)) {
    throw new SituError("SITU_TYPE", `the data of an object is a Uint8Array, not ${show(data)}`);
  }
  const length = byteLength(data);
  if (length === 0 && isGone(data)) {
    throw new SituError(
      "SITU_TYPE",
      "the memory of these bytes was transferred to another thread, or has shrunk; pass a copy",
    );
  }
  if (length > pointer.size) {
    throw new SituError("SITU_TOO_LARGE", `${length} bytes do not fit ${pointer}`);
  }
  const entry = openObject(tx, pointer);
  const at = tx.writable(entry, wordsFor(pointer.size));
  tx.set.arena.u8.set(data, at * 4);
  tx.set.markDirty(entry, 0, Math.ceil(length / 4));
}

export function allocateObject(tx: Transaction, size: number, near: Pointer | undefined): Pointer {
  checkSize(size);
  const entry = whole(tx, () => tx.allocate(size, hint(near)));
  return new Pointer(tx.addressOf(entry), size, tx.incarnationOf(entry));
}

export function allocateArray(
  tx: Transaction,
  size: number,
  count: number,
  near: Pointer | undefined,
): Pointer {
  checkSize(size);
  if (!Number.isInteger(count) || count < 1) {
    throw new SituError("SITU_TYPE", `an array has one element or more, not ${show(count)}`);
  }
  const first = whole(tx, () => tx.allocateArray(count, size, hint(near)));
  const { set } = tx;
  const cell = addressOf(set.regionIdOf(first), set.wordOf(first) - ARRAY_HEADER_WORDS);
  const incarnation = tx.incarnationOf(first) | ARRAY;
  return new Pointer(cell, size, incarnation, count);
}

export function freeInTransaction(tx: Transaction, pointer: Pointer): void {
  const entry = openObject(tx, pointer);
  if (pointer.count > 0) whole(tx, () => tx.freeArray(entry, pointer.count, pointer.size));
  else if (tx.executor.slabs.blocks.cellOf(pointer.address) === pointer.address) tx.free(entry);
  else throw new SituError("SITU_TYPE", `${pointer} is an element: free its array as a whole`);
}

/** All of it, or the end of the transaction. */
function whole<T>(tx: Transaction, change: () => T): T {
  try {
    return change();
  } catch (error) {
    return tx.failHalfWay(error);
  }
}

function hint(near: Pointer | undefined): Address {
  if (near === undefined) return NO_ADDRESS;
  checkPointer(near);
  return near.address;
}
