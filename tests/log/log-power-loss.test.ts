/**
 * Thousands of crashes under the writer of the log, at any operation, and of what was not synced any
 * part lost. After each: what was told to be on disk is there, what is there is a whole prefix of
 * epochs, and nothing is called damage. Then the log goes on from what was found.
 *
 */

import { describe, expect, test } from "vitest";
import { PowerLost } from "../../simulation/disk/faults.ts";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { segmentsBefore } from "../../src/log/segments/segments.ts";
import { type LogWriter, mayPass } from "../../src/log/segments/writer.ts";
import { Random } from "../../src/runtime/random.ts";
import { appendTo, expectPrefix, takeOver } from "../helpers/disk.ts";
import { forSeeds, SOAK } from "../helpers/seed.ts";

interface Run {
  readonly random: Random;
  disk: FaultyFiles;
  /** The last epoch that was told to be on disk. */
  acknowledged: number;
}

/** Segments of a few batches, so that there is much of what happens seldom. */
function segmentBytes(random: Random): number {
  return 2_048 + 512 * random.below(12);
}

/** One batch; it counts when the sync has returned. */
function writeBatch(run: Run, writer: LogWriter): void {
  const { random } = run;
  const epochs = random.below(12) === 0 ? 60 + random.below(60) : 1 + random.below(5);
  appendTo(writer, writer.lastEpoch + epochs);
  // Now and then the writer is left to sync a batch when the next one comes.
  if (random.below(8) === 0) return;
  writer.sync();
  run.acknowledged = writer.lastEpoch;
  if (random.below(2) === 0) writer.prepare();
}

/** A writer after the other, as processes come and go, until the power fails. */
function writeUntilPowerLoss(run: Run): void {
  const { random } = run;
  for (;;) {
    const writer = takeOver(run.disk, run.acknowledged, segmentBytes(random));
    for (let left = random.below(40); left > 0; left--) writeBatch(run, writer);
    // It closes the log, or dies; in its last batch, perhaps, which then is void.
    const death = random.below(3);
    if (death === 0) {
      writer.close();
      run.acknowledged = writer.lastEpoch;
    } else if (death === 1) {
      appendTo(writer, writer.lastEpoch + 1 + random.below(3));
      if (random.below(2) === 0) writer.sync();
    }
  }
}

function expectPowerLoss(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (error instanceof PowerLost) return;
    throw error;
  }
  expect.unreachable();
}

function newRun(seed: number, capacityBytes = Number.POSITIVE_INFINITY): Run {
  const random = new Random(seed * 7919);
  const blockBytes = seed % 2 === 0 ? 512 : 4_096;
  const disk = new FaultyFiles({ seed, blockBytes, capacityBytes });
  return { random, disk, acknowledged: 0 };
}

describe("after a power loss the log is a whole prefix, with all that was acknowledged", () => {
  test("at any operation, again and again", () => {
    let cuts = 0;
    let losses = 0;
    let beyond = 0;
    forSeeds(400 * SOAK, 1, (seed) => {
      const run = newRun(seed);
      for (let generation = 0; generation < 3; generation++) {
        run.disk.fail({ kind: "power", at: 1 + run.random.below(150) });
        expectPowerLoss(() => writeUntilPowerLoss(run));
        run.disk = run.disk.powerLoss(run.random);
        const scan = expectPrefix(run.disk, run.acknowledged);
        losses++;
        if (scan.cut !== undefined) cuts++;
        if (scan.lastEpoch > run.acknowledged) beyond++;
        // What was found is what there is: nobody may see it go again.
        run.acknowledged = scan.lastEpoch;
      }
    });
    // The dice must have brought about what this is about.
    expect(losses).toBe(1_200 * SOAK);
    expect(cuts).toBeGreaterThan(50);
    expect(beyond).toBeGreaterThan(50);
  });

  test("with short writes, and at the first operations of a log", () => {
    forSeeds(100 * SOAK, 10_000, (seed) => {
      const run = newRun(seed);
      run.disk.fail({ kind: "short", times: 1_000 });
      run.disk.fail({ kind: "power", at: 1 + (seed % 20) });
      expectPowerLoss(() => writeUntilPowerLoss(run));
      run.disk = run.disk.powerLoss(run.random);
      expectPrefix(run.disk, run.acknowledged);
    });
  });

  test("of the same moment, in many ways", () => {
    forSeeds(20, 20_000, (seed) => {
      const run = newRun(seed);
      run.disk.fail({ kind: "power", at: 20 + run.random.below(60) });
      expectPowerLoss(() => writeUntilPowerLoss(run));
      for (let way = 1; way <= 40; way++) {
        expectPrefix(run.disk.powerLoss(new Random(seed + way * 104_729)), run.acknowledged);
      }
    });
  });
});

