/**
 * docs/FAULTS.md, "Disk": every kind of damage under the reader of the log. A torn end is cut; all else is
 * told with its file and place, and nothing behind it is read.
 */

import { describe, expect, test } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import type { Damage } from "../../src/folder/files.ts";
import { type LogScan, scanLog } from "../../src/log/segments/reader.ts";
import { endOf, type LogBatch } from "../../src/log/segments/segment-reader.ts";
import { encodeSegmentHead, segmentName } from "../../src/log/segments/segments.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import {
  appendTo,
  bytesIn,
  copyFile,
  expectPrefix,
  expectWords,
  identity,
  takeOver,
} from "../helpers/disk.ts";

const BYTES = 4_096;

/** A log of three segments, the last one half full; its writer is killed, or closes it. */
function log(end: "killed" | "closed" = "killed"): { files: FaultyFiles; batches: LogBatch[] } {
  const files = new FaultyFiles();
  const writer = takeOver(files, 0, BYTES);
  while (writer.position.number < 3 || writer.position.bytes < BYTES / 2) {
    appendTo(writer, writer.lastEpoch + 2);
    writer.sync();
  }
  if (end === "closed") writer.close();
  return { files, batches: [...expectPrefix(files, writer.lastEpoch).batches] };
}

const inSegment = (batches: LogBatch[], number: number): LogBatch[] =>
  batches.filter((batch) => batch.number === number);

/** Damage at this batch: those before it are read, and no other. */
function expectDamageAt(files: FaultyFiles, batch: LogBatch, scan: LogScan = scanLog(files, 0)) {
  const { file, offset } = batch;
  expect(scan.damage).toEqual([expect.objectContaining({ file, offset })]);
  expect(scan.cut).toBe(undefined);
  expect(scan.lastEpoch).toBe(batch.after);
  expectWords(files, scan);
}

function expectCutAt(files: FaultyFiles, batch: LogBatch): void {
  const scan = scanLog(files, 0);
  expect(scan.damage).toEqual([]);
  expect(scan.cut).toMatchObject({ file: batch.file, offset: batch.offset });
  expect(scan.lastEpoch).toBe(batch.after);
  expectWords(files, scan);
}

/** A few places in a batch: all of its header, and some of its payload. */
function placesIn({ offset, payloadAt, payloadBytes }: LogBatch): number[] {
  const places: number[] = [];
  for (let at = offset; at < payloadAt; at++) places.push(at);
  for (let at = payloadAt; at < payloadAt + payloadBytes; at += 13) places.push(at);
  places.push(payloadAt + payloadBytes - 1);
  return places;
}

describe("the end of the log", () => {
  test("is cut at a batch of which any part is missing", () => {
    const { files, batches } = log();
    const last = batches[batches.length - 1];
    const bytes = bytesIn(files, last.file);
    const end = last.payloadAt + last.payloadBytes;
    for (let from = last.offset + 1; from < end; from++) {
      const torn = files.settled();
      torn.spoil(last.file, from, new Uint8Array(end - from));
      // A batch that ends in zeroes is whole without them.
      if (bytes.subarray(from, end).every((byte) => byte === 0)) expectPrefix(torn, last.last);
      else expectCutAt(torn, last);
    }
    files.spoil(last.file, last.offset, new Uint8Array(end - last.offset));
    expect(expectPrefix(files, last.after)).toMatchObject({
      lastEpoch: last.after,
      cut: undefined,
    });
  });

  test("is cut at a batch of which the beginning is missing", () => {
    const { files, batches } = log();
    const last = batches[batches.length - 1];
    files.spoil(last.file, last.offset, new Uint8Array(100));
    expectCutAt(files, last);
  });

  test("is cut at a flipped bit, if its writer was killed", () => {
    const { files, batches } = log();
    const last = batches[batches.length - 1];
    for (const at of placesIn(last)) {
      const flipped = files.settled();
      flipped.flipBit(last.file, at, at % 8);
      expectCutAt(flipped, last);
    }
  });

  test("is damaged by a flipped bit, if it was closed in good order", () => {
    const { files, batches } = log("closed");
    const last = batches[batches.length - 1];
    for (const at of placesIn(last)) {
      const flipped = files.settled();
      flipped.flipBit(last.file, at, at % 8);
      expectDamageAt(flipped, last);
    }
  });

  test("is damaged where somebody cut it short", () => {
    for (const end of ["closed", "killed"] as const) {
      const { files, batches } = log(end);
      const last = batches[batches.length - 1];
      files.open(last.file).truncate(endOf(last) - 9);
      expectDamageAt(files, last);
    }
  });

  test("garbage there is no data", () => {
    const { files, batches } = log();
    const last = batches[batches.length - 1];
    const garbage = Uint8Array.from({ length: 300 }, (_, i) => (i * 151) ^ (i >> 3));
    files.spoil(last.file, endOf(last), garbage);
    const scan = expectPrefix(files, last.last);
    expect(scan.cut).toMatchObject({ file: last.file, offset: endOf(last) });
  });

  test("stale batches there are no data: of this segment, of another, of another log", () => {
    const { files, batches } = log();
    const last = batches[batches.length - 1];
    const [own] = inSegment(batches, 3);
    const [earlier] = inSegment(batches, 1);
    const other = new FaultyFiles();
    const writer = new LogWriter(other, { ...identity, logId: "other" }, 3, last.last, 0, BYTES);
    appendTo(writer, last.last + 5);
    const foreign = { file: segmentName(3), offset: HEAD_BYTES, end: writer.position.bytes };
    const stale = [
      bytesIn(files, own.file).subarray(own.offset, endOf(own)),
      bytesIn(files, earlier.file).subarray(earlier.offset, endOf(earlier)),
      bytesIn(other, foreign.file).subarray(foreign.offset, foreign.end),
    ];
    for (const bytes of stale) {
      for (const distance of [0, 8, 400]) {
        const spoiled = files.settled();
        spoiled.spoil(last.file, endOf(last) + distance, bytes);
        const scan = expectPrefix(spoiled, last.last);
        expect(scan.lastEpoch).toBe(last.last);
        expect(scan.cut?.offset).toBe(endOf(last));
      }
    }
  });
});

