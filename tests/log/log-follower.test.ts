/** Following the log while it is written: whole, once, in order; across writers that die, and up to gaps. */

import { describe, expect, it } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { gap, LogFollower } from "../../src/log/feed/log-follower.ts";
import {
  endOfEpoch,
  PositionTexts,
  parsePosition,
  positionText,
} from "../../src/log/feed/position.ts";
import { segmentName } from "../../src/log/segments/segments.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  appendTo,
  bytesIn,
  closedMsOf,
  expectBytes,
  identity,
  takeOver,
  wordsBetween,
} from "../helpers/disk.ts";
import { failureSync } from "../helpers/store.ts";

const A = "a".repeat(24);
const B = "b".repeat(24);

const newDisk = (): FaultyFiles => new FaultyFiles({ seed: 1 });

/** Reads all up to a durable epoch; the words are those of the epochs. */
function readTo(follower: LogFollower, durable: number): number {
  for (;;) {
    const after = follower.epoch;
    const batch = follower.next(durable);
    if (batch === undefined) return follower.epoch;
    const { words, last, closedMs } = batch;
    const bytes = (of: Int32Array) => new Uint8Array(of.buffer, of.byteOffset, of.byteLength);
    expectBytes(bytes(words), bytes(wordsBetween(after, last)));
    expect(closedMs).toBe(closedMsOf(last));
  }
}

describe("follows the log", () => {
  it("batch by batch, only what is durable, from segment to segment", () => {
    const files = newDisk();
    const writer = takeOver(files, 0, 4_096);
    const follower = new LogFollower(files);
    expect(readTo(follower, 0)).toBe(0);
    for (let last = 3; last <= 300; last += 3) {
      appendTo(writer, last);
      // Written, and not told to be durable yet.
      expect(readTo(follower, last - 1)).toBe(last - 3);
      writer.sync();
      if (last % 2 === 0) expect(readTo(follower, last)).toBe(last);
      writer.prepare();
    }
    expect(readTo(follower, 300)).toBe(300);
    expect(writer.position.number).toBeGreaterThan(3);
    writer.close();
    expect(readTo(follower, 310)).toBe(300);
    follower.close();
  });

  it("past batches that a dead writer left void, whose records come again", () => {
    for (const reads of [true, false]) {
      const files = newDisk();
      const first = takeOver(files, 0);
      const follower = new LogFollower(files);
      appendTo(first, 10);
      first.sync();
      expect(readTo(follower, 10)).toBe(10);
      // Synced, but its writer dies before it publishes it.
      appendTo(first, 12);
      first.sync();
      if (reads) expect(readTo(follower, 11)).toBe(10);
      const second = takeOver(files, 10);
      // Begun, and died over a batch of its own.
      appendTo(second, 13);
      second.sync();
      if (reads) expect(readTo(follower, 11)).toBe(10);
      const third = takeOver(files, 10);
      appendTo(third, 15);
      third.sync();
      expect(readTo(follower, 15)).toBe(15);
      appendTo(third, 20);
      third.close();
      expect(readTo(follower, 20)).toBe(20);
      const late = new LogFollower(files);
      expect(readTo(late, 20)).toBe(20);
    }
  });

  it("where a durable epoch without records lies within a later batch", () => {
    const files = newDisk();
    const first = takeOver(files, 0);
    appendTo(first, 5);
    first.sync();
    const follower = new LogFollower(files);
    expect(readTo(follower, 5)).toBe(5);
    appendTo(first, 8);
    first.close();
    takeOver(files, 8).close();
    // The follower's look at the durable epoch is older than the segment.
    expect(readTo(follower, 6)).toBe(5);
    expect(readTo(follower, 8)).toBe(8);
  });

  it("random histories of writers, deaths and readers", () => {
    const random = new Random(7);
    for (let run = 0; run < 30; run++) {
      const files = newDisk();
      let durable = 0;
      let writer = takeOver(files, 0, 2_048);
      const followers = [new LogFollower(files)];
      for (let step = 0; step < 60; step++) {
        const last = writer.lastEpoch + 1 + random.below(4);
        appendTo(writer, last);
        writer.sync();
        const dies = random.below(5) === 0;
        if (dies) writer = takeOver(files, durable, 2_048);
        else durable = last;
        for (const follower of followers) {
          if (random.below(3) === 0) expect(readTo(follower, durable)).toBe(durable);
        }
        if (random.below(20) === 0) followers.push(new LogFollower(files));
      }
      for (const follower of followers) expect(readTo(follower, durable)).toBe(durable);
    }
  });

  it("damage is told, and never read", () => {
    const files = newDisk();
    const writer = takeOver(files, 0);
    for (const last of [3, 6, 9]) appendTo(writer, last);
    writer.sync();
    const file = files.open(segmentName(1));
    const at = bytesIn(files, segmentName(1)).indexOf(Buffer.from(wordsBetween(3, 4).buffer)) + 20;
    file.write([Buffer.from([0xff, 0x55])], at);
    const follower = new LogFollower(files);
    failureSync("SITU_CORRUPT", () => readTo(follower, 9));
    expect(follower.epoch).toBe(3);
  });
});

