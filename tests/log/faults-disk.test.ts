/**
 * docs/FAULTS.md, "Disk": EIO on fsync; ENOSPC, short write, slow disk. At each call that a round of the log,
 * or a checkpoint, makes to the disk: what waits is told with a code, reads go on, nothing is
 * acknowledged that is not on disk; and where the fault passes, the log goes on by itself.
 */

import { afterEach, describe, expect, test, vi } from "vitest";
import type { Fault, OperationKind } from "../../simulation/disk/faults.ts";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { DISK_FULL, FAILED, RUNNING } from "../../src/engine/durability.ts";
import { runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { Machine } from "../helpers/durable-machine.ts";
import { expectState } from "../helpers/durable-model.ts";
import { codeOf } from "../helpers/snapshots.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
}));

const SHORT_MS = 30;
const MOST_CALLS = 100;
/** Two batches of such an object fill a segment. */
const LARGE_BYTES = 6_000;

const machines: Machine[] = [];

function create(seed: number, files = new FaultyFiles({ seed })): Machine {
  const machine = Machine.create(new Random(seed), { files });
  machines.push(machine);
  return machine;
}

/** The next machine finds all that was durable, whatever the power loss has left. */
function expectRecovered(machine: Machine): void {
  const { random, model, durableEpoch } = machine;
  Machine.recover(random, machine.crash("power"), model, durableEpoch).dispose();
}

afterEach(() => {
  for (const machine of machines.splice(0)) machine.dispose();
});

/** What the writer of the log is about to do: it has something to write in each. */
const SCENES: Readonly<Record<string, (machine: Machine) => void>> = {
  "the first round of a writer": (machine) => machine.commit(3),
  "a plain round": (machine) => {
    machine.commit(3);
    machine.round();
    machine.commit(3);
  },
  "a rotation": (machine) => {
    for (let i = 0; i < 3; i++) {
      if (i > 0) machine.round();
      machine.work.allocate(machine.executors[0], 1, LARGE_BYTES);
    }
  },
};

function stage(scene: string): Machine {
  const machine = create(3);
  machine.commit(5);
  SCENES[scene](machine);
  return machine;
}

/** Calls `attempt` for each call to the disk that a round makes; it says whether there is such a one. */
function forCalls(attempt: (n: number) => boolean): void {
  let n = 1;
  while (attempt(n)) if (++n > MOST_CALLS) throw new Error("there is no end to the calls");
  expect(n).toBeGreaterThan(2);
}

/** Lets the n-th call from now on fail while `work` is done; the kind of that call, if there is one. */
function withFault(
  machine: Machine,
  n: number,
  kind: Fault["kind"],
  work: () => void,
): OperationKind | undefined {
  const { files } = machine;
  const at = files.operations + n;
  let met: OperationKind | undefined;
  const { before } = files;
  files.before = (operation) => {
    before?.(operation);
    if (operation.number === at) met = operation.kind;
  };
  files.fail({ kind, at });
  try {
    work();
  } finally {
    files.before = before;
    files.forgive();
  }
  return met;
}

/** The same for a checkpoint; says what it failed with, if it did. */
function checkpointWith(
  machine: Machine,
  n: number,
  kind: Fault["kind"],
): { met: OperationKind | undefined; code: string | undefined } {
  let code: string | undefined;
  const met = withFault(machine, n, kind, () => {
    try {
      machine.checkpoint();
    } catch (error) {
      code = (error as NodeJS.ErrnoException).code ?? String(error);
    }
  });
  return { met, code };
}

/** All that is in memory can be read, by transactions and as it lies. */
function expectReads(machine: Machine): void {
  const { root } = machine.work;
  const executor = machine.executors[0];
  const tx = new Transaction(executor);
  const balance = runSync(
    executor,
    tx,
    SHORT_MS,
    () => {
      tx.depend(tx.open(executor.memory.region(root!.regionId), root!.word));
      return tx.views.i32[tx.at];
    },
    undefined,
  );
  expect(balance).toBe(machine.model.now.get(`${root!.regionId}:${root!.word}`)?.data[0]);
  expectState(machine.memory, machine.model.now);
}

