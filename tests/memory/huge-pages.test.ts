/** Large pages are asked for, and nothing depends on getting them: memory/huge-pages.ts. */

import { closeSync, fstatSync, ftruncateSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fillWithHugePages, hugePageBytes } from "../../src/memory/huge-pages.ts";
import { MappedSegments } from "../../src/memory/mapped-segments.ts";

const BYTES = 64 * 2 ** 20;
/** Where there are no large pages, nobody is asked for one. */
const whole = hugePageBytes() === 0 ? 0 : BYTES;

let folder: string;
let fd: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "situ-test-pages-"));
  fd = openSync(join(folder, "file"), "w+");
  ftruncateSync(fd, BYTES);
});

afterEach(() => {
  closeSync(fd);
  rmSync(folder, { recursive: true, force: true });
});

function fill(bytes: number, grants: (asked: number) => boolean): { asked: number[]; got: number } {
  const asked: number[] = [];
  let next = 0;
  const got = fillWithHugePages(fd, bytes, (offset, length) => {
    expect(offset).toBe(next);
    next += length;
    asked.push(length);
    return grants(asked.length);
  });
  return { asked, got };
}

test("all of a file that is whole pages is asked for, one piece after another", () => {
  const { asked, got } = fill(BYTES, () => true);
  expect(asked.reduce((sum, bytes) => sum + bytes, 0)).toBe(whole);
  expect(got).toBe(whole);
});

test("what does not fill a page is not asked for, and the file stays as long as it was", () => {
  const rest = hugePageBytes() === 0 ? 0 : hugePageBytes() - 4096;
  expect(fill(rest, () => true)).toEqual({ asked: [], got: 0 });
  expect(fill(hugePageBytes() + rest, () => true).got).toBe(hugePageBytes());
  expect(fstatSync(fd).size).toBe(BYTES);
});

test("the first refusal ends it", () => {
  const { asked, got } = fill(BYTES, (count) => count < 2);
  expect(asked.length).toBe(whole === 0 ? 0 : 2);
  expect(got).toBe(whole === 0 ? 0 : asked[0]);
});

test("a segment begins at a large page wherever it is mapped, is zero, and is the same for all", () => {
  const bytes = 4 * 2 ** 20;
  const segments = MappedSegments.make(join(folder, "memory"));
  const created = segments.create("region-0", bytes);
  const attached = segments.attach("region-0", bytes);
  try {
    for (const { address } of [created, attached]) {
      expect(Number(address! % BigInt(hugePageBytes() || 4096))).toBe(0);
    }
    const here = new Int32Array(created.buffer);
    const there = new Int32Array(attached.buffer);
    expect(here.every((word) => word === 0)).toBe(true);
    here[0] = 1;
    here[here.length - 1] = 2;
    expect([there[0], there[there.length - 1]]).toEqual([1, 2]);
  } finally {
    created.release();
    attached.release();
  }
});

test("one in a hurry gets some of the large pages, and the rest later, under what was written meanwhile", () => {
  const bytes = 8 * 2 ** 20;
  const segments = MappedSegments.make(join(folder, "memory"));
  const created = segments.create("region-0", bytes, bytes, 0);
  try {
    const words = new Int32Array(created.buffer);
    for (let at = 0; at < words.length; at += 1_000) words[at] = at + 1;
    let calls = 1;
    while (created.improve?.(0)) calls++;
    // Where a page is refused, that was all.
    if (hugePageBytes() > 0) expect(calls).toBeLessThanOrEqual(bytes / hugePageBytes());
    expect(created.improve?.(0) ?? false).toBe(false);
    let wrong = 0;
    for (let at = 0; at < words.length; at++) {
      if (words[at] !== (at % 1_000 === 0 ? at + 1 : 0)) wrong++;
    }
    expect(wrong).toBe(0);
  } finally {
    created.release();
  }
  const patient = segments.create("region-1", bytes);
  expect(patient.improve).toBeUndefined();
  patient.release();
});

test("no time, no large pages", () => {
  const asked: number[] = [];
  const got = fillWithHugePages(fd, BYTES, (_, bytes) => asked.push(bytes) > 0, 0);
  expect([got, asked]).toEqual([0, []]);
});

test("a file without room is refused as before, and its mapping is gone", () => {
  const segments = MappedSegments.make(join(folder, "memory"));
  expect(() => segments.create("region-0", 2 ** 50)).toThrow(/no room for/);
  segments.create("region-0", 2 ** 20).release();
});
