/**
 * Hash tables with another executor that commits between any two steps of a transaction: whenever
 * it opens an object or settles one. What a transaction returns must be what the table held at one
 * moment, what a snapshot reads what it held when it was taken; and no change is lost.
 */

import assert from "node:assert/strict";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { readAtSnapshot } from "../../src/engine/run.ts";
import { Snapshot } from "../../src/engine/snapshots/snapshot.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { Random } from "../../src/runtime/random.ts";
import { Directory } from "../../src/stores/shards/directory.ts";
import { codecOf } from "../../src/tables/codec/codec.ts";
import { check, fc } from "../helpers/property.ts";
import { SOAK } from "../helpers/seed.ts";
import { MIB, TemporaryStores, temporaryStores } from "../helpers/store.ts";
import { BUCKETS_KIND } from "../helpers/store-buckets.ts";
import { openExecutor, type Rehash, rehashed, run } from "../helpers/store-engine.ts";
import { HOPSCOTCH_KIND, Inline, type ModelTable, Variable } from "../helpers/store-model.ts";
import { ROBINHOOD_KIND } from "../helpers/store-robinhood.ts";

const stores = temporaryStores();

const { open, settle } = Transaction.prototype;
afterEach(() => {
  Transaction.prototype.open = open;
  Transaction.prototype.settle = settle;
});

/** Where all codecs of a thread leave their rows: executors of different threads have two. */
const { scratch } = codecOf(Inline);
const ROW_WORDS = 256;
/** For the tables of all tests of a case. */
const MEMORY = 64 * MIB * SOAK;

/** Calls `meddle` at every step of one transaction, but not at steps of the meddler's own. */
function between(disturbed: Transaction, meddle: () => void): void {
  let isMeddling = false;
  const step = (tx: Transaction): void => {
    if (tx !== disturbed || isMeddling) return;
    isMeddling = true;
    meddle();
    isMeddling = false;
  };
  Transaction.prototype.open = function (region, word) {
    step(this);
    return open.call(this, region, word);
  };
  Transaction.prototype.settle = function (entry) {
    step(this);
    return settle.call(this, entry);
  };
}

const KINDS = {
  hopscotch: HOPSCOTCH_KIND,
  buckets: BUCKETS_KIND,
  robinhood: ROBINHOOD_KIND,
};
const HASHES: Record<string, Rehash> = {
  "one bucket": (hash) => hash & 0x03ffffff,
  "one 32-bit hash": () => 77,
  "three buckets of one shard": (hash) => (((hash >>> 0) % 3) << 26) | (hash & 0x3fffff0),
  "one bucket of many shards": (hash) => hash & 0x03ffffff,
};

interface AnyRow {
  readonly id: number;
}
const SHAPES = {
  inline: { table: Inline, row: (id: number, value: number): AnyRow => ({ id, value }) as AnyRow },
  objects: {
    table: Variable,
    row: (id: number, value: number): AnyRow => ({ id, text: "x".repeat(value) }) as AnyRow,
  },
};

const CASES = (["hopscotch", "buckets", "robinhood"] as const).flatMap((layout) =>
  (["inline", "objects"] as const).flatMap((rows) =>
    Object.keys(HASHES).map((hash) => ({ layout, rows, hash })),
  ),
);

class World {
  readonly model = new Map<number, number>();
  readonly mine: ModelTable<AnyRow>;
  readonly theirs: ModelTable<AnyRow>;
  readonly keys: number;
  readonly random: Random;
  readonly #row: (id: number, value: number) => AnyRow;
  /** Keys that the other one changes more often than others: those that are being read. */
  favourites: readonly number[] = [];
  /** All states since the last `remember`. */
  readonly states: Map<number, number>[] = [];

  constructor(
    mine: ModelTable<AnyRow>,
    theirs: ModelTable<AnyRow>,
    random: Random,
    row: (id: number, value: number) => AnyRow,
  ) {
    this.mine = mine;
    this.theirs = theirs;
    this.random = random;
    this.#row = row;
    // Most often some more than a bucket holds.
    this.keys = 20 + random.below(random.below(3) > 0 ? 25 : 70);
    for (let n = 0; n < 2 * this.keys; n++) this.change();
  }

