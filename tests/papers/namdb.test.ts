/**
 * NAM-DB (Zamanian et al., VLDB 2017), §4 to §5.3, statement by statement. Quotations are the
 * paper's. "Deviation" names what is different here and why.
 *
 * Deviations that concern all of it: one shared epoch takes the place of the timestamp vector (§4.1),
 * for on one machine it is one load, and moves only when somebody takes a snapshot. A version is
 * that of a whole object, be it a row, a bucket or a tree node, so indexes are versioned too (§5.2).
 * The old-version buffers belong to executors, not to records, so appending takes no lock. And a
 * version is kept only if a registered snapshot needs it.
 *
 * Absent: a thread that fetches the vector, its compression and partitioning (§4.2), and extents
 * (§5.3), which FaRM's allocator replaces (tests/papers/farm.test.ts).
 */

import "../helpers/engine-all-atomics.ts";

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { slotOf } from "../../src/engine/tid.ts";
import { table, u32 } from "../../src/index.ts";
import { EPOCH_HIGH, EPOCH_LOW } from "../../src/memory/control.ts";
import { HEADER_WORDS, LOCK, VERSION_LOW } from "../../src/memory/object.ts";
import { sleepSync } from "../../src/runtime/clock.ts";
import { TimeoutError } from "../../src/runtime/errors.ts";
import { atStep, hookAtomics } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import {
  codeOf,
  dieForGood,
  growthOf,
  LIFE_MS,
  type Place,
  read,
  TINY,
  TINY_WORDS,
  Worker,
  write,
} from "../helpers/snapshots.ts";
import { temporaryStores } from "../helpers/store.ts";

const VERSION_BYTES = 128;
const RING_OBJECTS = TINY.ringBytes / VERSION_BYTES;
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

let store: EngineStore;
let writer: Worker;
let reader: Worker;

beforeEach(() => {
  store = new EngineStore(TINY);
  writer = new Worker(store);
  reader = new Worker(store);
});
afterEach(() => store.dispose());

const see = (snapshot: Snapshot, places: readonly Place[]): unknown[] =>
  places.map((place) => reader.readAt(snapshot, place));
const epochNow = (): number => writer.executor.epochs.current();

/** The words that atomic loads touched while some work was done. */
function loadsDuring(work: () => void): { array: Int32Array | BigInt64Array; index: number }[] {
  const loads: { array: Int32Array | BigInt64Array; index: number }[] = [];
  const off = hookAtomics({ afterLoad: (array, index) => loads.push({ array, index }) });
  try {
    work();
  } finally {
    off();
  }
  return loads;
}

