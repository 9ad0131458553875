/**
 * Deaths around snapshots, at every atomic step: of a writer that keeps versions, of the keeper that
 * moves and collects them, of one who takes or releases a snapshot, and of those who tidy up after
 * the dead. What a living snapshot sees never changes, and nothing stays behind.
 */

import "../helpers/engine-all-atomics.ts";

import { describe, expect, test } from "vitest";
import { IN_USE_MASK } from "../../src/engine/snapshots/registry.ts";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { KEEPER, SNAPSHOTS_IN_USE } from "../../src/memory/control.ts";
import type { When } from "../helpers/engine-atomics.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import {
  create,
  dieForGood,
  free,
  type Place,
  read,
  TINY,
  TINY_WORDS,
  Worker,
  write,
} from "../helpers/snapshots.ts";

const WHENS: readonly When[] = ["before", "after"];
const MOST_STEPS = 1_000;

const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Runs a scenario with a death at each step of it, until nobody dies any more. */
function atEachStep(
  scenario: (store: EngineStore, k: number, when: When, point: string) => boolean,
): void {
  for (const when of WHENS) {
    // Only what is written without atomics lies between after one step and before the next.
    const stride = when === "before" ? 1 : 4;
    for (let k = 1, died = true; died; k += stride) {
      const store = new EngineStore(TINY);
      try {
        died = scenario(store, k, when, `${when} step ${k}`);
      } finally {
        store.dispose();
      }
      expect(k).toBeLessThan(MOST_STEPS);
    }
  }
}

function see(worker: Worker, snapshot: Snapshot, places: readonly Place[]): unknown[] {
  return places.map((place) => worker.readAt(snapshot, place));
}

/** The last snapshot goes: then nothing may be left of any. */
function expectNothingLeft(store: EngineStore, worker: Worker, point: string): void {
  worker.tick();
  const { i32 } = store.memory.control;
  expect(worker.open, `${point}: open snapshots`).toBe(0);
  expect(Atomics.load(i32, SNAPSHOTS_IN_USE) & IN_USE_MASK, `${point}: in use`).toBe(0);
  expect(Atomics.load(i32, KEEPER), `${point}: keeper`).toBe(0);
  expect(worker.usedBytes, `${point}: bytes`).toBe(0);
  // Life goes on: a new snapshot, versions in ring and overflow area, and away again.
  const places = worker.create(upTo(40));
  const snapshot = worker.take();
  for (const place of places) worker.write(place, 5_000);
  expect(see(worker, snapshot, places), `${point}: later`).toEqual(upTo(40));
  expect(snapshot.release(), `${point}: later`).toBe(true);
  worker.tick();
  expect(worker.usedBytes, `${point}: bytes, later`).toBe(0);
}

describe("a writer that dies while it commits and keeps versions", () => {
  /** Overwrites three objects, frees one, makes one. */
  function change(tx: Parameters<typeof write>[0], places: readonly Place[]): void {
    for (const place of places.slice(0, 3)) write(tx, place, (read(tx, place) ?? 0) + 100);
    free(tx, places[3]);
    create(tx, TINY_WORDS, 77);
  }

  const BEFORE = [0, 1, 2, 3];
  const AFTER = [100, 101, 102, undefined];

  /** How many objects were overwritten before: none, or so many that the ring is full. */
  test.each([
    ["its ring has room", 0],
    ["its ring is full: it moves versions first", 15],
    ["its ring and a chunk are full", 31 + 16],
  ])("%s", (_, written) => {
    const outcomes = new Set<string>();
    atEachStep((store, k, when, point) => {
      const [victim, holder] = [new Worker(store), new Worker(store)];
      const places = victim.create(upTo(60));
      const snapshot = holder.take();
      const others = places.slice(4, 4 + written);
      for (const place of others) victim.write(place, 900);
      const commit = victim.prepare((tx) => change(tx, places));
      const died = dieForGood(k, when, () => {
        expect(commit()).toBe(true);
      });
      store.kill(victim.executor);
      // Whoever reads meets the locks of the dead, and sees to it; that takes a few milliseconds.
      if (k % 3 === 0) {
        expect(see(holder, snapshot, places), `${point}: at once`).toEqual(upTo(60));
      }
      holder.executor.sweep();
      expect(see(holder, snapshot, places), `${point}: after recovery`).toEqual(upTo(60));
      const now = BEFORE.map((i) => holder.read(places[i]));
      expect([BEFORE, AFTER], point).toContainEqual(now);
      outcomes.add(now[0] === 0 ? "not done" : "done");
      const later = holder.take();
      const there = now[0] === 0 ? places.slice(0, 4) : places.slice(0, 3);
      for (const place of there) holder.write(place, 700);
      expect(see(holder, later, there), `${point}: a later snapshot`).toEqual(
        now.slice(0, there.length),
      );
      expect(see(holder, snapshot, places), `${point}: in the end`).toEqual(upTo(60));
      later.release();
      snapshot.release();
      expectNothingLeft(store, holder, point);
      return died;
    });
    expect(outcomes).toEqual(new Set(["done", "not done"]));
  });

  test("the next owner of its slot goes on in the same ring", () => {
    atEachStep((store, k, when, point) => {
      const [victim, holder] = [new Worker(store), new Worker(store)];
      const places = victim.create(upTo(60));
      const snapshot = holder.take();
      for (const place of places.slice(4, 14)) victim.write(place, 900);
      const commit = victim.prepare((tx) => change(tx, places));
      const died = dieForGood(k, when, () => {
        expect(commit()).toBe(true);
      });
      store.kill(victim.executor);
      holder.executor.sweep();
      const heir = new Worker(store);
      expect(heir.executor.slot).toBe(victim.executor.slot);
      for (const place of places.slice(20)) heir.write(place, 800);
      expect(see(heir, snapshot, places), point).toEqual(upTo(60));
      expect(snapshot.isRegistered, point).toBe(true);
      snapshot.release();
      expectNothingLeft(store, heir, point);
      return died;
    });
  });
});

