/**
 * Edits turn one version of an object into the next, so a checkpoint must hold each object as of its version, however
 * a commit gets in between: before the copy, in the middle of it, or while it installs.
 */

import "../helpers/engine-all-atomics.ts";

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import type { CheckpointWriter } from "../../src/log/checkpoint/writer.ts";
import { HEADER_WORDS } from "../../src/memory/object.ts";
import { TimeoutError } from "../../src/runtime/errors.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { hookAtomics } from "../helpers/engine-atomics.ts";
import { differences, RecoveryStore } from "../helpers/recovery-store.ts";

const WORDS = 200;
const COUNT = 3;

describe.each([
  ["an object", false],
  ["an element of an array", true],
])("edits and a checkpoint: %s", (_, isElement) => {
  let store: RecoveryStore;
  let one: Executor;
  let logs: Executor;
  /** The header of the object under test. */
  let word: number;
  let value: number;

  beforeEach(() => {
    store = new RecoveryStore();
    [one, logs] = [store.store.open(), store.store.open()];
    value = 1;
    transact(one, (tx) => {
      const first = isElement ? tx.allocateArray(COUNT, 4 * WORDS) : tx.allocate(4 * WORDS);
      word = tx.set.wordOf(first) + (isElement ? HEADER_WORDS + WORDS : 0);
    });
    for (let i = 0; i < 5; i++) edit();
    store.flush(logs);
  });

  afterEach(() => store.dispose());

  /** Shifts all words by one, as an insertion does, and writes the first. */
  function edit(): void {
    transact(one, (tx) => change(tx));
  }

  function change(tx: Transaction): void {
    const { set } = tx;
    const entry = tx.open(tx.executor.memory.region(0), word);
    const at = tx.writable(entry, WORDS);
    set.beginEdits(entry);
    set.arena.i32.copyWithin(at + 1, at, at + WORDS - 1);
    set.arena.i32[at] = value++;
    set.recordMove(entry, 0, 1, WORDS - 1);
    set.recordWrite(entry, 0, 1);
  }

  /** The checkpoint and the log give what there is; and the log has edits. */
  function expectRecovered(writer: CheckpointWriter): void {
    const name = store.publish(logs, writer);
    for (let i = 0; i < 3; i++) edit();
    store.flush(logs);
    const words = store.batches.reduce((sum, batch) => sum + batch.length, 0);
    expect(words).toBeLessThan(4 * WORDS + 12 * 20);
    for (const from of [name, undefined]) {
      const recovered = store.recover(from);
      try {
        expect(differences(store.store.memory, recovered.memory, () => WORDS)).toEqual([]);
      } finally {
        recovered.dispose();
      }
    }
  }

  /** Cuts the copies of the writer's step in two, and commits in between. */
  function stepWithCommit(writer: CheckpointWriter, cut: number, isForward: boolean): void {
    const { prototype } = Int32Array;
    const { set } = prototype;
    let isDone = false;
    prototype.set = function (this: Int32Array, from: ArrayLike<number>, at = 0): void {
      if (isDone || !(from instanceof Int32Array) || from.length < WORDS) {
        set.call(this, from, at);
        return;
      }
      isDone = true;
      const place = Math.min(cut, from.length);
      const halves = [
        () => set.call(this, from.subarray(0, place), at),
        () => set.call(this, from.subarray(place), at + place),
      ];
      if (!isForward) halves.reverse();
      halves[0]();
      edit();
      halves[1]();
    };
    try {
      while (writer.step());
    } finally {
      prototype.set = set;
    }
    expect(isDone).toBe(true);
  }

  test.each([0, 2, 3, 50, 150, 10_000])("a commit in the middle of the copy, at word %i", (cut) => {
    for (const isForward of [true, false]) {
      for (const isDelta of [false, true]) {
        const writer = store.begin(logs, isDelta);
        if (isDelta) edit();
        stepWithCommit(writer, cut, isForward);
        const name = store.publish(logs, writer);
        const recovered = store.recover(name);
        try {
          expect(differences(store.store.memory, recovered.memory, () => WORDS)).toEqual([]);
        } finally {
          recovered.dispose();
        }
      }
    }
  });

  test("a commit that is at any of its steps when the checkpoint comes by", () => {
    let isMore = true;
    for (let k = 1; isMore; k++) {
      store.dispose();
      store = new RecoveryStore();
      [one, logs] = [store.store.open(), store.store.open()];
      transact(one, (tx) => {
        const first = isElement ? tx.allocateArray(COUNT, 4 * WORDS) : tx.allocate(4 * WORDS);
        word = tx.set.wordOf(first) + (isElement ? HEADER_WORDS + WORDS : 0);
      });
      store.flush(logs);
      edit();
      const writer = store.begin(logs, false);
      let steps = 0;
      isMore = false;
      const off = hookAtomics({
        after: () => {
          if (++steps !== k) return;
          isMore = true;
          try {
            while (writer.step());
          } catch (error) {
            // It waits for the commit to be installed, in vain here: the copy is made afterwards.
            if (!(error instanceof TimeoutError)) throw error;
          }
        },
      });
      try {
        edit();
      } finally {
        off();
      }
      while (writer.step());
      expectRecovered(writer);
    }
  });
});
