/** Which segments one memory at a time can have written, and which not: crafted logs. */

import { describe, expect, it } from "vitest";
import { FaultyFiles } from "../../simulation/faulty-files.ts";
import { readLogEnd, writeLogEnd } from "../../src/log/segments/end.ts";
import { scanLog } from "../../src/log/segments/reader.ts";
import { LogWriter } from "../../src/log/segments/writer.ts";
import { Random } from "../../src/runtime/random.ts";
import { appendTo, identity } from "../helpers/disk.ts";

const BYTES = 1 << 14;
const [A, B, C] = ["a", "b", "c"].map((letter) => letter.repeat(24));

interface Piece {
  readonly memoryId?: string;
  readonly origin?: number;
  readonly after: number;
  /** The last epochs of its batches. */
  readonly lasts: readonly number[];
}

/** Segments as given, whoever wrote them; the record of the end is that of the last one. */
function craft(pieces: readonly Piece[]): FaultyFiles {
  const files = new FaultyFiles();
  pieces.forEach(({ memoryId, origin, after, lasts }, i) => {
    // Each writer is made to believe that all before it is its own past.
    const head = {
      ...identity,
      ...(memoryId === undefined ? {} : { memoryId, origin: origin ?? i }),
    };
    if (files.has("log/end")) files.remove("log/end");
    const writer = new LogWriter(files, head, i + 1, after, 0, BYTES);
    for (const last of lasts) {
      appendTo(writer, last);
      writer.sync();
    }
    writer.close();
  });
  return files;
}

const damageOf = (pieces: readonly Piece[]) => scanLog(craft(pieces), 0).damage;

describe("one memory at a time", () => {
  const sound: Record<string, Piece[]> = {
    "one memory": [
      { memoryId: A, after: 0, lasts: [3, 5] },
      { memoryId: A, after: 5, lasts: [8] },
    ],
    "one memory, whose writer died before it published its last batch": [
      { memoryId: A, after: 0, lasts: [3, 5] },
      { memoryId: A, after: 3, lasts: [6, 8] },
    ],
    "a memory that was rebuilt from the log": [
      { memoryId: A, after: 0, lasts: [3, 5] },
      { memoryId: B, after: 5, lasts: [8] },
      { memoryId: B, after: 8, lasts: [9] },
      { memoryId: C, after: 9, lasts: [] },
    ],
    "older versions first": [
      { after: 0, lasts: [3, 5] },
      { after: 3, lasts: [6] },
      { memoryId: A, after: 6, lasts: [8] },
    ],
    "an older version in between": [
      { memoryId: A, after: 0, lasts: [5] },
      { after: 5, lasts: [6] },
      { memoryId: B, after: 6, lasts: [8] },
    ],
  };
  for (const [what, pieces] of Object.entries(sound)) {
    it(`${what}: sound`, () => expect(damageOf(pieces)).toEqual([]));
  }

  const wrong: Record<string, Piece[]> = {
    "goes on after another memory took over": [
      { memoryId: A, after: 0, lasts: [3, 5] },
      { memoryId: B, after: 3, lasts: [8] },
    ],
    "comes back": [
      { memoryId: A, after: 0, lasts: [3] },
      { memoryId: B, after: 3, lasts: [5] },
      { memoryId: A, after: 5, lasts: [8] },
    ],
    "had begun another segment when the next was rebuilt": [
      { memoryId: A, after: 0, lasts: [3] },
      { memoryId: A, after: 3, lasts: [5] },
      { memoryId: B, origin: 1, after: 5, lasts: [8] },
    ],
    "began its segment after the other had begun": [
      { memoryId: A, after: 0, lasts: [7] },
      { memoryId: A, after: 7, lasts: [] },
      { memoryId: B, after: 5, lasts: [8] },
    ],
  };
  for (const [what, pieces] of Object.entries(wrong)) {
    it(`${what}: damage that names both files`, () => {
      const [damage] = damageOf(pieces);
      expect(damage.what).toContain("two memories of the store");
      const last = pieces.length;
      expect(damage.what).toContain(`000000000${last}.log follows log/000000000${last - 1}.log`);
    });
  }

  it("is also told where a checkpoint has all that matters", () => {
    const files = craft([
      { memoryId: A, after: 0, lasts: [3, 5] },
      { memoryId: B, after: 3, lasts: [8, 9] },
    ]);
    expect(scanLog(files, 9).damage[0].what).toContain("two memories of the store");
  });
});

describe("a torn end, and another memory after it", () => {
  it("is sound, whatever is left of the last batch", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const files = new FaultyFiles({ seed });
      const writer = new LogWriter(files, { ...identity, memoryId: A, origin: 0 }, 1, 0, 0, BYTES);
      appendTo(writer, 3);
      writer.sync();
      appendTo(writer, 20);
      // The machine stops before the sync.
      const found = files.powerLoss(new Random(seed));
      const { lastEpoch, damage, segments } = scanLog(found, 0);
      expect(damage).toEqual([]);
      expect([3, 20]).toContain(lastEpoch);
      const origin = segments.at(-1)!.number;
      const next = new LogWriter(
        found,
        { ...identity, memoryId: B, origin },
        origin + 1,
        lastEpoch,
        0,
        BYTES,
      );
      appendTo(next, 30);
      next.close();
      expect(scanLog(found, 0)).toMatchObject({ damage: [], lastEpoch: 30 });
    }
  });
});

describe("the record of the end", () => {
  it("is one that was written, wherever the power fails", () => {
    const memory = { logId: identity.logId, memoryId: A, origin: 0 };
    for (let at = 1; at < 60; at++) {
      const files = new FaultyFiles({ seed: at });
      files.makeFolder("log");
      files.syncFolder("");
      files.fail({ kind: "power", at: files.operations + at });
      let done = 0;
      try {
        for (let number = 1; number <= 5; number++) {
          writeLogEnd(files, { ...memory, number, epoch: number, bytes: null }, memory);
          done = number;
        }
      } catch {
        // The power failed.
      }
      const end = readLogEnd(files.powerLoss(new Random(at))) as { number: number } | undefined;
      expect(end?.number ?? 0, `power lost at ${at}`).toBeGreaterThanOrEqual(done);
      expect(end?.number ?? 0).toBeLessThanOrEqual(done + 1);
    }
  });

  it("stops both of two memories that write the log", () => {
    const files = new FaultyFiles();
    const writer = (memoryId: string, origin: number, number: number) =>
      new LogWriter(files, { ...identity, memoryId, origin }, number, 0, 0, BYTES);
    const first = writer(A, 0, 1);
    appendTo(first, 3);
    first.sync();
    const second = new LogWriter(files, { ...identity, memoryId: B, origin: 1 }, 2, 3, 0, BYTES);
    appendTo(second, 5);
    second.sync();
    appendTo(first, 4);
    expect(() => first.close()).toThrow("two memories of the store");
    expect(() => second.close()).toThrow("two memories of the store");
    expect(() => writer(B, 1, 3)).toThrow("two memories of the store");
    expect(scanLog(files, 0).damage.length).toBeGreaterThan(0);
  });
});
