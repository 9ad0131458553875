/**
 * docs/FAULTS.md, "Disk": crash during log-writer hand-over. The log's writer dies at each of its calls to the
 * disk and before and after each of its atomic steps: in a plain round, at the start of a segment,
 * at a rotation, in a segment that it has made ahead. Its successor dies, too. The third goes on, and
 * the log has all that was committed, once.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test, vi } from "vitest";
import { FAILED } from "../../src/engine/durability.ts";
import { forEachRecord } from "../../src/log/segments/format.ts";
import { readPayload } from "../../src/log/segments/payloads.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { Random } from "../../src/runtime/random.ts";
import { Machine } from "../helpers/durable-machine.ts";
import type { When } from "../helpers/engine-atomics.ts";
import { SOAK } from "../helpers/seed.ts";
import { dieForGood } from "../helpers/snapshots.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
}));

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 100;
/** Two such batches fill a segment. */
const LARGE_BYTES = 6_000;

/** What the writer is about to do when it dies. */
const SCENES: Readonly<Record<string, (machine: Machine) => void>> = {
  "its first round": () => {},
  "a plain round": (machine) => {
    machine.commit(3);
    machine.round();
  },
  "a round without records": (machine) => {
    machine.commit(3);
    machine.round();
    machine.executors[0].durability.call();
  },
  "a rotation": (machine) => {
    fillSegment(machine);
  },
  "a rotation to a segment that was made ahead": (machine) => {
    fillSegment(machine);
    machine.writer?.prepare();
  },
  "a round after a hand-over": (machine) => {
    machine.commit(3);
    machine.round();
    machine.commit(2);
    machine.killLogWriter();
  },
  "a round after one that was written and not published": (machine) => {
    machine.commit(3);
    machine.round();
    machine.commit(2);
    // It dies when the batch is on disk: the first store after the sync is not done.
    dieForGood(
      ({ operation, array }) => isI64(array) && operation === "store",
      "before",
      () => {
        machine.writer?.round();
      },
    );
    machine.killLogWriter();
  },
  "a round after one that was published, with the journals not given back": (machine) => {
    machine.commit(3);
    machine.round();
    machine.commit(2);
    let stores = 0;
    dieForGood(
      ({ operation, array }) => isI64(array) && operation === "store" && ++stores === 2,
      "after",
      () => {
        machine.writer?.round();
      },
    );
    machine.killLogWriter();
  },
};

/** Scenes in which the disk is called. */
const WITH_RECORDS = Object.keys(SCENES).filter((scene) => scene !== "a round without records");
/** Scenes in which the successor dies, too. */
const PAIRS = ["its first round", "a rotation", "a round after a hand-over"];

function isI64(array: Int32Array | BigInt64Array): boolean {
  return array instanceof BigInt64Array;
}

/** Commits and writes until the next such batch needs a new segment. */
function fillSegment(machine: Machine): void {
  for (let i = 0; i < 2; i++) {
    machine.work.allocate(machine.executors[0], 1, LARGE_BYTES);
    machine.round();
  }
  machine.work.allocate(machine.executors[0], 1, LARGE_BYTES);
}

/** A store in which the writer has something to do. */
function stage(scene: keyof typeof SCENES): Machine {
  const machine = Machine.create(new Random(7), { executors: 2, isBare: true });
  machine.commit(2);
  SCENES[scene](machine);
  if (scene !== "a round without records") machine.commit(2);
  return machine;
}

/** The writer of the log that is there, or a new one, dies before or after an atomic step. */
function dieAtStep(machine: Machine, k: number, when: When): boolean {
  machine.writer ??= machine.newGroupCommit();
  const { writer } = machine;
  const died = dieForGood(k, when, () => {
    writer.round();
  });
  if (died) machine.killLogWriter();
  return died;
}

/** Another goes on; the log has all that was committed, once, and memory is made anew from it. */
function expectAll(machine: Machine): void {
  const { random, model } = machine;
  const [one, two] = machine.executors;
  // It may find nothing to write, and says that all is durable.
  one.durability.call();
  expect(machine.round()).toBe("done");
  const disk = machine.files.powerLoss(random);
  Machine.recover(random, disk, model, machine.durableEpoch).dispose();
  machine.work.transfer(one);
  expect(machine.round()).toBe("done");
  machine.work.transfer(two);
  machine.work.transfer(one);
  expect(machine.round()).toBe("done");
  expect(machine.round()).toBe("idle");
  expectOnce(machine);
  const { durableEpoch } = machine;
  expect(durableEpoch).toBeGreaterThanOrEqual(model.lastCommit());
  // All of it was told to be durable: whatever was not synced is not needed.
  Machine.recover(random, machine.crash("power"), model, durableEpoch).dispose();
}

function expectOnce(machine: Machine): void {
  const { files, model } = machine;
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
}

/** Calls `attempt` with 1, 2 and so on, until nobody dies at that step any more. */
function forSteps(attempt: (k: number) => boolean, first = 1, by = 1): void {
  let k = first;
  for (; attempt(k); k += by) if (k > MOST_STEPS) throw new Error("there is no end to the steps");
  expect(k).toBeGreaterThan(2);
}

test("what cannot be made ahead is told by the next round", () => {
  for (const on of ["create", "sync", "syncFolder"] as const) {
    const machine = Machine.create(new Random(9));
    try {
      fillSegment(machine);
      machine.round();
      machine.writer?.prepare();
      machine.files.fail({ kind: "EIO", on });
      while (machine.files.operations < 10_000) {
        machine.work.allocate(machine.executors[0], 1, LARGE_BYTES);
        machine.writer?.round();
        machine.writer?.prepare();
        if (machine.executors[0].durability.state === FAILED) break;
      }
      expect(machine.round()).toBe("failed");
    } catch (error) {
      // Refused, when the log has failed.
      expect((error as { code?: string }).code).toBe("SITU_LOG_FAILED");
    } finally {
      machine.dispose();
    }
  }
});

describe("crash during log-writer hand-over: the writer dies", () => {
  test.each(WITH_RECORDS)("at each call to the disk, in %s", (scene) => {
    forSteps((n) => {
      const machine = stage(scene);
      try {
        const died = machine.dieInRound(n);
        expectAll(machine);
        return died;
      } finally {
        machine.dispose();
      }
    });
  });

  // The successor at every fourth of its calls, each time at others; with SITU_SOAK at all of them.
  test.each(PAIRS)("at each call in %s, and its successor at its own", (scene) => {
    forSteps((n) => {
      let died = false;
      const attempt = (m: number): boolean => {
        const machine = stage(scene);
        try {
          died = machine.dieInRound(n);
          machine.commit(1);
          const successorDied = machine.dieInRound(m);
          expectAll(machine);
          return successorDied;
        } finally {
          machine.dispose();
        }
      };
      if (SOAK > 1) forSteps(attempt);
      else forSteps(attempt, 1 + (n % 4), 4);
      return died;
    });
  });

  describe.each(WHENS)("%s each atomic step", (when) => {
    test.each(Object.keys(SCENES))("in %s", (scene) => {
      forSteps((k) => {
        const machine = stage(scene);
        try {
          const died = dieAtStep(machine, k, when);
          expectAll(machine);
          return died;
        } finally {
          machine.dispose();
        }
      });
    });
  });
});
