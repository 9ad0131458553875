/**
 * Interleavings, step by step: what others do between two atomic steps of taking a snapshot, of
 * reading from it, of a commit.
 */

import "../helpers/engine-all-atomics.ts";

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { raiseEpoch } from "../../src/engine/epoch.ts";
import { IN_USE_MASK } from "../../src/engine/snapshots/registry.ts";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { SNAPSHOTS_IN_USE } from "../../src/memory/control.ts";
import { LOCK, VERSION_HIGH, VERSION_LOW } from "../../src/memory/object.ts";
import { SituError, TimeoutError } from "../../src/runtime/errors.ts";
import {
  type AtomicStep,
  atStep,
  Death,
  hookAtomics,
  type When,
} from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import {
  create,
  createArray,
  dieForGood,
  elementOf,
  free,
  LIFE_MS,
  type Place,
  read,
  TINY,
  TINY_WORDS,
  Worker,
  write,
} from "../helpers/snapshots.ts";

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 300;

let store: EngineStore;
const restart = (): void => {
  store?.dispose();
  store = new EngineStore(TINY);
};
beforeEach(restart);
afterEach(() => store.dispose());

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe("a reader", () => {
  test("looks at a version while a run of 4096 epochs ends: what is newer than it stays newer", () => {
    const [reader, writer] = [new Worker(store), new Worker(store)];
    const { control } = store.memory;
    raiseEpoch(control, 4_090);
    let looks = 0;
    reader.run((tx) => {
      raiseEpoch(control, 4_095);
      const [place] = writer.create([1]);
      const region = store.memory.region(place.regionId);
      const word = place.word + VERSION_HIGH;
      const before = region.i32[word];
      expect(tx.seesCurrent(region, place.word), "made after the snapshot").toBe(false);
      raiseEpoch(control, 4_097);
      const off = hookAtomics({
        afterLoad: (array, index) => {
          if (array !== region.i32 || index !== word || looks++ > 0) return;
          writer.write(place, 2);
        },
      });
      try {
        expect(tx.seesCurrent(region, place.word), "and changed meanwhile").toBe(false);
      } finally {
        off();
      }
      expect(region.i32[word]).toBe(before + 1);
    }, LIFE_MS);
    expect(looks).toBeGreaterThan(1);
  });

  /** Runs a read with something done after its k-th load, and something else a few loads later. */
  function disturbed(
    k: number,
    later: number,
    acts: readonly [() => void, () => void],
    work: () => void,
  ): boolean {
    let loads = 0;
    const off = hookAtomics({
      afterLoad: () => {
        loads++;
        if (loads === k) acts[0]();
        if (loads === k + later) acts[1]();
      },
    });
    try {
      work();
    } finally {
      off();
    }
    return loads >= k;
  }

  test("a version moves and its chunk is filled anew between any two of the reader's loads", () => {
    const wrong: string[] = [];
    let moved = 0;
    for (let k = 1, reached = true; reached; k++) {
      for (let later = 0; later < 5; later++) {
        restart();
        const [writer, reader, cleaner] = [new Worker(store), new Worker(store), new Worker(store)];
        const places = writer.create(upTo(140));
        const older = reader.take();
        // A chunk full of what only the older snapshot needs, but for the last.
        for (let i = 1; i < 32; i++) writer.write(places[i], 1_000 + i);
        const snapshot = reader.take();
        writer.write(places[0], 1_000);
        for (let i = 32; i < 48; i++) writer.write(places[i], 1_000 + i);
        older.release();
        const clean = (): void => cleaner.tick();
        const fill = (): void => {
          for (let i = 48; i < 110; i++) writer.write(places[i], 2_000 + i);
        };
        reached = disturbed(k, later, [clean, fill], () => {
          const value = reader.readAt(snapshot, places[0]);
          if (value !== 0) wrong.push(`after load ${k} and ${later} more: ${value}`);
        });
        moved += writer.counted("versionsMoved");
        expect(writer.counted("snapshotsReleased")).toBe(0);
      }
      expect(k).toBeLessThan(MOST_STEPS);
    }
    expect(moved).toBeGreaterThan(0);
    expect(wrong).toEqual([]);
  });

  test("its version leaves the ring between any two of its loads", () => {
    for (let k = 1, reached = true; reached; k++) {
      restart();
      const [writer, reader] = [new Worker(store), new Worker(store)];
      const places = writer.create(upTo(60));
      const snapshot = reader.take();
      writer.write(places[0], 1_000);
      const overrun = (): void => {
        for (let i = 1; i < 40; i++) writer.write(places[i], 1_000 + i);
      };
      reached = disturbed(k, 0, [overrun, () => {}], () => {
        expect(reader.readAt(snapshot, places[0]), `after load ${k}`).toBe(0);
        expect(reader.readAt(snapshot, places[30]), `after load ${k}`).toBe(30);
      });
      expect(k).toBeLessThan(MOST_STEPS);
    }
  });

  test("the snapshot is released, its versions given up, their room used, between two loads", () => {
    const outcomes = new Set<unknown>();
    for (let k = 1, reached = true; reached; k++) {
      restart();
      const [writer, reader] = [new Worker(store), new Worker(store)];
      const places = writer.create(upTo(60));
      const snapshot = reader.take();
      for (let i = 0; i < 30; i++) writer.write(places[i], 1_000 + i);
      const release = (): void => {
        snapshot.release();
        const next = writer.take();
        for (const [i, place] of places.entries()) writer.write(place, 2_000 + i);
        next.release();
        writer.tick();
      };
      reached = disturbed(k, 0, [release, () => {}], () => {
        for (const i of [0, 20, 29, 50]) {
          try {
            const value = reader.readAt(snapshot, places[i]);
            outcomes.add(value);
            expect(value, `after load ${k}`).toBe(i);
          } catch (error) {
            if (!(error instanceof SituError)) throw error;
            outcomes.add(error.code);
            expect(error.code).toBe("SITU_SNAPSHOT_TOO_OLD");
          }
        }
      });
      expect(k).toBeLessThan(MOST_STEPS);
    }
    expect(outcomes).toContain("SITU_SNAPSHOT_TOO_OLD");
    expect(outcomes).toContain(29);
  });

  test("an object is overwritten, freed, and its cell used again between any two loads", () => {
    for (let k = 1, reached = true; reached; k++) {
      restart();
      const [writer, reader] = [new Worker(store), new Worker(store)];
      const [place] = writer.create([7]);
      const snapshot = reader.take();
      const change = (): void => {
        writer.write(place, 8);
        writer.free(place);
        const [again] = writer.create([9]);
        expect(again.word).toBe(place.word);
      };
      reached = disturbed(k, 0, [change, () => {}], () => {
        expect(reader.readAt(snapshot, place), `after load ${k}`).toBe(7);
      });
      expect(k).toBeLessThan(MOST_STEPS);
    }
  });
});

