/** Batches and their tags: they arrive as they were sent, in whatever pieces, or not at all. */

import { createCipheriv } from "node:crypto";
import { describe, expect, test } from "vitest";
import { BATCH_HEADER_BYTES, BatchReader, BatchWriter } from "../../src/fabric/tcp/batches.ts";
import { MAX_BATCH_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { TAG_KEY_BYTES, TagStream } from "../../src/runtime/tag-stream.ts";
import { fixedSeed } from "../helpers/seed.ts";

const SEED = fixedSeed(3);
const random = new Random(SEED);
const KEY = bytesOf(TAG_KEY_BYTES);
const SIZES = [8, 16, 24, 200, 2_040, 2_048, 2_056, 9_000, MAX_BATCH_BYTES, MAX_BATCH_BYTES + 8];

function bytesOf(length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)));
}

function batchesOf(writes: readonly Buffer[], key = KEY): Buffer[] {
  const writer = new BatchWriter(key);
  return writes.map((bytes) => {
    const out = Buffer.alloc(BatchWriter.bytesFor(bytes.length));
    writer.write(bytes, out);
    return out;
  });
}

/** All that is handed on, and the code of the error that ended it. */
function read(chunks: readonly Buffer[], key = KEY): { got: Buffer; code: string | undefined } {
  const reader = new BatchReader(key);
  const got: Buffer[] = [];
  try {
    for (const chunk of chunks) {
      reader.push(chunk);
      for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
        got.push(Buffer.from(batch));
      }
    }
    return { got: Buffer.concat(got), code: undefined };
  } catch (error) {
    return { got: Buffer.concat(got), code: (error as { code: string }).code };
  }
}

function pieces(bytes: Buffer, longest: number): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + 1 + random.below(longest);
    chunks.push(Buffer.from(bytes.subarray(at, end)));
    at = end;
  }
  return chunks;
}

test.each([1, 30, 1_000, 70_000, 1_000_000])("pieces of up to %i bytes", (longest) => {
  const writes = [...SIZES, ...SIZES].map(bytesOf);
  const sent = Buffer.concat(batchesOf(writes));
  const { got, code } = read(pieces(sent, longest));
  expect(code).toBeUndefined();
  expect(got.equals(Buffer.concat(writes))).toBe(true);
});

describe("what somebody in between does", () => {
  const writes = [200, 9_000, 16, 3_000, 64].map(bytesOf);
  const batches = batchesOf(writes);
  const soFar = (count: number): Buffer => Buffer.concat(writes.slice(0, count));

  test("any bit of any batch changed: nothing of that batch is handed on", () => {
    for (const [i, batch] of batches.entries()) {
      const header = Array.from({ length: BATCH_HEADER_BYTES * 8 }, (_, bit) => bit);
      const body = Array.from({ length: 60 }, () => random.below(batch.length * 8));
      for (const bit of [...header, ...body]) {
        const changed = Buffer.from(batch);
        changed[bit >> 3] ^= 1 << (bit & 7);
        const { got, code } = read(batches.map((each, j) => (i === j ? changed : each)));
        // A longer length waits for bytes that belong to others, and finds the tag wrong then.
        expect(code === "SITU_SECRET" || got.length === soFar(i).length, `bit ${bit}`).toBe(true);
        expect(got.equals(soFar(i)), `bit ${bit}`).toBe(true);
      }
    }
  });

  test("a batch left out, repeated, moved, or added", () => {
    for (let i = 0; i < batches.length - 1; i++) {
      const without = batches.filter((_, j) => j !== i);
      expect(read(without)).toEqual({ got: soFar(i), code: "SITU_SECRET" });
      const twice = batches.toSpliced(i + 1, 0, batches[i]);
      expect(read(twice)).toEqual({ got: soFar(i + 1), code: "SITU_SECRET" });
      const swapped = batches.with(i, batches[i + 1]).with(i + 1, batches[i]);
      expect(read(swapped)).toEqual({ got: soFar(i), code: "SITU_SECRET" });
      const added = batches.toSpliced(i, 0, batchesOf([bytesOf(64)], bytesOf(TAG_KEY_BYTES))[0]);
      expect(read(added)).toEqual({ got: soFar(i), code: "SITU_SECRET" });
    }
  });

  test("cut off: what has arrived as a whole is handed on", () => {
    const sent = Buffer.concat(batches);
    for (let cut = 0; cut < sent.length; cut += 97) {
      const { got, code } = read([sent.subarray(0, cut)]);
      expect(code).toBeUndefined();
      expect(soFar(5).subarray(0, got.length).equals(got)).toBe(true);
    }
  });

  test("another key, or no batches at all", () => {
    const other = Buffer.from(KEY);
    for (const at of [0, TAG_KEY_BYTES - 1]) other[at] ^= 1;
    expect(read(batches, other)).toEqual({ got: soFar(0), code: "SITU_SECRET" });
    expect(read([Buffer.alloc(64)]).code).toBe("SITU_SECRET");
    expect(read([Buffer.alloc(64, 0xff)]).code).toBe("SITU_SECRET");
  });
});

test("long messages have the tag that AES-256-GCM gives them, by their number", () => {
  const tags = new TagStream(KEY);
  for (let number = 0; number < 5; number++) {
    const bytes = bytesOf(5_000);
    const nonce = Buffer.alloc(12);
    nonce.writeDoubleBE(number);
    const cipher = createCipheriv("aes-256-gcm", KEY.subarray(32), nonce);
    cipher.setAAD(bytes);
    cipher.final();
    tags.next(bytes);
    expect(Buffer.from(tags.tag)).toEqual(cipher.getAuthTag());
  }
});

test("no two messages have a tag in common, nor have those that only differ in zeroes at the end", () => {
  const tags = new TagStream(KEY);
  const seen = new Set<string>();
  for (let i = 0; i < 400; i++) {
    tags.next(Buffer.alloc(8 * (i % 5)));
    seen.add(Buffer.from(tags.tag).toString("hex"));
  }
  expect(seen.size).toBe(400);
  const first = [8, 16].map((length) => {
    const fresh = new TagStream(KEY);
    fresh.next(Buffer.alloc(length));
    return Buffer.from(fresh.tag).toString("hex");
  });
  expect(first[0]).not.toBe(first[1]);
});
