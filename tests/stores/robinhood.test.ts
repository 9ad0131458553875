/** The Robin Hood table as a Map, its order, its limit, its chains, and what a removal leaves. */

import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import { MAX_DISPLACEMENT } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import {
  findFree,
  findPlace,
  fitsInto,
  lastToShift,
  NO_PLACE,
  type SlotLine,
} from "../../src/stores/robinhood/line.ts";
import { check, fc } from "../helpers/property.ts";
import { seed, temporaryStores } from "../helpers/store.ts";
import { openExecutor, rehashed, run } from "../helpers/store-engine.ts";
import { behavesAsAMap, Inline } from "../helpers/store-model.ts";
import { createRobinhood, ROBINHOOD_KIND, robinhoodShape } from "../helpers/store-robinhood.ts";

const stores = temporaryStores();

behavesAsAMap(stores, ROBINHOOD_KIND);

/** A line in an array, with the rules of a table that has no chains: what does not fit is refused. */
class ArrayLine implements SlotLine {
  readonly homes: number[];

  constructor(slots: number) {
    this.homes = new Array(slots).fill(-1);
  }

  get slots(): number {
    return this.homes.length;
  }

  homeAt(slot: number): number {
    return this.homes[slot];
  }

  insert(home: number, limit: number): boolean {
    const free = findFree(this, home, limit);
    if (free === NO_PLACE) return false;
    const place = findPlace(this, home, free);
    this.homes.copyWithin(place + 1, place, free);
    this.homes[place] = home;
    return true;
  }

  remove(slot: number): void {
    const last = lastToShift(this, slot);
    this.homes.copyWithin(slot, slot + 1, last + 1);
    this.homes[last] = -1;
  }

  /** What is wrong with the order, if anything. */
  broken(limit: number): string | undefined {
    for (const [slot, home] of this.homes.entries()) {
      if (home < 0) continue;
      if (home > slot || slot - home >= limit) return `slot ${slot} has home ${home}`;
      const between = this.homes.slice(home, slot);
      if (between.some((other) => other < 0 || other > home)) return `slot ${slot}, home ${home}`;
    }
    return undefined;
  }
}

describe("a line of slots", () => {
  const LIMIT = 5;
  const step = fc.record({ home: fc.nat(15), removes: fc.boolean(), which: fc.nat(19) });

  it("keeps its order, whatever comes and goes, and holds what was put in", () => {
    check(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const line = new ArrayLine(20);
        const model: number[] = [];
        for (const { home, removes, which } of steps) {
          if (removes && line.homes[which] >= 0) {
            model.splice(model.indexOf(line.homes[which]), 1);
            line.remove(which);
          } else if (!removes && line.insert(home, LIMIT)) model.push(home);
          assert.equal(line.broken(LIMIT), undefined);
        }
        const held = line.homes.filter((home) => home >= 0);
        assert.deepEqual(
          held.sort((a, b) => a - b),
          model.sort((a, b) => a - b),
        );
      }),
      300,
    );
  });

  it("refuses a pair only if no slot below the limit is free", () => {
    const line = new ArrayLine(20);
    for (let n = 0; n < LIMIT; n++) expect(line.insert(3, LIMIT)).toBe(true);
    expect(line.insert(3, LIMIT)).toBe(false);
    expect(line.insert(4, LIMIT)).toBe(true);
    expect(line.homes.slice(3, 10)).toEqual([3, 3, 3, 3, 3, 4, -1]);
  });

  it("gives from the rich: a pair of an earlier home goes before those of later ones", () => {
    const line = new ArrayLine(20);
    for (const home of [2, 3, 4, 2]) line.insert(home, LIMIT);
    expect(line.homes.slice(2, 7)).toEqual([2, 2, 3, 4, -1]);
  });

  it("says what may take the place of a pair: exactly what leaves the order whole", () => {
    check(
      fc.property(fc.array(fc.nat(15), { maxLength: 30 }), fc.nat(15), (homes, other) => {
        const line = new ArrayLine(20);
        for (const home of homes) line.insert(home, LIMIT);
        for (const slot of line.homes.keys()) {
          if (line.homes[slot] < 0) continue;
          const instead = new ArrayLine(20);
          instead.homes.splice(0, 20, ...line.homes);
          instead.homes[slot] = other;
          assert.equal(fitsInto(line, slot, other, LIMIT), instead.broken(LIMIT) === undefined);
        }
      }),
      100,
    );
  });
});