describe("a keeper that dies", () => {
  interface Stage {
    readonly writer: Worker;
    readonly holder: Worker;
    readonly keeper: Worker;
    readonly places: readonly Place[];
    readonly older: Snapshot;
    readonly snapshot: Snapshot;
  }

  /** A chunk that mostly the older snapshot needs, another one, and a ring that is more than half full. */
  function stage(store: EngineStore): Stage {
    const [writer, holder, keeper] = [new Worker(store), new Worker(store), new Worker(store)];
    const places = writer.create(upTo(100));
    const older = holder.take();
    for (let i = 0; i < 28; i++) writer.write(places[i], 1_000 + i);
    const snapshot = holder.take();
    for (let i = 20; i < 68; i++) writer.write(places[i], 2_000 + i);
    return { writer, holder, keeper, places, older, snapshot };
  }

  const seenByOlder = upTo(100);
  const seen = upTo(100).map((i) => (i < 28 ? 1_000 + i : i));

  test("while it moves and collects: no version is lost, another one finishes", () => {
    atEachStep((store, k, when, point) => {
      const { writer, holder, keeper, places, older, snapshot } = stage(store);
      older.release();
      const died = dieForGood(k, when, () => keeper.tick());
      store.kill(keeper.executor);
      expect(see(holder, snapshot, places), `${point}: at once`).toEqual(seen);
      holder.executor.sweep();
      holder.tick();
      expect(see(holder, snapshot, places), `${point}: after another's round`).toEqual(seen);
      for (let i = 68; i < 100; i++) writer.write(places[i], 3_000 + i);
      holder.tick();
      expect(see(holder, snapshot, places), `${point}: in the end`).toEqual(seen);
      expect(holder.counted("snapshotsReleased"), point).toBe(0);
      snapshot.release();
      expectNothingLeft(store, holder, point);
      return died;
    });
  });

  test("while it moves and nothing can be collected", () => {
    atEachStep((store, k, when, point) => {
      const { holder, keeper, places, older, snapshot } = stage(store);
      const died = dieForGood(k, when, () => keeper.tick());
      store.kill(keeper.executor);
      expect(see(holder, older, places), `${point}: at once, older`).toEqual(seenByOlder);
      expect(see(holder, snapshot, places), `${point}: at once`).toEqual(seen);
      holder.executor.sweep();
      holder.tick();
      expect(see(holder, older, places), `${point}: older`).toEqual(seenByOlder);
      expect(see(holder, snapshot, places), point).toEqual(seen);
      older.release();
      snapshot.release();
      expectNothingLeft(store, holder, point);
      return died;
    });
  });

  test("while it gives everything up, and a new snapshot is taken before the next round", () => {
    atEachStep((store, k, when, point) => {
      const { writer, holder, keeper, places, older, snapshot } = stage(store);
      older.release();
      snapshot.release();
      const died = dieForGood(k, when, () => keeper.tick());
      store.kill(keeper.executor);
      const next = holder.take();
      const now = places.map((place) => holder.read(place));
      for (const place of places) writer.write(place, 4_000);
      expect(see(holder, next, places), `${point}: at once`).toEqual(now);
      holder.executor.sweep();
      holder.tick();
      expect(see(holder, next, places), point).toEqual(now);
      expect(next.release(), point).toBe(true);
      expectNothingLeft(store, holder, point);
      return died;
    });
  });

  test("and leaves its lock behind: a writer without room takes it over, no snapshot is lost", () => {
    const store = new EngineStore(TINY);
    try {
      const { writer, holder, keeper, places, snapshot, older } = stage(store);
      older.release();
      expect(
        dieForGood(
          ({ index }) => index === KEEPER,
          "after",
          () => keeper.tick(),
        ),
      ).toBe(true);
      expect(Atomics.load(store.memory.control.i32, KEEPER)).toBe(keeper.executor.slot + 1);
      store.kill(keeper.executor);
      for (let i = 68; i < 100; i++) writer.write(places[i], 3_000 + i);
      expect(see(holder, snapshot, places)).toEqual(seen);
      expect(writer.counted("snapshotsReleased")).toBe(0);
      expect(writer.counted("recoveries")).toBe(1);
    } finally {
      store.dispose();
    }
  });

  test("is only stopped: a writer without room waits a little, then snapshots give way", () => {
    const store = new EngineStore(TINY);
    try {
      const { writer, holder, keeper, places, snapshot } = stage(store);
      Atomics.store(store.memory.control.i32, KEEPER, keeper.executor.slot + 1);
      for (let i = 68; i < 100; i++) writer.write(places[i], 3_000 + i);
      expect(snapshot.isRegistered).toBe(false);
      expect(writer.read(places[99])).toBe(3_099);
      // While there is no snapshot, nobody needs the keeper; the next one works once it is back.
      Atomics.store(store.memory.control.i32, KEEPER, 0);
      const next = holder.take();
      for (let i = 0; i < 100; i++) writer.write(places[i], 4_000 + i);
      expect(holder.readAt(next, places[99])).toBe(3_099);
    } finally {
      store.dispose();
    }
  });
});