describe("positions", () => {
  /** Two memories: A up to epoch 20, then B. */
  function twoMemories(): FaultyFiles {
    const files = newDisk();
    const ofA = new LogWriter(files, { ...identity, memoryId: A, origin: 0 }, 1, 0, 0, 2_048);
    for (let last = 2; last <= 20; last += 2) appendTo(ofA, last);
    ofA.close();
    const { number } = ofA.position;
    const memory = { ...identity, memoryId: B, origin: number };
    const ofB = new LogWriter(files, memory, number + 1, 20, 0, 2_048);
    for (let last = 25; last <= 60; last += 5) appendTo(ofB, last);
    ofB.close();
    return files;
  }

  const seek = (files: FaultyFiles, memoryId: string, epoch: number, reach = 60): number => {
    const follower = new LogFollower(files);
    follower.seek(endOfEpoch(memoryId, epoch), B, () => reach);
    const { epoch: from } = follower;
    expect(readTo(follower, 60)).toBe(60);
    return from;
  };

  it("lead to a segment from which on nothing is missing", () => {
    const files = twoMemories();
    for (const epoch of [0, 1, 13, 20]) expect(seek(files, A, epoch)).toBeLessThanOrEqual(epoch);
    for (const epoch of [20, 33, 60]) expect(seek(files, B, epoch)).toBeLessThanOrEqual(epoch);
  });

  it("beyond what their memory has written here are undone", () => {
    const files = twoMemories();
    expect(failureSync("SITU_GAP", () => seek(files, A, 21)).message).toContain("restored");
    failureSync("SITU_GAP", () => seek(files, B, 61));
    failureSync("SITU_GAP", () => seek(files, "c".repeat(24), 10));
  });

  it("before segments that were removed are a gap, also for one who is reading", () => {
    const files = twoMemories();
    const follower = new LogFollower(files);
    expect(follower.next(60)?.last).toBe(2);
    for (let number = 1; number <= 2; number++) files.remove(segmentName(number));
    failureSync("SITU_GAP", () => seek(files, A, 1));
    // It goes on in the segment that it has open, and no further.
    expect(failureSync("SITU_GAP", () => readTo(follower, 60)).message).toContain("too slow");
    expect(gap("so").retryable).toBe(false);
  });

  it("are texts that can be read back", () => {
    const { memoryId, high, low } = endOfEpoch(A, 2 ** 40 + 5);
    const text = positionText(memoryId, high, low, 3);
    expect(parsePosition(text)).toEqual({ memoryId, high, low, change: 3 });
    const texts = new PositionTexts();
    for (const each of [A, A, B, A]) {
      for (const [h, l] of [
        [0, 0],
        [0, 1],
        [1, 1],
        [high, low],
        [-1, -1],
        [-1, 0],
      ]) {
        for (const change of [0, 1]) {
          expect(texts.textOf(each, h, l, change)).toBe(positionText(each, h, l, change));
        }
      }
    }
  });
});
