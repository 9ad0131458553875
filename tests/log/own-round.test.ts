/**
 * One who commits alone writes the log itself (log/own-round.ts): what it writes counts like a round of the
 * writer's, and whoever is not alone leaves it to the writer. It dies at each of its calls to the disk, and before
 * and after each of its atomic steps; then the log goes on, and has all that was committed, once.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test, vi } from "vitest";
import { FAILED, RUNNING } from "../../src/engine/durability.ts";
import { Epochs } from "../../src/engine/epoch.ts";
import { OwnRound } from "../../src/log/own-round.ts";
import { forEachRecord } from "../../src/log/segments/format.ts";
import { readPayload } from "../../src/log/segments/payloads.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { LOG_ROUND, LOG_SEGMENT, LOG_USED_F64 } from "../../src/memory/control.ts";
import { TimeoutError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { LOG_ID, Machine } from "../helpers/durable-machine.ts";
import type { When } from "../helpers/engine-atomics.ts";
import { dieForGood } from "../helpers/snapshots.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
}));

const ROW_BYTES = 600;
const MOST_STEPS = 100;

/** A store whose log's writer has begun a segment, and sleeps. */
function stage(): Machine {
  const machine = Machine.create(new Random(5), { executors: 2, isBare: true });
  machine.commit(3);
  expect(machine.round()).toBe("done");
  return machine;
}

/** Batches in the log, and the number of records in each. */
function batches({ files }: Machine): number[] {
  const scan = scanLog(files, 0);
  expect(scan.damage).toEqual([]);
  return scan.batches.map(({ records }) => records);
}

/** The log has all that was committed, once; and memory can be made anew from it. */
function expectAll(machine: Machine): void {
  const { random, model } = machine;
  machine.executors[0].durability.call();
  expect(machine.round()).toBe("done");
  machine.ownRound(machine.executors[0]);
  machine.ownRound(machine.executors[1]);
  machine.work.allocate(machine.executors[1], 1, 16);
  expect(machine.round()).toBe("done");
  expect(machine.round()).toBe("idle");
  const { files, durableEpoch } = machine;
  const scan = scanLog(files, 0);
  expect(scan.damage).toEqual([]);
  const tids = scan.batches.flatMap((batch) => {
    const words = readPayload(files, batch);
    const found: string[] = [];
    forEachRecord(words, (at) => found.push(`${words[at + 2]}:${words[at + 3]}`));
    return found;
  });
  expect(tids).toHaveLength(model.commits);
  expect(new Set(tids).size).toBe(model.commits);
  expect(durableEpoch).toBeGreaterThanOrEqual(model.lastCommit());
  Machine.recover(random, machine.crash("power"), model, durableEpoch).dispose();
}

test("one who is alone writes its commit, and it is durable without the log's writer", () => {
  const machine = stage();
  const before = batches(machine).length;
  for (let i = 1; i <= 5; i++) {
    machine.ownRound(machine.executors[0]);
    expect(machine.durableEpoch).toBeGreaterThanOrEqual(machine.model.lastCommit());
    expect(batches(machine)).toHaveLength(before + i);
  }
  // The writer goes on behind them.
  machine.commit(2);
  expect(machine.round()).toBe("done");
  expect(batches(machine)).toHaveLength(before + 6);
  expectAll(machine);
});