describe("taking a snapshot", () => {
  /** A snapshot is taken; after its k-th atomic change somebody else does something. */
  function takeWith(taker: Worker, k: number, when: When, act: () => void): [Snapshot, boolean] {
    const point = atStep(k, when, act);
    try {
      return [taker.take(), point.count() >= k];
    } finally {
      point.off();
    }
  }

  function atEachStep(act: (k: number, when: When) => boolean): void {
    for (const when of WHENS) {
      for (let k = 1; act(k, when); k++) {
        expect(k).toBeLessThan(MOST_STEPS);
        restart();
      }
      restart();
    }
  }

  test("the epoch moves on and a writer releases all snapshots, at any step of it", () => {
    atEachStep((k, when) => {
      const [taker, writer] = [new Worker(store), new Worker(store)];
      const [x, y] = writer.create([1, 1]);
      const [snapshot, reached] = takeWith(taker, k, when, () => {
        writer.executor.epochs.advance();
        writer.executor.versions.keeper.releaseAll();
      });
      writer.run((tx) => {
        write(tx, x, 2);
        write(tx, y, 2);
      });
      const point = `${when} step ${k}`;
      if (snapshot.isRegistered) {
        expect([taker.readAt(snapshot, x), taker.readAt(snapshot, y)], point).toEqual([1, 1]);
      }
      // Nobody's but the taker's: with it, it goes.
      store.kill(taker.executor);
      writer.executor.sweep();
      expect(writer.open, point).toBe(0);
      return reached;
    });
  });

  test("the epoch moves on, the snapshot is released, and another takes its place in the table", () => {
    atEachStep((k, when) => {
      const [taker, other, writer] = [new Worker(store), new Worker(store), new Worker(store)];
      const [x] = writer.create([1]);
      let theirs: Snapshot | undefined;
      const [snapshot, reached] = takeWith(taker, k, when, () => {
        writer.executor.epochs.advance();
        writer.executor.versions.keeper.releaseAll();
        writer.write(x, 2);
        theirs = other.take();
      });
      writer.write(x, 3);
      const point = `${when} step ${k}`;
      if (theirs !== undefined) {
        expect(theirs.isRegistered, point).toBe(true);
        expect(other.readAt(theirs, x), point).toBe(2);
      }
      if (snapshot.isRegistered) {
        expect([1, 2], point).toContain(taker.readAt(snapshot, x));
      }
      snapshot.release();
      expect(theirs?.isRegistered ?? true, point).toBe(true);
      theirs?.release();
      expect(writer.open, point).toBe(0);
      return reached;
    });
  });

  test("others commit at any step of it: it sees what was there before, and all or nothing else", () => {
    atEachStep((k, when) => {
      const [taker, writer] = [new Worker(store), new Worker(store)];
      const [x, y] = writer.create([1, 1]);
      writer.run((tx) => {
        write(tx, x, 2);
        write(tx, y, 2);
      });
      const [snapshot, reached] = takeWith(taker, k, when, () => {
        writer.run((tx) => {
          write(tx, x, 3);
          write(tx, y, 3);
        });
      });
      const seen = taker.readAt(snapshot, x);
      const point = `${when} step ${k}`;
      expect([2, 3], point).toContain(seen);
      expect(taker.readAt(snapshot, y), point).toBe(seen);
      writer.run((tx) => {
        write(tx, y, 4);
        write(tx, x, 4);
      });
      expect([taker.readAt(snapshot, x), taker.readAt(snapshot, y)], point).toEqual([seen, seen]);
      return reached;
    });
  });

  test("two are released at once: whoever lowers the word last does not stop half-way", () => {
    const worker = new Worker(store);
    const [, lower, upper] = [worker.take(), worker.take(), worker.take()].map((snapshot, i) => {
      if (i === 0) snapshot.release();
      return snapshot;
    });
    const { i32, i64 } = store.memory.control;
    const isLowering = ({ operation, index }: AtomicStep): boolean =>
      operation === "compareExchange" && index === SNAPSHOTS_IN_USE / 2;
    // The first stops before its compare-and-swap, which is done for it when the second gets there.
    let [expected, wanted] = [0n, 0n];
    const stop = hookAtomics({
      before: (step) => {
        if (!isLowering(step)) return;
        [expected, wanted] = [Atomics.load(i64, SNAPSHOTS_IN_USE / 2), BigInt(step.value)];
        throw new Death("stopped");
      },
    });
    expect(() => upper.release()).toThrow(Death);
    stop();
    let resumed = false;
    const resume = hookAtomics({
      before: (step) => {
        if (!isLowering(step) || resumed) return;
        resumed = true;
        expect(Atomics.compareExchange(i64, SNAPSHOTS_IN_USE / 2, expected, wanted)).toBe(expected);
      },
    });
    lower.release();
    resume();
    expect(resumed).toBe(true);
    expect(Atomics.load(i32, SNAPSHOTS_IN_USE) & IN_USE_MASK).toBe(0);
  });
});

