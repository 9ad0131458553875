/**
 * One who inserts rows with numbers for their keys dies before and after each atomic step: of taking a
 * range of numbers, beside the transaction that inserts, and of that transaction. Those who come later
 * are given no number that a row has, whether he was recovered before or is found on the way.
 */

import "../helpers/engine-all-atomics.ts";

import { expect, test } from "vitest";
import type { Executor } from "../../src/engine/executor.ts";
import { runReadOnly, runSync } from "../../src/engine/run.ts";
import { Transaction } from "../../src/engine/transaction.ts";
import { SEQUENCE_RANGE_NUMBERS } from "../../src/runtime/limits.ts";
import { createCatalogue, openTable } from "../../src/tables/catalogue.ts";
import { autoIncrement, u32 } from "../../src/tables/fields.ts";
import { Sequence } from "../../src/tables/sequence.ts";
import { type Table, table } from "../../src/tables/table.ts";
import { atEachStep, recovererDies, WHENS } from "../helpers/crash-steps.ts";
import { dieAt, type When } from "../helpers/engine-atomics.ts";
import { EngineStore, SMALL } from "../helpers/engine-store.ts";

const Item = table("item", { id: autoIncrement(), by: u32() }, { key: "id" }) as Table;

/** What one executor has open. */
class Inserter {
  readonly #executor: Executor;
  readonly #tx: Transaction;
  readonly #items;
  readonly #sequence;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#tx = new Transaction(executor);
    this.#items = openTable(executor, Item);
    this.#sequence = new Sequence(executor, this.#items);
  }

  /** Inserts a row; false if its number was in use, which nobody has chosen here. */
  insert(by: number): boolean {
    const body = (): boolean =>
      this.#items.store.insert(this.#tx, { id: this.#sequence.take(), by });
    return runSync(this.#executor, this.#tx, 5_000, body, undefined);
  }

  rows(): { id: number; by: number }[] {
    const cursor = this.#items.rows.cursor({ from: undefined, to: undefined }, false);
    const all: { id: number; by: number }[] = [];
    const step = (tx: Transaction): void => {
      const some: typeof all = [];
      while (cursor.next(tx, some as never, 1_000)) all.push(...some);
    };
    runReadOnly(this.#executor, new Transaction(this.#executor), step, undefined);
    return all;
  }
}

class Stage {
  readonly store = new EngineStore({ ...SMALL, slots: 6, regionBytes: 4 * 2 ** 20 });
  readonly victim = this.store.open();
  readonly inserter: Inserter;
  done = 0;

  constructor() {
    createCatalogue(this.victim);
    this.inserter = new Inserter(this.victim);
  }

  /** The first row takes a range, the second has its number from it. */
  insertAndDie(k: number, when: When): boolean {
    const died = dieAt(k, when, () => {
      for (let i = 0; i < 2; i++) {
        expect(this.inserter.insert(1)).toBe(true);
        this.done++;
      }
    });
    this.store.kill(this.victim);
    return died;
  }

  /** Rows that another one adds, more than a range of them, are new ones. */
  check(survivor: Executor, point: string): void {
    const other = new Inserter(survivor);
    for (let i = 0; i <= SEQUENCE_RANGE_NUMBERS; i++) expect(other.insert(2), point).toBe(true);
    const rows = other.rows();
    expect(new Set(rows.map(({ id }) => id)).size, point).toBe(rows.length);
    const left = rows.filter(({ by }) => by === 1).length;
    // The one that he died in may have been committed or not.
    expect([this.done, this.done + 1], point).toContain(left);
  }
}

const stage = (): Stage => new Stage();

test.each(WHENS)("he dies %s any of his steps, and is recovered", (when) => {
  atEachStep(stage, (on, k) => {
    const died = on.insertAndDie(k, when);
    const survivor = on.store.open();
    survivor.sweep();
    on.check(survivor, `died ${when} step ${k}`);
    return died;
  });
});

test("others go on without a sweep, whenever he died", () => {
  atEachStep(stage, (on, k) => {
    const survivor = on.store.open();
    const died = on.insertAndDie(k, "after");
    on.check(survivor, `died after step ${k}`);
    return died;
  });
});

test("so does his recoverer, before and after any of its own steps", () => {
  // Somewhere in the commit of the range.
  const die = (on: Stage): void => void on.insertAndDie(8, "after");
  recovererDies(stage, die, (on, third, point) => on.check(third, point));
});
