/** Verifying and inspecting the files of a store: sound ones, and each kind of damage. */

import { crc32 } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Damage } from "../../src/folder/files.ts";
import { listCheckpoints } from "../../src/log/checkpoint/reader.ts";
import { encodeBatchHeader, saltOf } from "../../src/log/segments/format.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import type { LogBatch } from "../../src/log/segments/segment-reader.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { inspectCheckpoint, inspectSegment } from "../../src/tools/files/inspect.ts";
import { decodeRecords, recordsFault } from "../../src/tools/files/records.ts";
import { verifyFiles } from "../../src/tools/files/verify.ts";
import { identity } from "../helpers/disk.ts";
import { LOG_ID, LoggedStore } from "../helpers/logged-files.ts";
import { MemoryFiles } from "../helpers/memory-files.ts";
import { fixedSeed } from "../helpers/seed.ts";
import { failureSync } from "../helpers/store.ts";

const seed = fixedSeed();

let store: LoggedStore;
beforeEach(() => {
  store = new LoggedStore(seed);
});
afterEach(() => store.dispose());

/** Checkpoints of both kinds, and segments that were left in both ways. */
function history(): void {
  store.rounds(3);
  store.busyCheckpoint();
  store.rounds(2);
  store.die();
  store.rounds(2);
  store.checkpoint();
  store.handOver();
  store.rounds(2);
  store.checkpoint();
  store.rounds(1);
}

const batches = (): readonly LogBatch[] => scanLog(store.files, 0).batches;

async function expectDamage(...expected: readonly Partial<Damage>[]): Promise<void> {
  const found = await verifyFiles(store.files, { logId: LOG_ID });
  expect(found.damage).toMatchObject(expected as Damage[]);
}

describe("sound files", () => {
  test("give no damage", async () => {
    history();
    const found = await verifyFiles(store.files, { logId: LOG_ID });
    expect(found).toMatchObject({
      segments: store.segments.length,
      batches: batches().length,
      cut: undefined,
      damage: [],
      aside: [],
      unfinished: [],
      recovery: { epoch: store.written.at(-1)!.epoch },
    });
    expect(found.checkpoints).toHaveLength(3);
    expect(found.recovery!.checkpoints.length).toBeGreaterThan(0);
    expect(found.records).toBe(batches().reduce((sum, { records }) => sum + records, 0));
  });

  test("also where the oldest log has been removed", async () => {
    for (let i = 0; i < 5; i++) {
      store.rounds(2);
      store.checkpoint(0);
      store.handOver();
    }
    store.rounds(1);
    expect(store.segments[0]).not.toBe("log/0000000001.log");
    expect(await verifyFiles(store.files)).toMatchObject({ damage: [], aside: [] });
  });

  test("tell what was cut short, and what is unfinished, which is no damage", async () => {
    history();
    const last = batches().at(-1)!;
    const torn = last.payloadAt + last.payloadBytes + 8 - (last.payloadBytes % 8);
    store.files.bytesOf(last.file).fill(7, torn, torn + 100);
    store.files.create("checkpoints/0000000000009999.full.new", 5);
    store.files.create("log/0000000099.log", 4096);
    const found = await verifyFiles(store.files);
    expect(found.damage).toEqual([]);
    expect(found.cut).toMatchObject({ file: last.file });
    expect(found.unfinished).toEqual([
      "log/0000000099.log",
      "checkpoints/0000000000009999.full.new",
    ]);
  });

  test("an empty folder is no store", async () => {
    const found = await verifyFiles(new MemoryFiles());
    expect(found).toMatchObject({ segments: 0, damage: [], recovery: undefined });
  });

  test("it ends when it is told to", async () => {
    history();
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(verifyFiles(store.files, { signal })).rejects.toThrow("enough");
  });
});

