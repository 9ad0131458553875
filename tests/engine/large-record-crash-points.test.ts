/**
 * A transaction whose record is larger than its journal dies before and after each atomic step; whoever recovers it
 * dies before and after each of its own. A third one finishes: all or nothing is there, and the record's segment is
 * empty, or the log's.
 */

import "../helpers/engine-all-atomics.ts";

import { statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { HEAD, LARGE, STATUS, TAIL } from "../../src/engine/slot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Tails } from "../../src/log/tail.ts";
import { type Address, wordOf } from "../../src/memory/address.ts";
import { HEADER_WORDS, LOCK } from "../../src/memory/object.ts";
import { largeRecordName } from "../../src/memory/store-memory.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { dieAt, type When } from "../helpers/engine-atomics.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 200;
/** Three of them are more than a journal of 64 KiB. */
const OBJECT_BYTES = 30_000;
const OBJECT_WORDS = OBJECT_BYTES / 4;

/** Two large objects, to which the transaction under test writes, and a third that it makes. */
class Stage {
  readonly store: EngineStore;
  readonly victim: Executor;
  readonly objects: Address[] = [];

  constructor(isLogged: boolean) {
    this.store = new EngineStore(SMALL, "mapped files", isLogged);
    this.victim = this.store.open();
    for (let i = 0; i < 2; i++) {
      transact(this.victim, (tx) => {
        this.objects.push(tx.addressOf(tx.allocate(OBJECT_BYTES)));
      });
      if (isLogged) this.log(this.victim);
    }
  }

  write(tx: Transaction, value: number): void {
    for (const address of this.objects) {
      const region = tx.executor.memory.regionOf(address);
      const entry = tx.open(region, wordOf(address));
      const at = tx.writable(entry, OBJECT_WORDS);
      tx.set.arena.i32.fill(value, at, at + OBJECT_WORDS);
      tx.set.markDirty(entry, 0, OBJECT_WORDS);
    }
    tx.allocate(OBJECT_BYTES);
  }

  /** The transaction under test; says whether it died. */
  commitAndDie(k: number, when: When): boolean {
    const tx = new Transaction(this.victim);
    this.victim.enter();
    this.write(tx, 7);
    const died = dieAt(k, when, () => {
      expect(this.victim.committer.commit(tx)).toBe(true);
    });
    this.store.kill(this.victim);
    return died;
  }

  get slotAt(): number {
    return this.store.memory.control.slotAt(this.victim.slot);
  }

  /** As the log's writer does, for all that was committed. Returns the bytes of records. */
  log(executor: Executor): number {
    const tails = new Tails(executor.memory);
    tails.gather(0, executor.mark());
    for (const part of tails.parts) Buffer.from(part);
    const { bytes } = tails;
    tails.release();
    return bytes;
  }

  get segmentBytes(): number {
    const path = join(this.store.memory.segments.place, largeRecordName(this.victim.slot));
    return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Everything or nothing is installed, and nothing is locked. */
  check(point: string): "done" | "not done" {
    const { memory } = this.store;
    const values = this.objects.map((address) => {
      const { i32 } = memory.regionOf(address);
      const word = wordOf(address);
      expect(i32[word + LOCK], `${point}: lock`).toBe(0);
      const data = i32.subarray(word + HEADER_WORDS, word + HEADER_WORDS + OBJECT_WORDS);
      expect(new Set(data).size, `${point}: whole`).toBe(1);
      return data[0];
    });
    expect(new Set(values).size, `${point}: both`).toBe(1);
    expect(memory.control.i32[this.slotAt + STATUS], `${point}: status`).toBe(0);
    return values[0] === 7 ? "done" : "not done";
  }
}

function withStage(isLogged: boolean, work: (stage: Stage) => void): void {
  const stage = new Stage(isLogged);
  try {
    work(stage);
  } finally {
    stage.store.dispose();
  }
}

describe.each([
  ["without a log", false],
  ["with a log", true],
])("large records, crash points: %s", (_, isLogged) => {
  /** After the recovery: who needs the segment still has it, and the next large one gets through. */
  function finish(stage: Stage, point: string, isInLog = false): string {
    const survivor = stage.store.open();
    survivor.sweep();
    const outcome = stage.check(point);
    if (isLogged && !isInLog) {
      const { i32 } = stage.store.memory.control;
      const isPassed = i32[stage.slotAt + HEAD] !== i32[stage.slotAt + TAIL];
      expect(isPassed, `${point}: in the journal`).toBe(outcome === "done");
      const bytes = stage.log(survivor);
      if (outcome === "done") expect(bytes, point).toBeGreaterThan(3 * OBJECT_BYTES);
    }
    // Its slot is claimed again, by one who adopts what a death before the intent has left.
    const heirs = [survivor];
    while (heirs[heirs.length - 1].slot !== stage.victim.slot) heirs.push(stage.store.open());
    expect(stage.segmentBytes, `${point}: bytes in the segment`).toBe(0);
    expect(stage.store.memory.control.i32[stage.slotAt + LARGE], point).toBe(0);
    transact(heirs[heirs.length - 1], (tx) => stage.write(tx, 9));
    expect(stage.check(point), point).toBe("not done");
    return outcome;
  }

  test("a commit that dies at any step is there whole or not at all", () => {
    const outcomes = new Set<string>();
    for (const when of WHENS) {
      for (let k = 1, died = true; died; k++) {
        expect(k).toBeLessThan(MOST_STEPS);
        withStage(isLogged, (stage) => {
          died = stage.commitAndDie(k, when);
          outcomes.add(finish(stage, `died ${when} step ${k}`));
        });
      }
    }
    expect(outcomes).toEqual(new Set(["done", "not done"]));
  });

  test("so does whoever recovers it, at any step", () => {
    // Before the commit point, in the middle of installing, and after it.
    for (const k of [3, 12, 20]) {
      for (const when of WHENS) {
        for (let step = 1, died = true; died; step++) {
          expect(step).toBeLessThan(MOST_STEPS);
          withStage(isLogged, (stage) => {
            stage.commitAndDie(k, "before");
            const recoverer = stage.store.open();
            died = dieAt(step, when, () => {
              recoverer.sweep();
            });
            stage.store.kill(recoverer);
            finish(stage, `died before step ${k}, recoverer ${when} step ${step}`);
          });
        }
      }
    }
  });

  test.runIf(isLogged)("so does the log's writer, when the record is on disk", () => {
    for (const when of WHENS) {
      for (let step = 1, died = true; died; step++) {
        expect(step).toBeLessThan(MOST_STEPS);
        withStage(true, (stage) => {
          stage.commitAndDie(MOST_STEPS, "before");
          const writer = stage.store.open();
          const tails = new Tails(writer.memory);
          const last = writer.mark();
          tails.gather(0, last);
          expect(tails.records).toBe(1);
          died = dieAt(step, when, () => tails.release());
          stage.store.kill(writer);
          // Its successor knows that the log has it.
          const successor = stage.store.open();
          const again = new Tails(successor.memory);
          again.gather(last, successor.mark());
          expect(again.records).toBe(0);
          again.release();
          finish(stage, `writer died ${when} step ${step}`, true);
        });
      }
    }
  });
});