test("after a crash of the program alone all that was written is there, and soon lasting", () => {
  let beyond = 0;
  forSeeds(100 * SOAK, 30_000, (seed) => {
    const run = newRun(seed);
    const { disk, random } = run;
    const crashAt = 1 + random.below(150);
    disk.before = ({ number }) => {
      if (number === crashAt) throw new PowerLost(number);
    };
    expectPowerLoss(() => writeUntilPowerLoss(run));
    const scan = expectPrefix(disk, run.acknowledged);
    if (scan.lastEpoch > run.acknowledged) beyond++;
    // A successor builds on what it has found in the cache: that must be on disk by then.
    takeOver(disk, scan.lastEpoch);
    expectPrefix(disk.powerLoss(random), scan.lastEpoch);
  });
  expect(beyond).toBeGreaterThan(10);
});

test("segments that are removed may come back, and do no harm", () => {
  forSeeds(100 * SOAK, 40_000, (seed) => {
    const run = newRun(seed);
    const { disk, random } = run;
    const writer = takeOver(disk, 0, 2_048);
    for (let i = 0; i < 40; i++) {
      appendTo(writer, writer.lastEpoch + 1 + random.below(4));
      writer.sync();
    }
    const from = random.below(writer.lastEpoch);
    const names = segmentsBefore(disk, from);
    for (const name of names.slice(0, random.below(names.length + 1))) disk.remove(name);
    const found = disk.powerLoss(random);
    expect(scanLog(found, from)).toMatchObject({ damage: [], lastEpoch: writer.lastEpoch });
  });
});

test("a full disk: the batch is tried again when there is room, also across a power loss", () => {
  let refusals = 0;
  forSeeds(100 * SOAK, 50_000, (seed) => {
    const run = newRun(seed, 12_000);
    const { random } = run;
    run.disk.fail({ kind: "power", at: 60 + random.below(150) });
    for (let i = 0; i < 6; i++) {
      const at = 5 + random.below(150);
      run.disk.fail({ kind: random.below(2) === 0 ? "short" : "ENOSPC", on: "write", at });
      run.disk.fail({ kind: "ENOSPC", on: "create", at: 5 + random.below(150) });
    }
    let writer: LogWriter | undefined;
    expectPowerLoss(() => {
      for (;;) {
        try {
          writer ??= takeOver(run.disk, run.acknowledged, segmentBytes(random));
          writeBatch(run, writer);
        } catch (error) {
          if (!mayPass(error)) throw error;
          refusals++;
          expect(writer?.failure).toBe(undefined);
          if (random.below(2) === 0) run.disk.capacityBytes += 8_192;
        }
      }
    });
    expectPrefix(run.disk.powerLoss(random), run.acknowledged);
  });
  expect(refusals).toBeGreaterThan(300);
});

test("a disk that fails: nothing is acknowledged after it, and what was is there", () => {
  let failures = 0;
  forSeeds(200 * SOAK, 60_000, (seed) => {
    const run = newRun(seed);
    const { random } = run;
    const on = (["write", "sync", "syncFolder", "create", "truncate"] as const)[random.below(5)];
    const writer = takeOver(run.disk, 0, segmentBytes(random));
    run.disk.fail({ kind: "EIO", on, at: run.disk.operations + random.below(100) });
    let failure: unknown;
    for (let i = 0; i < 80; i++) {
      const { acknowledged } = run;
      try {
        writeBatch(run, writer);
        expect(failure).toBe(undefined);
      } catch (error) {
        failure ??= error;
        expect(error).toBe(failure);
        expect(error).toMatchObject({ code: "EIO" });
        expect(run.acknowledged).toBe(Math.max(acknowledged, run.acknowledged));
      }
    }
    if (failure !== undefined) failures++;
    writer.close();
    expectPrefix(run.disk, run.acknowledged);
    expectPrefix(run.disk.powerLoss(random), run.acknowledged);
  });
  expect(failures).toBeGreaterThan(120);
});
