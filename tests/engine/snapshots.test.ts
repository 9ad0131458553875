/** Snapshots on bare objects: what they see, and how they end. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  allocateArray,
  allocateObject,
  freeInTransaction,
  readInTransaction,
  writeInTransaction,
} from "../../src/engine/objects.ts";
import { readAtSnapshot } from "../../src/engine/run.ts";
import { IN_USE_MASK } from "../../src/engine/snapshots/registry.ts";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { limitHigh, limitLow } from "../../src/engine/tid.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { SNAPSHOTS_IN_USE } from "../../src/memory/control.ts";
import { sleepSync } from "../../src/runtime/clock.ts";
import { SituError } from "../../src/runtime/errors.ts";
import { MAX_SNAPSHOTS } from "../../src/runtime/limits.ts";
import { balanceOf, bytesOf } from "../helpers/engine-accounts.ts";
import { EngineStore } from "../helpers/engine-store.ts";
import {
  codeOf,
  createArray,
  elementOf,
  growthOf,
  LIFE_MS,
  type Place,
  read,
  TINY,
  Worker,
} from "../helpers/snapshots.ts";

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

describe("what a snapshot sees", () => {
  test("everything committed before the call, nothing committed after it", () => {
    const places = writer.create(upTo(20));
    const snapshots: Snapshot[] = [];
    for (let round = 0; round < 5; round++) {
      snapshots.push(reader.take());
      for (const [i, place] of places.entries()) writer.write(place, (round + 1) * 100 + i);
    }
    for (const [round, snapshot] of snapshots.entries()) {
      expect(see(snapshot, places)).toEqual(upTo(20).map((i) => round * 100 + i));
    }
    expect(places.map((place) => reader.read(place))).toEqual(upTo(20).map((i) => 500 + i));
  });

  test("objects that were freed since, and whose cells are used again, by objects and by arrays", () => {
    const places = writer.create(upTo(10), 32);
    const snapshot = reader.take();
    for (const place of places) writer.free(place);
    const again = writer.create(upTo(5), 32);
    const arrays = [0, 1, 2, 3, 4].map((i) => writer.run((tx) => createArray(tx, 3, 6, i)));
    const reused = new Set(places.map(({ word }) => word));
    expect(again.some(({ word }) => reused.has(word))).toBe(true);
    expect(arrays).toHaveLength(5);
    expect(see(snapshot, places)).toEqual(upTo(10));
  });

  test("arrays, element by element, that were changed and freed since", () => {
    const array = writer.run((tx) => createArray(tx, 5, 6, 10));
    const elements = upTo(5).map((i) => elementOf(array, i));
    const first = reader.take();
    writer.write(elements[2], 99);
    const second = reader.take();
    writer.free(array);
    for (let i = 0; i < 10; i++) writer.run((tx) => createArray(tx, 5, 6, 1_000));
    expect(see(first, elements)).toEqual([10, 11, 12, 13, 14]);
    expect(see(second, elements)).toEqual([10, 11, 99, 13, 14]);
  });

  test("an object changed through a window: all of its old words", () => {
    const [place] = writer.create([7], 40);
    const snapshot = reader.take();
    writer.run((tx) => {
      const entry = tx.open(tx.executor.memory.region(place.regionId), place.word);
      const at = tx.writableWindow(entry, 10, 12, place.words);
      tx.set.arena.i32[at + 10] = 1;
      tx.set.arena.i32[at + 11] = 2;
    });
    expect(reader.readAt(snapshot, place)).toBe(7);
    expect(() => writer.read(place)).toThrow("torn at word 10");
  });

  test("versions that lie in rings of several executors, in both areas, and in none", () => {
    const others = [new Worker(store), new Worker(store)];
    const places = writer.create(upTo(90));
    const first = reader.take();
    for (const place of places.slice(0, 40)) others[0].write(place, 1_000);
    const second = reader.take();
    for (const place of places.slice(20, 70)) others[1].write(place, 2_000);
    for (const place of places.slice(0, 10)) writer.write(place, 3_000);
    expect(see(first, places)).toEqual(upTo(90));
    expect(see(second, places)).toEqual(upTo(90).map((i) => (i < 40 ? 1_000 : i)));
    expect(writer.counted("versionsMoved")).toBeGreaterThan(0);
    expect(writer.counted("snapshotsReleased")).toBe(0);
  });

  test("through pointers: what was freed since is there, what was allocated since is not", () => {
    const [object, array] = writer.run((tx) => {
      const made = allocateObject(tx, 8, undefined);
      const many = allocateArray(tx, 8, 3, undefined);
      writeInTransaction(tx, made, bytesOf(5));
      writeInTransaction(tx, many.at(1), bytesOf(6));
      return [made, many];
    });
    reader.run((tx) => {
      if (tx.snapshot === undefined) throw new Error("no snapshot");
      const later = writer.run((own) => {
        freeInTransaction(own, object);
        freeInTransaction(own, array);
        return allocateObject(own, 100, undefined);
      });
      expect(balanceOf(readInTransaction(tx, object))).toBe(5);
      expect(balanceOf(readInTransaction(tx, array.at(1)))).toBe(6);
      expect(codeOf(() => readInTransaction(tx, later))).toBe("SITU_FREED");
    }, LIFE_MS);
  });

  test("also after two million others, all taken between two commits of a writer", () => {
    const places = writer.create([1, 2]);
    const first = reader.take();
    // Now the writer knows the open snapshots, and until when it need not look again.
    writer.write(places[0], 10);
    expect(first.release()).toBe(true);
    const { registry } = reader.executor.versions;
    const limit = reader.executor.epochs.current();
    for (let i = 1; i < 2 ** 21; i++) {
      const index = registry.claim(reader.executor.slot, LIFE_MS);
      const state = registry.publish(index, registry.claimed, limitHigh(limit), limitLow(limit));
      registry.release(index, state);
    }
    const last = reader.take();
    for (const place of places) writer.write(place, 20);
    expect(see(last, places)).toEqual([10, 2]);
  });

  test("with the ring's places about to wrap around, in either sense", () => {
    for (const from of [2 ** 31 - 40, -40]) {
      start();
      const places = writer.create(upTo(60));
      // The ring exists after the first version; then it is set to where it would be much later.
      const early = reader.take();
      writer.write(places[0], 1);
      early.release();
      writer.tick();
      expect(writer.usedBytes).toBe(0);
      const { i32 } = writer.executor.versions.ringOf(writer.executor.slot)!;
      const places32 = (from - (from % (TINY.ringBytes / 32))) | 0;
      i32[0] = places32;
      i32[1] = places32;
      const snapshot = reader.take();
      for (let round = 1; round < 4; round++) {
        for (const place of places) writer.write(place, round * 1_000);
        expect(see(snapshot, places.slice(1))).toEqual(upTo(60).slice(1));
      }
      expect(snapshot.isRegistered).toBe(true);
      snapshot.release();
      writer.tick();
      expect(writer.usedBytes).toBe(0);
    }
  });
});

describe("how a snapshot ends", () => {
  test("its owner dies: the sweep releases it, and others' stay", () => {
    const [place] = writer.create([1]);
    const owner = new Worker(store);
    const theirs = owner.take();
    const mine = reader.take();
    writer.write(place, 2);
    store.kill(owner.executor);
    expect(theirs.isRegistered).toBe(true);
    expect(writer.executor.sweep()).toBe(1);
    expect(theirs.isRegistered).toBe(false);
    expect(codeOf(() => reader.readAt(theirs, place))).toBe(TOO_OLD);
    expect(reader.readAt(mine, place)).toBe(1);
    expect(writer.open).toBe(1);
  });

  test("its owner closes, or a newcomer takes the dead one's slot", () => {
    const leaving = new Worker(store);
    const first = leaving.take();
    store.close(leaving.executor);
    expect(reader.open).toBe(0);
    const dying = new Worker(store);
    const second = dying.take();
    store.kill(dying.executor);
    while (reader.executor.holders().length < TINY.slots) store.open();
    const heir = new Worker(store);
    expect(heir.executor.slot).toBe(dying.executor.slot);
    expect([first, second].map(({ isRegistered }) => isRegistered)).toEqual([false, false]);
    const own = heir.take();
    expect(second.release()).toBe(false);
    expect(own.isRegistered).toBe(true);
  });

  test("its time is over: the keeper's round releases it", () => {
    const [place] = writer.create([1]);
    const lifeMs = 500;
    const long = reader.take();
    const takeShort = (): Snapshot => {
      for (;;) {
        const startMs = performance.now();
        const taken = reader.take(lifeMs);
        writer.write(place, 2);
        writer.tick();
        // Once more if its time was over before the first round.
        if (performance.now() - startMs < lifeMs) return taken;
        taken.release();
      }
    };
    const short = takeShort();
    expect(short.isRegistered).toBe(true);
    sleepSync(lifeMs + 5);
    const growth = growthOf(writer, () => writer.tick());
    expect(growth.snapshotsReleased).toBe(1);
    expect(codeOf(() => reader.readAt(short, place))).toBe(TOO_OLD);
    expect(reader.readAt(long, place)).toBe(1);
  });

  test("its time is over and no keeper runs: its own reads find out, after a few at the latest", () => {
    const [place] = writer.create([1]);
    const short = reader.take(10);
    sleepSync(15);
    const read64 = (): void => {
      for (let i = 0; i < 64; i++) expect(reader.readAt(short, place)).toBe(1);
    };
    expect(codeOf(read64)).toBe(TOO_OLD);
    expect(writer.open).toBe(0);
  });

  test("the error says why, and that another try may help", () => {
    const [place] = writer.create([1]);
    const snapshot = reader.take(1_234);
    snapshot.release();
    const error = (() => {
      try {
        return reader.readAt(snapshot, place);
      } catch (thrown) {
        return thrown;
      }
    })() as SituError;
    expect(error).toBeInstanceOf(SituError);
    expect(error.code).toBe(TOO_OLD);
    expect(error.retryable).toBe(true);
    expect(error.message).toContain("versionBytes");
  });

  test("it is released in the middle of a read: what was read by then does not count", () => {
    const [x, y] = writer.create([1, 1]);
    const snapshot = reader.take();
    const tx = new Transaction(reader.executor);
    const pair = (): unknown =>
      readAtSnapshot(
        reader.executor,
        tx,
        snapshot,
        () => {
          const first = read(tx, x);
          writer.executor.versions.keeper.releaseAll();
          return [first, read(tx, y)];
        },
        undefined,
      );
    expect(codeOf(pair)).toBe(TOO_OLD);
  });

  test("released twice: the second time it says so, and nobody else's is touched", () => {
    const first = reader.take();
    expect(first.release()).toBe(true);
    const second = reader.take();
    expect(first.release()).toBe(false);
    expect(second.isRegistered).toBe(true);
  });

  test(`the table is full with ${MAX_SNAPSHOTS} of them: SITU_FULL, and room again after one goes`, () => {
    const [place] = writer.create([1]);
    const snapshots = upTo(MAX_SNAPSHOTS).map(() => reader.take());
    expect(codeOf(() => writer.take())).toBe("SITU_FULL");
    writer.write(place, 2);
    for (const snapshot of [snapshots[0], snapshots[511], snapshots[1_023]]) {
      expect(reader.readAt(snapshot, place)).toBe(1);
    }
    expect(writer.counted("versionsKept")).toBe(1);
    snapshots[500].release();
    const again = writer.take();
    expect(reader.readAt(again, place)).toBe(2);
    expect(codeOf(() => writer.take())).toBe("SITU_FULL");
    store.close(reader.executor);
    expect(writer.open).toBe(1);
    again.release();
    expect(Atomics.load(store.memory.control.i32, SNAPSHOTS_IN_USE) & IN_USE_MASK).toBe(0);
  });
});