describe("damage", () => {
  test("every byte of a checkpoint is looked at", async () => {
    history();
    const { sound } = listCheckpoints(store.files);
    const random = new Random(seed);
    for (const { name, bytes: length } of sound) {
      const bytes = store.files.bytesOf(name);
      for (let i = 0; i < 25; i++) {
        const at = random.below(length);
        const bit = 1 << random.below(8);
        bytes[at] ^= bit;
        const { damage, recovery } = await verifyFiles(store.files);
        expect(
          damage.some(({ file }) => file === name),
          `byte ${at} of ${name}`,
        ).toBe(true);
        // Another one serves.
        expect(recovery, `byte ${at} of ${name}`).toBeDefined();
        bytes[at] ^= bit;
      }
    }
    expect((await verifyFiles(store.files)).damage).toEqual([]);
  });

  test("every byte of a batch is looked at", async () => {
    history();
    const random = new Random(seed);
    for (const batch of batches()) {
      const bytes = store.files.bytesOf(batch.file);
      for (const length of [40, 48 + batch.payloadBytes]) {
        const at = batch.offset + random.below(length);
        bytes[at] ^= 16;
        const { damage, aside, cut } = await verifyFiles(store.files);
        const isTold = [...damage, ...aside, cut].some(
          (each) => each?.file === batch.file && each.offset === batch.offset,
        );
        expect(isTold, `byte ${at} of ${batch.file}`).toBe(true);
        bytes[at] ^= 16;
      }
    }
  });

  test("several places are all told", async () => {
    history();
    const all = batches().filter(
      ({ after }) => after >= listCheckpoints(store.files).sound.at(-1)!.startEpoch,
    );
    const hurt = [all[1], all[3]];
    for (const { file, payloadAt } of hurt) store.files.bytesOf(file)[payloadAt + 1] ^= 1;
    const { damage } = await verifyFiles(store.files);
    const places = damage.map(({ file, offset }) => `${file} ${offset}`);
    for (const { file, offset } of hurt) expect(places).toContain(`${file} ${offset}`);
    // Each is told once.
    expect(new Set(places).size).toBe(places.length);
  });

  test("a segment that is missing", async () => {
    history();
    const [, second] = store.segments;
    store.files.remove(second);
    const found = await verifyFiles(store.files);
    expect(found.damage).toMatchObject([{ file: second, what: "the segment is missing" }]);
  });

  test("a segment whose head is unreadable", async () => {
    history();
    const [, second] = store.segments;
    store.files.bytesOf(second)[20] ^= 1;
    const { damage } = await verifyFiles(store.files);
    expect(damage).toMatchObject([{ file: second, what: expect.stringContaining("head") }]);
  });

  test("a checkpoint that others build on is missing", async () => {
    store.rounds(30);
    const full = store.checkpoint();
    store.rounds(1);
    const delta = store.checkpoint();
    expect([full.kind, delta.kind]).toEqual(["full", "delta"]);
    store.files.remove(full.name);
    await expectDamage({ file: delta.name, what: expect.stringContaining("damaged or missing") });
  });

  test("a log that ends before its checkpoint", async () => {
    store.rounds(2);
    store.handOver();
    const { name } = store.busyCheckpoint();
    store.files.bytesOf(store.segments.at(-1)!).fill(0, HEAD_BYTES);
    await expectDamage({ file: name, what: expect.stringMatching(/the log ends with epoch \d+/) });
  });

  test("a log of another store", async () => {
    history();
    const found = await verifyFiles(store.files, { logId: "of another store" });
    const names = found.damage.map(({ file }) => file);
    expect(names).toEqual(expect.arrayContaining(store.segments));
    expect(names).toContain(listCheckpoints(store.files).sound[0].name);
    expect(found.recovery).toBeUndefined();
  });

  test("in a part that is not needed is told aside", async () => {
    store.rounds(3);
    store.handOver();
    store.rounds(1);
    store.checkpoint();
    store.rounds(1);
    const [first] = batches();
    store.files.bytesOf(first.file)[first.payloadAt] ^= 1;
    const found = await verifyFiles(store.files);
    expect(found.damage).toEqual([]);
    expect(found.aside).toMatchObject([{ file: first.file, offset: first.offset }]);
  });
});

