/** The NIC's caching index against a model: what is locked or pinned stays, what is known is right, memory has a bound. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { CachingIndex, NO_SLOT, type TwoWords } from "../../src/protocols/xenic/caching-index.ts";
import { MAX_DISPLACEMENT, NIC_PAGE_SLOTS } from "../../src/runtime/limits.ts";
import { check, fc } from "../helpers/property.ts";
import { failureSync } from "../helpers/store.ts";

const SEGMENTS = 5;
const KEYS = 60;
const KEY_WORDS = 2;
const VALUE_WORDS = 3;
const PAGE_BYTES = 4 * (2 + NIC_PAGE_SLOTS * (5 + KEY_WORDS + VALUE_WORDS));
const ENTRY_BYTES = 8;

function indexOf(pages: number): CachingIndex {
  const memoryBytes = SEGMENTS * ENTRY_BYTES + pages * PAGE_BYTES + PAGE_BYTES / 2;
  return new CachingIndex({
    memoryBytes,
    segments: SEGMENTS,
    keyWords: KEY_WORDS,
    valueWords: VALUE_WORDS,
  });
}

const segmentOf = (key: number): number => (key * 7) % SEGMENTS;
// Keys that differ in one of two words only.
const wordsOf = (key: number): Int32Array => Int32Array.of(key % 3, Math.floor(key / 3));
const bytesOf = (value: number): Int32Array => Int32Array.of(value, -value, value ^ 0x55);
const nameOf = (owner: number): TwoWords => ({ high: owner % 2, low: owner + 1 });
const versionOf = (version: number): TwoWords => ({ high: version >> 4, low: version & 15 });

/** A row as the cluster has it: what was committed last, what the host has applied, and who holds it. */
interface Row {
  value: number | undefined;
  version: number;
  owner: number | undefined;
  /** Commits that the host has not applied. */
  pins: number;
}

class Model {
  readonly index: CachingIndex;
  readonly rows: Row[] = Array.from({ length: KEYS }, () => ({
    value: undefined,
    version: 0,
    owner: undefined,
    pins: 0,
  }));
  #versions = 0;

  constructor(pages: number) {
    this.index = indexOf(pages);
  }

  get held(): number {
    return this.rows.filter(({ owner, pins }) => owner !== undefined || pins > 0).length;
  }

  /** EXECUTE: reads a row, from the index or from the host's table, which then is up to date. */
  read(key: number): void {
    const { index } = this;
    const row = this.rows[key];
    let slot = index.find(segmentOf(key), wordsOf(key));
    if (slot === NO_SLOT || !index.isKnown(slot)) {
      assert.equal(row.pins, 0, "what the host has not applied must be known");
      slot = index.claim(segmentOf(key), wordsOf(key));
      if (slot === NO_SLOT) {
        this.#checkRefusal();
        return;
      }
      index.note(
        slot,
        row.value === undefined ? undefined : bytesOf(row.value),
        versionOf(row.version),
      );
    }
    this.#compare(slot, row);
  }

  lock(key: number, owner: number): void {
    const { index } = this;
    const row = this.rows[key];
    const slot = index.claim(segmentOf(key), wordsOf(key));
    if (slot === NO_SLOT) {
      this.#checkRefusal();
      return;
    }
    const isFree = row.owner === undefined || row.owner === owner;
    assert.equal(index.lock(slot, nameOf(owner)), isFree);
    if (isFree) row.owner = owner;
  }

  unlock(key: number, owner: number): void {
    this.index.unlock(segmentOf(key), wordsOf(key), nameOf(owner));
    if (this.rows[key].owner === owner) this.rows[key].owner = undefined;
  }

  /** COMMIT of a row that is locked. */
  commit(key: number, value: number | undefined): void {
    const row = this.rows[key];
    if (row.owner === undefined) return;
    row.version = ++this.#versions;
    row.value = value;
    row.pins++;
    const written = value === undefined ? undefined : bytesOf(value);
    const owner = nameOf(row.owner);
    this.index.commit(segmentOf(key), wordsOf(key), owner, written, versionOf(row.version));
    row.owner = undefined;
  }

  apply(key: number): void {
    const row = this.rows[key];
    if (row.pins === 0) return;
    row.pins--;
    this.index.applied(segmentOf(key), wordsOf(key));
  }

  /** All that must be there is there, and as it was left. */
  checkHeld(): void {
    const { index } = this;
    let locked = 0;
    let pins = 0;
    for (const [key, row] of this.rows.entries()) {
      pins += row.pins;
      if (row.owner !== undefined) locked++;
      if (row.owner === undefined && row.pins === 0) continue;
      const slot = index.find(segmentOf(key), wordsOf(key));
      assert.notEqual(slot, NO_SLOT, `row ${key} is held, and gone`);
      assert.equal(index.isLocked(slot), row.owner !== undefined);
      assert.equal(index.isPinned(slot), row.pins > 0);
      if (row.pins > 0) this.#compare(slot, row);
    }
    assert.equal(index.locked, locked);
    assert.equal(index.pins, pins);
  }

