/**
 * Tables that grow and shrink while transactions are prepared in them. Rows come in batches: one
 * transaction inserts all rows of a batch, over all nodes and three layouts, with one new number, or
 * removes them all. So a batch is there as a whole and with one number, or it is not there.
 */

import { str, u32 } from "../../../src/tables/fields.ts";
import type { RowValues } from "../../../src/tables/indexes/structure.ts";
import { type Table, table } from "../../../src/tables/table.ts";
import type { Worker } from "../worker.ts";
import { type Counts, count, type FinalRows, type Witness, type Workload } from "../workload.ts";

const TABLES = [
  table("batches", { id: u32(), value: u32() }, { key: "id" }),
  table(
    "batches in buckets",
    { id: u32(), value: u32(), text: str() },
    { key: "id", layout: "buckets" },
  ),
  table(
    "batches in order",
    { id: u32(), value: u32() },
    { key: "id", ordered: true, indexes: { byValue: { on: ["value"] } } },
  ),
] as unknown as readonly Table[];
const BATCHES = 80;
const ROWS_PER_BATCH = 15;
const SHOWN = 3;

export class BatchesWorkload implements Workload {
  readonly name = "batches";
  readonly tables = TABLES;
  readonly counts: Counts = { committed: 0, aborted: 0, unknown: 0 };
  readonly #witness: Witness;
  readonly #problems: string[] = [];
  /** Numbers that may be in the tables: their transactions have not failed. */
  readonly #possible = new Set<number>();
  #values = 0;

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  async load(): Promise<void> {}

  async work(worker: Worker, transactions: number): Promise<void> {
    for (let done = 0; done < transactions; done++) {
      const batch = worker.random.below(BATCHES);
      const isReader = worker.random.below(4) === 0;
      for (let times = 1; !worker.isGone; times++) {
        if (await this.#transact(worker, batch, isReader)) break;
        await worker.backOff(times);
      }
      if (worker.isGone) return;
      await worker.pause(worker.random.below(300) / 1_000);
    }
  }

  async #transact(worker: Worker, batch: number, isReader: boolean): Promise<boolean> {
    const keys = keysOf(batch);
    const value = ++this.#values;
    const ended = await worker.transact(async (tx) => {
      const read = (isReader ? keys : keys.slice(0, 1)).map(
        ({ table: each, id }) => tx.get(each, id) as Promise<RowValues | undefined>,
      );
      const rows = await Promise.all(read);
      if (isReader) return rows;
      const writes = keys.map(({ table: each, id }) =>
        rows[0] !== undefined ? tx.delete(each, id) : tx.put(each, rowOf(each, id, value)),
      );
      await Promise.all(writes);
      return rows;
    });
    const { kind } = ended;
    count(this.counts, ended);
    this.#witness.note(`${worker.number} ${batch} ${isReader ? "read" : value} ${kind}`);
    if (!isReader && kind !== "failed") this.#possible.add(value);
    if (isReader && kind === "ok") this.#judge(batch, ended.result);
    return kind !== "failed";
  }

  /** A batch is one transaction's, or nobody's. */
  #judge(batch: number, rows: readonly (RowValues | undefined)[]): void {
    const values = new Set(rows.map((row) => row?.value as number | undefined));
    if (values.size === 1) return;
    const when = `at ${this.#witness.nowUs} µs`;
    this.#problems.push(`batch ${batch} ${when} has parts of several: ${[...values].join(", ")}`);
  }

  check(rows: FinalRows): string[] {
    const finals = TABLES.map((each) => rows(each));
    for (let batch = 0; batch < BATCHES; batch++) {
      const found = idsOf(batch).map((id, i) => finals[i % TABLES.length].get(`n${id}`));
      this.#judge(batch, found);
      const value = found[0]?.value as number | undefined;
      if (value !== undefined && !this.#possible.has(value)) {
        this.#problems.push(`batch ${batch} is of ${value}, a transaction that has failed`);
      }
    }
    return this.#problems.slice(0, SHOWN);
  }
}

function idsOf(batch: number): number[] {
  return Array.from({ length: ROWS_PER_BATCH }, (_, i) => batch * ROWS_PER_BATCH + i);
}

function keysOf(batch: number): { readonly table: Table; readonly id: number }[] {
  return idsOf(batch).map((id, i) => ({ table: TABLES[i % TABLES.length], id }));
}

function rowOf({ fields }: Table, id: number, value: number): RowValues {
  return "text" in fields ? { id, value, text: "x".repeat(value % 400) } : { id, value };
}