describe("records that make no sense", () => {
  /** Replaces the payload of a batch, with right checksums. */
  function forge(
    batch: LogBatch,
    change: (words: Int32Array) => Int32Array | { records: number },
  ): void {
    const bytes = store.files.bytesOf(batch.file);
    const payload = bytes.slice(batch.payloadAt, batch.payloadAt + batch.payloadBytes);
    const changed = change(new Int32Array(payload.buffer));
    const { records } = changed instanceof Int32Array ? batch : changed;
    const header = Buffer.alloc(48);
    const content = { ...batch, records, payloadCrc: crc32(payload) };
    encodeBatchHeader(header, content, saltOf(LOG_ID));
    bytes.set(header, batch.offset);
    bytes.set(payload, batch.payloadAt);
  }

  /** Changes one word of a payload. */
  const set = (at: number, change: (word: number) => number) => (words: Int32Array) => {
    words[at] = change(words[at]);
    return words;
  };

  test.each([
    ["a length", set(0, () => 2), /its record 0 has 2 words/],
    ["a length", set(0, () => 1 << 20), /words, and \d+ are left/],
    ["an epoch", set(2, () => 77), /its record 0 is of epoch 3\d{5}/],
    ["objects", set(1, (word) => word + 1), /object|ends within/],
    ["objects", set(1, (word) => word - 1), /its \d+ objects end at word/],
    ["a region", set(4, (word) => word | 0xff), /object 0: it lies in region/],
    ["a class", set(4, (word) => word | 0x7fff0000), /its size class is/],
    ["a place", set(5, () => -8), /object 0: its words .* are nowhere/],
    ["a place", set(5, () => 1 << 29), /object 0: its words/],
    ["a first word", set(7, () => -1), /object 0: its words/],
    ["a number of words", set(8, () => -1), /object 0: its words/],
    ["records", () => ({ records: 99 }), /it has \d records, its header says 99/],
  ])("%s", async (_, change, expected) => {
    store.rounds(2);
    const batch = batches()[1];
    forge(batch, change);
    await expectDamage({
      file: batch.file,
      offset: batch.offset,
      what: expect.stringMatching(expected),
    });
    const { damage } = inspectSegment(store.files, batch.file, { records: true });
    expect(damage).toMatchObject([{ offset: batch.offset }]);
  });

  test("records of one slot in the wrong order", () => {
    const content = { after: 0, last: 100, records: 2, closedMs: 0 };
    const record = (epoch: number): number[] => [4, 0, 0, epoch << 20];
    const geometry = identity.geometry;
    const fault = (...epochs: number[]): string | undefined =>
      recordsFault(Int32Array.from(epochs.flatMap(record)), content, geometry);
    expect(fault(5, 6)).toBeUndefined();
    expect(fault(6, 5)).toMatch(/its record 1 of slot 0 is not later than the one before it/);
    expect(fault(6, 6)).toMatch(/not later/);
  });
});

