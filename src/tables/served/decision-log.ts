/**
 * Decisions of the coordinators of a node, in its store: transactions that are committed, though no record
 * that this node has, or others have, proves it (protocols/settlement.ts).
 */

import type { Executor } from "../../engine/executor.ts";
import { runReadOnly, runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { DEFAULT_TIMEOUT_MS, SCAN_BATCH_ROWS } from "../../runtime/limits.ts";
import type { Store } from "../../stores/store.ts";
import { openTable } from "../catalogue.ts";
import { u32, u53 } from "../fields.ts";
import { DECISIONS } from "../own-tables.ts";
import { table } from "../table.ts";
import type { DecisionLog } from "./contract.ts";

const Decisions = table(
  DECISIONS,
  { coordinator: u32(), sequence: u53() },
  { key: ["coordinator", "sequence"] },
);

interface Row {
  coordinator: number;
  sequence: number;
}

export class StoreDecisionLog implements DecisionLog {
  readonly #executor: Executor;
  readonly #tx: Transaction;
  readonly #store: Store<Row, [number, number]>;

  constructor(executor: Executor) {
    this.#executor = executor;
    this.#tx = new Transaction(executor);
    this.#tx.subject = "the decision of a coordinator";
    this.#store = openTable(executor, Decisions).rows as unknown as Store<Row, [number, number]>;
  }

  keep(coordinator: number, sequence: number): void {
    this.#run((tx) => this.#store.put(tx, { coordinator, sequence }));
    this.#store.maintain();
  }

  forget(coordinator: number, sequence: number): void {
    this.#run((tx) => void this.#store.remove(tx, [coordinator, sequence]));
  }

  has(coordinator: number, sequence: number): boolean {
    const key: [number, number] = [coordinator, sequence];
    return this.#read((tx) => this.#store.read(tx, key) !== undefined);
  }

  all(): Row[] {
    return this.#read((tx) => {
      const all: Row[] = [];
      const cursor = this.#store.cursor({ from: undefined, to: undefined }, false);
      for (const rows: Row[] = []; cursor.next(tx, rows, SCAN_BATCH_ROWS); ) all.push(...rows);
      return all;
    });
  }

  #run(body: (tx: Transaction) => void): void {
    runSync(this.#executor, this.#tx, DEFAULT_TIMEOUT_MS, body, this.#tx);
  }

  #read<T>(body: (tx: Transaction) => T): T {
    return runReadOnly(this.#executor, new Transaction(this.#executor), body, undefined);
  }
}
