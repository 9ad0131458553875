/**
 * The slab allocators of several executors against a Set: no cell is taken twice, what is freed
 * comes back, hints are followed, and nothing but the cells' own headers says what is taken.
 */

import { describe, expect, test } from "vitest";
import { ENTRY_WORDS } from "../../src/engine/access-set.ts";
import type { Executor } from "../../src/engine/executor.ts";
import { freeInTransaction } from "../../src/engine/objects.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import type { Address } from "../../src/memory/address.ts";
import { NO_ADDRESS, regionIdOf, wordOf } from "../../src/memory/address.ts";
import {
  ALLOCATED,
  ARRAY,
  ARRAY_HEADER_BYTES,
  freedWord,
  HEADER_BYTES,
  INCARNATION,
} from "../../src/memory/object.ts";
import { Pointer } from "../../src/memory/pointer.ts";
import { CELL_BYTES, sizeClassOf } from "../../src/memory/size-classes.ts";
import { UNIT_BYTES } from "../../src/runtime/limits.ts";
import { Random } from "../../src/runtime/random.ts";
import { createAccount, transact } from "../helpers/engine-accounts.ts";
import { EngineStore, SHARINGS, SMALL } from "../helpers/engine-store.ts";
import { check, fc } from "../helpers/property.ts";

// The same inputs in every run; a failure prints the seed and the path to its counterexample.
const MIB = 2 ** 20;
const withLongJournals = { ...SMALL, journalBytes: 2 * MIB };
const SMALL_CELLS = 0;
const LARGE_CELLS = sizeClassOf(100 * 1024);

function stateOf(executor: Executor, cell: Address): number {
  return executor.memory.regionOf(cell).i32[wordOf(cell) + INCARNATION];
}

/** What a commit does to the header, for tests that drive the slabs without the engine. */
function commitAllocation(executor: Executor, cell: Address): void {
  const { i32 } = executor.memory.regionOf(cell);
  i32[wordOf(cell) + INCARNATION] = (i32[wordOf(cell) + INCARNATION] & ~ARRAY) | ALLOCATED;
  executor.slabs.committed(cell);
}

function commitFree(executor: Executor, cell: Address): void {
  const { i32 } = executor.memory.regionOf(cell);
  const word = i32[wordOf(cell) + INCARNATION];
  i32[wordOf(cell) + INCARNATION] = freedWord(word);
  executor.slabs.freed(cell, (word & ARRAY) !== 0);
}

function fill(executor: Executor, sizeClass: number): Address[] {
  const cells: Address[] = [];
  for (;;) {
    const cell = executor.slabs.allocate(sizeClass, NO_ADDRESS);
    if (cell === NO_ADDRESS) return cells;
    commitAllocation(executor, cell);
    cells.push(cell);
  }
}

type Step =
  | {
      readonly kind: "allocate";
      readonly who: number;
      readonly bytes: number;
      readonly near: boolean;
    }
  | {
      readonly kind: "commit" | "abort" | "die" | "leave" | "reclaim" | "tidy";
      readonly who: number;
    }
  | { readonly kind: "free"; readonly who: number; readonly pick: number };

const EXECUTORS = 4;
const who = fc.nat(EXECUTORS - 1);
const pick = fc.nat(1_000);
const bytes = fc.constantFrom(40, 60, 1_000, 1_030, 12_000, 100 * 1024, MIB - HEADER_BYTES);
const kind = <K extends Step["kind"]>(of: K): fc.Arbitrary<K> => fc.constant(of);
const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({ kind: kind("allocate"), who, bytes, near: fc.boolean() }),
  },
  { weight: 6, arbitrary: fc.record({ kind: kind("commit"), who }) },
  { weight: 2, arbitrary: fc.record({ kind: kind("abort"), who }) },
  { weight: 7, arbitrary: fc.record({ kind: kind("free"), who, pick }) },
  { weight: 1, arbitrary: fc.record({ kind: kind("leave"), who }) },
  { weight: 1, arbitrary: fc.record({ kind: kind("die"), who }) },
  { weight: 2, arbitrary: fc.record({ kind: kind("reclaim"), who }) },
  { weight: 2, arbitrary: fc.record({ kind: kind("tidy"), who }) },
);