describe("a block that is given back", () => {
  test("while the last free in it is being installed: what a snapshot sees of it stays", () => {
    const [owner, victim, holder] = [new Worker(store), new Worker(store), new Worker(store)];
    const [place] = owner.create([7], 32);
    const { i32 } = store.memory.region(place.regionId);
    const version = [i32[place.word + VERSION_HIGH], i32[place.word + VERSION_LOW]];
    const snapshot = holder.take();
    const commit = victim.prepare((tx) => free(tx, place));
    const isUnlock = ({ index, value }: AtomicStep): boolean =>
      index === place.word + LOCK && value === 0;
    expect(dieForGood(isUnlock, "before", () => commit())).toBe(true);
    // As if it had died a little earlier: the new incarnation is there, the version is not.
    [i32[place.word + VERSION_HIGH], i32[place.word + VERSION_LOW]] = version;
    store.kill(victim.executor);
    const off = hookAtomics({
      before: ({ array }) => {
        if (array instanceof BigInt64Array) holder.executor.recoverIfDead(victim.executor.slot);
      },
    });
    const released = owner.executor.slabs.releaseEmptyBlocks();
    off();
    expect(released).toBe(0);
    holder.executor.recoverIfDead(victim.executor.slot);
    expect(holder.counted("recoveries")).toBe(1);
    expect(holder.readAt(snapshot, place)).toBe(7);
    snapshot.release();
    expect(owner.executor.slabs.releaseEmptyBlocks()).toBe(1);
  });
});