describe("NAM-DB §4.1, timestamps", () => {
  it("“as long as the version of the record is smaller or equal […], the update is visible. If not, an older version has to be used”", () => {
    const [x] = writer.create([1]);
    const snapshots: [Snapshot, number][] = [];
    for (let value = 2; value < 8; value++) {
      snapshots.push([reader.take(), value - 1]);
      writer.write(x, value);
      writer.write(x, value);
    }
    for (const [snapshot, value] of snapshots) expect(reader.readAt(snapshot, x)).toBe(value);
  });

  it("“Creating a new commit timestamp can be done without communication”: commits leave the shared epoch alone", () => {
    const places = writer.create(upTo(10));
    const before = epochNow();
    let shared = 0;
    const off = hookAtomics({
      before: ({ array, index }) => {
        const words = array instanceof BigInt64Array ? 2 * index : index;
        const isControl = array.buffer === writer.executor.memory.control.i32.buffer;
        if (isControl && (words === EPOCH_LOW || words === EPOCH_HIGH)) shared++;
      },
    });
    for (let round = 0; round < 100; round++) {
      for (const place of places) writer.write(place, round);
    }
    off();
    expect(shared).toBe(0);
    expect(epochNow()).toBe(before);
  });

  it("“store only the timestamp of the compute server that did the latest update”: a version names its slot", () => {
    const [x] = writer.create([1]);
    const versionLow = (): number => store.memory.region(x.regionId).i32[x.word + VERSION_LOW];
    expect(slotOf(versionLow())).toBe(writer.executor.slot);
    reader.write(x, 2);
    expect(slotOf(versionLow())).toBe(reader.executor.slot);
  });

  it("“long running transactions […] do not prevent the read timestamp to advance”", () => {
    const [x] = writer.create([1]);
    const long = new Worker(store);
    const commit = long.prepare((tx) => {
      expect(read(tx, x)).toBe(1);
      write(tx, x, 100);
    });
    const snapshots = upTo(5).map((value) => {
      writer.write(x, value);
      return reader.take();
    });
    expect(snapshots.map((snapshot) => reader.readAt(snapshot, x))).toEqual(upTo(5));
    expect(commit()).toBe(false);
    long.executor.leave();
  });

  it("“… or crashed machines”: whoever takes a snapshot recovers a dead committer", () => {
    const [x] = writer.create([1]);
    const commit = writer.prepare((tx) => write(tx, x, 2));
    // Dead right after the commit point: the value counts, though nobody has installed it.
    const status = store.memory.control.slotAt(writer.executor.slot);
    let stores = 0;
    const isCommitPoint = ({ index }: { index: number }): boolean =>
      index === status && ++stores === 3;
    expect(dieForGood(isCommitPoint, "after", () => commit())).toBe(true);
    store.kill(writer.executor);
    const snapshot = reader.take();
    expect(reader.readAt(snapshot, x)).toBe(2);
    expect(reader.counted("recoveries")).toBe(1);
  });

  it("deviation: a committer that is stopped, not dead, holds up snapshots; the error names it", () => {
    const [x] = writer.create([1]);
    const commit = writer.prepare((tx) => write(tx, x, 2));
    const failures: unknown[] = [];
    const steps = atStep(5, "after", () => {
      try {
        reader.take(LIFE_MS, 5);
      } catch (error) {
        failures.push(error);
      }
    });
    expect(commit()).toBe(true);
    steps.off();
    writer.executor.leave();
    expect(failures).toHaveLength(1);
    expect(failures[0]).toBeInstanceOf(TimeoutError);
    expect((failures[0] as TimeoutError).holder?.slot).toBe(writer.executor.slot);
    expect(reader.readAt(reader.take(), x)).toBe(2);
  });

  it("“timestamps are still progressing monotonically”: whoever comes later sees no less, in any process", () => {
    const places = writer.create([0, 0]);
    let epoch = 0;
    let seen = [0, 0];
    for (let round = 1; round < 30; round++) {
      [writer, reader][round % 2].write(places[round % 2], round);
      const taker = [reader, writer][(round >> 1) % 2];
      const snapshot = taker.take();
      expect(snapshot.epoch).toBeGreaterThan(epoch);
      const now = places.map((place) => taker.readAt(snapshot, place)!);
      expect(Math.max(...now)).toBe(round);
      for (const i of [0, 1]) expect(now[i]).toBeGreaterThanOrEqual(seen[i]);
      epoch = snapshot.epoch;
      seen = now;
      snapshot.release();
    }
  });
});

