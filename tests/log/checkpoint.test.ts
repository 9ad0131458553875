/** The files of checkpoints: what is written is read back, and nothing else is believed. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import type { Damage, StoreFile } from "../../src/folder/files.ts";
import { changedBytes } from "../../src/log/checkpoint/changes.ts";
import {
  CHECKPOINTS_FOLDER,
  checkpointName,
  QUIET,
  TRAILER_BYTES,
} from "../../src/log/checkpoint/format.ts";
import {
  Checkpoint,
  type CheckpointInfo,
  chainOf,
  listCheckpoints,
} from "../../src/log/checkpoint/reader.ts";
import { CheckpointWriter, removeUnfinished } from "../../src/log/checkpoint/writer.ts";
import { isDamage } from "../../src/log/head.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { MemoryFiles } from "../helpers/memory-files.ts";
import { CATALOGUE, LOG_ID, NARROW, RecoveryStore } from "../helpers/recovery-store.ts";

describe("a checkpoint", () => {
  let store: RecoveryStore;
  let executor: Executor;

  beforeEach(() => {
    store = new RecoveryStore();
    executor = store.store.open();
  });

  afterEach(() => store.dispose());

  /** Objects of 40 bytes, then arrays of four; each word has the same value. */
  function fill(objects: number, arrays: number, value: number): { word: number }[] {
    return transact(executor, (tx) => {
      const { set } = tx;
      const made: { word: number }[] = [];
      for (let i = 0; i < objects; i++) {
        const entry = tx.allocate(40);
        set.arena.i32.fill(value, set.bufferOf(entry), set.bufferOf(entry) + 10);
        made.push({ word: set.wordOf(entry) });
      }
      for (let i = 0; i < arrays; i++) tx.allocateArray(4, 40);
      return made;
    });
  }

  function update(word: number, value: number): void {
    transact(executor, (tx) => {
      const entry = tx.open(executor.memory.region(0), word);
      const at = tx.writable(entry, 10);
      tx.set.arena.i32[at + 1] = value;
      tx.set.markDirty(entry, 1, 2);
    });
  }

  function infoOf(name: string): CheckpointInfo {
    return listCheckpoints(store.files).sound.find((one) => one.name === name)!;
  }

  test("says what it is", () => {
    fill(100, 3, 7);
    store.flush(executor);
    const before = executor.epochs.current();
    const name = store.checkpoint(executor, false);
    const info = infoOf(name);
    expect(info).toMatchObject({
      name: checkpointName(info.startEpoch, "full"),
      kind: "full",
      base: null,
      logId: LOG_ID,
      geometry: NARROW,
      catalogue: CATALOGUE,
      bytes: store.files.bytesOf(name).length,
    });
    expect(info.startEpoch).toBe(before);
    expect(info.endEpoch).toBeGreaterThan(before);
    // Nothing was committed since, so that the log need not reach further than it does.
    expect(info.logEpoch).toBeLessThan(before);
    expect(info.closedMs).toBeGreaterThan(0);
    const opened = store.openCheckpoint(name);
    expect(opened.info).toEqual(info);
    expect(opened.chunks).toBe(2);
    expect(opened.verify()).toEqual([]);
    opened.close();
  });

  test("has an end epoch that covers all that was committed while it was taken", () => {
    const [object] = fill(1, 0, 7);
    const writer = store.begin(executor, false);
    update(object.word, 8);
    const during = executor.epochs.current();
    while (writer.step());
    expect(writer.end()).toBeGreaterThanOrEqual(during);
    store.flush(executor);
    const { startEpoch, endEpoch, logEpoch } = writer.publish();
    expect(startEpoch).toBeLessThan(during);
    expect(endEpoch).toBeGreaterThanOrEqual(during);
    expect(logEpoch).toBe(endEpoch);
  });

  test("of one who is alone needs no log", () => {
    fill(1, 0, 7);
    const writer = store.begin(executor, false);
    while (writer.step());
    writer.end();
    expect(writer.publish(QUIET).logEpoch).toBe(QUIET);
  });

  test("of an empty store is one, too", () => {
    const name = store.checkpoint(executor, false);
    const opened = store.openCheckpoint(name);
    expect([opened.entries, opened.chunks]).toEqual([0, 0]);
    opened.close();
    store.recover(name).dispose();
  });

  test("is not there before it is published, and leaves nothing when it is given up", () => {
    fill(100, 3, 7);
    const writer = store.begin(executor, false);
    while (writer.step());
    writer.end();
    expect(listCheckpoints(store.files)).toEqual({ sound: [], damaged: [] });
    expect(store.files.list(CHECKPOINTS_FOLDER)).toHaveLength(1);
    writer.abandon();
    expect(store.files.list(CHECKPOINTS_FOLDER)).toEqual([]);
  });

  test("that was cut short is removed by the next, and nothing else is", () => {
    const name = store.checkpoint(executor, false);
    store.begin(executor, false).step();
    expect(store.files.list(CHECKPOINTS_FOLDER)).toHaveLength(2);
    removeUnfinished(store.files);
    expect(store.files.list(CHECKPOINTS_FOLDER)).toEqual([name.split("/")[1]]);
  });

  test("can be given up before it is begun, and after a failed write", () => {
    fill(100, 3, 7);
    class FullFiles extends MemoryFiles {
      override create(name: string, bytes: number): StoreFile {
        const file = super.create(name, bytes);
        let writes = 0;
        file.write = (parts, at) => {
          if (++writes > 1) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
          return Object.getPrototypeOf(file).write.call(file, parts, at);
        };
        return file;
      }
    }
    const files = new FullFiles();
    const options = { logId: LOG_ID, catalogue: CATALOGUE };
    new CheckpointWriter(executor, files, options).abandon();
    const writer = new CheckpointWriter(executor, files, options);
    writer.begin(executor.mark());
    while (writer.step());
    expect(() => writer.end()).toThrow("ENOSPC");
    writer.abandon();
    expect(files.list(CHECKPOINTS_FOLDER)).toEqual([]);
  });

  describe("that builds on another", () => {
    test("has what has changed since, by object and by element", () => {
      const objects = fill(1_000, 20, 7);
      store.flush(executor);
      const full = store.checkpoint(executor, false);
      const untouched = store.checkpoint(executor, true);
      expect(store.openCheckpoint(untouched).chunks).toBe(0);
      update(objects[500].word, 8);
      store.flush(executor);
      const delta = store.checkpoint(executor, true);
      const opened = store.openCheckpoint(delta);
      expect(opened.chunks).toBe(1);
      const chunk = [...Array(opened.entries).keys()].find((at) => opened.chunkBytesOf(at) > 0)!;
      // A header of 32 bytes, one cell of 64 bytes, one run of 8.
      expect(opened.chunkBytesOf(chunk)).toBe(32 + 64 + 8);
      expect(infoOf(delta)).toMatchObject({ kind: "delta", base: infoOf(untouched).startEpoch });
      const chain = chainOf(listCheckpoints(store.files).sound, infoOf(delta)) as CheckpointInfo[];
      expect(chain.map(({ name }) => name)).toEqual([full, untouched, delta]);
      opened.close();
    });

    test("costs what changedBytes foretells", () => {
      const objects = fill(1_000, 20, 7);
      store.flush(executor);
      const full = infoOf(store.checkpoint(executor, false));
      for (let i = 0; i < 100; i++) update(objects[10 * i].word, 8);
      store.flush(executor);
      const { changed, total } = changedBytes(executor, full.startEpoch);
      expect(changed).toBe(100 * (64 + 8));
      const delta = infoOf(store.checkpoint(executor, true));
      const frame = HEAD_BYTES + TRAILER_BYTES + 2 * 40;
      expect(delta.bytes).toBe(frame + 32 + changed);
      expect(full.bytes).toBe(frame + 2 * 32 + total);
    });

    test("estimates what changedBytes does not look at", () => {
      const geometry = { ...NARROW, regionBytes: 4 * NARROW.regionBytes };
      const large = new RecoveryStore(geometry);
      try {
        const other = large.store.open();
        for (let i = 0; i < 50; i++) {
          transact(other, (tx) => tx.allocate(130_000));
          large.flush(other);
        }
        const whole = changedBytes(other, 0);
        const some = changedBytes(other, 0, 3);
        expect(whole.total).toBeGreaterThan(50 * 130_000);
        expect(whole.changed).toBe(whole.total);
        expect(some.total / whole.total).toBeGreaterThan(0.5);
        expect(some.total / whole.total).toBeLessThan(2);
      } finally {
        large.dispose();
      }
    });

    test("is no good without the other, or with that of another log", () => {
      fill(10, 1, 7);
      store.flush(executor);
      const full = infoOf(store.checkpoint(executor, false));
      const first = infoOf(store.checkpoint(executor, true));
      const second = infoOf(store.checkpoint(executor, true));
      expect(chainOf([second, first, full], second)).toEqual([full, first, second]);
      const broken = chainOf([second, full], second) as Damage;
      expect(broken.file).toBe(second.name);
      expect(broken.what).toContain(`epoch ${first.startEpoch}`);
      const foreign = { ...first, logId: "another" };
      expect(isDamage(chainOf([second, foreign, full], second))).toBe(true);
    });
  });

  describe("that is damaged", () => {
    let name: string;
    let bytes: Uint8Array;

    beforeEach(() => {
      fill(60, 3, 7);
      transact(executor, (tx) => tx.allocate(9_000));
      store.flush(executor);
      name = store.checkpoint(executor, false);
      bytes = store.files.bytesOf(name);
    });

    /** What a reader of everything finds. */
    function damage(): Damage[] {
      const opened = Checkpoint.open(store.files, name);
      if (isDamage(opened)) return [opened];
      try {
        return opened.verify();
      } finally {
        opened.close();
      }
    }

    test("is sound as long as it is not", () => {
      expect(damage()).toEqual([]);
    });

    test("in any bit is reported, with the file and a place in it", () => {
      const random = new Random(1);
      const places = new Set<number>();
      for (let at = 0; at < HEAD_BYTES + 200; at++) places.add(at);
      for (let at = bytes.length - 600; at < bytes.length; at++) places.add(at);
      for (let i = 0; i < 2_000; i++) places.add(random.below(bytes.length));
      for (const at of places) {
        const bit = 1 << random.below(8);
        bytes[at] ^= bit;
        const found = damage();
        bytes[at] ^= bit;
        expect(found, `byte ${at}`).toHaveLength(1);
        expect(found[0].file).toBe(name);
        expect(found[0].offset).toBeGreaterThanOrEqual(0);
        expect(found[0].offset).toBeLessThanOrEqual(bytes.length);
      }
      expect(damage()).toEqual([]);
    });

    test("and cannot be read is told with the place", () => {
      const open = store.files.open.bind(store.files);
      for (const from of [0, HEAD_BYTES, bytes.length - TRAILER_BYTES]) {
        store.files.open = (one) => {
          const file = open(one);
          const read = file.read.bind(file);
          file.read = (into, at) => {
            if (at < from) return read(into, at);
            throw Object.assign(new Error("EIO: i/o error, read"), { code: "EIO" });
          };
          return file;
        };
        const found = damage();
        expect(found.length, `from byte ${from}`).toBeGreaterThan(0);
        expect(found[0].file).toBe(name);
      }
    });

    test("in a chunk is told with the chunk's place, and never loaded", () => {
      const opened = store.openCheckpoint(name);
      const [first] = [...Array(opened.entries).keys()].filter((at) => opened.chunkBytesOf(at) > 0);
      const place = HEAD_BYTES;
      expect(opened.chunkBytesOf(first)).toBeGreaterThan(100);
      bytes[place + 100] ^= 1;
      expect(damage()).toEqual([
        { file: name, offset: place, what: "the checksum of a chunk is wrong" },
      ]);
      expect(() => store.recover(name)).toThrow("the checksum of a chunk is wrong");
      opened.close();
    });

    test("by being cut or lengthened anywhere is reported", () => {
      const file = store.files.open(name);
      const whole = bytes.slice();
      const lengths = [0, 1, 8, 500, HEAD_BYTES, HEAD_BYTES + 63, HEAD_BYTES + 64, HEAD_BYTES + 65];
      for (let short = 1; short < 200; short += 7) lengths.push(whole.length - short);
      lengths.push(whole.length + 8, whole.length + 64);
      for (const length of lengths) {
        file.truncate(length);
        expect(damage(), `${length} bytes`).toHaveLength(1);
        expect(listCheckpoints(store.files).sound, `${length} bytes`).toEqual([]);
        file.write([whole], 0);
        file.truncate(whole.length);
      }
      expect(damage()).toEqual([]);
      file.close();
    });

    test("or bears another's name is not taken for it", () => {
      const info = infoOf(name);
      const other = checkpointName(info.startEpoch + 1, "full");
      store.files.rename(name, other);
      const { sound, damaged } = listCheckpoints(store.files);
      expect(sound).toEqual([]);
      expect(damaged).toEqual([
        { file: other, offset: 0, what: "it was renamed: its head says otherwise" },
      ]);
    });

    test("does not hide the sound ones", () => {
      update(16 * 3, 9);
      store.flush(executor);
      const second = store.checkpoint(executor, false);
      bytes[20] ^= 1;
      const { sound, damaged } = listCheckpoints(store.files);
      expect(sound.map((one) => one.name)).toEqual([second]);
      expect(damaged.map(({ file }) => file)).toEqual([name]);
    });
  });

  test("is refused by a store with regions of another size", () => {
    fill(10, 1, 7);
    store.flush(executor);
    const name = store.checkpoint(executor, false);
    const other = new RecoveryStore({ ...NARROW, regionBytes: 2 * NARROW.regionBytes });
    try {
      other.files.create(name, 0).write([store.files.bytesOf(name)], 0);
      expect(() => other.recover(name)).toThrow("regions of another size");
    } finally {
      other.dispose();
    }
  });
});
