/** Bytes of batches and heads: there and back, and nothing else taken for them. */

import { describe, expect, test } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { isDamage } from "../../src/log/head.ts";
import {
  BATCH_HEADER_BYTES,
  type BatchHeader,
  batchBytes,
  decodeBatchHeader,
  encodeBatchHeader,
  forEachRecord,
  saltOf,
} from "../../src/log/segments/format.ts";
import {
  encodeSegmentHead,
  hasHead,
  listSegments,
  nextSegment,
  readSegmentHead,
  segmentName,
  segmentNumber,
} from "../../src/log/segments/segments.ts";
import { HEAD_BYTES } from "../../src/runtime/limits.ts";
import { identity, wordsBetween, wordsOf } from "../helpers/disk.ts";
import { check, fc } from "../helpers/property.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
const salt = saltOf(identity.logId);
const header: BatchHeader = {
  number: 3,
  payloadBytes: 404,
  records: 7,
  after: 2 ** 40 + 5,
  last: 2 ** 40 + 9,
  closedMs: 1_700_000_000_000.25,
  payloadCrc: 0xdeadbeef,
};

function encoded(of: BatchHeader, at = 0): Buffer {
  const bytes = Buffer.alloc(at + BATCH_HEADER_BYTES);
  encodeBatchHeader(bytes.subarray(at), of, salt);
  return bytes;
}

describe("the header of a batch", () => {
  test("there and back", () => {
    const epoch = fc.integer({ min: 0, max: 2 ** 44 - 2 });
    const u32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
    const headers = fc.record({
      number: u32,
      payloadBytes: fc.integer({ min: 0, max: 2 ** 30 - 1 }).map((words) => words * 4),
      records: u32,
      epochs: fc.tuple(epoch, epoch),
      closedMs: fc.double({ noNaN: true }),
      payloadCrc: u32,
    });
    check(
      fc.property(headers, ({ epochs: [one, other], ...rest }) => {
        const after = Math.min(one, other);
        const original = { ...rest, after, last: Math.max(one, other) + 1 };
        const found = decodeBatchHeader(encoded(original, 16), 16, original.number, salt);
        expect(found).toEqual(original);
      }),
    );
  });

  test("as it is written in the format", () => {
    const bytes = encoded(header);
    expect(bytes.toString("latin1", 0, 4)).toBe("BTCH");
    expect(bytes.readUInt32LE(4)).toBe(3);
    expect(bytes.readUInt32LE(8)).toBe(404);
    expect(bytes.readUInt32LE(12)).toBe(7);
    expect(bytes.readBigUInt64LE(16)).toBe(2n ** 40n + 5n);
    expect(bytes.readBigUInt64LE(24)).toBe(2n ** 40n + 9n);
    expect(bytes.readDoubleLE(32)).toBe(1_700_000_000_000.25);
    expect(bytes.readUInt32LE(40)).toBe(0xdeadbeef);
    expect([batchBytes(0), batchBytes(4), batchBytes(8)]).toEqual([48, 56, 56]);
  });

  test("no flipped bit goes unnoticed", () => {
    for (let bit = 0; bit < BATCH_HEADER_BYTES * 8; bit++) {
      const bytes = encoded(header);
      bytes[bit >> 3] ^= 1 << (bit & 7);
      expect(decodeBatchHeader(bytes, 0, 3, salt)).toBeTypeOf("string");
    }
  });

  test("of another segment, or of another log", () => {
    expect(decodeBatchHeader(encoded(header), 0, 4, salt)).toBe("the batch belongs to segment 3");
    const other = saltOf("another log");
    expect(decodeBatchHeader(encoded(header), 0, 3, other)).toContain("checksum");
    expect(decodeBatchHeader(encoded(header), 0, 3, undefined)).toEqual(header);
  });

  test.each([
    { ...header, after: header.last },
    { ...header, after: header.last + 1 },
  ])("impossible epochs are refused, checksum or not", (wrong) => {
    expect(decodeBatchHeader(encoded(wrong), 0, 3, salt)).toContain("impossible");
  });

  test("impossible lengths are refused before they are written", () => {
    expect(() => encoded({ ...header, payloadBytes: 3 })).toThrow(RangeError);
    expect(() => encoded({ ...header, payloadBytes: 2 ** 32 })).toThrow(RangeError);
    const bytes = encoded(header);
    bytes.writeUInt32LE(5, 8);
    expect(decodeBatchHeader(bytes, 0, 3, undefined)).toContain("impossible");
    bytes.writeUInt32LE(404, 8);
    bytes.writeUInt32LE(1 << 12, 28);
    expect(decodeBatchHeader(bytes, 0, 3, undefined)).toContain("impossible");
  });
});