/**
 * Executors that each have one transaction open and allocate in it, so that they choose cells of the
 * same blocks before any of them commits. The truth: which cells are taken, and how long each is.
 */
class Model {
  readonly store = new EngineStore({ ...SMALL, regions: 3, journalBytes: 4 * MIB });
  readonly executors = Array.from({ length: EXECUTORS }, () => this.store.open());
  readonly open: (Transaction | undefined)[] = Array.from({ length: EXECUTORS }, () => undefined);
  readonly taken = new Map<Address, number>();
  conflicts = 0;

  run(step: Step): void {
    const executor = this.executors[step.who];
    if (step.kind === "allocate") this.#allocate(step.who, step.bytes, step.near);
    else if (step.kind === "commit") this.#commit(step.who);
    else if (step.kind === "abort") this.#end(step.who);
    else if (step.kind === "free") this.#free(step.who, step.pick);
    else if (step.kind === "tidy") executor.slabs.tidy();
    else if (step.kind === "reclaim") {
      // As the engine does: outside of the transaction.
      this.#end(step.who);
      executor.slabs.reclaim(0);
    } else {
      if (step.kind === "die") {
        this.open[step.who] = undefined;
        this.store.kill(executor);
      } else {
        this.#end(step.who);
        this.store.close(executor);
      }
      this.executors[(step.who + 1) % EXECUTORS].sweep();
      this.executors[step.who] = this.store.open();
    }
  }

  #allocate(by: number, size: number, isNear: boolean): void {
    const executor = this.executors[by];
    let tx = this.open[by];
    if (tx === undefined) {
      executor.enter();
      tx = new Transaction(executor);
      this.open[by] = tx;
    }
    const near = isNear ? ([...this.taken.keys()].pop() ?? NO_ADDRESS) : NO_ADDRESS;
    try {
      const entry = tx.allocate(size, near);
      expect(executor.slabs.blocks.cellOf(tx.addressOf(entry))).toBe(tx.addressOf(entry));
    } catch (error) {
      if (!tx.exhausted && !tx.doomed) throw error;
      this.#end(by);
    }
  }

  #commit(by: number): void {
    const [executor, tx] = [this.executors[by], this.open[by]];
    if (tx === undefined) return;
    const cells = new Map<Address, number>();
    for (let entry = 0; entry < tx.set.end; entry += ENTRY_WORDS) {
      const cell = tx.addressOf(entry);
      const { blocks } = executor.slabs;
      cells.set(cell, CELL_BYTES[blocks.classOf(blocks.blockOf(cell))]);
    }
    if (executor.commit(tx)) {
      for (const [cell, length] of cells) {
        this.#checkRoom(cell, length);
        this.taken.set(cell, length);
      }
    } else this.conflicts++;
    this.#end(by);
  }

  #end(by: number): void {
    const tx = this.open[by];
    if (tx === undefined) return;
    tx.clear();
    this.executors[by].leave();
    this.open[by] = undefined;
  }

  #free(by: number, which: number): void {
    const cell = nth(this.taken, which);
    if (cell === undefined) return;
    this.#end(by);
    this.#freeNow(this.executors[by], cell);
  }

  #freeNow(executor: Executor, cell: Address): void {
    expect(stateOf(executor, cell) & ALLOCATED).toBe(ALLOCATED);
    transact(executor, (tx) => {
      const entry = tx.open(executor.memory.regionOf(cell), wordOf(cell));
      tx.depend(entry);
      tx.free(entry);
    });
    this.taken.delete(cell);
  }

  /** At rest, after everybody else has left: all memory can be had again, by any class. */
  checkNothingLost(): void {
    const [first, ...others] = this.executors;
    this.#end(0);
    for (const other of others) this.store.kill(other);
    first.sweep();
    for (const cell of [...this.taken.keys()]) this.#freeNow(first, cell);
    first.reclaim(0);
    expect(first.slabs.blocks.freeUnits()).toBe(first.slabs.blocks.count);
    const cells = fill(first, 255);
    expect(cells.length).toBe((3 * SMALL.regionBytes) / MIB);
  }

  #checkRoom(cell: Address, length: number): void {
    for (const [other, otherLength] of this.taken) {
      const apart = cell + length <= other || other + otherLength <= cell;
      expect(apart, `${cell} (${length} bytes) lies in ${other} (${otherLength})`).toBe(true);
    }
  }
}