describe.each(Object.keys(SCENES))("EIO on fsync, or on any other call, in %s", (scene) => {
  test("nothing further is acknowledged, never retried; commits are refused, reads go on", async () => {
    let calls = 0;
    const waiting: Promise<string>[] = [];
    forCalls((n) => {
      const machine = stage(scene);
      const before = machine.durableEpoch;
      const met = withFault(machine, n, "EIO", () => void machine.round());
      if (met === undefined || machine.lastRound === "done") return met !== undefined;
      calls++;
      const [executor, other] = machine.executors;
      const { durability } = executor;
      expect([machine.lastRound, durability.state]).toEqual(["failed", FAILED]);
      expect(durability.epoch).toBe(before);
      // Those who wait, those who would commit.
      const epoch = executor.epochs.current();
      expect(codeOf(() => durability.awaitSync(epoch, 10_000))).toBe("SITU_NOT_DURABLE");
      waiting.push(codeOfPromise(other.durability.await(epoch, 10_000)));
      expect(codeOf(() => machine.commit(1))).toBe("SITU_LOG_FAILED");
      expectReads(machine);
      // The disk would work again. Nobody asks it, neither this writer nor another one.
      const { operations } = machine.files;
      expect(machine.round()).toBe("failed");
      machine.killLogWriter();
      expect(machine.round()).toBe("failed");
      expect(machine.files.operations).toBe(operations);
      expect(durability.epoch).toBe(before);
      expectRecovered(machine);
      return true;
    });
    expect(calls).toBeGreaterThan(1);
    for (const code of await Promise.all(waiting)) expect(code).toBe("SITU_NOT_DURABLE");
  });
});

async function codeOfPromise(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "no error";
  } catch (error) {
    if (error instanceof SituError) return error.code;
    throw error;
  }
}

test("EIO on fsync of a checkpoint, or on any other call: it fails, the log and the one before it do not", () => {
  let failures = 0;
  forCalls((n) => {
    const machine = create(5);
    machine.commit(10);
    machine.checkpoint();
    machine.commit(10);
    machine.round();
    const [older] = listCheckpoints(machine.files).sound;
    const { met, code } = checkpointWith(machine, n, "EIO");
    if (code !== undefined) {
      failures++;
      expect(code).toMatch(/^(EIO|SITU_NOT_DURABLE|SITU_CORRUPT)$/);
      expect(listCheckpoints(machine.files).sound).toContainEqual(older);
    }
    if (machine.executors[0].durability.state === RUNNING) {
      machine.commit(3);
      expect(machine.round()).toBe("done");
    }
    expectReads(machine);
    expectRecovered(machine);
    return met !== undefined;
  });
  expect(failures).toBeGreaterThan(5);
});

describe.each(Object.keys(SCENES))("ENOSPC in %s", (scene) => {
  test("at any call but a sync it passes, at a sync it is final", () => {
    const outcomes = new Set<string>();
    forCalls((n) => {
      const machine = stage(scene);
      const met = withFault(machine, n, "ENOSPC", () => void machine.round());
      if (met === undefined || machine.lastRound === "done") return met !== undefined;
      const { durability } = machine.executors[0];
      outcomes.add(machine.lastRound);
      if (met === "sync" || met === "syncFolder") {
        expect([machine.lastRound, durability.state]).toEqual(["failed", FAILED]);
      } else {
        expect([machine.lastRound, durability.state]).toEqual(["disk full", DISK_FULL]);
        // The power may be lost now, or there is room again.
        const { random, model, durableEpoch, files } = machine;
        Machine.recover(random, files.powerLoss(random), model, durableEpoch).dispose();
        machine.commit(1);
        expect(machine.round()).toBe("done");
        expect(durability.state).toBe(RUNNING);
        expect(durability.epoch).toBeGreaterThanOrEqual(model.lastCommit());
      }
      expectRecovered(machine);
      return true;
    });
    expect([...outcomes]).toContain("disk full");
  });
});

