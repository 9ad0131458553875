/**
 * Cases that recovery must get right, each made by hand: what the dice of crash-points.test.ts meet
 * too seldom, or what was found by reading.
 */

import { afterEach, describe, expect, test, vi } from "vitest";
import { RUNNING } from "../../src/engine/durability.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { beginLog } from "../../src/log/begin.ts";
import { listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { takeQuietCheckpoint } from "../../src/log/checkpoint/take.ts";
import { Random } from "../../src/runtime/random.ts";
import { LOG_ID, Machine } from "../helpers/durable-machine.ts";
import { codeOf } from "../helpers/snapshots.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
  // Incremental wherever possible.
  DELTA_AT_MOST: 100,
}));

const machines: Machine[] = [];

function kept(machine: Machine): Machine {
  machines.push(machine);
  return machine;
}

function create(seed: number): Machine {
  return kept(Machine.create(new Random(seed)));
}

/** What the next machine makes of the disk, when all that was written is on it. */
function reboot(machine: Machine): Machine {
  const { random, model, durableEpoch } = machine;
  return kept(Machine.recover(random, machine.crash("processes"), model, durableEpoch));
}

afterEach(() => {
  for (const machine of machines.splice(0)) machine.dispose();
});

/** A place inside of the chunks of a checkpoint. */
const IN_CHUNKS = 1024 + 40;

describe("checkpoints", () => {
  test("epochs in which nothing was committed do not come again after a recovery", () => {
    const machine = create(1);
    const [one] = machine.executors;
    machine.work.allocate(one, 1, 40);
    machine.work.allocate(one, 8, 1_000);
    machine.work.freeAll(one, 1_000);
    expect(one.slabs.releaseEmptyBlocks()).toBe(1);
    machine.round();
    // While the checkpoint is taken, epochs pass: somebody waits for the log again and again.
    machine.checkpointWith(() => {
      for (let i = 0; i < 10; i++) {
        one.durability.call();
        machine.round();
      }
    });
    const next = reboot(machine);
    // In the memory that was free: the checkpoint knows since when.
    next.work.allocate(next.executors[0], 8, 400);
    next.round();
    reboot(next);
  });

  test.each(["group", "block"] as const)("memory changes its use before a %s is copied", (at) => {
    const machine = create(1);
    const [one] = machine.executors;
    machine.work.allocate(one, 1, 40);
    machine.work.allocate(one, 8, 1_000);
    machine.round();
    const giveBack = (): void => {
      machine.work.freeAll(one, 1_000);
      machine.work.allocate(one, 1, 40);
      expect(one.slabs.releaseEmptyBlocks()).toBe(1);
    };
    // In the middle of a group no block can be given back, only taken.
    if (at === "block") giveBack();
    let isDone = false;
    machine.checkpointWith((when) => {
      const isBegun = machine.files.list("checkpoints").some((name) => name.endsWith(".new"));
      if (isDone || when !== at || !isBegun) return;
      isDone = true;
      // The log has the end of the block's earlier life; the checkpoint has the later one.
      if (at === "group") giveBack();
      machine.work.allocate(one, 8, 400);
    });
    expect(isDone).toBe(true);
    machine.round();
    reboot(machine);
  });

  test("one that was found damaged is not built upon", () => {
    const machine = create(2);
    machine.commit(30);
    machine.checkpoint();
    machine.commit(1);
    machine.round();
    machine.checkpoint();
    const [newest] = listCheckpoints(machine.files).sound;
    expect(newest.kind).toBe("delta");
    machine.files.flipBit(newest.name, IN_CHUNKS);
    let next = reboot(machine);
    // It was recovered from the older one; now there are new ones.
    expect(next.files.has(`${newest.name}.damaged`)).toBe(true);
    next.commit(2);
    next.checkpoint();
    expect(listCheckpoints(next.files).sound[0].base).not.toBe(newest.startEpoch);
    next.commit(2);
    next.checkpoint();
    next.commit(2);
    next.round();
    next = reboot(next);
  });

  test("one that cannot be read is as good as damaged: the one before it serves", () => {
    for (const part of ["head", "chunk"]) {
      const machine = create(3);
      machine.commit(30);
      machine.checkpoint();
      machine.commit(20);
      machine.checkpoint();
      machine.commit(3);
      machine.round();
      const [{ name }, older] = listCheckpoints(machine.files).sound;
      expect(older).toBeDefined();
      const { random, model, durableEpoch } = machine;
      const found = machine.crash("processes");
      // The first read of a file is that of its head; those of chunks come after two more.
      let reads = 0;
      found.before = (operation) => {
        if (operation.kind !== "read" || operation.name !== name) return;
        reads++;
        if (part === "head" || reads > 4) {
          throw Object.assign(new Error("EIO: i/o error, read"), { code: "EIO", errno: -5 });
        }
      };
      kept(Machine.recover(random, found, model, durableEpoch));
      expect(reads).toBeGreaterThan(0);
    }
  });
});

