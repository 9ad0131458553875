/** The writer: where it puts batches, when it moves on, and what it does when the disk fails. */

import { describe, expect, test } from "vitest";
import type { Fault } from "../../simulation/disk/faults.ts";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { StoreFiles } from "../../src/folder/files.ts";
import { NodeFiles } from "../../src/folder/node-files.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { listSegments, nextSegment, segmentName } from "../../src/log/segments/segments.ts";
import { LogWriter, mayPass } from "../../src/log/segments/writer.ts";
import { AssertionError } from "../../src/runtime/assert.ts";
import { HEAD_BYTES, SEGMENT_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  appendTo,
  batchOf,
  expectPrefix,
  expectWords,
  identity,
  takeOver,
  withFolder,
  wordsBetween,
} from "../helpers/disk.ts";

const withCode = (code: string) => expect.objectContaining({ code });
const SMALL = 8_192;
/** The record of the log's end. */
const END_BYTES = 8_192;

/** Appends one epoch after the other until a new segment has begun. */
function fill(writer: LogWriter): void {
  const { number } = writer.position;
  while (writer.position.number === number) {
    appendTo(writer, writer.lastEpoch + 1);
    writer.sync();
  }
}

const sizes = (files: StoreFiles): number[] => listSegments(files).map(({ bytes }) => bytes);