describe("in the middle", () => {
  test("no flipped bit is passed over, in any segment", () => {
    const { files, batches } = log();
    for (const batch of batches.slice(0, -1)) {
      const places = placesIn(batch);
      for (let i = batch.last % 7; i < places.length; i += 7) {
        const flipped = files.settled();
        flipped.flipBit(batch.file, places[i], i % 8);
        expectDamageAt(flipped, batch);
      }
    }
  });

  test("zeroes, garbage, and the bytes of another batch", () => {
    const { files, batches } = log();
    for (const batch of batches.slice(0, -1)) {
      const bytes = endOf(batch) - batch.offset;
      const whole = bytesIn(files, batch.file);
      const next = whole.subarray(endOf(batch), endOf(batch) + bytes);
      const fillings = [new Uint8Array(bytes), new Uint8Array(bytes).fill(0xa5), next];
      for (const filling of fillings.filter(({ length }) => length > 0)) {
        const spoiled = files.settled();
        spoiled.spoil(batch.file, batch.offset, filling);
        expectDamageAt(spoiled, batch);
      }
    }
  });

  test("a missing segment is named", () => {
    const { files, batches } = log();
    files.remove(segmentName(2));
    const scan = scanLog(files, 0);
    expect(scan.damage).toEqual([
      { file: segmentName(2), offset: 0, what: "the segment is missing" },
    ]);
    expect(scan.batches).toEqual(inSegment(batches, 1));
    expectWords(files, scan);
  });

  test("a missing beginning is named, unless it is not needed", () => {
    const { files, batches } = log();
    const [second] = inSegment(batches, 2);
    files.remove(segmentName(1));
    const { damage } = scanLog(files, second.after - 1);
    expect(damage).toEqual([
      { file: segmentName(1), offset: 0, what: expect.stringContaining("begins after epoch") },
    ]);
    expect(scanLog(files, second.after)).toMatchObject({
      damage: [],
      lastEpoch: batches[batches.length - 1].last,
    });
  });

  test("a log that is not there at all", () => {
    expect(scanLog(new FaultyFiles(), 0)).toEqual({
      segments: [],
      unfinished: [],
      batches: [],
      lastEpoch: 0,
      cut: undefined,
      damage: [],
      aside: [],
    });
    expect(scanLog(new FaultyFiles(), 7).damage).toEqual([
      { file: segmentName(1), offset: 0, what: "the log is missing" },
    ]);
  });

  test("a gap between sound batches", () => {
    const { files, batches } = log();
    const [first, second, third] = inSegment(batches, 3);
    const bytes = bytesIn(files, second.file);
    // As if the second one had never been written, and the third in its place.
    files.spoil(second.file, second.offset, bytes.subarray(third.offset));
    expectDamageAt(files, second);
    expect(scanLog(files, 0).damage[0].what).toContain(`follows epoch ${third.after}`);
    expect(scanLog(files, 0).lastEpoch).toBe(first.last);
  });

  test("a batch that goes beyond the beginning of the next segment, and begins before it", () => {
    const { files, batches } = log();
    const [second] = inSegment(batches, 2);
    const number = 4;
    const afterEpoch = batches[batches.length - 1].last - 1;
    new LogWriter(files, identity, number, afterEpoch, 0, BYTES);
    expectDamageAt(files, batches[batches.length - 1]);
    expect(second.number).toBe(2);
  });
});