function nth(cells: ReadonlyMap<Address, number>, index: number): Address | undefined {
  return [...cells.keys()][cells.size === 0 ? 0 : index % cells.size];
}

describe("slabs", () => {
  test("model: four executors allocate, commit, abort, free, leave and die", () => {
    let conflicts = 0;
    check(
      fc.property(fc.array(steps, { minLength: 20, maxLength: 250 }), (script) => {
        const model = new Model();
        try {
          for (const step of script) model.run(step);
          model.checkNothingLost();
          conflicts += model.conflicts;
        } finally {
          model.store.dispose();
        }
      }),
      { numRuns: 60 },
    );
    // Executors that choose the same cell are what this is about.
    expect(conflicts).toBeGreaterThan(0);
  });

  describe.each(SHARINGS)("%s", (sharing) => {
    function withStore(work: (store: EngineStore) => void, geometry = SMALL): void {
      const store = new EngineStore(geometry, sharing);
      try {
        work(store);
      } finally {
        store.dispose();
      }
    }

    test("a store hands out every cell once, then says that it is full", () => {
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const cells = new Set<Address>();
        let turn = 0;
        for (;;) {
          const executor = turn++ % 2 === 0 ? one : two;
          const cell = executor.slabs.allocate(LARGE_CELLS, NO_ADDRESS);
          if (cell === NO_ADDRESS) break;
          expect(cells.has(cell)).toBe(false);
          cells.add(cell);
          commitAllocation(executor, cell);
        }
        const all = fill(one, LARGE_CELLS).length + fill(two, LARGE_CELLS).length + cells.size;
        const bytes = all * CELL_BYTES[LARGE_CELLS];
        expect(bytes).toBeGreaterThan(0.9 * SMALL.regions * SMALL.regionBytes);
        expect(one.slabs.allocate(LARGE_CELLS, NO_ADDRESS)).toBe(NO_ADDRESS);
      });
    });

    test("what another executor frees in my block comes back to me", () => {
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const cells = fill(one, 255);
        for (const cell of cells) commitFree(two, cell);
        expect(new Set(fill(one, 255))).toEqual(new Set(cells));
      });
    });

    test("what others free is used again before the store has grown much", () => {
      const room = { ...SMALL, regionBytes: 8 * MIB, regions: 4 };
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const cells: Address[] = [];
        const take = (near: Address): Address => {
          const cell = one.slabs.allocate(LARGE_CELLS, near);
          expect(cell).not.toBe(NO_ADDRESS);
          commitAllocation(one, cell);
          return cell;
        };
        while (cells.length < 120) cells.push(take(cells[0] ?? NO_ADDRESS));
        const used = one.slabs.blocks.count;
        // As a queue does: one fills it, another one empties it, for much longer than there is room.
        for (let round = 0; round < 2_000; round++) {
          commitFree(two, cells[round % cells.length]);
          const near = round % 2 === 0 ? NO_ADDRESS : cells[(round * 7) % cells.length];
          cells[round % cells.length] = take(near);
        }
        expect(one.slabs.blocks.count).toBeLessThanOrEqual(2 * used);
        expect(new Set(cells).size).toBe(cells.length);
      }, room);
    });

    test("classes that each executor uses a little share their blocks, however long they are churned", () => {
      withStore(
        (store) => {
          const executors = [store.open(), store.open(), store.open(), store.open()];
          const random = new Random(7);
          const classes = Array.from({ length: 24 }, (_, i) => sizeClassOf(16_000 + i * 640));
          const often = sizeClassOf(32_600);
          // Of each executor: 40 rows of one cell of a rare class, and three of a class that all have.
          const rows = executors.map(() => Array.from({ length: 40 }, (): Address[] => []));
          let live = 0;
          const replace = (by: number): void => {
            const executor = executors[by];
            const index = random.below(40);
            for (const cell of rows[by][index]) {
              live -=
                CELL_BYTES[executor.slabs.blocks.classOf(executor.slabs.blocks.blockOf(cell))];
              commitFree(executor, cell);
            }
            const rare = classes[random.below(classes.length)];
            rows[by][index] = [rare, often, often, often].map((sizeClass) => {
              const cell = executor.slabs.allocate(sizeClass, NO_ADDRESS);
              expect(cell).not.toBe(NO_ADDRESS);
              commitAllocation(executor, cell);
              live +=
                CELL_BYTES[executor.slabs.blocks.classOf(executor.slabs.blocks.blockOf(cell))];
              return cell;
            });
          };
          for (let round = 0; round < 12_000; round++) {
            replace(round % 4);
            // The background looks often enough to see each class in use.
            if (round % 1_000 === 999) for (const { slabs } of executors) slabs.tidy();
          }
          const { blocks } = executors[0].slabs;
          const used = (blocks.count - blocks.freeUnits()) * UNIT_BYTES;
          expect(used).toBeLessThan(1.4 * live + 4 * MIB);
        },
        { ...SMALL, regionBytes: 8 * MIB, regions: 16 },
      );
    });

    test("hints: the same block, else the same region, else anywhere", () => {
      withStore((store) => {
        const executor = store.open();
        const { slabs } = executor;
        const cells = fill(executor, 255);
        // One of the two in region 2 stays, and there is room beside it.
        const [gone, stays] = cells.filter((cell) => regionIdOf(cell) === 2);
        for (const cell of [cells[0], gone]) commitFree(executor, cell);
        executor.reclaim(0);

        const first = slabs.allocate(SMALL_CELLS, stays);
        expect(regionIdOf(first)).toBe(2);
        commitAllocation(executor, first);
        const neighbour = slabs.allocate(SMALL_CELLS, first);
        expect(slabs.blocks.blockOf(neighbour)).toBe(slabs.blocks.blockOf(first));
        commitAllocation(executor, neighbour);
        const sameRegion = slabs.allocate(sizeClassOf(15 * 1024), first);
        expect(regionIdOf(sameRegion)).toBe(2);
        // Region 1 is full: the hint cannot be followed.
        const full = cells.find((cell) => regionIdOf(cell) === 1)!;
        const elsewhere = slabs.allocate(SMALL_CELLS, full);
        expect(elsewhere).not.toBe(NO_ADDRESS);
        expect(regionIdOf(elsewhere)).not.toBe(1);
      });
    });

    test("a hint that is no address of this store is no more than a useless hint", () => {
      withStore((store) => {
        const executor = store.open();
        executor.slabs.allocate(SMALL_CELLS, NO_ADDRESS);
        const before = executor.memory.control.i32.slice(0, 1024);
        for (const near of [8, -16, 2 ** 32 * 4_000, Number.MAX_SAFE_INTEGER - 7]) {
          const cell = executor.slabs.allocate(SMALL_CELLS, near as Address);
          expect(executor.slabs.blocks.cellOf(cell)).toBe(cell);
        }
        expect(executor.memory.control.i32.slice(0, 1024)).toEqual(before);
      });
    });

    test("an array's cell rests until the transactions that ran have ended", () => {
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const sameClassBytes = 4 * (HEADER_BYTES + 240 * 1024) + ARRAY_HEADER_BYTES - HEADER_BYTES;
        const cells: Address[] = [];
        // As many as the store holds.
        for (let i = 0; i < 8; i++) {
          const first = transact(one, (tx) => tx.addressOf(tx.allocateArray(4, 240 * 1024)));
          cells.push((first - ARRAY_HEADER_BYTES) as Address);
        }
        expect(new Set(cells).size).toBe(8);
        two.enter();
        transact(one, (tx) => {
          const pointer = new Pointer(cells[3], 240 * 1024, stateOf(one, cells[3]), 4);
          freeInTransaction(tx, pointer);
        });
        const tx = new Transaction(one);
        one.enter();
        expect(() => tx.allocate(sameClassBytes), "somebody may still see the array").toThrow();
        tx.clear();
        one.leave();
        two.leave();
        // Everybody who was running has ended: now the cell is free.
        one.enter();
        expect(tx.addressOf(tx.allocate(sameClassBytes))).toBe(cells[3]);
        tx.clear();
        one.leave();
      }, withLongJournals);
    });

    test("empty blocks go to another class; incarnations only grow", () => {
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const cells = fill(one, 255);
        const before = Math.max(...cells.map((cell) => stateOf(one, cell)));
        expect(two.slabs.allocate(SMALL_CELLS, NO_ADDRESS)).toBe(NO_ADDRESS);
        for (const cell of cells) commitFree(one, cell);
        expect(one.reclaim(0)).toBe(true);
        const smaller = two.slabs.allocate(SMALL_CELLS, NO_ADDRESS);
        expect(smaller).not.toBe(NO_ADDRESS);
        expect(stateOf(two, smaller)).toBeGreaterThan(before);
      });
    });

    test("a block is not given to another class while a transaction runs that may look into it", () => {
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const cells = fill(one, 255);
        for (const cell of cells) commitFree(one, cell);
        two.enter();
        expect(one.reclaim(0)).toBe(false);
        expect(two.slabs.allocate(SMALL_CELLS, NO_ADDRESS)).toBe(NO_ADDRESS);
        two.leave();
        expect(one.reclaim(0)).toBe(true);
      });
    });

    test("a cell that a running transaction has been promised keeps its block", () => {
      withStore((store) => {
        const executor = store.open();
        const promised = executor.slabs.allocate(255, NO_ADDRESS);
        executor.reclaim(0);
        expect(executor.slabs.blocks.cellOf(promised)).toBe(promised);
        expect(fill(executor, 255)).not.toContain(promised);
      });
    });

    test.each(["closed", "died"])("the blocks of an executor that %s come back", (how) => {
      withStore((store) => {
        const [one, two] = [store.open(), store.open()];
        const taken = fill(one, 255);
        const promised = taken.splice(3, 2);
        // Freed and handed out again, but never committed: nobody has these two.
        for (const cell of promised) commitFree(one, cell);
        for (const _ of promised) one.slabs.allocate(255, NO_ADDRESS);
        if (how === "closed") store.close(one);
        else store.kill(one);
        two.sweep();
        // All that is left is what the headers say: scanning them finds exactly the free ones.
        expect(new Set(fill(two, 255))).toEqual(new Set(promised));
        for (const cell of taken) commitFree(two, cell);
        expect(new Set(fill(two, 255))).toEqual(new Set(taken));
      });
    });

    test("allocation state survives when everybody has left: it is in the headers", () => {
      withStore((store) => {
        const first = store.open();
        const accounts = transact(first, (tx) => {
          const made: Pointer[] = [];
          for (let i = 0; i < 500; i++) made.push(createAccount(tx, i));
          return made;
        });
        const gone = accounts.filter((_, index) => index % 3 === 0);
        transact(first, (tx) => {
          for (const account of gone) freeInTransaction(tx, account);
        });
        store.close(first);

        const second = store.open();
        const kept = new Set(accounts.filter((at) => !gone.includes(at)).map((at) => at.address));
        const again = new Set<Address>();
        for (let i = 0; i < 500; i++) {
          const cell = second.slabs.allocate(sizeClassOf(24), NO_ADDRESS);
          expect(kept.has(cell)).toBe(false);
          again.add(cell);
        }
        for (const { address } of gone) expect(again.has(address)).toBe(true);
      });
    });
  });
});
