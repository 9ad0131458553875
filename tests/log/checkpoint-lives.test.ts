/** Which life of a piece of memory a checkpoint has: records about earlier ones must not meet it. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import {
  ENTRY_SHAPE,
  ENTRY_SINCE_F64,
  ENTRY_UNIT,
  ENTRY_WORDS,
} from "../../src/log/checkpoint/format.ts";
import { Replay } from "../../src/log/recovery/apply.ts";
import { wordOf } from "../../src/memory/address.ts";
import { BlockTable, UnitLook } from "../../src/memory/blocks.ts";
import { EPOCH_LOW } from "../../src/memory/control.ts";
import { VERSION_LOW } from "../../src/memory/object.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import { differences, NARROW, RecoveryStore } from "../helpers/recovery-store.ts";

const WRAP = 2 ** 32;

describe("the lives of memory", () => {
  let store: RecoveryStore;
  let executor: Executor;
  let executorOfLog: Executor;

  beforeEach(() => {
    store = new RecoveryStore();
    executor = store.store.open();
    executorOfLog = store.store.open();
  });

  afterEach(() => store.dispose());

  function setEpoch(epoch: number): void {
    Atomics.store(store.store.memory.control.i64, EPOCH_LOW / 2, BigInt(epoch));
  }

  /** An object in a block of its own, and the block. */
  function make(bytes: number): { word: number; block: number } {
    const word = transact(executor, (tx) => tx.set.wordOf(tx.allocate(bytes)));
    return { word, block: Math.floor(word / 16_384) };
  }

  function giveBack(word: number): void {
    transact(executor, (tx) => tx.free(tx.open(executor.memory.region(0), word)));
    expect(executor.slabs.releaseEmptyBlocks()).toBe(1);
  }

  /** Since when the checkpoint says that each unit is what it is; and its class, or free. */
  function sinces(name: string): Map<number, { since: number; isFree: boolean }> {
    const { words, f64, entries } = store.openCheckpoint(name);
    const found = new Map<number, { since: number; isFree: boolean }>();
    for (let at = 0; at < entries * ENTRY_WORDS; at += ENTRY_WORDS) {
      const isFree = words[at + ENTRY_SHAPE] === 0;
      found.set(words[at + ENTRY_UNIT], { since: f64[at / 2 + ENTRY_SINCE_F64], isFree });
    }
    return found;
  }

  test("a block bears the epoch in which it was made, in all its units", () => {
    setEpoch(WRAP + 77);
    const { block } = make(14_000);
    const look = new UnitLook();
    const table = new BlockTable(store.store.memory);
    for (const unit of [block, block + 1]) {
      table.look(unit, look);
      expect(look.formatEpoch, `unit ${unit}`).toBe(77);
    }
    expect([look.sizeClass, look.block]).toEqual([-1, block]);
  });

  test("what was committed in an earlier life has an earlier epoch", () => {
    const look = new UnitLook();
    const table = new BlockTable(store.store.memory);
    let { word, block } = make(40);
    for (let life = 1; life <= 20; life++) {
      giveBack(word);
      const freedIn = store.store.memory.region(0).i32[word + VERSION_LOW] >>> 20;
      const next = make(40 + 100 * (life % 3));
      expect(next.block, `life ${life}`).toBe(block);
      table.look(block, look);
      expect(look.formatEpoch, `life ${life}`).toBeGreaterThan(freedIn);
      ({ word, block } = next);
    }
  });

  test("memory whose incarnations have come round is not taken for memory never used", () => {
    const { memory } = store.store;
    memory.createRegion(0, executorOfLog.slot);
    const table = new BlockTable(memory);
    const block = table.take(0, executorOfLog.slot);
    memory.region(0).i32.fill(7, 0, 1_000);
    table.close(block, 0, executorOfLog.slot);
    table.release(block, 0, executorOfLog.slot, 0xffff_fffc);
    expect(table.take(5, executorOfLog.slot)).toBe(block);
    const word = wordOf(table.cellAt(block, 1, 5));
    expect([...memory.region(0).i32.slice(word, word + 5)]).toEqual([0, 0, 0, 4, 0]);
  });

  test.each([1_000, WRAP - 3, WRAP + 2 ** 31])("from epoch %i on", (epoch) => {
    setEpoch(epoch);
    const old = make(40);
    const freed = make(200);
    const changed = make(300);
    const writer = store.begin(executorOfLog, false);
    giveBack(freed.word);
    giveBack(changed.word);
    executor.epochs.advance();
    const madeIn = executor.epochs.current();
    const made = make(14_000);
    make(400);
    executor.epochs.advance();
    const seenIn = executor.epochs.current();
    while (writer.step());
    const found = sinces(store.publish(executorOfLog, writer));
    expect(found.get(old.block)).toEqual({ since: 0, isFree: false });
    expect(found.get(made.block)).toEqual({ since: madeIn, isFree: false });
    const reused = [freed.block, changed.block].map((block) => found.get(block)!);
    expect(reused).toContainEqual({ since: seenIn, isFree: true });
    expect(reused).toContainEqual({ since: madeIn, isFree: false });
  });

  test("a block is not taken for a new one when its epoch's lower half comes round again", () => {
    setEpoch(1_000);
    const ancient = make(40);
    setEpoch(WRAP + 995);
    const writer = store.begin(executorOfLog, false);
    while (executor.epochs.current() < WRAP + 1_010) executor.epochs.advance();
    const fresh = make(200);
    while (writer.step());
    const found = sinces(store.publish(executorOfLog, writer));
    expect(found.get(ancient.block)).toEqual({ since: 0, isFree: false });
    expect(found.get(fresh.block)).toEqual({ since: WRAP + 1_010, isFree: false });
  });

  test("a delta has all of a block that was made since", () => {
    const { word, block } = make(40);
    store.flush(executorOfLog);
    store.checkpoint(executorOfLog, false);
    giveBack(word);
    const made = make(200);
    expect(made.block).toBe(block);
    store.flush(executorOfLog);
    const recovered = store.recover(store.checkpoint(executorOfLog, true));
    try {
      const { memory } = store.store;
      expect(differences(memory, recovered.memory, () => 50)).toEqual([]);
    } finally {
      recovered.dispose();
    }
  });

  test("a delta is refused where it does not find what it builds on", () => {
    const { word } = make(40);
    store.flush(executorOfLog);
    store.checkpoint(executorOfLog, false);
    transact(executor, (tx) => {
      const entry = tx.open(executor.memory.region(0), word);
      tx.writable(entry, 10);
      tx.set.markDirty(entry, 0, 1);
    });
    store.flush(executorOfLog);
    const delta = store.openCheckpoint(store.checkpoint(executorOfLog, true));
    const other = new EngineStore(NARROW, "threads");
    try {
      other.memory.createRegion(0, 0);
      const replay = new Replay(other.memory, { isMine: () => true, startEpoch: 0 });
      expect(replay.load(delta)).toMatchObject({
        file: delta.info.name,
        what: "it does not build on the checkpoint that was loaded before it",
      });
    } finally {
      other.dispose();
    }
  });
});