describe("heads", () => {
  test("a flipped bit in a head: told, or if no batch follows, a segment that never began", () => {
    const { files, batches } = log();
    for (const number of [1, 2, 3]) {
      for (const at of [0, 9, 13, 40]) {
        const flipped = files.settled();
        flipped.flipBit(segmentName(number), at, 1);
        const scan = scanLog(flipped, 0);
        expect(scan.damage).toEqual([expect.objectContaining({ file: segmentName(number) })]);
        expectWords(flipped, scan);
        expect(scan.lastEpoch).toBe(number === 1 ? 0 : inSegment(batches, number)[0].after);
      }
    }
  });

  test("a segment in the making is none, whatever is there of its head", () => {
    const { files, batches } = log();
    const { last } = batches[batches.length - 1];
    const head = encodeSegmentHead({
      ...identity,
      number: 4,
      afterEpoch: last,
      createdMs: 0,
      bytes: BYTES,
    });
    for (const [bytes, written] of [
      [0, 0],
      [BYTES, 0],
      [BYTES, 30],
      [100, 100],
    ] as const) {
      const begun = files.settled();
      begun.create(segmentName(4), bytes).write([head.subarray(0, written)], 0);
      const scan = expectPrefix(begun, last);
      expect(scan.unfinished).toEqual([segmentName(4)]);
      expect(scan.segments.length).toBe(3);
      expect(takeOver(begun, last, BYTES).position.number).toBe(4);
    }
    // With its head it is one, and empty.
    files.create(segmentName(4), BYTES).write([head], 0);
    expect(expectPrefix(files, last)).toMatchObject({ unfinished: [], lastEpoch: last });
  });

  test("a torn end before a segment in the making is still an end", () => {
    const { files, batches } = log();
    const last = batches[batches.length - 1];
    files.flipBit(last.file, last.payloadAt);
    files.create(segmentName(4), BYTES);
    expectCutAt(files, last);
  });

  test("segments that do not belong together", () => {
    const { files, batches } = log();
    const { last } = batches[batches.length - 1];
    const foreign = files.settled();
    new LogWriter(foreign, { ...identity, logId: "other" }, 4, last, 0, BYTES);
    expect(scanLog(foreign, 0).damage).toEqual([
      { file: segmentName(4), offset: 0, what: "it is a segment of another log" },
    ]);
    const renamed = files.settled();
    renamed.rename(segmentName(2), segmentName(4));
    expect(scanLog(renamed, 0).damage[0]).toMatchObject({ file: segmentName(2) });
    copyFile(files, renamed, segmentName(2));
    expect(scanLog(renamed, 0).damage[0]).toEqual({
      file: segmentName(4),
      offset: 0,
      what: "its head says that it is segment 2",
    });
  });
});

describe("damage in what is not needed", () => {
  test("is told aside, and what is needed is read", () => {
    const { files, batches } = log();
    const needed = inSegment(batches, 3).slice(2);
    const fromEpoch = needed[0].after;
    const spoiled = inSegment(batches, 3).slice(0, 2);
    const { last } = batches[batches.length - 1];
    for (const batch of spoiled) {
      for (const at of placesIn(batch)) {
        const flipped = files.settled();
        flipped.flipBit(batch.file, at, at % 8);
        const scan = scanLog(flipped, fromEpoch);
        const { file, offset } = batch;
        expect(scan).toMatchObject({ damage: [], lastEpoch: last, cut: undefined });
        expect(scan.aside).toEqual([expect.objectContaining({ file, offset })]);
        expectWords(flipped, scan, fromEpoch);
        expectDamageAt(flipped, batch);
      }
    }
    files.flipBit(segmentName(1), HEAD_BYTES + 1);
    files.remove(segmentName(2));
    expect(scanLog(files, fromEpoch)).toMatchObject({ damage: [], aside: [], lastEpoch: last });
  });

  test("is damage, if the epoch that is needed lies within it", () => {
    const { files, batches } = log();
    const [first, second] = inSegment(batches, 3);
    for (const at of placesIn(second)) {
      const flipped = files.settled();
      flipped.flipBit(second.file, at, at % 8);
      const scan = scanLog(flipped, second.after + 1);
      expect(scan.damage).toEqual([
        expect.objectContaining({ file: second.file, offset: second.offset }),
      ]);
      expect(scan.batches).toEqual([]);
      expect(scan.lastEpoch).toBe(first.last);
    }
  });
});

/** What a scan finds on a disk whose read of this number fails; nothing if the scan itself does. */
function scanned(files: FaultyFiles, at: number): { damage: readonly Damage[] } {
  const failing = files.settled();
  failing.fail({ kind: "EIO", on: "read", at });
  try {
    return scanLog(failing, 0);
  } catch {
    return { damage: [] };
  }
}

describe("a disk that cannot read", () => {
  test("says where, and nothing is taken for a torn end", () => {
    const { files } = log();
    let failures = 0;
    for (let at = 1; ; at++) {
      const failing = files.settled();
      failing.fail({ kind: "EIO", on: "read", at });
      try {
        expectPrefix(failing, 1);
        break;
      } catch (error) {
        failures++;
        // A head that cannot be read is damage of its segment; only who needs that fails for it.
        const { damage } = scanned(files, at);
        if (damage.length > 0) {
          expect(damage[0].what).toBe("the disk does not give it back");
          continue;
        }
        expect(error).toMatchObject({ code: "SITU_CORRUPT" });
        expect((error as Error).message).toMatch(
          /log\/000000000\d\.log cannot be read at byte \d+/,
        );
      }
    }
    expect(failures).toBeGreaterThan(5);
  });
});
