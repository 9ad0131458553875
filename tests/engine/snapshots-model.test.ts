/**
 * Snapshots against a model: the state of the store is a map from objects to values, a snapshot is a
 * copy of that map. Several executors create, overwrite, free and reallocate objects and arrays,
 * take, read and release snapshots, run the keeper, die and come back, in any order.
 */

import { describe, expect, test } from "vitest";
import type { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import type { Geometry } from "../../src/memory/control.ts";
import { EngineStore, SHARINGS, type Sharing, SMALL } from "../helpers/engine-store.ts";
import { check, fc } from "../helpers/property.ts";
import {
  codeOf,
  create,
  createArray,
  elementOf,
  free,
  type Place,
  read,
  TINY,
  Worker,
  write,
} from "../helpers/snapshots.ts";

const EXECUTORS = 3;
const SIZES = [6, 16, 16, 40, 150];
const ARRAY_LENGTHS = [1, 3, 7];

interface Held {
  readonly snapshot: Snapshot;
  readonly owner: number;
  readonly model: ReadonlyMap<Place, number>;
}

/** The store and the model, side by side. */
class Stage {
  readonly store: EngineStore;
  readonly workers: Worker[] = [];
  /** Objects and array elements, with their values. */
  readonly model = new Map<Place, number>();
  /** What can be freed: objects, and arrays with their elements. */
  readonly units: { place: Place; parts: readonly Place[] }[] = [];
  readonly held: Held[] = [];
  /** Snapshots that the store has released of its own. */
  lost = 0;
  reads = 0;
  #values = 0;

  constructor(geometry: Geometry, sharing: Sharing) {
    this.store = new EngineStore(geometry, sharing);
    for (let i = 0; i < EXECUTORS; i++) this.workers.push(new Worker(this.store));
  }

  create(who: number, size: number): void {
    const words = SIZES[size % SIZES.length];
    const value = ++this.#values;
    const place = this.workers[who].run((tx) => create(tx, words, value));
    this.units.push({ place, parts: [place] });
    this.model.set(place, value);
  }

  createArray(who: number, size: number): void {
    const count = ARRAY_LENGTHS[size % ARRAY_LENGTHS.length];
    const value = ++this.#values;
    this.#values += count;
    const place = this.workers[who].run((tx) => createArray(tx, count, 6, value));
    const parts = Array.from({ length: count }, (_, i) => elementOf(place, i));
    this.units.push({ place, parts });
    for (const [i, part] of parts.entries()) this.model.set(part, value + i);
  }

  /** Overwrites a few objects in one transaction. */
  write(who: number, from: number, count: number): void {
    const places = [...this.model.keys()];
    if (places.length === 0) return;
    const value = ++this.#values;
    const chosen = new Set<Place>();
    for (let i = 0; i <= count; i++) chosen.add(places[(from + i * 7) % places.length]);
    this.workers[who].run((tx) => {
      for (const place of chosen) write(tx, place, value);
    });
    for (const place of chosen) this.model.set(place, value);
  }

  free(who: number, which: number): void {
    if (this.units.length === 0) return;
    const [unit] = this.units.splice(which % this.units.length, 1);
    this.workers[who].run((tx) => free(tx, unit.place));
    for (const part of unit.parts) this.model.delete(part);
  }

  /** Frees, allocates and overwrites in one transaction. */
  replace(who: number, which: number, size: number): void {
    if (this.units.length === 0) return;
    const [unit] = this.units.splice(which % this.units.length, 1);
    const words = SIZES[size % SIZES.length];
    const value = ++this.#values;
    const place = this.workers[who].run((tx) => {
      free(tx, unit.place);
      return create(tx, words, value);
    });
    for (const part of unit.parts) this.model.delete(part);
    this.units.push({ place, parts: [place] });
    this.model.set(place, value);
  }

  take(who: number): void {
    const snapshot = this.workers[who].take();
    this.held.push({ snapshot, owner: who, model: new Map(this.model) });
  }

  release(which: number): void {
    if (this.held.length === 0) return;
    const [{ snapshot }] = this.held.splice(which % this.held.length, 1);
    expect(snapshot.release()).toBe(true);
  }

  /** Everything that a snapshot can reach, read by anyone. */
  readAll(who: number, { snapshot, model }: Held): void {
    for (const [place, value] of model) {
      this.reads++;
      const found = this.workers[who].readAt(snapshot, place);
      if (found !== value) expect(found, `at epoch ${snapshot.epoch}`).toBe(value);
    }
  }

  /** It dies, its snapshots with it, and another takes its slot. */
  replaceExecutor(who: number): void {
    const next = (who + 1) % EXECUTORS;
    this.store.kill(this.workers[who].executor);
    expect(this.workers[next].executor.sweep()).toBe(1);
    for (let i = this.held.length - 1; i >= 0; i--) {
      if (this.held[i].owner !== who) continue;
      expect(this.held[i].snapshot.isRegistered).toBe(false);
      this.held.splice(i, 1);
    }
    this.workers[who] = new Worker(this.store);
  }

  /** The store may have released snapshots, but only the oldest, and what it says then is known. */
  notice(): void {
    const registered = this.held.map(({ snapshot }) => snapshot.isRegistered);
    const first = registered.includes(true) ? registered.indexOf(true) : registered.length;
    expect(registered.slice(first)).not.toContain(false);
    for (const { snapshot, model } of this.held.splice(0, first)) {
      this.lost++;
      for (const place of model.keys()) {
        expect(codeOf(() => this.workers[0].readAt(snapshot, place))).toBe("SITU_SNAPSHOT_TOO_OLD");
        break;
      }
    }
  }

  /** What is there now is right, and nothing is left once all snapshots are gone. */
  finish(): void {
    for (const held of this.held) this.readAll(0, held);
    for (const [place, value] of this.model) {
      expect(this.workers[1].run((tx) => read(tx, place))).toBe(value);
    }
    while (this.held.length > 0) this.release(0);
    this.workers[2].tick();
    expect(this.workers[2].usedBytes).toBe(0);
    expect(this.workers[2].open).toBe(0);
  }
}

type Step = readonly [what: number, who: number, a: number, b: number];

function perform(stage: Stage, [what, who, a, b]: Step): void {
  const { held } = stage;
  if (what < 20) stage.create(who, a);
  else if (what < 25) stage.createArray(who, a);
  else if (what < 55) stage.write(who, a, b % 24);
  else if (what < 65) stage.free(who, a);
  else if (what < 72) stage.replace(who, a, b);
  else if (what < 80) stage.take(who);
  else if (what < 85) stage.release(a);
  else if (what < 90 && held.length > 0) stage.readAll(who, held[a % held.length]);
  else if (what < 99) stage.workers[who].tick();
  else stage.replaceExecutor(who);
  stage.notice();
}

const step = fc.tuple(
  fc.integer({ min: 0, max: 99 }),
  fc.integer({ min: 0, max: EXECUTORS - 1 }),
  fc.nat(10_000),
  fc.nat(10_000),
);

function runModel(
  geometry: Geometry,
  sharing: Sharing,
  runs: number,
): { lost: number; moved: number } {
  const total = { lost: 0, moved: 0, reads: 0 };
  const steps = fc.array(step, { minLength: 50, maxLength: 250, size: "max" });
  check(
    fc.property(steps, (list) => {
      const stage = new Stage(geometry, sharing);
      try {
        for (let i = 0; i < 12; i++) stage.create(i % EXECUTORS, i);
        for (const each of list) perform(stage, each);
        stage.finish();
        total.lost += stage.lost;
        total.reads += stage.reads;
        total.moved += stage.workers[0].counted("versionsMoved");
      } finally {
        stage.store.dispose();
      }
    }),
    runs,
  );
  expect(total.reads).toBeGreaterThan(1_000);
  return total;
}

describe.each(SHARINGS)("snapshots against a model: %s", (sharing) => {
  test("with room enough: every snapshot sees its own state to the end", () => {
    expect(runModel(SMALL, sharing, 20).lost).toBe(0);
  });

  test("with small rings: versions move, and none is lost", () => {
    const geometry = { ...TINY, chunks: 256 };
    const { lost, moved } = runModel(geometry, sharing, 25);
    expect(lost).toBe(0);
    expect(moved).toBeGreaterThan(100);
  });

  test("with hardly any room: the oldest snapshots go, what the others see is right", () => {
    const { lost, moved } = runModel({ ...TINY, chunks: 2 }, sharing, 25);
    expect(lost).toBeGreaterThan(5);
    expect(moved).toBeGreaterThan(100);
  });
});