describe("in good order", () => {
  test.each<[string, (use: (files: StoreFiles) => void) => void]>([
    ["the file system", (use) => withFolder((folder) => use(new NodeFiles(folder)))],
    ["the simulated disk", (use) => use(new FaultyFiles())],
  ])("what is appended is read back, on %s", (_, withDisk) => {
    withDisk((files) => {
      const writer = new LogWriter(files, identity, 1, 0, 123);
      expect(writer.position).toEqual({ number: 1, bytes: HEAD_BYTES });
      expect(sizes(files)).toEqual([SEGMENT_BYTES]);
      const bytes = appendTo(writer, 4);
      expect(bytes).toBe(48 + Math.ceil(wordsBetween(0, 4).length / 2) * 8);
      expect(writer.position).toEqual({ number: 1, bytes: HEAD_BYTES + bytes });
      writer.sync();
      appendTo(writer, 90);
      writer.sync();
      writer.sync();
      expect(writer.lastEpoch).toBe(90);
      expect(expectPrefix(files, 90).batches.map(({ last }) => last)).toEqual([4, 90]);
      writer.close();
      expect(sizes(files)).toEqual([writer.position.bytes]);
      const scan = expectPrefix(files, 90);
      expect(scan.segments[0].head).toEqual({
        format: 1,
        ...identity,
        number: 1,
        afterEpoch: 0,
        createdMs: 123,
        bytes: SEGMENT_BYTES,
      });
    });
  });

  test("a segment that is full is left, and has the length that was used", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, SMALL);
    for (let i = 0; i < 5; i++) fill(writer);
    const scan = expectPrefix(files, writer.lastEpoch);
    expect(scan.segments.map(({ number }) => number)).toEqual([1, 2, 3, 4, 5, 6]);
    for (const { bytes, number } of scan.segments.slice(0, 5)) {
      expect(bytes).toBeLessThanOrEqual(SMALL);
      const last = scan.batches.findLast((batch) => batch.number === number);
      expect(scan.segments[number].head.afterEpoch).toBe(last?.last);
    }
    expect(scan.segments[5].bytes).toBe(SMALL);
  });

  test("a batch that no segment holds gets one of its size", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, SMALL);
    appendTo(writer, 1);
    const bytes = appendTo(writer, 300);
    expect(bytes).toBeGreaterThan(SMALL);
    appendTo(writer, 301);
    writer.sync();
    expect(sizes(files).slice(1)).toEqual([HEAD_BYTES + bytes, SMALL]);
    expectPrefix(files, 301);
  });

  test("an empty batch says that nothing was written up to an epoch", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, SMALL);
    expect(writer.append({ after: 0, last: 9, records: 0, closedMs: 1 }, [])).toBe(48);
    writer.sync();
    expect(scanLog(files, 0)).toMatchObject({ lastEpoch: 9, damage: [], cut: undefined });
  });

  test("the next segment is made ahead of need, and taken without making one", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, SMALL);
    writer.prepare();
    expect(sizes(files)).toEqual([SMALL]);
    while (writer.position.bytes < SMALL / 2) appendTo(writer, writer.lastEpoch + 1);
    writer.prepare();
    writer.prepare();
    expect(sizes(files)).toEqual([SMALL, SMALL]);
    expect(expectPrefix(files, 0).unfinished).toEqual([segmentName(2)]);
    const kinds: string[] = [];
    files.before = ({ kind }) => kinds.push(kind);
    fill(writer);
    expect(kinds).not.toContain("create");
    expect(kinds).not.toContain("syncFolder");
    expect(writer.position.number).toBe(2);
    expect(expectPrefix(files, writer.lastEpoch).unfinished).toEqual([]);
  });

  test("a segment that was made ahead gives way to a larger one, and goes at the end", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, SMALL);
    while (writer.position.bytes < SMALL / 2) appendTo(writer, writer.lastEpoch + 1);
    writer.prepare();
    appendTo(writer, writer.lastEpoch + 300);
    writer.sync();
    expect(sizes(files)[1]).toBeGreaterThan(SMALL);
    writer.prepare();
    expect(sizes(files).length).toBe(3);
    writer.close();
    expect(sizes(files).length).toBe(2);
    expectPrefix(files, writer.lastEpoch);
  });

  test("a successor counts a dead writer's batches up to what was published", () => {
    const files = new FaultyFiles();
    const dead = takeOver(files, 0, SMALL);
    appendTo(dead, 5);
    dead.sync();
    appendTo(dead, 9);
    dead.prepare();
    const writer = takeOver(files, 5, SMALL);
    expect(writer.position.number).toBe(2);
    expect(scanLog(files, 0).lastEpoch).toBe(5);
    appendTo(writer, 12);
    writer.sync();
    const scan = expectPrefix(files, 12);
    expect(scan.batches.map(({ number, after, last }) => [number, after, last])).toEqual([
      [1, 0, 5],
      [2, 5, 12],
    ]);
  });

  test("a segment that was begun after what was published is void as a whole", () => {
    const files = new FaultyFiles();
    const dead = takeOver(files, 0, SMALL);
    appendTo(dead, 5);
    dead.sync();
    fill(dead);
    fill(dead);
    const writer = takeOver(files, 5, SMALL);
    expect(writer.position.number).toBe(4);
    expect(expectPrefix(files, 5).lastEpoch).toBe(5);
    appendTo(writer, 7);
    writer.sync();
    expect(expectPrefix(files, 7).batches.map(({ number }) => number)).toEqual([1, 4]);
    expect(scanLog(files, 5).batches.map(({ number }) => number)).toEqual([4]);
  });

  test("a successor syncs what was read, before it builds upon it", () => {
    const files = new FaultyFiles();
    const dead = takeOver(files, 0, SMALL);
    appendTo(dead, 5);
    // All processes have died, the machine has not: the batch is found, and only in the cache.
    const found = files.settled();
    expect(expectPrefix(found, 5).lastEpoch).toBe(5);
    takeOver(files, 5, SMALL);
    for (let seed = 1; seed < 50; seed++) expectPrefix(files.powerLoss(new Random(seed)), 5);
  });

  test("a file that somebody was making is made anew", () => {
    const files = new FaultyFiles();
    const dead = takeOver(files, 0, SMALL);
    while (dead.position.bytes < SMALL / 2) appendTo(dead, dead.lastEpoch + 1);
    dead.sync();
    dead.prepare();
    expect(nextSegment(files)).toBe(2);
    const writer = takeOver(files, dead.lastEpoch, SMALL);
    appendTo(writer, writer.lastEpoch + 2);
    writer.sync();
    expect(expectPrefix(files, writer.lastEpoch).segments.length).toBe(2);
  });

  test("misuse is an assertion", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 4, SMALL);
    expect(() => writer.append(batchOf(3, 5).content, [])).toThrow(AssertionError);
    expect(() => writer.append(batchOf(4, 4).content, [])).toThrow(AssertionError);
    expect(() => writer.append(batchOf(4, 5).content, [new Uint8Array(3)])).toThrow(RangeError);
    writer.close();
    writer.close();
    expect(() => appendTo(writer, 5)).toThrow(AssertionError);
  });
});

