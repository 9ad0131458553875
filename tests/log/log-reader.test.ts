/** The reader where nothing is damaged: what it leaves out, large batches, a log that grows. */

import { describe, expect, test } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { PayloadReader, readPayload } from "../../src/log/segments/payloads.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { endOf } from "../../src/log/segments/segment-reader.ts";
import { listSegments, segmentName, segmentsBefore } from "../../src/log/segments/segments.ts";
import { surveyLog } from "../../src/log/segments/survey.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  appendTo,
  expectBytes,
  expectPrefix,
  expectWords,
  identity,
  takeOver,
  wordsBetween,
  writeLog,
} from "../helpers/disk.ts";

const epochs = (count: number): number[] => Array.from({ length: count }, (_, i) => 3 * (i + 1));

describe("from an epoch on", () => {
  test("batches up to it are left out, the one that it lies within is not", () => {
    const files = new FaultyFiles();
    writeLog(files, epochs(100), 4_096);
    const all = expectPrefix(files, 300);
    expect(all.segments.length).toBeGreaterThan(5);
    for (let from = 0; from <= 310; from++) {
      const scan = scanLog(files, from);
      expect(scan.damage).toEqual([]);
      expect(scan.lastEpoch).toBe(300);
      expect(scan.batches).toEqual(all.batches.filter(({ last }) => last > from));
      expect(scan.segments).toEqual(all.segments);
    }
  });

  test("segments before it can go, and nothing is missed", () => {
    const files = new FaultyFiles();
    writeLog(files, epochs(100), 4_096);
    for (let from = 0; from <= 300; from += 20) {
      const before = scanLog(files, from);
      const names = segmentsBefore(files, from);
      if (from < 60) expect(names.length).toBeLessThan(4);
      // Any of them may come back, should the power fail now.
      for (const name of names.filter((_, i) => i % 2 === 0)) files.remove(name);
      expect(scanLog(files, from).damage).toEqual([]);
      for (const name of segmentsBefore(files, from)) files.remove(name);
      expect(segmentsBefore(files, from)).toEqual([]);
      expect(scanLog(files, from).batches).toEqual(before.batches);
    }
    expect(listSegments(files).length).toBe(1);
    expect(scanLog(files, 200).damage.length).toBe(1);
  });
});

describe("large batches", () => {
  const MIB = 1 << 20;
  const random = new Random(11);
  const payload = (bytes: number): Uint8Array => {
    const words = new Int32Array(bytes / 4);
    for (let i = 0; i < words.length; i++) words[i] = random.next();
    return new Uint8Array(words.buffer);
  };
  const sizes = [3 * MIB + 4, 8, MIB - 48, 4, 2 * MIB, MIB - 100, 52, 5 * MIB];
  const payloads = sizes.map(payload);

  function log(): FaultyFiles {
    const files = new FaultyFiles({ blockBytes: 4096 });
    const writer = new LogWriter(files, identity, 1, 0, 0, 16 * MIB);
    payloads.forEach((part, i) => {
      const half = Math.floor(part.length / 8) * 4;
      const parts = [part.subarray(0, half), part.subarray(half)];
      writer.append({ after: i, last: i + 1, records: 1, closedMs: i }, parts);
    });
    writer.sync();
    return files;
  }

  test("are read through a small window", () => {
    const files = log();
    const scan = scanLog(files, 0);
    expect(scan).toMatchObject({ damage: [], cut: undefined, lastEpoch: sizes.length });
    const reader = new PayloadReader(files);
    for (const order of [scan.batches, [...scan.batches].reverse()]) {
      for (const batch of order) {
        for (const words of [reader.read(batch), readPayload(files, batch)]) {
          const found = new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
          expectBytes(found, payloads[batch.after]);
        }
      }
    }
    reader.close();
  });

  test("damage far from the next batch is found", () => {
    const files = log();
    const { batches } = scanLog(files, 0);
    for (const batch of batches.slice(0, -1)) {
      for (const at of [batch.offset + 8, endOf(batch) - 8 - (batch.payloadBytes & 4)]) {
        const flipped = files.settled();
        flipped.flipBit(batch.file, at);
        const { file, offset } = batch;
        expect(scanLog(flipped, 0).damage).toEqual([expect.objectContaining({ file, offset })]);
      }
    }
    const last = batches[batches.length - 1];
    files.flipBit(last.file, last.payloadAt + 4 * MIB);
    expect(scanLog(files, 0)).toMatchObject({
      damage: [],
      cut: { offset: last.offset },
      lastEpoch: sizes.length - 1,
    });
  });

  test("what has changed since the scan is refused with its place", () => {
    const files = log();
    const { batches } = scanLog(files, 0);
    files.flipBit(segmentName(1), batches[4].payloadAt + MIB);
    const corrupt = expect.objectContaining({
      code: "SITU_CORRUPT",
      message: expect.stringContaining(`${segmentName(1)} is damaged at byte ${batches[4].offset}`),
    });
    expect(() => readPayload(files, batches[4])).toThrow(corrupt);
    files.open(segmentName(1)).truncate(batches[7].payloadAt + 9);
    expect(() => readPayload(files, batches[7])).toThrow("ends within a batch");
    expect(readPayload(files, batches[5]).byteLength).toBe(sizes[5]);
  });
});

