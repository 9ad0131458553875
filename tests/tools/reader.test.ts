/** What a check reads through a snapshot stays what it was as long as the snapshot does, and no longer. */

import { afterEach, beforeEach, expect, test } from "vitest";
import { classFor } from "../../src/engine/cells.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { readAtSnapshot } from "../../src/engine/run.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { type Address, regionIdOf, wordOf } from "../../src/memory/address.ts";
import { INCARNATION } from "../../src/memory/object.ts";
import { Views } from "../../src/memory/views.ts";
import { Problems } from "../../src/tools/structures/check.ts";
import { ObjectReader } from "../../src/tools/structures/reader.ts";
import { SeenCells } from "../../src/tools/structures/seen-cells.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { EngineStore } from "../helpers/engine-store.ts";

const BYTES = 12_000;
const OTHER_BYTES = 9_000;
const VALUE = 77;

let store: EngineStore;
let executor: Executor;

beforeEach(() => {
  store = new EngineStore();
  executor = store.open();
});
afterEach(() => store.dispose());

function put(bytes: number): Address {
  return transact(executor, (tx) => {
    const entry = tx.allocate(bytes);
    tx.set.arena.i32[tx.writable(entry, bytes / 4)] = VALUE;
    return tx.addressOf(entry);
  });
}

function free(cell: Address): void {
  transact(executor, (tx) => {
    const entry = tx.open(executor.memory.regionOf(cell), wordOf(cell));
    tx.depend(entry);
    tx.free(entry);
  });
}

/** Reads what a pointer that was found through a snapshot leads to. */
function readerOf(snapshot: Snapshot, cell: Address) {
  const tx = new Transaction(executor);
  const problems = new Problems(10, "the store");
  const seen = new SeenCells(executor.slabs.blocks);
  const reader = new ObjectReader(
    executor,
    (step, argument) => readAtSnapshot(executor, tx, snapshot, step, argument),
    seen,
    seen.addOwner("the test"),
    problems,
  );
  const [regionId, word] = [regionIdOf(cell), wordOf(cell)];
  const incarnation = executor.memory.region(regionId).i32[word + INCARNATION];
  const expected = { sizeClass: classFor(BYTES), incarnation };
  const into = new Views(new ArrayBuffer(BYTES));
  return {
    problems,
    into,
    read: () => reader.readCell("here", regionId, word, expected, BYTES / 4, into),
  };
}

test("the only object of a block is seen after it was freed; the block waits for the snapshot", () => {
  const cell = put(BYTES);
  const snapshot = Snapshot.take(executor, 60_000, 1_000);
  const { read, into, problems } = readerOf(snapshot, cell);
  free(cell);
  expect(executor.slabs.releaseEmptyBlocks()).toBe(0);
  for (let i = 0; i < 20; i++) put(OTHER_BYTES);
  expect(read()).toBe(true);
  expect(into.i32[0]).toBe(VALUE);
  expect(problems.list).toEqual([]);
  snapshot.release();
  expect(executor.slabs.releaseEmptyBlocks()).toBe(1);
});

test("what a released snapshot led to is not told as a problem", () => {
  const cell = put(BYTES);
  const snapshot = Snapshot.take(executor, 60_000, 1_000);
  const { read, problems } = readerOf(snapshot, cell);
  free(cell);
  snapshot.release();
  expect(executor.slabs.releaseEmptyBlocks()).toBe(1);
  const other = put(OTHER_BYTES);
  expect(executor.slabs.blocks.blockOf(other)).toBe(executor.slabs.blocks.blockOf(cell));
  expect(read).toThrowError(expect.objectContaining({ code: "SITU_SNAPSHOT_TOO_OLD" }));
  expect(problems.count).toBe(0);
});