describe("a full disk", () => {
  test("the same batch, or a larger one, is taken when there is room", () => {
    for (const on of ["write", "create"] as const) {
      for (const isLarger of [false, true]) {
        const files = new FaultyFiles();
        const writer = takeOver(files, 0, SMALL);
        let resumed = 0;
        while (writer.position.number < 4) {
          const { position, lastEpoch } = writer;
          files.forgive();
          const at = files.operations + 1;
          files.fail({ kind: "short", on: "write", at });
          files.fail({ kind: "ENOSPC", on, at: on === "write" ? at + 1 : at });
          try {
            appendTo(writer, lastEpoch + 1);
          } catch (error) {
            expect(error).toEqual(withCode("ENOSPC"));
            expect(mayPass(error)).toBe(true);
            // Moved on, perhaps, and if so to a segment that is fit for use; nothing was taken.
            expect(writer.lastEpoch).toBe(lastEpoch);
            expect([position.number, position.number + 1]).toContain(writer.position.number);
            expectPrefix(files, lastEpoch);
            files.forgive();
            resumed++;
            appendTo(writer, lastEpoch + (isLarger ? 30 : 1));
          }
          writer.sync();
        }
        expect(resumed).toBeGreaterThan(1);
        expect(writer.failure).toBe(undefined);
        expectPrefix(files, writer.lastEpoch);
      }
    }
  });

  test("no room for the next segment leaves the writer where it is", () => {
    const files = new FaultyFiles({ capacityBytes: SMALL + END_BYTES + 100 });
    const writer = takeOver(files, 0, SMALL);
    expect(() => fill(writer)).toThrow(withCode("ENOSPC"));
    const { position, lastEpoch } = writer;
    expect(position.number).toBe(1);
    expect(() => writer.prepare()).toThrow(withCode("ENOSPC"));
    expect(() => appendTo(writer, lastEpoch + 1)).toThrow(withCode("ENOSPC"));
    expect(() => appendTo(writer, lastEpoch + 900)).toThrow(withCode("ENOSPC"));
    expect(writer.position).toEqual(position);
    expect(sizes(files)).toEqual([SMALL]);
    expectPrefix(files.powerLoss(new Random(3)), lastEpoch);
    files.capacityBytes = 1 << 20;
    fill(writer);
    expectPrefix(files, writer.lastEpoch);
  });

  test("no room for a first segment leaves nothing", () => {
    const files = new FaultyFiles({ capacityBytes: 100 });
    expect(() => takeOver(files, 0, SMALL)).toThrow(withCode("ENOSPC"));
    files.capacityBytes = SMALL;
    expect(() => takeOver(files, 0, SMALL)).toThrow(withCode("ENOSPC"));
    expect(files.list("log")).toEqual([]);
    files.capacityBytes = SMALL + END_BYTES;
    files.fail({ kind: "ENOSPC", on: "write" });
    expect(() => takeOver(files, 0, SMALL)).toThrow(withCode("ENOSPC"));
    expect(files.list("log")).toEqual([]);
    appendTo(takeOver(files, 0, SMALL), 3);
    expectPrefix(files, 3);
  });
});

describe("a disk that fails is not written any more", () => {
  const cases: [string, Fault][] = [
    ["a write", { kind: "EIO", on: "write" }],
    ["a sync", { kind: "EIO", on: "sync" }],
    ["a sync for want of room", { kind: "ENOSPC", on: "sync" }],
  ];
  test.each(cases)("after %s that failed", (_, fault) => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, SMALL);
    appendTo(writer, 3);
    writer.sync();
    files.fail(fault);
    const attempt = (work: () => void): unknown => {
      try {
        work();
        return undefined;
      } catch (error) {
        return error;
      }
    };
    const first = attempt(() => {
      appendTo(writer, 5);
      writer.sync();
    });
    expect(first).toEqual(withCode("EIO"));
    expect(mayPass(first)).toBe(false);
    expect(writer.failure).toBe(first);
    const { operations } = files;
    expect(attempt(() => appendTo(writer, writer.lastEpoch + 1))).toBe(first);
    expect(attempt(() => writer.sync())).toBe(first);
    expect(attempt(() => writer.prepare())).toBe(first);
    writer.close();
    expect(files.operations).toBe(operations);
    for (let seed = 1; seed < 20; seed++) expectPrefix(files.powerLoss(new Random(seed)), 3);
  });

  test("at any operation of a rotation, and the log before it is whole", () => {
    let failures = 0;
    for (const isPrepared of [false, true]) {
      for (let operation = 1; ; operation++) {
        const files = new FaultyFiles();
        const writer = takeOver(files, 0, SMALL);
        while (writer.position.bytes < SMALL - 2_000) {
          appendTo(writer, writer.lastEpoch + 1);
          writer.sync();
        }
        if (isPrepared) writer.prepare();
        const acknowledged = writer.lastEpoch;
        files.fail({ kind: "EIO", at: files.operations + operation });
        try {
          appendTo(writer, acknowledged + 60);
          writer.sync();
        } catch (error) {
          failures++;
          expect(error).toEqual(withCode("EIO"));
          expect(writer.failure).toBe(error);
          expect(() => writer.sync()).toThrow(error as Error);
          expect(() => writer.append(batchOf(writer.lastEpoch, 900).content, [])).toThrow(
            error as Error,
          );
          writer.close();
          for (let seed = 1; seed < 20; seed++) {
            expectPrefix(files.powerLoss(new Random(seed)), acknowledged);
          }
          const scan = scanLog(files, 0);
          expect(scan.damage).toEqual([]);
          expectWords(files, scan);
          continue;
        }
        break;
      }
    }
    expect(failures).toBeGreaterThan(8);
  });
});
