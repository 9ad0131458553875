/**
 * What a record does to memory that is being recovered. The records are made by hand here: those
 * that the engine writes are replayed in checkpoint-model.test.ts.
 */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { limitHigh, tidLow } from "../../src/engine/tid.ts";
import { Replay } from "../../src/log/recovery/apply.ts";
import { BlockTable, UNIT_WORDS } from "../../src/memory/blocks.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_WORDS,
  HEADER_WORDS,
  INCARNATION,
  VERSION_HIGH,
  VERSION_LOW,
} from "../../src/memory/object.ts";
import { CELL_BYTES, sizeClassOf } from "../../src/memory/size-classes.ts";
import { Random } from "../../src/runtime/random.ts";
import { transact } from "../helpers/engine-accounts.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import { highestRegionIn } from "../helpers/highest-region.ts";
import { NARROW, RecoveryStore } from "../helpers/recovery-store.ts";
import { codeOf } from "../helpers/snapshots.ts";

/** Cells of 64 bytes, and of 15 KiB in blocks of two units. */
const SMALL = sizeClassOf(64);
const LARGE = sizeClassOf(15 * 1024);
const CELL_WORDS = CELL_BYTES[SMALL] / 4;

interface Entry {
  readonly word: number;
  readonly incarnation: number;
  /** Of a cell that the record allocates. */
  readonly sizeClass?: number;
  readonly from?: number;
  readonly data?: readonly number[];
  readonly regionId?: number;
}

function record(epoch: number, sequence: number, slot: number, ...entries: Entry[]): number[] {
  const words = [0, entries.length, limitHigh(epoch), tidLow(epoch, sequence, slot)];
  for (const { word, incarnation, sizeClass = -1, from = 0, data = [], regionId = 0 } of entries) {
    words.push(regionId | ((sizeClass + 1) << 16), word, incarnation, from, data.length, ...data);
  }
  words[0] = words.length;
  return words;
}