describe("chains", () => {
  it("begin when the limit is reached, of the home segment, and collapse pair by pair", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const order = fc.shuffledSubarray(
      Array.from({ length: 60 }, (_, key) => key),
      { minLength: 60, maxLength: 60 },
    );
    check(
      fc.property(order, order, (adding, removing) => {
        // One home slot, so only as many as the limit allows lie in slots.
        const under = createRobinhood(
          executor,
          rehashed(Inline, () => 0x2400_0001),
        );
        const { tx, store } = under;
        for (const id of adding) run(executor, tx, () => store.put(tx, { id, value: id }));
        const full = robinhoodShape(under as never);
        expect(full.broken).toEqual([]);
        expect(full.chained.flat().length).toBe(60 - MAX_DISPLACEMENT);
        for (const [removed, id] of removing.entries()) {
          expect(run(executor, tx, () => store.remove(tx, id))).toBe(true);
          const shape = robinhoodShape(under as never);
          expect(shape.broken).toEqual([]);
          expect(shape.pairs).toBe(59 - removed);
          // A chained pair takes the place of one that leaves its slot.
          expect(shape.chained.flat().length).toBe(Math.max(0, 59 - removed - MAX_DISPLACEMENT));
          for (const left of removing.slice(removed + 1)) {
            assert.deepEqual(store.get(left), { id: left, value: left });
          }
        }
        expect(robinhoodShape(under as never).blocks).toBe(0);
      }),
      3,
    );
  });

  it("hundreds of keys with one 32-bit hash: slow, but right", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createRobinhood(
      executor,
      rehashed(Inline, () => 99),
    );
    const { tx, store } = under;
    for (let id = 0; id < 300; id++) {
      run(executor, tx, () => store.insert(tx, { id, value: id }));
      store.maintain();
    }
    for (let id = 0; id < 300; id++) assert.deepEqual(store.get(id), { id, value: id });
    expect(store.get(300)).toBeUndefined();
    expect(robinhoodShape(under as never).broken).toEqual([]);
    for (let id = 0; id < 300; id += 2) run(executor, tx, () => store.remove(tx, id));
    for (let id = 0; id < 300; id++) {
      expect(store.get(id)).toEqual(id % 2 === 0 ? undefined : { id, value: id });
    }
  });
});

describe("the order", () => {
  it("holds through random inserts and removals over many splits, and no tombstone is left", async () => {
    const executor = await openExecutor(stores, stores.folder());
    const under = createRobinhood(
      executor,
      rehashed(Inline, (hash) => hash),
    );
    const { tx, store } = under;
    const random = new Random(seed);
    const model = new Map<number, number>();
    for (let round = 0; round < 12; round++) {
      for (let step = 0; step < 800; step++) {
        const id = random.below(4_000);
        const isRemoval = random.below(10) < (round % 4 === 3 ? 8 : 3);
        run(executor, tx, () => {
          if (isRemoval) assert.equal(store.remove(tx, id), model.has(id));
          else store.put(tx, { id, value: step });
        });
        if (isRemoval) model.delete(id);
        else model.set(id, step);
        store.maintain();
      }
      const shape = robinhoodShape(under as never);
      expect(shape.broken).toEqual([]);
      expect(shape.pairs).toBe(model.size);
    }
    expect(robinhoodShape(under as never).shards.length).toBeGreaterThan(4);
    for (let id = 0; id < 4_000; id++) {
      const value = model.get(id);
      assert.deepEqual(store.get(id), value === undefined ? undefined : { id, value });
    }
    // Emptied, all slots are free: nothing but pairs ever takes one.
    for (const id of model.keys()) run(executor, tx, () => store.remove(tx, id));
    const emptied = robinhoodShape(under as never);
    expect(emptied).toMatchObject({ pairs: 0, blocks: 0, broken: [] });
  });
});