describe("a log that is being written", () => {
  test("is read as far as it was, and never as damaged", () => {
    for (const bytes of [300_000, 1_048_500, 2_200_000]) {
      for (let from = 1; from < 16; from++) {
        const files = new FaultyFiles({ blockBytes: 4096 });
        const writer = new LogWriter(files, identity, 1, 0, 0, 12 << 20);
        const part = new Uint8Array(bytes);
        const append = (): void => {
          const after = writer.lastEpoch;
          writer.append({ after, last: after + 1, records: 0, closedMs: 0 }, [part]);
          writer.sync();
        };
        append();
        let reads = 0;
        let isAppending = false;
        // From some read on, the next few find a log that has grown, or was left for the next one.
        files.before = ({ kind }) => {
          if (kind !== "read" || isAppending || ++reads < from || reads >= from + 6) return;
          isAppending = true;
          append();
          isAppending = false;
        };
        const scan = scanLog(files, 0);
        expect(scan.damage).toEqual([]);
        expect(scan.lastEpoch).toBeGreaterThanOrEqual(1);
        files.before = undefined;
        expect(scanLog(files, 0)).toMatchObject({ damage: [], lastEpoch: writer.lastEpoch });
      }
    }
  });

  test("a segment that is begun while it is looked at", () => {
    for (let from = 1; from < 8; from++) {
      const files = new FaultyFiles();
      const writer = takeOver(files, 0, 4_096);
      while (writer.position.bytes < 3_000) appendTo(writer, writer.lastEpoch + 1);
      writer.prepare();
      let reads = 0;
      files.before = ({ kind }) => {
        if (kind === "read" && ++reads === from) appendTo(writer, writer.lastEpoch + 40);
      };
      const before = writer.lastEpoch;
      expect(expectPrefix(files, before).damage).toEqual([]);
    }
  });

  test("a batch of which a half is there is the end", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, 4_096);
    appendTo(writer, 4);
    writer.sync();
    files.fail({ kind: "short", on: "write" });
    files.fail({ kind: "ENOSPC", on: "write", at: files.operations + 2 });
    expect(() => appendTo(writer, 9)).toThrow("ENOSPC");
    expect(expectPrefix(files, 4).lastEpoch).toBe(4);
  });
});

describe("a survey", () => {
  test("of a sound log", () => {
    const files = new FaultyFiles();
    writeLog(files, epochs(40), 4_096);
    const { segments, scan } = surveyLog(files);
    expect(segments.flatMap(({ batches }) => batches)).toEqual(scan.batches);
    for (const { segment, damage, end, usedBytes, torn } of segments) {
      expect({ damage, end, torn }).toEqual({ damage: [], end: "nothing", torn: undefined });
      expect(usedBytes).toBe(segment.bytes);
    }
    expectWords(files, scan);
  });

  test("shows all that is sound, and all that is not", () => {
    const files = new FaultyFiles();
    const writer = takeOver(files, 0, 8_192);
    for (let last = 2; last <= 24; last += 2) {
      appendTo(writer, last);
      writer.sync();
    }
    const { batches } = scanLog(files, 0);
    files.flipBit(segmentName(1), batches[2].payloadAt + 5);
    files.flipBit(segmentName(1), batches[5].offset + 5);
    files.flipBit(segmentName(1), batches[6].offset + 5);
    files.flipBit(segmentName(1), batches[11].payloadAt + 5);
    const [{ batches: found, damage, end, torn, usedBytes }] = surveyLog(files).segments;
    expect(found).toEqual(batches.filter((_, i) => ![2, 5, 6, 11].includes(i)));
    expect(damage.map(({ offset }) => offset)).toEqual([batches[2].offset, batches[5].offset]);
    expect({ end, offset: torn?.offset }).toEqual({ end: "torn", offset: batches[11].offset });
    expect(usedBytes).toBe(batches[11].offset);
  });

  test("of segments without heads", () => {
    const files = new FaultyFiles();
    writeLog(files, epochs(40), 4_096);
    const sound = surveyLog(files);
    files.flipBit(segmentName(2), 20);
    files.create(segmentName(99), 4_096);
    const { segments, scan } = surveyLog(files);
    expect(segments[1].batches).toEqual(sound.segments[1].batches);
    expect(segments[1].damage).toEqual([
      { file: segmentName(2), offset: 12, what: "the checksum of its head is wrong" },
    ]);
    expect(segments[segments.length - 1]).toMatchObject({ end: "zeroes", usedBytes: HEAD_BYTES });
    expect(scan.damage.map(({ file }) => file)).toEqual([segmentName(2)]);
    expect(scan.unfinished).toEqual([segmentName(99)]);
    const words = wordsBetween(0, scan.lastEpoch);
    expect(scan.batches.reduce((sum, { payloadBytes }) => sum + payloadBytes / 4, 0)).toBe(
      words.length,
    );
  });
});
