/**
 * Backups of running stores and restores to points in time: what was copied is recovered, and is
 * the state that the store had then.
 */

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { PowerLost } from "../../simulation/disk/faults.ts";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { StoreFile, StoreFiles } from "../../src/folder/files.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { listSegments, type SegmentHead } from "../../src/log/segments/segments.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { backupFiles, restoreFiles } from "../../src/tools/files/copy.ts";
import { verifyFiles } from "../../src/tools/files/verify.ts";
import {
  contentOf,
  fingerprintOf,
  LOG_ID,
  LoggedStore,
  recoverRows,
} from "../helpers/logged-files.ts";
import { MemoryFiles } from "../helpers/memory-files.ts";
import { fixedSeed } from "../helpers/seed.ts";

const seed = fixedSeed();

let store: LoggedStore;
beforeEach(() => {
  store = new LoggedStore(seed);
});
afterEach(() => store.dispose());

/** Copies of files, to be changed. */
function copied(files: MemoryFiles): MemoryFiles {
  const copy = new MemoryFiles();
  for (const [name, bytes] of contentOf(files)) copy.create(name, 0).write([bytes], 0);
  return copy;
}

async function refusal(code: string, work: Promise<unknown>): Promise<SituError> {
  const error = (await work.then(
    () => new Error("nothing was refused"),
    (thrown: unknown) => thrown,
  )) as SituError;
  expect(error.code, error.message).toBe(code);
  return error;
}

