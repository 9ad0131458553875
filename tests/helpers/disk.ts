/**
 * Logs for tests. What an epoch has written follows from its number alone, as in the journals: so it
 * is known what any batch holds, whoever writes it and whichever epochs it unites, and what is
 * read back can be compared word for word.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { StoreFile, StoreFiles } from "../../src/folder/files.ts";
import type { BatchContent } from "../../src/log/segments/format.ts";
import { PayloadReader } from "../../src/log/segments/payloads.ts";
import { type LogScan, scanLog } from "../../src/log/segments/reader.ts";
import { type LogIdentity, nextSegment } from "../../src/log/segments/segments.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import { Random } from "../../src/runtime/random.ts";

export const identity: LogIdentity = {
  logId: "0123456789abcdef01234567",
  geometry: {
    slots: 4,
    journalBytes: 1 << 16,
    regionBytes: 1 << 26,
    regions: 2,
    ringBytes: 1 << 16,
    chunkBytes: 1 << 16,
    chunks: 4,
  },
  catalogue: { regionId: 0, word: 16 },
};

/** Calls `use` with a folder that is gone afterwards. */
export function withFolder(use: (folder: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), "situ-disk-"));
  try {
    use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const known = new Map<number, Int32Array>();

/** The one record of an epoch; every seventh has written nothing. */
export function wordsOf(epoch: number): Int32Array {
  let words = known.get(epoch);
  if (words === undefined) {
    words = makeWords(epoch);
    known.set(epoch, words);
  }
  return words;
}

function makeWords(epoch: number): Int32Array {
  if (epoch % 7 === 0) return new Int32Array(0);
  const random = new Random((epoch * 0x9e3779b1) | 1);
  const length = 4 + random.below(epoch % 13 === 0 ? 400 : 40);
  const words = new Int32Array(length);
  for (let i = 4; i < length; i++) words[i] = random.next();
  words[0] = length;
  words[2] = Math.floor(epoch / 4096);
  words[3] = epoch << 20;
  return words;
}

export function wordsBetween(after: number, last: number): Int32Array {
  const pieces: Int32Array[] = [];
  let length = 0;
  for (let epoch = after + 1; epoch <= last; epoch++) {
    pieces.push(wordsOf(epoch));
    length += pieces[pieces.length - 1].length;
  }
  const words = new Int32Array(length);
  let at = 0;
  for (const piece of pieces) {
    words.set(piece, at);
    at += piece.length;
  }
  return words;
}

export function batchOf(
  after: number,
  last: number,
): { content: BatchContent; parts: Uint8Array[] } {
  const parts: Uint8Array[] = [];
  for (let epoch = after + 1; epoch <= last; epoch++) {
    const words = wordsOf(epoch);
    if (words.length > 0) parts.push(new Uint8Array(words.buffer));
  }
  return { content: { after, last, records: parts.length, closedMs: closedMsOf(last) }, parts };
}

export function closedMsOf(epoch: number): number {
  return 1_700_000_000_000 + epoch * 10;
}

export function appendTo(writer: LogWriter, last: number): number {
  const { content, parts } = batchOf(writer.lastEpoch, last);
  return writer.append(content, parts);
}

/** A new writer, as the log writer makes one. */
export function takeOver(files: StoreFiles, afterEpoch: number, segmentBytes = 1 << 14): LogWriter {
  const number = nextSegment(files);
  return new LogWriter(files, identity, number, afterEpoch, closedMsOf(afterEpoch), segmentBytes);
}

/** Writes batches that end with these epochs, each synced, and closes the log. */
export function writeLog(
  files: StoreFiles,
  lasts: readonly number[],
  segmentBytes = 1 << 14,
): void {
  const writer = takeOver(files, 0, segmentBytes);
  for (const last of lasts) {
    appendTo(writer, last);
    writer.sync();
  }
  writer.close();
}

/** All words that a scan gives, one batch after the other; each must be where it belongs. */
export function expectWords(files: StoreFiles, scan: LogScan, after = 0): void {
  const payloads = new PayloadReader(files);
  let reached = after;
  for (const batch of scan.batches) {
    if (batch.after !== reached) expect(batch).toMatchObject({ after: reached });
    const words = payloads.read(batch);
    const expected = wordsBetween(batch.after, batch.last);
    expectBytes(bytesOf(words), bytesOf(expected));
    const closedMs = closedMsOf(batch.last);
    if (batch.closedMs !== closedMs) expect(batch).toMatchObject({ closedMs });
    reached = batch.last;
  }
  payloads.close();
  expect(scan.lastEpoch).toBe(reached);
}

/** As `toEqual`, but quick where they are equal. */
export function expectBytes(found: Uint8Array, expected: Uint8Array): void {
  if (Buffer.compare(found, expected) !== 0) expect([...found]).toEqual([...expected]);
}

function bytesOf(words: Int32Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

/** What a sound log must be after any crash: whole epochs, all that were told to be on disk. */
export function expectPrefix(files: StoreFiles, acknowledged: number): LogScan {
  const scan = scanLog(files, 0);
  expect(scan.damage).toEqual([]);
  expectWords(files, scan);
  expect(scan.lastEpoch).toBeGreaterThanOrEqual(acknowledged);
  return scan;
}

/** Copies a file from one disk to another. */
export function copyFile(from: StoreFiles, to: StoreFiles, name: string): void {
  const source = from.open(name, true);
  const bytes = Buffer.alloc(source.size());
  source.read(bytes, 0);
  source.close();
  const target = to.create(name, bytes.length);
  target.write([bytes], 0);
  target.close();
}

export function bytesIn(files: StoreFiles, name: string): Buffer {
  const file: StoreFile = files.open(name, true);
  const bytes = Buffer.alloc(file.size());
  file.read(bytes, 0);
  file.close();
  return bytes;
}
