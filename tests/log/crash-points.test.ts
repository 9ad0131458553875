/**
 * docs/FAULTS.md, "Disk": power loss with any subset of unsynced blocks dropped; crash during checkpoint,
 * rename, log removal, log-writer hand-over. A whole store in one thread, by the dice of a seed: it
 * works until the power is lost, or all processes are killed, at some call to the disk. What is
 * recovered must be a state that the store has had, word for word, with everything that was durable.
 * Then it goes on from there, several times.
 */

import { describe, expect, test, vi } from "vitest";
import type { OperationKind } from "../../simulation/disk/faults.ts";
import { Random } from "../../src/runtime/random.ts";
import { type Crash, Machine, type MachineOptions } from "../helpers/durable-machine.ts";
import { forSeeds, SOAK } from "../helpers/seed.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  // So that segments are left, and journals go round, every few batches.
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
}));

const SEEDS = 25 * SOAK;
const GENERATIONS = 3;
/** Disks that a power loss may leave, beside the one with which the next machine goes on. */
const OTHER_DISKS = 2;
const STEPS = 120;
const CHANGING: readonly OperationKind[] = [
  "create",
  "write",
  "sync",
  "truncate",
  "rename",
  "remove",
  "syncFolder",
];

/** Where circles of 12, 30, 31 and 32 bits end. */
const EPOCHS = [1, 4_090, 2 ** 30 - 10, 2 ** 31 - 10, 2 ** 32 - 10, 2 ** 43 - 10];
const POSITIONS = [0, 0x7fffff00, -0x200];

function optionsBy(random: Random): MachineOptions {
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)];
  return {
    executors: 1 + random.below(3),
    epoch: random.below(2) === 0 ? 1 : pick(EPOCHS),
    journalsAt: pick(POSITIONS),
    isBare: random.below(4) === 0,
  };
}

function plan(machine: Machine, crash: Crash): void {
  const { random, files } = machine;
  if (random.below(3) === 0) {
    files.fail({ kind: "short", at: files.operations + random.below(100), times: 5 });
  }
  if (crash === "power" && random.below(2) === 0) {
    machine.crashAt(1 + random.below(60), crash, CHANGING[random.below(CHANGING.length)]);
  } else {
    machine.crashAt(1 + random.below(150), crash);
  }
}

/** The crash of a machine, and the one that comes after it. */
function crash(machine: Machine, how: Crash): Machine {
  const { random, model, durableEpoch } = machine;
  if (how === "power") {
    for (let i = 0; i < OTHER_DISKS; i++) {
      const disk = machine.files.powerLoss(random);
      Machine.recover(random, disk, model, durableEpoch).dispose();
    }
  }
  return Machine.recover(random, machine.crash(how), model, durableEpoch);
}

describe("power loss with any subset of unsynced blocks dropped", () => {
  test("at any call to the disk, again and again: a whole prefix of epochs", () => {
    let crashes = 0;
    forSeeds(SEEDS, 1, (seed) => {
      const random = new Random(seed * 7919);
      let machine = Machine.create(random, optionsBy(random));
      try {
        for (let generation = 0; generation < GENERATIONS; generation++) {
          machine.isBusy = true;
          const how = random.below(5) === 0 ? "processes" : "power";
          plan(machine, how);
          machine.runUntilCrash(STEPS);
          if (!machine.isUp) crashes++;
          machine = crash(machine, how);
        }
      } finally {
        machine.dispose();
      }
    });
    expect(crashes).toBeGreaterThan(SEEDS);
  });
});

/**
 * The life of a log, in few steps: segments that are left, a full checkpoint, incremental ones, old
 * ones and the log before them removed, writers that come and go. Always the same.
 */
const SCRIPT: readonly ((machine: Machine) => void)[] = [
  (machine) => machine.commit(6),
  (machine) => void machine.round(),
  (machine) => machine.checkpoint(4),
  (machine) => machine.work.allocate(machine.executors[0], 1, 9_000),
  (machine) => void machine.round(),
  (machine) => machine.work.allocate(machine.executors[1], 1, 9_000),
  (machine) => void machine.round(),
  (machine) => machine.writer?.prepare(),
  (machine) => machine.killLogWriter(),
  (machine) => machine.commit(2),
  (machine) => machine.checkpoint(2),
  (machine) => machine.commit(2),
  (machine) => machine.endLogWriter(),
  (machine) => machine.checkpoint(2),
  (machine) => machine.commit(3),
  (machine) => void machine.round(),
  (machine) => machine.checkpoint(0),
  (machine) => machine.endLogWriter(),
];
const SCRIPT_SEED = 5;

/** Plays the script with a crash at the n-th call, and tells of each call before it is made. */
function play(n: number, how: Crash, tell?: (n: number, kind: OperationKind) => void): Machine {
  const machine = Machine.create(new Random(SCRIPT_SEED));
  const { operations, before } = machine.files;
  machine.crashAt(n, how);
  machine.files.before = (operation) => {
    tell?.(operation.number - operations, operation.kind);
    before?.(operation);
  };
  for (const step of SCRIPT) {
    try {
      step(machine);
    } catch (error) {
      if (machine.isUp) throw error;
    }
    if (!machine.isUp) break;
  }
  return machine;
}

/** The calls of the script that change the disk: a crash at any other leaves what one of these does. */
function callsOfScript(): number[] {
  const calls: number[] = [];
  const machine = play(Number.POSITIVE_INFINITY, "power", (n, kind) => {
    if (CHANGING.includes(kind)) calls.push(n);
  });
  machine.dispose();
  return calls;
}

describe("crash during checkpoint, rename, log removal, log-writer hand-over", () => {
  test("the script has all of these", () => {
    const machine = play(Number.POSITIVE_INFINITY, "power");
    const checkpoints = machine.files.list("checkpoints");
    const [first] = machine.files.list("log");
    machine.dispose();
    expect(checkpoints.filter((name) => name.endsWith(".delta")).length).toBeGreaterThan(0);
    expect(Number.parseInt(first, 10)).toBeGreaterThan(1);
    expect(callsOfScript().length).toBeGreaterThan(80);
  });

  test.each(["power", "processes"] as const)(
    "%s gone at every call: the previous state serves",
    (how) => {
      for (const n of callsOfScript()) {
        try {
          const machine = play(n, how);
          expect(machine.isUp).toBe(false);
          const next = crash(machine, how);
          // And it goes on.
          try {
            next.commit(3);
            next.checkpoint(2);
          } finally {
            next.dispose();
          }
        } catch (cause) {
          throw new Error(`at call ${n}: ${(cause as Error).message}`, { cause });
        }
      }
    },
  );
});