describe("a backup", () => {
  test("is the state at the end of the log", async () => {
    store.rounds(4);
    for (const takes of [false, true, true, true]) {
      if (takes) store.checkpoint();
      store.rounds(2);
      store.handOver();
      store.rounds(3);
      const before = fingerprintOf(store.files);
      const to = new MemoryFiles();
      const done = await backupFiles(store.files, to, { logId: LOG_ID });
      const last = store.written.at(-1)!;
      const closedMs = store.closedMs().get(last.epoch);
      expect(done).toMatchObject({ epoch: last.epoch, closedMs, logId: LOG_ID });
      expect(done.checkpoints.length > 0).toBe(takes);
      expect(await recoverRows(to)).toEqual({ epoch: last.epoch, rows: last.rows });
      expect(fingerprintOf(store.files)).toEqual(before);
      expect(await verifyFiles(to)).toMatchObject({ damage: [], aside: [], unfinished: [] });
      // Nothing but what counts: no room that is not used, no torn end.
      const files = [...contentOf(to)].filter(([name]) => name !== "log/end");
      expect(files.reduce((sum, [, bytes]) => sum + bytes.length, 0)).toBe(done.bytes);
      expect(files.map(([name]) => name).sort()).toEqual(
        [...done.checkpoints, ...done.segments].sort(),
      );
    }
  });

  test("of a store in which nothing happened since its checkpoint", async () => {
    store.rounds(3);
    store.checkpoint();
    const to = new MemoryFiles();
    const { epoch } = await backupFiles(store.files, to);
    const found = await recoverRows(to);
    expect(found.epoch).toBe(epoch);
    expect(found.rows).toEqual(store.written.at(-1)!.rows);
  });

  test("leaves out what a dead writer did not publish, and its room", async () => {
    store.rounds(2);
    const [name] = store.segments;
    const { batches } = scanLog(store.files, 0);
    store.die();
    // As if the dead one had written a batch without telling anybody.
    const end = batches.at(-1)!;
    const bytes = store.files.bytesOf(name);
    bytes.set(bytes.slice(end.offset, end.offset + 48), end.payloadAt + end.payloadBytes + 4);
    store.rounds(2);
    const to = new MemoryFiles();
    const done = await backupFiles(store.files, to);
    expect(done.segments).toHaveLength(2);
    expect(to.bytesOf(name).length).toBeLessThan(bytes.length);
    expect((await recoverRows(to)).rows).toEqual(store.written.at(-1)!.rows);
  });

  test("while the store goes on writing, and removes what it needs no more", async () => {
    for (let i = 0; i < 3; i++) {
      store.rounds(3);
      store.checkpoint(0);
    }
    let removed = 0;
    const busy: StoreFiles = {
      ...delegate(store.files),
      // At every file that is opened the store does something else.
      open(name: string): StoreFile {
        if (removed < 12) {
          removed++;
          store.rounds(1);
          store.handOver();
          if (removed % 3 === 0) store.checkpoint(0);
        }
        return store.files.open(name);
      },
    };
    const to = new MemoryFiles();
    const done = await backupFiles(busy, to);
    const found = await recoverRows(to);
    expect(found.epoch).toBe(done.epoch);
    expect(found.rows).toEqual(store.at(done.epoch).rows);
    expect(removed).toBe(12);
  });

  test("gives up if files keep vanishing", async () => {
    store.rounds(2);
    let opened = 0;
    const vanishing: StoreFiles = {
      ...delegate(store.files),
      open(name: string): StoreFile {
        if (++opened % 4 === 0) return new MemoryFiles().open(name);
        return store.files.open(name);
      },
    };
    const failed = backupFiles(vanishing, new MemoryFiles());
    await expect(failed).rejects.toMatchObject({ code: "ENOENT" });
    expect(opened).toBeGreaterThan(20);
  });

  test("takes an older checkpoint where the newest is damaged", async () => {
    store.rounds(3);
    const older = store.checkpoint();
    store.rounds(3);
    // A full one of its own, so that the older one is not part of it.
    const newer = store.checkpoint();
    store.rounds(3);
    const bytes = store.files.bytesOf(newer.name);
    bytes[HEAD_BYTES + 100] ^= 1;
    const to = new MemoryFiles();
    const done = await backupFiles(store.files, to);
    expect(done.checkpoints).toEqual([older.name]);
    expect(done.damage).toMatchObject([{ file: newer.name }]);
    expect((await recoverRows(to)).rows).toEqual(store.written.at(-1)!.rows);
  });

  test("refuses a log that is damaged", async () => {
    store.rounds(3);
    const { batches } = scanLog(store.files, 0);
    store.files.bytesOf(batches[1].file)[batches[1].payloadAt + 9] ^= 4;
    const to = new MemoryFiles();
    const error = await refusal("SITU_CORRUPT", backupFiles(store.files, to));
    expect(error.message).toContain(`${batches[1].file}, byte ${batches[1].offset}`);
    expect(contentOf(to).size).toBe(0);
  });

  test("refuses a log that ends before what its checkpoint has", async () => {
    store.rounds(3);
    store.checkpoint();
    store.handOver();
    const { name, startEpoch, endEpoch } = store.busyCheckpoint();
    expect(endEpoch).toBeGreaterThan(startEpoch);
    // The end of the log is gone, as if it had never been.
    const last = store.segments.at(-1)!;
    store.files.bytesOf(last).fill(0, HEAD_BYTES);
    const error = await refusal("SITU_CORRUPT", backupFiles(store.files, new MemoryFiles()));
    expect(error.message).toContain(`${name}, byte 0: the log ends with epoch`);
    expect((await verifyFiles(store.files)).damage).toMatchObject([{ file: name }]);
  });

  test("refuses a folder with something in it", async () => {
    store.rounds(1);
    const error = await refusal("SITU_CONFIG", backupFiles(store.files, store.files));
    expect(error.message).toContain("is not empty");
  });

  test("leaves nothing when its disk is full, or it is told to end", async () => {
    store.rounds(3);
    store.checkpoint();
    const to = new MemoryFiles();
    let room = 1;
    const full: StoreFiles = {
      ...delegate(to),
      create(name: string, bytes: number): StoreFile {
        if (room-- > 0) return to.create(name, bytes);
        throw Object.assign(new Error("no room"), { code: "ENOSPC" });
      },
    };
    const failed = backupFiles(store.files, full);
    await expect(failed).rejects.toMatchObject({ code: "ENOSPC" });
    expect(contentOf(to).size).toBe(0);
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(backupFiles(store.files, to, { signal })).rejects.toThrow("enough");
    expect(contentOf(to).size).toBe(0);
  });

  test("is on disk when it is done", async () => {
    store.rounds(4);
    store.checkpoint();
    store.rounds(2);
    const last = store.written.at(-1)!;
    for (let run = 0; run < 10; run++) {
      const disk = new FaultyFiles({ seed: seed + run });
      await backupFiles(store.files, disk);
      const found = disk.powerLoss(new Random(seed + run));
      expect((await recoverRows(found)).rows, `SITU_SEED=${seed}, run ${run}`).toEqual(last.rows);
    }
  });

  test("cut short by a power loss is nothing, or whole", async () => {
    store.rounds(4);
    store.checkpoint();
    store.rounds(2);
    const last = store.written.at(-1)!;
    let whole = 0;
    for (let at = 1; whole === 0; at++) {
      const disk = new FaultyFiles({ seed: seed + at });
      disk.fail({ kind: "power", at });
      const failed = await backupFiles(store.files, disk).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (failed !== undefined) expect(failed).toBeInstanceOf(PowerLost);
      const found = disk.powerLoss(new Random(seed + at));
      // Without a checkpoint the log alone is all, or not enough: never some of it as the whole.
      if (listCheckpoints(found).sound.length > 0) {
        expect((await recoverRows(found)).rows, `SITU_SEED=${seed}, at ${at}`).toEqual(last.rows);
      }
      if (failed === undefined) whole++;
    }
  });

  test("in a real folder", async () => {
    store.rounds(4);
    store.checkpoint();
    store.rounds(2);
    const folder = mkdtempSync(join(tmpdir(), "situ-backup-"));
    try {
      const done = await backupFiles(store.files, new NodeFiles(folder));
      expect(readdirSync(join(folder, "log"))).toHaveLength(done.segments.length + 1);
      const found = await recoverRows(new NodeFiles(folder));
      expect(found).toEqual({ epoch: done.epoch, rows: store.written.at(-1)!.rows });
      const again = new MemoryFiles();
      await restoreFiles(new NodeFiles(folder), again);
      expect((await recoverRows(again)).rows).toEqual(found.rows);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("finds that its disk does not keep what was written", async () => {
    store.rounds(3);
    store.checkpoint();
    const to = new MemoryFiles();
    const bad: StoreFiles = {
      ...delegate(to),
      rename(from: string, name: string): void {
        to.rename(from, name);
        to.bytesOf(name)[HEAD_BYTES + 50] ^= 1;
      },
    };
    const error = await refusal("SITU_CORRUPT", backupFiles(store.files, bad));
    expect(error.message).toContain("is not what was copied");
    expect(contentOf(to).size).toBe(0);
  });
});

describe("a restore", () => {
  /** A store with checkpoints of all kinds, batches between them, and several segments. */
  function history(random: Random): void {
    for (let i = 0; i < 6; i++) {
      store.rounds(1 + random.below(4));
      if (random.below(2) === 0) store.handOver();
      if (random.below(4) === 0) store.die();
      if (random.below(3) === 0) store.change();
      if (random.below(2) === 0) store.busyCheckpoint();
      else store.checkpoint();
    }
    store.rounds(3);
  }

  /** From here on there is a checkpoint, or the whole log. */
  function earliestEpoch(): number {
    const [first] = listSegments(store.files);
    const { afterEpoch } = first.head as SegmentHead;
    if (afterEpoch === 0) return store.written[0].epoch;
    const { sound } = listCheckpoints(store.files);
    const oldest = sound.findLast(({ startEpoch }) => startEpoch >= afterEpoch)!;
    const { startEpoch, logEpoch } = oldest;
    if (logEpoch <= startEpoch) return logEpoch;
    // Only whole batches are restored.
    return [...store.closedMs().keys()].find((epoch) => epoch >= logEpoch)!;
  }

  test("to every epoch there was, of many stores", async () => {
    for (let run = 0; run < 5; run++) {
      const what = `SITU_SEED=${seed}, run ${run}`;
      store.dispose();
      store = new LoggedStore(seed + run);
      history(new Random(seed + run));
      const earliest = earliestEpoch();
      const last = store.written.at(-1)!.epoch;
      for (let toEpoch = store.written[0].epoch; toEpoch <= last + 2; toEpoch++) {
        const to = new MemoryFiles();
        const restored = restoreFiles(store.files, to, { toEpoch, logId: LOG_ID });
        if (toEpoch < earliest) {
          await refusal("SITU_CONFIG", restored);
          continue;
        }
        const { epoch } = await restored;
        const found = await recoverRows(to);
        // A checkpoint without changes may be named for a later epoch, with the same rows.
        expect(found.epoch, `${what}, epoch ${toEpoch}`).toBe(epoch);
        expect(found.rows, `${what}, epoch ${toEpoch}`).toEqual(store.at(toEpoch).rows);
      }
    }
  });

  test("to points in time", async () => {
    history(new Random(seed + 1));
    const batches = store.closedMs();
    const earliest = earliestEpoch();
    const there = store.written.filter(({ epoch }) => epoch >= earliest);
    const times = new Set(there.map(({ epoch }) => batches.get(epoch)!));
    expect(times.size).toBeGreaterThan(5);
    for (const toMs of times) {
      const to = new MemoryFiles();
      const done = await restoreFiles(store.files, to, { toMs });
      const expected = there.findLast(({ epoch }) => batches.get(epoch)! <= toMs)!;
      expect((await recoverRows(to)).rows, `seed ${seed}`).toEqual(expected.rows);
      expect(done.closedMs).toBeLessThanOrEqual(toMs);
    }
    // In the future lies the end of the log.
    const to = new MemoryFiles();
    const done = await restoreFiles(store.files, to, { toMs: 8.64e15 });
    expect(done.epoch).toBeGreaterThanOrEqual(store.written.at(-1)!.epoch);
  });

  test("goes on from there, and can be restored again", async () => {
    history(new Random(seed + 2));
    const middle = store.at(earliestEpoch() + 5);
    const to = new MemoryFiles();
    await restoreFiles(store.files, to, { toEpoch: middle.epoch });
    const again = new MemoryFiles();
    await restoreFiles(to, again, {});
    expect((await recoverRows(again)).rows).toEqual(middle.rows);
    expect(await verifyFiles(again)).toMatchObject({ damage: [], aside: [] });
  });

  test("refuses a point before all that there is", async () => {
    store.rounds(2);
    store.checkpoint(0);
    store.handOver();
    store.rounds(2);
    store.checkpoint(0);
    store.handOver();
    store.rounds(2);
    store.checkpoint(0);
    store.rounds(1);
    const earliest = earliestEpoch();
    expect(earliest).toBeGreaterThan(store.written[0].epoch);
    const to = new MemoryFiles();
    const early = restoreFiles(store.files, to, { toEpoch: earliest - 1 });
    const error = await refusal("SITU_CONFIG", early);
    expect(error.message).toContain(`does not reach back to epoch ${earliest - 1}`);
    expect(error.message).toContain(`the earliest point is epoch ${earliest}`);
    const before = restoreFiles(store.files, to, { toMs: 1_000 });
    expect((await refusal("SITU_CONFIG", before)).message).toContain("1970-01-01T00:00:01.000Z");
    await restoreFiles(store.files, to, { toEpoch: earliest });
    expect((await recoverRows(to)).rows).toEqual(store.at(earliest).rows);
  });

  test("refuses a point behind damage, not one before it", async () => {
    store.rounds(3);
    store.checkpoint();
    store.rounds(6);
    const { batches } = scanLog(store.files, 0);
    const hurt = batches.at(-3)!;
    const damaged = copied(store.files);
    damaged.bytesOf(hurt.file)[hurt.payloadAt] ^= 1;
    for (const point of [{}, { toEpoch: hurt.last }, { toMs: 8e15 }]) {
      const refused = restoreFiles(damaged, new MemoryFiles(), point);
      const error = await refusal("SITU_CORRUPT", refused);
      expect(error.message).toContain(`${hurt.file}, byte ${hurt.offset}`);
    }
    const to = new MemoryFiles();
    const done = await restoreFiles(damaged, to, { toEpoch: hurt.last - 1 });
    expect(done.epoch).toBe(hurt.after);
    expect((await recoverRows(to)).rows).toEqual(store.at(hurt.after).rows);
  });

  test("a checkpoint behind the damage serves what comes after it", async () => {
    store.rounds(3);
    store.checkpoint();
    store.rounds(3);
    const { batches } = scanLog(store.files, 0);
    const hurt = batches.at(-1)!;
    store.rounds(1);
    store.checkpoint();
    store.handOver();
    store.rounds(2);
    store.files.bytesOf(hurt.file)[hurt.payloadAt] ^= 1;
    const to = new MemoryFiles();
    const done = await restoreFiles(store.files, to);
    expect(done.epoch).toBe(store.written.at(-1)!.epoch);
    expect((await recoverRows(to)).rows).toEqual(store.written.at(-1)!.rows);
    await refusal(
      "SITU_CORRUPT",
      restoreFiles(store.files, new MemoryFiles(), { toEpoch: hurt.last }),
    );
  });

  test("refuses what is no point, and a folder without a store", async () => {
    store.rounds(1);
    for (const bad of [{ toMs: Number.NaN }, { toEpoch: -1 }, { toMs: "now" as never }]) {
      await refusal("SITU_CONFIG", restoreFiles(store.files, new MemoryFiles(), bad));
    }
    const none = restoreFiles(new MemoryFiles(), new MemoryFiles());
    expect((await refusal("SITU_CORRUPT", none)).message).toContain("neither a log nor");
    const foreign = restoreFiles(store.files, new MemoryFiles(), { logId: "of another store" });
    expect((await refusal("SITU_CORRUPT", foreign)).message).toContain("another store");
  });
});

/** The calls of a disk, for one that does some of them otherwise. */
function delegate(files: MemoryFiles): StoreFiles {
  return {
    place: files.place,
    create: (name, bytes) => files.create(name, bytes),
    open: (name) => files.open(name),
    has: (name) => files.has(name),
    list: (folder) => files.list(folder),
    makeFolder: () => {},
    rename: (from, to) => files.rename(from, to),
    remove: (name) => files.remove(name),
    syncFolder: () => {},
  };
}