  remember(): void {
    this.states.length = 0;
    this.states.push(new Map(this.model));
  }

  rowOf(id: number, value: number | undefined): AnyRow | undefined {
    return value === undefined ? undefined : this.#row(id, value);
  }

  /** A transaction of the other executor. */
  change(): void {
    const { executor, tx, store } = this.theirs;
    const { random, model } = this;
    // Drawn beforehand: the body runs again when the reader has the turn.
    const changes = Array.from({ length: 1 + random.below(3) }, () => {
      const { length } = this.favourites;
      const isChosen = length > 0 && random.below(2) === 0;
      const id = isChosen ? this.favourites[random.below(length)] : random.below(this.keys);
      const value = random.below(300);
      return { id, value: random.below(4) === 0 ? undefined : value };
    });
    run(executor, tx, () => {
      for (const { id, value } of changes) {
        if (value === undefined) store.remove(tx, id);
        else store.put(tx, this.#row(id, value));
      }
    });
    for (const { id, value } of changes) {
      if (value === undefined) model.delete(id);
      else model.set(id, value);
    }
    store.maintain();
    if (this.states.length > 0) this.states.push(new Map(model));
  }

  /** Changes now and then, while `body` runs, a few times at most. */
  disturbed<T>(tx: Transaction, times: number, body: () => T): T {
    let left = times;
    between(tx, () => {
      if (left === 0 || this.random.below(3) > 0) return;
      left--;
      const encoded = scratch.i32.slice(0, ROW_WORDS);
      this.change();
      scratch.i32.set(encoded);
    });
    try {
      return body();
    } finally {
      Transaction.prototype.open = open;
      Transaction.prototype.settle = settle;
    }
  }

  some(): number[] {
    const { random } = this;
    this.favourites = Array.from({ length: 1 + random.below(4) }, () => random.below(this.keys));
    return [...this.favourites];
  }
}

describe.each(CASES)("$layout, rows $rows, keys with $hash", ({ layout, rows, hash }) => {
  const kind = KINDS[layout];
  const codec = () => rehashed(SHAPES[rows].table as never, HASHES[hash]) as never;

  // One store for the tests of a case: every world has a table of its own.
  const ofCase = new TemporaryStores();
  afterAll(() => ofCase.clear());
  let opened: Promise<[Executor, Executor]> | undefined;

  async function openBoth(): Promise<[Executor, Executor]> {
    const path = ofCase.folder();
    const first = await openExecutor(ofCase, path, MEMORY);
    return [first, await openExecutor(ofCase, path, MEMORY)];
  }

  async function worlds(): Promise<(chosen: number) => World> {
    opened ??= openBoth();
    const [first, second] = await opened;
    return (chosen) => {
      // There are many shards if one is split as soon as it has a chain.
      const splitAt = hash.includes("many shards") ? 0.001 : undefined;
      const mine = kind.create<AnyRow>(first, codec(), splitAt);
      const theirs = kind.reopen(mine, second, codec(), splitAt);
      return new World(mine, theirs, new Random(chosen), SHAPES[rows].row);
    };
  }

  it("reads what was there at one moment: in transactions, lock-free, by a cursor", async () => {
    const make = await worlds();
    check(
      fc.property(fc.integer(), (chosen) => {
        const world = make(chosen);
        const { executor, tx, store } = world.mine;
        for (let round = 0; round < 40; round++) {
          world.remember();
          const keys = world.some();
          const times = 1 + world.random.below(12);
          const found = world.disturbed(tx, times, () =>
            run(executor, tx, () => keys.map((key) => store.read(tx, key))),
          );
          const was = world.states.some((state) =>
            keys.every((key, i) => isSame(found[i], world.rowOf(key, state.get(key)))),
          );
          assert(was, `${keys.join()} never were ${JSON.stringify(found)}`);

          world.remember();
          const walked = world.disturbed(tx, times, () =>
            run(executor, tx, () => {
              const cursor = store.cursor({ from: undefined, to: undefined }, false);
              const all: AnyRow[] = [];
              for (const some: AnyRow[] = []; cursor.next(tx, some, 5); ) all.push(...some);
              return all;
            }),
          );
          const sorted = walked.sort((a, b) => a.id - b.id);
          const wasAll = world.states.some((state) => {
            const wanted = [...state].sort(([a], [b]) => a - b);
            return isSame(
              sorted,
              wanted.map(([key, value]) => world.rowOf(key, value)),
            );
          });
          assert(wasAll, "a cursor has seen what never was");
        }
      }),
      4,
    );
  });

  it("reads through a snapshot what was there when it was taken", async () => {
    const make = await worlds();
    check(
      fc.property(fc.integer(), (chosen) => {
        const world = make(chosen);
        const { executor, tx, store } = world.mine;
        for (let round = 0; round < 5; round++) {
          const snapshot = Snapshot.take(executor, 60_000, 1_000);
          try {
            const then = new Map(world.model);
            for (let key = 0; key < world.keys; key++) {
              world.favourites = [key];
              const found = world.disturbed(tx, 2, () =>
                readAtSnapshot(executor, tx, snapshot, (at) => store.read(at, key), undefined),
              );
              assert.deepEqual(found, world.rowOf(key, then.get(key)));
            }
            const cursor = store.cursor({ from: undefined, to: undefined }, false);
            const ids: number[] = [];
            for (const some: AnyRow[] = []; ; ids.push(...some.map(({ id }) => id))) {
              const more = world.disturbed(tx, 5, () =>
                readAtSnapshot(executor, tx, snapshot, (at) => cursor.next(at, some, 9), undefined),
              );
              if (!more) break;
            }
            assert.deepEqual(
              ids.sort((a, b) => a - b),
              [...then.keys()].sort((a, b) => a - b),
            );
          } finally {
            snapshot.release();
          }
        }
      }),
      3,
    );
  });

  it("loses no change, and keeps the rules of the layout", async () => {
    const make = await worlds();
    check(
      fc.property(fc.integer(), (chosen) => {
        const world = make(chosen);
        const { executor, tx, store } = world.mine;
        const { model, random } = world;
        for (let round = 0; round < 30; round++) {
          const keys = world.some();
          const values = keys.map(() => random.below(300));
          const kinds = keys.map(() => random.below(4));
          world.disturbed(tx, 1 + random.below(5), () =>
            run(executor, tx, () => {
              keys.forEach((key, i) => {
                const row = world.rowOf(key, values[i])!;
                const { id: _, ...changes } = row;
                if (kinds[i] === 0) store.remove(tx, key);
                else if (kinds[i] === 1) store.insert(tx, row);
                else if (kinds[i] === 2) store.update(tx, key, changes);
                else store.put(tx, row);
              });
            }),
          );
          keys.forEach((key, i) => {
            const isThere = model.has(key);
            if (kinds[i] === 0) model.delete(key);
            else if (kinds[i] === 3 || (kinds[i] === 1 ? !isThere : isThere)) {
              model.set(key, values[i]);
            }
          });
          store.maintain();
        }
        for (const { store: each } of [world.mine, world.theirs]) {
          for (let key = 0; key < world.keys; key++) {
            assert.deepEqual(each.get(key), world.rowOf(key, model.get(key)));
          }
        }
        const { broken, pairs } = kind.shape(world.mine as never);
        expect(broken).toEqual([]);
        expect(pairs).toBe(model.size);
      }),
      6,
    );
  });
});

describe.each(["hopscotch", "buckets", "robinhood"] as const)(
  "%s: a key is moved while it is looked for",
  (layout) => {
    it.each(["inline", "objects"] as const)("at any step, rows %s", async (rows) => {
      const path = stores.folder();
      const first = await openExecutor(stores, path);
      const second = await openExecutor(stores, path);
      const { table, row } = SHAPES[rows];
      const codec = () => rehashed(table as never, () => 99) as never;
      const keys = 22;
      // Every key, one after the other in the two ways; with SITU_SOAK in both.
      const cases = Array.from(
        { length: 2 * keys },
        (_, i) => [i >> 1, i % 2 === 0] as const,
      ).filter(([wanted, isOne]) => SOAK > 1 || (wanted % 2 === 0) === isOne);
      for (const [wanted, isOne] of cases) {
        for (let at = 1, isOver = false; !isOver; at++) {
          const mine = KINDS[layout].create<AnyRow>(first, codec());
          const theirs = KINDS[layout].reopen(mine, second, codec());
          const { executor, tx, store } = theirs;
          for (let id = 0; id < keys; id++) run(executor, tx, () => store.put(tx, row(id, id)));
          let steps = 0;
          between(mine.tx, () => {
            if (++steps !== at) return;
            // One key goes, or every other one, and those that are left fill the gaps.
            for (let id = (wanted + 1) % 2; id < (isOne ? 2 : keys); id += 2) {
              run(executor, tx, () => store.remove(tx, id));
            }
          });
          const found = run(first, mine.tx, () => mine.store.read(mine.tx, wanted));
          Transaction.prototype.open = open;
          Transaction.prototype.settle = settle;
          assert.deepEqual(found, row(wanted, wanted), `key ${wanted}, step ${at}`);
          isOver = steps < at;
        }
      }
    });
  },
);

describe.each(["hopscotch", "buckets"] as const)("%s: a transaction ends at once", (layout) => {
  /** Runs two bodies in one transaction, and `meddle` between them the first time. */
  async function interrupted(
    rehash: Rehash,
    splitAt: number | undefined,
    fill: (put: (id: number) => void) => void,
    meddle: (theirs: ModelTable<AnyRow>) => void,
    before: (mine: ModelTable<AnyRow>) => void,
    after: (mine: ModelTable<AnyRow>) => void,
  ): Promise<number> {
    const path = stores.folder();
    const first = await openExecutor(stores, path);
    const second = await openExecutor(stores, path);
    const codec = () => rehashed(Inline as never, rehash) as never;
    const mine = KINDS[layout].create<AnyRow>(first, codec(), splitAt);
    const theirs = KINDS[layout].reopen(mine, second, codec(), splitAt);
    fill((id) => {
      run(first, mine.tx, () => mine.store.put(mine.tx, { id, value: id } as AnyRow));
    });
    let attempts = 0;
    let located = 0;
    const { locate } = Directory.prototype;
    try {
      run(first, mine.tx, () => {
        attempts++;
        before(mine);
        if (attempts === 1) meddle(theirs);
        Directory.prototype.locate = function (tx, hash) {
          located++;
          locate.call(this, tx, hash);
        };
        after(mine);
      });
    } finally {
      Directory.prototype.locate = locate;
    }
    expect(attempts).toBe(2);
    return located;
  }

  it("if it has written a bucket whose chain another one has changed", async () => {
    const located = await interrupted(
      () => 99,
      undefined,
      (put) => {
        for (let id = 0; id < 40; id++) put(id);
      },
      ({ executor, tx, store }) => {
        for (let id = 39; id > 1; id--) run(executor, tx, () => store.remove(tx, id));
      },
      ({ tx, store }) => store.update(tx, 0, { value: 1 } as never),
      ({ tx, store }) => store.read(tx, 1_000),
    );
    expect(located).toBeLessThan(5);
  });

  it("if it has written a bucket of a shard that another one has split", async () => {
    // Keys below 1,000 are in one bucket, the others in another.
    const home = (key: number): number => (key < 1_000 ? 0 : 1 << 26);
    const codec = codecOf(Inline);
    const homes = new Map<number, number>();
    for (let key = 0; key < 2_000; key++) homes.set(codec.stageKey(key), home(key));
    const located = await interrupted(
      (hash) => (homes.get(hash) ?? 0) | (hash & 0x03ffffff),
      0.001,
      (put) => {
        put(0);
        put(1_000);
      },
      ({ executor, tx, store }) => {
        for (let id = 1_001; id < 1_060; id++) {
          run(executor, tx, () => store.put(tx, { id, value: 1 } as AnyRow));
          store.maintain();
        }
      },
      ({ tx, store }) => store.update(tx, 0, { value: 1 } as never),
      ({ tx, store }) => {
        // Learns of the split, and then asks for a key of the bucket that it has written.
        for (let id = 1_001; id < 1_060; id++) store.read(tx, id);
        for (let id = 1; id < 30; id++) store.read(tx, id);
      },
    );
    expect(located).toBeLessThan(300);
  });
});

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
