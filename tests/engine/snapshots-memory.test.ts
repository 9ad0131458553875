/** What snapshots cost: which versions are kept, for how long, and in how much memory. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { IN_USE_MASK } from "../../src/engine/snapshots/registry.ts";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { SNAPSHOTS_IN_USE } from "../../src/memory/control.ts";
import type { SituError } from "../../src/runtime/errors.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";
import {
  codeOf,
  create,
  createArray,
  growthOf,
  type Place,
  TINY,
  Worker,
  write,
} from "../helpers/snapshots.ts";

const VERSION_BYTES = 128;
const RING_OBJECTS = TINY.ringBytes / VERSION_BYTES;
const LIMIT_BYTES = TINY.chunks * TINY.chunkBytes;
const TOO_OLD = "SITU_SNAPSHOT_TOO_OLD";

let store: EngineStore;
let writer: Worker;
let reader: Worker;

function start(geometry = TINY): void {
  store?.dispose();
  store = new EngineStore(geometry);
  writer = new Worker(store);
  reader = new Worker(store);
}

beforeEach(() => start());
afterEach(() => store.dispose());

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const see = (snapshot: Snapshot, places: readonly Place[]): unknown[] =>
  places.map((place) => reader.readAt(snapshot, place));

describe("what is kept", () => {
  test("nothing, while no snapshot is open", () => {
    const places = writer.create(upTo(20));
    const growth = growthOf(writer, () => {
      reader.take().release();
      for (const place of places) writer.write(place, 1);
      for (const place of places) writer.free(place);
    });
    expect(growth.versionsKept).toBe(0);
    expect(writer.usedBytes).toBe(0);
    expect(writer.executor.versions.ringOf(writer.executor.slot)).toBeUndefined();
  });

  test("each object once for all snapshots between two of its versions, however often it changes", () => {
    const places = writer.create(upTo(8));
    const snapshots = [reader.take(), reader.take(), writer.take()];
    const growth = growthOf(writer, () => {
      for (let round = 0; round < 10; round++) {
        for (const place of places) writer.write(place, round);
      }
    });
    expect(growth.versionsKept).toBe(8);
    snapshots.push(reader.take());
    const more = growthOf(writer, () => {
      for (let round = 0; round < 10; round++) writer.write(places[0], round);
    });
    expect(more.versionsKept).toBe(1);
  });

  test("nothing of what was made after the snapshot, not even when it is freed", () => {
    const snapshot = reader.take();
    const growth = growthOf(writer, () => {
      const places = writer.create(upTo(8));
      for (const place of places) writer.write(place, 1);
      for (const place of places) writer.free(place);
      writer.create(upTo(8));
    });
    expect(growth.versionsKept).toBe(0);
    expect(snapshot.release()).toBe(true);
  });

  test("nothing for a commit that fails", () => {
    const [place] = writer.create([1]);
    const snapshot = reader.take();
    const commit = writer.prepare((tx) => write(tx, place, 2));
    reader.write(place, 3);
    const kept = writer.counted("versionsKept");
    expect(commit()).toBe(false);
    writer.executor.leave();
    expect(writer.counted("versionsKept")).toBe(kept);
    expect(reader.readAt(snapshot, place)).toBe(1);
  });

  test("nothing is left after the last snapshot and a round of the keeper, whoever runs it", () => {
    const places = writer.create(upTo(60));
    const snapshots = [reader.take()];
    for (const place of places) writer.write(place, 1);
    snapshots.push(writer.take());
    for (const place of places) reader.write(place, 2);
    expect(writer.usedBytes).toBeGreaterThan(TINY.ringBytes);
    snapshots[1].release();
    reader.tick();
    expect(reader.usedBytes).toBeGreaterThan(0);
    expect(see(snapshots[0], places)).toEqual(upTo(60));
    snapshots[0].release();
    new Worker(store).tick();
    expect(writer.usedBytes).toBe(0);
    expect(Atomics.load(store.memory.control.i32, SNAPSHOTS_IN_USE) & IN_USE_MASK).toBe(0);
  });

  test("what only a released snapshot needed is given up while others stay", () => {
    const places = writer.create(upTo(60));
    const older = reader.take();
    for (const place of places.slice(0, 48)) writer.write(place, 1);
    const newer = reader.take();
    for (const place of places.slice(48)) writer.write(place, 1);
    const before = writer.usedBytes;
    older.release();
    reader.tick();
    expect(writer.usedBytes).toBeLessThan(before - 30 * VERSION_BYTES);
    expect(see(newer, places)).toEqual(upTo(60).map((i) => (i < 48 ? 1 : i)));
  });
});

describe("when there is no room", () => {
  /** As many objects as fill everything twice. */
  const OBJECTS = 2 * (LIMIT_BYTES / VERSION_BYTES + RING_OBJECTS);

  test("the oldest snapshots give way, the newest stay, and no writer fails or waits", () => {
    const places = writer.create(upTo(OBJECTS));
    const snapshots: Snapshot[] = [];
    for (let round = 1; round <= 12; round++) {
      snapshots.push(reader.take());
      for (let i = 0; i < 60; i++) writer.write(places[i], round * 1_000 + i);
      expect(writer.executor.versions.overflow.usedBytes()).toBeLessThanOrEqual(LIMIT_BYTES);
      expect(writer.usedBytes).toBeLessThanOrEqual(LIMIT_BYTES + TINY.ringBytes);
      const registered = snapshots.map(({ isRegistered }) => isRegistered);
      const first = registered.indexOf(true);
      expect(registered.slice(first)).not.toContain(false);
      // What one snapshot needs here fits twice and more.
      expect(registered.length - first).toBeGreaterThanOrEqual(Math.min(round, 2));
      for (const [at, snapshot] of snapshots.entries()) {
        const expected = (i: number): number => (at === 0 ? i : at * 1_000 + i);
        for (const i of [0, 31, 59]) {
          if (registered[at]) expect(reader.readAt(snapshot, places[i])).toBe(expected(i));
          else expect(codeOf(() => reader.readAt(snapshot, places[i]))).toBe(TOO_OLD);
        }
      }
    }
    expect(writer.counted("snapshotsReleased")).toBeGreaterThan(0);
    expect(writer.counted("conflicts")).toBe(0);
  });

  test("a snapshot that needs more than there can be is released, and the commit goes through", () => {
    const places = writer.create(upTo(OBJECTS));
    const snapshot = reader.take();
    for (const place of places) writer.write(place, 1);
    expect(snapshot.isRegistered).toBe(false);
    expect(codeOf(() => reader.readAt(snapshot, places[0]))).toBe(TOO_OLD);
    // Also what was not changed: once released, nothing counts.
    expect(codeOf(() => reader.readAt(snapshot, places[OBJECTS - 1]))).toBe(TOO_OLD);
    expect(places.every((place) => reader.read(place) === 1)).toBe(true);
    writer.tick();
    expect(writer.usedBytes).toBe(0);
  });

  test("an object that no ring can hold: snapshots that need it go, others are not in the way", () => {
    const [big] = writer.create([5], TINY.ringBytes / 4);
    const snapshot = reader.take();
    writer.write(big, 6);
    expect(snapshot.isRegistered).toBe(false);
    const later = reader.take();
    const [small] = writer.create([1]);
    writer.write(small, 2);
    expect(later.isRegistered).toBe(true);
  });

  test("with no overflow area at all, a ring is all there is", () => {
    start({ ...TINY, chunks: 0 });
    const places = writer.create(upTo(RING_OBJECTS + 1));
    const snapshot = reader.take();
    for (const place of places.slice(1)) writer.write(place, 100);
    expect(see(snapshot, places)).toEqual(upTo(RING_OBJECTS + 1));
    writer.write(places[0], 100);
    expect(snapshot.isRegistered).toBe(false);
  });
});