describe("one who takes or releases snapshots dies", () => {
  test("while taking one, when there is none", () => {
    atEachStep((store, k, when, point) => {
      const [victim, other] = [new Worker(store), new Worker(store)];
      const places = other.create(upTo(20));
      const died = dieForGood(k, when, () => victim.take());
      store.kill(victim.executor);
      for (const place of places) other.write(place, 1_000);
      other.executor.sweep();
      const snapshot = other.take();
      for (const place of places) other.write(place, 2_000);
      expect(see(other, snapshot, places), point).toEqual(new Array(20).fill(1_000));
      snapshot.release();
      expectNothingLeft(store, other, point);
      return died;
    });
  });

  test("while taking one, or releasing it, beside those of others", () => {
    for (const what of ["take", "release"]) {
      atEachStep((store, k, when, step) => {
        const point = `${what}: ${step}`;
        const [victim, other] = [new Worker(store), new Worker(store)];
        const places = other.create(upTo(20));
        const before = other.take();
        const theirs = what === "take" ? undefined : victim.take();
        const died = dieForGood(k, when, () => {
          if (theirs === undefined) victim.take();
          else theirs.release();
        });
        store.kill(victim.executor);
        for (const place of places) other.write(place, 1_000);
        other.executor.sweep();
        expect(other.open, point).toBe(1);
        const after = other.take();
        for (const place of places) other.write(place, 2_000);
        expect(see(other, before, places), point).toEqual(upTo(20));
        expect(see(other, after, places), point).toEqual(new Array(20).fill(1_000));
        before.release();
        after.release();
        expectNothingLeft(store, other, point);
        return died;
      });
    }
  });

  test("with snapshots and the keeper's lock, and its recoverer dies at any step: a third finishes", () => {
    atEachStep((store, k, when, point) => {
      const [victim, recoverer, third] = [new Worker(store), new Worker(store), new Worker(store)];
      const places = third.create(upTo(30));
      const theirs = [victim.take(), victim.take()];
      const mine = third.take();
      for (const place of places) third.write(place, 1_000);
      Atomics.store(store.memory.control.i32, KEEPER, victim.executor.slot + 1);
      store.kill(victim.executor);
      const died = dieForGood(k, when, () => {
        recoverer.executor.recoverIfDead(victim.executor.slot);
      });
      store.kill(recoverer.executor);
      third.executor.sweep();
      expect(
        theirs.map((snapshot) => snapshot.isRegistered),
        point,
      ).toEqual([false, false]);
      expect(see(third, mine, places), point).toEqual(upTo(30));
      expect(mine.release(), point).toBe(true);
      expectNothingLeft(store, third, point);
      return died;
    });
  });
});