describe("a snapshot taken between any two atomic steps of another's commit", () => {
  const SHORT_MS = 3;

  /** Overwrites, frees, allocates; arrays too. */
  function change(worker: Worker, objects: readonly Place[], gone: Place, array: Place): Place {
    return worker.run((tx) => {
      for (const object of objects) write(tx, object, (read(tx, object) ?? 0) + 100);
      free(tx, gone);
      free(tx, array);
      return create(tx, TINY_WORDS, 77);
    });
  }

  test("sees all of its write set or nothing of it, or says who is in the way", () => {
    const outcomes = new Set<string>();
    for (const when of WHENS) {
      for (let k = 1, reached = true; reached; k++) {
        restart();
        const [writer, taker] = [new Worker(store), new Worker(store)];
        const objects = writer.create([1, 2, 3]);
        const [gone] = writer.create([4]);
        const array = writer.run((tx) => createArray(tx, 3, 6, 50));
        const everything = [...objects, gone, ...[0, 1, 2].map((i) => elementOf(array, i))];
        const before = [1, 2, 3, 4, 50, 51, 52];
        const after = [101, 102, 103, ...new Array<undefined>(4).fill(undefined)];
        let snapshot: Snapshot | undefined;
        const point = atStep(k, when, () => {
          try {
            snapshot = taker.take(60_000, SHORT_MS);
          } catch (error) {
            expect(error).toBeInstanceOf(TimeoutError);
            expect((error as TimeoutError).message).toContain(`slot ${writer.executor.slot}`);
          }
        });
        let fresh: Place;
        try {
          fresh = change(writer, objects, gone, array);
          reached = point.count() >= k;
        } finally {
          point.off();
        }
        if (snapshot === undefined) {
          outcomes.add(reached ? "in the way" : "not reached");
          expect(taker.open, "what failed is not registered").toBe(0);
          continue;
        }
        const see = (places: readonly Place[]): (number | undefined)[] =>
          places.map((place) => taker.readAt(snapshot!, place));
        const all = taker.readAt(snapshot, objects[0]) === 101;
        outcomes.add(all ? "all" : "nothing");
        expect(see(everything), `${when} step ${k}`).toEqual(all ? after : before);
        // The cells of what was freed are used again. What the snapshot can reach stays the same.
        writer.create([5, 6, 7]);
        for (const object of objects) writer.write(object, 999);
        const there = all ? [...objects, fresh] : everything;
        const values = all ? [101, 102, 103, 77] : before;
        expect(see(there), `${when} step ${k}, later`).toEqual(values);
        expect(k).toBeLessThan(MOST_STEPS);
      }
    }
    expect(outcomes).toEqual(new Set(["nothing", "in the way", "all", "not reached"]));
  });
});