  #compare(slot: number, row: Row): void {
    const { index } = this;
    assert.equal(index.hasValue(slot), row.value !== undefined);
    assert.ok(index.isOfVersion(slot, versionOf(row.version)));
    assert.deepEqual(index.versionOf(slot), versionOf(row.version));
    if (row.value === undefined) return;
    const copy = new Int32Array(VALUE_WORDS + 1);
    index.copyValue(slot, copy, 1);
    assert.deepEqual(copy.subarray(1), bytesOf(row.value));
  }

  /** Refused only where every page holds something that must stay. */
  #checkRefusal(): void {
    assert.ok(this.held >= this.index.capacity / NIC_PAGE_SLOTS, `${this.held} rows are held`);
  }
}

const step = fc.record({
  what: fc.constantFrom("read", "read", "lock", "lock", "unlock", "commit", "remove", "apply"),
  key: fc.nat(KEYS - 1),
  owner: fc.nat(3),
});

describe("against a model", () => {
  it.each([1, 3, 8, 40])("with %i pages: rows come and go, what is held stays", (pages) => {
    check(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const model = new Model(pages);
        for (const [n, { what, key, owner }] of steps.entries()) {
          if (what === "read") model.read(key);
          else if (what === "lock") model.lock(key, owner);
          else if (what === "unlock") model.unlock(key, owner);
          else if (what === "commit") model.commit(key, n);
          else if (what === "remove") model.commit(key, undefined);
          else model.apply(key);
          model.checkHeld();
        }
        // At rest everything can go, and everything finds room again.
        for (let key = 0; key < KEYS; key++) {
          for (let owner = 0; owner < 4; owner++) model.unlock(key, owner);
          while (model.rows[key].pins > 0) model.apply(key);
        }
        for (let key = 0; key < KEYS; key++) model.read(key);
        assert.equal(model.index.locked + model.index.pins, 0);
      }),
      60,
    );
  });
});

describe("room", () => {
  it("full of pins: refuses further rows, loses none, and has room again when the host has applied them", () => {
    const model = new Model(3);
    const { index } = model;
    expect(index.capacity).toBe(3 * NIC_PAGE_SLOTS);
    let pinned = 0;
    for (let key = 0; key < KEYS; key++) {
      model.lock(key, 1);
      if (model.rows[key].owner === undefined) continue;
      model.commit(key, key);
      pinned++;
    }
    expect(pinned).toBeGreaterThanOrEqual(3);
    expect(pinned).toBeLessThan(KEYS);
    expect(index.counters.refusals).toBeGreaterThan(0);
    model.checkHeld();
    for (let key = 0; key < KEYS; key++) model.apply(key);
    for (let key = 0; key < KEYS; key++) {
      model.lock(key, 2);
      expect(model.rows[key].owner).toBe(2);
      model.unlock(key, 2);
    }
  });

  it("rows that are used stay; the others go first", () => {
    const model = new Model(8);
    const { index } = model;
    const hot = Array.from({ length: 10 }, (_, key) => key);
    for (let round = 0; round < 20; round++) {
      for (const key of hot) model.read(key);
      model.read(20 + (round % 40));
      model.read(20 + ((7 * round) % 40));
    }
    const before = index.counters.hits;
    for (const key of hot) model.read(key);
    // Pages are spared, not rows: a cold neighbour may take a hot one along.
    expect(index.counters.hits - before).toBeGreaterThanOrEqual(8);
  });

  it("too little memory for one page is refused with what is needed", () => {
    const options = { memoryBytes: 64, segments: 5, keyWords: 2, valueWords: 3 };
    const error = failureSync("SITU_CONFIG", () => new CachingIndex(options));
    expect(error.message).toContain(
      `at least ${SEGMENTS * ENTRY_BYTES + PAGE_BYTES} bytes, and has 64`,
    );
  });
});

describe("hints", () => {
  it("grow, per segment, and say whether there is a chain", () => {
    const index = indexOf(1);
    expect(index.knownDisplacement(2)).toBe(0);
    index.learn(2, 5);
    index.learn(2, 3);
    expect(index.knownDisplacement(2)).toBe(5);
    expect(index.overflows(2)).toBe(false);
    index.learn(2, MAX_DISPLACEMENT);
    expect(index.overflows(2)).toBe(true);
    expect(index.knownDisplacement(2)).toBe(5);
    index.learn(2, 1);
    expect(index.overflows(2)).toBe(true);
    expect(index.knownDisplacement(1)).toBe(0);
    expect(index.overflows(3)).toBe(false);
  });
});