describe("memory that a snapshot can still reach", () => {
  test("an empty block is not given to another class while an older snapshot is open", () => {
    const places = writer.create(upTo(50), 32);
    const snapshot = reader.take();
    for (const place of places) writer.free(place);
    expect(writer.executor.slabs.releaseEmptyBlocks()).toBe(0);
    expect(see(snapshot, places)).toEqual(upTo(50));
    snapshot.release();
    expect(writer.executor.slabs.releaseEmptyBlocks()).toBe(1);
    expect(codeOf(() => reader.readAt(snapshot, places[0]))).toBe(TOO_OLD);
  });

  test("the cell of a freed array rests while an older snapshot is open", () => {
    const make = (): Place => writer.run((tx) => createArray(tx, 4, 6, 1));
    const array = make();
    const snapshot = reader.take();
    writer.free(array);
    const others = upTo(2_000).map(make);
    expect(others.map(({ word }) => word)).not.toContain(array.word);
    snapshot.release();
    const cells = new Set([array.word]);
    for (let i = 0; i < 2_000 && cells.size > 0; i++) cells.delete(make().word);
    expect(cells.size, "used again in the end").toBe(0);
  });

  /** Objects until the store has no room for another. */
  function fillUp(words: number): Place[] {
    const places: Place[] = [];
    try {
      for (;;) places.push(writer.run((tx) => create(tx, words, 1)));
    } catch (error) {
      expect((error as SituError).code).toBe("SITU_FULL");
    }
    return places;
  }

  test("a writer that needs it comes first: the snapshot is released, nothing fails", () => {
    start({ ...SMALL, regions: 1 });
    const places = fillUp(1_000);
    const snapshot = reader.take();
    for (const place of places) writer.free(place);
    expect(writer.create([7], 3_000)).toHaveLength(1);
    expect(snapshot.isRegistered).toBe(false);
    expect(codeOf(() => reader.readAt(snapshot, places[0]))).toBe(TOO_OLD);
  });

  test("the same for arrays that rest in blocks which are not empty", () => {
    start({ ...SMALL, regions: 1 });
    const arrays: Place[] = [];
    try {
      for (;;) arrays.push(writer.run((tx) => createArray(tx, 4, 200, 1)));
    } catch (error) {
      expect((error as SituError).code).toBe("SITU_FULL");
    }
    const snapshot = reader.take();
    // One in two stays, so that no block is empty.
    for (let i = 0; i < arrays.length; i += 2) writer.free(arrays[i]);
    writer.run((tx) => createArray(tx, 4, 200, 2));
    expect(snapshot.isRegistered).toBe(false);
  });

  test("if a transaction is what keeps it, snapshots are not released in vain", () => {
    start({ ...SMALL, regions: 1 });
    const places = fillUp(1_000);
    const [snapshot, other] = [reader.take(), new Worker(store)];
    other.executor.enter();
    for (const place of places) writer.free(place);
    expect(codeOf(() => writer.create([7], 3_000))).toBe("SITU_FULL");
    expect(snapshot.isRegistered).toBe(true);
    other.executor.leave();
    expect(writer.create([7], 3_000)).toHaveLength(1);
  });
});