describe("NAM-DB §5.1, versions", () => {
  it("“the most recent version can always be read with a single RDMA request”: in place, and no buffer is looked at", () => {
    const [hot, cold] = writer.create([1, 2]);
    const snapshot = reader.take();
    writer.write(hot, 3);
    const { i32: ring } = reader.executor.versions.ringOf(writer.executor.slot)!;
    const inRing = (work: () => void): number =>
      loadsDuring(work).filter(({ array }) => array.buffer === ring.buffer).length;
    expect(inRing(() => expect(reader.read(hot)).toBe(3))).toBe(0);
    expect(inRing(() => expect(reader.readAt(snapshot, cold)).toBe(2))).toBe(0);
    expect(inRing(() => expect(reader.readAt(snapshot, hot)).toBe(1))).toBeGreaterThan(0);
  });

  it("“the current version is moved to an old-version buffer and the new current version is installed in-place”", () => {
    const [x] = writer.create([7]);
    const snapshot = reader.take();
    writer.write(x, 8);
    const { i32 } = store.memory.region(x.regionId);
    expect(i32[x.word + HEADER_WORDS]).toBe(8);
    expect(writer.usedBytes).toBe(VERSION_BYTES);
    expect(reader.readAt(snapshot, x)).toBe(7);
  });

  it("“The data section is a full copy of the record”, of whatever length, also if one word changed", () => {
    const places = [4, 16, 60, 300].map((words) => writer.create([words], words)[0]);
    const snapshot = reader.take();
    for (const place of places) {
      writer.run((tx) => {
        const entry = tx.open(tx.executor.memory.region(place.regionId), place.word);
        tx.set.arena.i32[tx.writable(entry, place.words) + 1] = -1;
        tx.set.markDirty(entry, 1, 2);
      });
    }
    expect(see(snapshot, places)).toEqual([4, 16, 60, 300]);
  });

  it("“we first validate […] and set the lock-bit […]. If locking and validation fails, we abort. Otherwise, [it] is copied”", () => {
    const [x] = writer.create([1]);
    reader.take();
    const commit = writer.prepare((tx) => write(tx, x, 2));
    let locked = 0;
    const { i32 } = store.memory.region(x.regionId);
    const off = hookAtomics({
      before: () => {
        if (writer.usedBytes === 0) locked = Atomics.load(i32, x.word + LOCK);
      },
    });
    expect(commit()).toBe(true);
    off();
    writer.executor.leave();
    expect(locked).not.toBe(0);
    const late = writer.prepare((tx) => write(tx, x, 3));
    reader.take();
    reader.write(x, 4);
    const growth = growthOf(writer, () => expect(late()).toBe(false));
    writer.executor.leave();
    expect(growth.versionsKept).toBe(0);
  });

  it("“The old-version buffer has a fixed size”, “the oldest versions […] are continuously copied to an overflow region. That way, slots in the old-version buffer can be re-used”", () => {
    const places = writer.create(upTo(5 * RING_OBJECTS));
    const snapshot = reader.take();
    const ring = (): number => {
      const { usedUnits } = writer.executor.versions.ringOf(writer.executor.slot)!;
      return usedUnits * 32;
    };
    for (const place of places) {
      writer.write(place, 1_000);
      expect(ring()).toBeLessThanOrEqual(TINY.ringBytes);
    }
    const { overflow } = writer.executor.versions;
    expect(overflow.usedBytes() + ring()).toBe(places.length * VERSION_BYTES);
    expect(writer.counted("versionsMoved")).toBeGreaterThanOrEqual(4 * RING_OBJECTS - 1);
    expect(see(snapshot, places)).toEqual(upTo(5 * RING_OBJECTS));
  });

  it("the “version-mover thread”: any process, one at a time; what it moved is found all the same", () => {
    const places = writer.create(upTo(RING_OBJECTS));
    const snapshot = reader.take();
    for (const place of places) writer.write(place, 1_000);
    new Worker(store).tick();
    expect(writer.executor.versions.ringOf(writer.executor.slot)!.usedUnits).toBe(0);
    expect(writer.usedBytes).toBe(RING_OBJECTS * VERSION_BYTES);
    expect(see(snapshot, places)).toEqual(upTo(RING_OBJECTS));
  });

  it("“Keeping the moved versions in the buffer maximizes the number of versions that can be retrieved from” it. Deviation: they leave it, but only when it is half full", () => {
    const places = writer.create(upTo(RING_OBJECTS));
    reader.take();
    const half = RING_OBJECTS / 2;
    for (const place of places.slice(0, half - 1)) writer.write(place, 1_000);
    reader.tick();
    expect(writer.counted("versionsMoved")).toBe(0);
    for (const place of places.slice(half - 1, half + 2)) writer.write(place, 1_000);
    reader.tick();
    expect(writer.counted("versionsMoved")).toBeGreaterThan(0);
  });

  it("deviation: where no snapshot is open, nothing is copied; an object that changes often is copied once", () => {
    const [x] = writer.create([1]);
    const change = (): void => {
      for (let i = 0; i < 50; i++) writer.write(x, i);
    };
    expect(growthOf(writer, change).versionsKept).toBe(0);
    const snapshot = reader.take();
    expect(growthOf(writer, change).versionsKept).toBe(1);
    expect(reader.readAt(snapshot, x)).toBe(49);
  });

  it("deviation: a ring for each executor, not for each record: a hot record does not run out of versions", () => {
    const [hot] = writer.create([0]);
    const snapshots = upTo(2 * RING_OBJECTS).map((value) => {
      const snapshot = reader.take();
      [writer, reader][value % 2].write(hot, value + 1);
      return snapshot;
    });
    expect(snapshots.map((snapshot) => reader.readAt(snapshot, hot))).toEqual(
      upTo(2 * RING_OBJECTS),
    );
  });
});