describe("records in a payload", () => {
  test("one after the other", () => {
    const found: number[] = [];
    const words = wordsBetween(0, 5);
    forEachRecord(words, (at, length) => {
      expect([...words.subarray(at, at + length)]).toEqual([...wordsOf(found.length + 1)]);
      found.push(at);
    });
    expect(found.length).toBe(5);
    forEachRecord(new Int32Array(0), () => expect.unreachable());
  });

  test.each([0, -1, 3, 9])("a length of %i words cannot be", (length) => {
    const words = new Int32Array(12);
    words[0] = 4;
    words[4] = length;
    expect(() => forEachRecord(words, () => {})).toThrow(
      expect.objectContaining({ code: "SITU_CORRUPT", message: expect.stringContaining("word 4") }),
    );
  });
});

describe("segments", () => {
  const head = { ...identity, number: 12, afterEpoch: 2 ** 43, createdMs: 5, bytes: 1 << 24 };

  function fileWith(bytes: Uint8Array, number = 12): FaultyFiles {
    const files = new FaultyFiles();
    files.makeFolder("log");
    const file = files.create(segmentName(number), bytes.length);
    file.write([bytes], 0);
    file.close();
    return files;
  }

  test("names and numbers", () => {
    expect(segmentName(12)).toBe("log/0000000012.log");
    expect(segmentNumber("0000000012.log")).toBe(12);
    for (const name of ["12.log", "0000000012.log.new", "00000000012.log", "000000001x.log"]) {
      expect(segmentNumber(name)).toBe(undefined);
    }
  });

  test("a head, there and back, with a largest geometry", () => {
    const [segment] = listSegments(fileWith(encodeSegmentHead(head)));
    expect(segment).toEqual({
      name: "log/0000000012.log",
      number: 12,
      bytes: HEAD_BYTES,
      head: { format: 1, ...head },
    });
    const big = Number.MAX_SAFE_INTEGER;
    const geometry = Object.fromEntries(
      Object.keys(identity.geometry).map((key) => [key, big]),
    ) as unknown as typeof identity.geometry;
    const largest = { ...head, geometry, catalogue: { regionId: big, word: big }, bytes: big };
    expect(encodeSegmentHead({ ...largest, logId: "f".repeat(64) }).length).toBe(HEAD_BYTES);
  });

  test("a file that is no segment, or another one", () => {
    const shortened = encodeSegmentHead(head).subarray(0, 100);
    const cases: [FaultyFiles, string, boolean][] = [
      [fileWith(new Uint8Array(2_000)), "SITULOG1", true],
      [fileWith(shortened), "ends within its head", true],
      [fileWith(encodeSegmentHead({ ...head, number: 13 })), "segment 13", false],
      [
        fileWith(encodeSegmentHead({ ...head, format: 2 } as unknown as typeof head)),
        "format 2",
        false,
      ],
    ];
    for (const [files, what, isIllegible] of cases) {
      const [segment] = listSegments(files);
      expect(hasHead(segment)).toBe(false);
      expect(segment.head).toMatchObject({ what: expect.stringContaining(what), isIllegible });
      // What was never written is written over; what somebody else wrote is not.
      expect(nextSegment(files)).toBe(isIllegible ? 1 : 13);
    }
  });

  test("no flipped bit in a head goes unnoticed", () => {
    const bytes = encodeSegmentHead(head);
    const used = 16 + bytes.readUInt32LE(8);
    for (let bit = 0; bit < used * 8; bit++) {
      const flipped = Buffer.from(bytes);
      flipped[bit >> 3] ^= 1 << (bit & 7);
      const file = fileWith(flipped).open(segmentName(12), true);
      expect(isDamage(readSegmentHead(file, 12))).toBe(true);
    }
  });

  test("other files in the folder are none", () => {
    const files = fileWith(encodeSegmentHead(head));
    for (const name of ["log/readme", "log/0000000013.log.new"]) files.create(name, 10).close();
    expect(listSegments(files).map(({ number }) => number)).toEqual([12]);
    expect(nextSegment(files)).toBe(13);
  });
});