test("ENOSPC: a full disk is told with a code, reads go on, and all resumes when there is room", () => {
  const machine = create(7);
  machine.commit(10);
  machine.round();
  const { files } = machine;
  const [executor] = machine.executors;
  const { durability } = executor;
  // Room for what the writer has reserved, and nothing more.
  files.capacityBytes = files.usedBytes;
  const codes = new Set<string>();
  for (let i = 0; i < 2_000 && !codes.has("SITU_DISK_FULL"); i++) {
    const tx = new Transaction(executor);
    codes.add(
      codeOf(() => runSync(executor, tx, SHORT_MS, () => tx.free(tx.allocate(400)), undefined)),
    );
  }
  expect([...codes]).toEqual(["no error", "SITU_DISK_FULL"]);
  expect(durability.state).toBe(DISK_FULL);
  const epoch = executor.epochs.current();
  expect(codeOf(() => durability.awaitSync(epoch, SHORT_MS))).toBe("SITU_NOT_DURABLE");
  expectReads(machine);
  // Another writer has no more luck.
  machine.killLogWriter();
  expect(machine.round()).toBe("disk full");
  files.capacityBytes = Number.POSITIVE_INFINITY;
  durability.awaitSync(epoch, 10_000);
  expect(durability.state).toBe(RUNNING);
  machine.commit(20);
  expect(machine.round()).toBe("done");
  expectRecovered(machine);
});

test("ENOSPC in a checkpoint, at any call: nothing is left of it, the log goes on, the next one is taken", () => {
  let failures = 0;
  forCalls((n) => {
    const machine = create(8);
    machine.commit(10);
    machine.checkpoint();
    machine.commit(10);
    machine.round();
    const { met, code } = checkpointWith(machine, n, "ENOSPC");
    if (code !== undefined) {
      failures++;
      expect(code).toMatch(/^(ENOSPC|SITU_NOT_DURABLE)$/);
    }
    if (machine.executors[0].durability.state !== FAILED) {
      machine.commit(3);
      expect(machine.round()).toBe("done");
      machine.checkpoint();
      const names = machine.files.list("checkpoints");
      expect(names.filter((name) => name.endsWith(".new"))).toEqual([]);
    }
    expectRecovered(machine);
    return met !== undefined;
  });
  expect(failures).toBeGreaterThan(5);
});

test("short writes lose nothing", () => {
  const machine = create(9);
  machine.files.fail({ kind: "short", times: 1_000_000 });
  for (let i = 0; i < 20; i++) {
    machine.commit(5);
    expect(machine.round()).toBe("done");
    if (i % 7 === 3) machine.checkpoint(4);
  }
  expect(machine.durableEpoch).toBeGreaterThanOrEqual(machine.model.lastCommit());
  expectRecovered(machine);
});

test("slow disk: who waits is told who does not move, reads go on, and all resumes", async () => {
  const machine = create(10);
  machine.commit(10);
  machine.round();
  const [executor, other] = machine.executors;
  machine.commit(2);
  // The writer lives, and does not come back from the disk.
  const resume = executor.durability.ensureLogWriter;
  for (const one of machine.executors) one.durability.ensureLogWriter = () => {};
  const { slot } = machine.writer!.executor;
  const epoch = executor.epochs.current();
  expect(() => executor.durability.awaitSync(epoch, SHORT_MS)).toThrow(`slot ${slot}`);
  expect(codeOf(() => executor.durability.awaitSync(epoch, SHORT_MS))).toBe("SITU_NOT_DURABLE");
  expect(await codeOfPromise(other.durability.await(epoch, SHORT_MS))).toBe("SITU_NOT_DURABLE");
  const codes = new Set<string>();
  for (let i = 0; i < 2_000 && !codes.has("SITU_TIMEOUT"); i++) {
    const tx = new Transaction(executor);
    codes.add(
      codeOf(() => runSync(executor, tx, SHORT_MS, () => tx.free(tx.allocate(400)), undefined)),
    );
  }
  expect([...codes]).toEqual(["no error", "SITU_TIMEOUT"]);
  expectReads(machine);
  for (const one of machine.executors) one.durability.ensureLogWriter = resume;
  executor.durability.awaitSync(epoch, 10_000);
  machine.commit(10);
  machine.round();
  expectRecovered(machine);
});