describe("it leaves to the log's writer", () => {
  /** Calls to the disk of an attempt that does nothing. */
  function expectNothing(machine: Machine, attempt = () => machine.ownRound(machine.executors[0])) {
    const before = machine.durableEpoch;
    const { operations } = machine.files;
    attempt();
    expect(machine.files.operations).toBe(operations);
    expect(machine.durableEpoch).toBe(before);
    expect(machine.memory.control.i32[LOG_ROUND]).toBe(0);
    expectAll(machine);
  }

  test("what others have committed", () => {
    const machine = stage();
    machine.work.transfer(machine.executors[1]);
    expectNothing(machine);
  });

  test("a log that no segment was begun for", () => {
    expectNothing(Machine.create(new Random(5), { executors: 2, isBare: true }));
  });

  test("a log whose writer has ended", () => {
    const machine = stage();
    machine.endLogWriter();
    expect(machine.memory.control.i32[LOG_SEGMENT]).toBe(0);
    expectNothing(machine);
  });

  test("a batch that the segment has no room for", () => {
    const machine = stage();
    const [one] = machine.executors;
    const { control } = machine.memory;
    const segment = control.i32[LOG_SEGMENT];
    let rounds = 0;
    for (let used = 0; used !== control.f64[LOG_USED_F64]; rounds++) {
      used = control.f64[LOG_USED_F64];
      machine.work.allocate(one, 1, ROW_BYTES);
      machine.ownRound(one);
    }
    expect(rounds).toBeGreaterThan(2);
    expect(control.i32[LOG_SEGMENT]).toBe(segment);
    expectAll(machine);
    expect(batches(machine).length).toBeGreaterThan(rounds);
  });

  test("a log that somebody else is writing to", () => {
    const machine = stage();
    const [one, other] = machine.executors;
    machine.memory.control.i32[LOG_ROUND] = other.slot + 1;
    const before = machine.durableEpoch;
    machine.ownRound(one);
    expect(machine.durableEpoch).toBe(before);
    // The writer waits for it, and says for whom.
    expect(machine.round()).toBe("stalled");
    expect(one.durability.stalled(1)).toContain(`slot ${other.slot}`);
    machine.memory.control.i32[LOG_ROUND] = 0;
    expectAll(machine);
  });
});

test("somebody who keeps the epoch from moving on does not fail the log", () => {
  const machine = stage();
  const [one] = machine.executors;
  const { epochs } = one;
  machine.work.transfer(one);
  epochs.advance = () => {
    throw new TimeoutError("process 1 has kept a transaction open");
  };
  const round = new OwnRound(one, machine.files, LOG_ID);
  round.try();
  round.close();
  expect(one.durability.state).toBe(RUNNING);
  epochs.advance = (epoch) => Epochs.prototype.advance.call(epochs, epoch);
  expectAll(machine);
});

describe("errors of the disk", () => {
  test("a full disk is for the log's writer to tell", () => {
    const machine = stage();
    const [one] = machine.executors;
    machine.files.fail({ kind: "ENOSPC", on: "write" });
    machine.ownRound(one);
    expect(one.durability.state).toBe(0);
    expect(machine.round()).toBe("done");
    expectAll(machine);
  });

  test.each(["write", "sync"] as const)("EIO at a %s is final", (on) => {
    const machine = stage();
    const [one] = machine.executors;
    machine.files.fail({ kind: "EIO", on });
    machine.ownRound(one);
    expect(one.durability.state).toBe(FAILED);
    expect(() => one.durability.check()).toThrow("the log could not be written (EIO)");
    expect(machine.round()).toBe("failed");
    machine.dispose();
  });
});

/** Calls `attempt` with 1, 2 and so on, until nobody dies at that step any more. */
function forSteps(attempt: (k: number) => boolean): void {
  let k = 1;
  for (; attempt(k); k++) if (k > MOST_STEPS) throw new Error("there is no end to the steps");
  expect(k).toBeGreaterThan(2);
}

describe("it dies", () => {
  test("at each call to the disk", () => {
    forSteps((n) => {
      const machine = stage();
      const died = machine.dieInOwnRound(n);
      expectAll(machine);
      return died;
    });
  });

  test("at each call to the disk, and the next one who commits does, too", () => {
    for (const m of [1, 2]) {
      forSteps((n) => {
        const machine = stage();
        const died = machine.dieInOwnRound(n);
        machine.executors[0].sweep();
        machine.round();
        machine.dieInOwnRound(m);
        expectAll(machine);
        return died;
      });
    }
  });

  test.each<When>(["before", "after"])("%s each atomic step", (when) => {
    forSteps((k) => {
      const machine = stage();
      const victim = machine.store.open();
      machine.work.transfer(victim);
      const round = new OwnRound(victim, machine.files, LOG_ID);
      const died = dieForGood(k, when, () => round.try());
      if (died) machine.store.kill(victim);
      else machine.store.close(victim);
      expectAll(machine);
      return died;
    });
  });
});
