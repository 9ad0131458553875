/**
 * docs/FAULTS.md, "Disk": torn tail; flipped bit in the middle; missing segment; checkpoint and log that do
 * not match. Bits are flipped all over the files of a store, and files taken away: what is recovered
 * is all that there was, or the damage is told with its file and its place. Only the end of a log
 * whose writer was killed may be cut, and that is told, too. Nothing is ever read as data.
 */

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { Damage } from "../../src/folder/files.ts";
import { listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { planRecovery, type RecoveryPlan } from "../../src/log/recovery/plan.ts";
import { type LogEnd, readLogEnd } from "../../src/log/segments/end.ts";
import { segmentName } from "../../src/log/segments/segments.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { Random } from "../../src/runtime/random.ts";
import { Machine, rebuildStore } from "../helpers/durable-machine.ts";
import { expectState } from "../helpers/durable-model.ts";
import { fixedSeed } from "../helpers/seed.ts";

vi.mock("../../src/runtime/limits.ts", async (original) => ({
  ...(await original<object>()),
  SEGMENT_BYTES: 16 * 1024,
  DURABLE_SPIN_MS: 0,
}));

const SEED = fixedSeed(42);
const FLIPS_PER_FILE = 60;
/** A head has a text, and behind it zeroes that nobody reads. */
const HEAD_BYTES = 1024;

/** A store with two checkpoints at least, and a log of several segments since the older one. */
function worked(seed: number): Machine {
  const machine = Machine.create(new Random(seed));
  machine.commit(20);
  machine.checkpoint(5);
  for (let i = 0; i < 3; i++) {
    for (let j = 0; j < 8; j++) {
      machine.commit(4);
      machine.round();
    }
    if (i < 2) machine.checkpoint(8);
    machine.killLogWriter();
  }
  // The last segment has several batches, too.
  for (let i = 0; i < 4; i++) {
    machine.commit(4);
    machine.round();
  }
  return machine;
}

interface Outcome {
  readonly plan: RecoveryPlan | undefined;
  readonly damage: readonly Damage[];
}

/** Recovers from a disk. What it gives must be a state that the store has had. */
function outcomeOf(machine: Machine, disk: FaultyFiles): Outcome {
  try {
    const { store, plan } = rebuildStore(disk);
    try {
      expectState(store.memory, machine.model.after(plan.epoch));
    } finally {
      store.dispose();
    }
    return { plan, damage: plan.damage };
  } catch (error) {
    if (!(error instanceof SituError) || error.code !== "SITU_CORRUPT") throw error;
    const damage = error.cause as readonly Damage[];
    expect(error.message).toContain(`${damage[0].file}, byte ${damage[0].offset}`);
    return { plan: undefined, damage };
  }
}

function isAll(machine: Machine, { plan }: Outcome): boolean {
  return plan !== undefined && plan.epoch >= machine.model.lastCommit();
}

function namesOf(disk: FaultyFiles): string[] {
  return ["log", "checkpoints"].flatMap((folder) =>
    disk.list(folder).map((name) => `${folder}/${name}`),
  );
}

function bytesOf(disk: FaultyFiles, name: string): number {
  const file = disk.open(name, true);
  const bytes = file.size();
  file.close();
  return bytes;
}

/** Where batches end in the last segment, if its writer did not close it. */
function usedBytesOf(machine: Machine, name: string): number {
  const { plan } = outcomeOf(machine, machine.files.settled());
  const last = plan!.batches.at(-1)!;
  return last.file === name ? last.payloadAt + last.payloadBytes : bytesOf(machine.files, name);
}

describe.each(["closed in good order", "left by a writer that was killed"])("a log %s", (how) => {
  const isClosed = how === "closed in good order";
  let machine: Machine;

  beforeAll(() => {
    machine = worked(SEED);
    if (isClosed) machine.endLogWriter();
    machine.files.before = undefined;
  });

  afterAll(() => machine.dispose());

  test("is what the test needs", () => {
    expect(listCheckpoints(machine.files).sound.length).toBeGreaterThanOrEqual(2);
    const whole = outcomeOf(machine, machine.files.settled());
    expect(isAll(machine, whole)).toBe(true);
    expect(whole.damage).toEqual([]);
    expect(new Set(whole.plan?.batches.map(({ file }) => file)).size).toBeGreaterThan(2);
  });

  test("flipped bit in the middle: told with file and offset, or not needed", () => {
    const random = new Random(SEED);
    const seen = { told: 0, unneeded: 0, cut: 0 };
    const { chain, batches } = outcomeOf(machine, machine.files.settled()).plan!;
    const last = batches.at(-1)!;
    const loaded = new Set(chain.map(({ name }) => name));
    for (const name of namesOf(machine.files)) {
      const used = usedBytesOf(machine, name);
      for (let i = 0; i < FLIPS_PER_FILE; i++) {
        const offset = random.below(i % 3 === 0 ? Math.min(used, HEAD_BYTES) : used);
        const disk = machine.files.settled();
        disk.flipBit(name, offset, random.below(8));
        const outcome = outcomeOf(machine, disk);
        const where = `bit flipped in ${name} at ${offset}`;
        if (isAll(machine, outcome)) {
          seen.unneeded++;
          // Damage of a checkpoint that would be used is told, also if there is another.
          const isTold = outcome.damage.some(({ file }) => file === name);
          expect(isTold || !loaded.has(name), where).toBe(true);
        } else if (outcome.plan === undefined) {
          seen.told++;
          const [{ file, offset: place }] = outcome.damage;
          expect(file, where).toBe(name);
          expect(place, where).toBeLessThanOrEqual(offset);
        } else {
          // In the last batch: it looks like one that was being written when its writer was killed.
          seen.cut++;
          expect(isClosed, where).toBe(false);
          expect(outcome.plan.cut, where).toMatchObject({ file: last.file, offset: last.offset });
          expect([name, offset >= last.offset], where).toEqual([last.file, true]);
        }
      }
    }
    expect(seen.told).toBeGreaterThan(20);
    expect(seen.unneeded).toBeGreaterThan(20);
    expect(seen.cut > 0).toBe(!isClosed);
  });

  test("flipped bit in the newest checkpoint: the one before it serves", () => {
    const [{ name, bytes }, older] = listCheckpoints(machine.files).sound;
    expect(older.kind).toBe("full");
    const random = new Random(SEED);
    for (let i = 0; i < FLIPS_PER_FILE; i++) {
      const disk = machine.files.settled();
      disk.flipBit(name, random.below(bytes), random.below(8));
      const outcome = outcomeOf(machine, disk);
      expect(isAll(machine, outcome)).toBe(true);
      expect(outcome.plan?.chain.at(-1)?.name).toBe(older.name);
      expect(outcome.damage.map(({ file }) => file)).toContain(name);
    }
  });

  test("missing segment: named, or not needed", () => {
    const plan = outcomeOf(machine, machine.files.settled()).plan!;
    const needed = new Set(plan.batches.map(({ file }) => file));
    // Without the record of its end, a log that ends too early could not be told from a whole one.
    needed.add("log/end");
    let told = 0;
    for (const name of machine.files.list("log").map((short) => `log/${short}`)) {
      const disk = machine.files.settled();
      disk.remove(name);
      const outcome = outcomeOf(machine, disk);
      if (!needed.has(name)) {
        expect(isAll(machine, outcome), `${name} is missing`).toBe(true);
      } else {
        told++;
        expect(outcome.plan).toBeUndefined();
        expect(outcome.damage[0]).toMatchObject({ file: name, offset: 0 });
      }
    }
    expect(told).toBeGreaterThan(0);
  });

  test("a checkpoint that is missing: an older one serves, or what is not there is named", () => {
    for (const { name } of listCheckpoints(machine.files).sound) {
      const disk = machine.files.settled();
      disk.remove(name);
      const outcome = outcomeOf(machine, disk);
      if (!isAll(machine, outcome)) expect(outcome.plan).toBeUndefined();
    }
    const disk = machine.files.settled();
    for (const short of disk.list("checkpoints")) disk.remove(`checkpoints/${short}`);
    const { plan, damage } = outcomeOf(machine, disk);
    expect(plan).toBeUndefined();
    expect(damage[0].what).toMatch(/the log begins after epoch/);
  });

  test("checkpoint and log that do not match: a log that ends before its checkpoint", () => {
    const [{ name, logEpoch }] = listCheckpoints(machine.files).sound;
    const plan = outcomeOf(machine, machine.files.settled()).plan!;
    const end = plan.batches.findIndex(({ last }) => last >= logEpoch);
    const { file, offset } = plan.batches[end];
    const disk = machine.files.settled();
    const later = disk.list("log").filter((short) => short !== "end" && `log/${short}` > file);
    for (const short of later) disk.remove(`log/${short}`);
    disk.spoil(file, offset, new Uint8Array(bytesOf(disk, file) - offset));
    const outcome = outcomeOf(machine, disk);
    expect(outcome.plan).toBeUndefined();
    // A segment that was closed tells it itself, or the checkpoint, or the record of the log's end names
    // the last segment that was begun: one that is made ahead of need may lie behind it.
    const { number } = readLogEnd(machine.files) as LogEnd;
    expect([file, name, segmentName(number)]).toContain(outcome.damage[0].file);
  });

  test("checkpoint and log that do not match: a checkpoint without a log", () => {
    const disk = machine.files.settled();
    for (const short of disk.list("log")) disk.remove(`log/${short}`);
    const { plan, damage } = outcomeOf(machine, disk);
    expect(plan).toBeUndefined();
    expect(damage[0]).toMatchObject({ file: "log/0000000001.log", what: "the log is missing" });
  });

  test("checkpoint and log that do not match: those of another store", () => {
    const [first] = machine.files.list("log");
    const refused = (): unknown => planRecovery(machine.files.settled(), "f".repeat(24));
    expect(refused).toThrow(`log/${first}, byte 0: it is a segment of another store`);
  });
});

test("torn tail: cut at the checksum, told with file and offset, and the log goes on behind it", () => {
  let cuts = 0;
  for (let seed = 1; seed <= 25; seed++) {
    const machine = worked(seed);
    try {
      const { random, model } = machine;
      machine.work.allocate(machine.executors[0], 1, 3_000);
      const durable = machine.durableEpoch;
      machine.crashAt(1, "power", "write");
      machine.round();
      const disk = machine.files.powerLoss(random);
      const { plan, damage } = outcomeOf(machine, disk.settled());
      expect(damage).toEqual([]);
      if (plan?.cut !== undefined) {
        cuts++;
        const last = plan.batches.at(-1)!;
        const end = last.payloadAt + Math.ceil(last.payloadBytes / 8) * 8;
        expect(plan.cut).toMatchObject({ file: last.file, offset: end });
      }
      const next = Machine.recover(random, disk, model, durable);
      next.commit(3);
      next.round();
      const state = outcomeOf(next, next.files.settled());
      expect(isAll(next, state)).toBe(true);
      next.dispose();
    } finally {
      machine.dispose();
    }
  }
  expect(cuts).toBeGreaterThan(3);
});