describe("a log that has failed and is begun anew", () => {
  /** Fails the log, with commits that are not in it; everybody leaves, and one comes back. */
  function failed(seed: number): { machine: Machine; alone: Executor } {
    const machine = create(seed);
    machine.commit(20);
    machine.checkpoint();
    machine.commit(5);
    machine.round();
    machine.commit(5);
    machine.files.fail({ kind: "EIO", on: "sync" });
    machine.round();
    expect(machine.lastRound).toBe("failed");
    machine.killLogWriter();
    for (const executor of machine.executors.splice(1)) machine.store.close(executor);
    const [alone] = machine.executors;
    alone.sweep();
    return { machine, alone };
  }

  function goesOn(machine: Machine): void {
    machine.commit(5);
    expect(machine.round()).toBe("done");
    machine.checkpoint(2);
    machine.commit(2);
    machine.round();
    reboot(machine);
  }

  test.each(["power", "processes"] as const)("%s gone at every call: nothing is lost", (how) => {
    let n = 1;
    for (let isHit = true; isHit; n++) {
      const { machine, alone } = failed(4);
      machine.crashAt(n, how);
      try {
        beginLog(alone, machine.files, LOG_ID);
        isHit = false;
      } catch (error) {
        if (machine.isUp) throw error;
      }
      const { random, model, durableEpoch } = machine;
      goesOn(kept(Machine.recover(random, machine.crash(how), model, durableEpoch)));
    }
    expect(n).toBeGreaterThan(15);
  });

  test.each(["EIO", "ENOSPC"] as const)("%s at every call: the next attempt succeeds", (kind) => {
    let n = 1;
    for (let isHit = true; isHit; n++) {
      const { machine, alone } = failed(5);
      const at = machine.files.operations + n;
      machine.files.fail({ kind, at });
      try {
        beginLog(alone, machine.files, LOG_ID);
        isHit = machine.files.operations >= at;
      } catch {
        machine.files.forgive();
        beginLog(alone, machine.files, LOG_ID);
      }
      alone.durability.setState(RUNNING, 0);
      machine.files.forgive();
      const { random, model } = machine;
      const disk = machine.files.powerLoss(random);
      kept(Machine.recover(random, disk, model, model.lastCommit()));
      if (n % 4 === 0) goesOn(machine);
    }
    expect(n).toBeGreaterThan(15);
  });

  test("what is left of the log before need be neither read nor synced", () => {
    for (const on of ["read", "sync"] as const) {
      const { machine, alone } = failed(6);
      // The record of the log's end is made anew, under the same name.
      const segments = machine.files.list("log").filter((name) => name !== "end");
      const names = segments.map((name) => `log/${name}`);
      for (const name of names) machine.files.fail({ kind: "EIO", on, name, times: 1_000 });
      beginLog(alone, machine.files, LOG_ID);
      alone.durability.setState(RUNNING, 0);
      machine.files.forgive();
      goesOn(machine);
    }
  });

  test("crash before its first segment, and then a checkpoint without a commit", () => {
    const { machine, alone } = failed(7);
    takeQuietCheckpoint(alone, machine.files, LOG_ID);
    const { random, model } = machine;
    const next = kept(Machine.recover(random, machine.crash("power"), model, model.lastCommit()));
    next.checkpoint();
    reboot(next);
  });

  test("crash before its first segment: what only the checkpoints have is not forgotten", () => {
    for (const withAnother of [false, true]) {
      const { machine, alone } = failed(8);
      // It is there, and those before it have not been removed yet.
      machine.files.fail({ kind: "EIO", on: "remove", times: 100 });
      expect(() => takeQuietCheckpoint(alone, machine.files, LOG_ID)).toThrow("EIO");
      machine.files.forgive();
      const { random, model } = machine;
      const older = new Set(machine.files.list("checkpoints").slice(0, -1));
      expect(older.size).toBeGreaterThan(0);
      let next = kept(Machine.recover(random, machine.crash("power"), model, model.lastCommit()));
      if (withAnother) {
        next.checkpoint();
        next = reboot(next);
      }
      next.commit(5);
      next.round();
      for (const short of next.files.list("checkpoints")) {
        if (!older.has(short)) next.files.flipBit(`checkpoints/${short}`, IN_CHUNKS);
      }
      // An older checkpoint and the log are not all there was, and do not look so.
      expect(codeOf(() => reboot(next))).toBe("SITU_CORRUPT");
    }
  });
});