describe("inspecting", () => {
  test("a segment", () => {
    store.rounds(3);
    const [name] = store.segments;
    const found = inspectSegment(store.files, name);
    expect(JSON.parse(JSON.stringify(found))).toEqual(found);
    const all = batches();
    expect(found).toMatchObject({
      name,
      head: { number: 1, afterEpoch: 0, logId: LOG_ID },
      firstEpoch: 0,
      lastEpoch: all.at(-1)!.last,
      end: "zeroes",
      damage: [],
    });
    expect(found.batches.map(({ offset, lastEpoch }) => [offset, lastEpoch])).toEqual(
      all.map(({ offset, last }) => [offset, last]),
    );
    expect(found.batches[0].closedAt).toBe(new Date(all[0].closedMs).toISOString());
    expect(found.batches[0].transactions).toBeUndefined();
    store.handOver();
    expect(inspectSegment(store.files, name).end).toBe("nothing");
  });

  test("the records of a segment", () => {
    store.rounds(20);
    const [name] = store.segments;
    const found = inspectSegment(store.files, name, { records: true });
    expect(JSON.parse(JSON.stringify(found))).toEqual(found);
    for (const { afterEpoch, lastEpoch, records, transactions, bytes } of found.batches) {
      expect(transactions).toHaveLength(records);
      let sum = 0;
      for (const { tid, objects, bytes: size } of transactions!) {
        expect(tid.epoch).toBeGreaterThan(afterEpoch);
        expect(tid.epoch).toBeLessThanOrEqual(lastEpoch);
        expect(tid.slot).toBe(0);
        expect(objects.length).toBeGreaterThan(0);
        sum += size;
      }
      expect(sum + 48).toBe(bytes);
    }
    const objects = found.batches
      .flatMap(({ transactions }) => transactions!)
      .flatMap((one) => one.objects);
    // Rows are made, changed and freed.
    expect(objects.some(({ cellBytes }) => cellBytes !== null)).toBe(true);
    expect(objects.some(({ cellBytes }) => cellBytes === null)).toBe(true);
    expect(objects.some(({ isFreed }) => isFreed)).toBe(true);
    expect(decodeRecords(new Int32Array(0))).toEqual([]);
  });

  test("a segment that is damaged", () => {
    store.rounds(4);
    const [name] = store.segments;
    const all = batches();
    store.files.bytesOf(name)[all[1].payloadAt] ^= 1;
    const found = inspectSegment(store.files, name, { records: true });
    expect(found.damage).toMatchObject([{ file: name, offset: all[1].offset }]);
    expect(found.batches).toHaveLength(all.length - 1);
    store.files.bytesOf(name)[3] ^= 1;
    const headless = inspectSegment(store.files, name, { records: true });
    expect(headless.head).toBeNull();
    expect(headless.damage[0]).toMatchObject({ file: name, offset: 0 });
  });

  test("a checkpoint", () => {
    store.rounds(30);
    const full = store.checkpoint();
    store.rounds(1);
    const delta = store.checkpoint();
    const found = inspectCheckpoint(store.files, full.name);
    expect(JSON.parse(JSON.stringify(found))).toEqual(found);
    expect(found).toMatchObject({
      name: full.name,
      kind: "full",
      base: null,
      startEpoch: full.startEpoch,
      bytes: full.bytes,
      otherBlocks: 0,
      damage: [],
    });
    const upon = inspectCheckpoint(store.files, delta.name, { blocks: true });
    expect(upon).toMatchObject({ kind: "delta", base: full.startEpoch, damage: [] });
    if ("offset" in upon || "offset" in found) throw new Error("both are sound");
    expect(upon.blocks!.filter(({ bytes }) => bytes > 0)).toHaveLength(upon.writtenBlocks);
    expect(upon.bytes).toBeLessThan(found.bytes);
    const sum = found.sizes.reduce((all, { blocks }) => all + blocks, 0);
    expect(sum).toBe(found.writtenBlocks);
  });

  test("a checkpoint that is damaged", () => {
    store.rounds(3);
    const { name } = store.checkpoint();
    const bytes = store.files.bytesOf(name);
    bytes[HEAD_BYTES + 60] ^= 1;
    expect(inspectCheckpoint(store.files, name)).toMatchObject({
      kind: "full",
      damage: [{ file: name, what: "the checksum of a chunk is wrong" }],
    });
    bytes[bytes.length - 5] ^= 1;
    expect(inspectCheckpoint(store.files, name)).toMatchObject({ file: name });
  });

  test("what is not there", () => {
    store.rounds(1);
    failureSync("SITU_CONFIG", () => inspectSegment(store.files, "log/0000000009.log"));
    failureSync("SITU_CONFIG", () => inspectCheckpoint(store.files, "checkpoints/1.full"));
  });
});
