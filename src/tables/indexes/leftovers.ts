/**
 * The structures of an index that could not be built stay with the table until it is declared
 * again: a service that is started again and again with an index that its rows do not allow must
 * not fill the store with them. Before they are used again they are emptied.
 */

import type { Executor } from "../../engine/executor.ts";
import { runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { turn } from "../../runtime/clock.ts";
import { BUILD_BATCH_ROWS } from "../../runtime/limits.ts";
import type { Cursor, Store } from "../../stores/store.ts";
import { readSchema } from "../catalogue.ts";
import type { StoredIndex } from "./definition.ts";
import { keyIn } from "./entries.ts";
import { structuresOf } from "./forms.ts";
import type { RowValues, Structure } from "./structure.ts";
import type { TableStore } from "./table-store.ts";

/**
 * Removes all entries; false if another builder has taken the structures meanwhile. Nobody else
 * writes to them: all executors know that the index is gone.
 */
export async function clearLeftover(
  executor: Executor,
  table: TableStore,
  leftover: StoredIndex,
  timeoutMs: number,
): Promise<boolean> {
  const structures = structuresOf(table.structure.table, leftover);
  for (let i = 0; i < structures.length; i++) {
    const clearing = new Clearing(executor, table, leftover, timeoutMs, structures[i], i);
    if (!(await clearing.run())) return false;
  }
  return true;
}

class Clearing {
  readonly #executor: Executor;
  readonly #table: TableStore;
  readonly #leftover: StoredIndex;
  readonly #timeoutMs: number;
  readonly #structure: Structure<RowValues, unknown>;
  readonly #store: Store<RowValues, unknown>;
  readonly #tx: Transaction;

  constructor(
    executor: Executor,
    table: TableStore,
    leftover: StoredIndex,
    timeoutMs: number,
    structure: Structure<RowValues, unknown>,
    part: number,
  ) {
    this.#executor = executor;
    this.#table = table;
    this.#leftover = leftover;
    this.#timeoutMs = timeoutMs;
    this.#structure = structure;
    this.#store = structure.open(executor, leftover.roots[part]);
    this.#tx = new Transaction(executor);
  }

  /** Passes over the entries until a pass finds none: one that is repeated may skip some. */
  async run(): Promise<boolean> {
    for (let found = 1; found > 0; ) {
      found = 0;
      const cursor = this.#store.cursor({ from: undefined, to: undefined }, false);
      for (;;) {
        const removed = this.#removeSome(cursor);
        if (removed < 0) return false;
        if (removed === 0) break;
        found += removed;
        this.#store.maintain();
        await turn();
      }
    }
    return true;
  }

  /** How many entries were removed; -1 if they are no longer there to be removed. */
  #removeSome(cursor: Cursor<RowValues>): number {
    const tx = this.#tx;
    const rows: RowValues[] = [];
    const { key, singleKey } = this.#structure.table;
    const body = (): number => {
      const { leftovers } = readSchema(tx, this.#table.position);
      if (!leftovers.some(({ build }) => build === this.#leftover.build)) return -1;
      if (!cursor.next(tx, rows, BUILD_BATCH_ROWS)) return 0;
      for (const row of rows) this.#store.remove(tx, keyIn(row, key, singleKey));
      return rows.length;
    };
    return runSync(this.#executor, tx, this.#timeoutMs, body, undefined);
  }
}