describe("replay", () => {
  let store: EngineStore;

  beforeEach(() => {
    store = new EngineStore(NARROW, "threads", true);
    store.memory.createRegion(0, 0);
    store.memory.createRegion(1, 0);
  });

  afterEach(() => store.dispose());

  function replayOf(startEpoch = 0, isMine = (_: number): boolean => true): Replay {
    return new Replay(store.memory, { isMine, startEpoch });
  }

  function apply(replay: Replay, ...records: number[][]): void {
    replay.applyBatch(Int32Array.from(records.flat()));
  }

  const i32 = (regionId = 0): Int32Array => store.memory.region(regionId).i32;
  const wordsAt = (at: number, words: number): number[] => [...i32().slice(at, at + words)];
  const epochAt = (at: number): number => i32()[at + VERSION_LOW] >>> 20;

  test("an object is allocated, changed and freed", () => {
    const replay = replayOf();
    i32()[4 + 7] = 99;
    apply(
      replay,
      record(5, 0, 1, { word: 0, sizeClass: SMALL, incarnation: 1, data: [1, 2, 3, 4] }),
    );
    expect(wordsAt(0, 16)).toEqual([0, 0, tidLow(5, 0, 1), 1, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    apply(replay, record(6, 0, 1, { word: 0, incarnation: 1, from: 1, data: [7, 8] }));
    expect(wordsAt(0, 8)).toEqual([0, 0, tidLow(6, 0, 1), 1, 1, 7, 8, 4]);
    apply(replay, record(7, 0, 1, { word: 0, incarnation: 4 }));
    expect(wordsAt(0, 4)).toEqual([0, 0, tidLow(7, 0, 1), 4]);
    expect([replay.records, replay.applied, replay.skipped]).toEqual([3, 3, 0]);
  });

  test("an array and its elements are objects each", () => {
    const replay = replayOf();
    const element = ARRAY_HEADER_WORDS + HEADER_WORDS + 2;
    apply(
      replay,
      record(
        5,
        0,
        1,
        { word: 0, sizeClass: SMALL, incarnation: ARRAY | ALLOCATED, data: [2, 2] },
        { word: ARRAY_HEADER_WORDS, incarnation: ALLOCATED, data: [0, 0] },
      ),
    );
    apply(
      replay,
      record(6, 0, 1, { word: ARRAY_HEADER_WORDS, incarnation: 1, from: 1, data: [9] }),
    );
    expect(epochAt(0)).toBe(5);
    expect(epochAt(ARRAY_HEADER_WORDS)).toBe(6);
    expect(i32()[ARRAY_HEADER_WORDS + HEADER_WORDS + 1]).toBe(9);
    expect(wordsAt(element, 4)).toEqual([0, 0, 0, 0]);
  });

  test("the cell of an array that is used for an object has nothing of the elements left", () => {
    const replay = replayOf();
    apply(
      replay,
      record(
        5,
        0,
        1,
        { word: 0, sizeClass: SMALL, incarnation: ARRAY | ALLOCATED, data: [2, 1] },
        { word: 6, incarnation: ALLOCATED, data: [11, 12] },
      ),
      record(6, 0, 1, { word: 0, incarnation: 4 | ARRAY }, { word: 6, incarnation: 4 }),
      record(7, 0, 1, { word: 0, sizeClass: SMALL, incarnation: 5, data: [1] }),
    );
    expect(wordsAt(4, 12)).toEqual([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  });

  test("what the checkpoint has is not applied again", () => {
    const replay = replayOf(5);
    apply(
      replay,
      record(5, 9, 1, { word: 0, sizeClass: SMALL, incarnation: 1, data: [1] }),
      record(6, 0, 1, { word: 16, sizeClass: SMALL, incarnation: 1, data: [2] }),
    );
    expect(wordsAt(0, 5)).toEqual([0, 0, 0, 0, 0]);
    expect(i32()[20]).toBe(2);
    expect(replay.records).toBe(1);
  });

  test("the records of several slots are applied in the order of their TIDs", () => {
    const random = new Random(7);
    for (let round = 0; round < 100; round++) {
      const slots = 1 + random.below(6);
      const runs: number[][][] = Array.from({ length: slots }, () => []);
      let last = 0;
      const records = random.below(40);
      for (let i = 0; i < records; i++) {
        const slot = random.below(slots);
        const data = [last, random.next() | 0];
        last = data[1];
        // Each record says what the one before it in the order of TIDs has left.
        runs[slot].push(record(10 + (i >> 3), i & 7, slot, { word: 0, incarnation: 1, data }));
      }
      const replay = replayOf();
      // The memory is new in each round: no version is left of the one before.
      i32().fill(0, 0, 8);
      apply(replay, record(9, 0, 0, { word: 0, sizeClass: SMALL, incarnation: 1, data: [0, 0] }));
      apply(replay, ...runs.flat());
      expect(replay.records, `round ${round}`).toBe(records + 1);
      expect(i32()[5], `round ${round}`).toBe(last);
    }
  });

  test("TIDs are compared without their sign", () => {
    const replay = replayOf();
    const late = 0x9000_0000 * 4096;
    apply(
      replay,
      record(1, 0, 1, { word: 0, sizeClass: SMALL, incarnation: 1, data: [0, 0] }),
      record(late, 0xfff, 2, { word: 0, incarnation: 1, data: [2] }),
      record(0x7000_0000 * 4096, 0, 3, { word: 0, incarnation: 1, data: [3] }),
      record(late + 4095, 0, 1, { word: 0, incarnation: 1, from: 1, data: [4] }),
    );
    expect(wordsAt(4, 2)).toEqual([2, 4]);
    expect(i32()[VERSION_HIGH] >>> 0).toBe(0x9000_0000);
  });

  describe("of memory that changes its use", () => {
    const fill: Entry = { word: 16, sizeClass: SMALL, incarnation: 1, data: [5, 5, 5, 5] };

    test("makes a block of another class when the old one is empty", () => {
      const replay = replayOf();
      apply(
        replay,
        record(5, 0, 1, fill),
        record(6, 0, 1, { word: 16, incarnation: 12 }),
        record(9, 0, 1, { word: 0, sizeClass: LARGE, incarnation: 17, data: [1] }),
      );
      // Nothing of the old cells is left, and every new one has the first incarnation.
      const words = CELL_BYTES[LARGE] / 4;
      expect(wordsAt(4, 30)).toEqual([1, ...Array<number>(29).fill(0)]);
      expect(wordsAt(words, 5)).toEqual([0, 0, 0, 16, 0]);
      replay.finish();
      const table = new BlockTable(store.memory);
      expect([table.classOf(0), table.classOf(1)]).toEqual([LARGE, -1]);
      const { control } = store.memory;
      expect([...control.i32.slice(control.unitAt(0), control.unitAt(1))]).toEqual([
        (LARGE + 1) << 8,
        1,
        16,
        9,
      ]);
    });

    test("refuses to when it is not", () => {
      const replay = replayOf();
      apply(replay, record(5, 0, 1, fill));
      const taken = record(9, 0, 1, { word: 0, sizeClass: LARGE, incarnation: 17 });
      expect(() => apply(replay, taken)).toThrow("for another class, which is in use");
      expect(i32()[20]).toBe(5);
    });

    test("makes a block of the same class anew when incarnations have moved on", () => {
      const replay = replayOf();
      apply(
        replay,
        record(5, 0, 1, fill),
        record(6, 0, 1, { word: 16, incarnation: 12 }),
        record(9, 0, 1, { word: 0, sizeClass: SMALL, incarnation: 17, data: [1] }),
      );
      expect(wordsAt(16, 8)).toEqual([0, 0, 0, 16, 0, 0, 0, 0]);
    });

    test("does not when a cell was allocated and freed at once", () => {
      const replay = replayOf();
      apply(replay, record(5, 0, 1, { word: 0, sizeClass: SMALL, incarnation: 4 }));
      expect(i32()[INCARNATION]).toBe(4);
      expect(i32()[16 + INCARNATION]).toBe(0);
      apply(replay, record(6, 0, 1, fill));
      expect(i32()[INCARNATION]).toBe(4);
    });

    test("breaks a large block up, and puts one together", () => {
      const replay = replayOf();
      apply(
        replay,
        record(5, 0, 1, { word: 0, sizeClass: LARGE, incarnation: 1, data: [1] }),
        record(6, 0, 1, { word: 0, incarnation: 4 }),
        record(8, 0, 1, { word: UNIT_WORDS, sizeClass: SMALL, incarnation: 9, data: [2] }),
      );
      replay.finish();
      const table = new BlockTable(store.memory);
      expect([table.classOf(0), table.classOf(1)]).toEqual([-1, SMALL]);
      // The unit that is free goes on where the large block has ended.
      const { control } = store.memory;
      expect(control.i32[control.unitAt(0) + 2]).toBe(8);
    });
  });

  describe("after a checkpoint", () => {
    let source: RecoveryStore;

    beforeEach(() => {
      source = new RecoveryStore();
    });

    afterEach(() => source.dispose());

    test("records about an earlier life of a block, or of free memory, are skipped", () => {
      const [executor, flusher] = [source.store.open(), source.store.open()];
      const free = (word: number): void =>
        transact(executor, (tx) => tx.free(tx.open(executor.memory.region(0), word)));
      const word = transact(executor, (tx) => tx.set.wordOf(tx.allocate(40)));
      const other = transact(executor, (tx) => tx.set.wordOf(tx.allocate(1_000)));
      const writer = source.begin(flusher, false);
      // After the start, before the copy: the first block changes its class, the second is free.
      transact(executor, (tx) => {
        const entry = tx.open(executor.memory.region(0), other);
        tx.writable(entry, 250);
        tx.set.markDirty(entry, 0, 250);
      });
      free(word);
      free(other);
      expect(executor.slabs.releaseEmptyBlocks()).toBe(2);
      const large = transact(executor, (tx) => {
        const entry = tx.allocate(7_000);
        tx.set.arena.i32[tx.set.bufferOf(entry)] = 77;
        return tx.set.wordOf(entry);
      });
      expect(large).toBe(word);
      while (writer.step());
      const name = source.publish(flusher, writer);
      const recovered = source.recover(name);
      try {
        const table = new BlockTable(recovered.memory);
        expect([table.classOf(0), table.classOf(1)]).toEqual([sizeClassOf(7_016), -1]);
        expect(recovered.memory.region(0).i32[large + HEADER_WORDS]).toBe(77);
      } finally {
        recovered.dispose();
      }
    });

    test("the store can be used: orphans are adopted, nothing overlaps", () => {
      const [executor, flusher] = [source.store.open(), source.store.open()];
      const sizes = [40, 1_000, 14_000];
      const made: { word: number; size: number; value: number }[] = [];
      const make = (value: number): void => {
        const size = sizes[value % 3];
        transact(executor, (tx) => {
          const entry = tx.allocate(size);
          const at = tx.set.bufferOf(entry);
          tx.set.arena.i32.fill(value, at, at + size / 4);
          made.push({ word: tx.set.wordOf(entry), size, value });
        });
      };
      for (let i = 0; i < 30; i++) make(i);
      source.flush(flusher);
      const name = source.checkpoint(flusher, false);
      for (let i = 30; i < 60; i++) make(i);
      source.flush(flusher);
      const recovered = source.recover(name, 2);
      try {
        const again = recovered.open();
        const blocksBefore = new BlockTable(recovered.memory).freeUnits();
        const places = new Set<string>(made.map(({ word }) => `0:${word}`));
        for (let i = 0; i < 60; i++) {
          const place = transact(again, (tx) => {
            const entry = tx.allocate(sizes[i % 2]);
            return `${tx.set.regionIdOf(entry)}:${tx.set.wordOf(entry)}`;
          });
          expect(places.has(place), place).toBe(false);
          places.add(place);
        }
        // The orphans had room for all of these.
        expect(new BlockTable(recovered.memory).freeUnits()).toBe(blocksBefore);
        for (const { word, size, value } of made) {
          const data = recovered.memory.region(0).i32.slice(word + 4, word + 4 + size / 4);
          const isWhole = data.every((one) => one === value);
          expect(isWhole, `object ${value}`).toBe(true);
        }
      } finally {
        recovered.dispose();
      }
    });
  });

  describe("in parts", () => {
    test("applies what lies in its chunks, whatever the region, and counts the rest", () => {
      const records = [
        record(5, 0, 1, { word: 0, sizeClass: SMALL, incarnation: 1, data: [1] }),
        record(6, 0, 1, { regionId: 1, word: 0, sizeClass: SMALL, incarnation: 1, data: [2] }),
      ];
      const replay = replayOf(0, (chunk) => chunk === 1);
      apply(replay, ...records);
      expect([i32(0)[4], i32(1)[4]]).toEqual([0, 2]);
      expect([replay.records, replay.applied, replay.skipped]).toEqual([2, 1, 1]);
      replay.finish();
      const table = new BlockTable(store.memory);
      expect([table.classOf(0), table.classOf(16)]).toEqual([-1, SMALL]);
    });

    test("the regions that a log speaks of are known before it is applied", () => {
      const entry: Entry = { word: 0, incarnation: 1 };
      const words = [
        ...record(5, 0, 1, entry, { ...entry, regionId: 3, sizeClass: SMALL, data: [1, 2] }),
        ...record(6, 0, 1, { ...entry, regionId: 1 }),
      ];
      expect(highestRegionIn(Int32Array.from(words))).toBe(3);
      expect(highestRegionIn(new Int32Array(0))).toBe(-1);
    });
  });

  describe("of a record that cannot be", () => {
    const good: Entry = { word: 0, sizeClass: SMALL, incarnation: 1, data: [1, 2] };
    const bad: [string, number[]][] = [
      ["a region that the store cannot have", record(5, 0, 1, { ...good, regionId: 2 })],
      ["a word beyond its region", record(5, 0, 1, { ...good, word: NARROW.regionBytes / 4 })],
      ["a negative word", record(5, 0, 1, { ...good, word: -16 })],
      ["a size class that does not exist", record(5, 0, 1, { ...good, sizeClass: 256 })],
      ["more data than a cell has", record(5, 0, 1, { ...good, data: Array<number>(13).fill(1) })],
      ["data before its object", record(5, 0, 1, { ...good, from: -8 })],
      ["data behind its cell", record(5, 0, 1, { ...good, from: 11 })],
      ["a new cell in the middle of one", record(5, 0, 1, { ...good, word: 8 })],
      ["an element in the header", record(6, 0, 1, good, { word: 3, incarnation: 1, data: [1] })],
      ["an object where no block is", record(5, 0, 1, { word: 0, incarnation: 1, data: [1] })],
      [
        "a cell behind the last of its block",
        record(5, 0, 1, { word: 4 * 2 * UNIT_WORDS - 16, sizeClass: LARGE, incarnation: 1 }),
      ],
    ];

    test.each(bad)("%s: it is refused, and nothing is written", (_, words) => {
      const before = i32().slice();
      const replay = replayOf();
      expect(codeOf(() => apply(replay, words))).toBe("SITU_CORRUPT");
      // At most what came before it in the same record, and the incarnations of a new block.
      const isChanged = (word: number, at: number): boolean =>
        at >= 16 && at % CELL_WORDS !== INCARNATION && word !== before[at];
      expect(i32().findIndex(isChanged)).toBe(-1);
    });

    test.each([
      ["its own length", 0],
      ["the number of its entries", 1],
      ["the length of an entry", 8],
    ])("with any other number for %s: it is refused", (_, at) => {
      const words = record(5, 0, 1, good, { ...good, word: 16 });
      for (const wrong of [-1, 0, 1, 3, 5, 1_000, 2 ** 31 - 1, -(2 ** 31)]) {
        if (wrong === words[at]) continue;
        const changed = [...words];
        changed[at] = wrong;
        expect(
          codeOf(() => apply(replayOf(), changed)),
          `${wrong}`,
        ).toBe("SITU_CORRUPT");
      }
    });

    test("a word of garbage: it is refused with a code, or is a record like any other", () => {
      const random = new Random(11);
      for (let round = 0; round < 2_000; round++) {
        const words = record(5, 0, 1, good, { ...good, word: 16 }, { word: 16, incarnation: 4 });
        words[random.below(words.length)] = random.next() | 0;
        const fresh = replayOf();
        try {
          apply(fresh, words);
        } catch (error) {
          expect((error as { code?: string }).code, `round ${round}`).toBe("SITU_CORRUPT");
        }
        i32().fill(0);
      }
    });

    test("it says which record, and what is wrong", () => {
      const words = [
        ...record(5, 0, 1, good),
        ...record(6, 0, 1, { word: 40_000, incarnation: 1 }),
      ];
      expect(() => apply(replayOf(), words)).toThrow(
        /at word 11 of its batch, epoch 6: there is no block at word 40000 of region 0/,
      );
    });
  });
});