describe("NAM-DB §5.2, tables and indexes", () => {
  const stores = temporaryStores();
  const Item = table(
    "item",
    { id: u32(), owner: u32() },
    { key: "id", indexes: { byOwner: { on: ["owner"], kind: "hash" } } },
  );

  it("“secondary indexes do not store any version information”. Deviation: they are objects, and a snapshot sees the old ones", async () => {
    const db = await stores.open({ tables: [Item] });
    db.transactSync((tx) => {
      for (let id = 0; id < 50; id++) tx.insert(Item, { id, owner: id % 5 });
    });
    const snapshot = db.snapshot();
    db.transactSync((tx) => {
      for (let id = 0; id < 50; id++) {
        if (id % 2 === 0) tx.delete(Item, id);
        else tx.update(Item, id, { owner: 9 });
      }
      for (let id = 100; id < 300; id++) tx.insert(Item, { id, owner: 3 });
    });
    const owned = [...snapshot.scan(Item, { index: "byOwner", eq: 3 })].map(({ id }) => id);
    expect(owned.sort((a, b) => a - b)).toEqual([3, 8, 13, 18, 23, 28, 33, 38, 43, 48]);
    expect(snapshot.get(Item, 48)).toEqual({ id: 48, owner: 3 });
    expect(snapshot.get(Item, 150)).toBeUndefined();
    snapshot.close();
  });
});

describe("NAM-DB §5.3, garbage collection", () => {
  it("“a timeout on the maximal transaction execution time E”: what is older may find its versions gone, and is told so", () => {
    const [x] = writer.create([1]);
    const snapshot = reader.take(15);
    writer.write(x, 2);
    expect(reader.readAt(snapshot, x)).toBe(1);
    sleepSync(20);
    writer.tick();
    expect(writer.usedBytes).toBe(0);
    expect(codeOf(() => reader.readAt(snapshot, x))).toBe("SITU_SNAPSHOT_TOO_OLD");
  });

  it("“determine old version records which can be safely evicted”: what a snapshot needs stays, however old; the rest goes at once", () => {
    const places = writer.create(upTo(60));
    const first = reader.take();
    for (const place of places.slice(0, 20)) writer.write(place, 1_000);
    const second = reader.take();
    for (const place of places.slice(20)) writer.write(place, 2_000);
    second.release();
    reader.tick();
    expect(see(first, places)).toEqual(upTo(60));
    first.release();
    reader.tick();
    expect(writer.usedBytes).toBe(0);
  });

  it("“truncated lazily from the overflow regions once contiguous regions can be freed”: a chunk is emptied as a whole", () => {
    const perChunk = TINY.chunkBytes / VERSION_BYTES;
    const places = writer.create(upTo(3 * perChunk));
    const first = reader.take();
    for (const place of places.slice(0, perChunk)) writer.write(place, 1_000);
    const second = reader.take();
    for (const place of places.slice(perChunk)) writer.write(place, 2_000);
    const { overflow } = writer.executor.versions;
    const before = overflow.usedBytes();
    first.release();
    new Worker(store).tick();
    expect(before - overflow.usedBytes()).toBeGreaterThanOrEqual(TINY.chunkBytes - TINY.ringBytes);
    expect(see(second, places)).toEqual(upTo(3 * perChunk).map((i) => (i < perChunk ? 1_000 : i)));
  });

  it("“To prevent old versions from taking up all the space”. Deviation: beside E there is a bound, and the oldest snapshots give way to it", () => {
    const places = writer.create(upTo(100));
    const snapshots: Snapshot[] = [];
    for (let round = 0; round < 6; round++) {
      snapshots.push(reader.take());
      for (const place of places) writer.write(place, round);
      expect(writer.usedBytes).toBeLessThanOrEqual(TINY.chunks * TINY.chunkBytes + TINY.ringBytes);
    }
    const registered = snapshots.map(({ isRegistered }) => isRegistered);
    expect(registered[0]).toBe(false);
    expect(registered[5]).toBe(true);
    expect(see(snapshots[5], places)).toEqual(new Array(100).fill(4));
  });

  it("§3.1: of two transactions that write the same record, the first committer wins", () => {
    const [x] = writer.create([0], TINY_WORDS);
    let attempts = 0;
    reader.run((tx) => {
      tx.readsOnly = true;
      const value = read(tx, x)!;
      if (++attempts === 1) writer.write(x, 10);
      tx.readsOnly = false;
      write(tx, x, value + 1);
    }, LIFE_MS);
    expect([attempts, reader.read(x)]).toEqual([2, 11]);
  });
});
