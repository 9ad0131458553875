/** Accounts as bare objects, for tests of the engine: eight bytes of balance behind a pointer. */

import type { Executor } from "../../src/engine/executor.ts";
import {
  allocateObject,
  freeInTransaction,
  readInTransaction,
  writeInTransaction,
} from "../../src/engine/objects.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { wordOf } from "../../src/memory/address.ts";
import { LOCK, VERSION_HIGH, VERSION_LOW } from "../../src/memory/object.ts";
import type { Pointer } from "../../src/memory/pointer.ts";
import type { StoreMemory } from "../../src/memory/store-memory.ts";

const TIMEOUT_MS = 5_000;

export function bytesOf(balance: number): Uint8Array {
  return new Uint8Array(new Float64Array([balance]).buffer);
}

export function balanceOf(bytes: Uint8Array): number {
  return new Float64Array(bytes.slice().buffer)[0];
}

/** Runs a body as a transaction of the executor, with retries. */
export function transact<T>(
  executor: Executor,
  body: (tx: Transaction) => T,
  timeoutMs: number = TIMEOUT_MS,
): T {
  const tx = new Transaction(executor);
  return runSync(executor, tx, timeoutMs, body, tx);
}

export function createAccount(tx: Transaction, balance: number): Pointer {
  const pointer = allocateObject(tx, 8, undefined);
  writeInTransaction(tx, pointer, bytesOf(balance));
  return pointer;
}

export function readAccount(tx: Transaction, pointer: Pointer): number {
  return balanceOf(readInTransaction(tx, pointer));
}

export function addTo(tx: Transaction, pointer: Pointer, amount: number): void {
  writeInTransaction(tx, pointer, bytesOf(readAccount(tx, pointer) + amount));
}

export function freeAccount(tx: Transaction, pointer: Pointer): void {
  freeInTransaction(tx, pointer);
}

export function createAccounts(executor: Executor, count: number, balance: number): Pointer[] {
  return transact(executor, (tx) =>
    Array.from({ length: count }, () => createAccount(tx, balance)),
  );
}

export function sumOf(executor: Executor, accounts: readonly Pointer[]): number {
  return transact(executor, (tx) => accounts.reduce((sum, at) => sum + readAccount(tx, at), 0));
}

export function lockOf(memory: StoreMemory, pointer: Pointer): number {
  return Atomics.load(memory.regionOf(pointer.address).i32, wordOf(pointer.address) + LOCK);
}

/** The TID of an object as one number for comparing: 64 bits. */
export function versionOf(memory: StoreMemory, pointer: Pointer): bigint {
  const { i32 } = memory.regionOf(pointer.address);
  const word = wordOf(pointer.address);
  const high = BigInt(i32[word + VERSION_HIGH] >>> 0);
  return (high << 32n) | BigInt(i32[word + VERSION_LOW] >>> 0);
}
