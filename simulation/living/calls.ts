/**
 * Calls of procedures, each of which must be done once: they add one to counters. Some name the row that they run at,
 * so the node that is called passes them on; some are called at that node; some write to two partitions. In the end a
 * counter has all that was acknowledged, and no more than that and what nobody could tell.
 */

import { type Procedure, procedure } from "../../src/database/procedure.ts";
import { u32 } from "../../src/tables/fields.ts";
import { type Table, table } from "../../src/tables/table.ts";
import type { Ended, Worker } from "../cluster/worker.ts";
import {
  type Counts,
  count,
  type FinalRows,
  type Witness,
  type Workload,
} from "../cluster/workload.ts";

const Counter = table("counters", { id: u32(), count: u32() }, { key: "id" });
const COUNTERS = 8;

const deposit = procedure(
  "deposit",
  async (tx, id: number) => {
    const found = await tx.get(Counter, id);
    const next = (found?.count ?? 0) + 1;
    await tx.put(Counter, { id, count: next });
    return next;
  },
  { tables: [Counter] as unknown as Table[], at: (id) => [Counter as unknown as Table, id] },
);

/** Runs wherever it is called, which may have none of the rows. */
const depositBoth = procedure(
  "deposit both",
  async (tx, one: number, other: number) => {
    const found = [await tx.getForUpdate(Counter, one), await tx.getForUpdate(Counter, other)];
    await tx.put(Counter, { id: one, count: (found[0]?.count ?? 0) + 1 });
    await tx.put(Counter, { id: other, count: (found[1]?.count ?? 0) + 1 });
  },
  { tables: [Counter] as unknown as Table[] },
);

export const PROCEDURES = [deposit, depositBoth] as unknown as readonly Procedure[];

export class CallsWorkload implements Workload {
  readonly name = "calls";
  readonly tables = [Counter as unknown as Table];
  readonly counts: Counts = { committed: 0, aborted: 0, unknown: 0 };
  readonly #witness: Witness;
  readonly #told = Array.from({ length: COUNTERS }, () => ({ acknowledged: 0, unknown: 0 }));

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  async load(worker: Worker): Promise<void> {
    const ended = await worker.transact(async (tx) => {
      for (let id = 0; id < COUNTERS; id++) await tx.put(this.tables[0], { id, count: 0 });
    });
    if (ended.kind !== "ok") throw new Error(`loading counters: ${ended.kind}`);
  }

  async work(worker: Worker, calls: number): Promise<void> {
    for (let done = 0; done < calls && !worker.isGone; done++) {
      await this.#call(worker);
      await worker.pause(worker.random.below(1_000) / 1_000);
    }
  }

  async #call(worker: Worker): Promise<void> {
    const { random, db, number } = worker;
    const id = random.below(COUNTERS);
    const other = (id + 1 + random.below(COUNTERS - 1)) % COUNTERS;
    const isBoth = random.below(3) === 0;
    const near = random.below(2) === 0 ? {} : { near: [Counter, id] as const };
    const ended = await worker.attempt(() =>
      isBoth ? db.call("deposit both", [id, other], near) : db.call("deposit", [id], near),
    );
    count(this.counts, ended);
    this.#witness.note(`${number} ${isBoth ? `${id} and ${other}` : id} ${ended.kind}`);
    for (const each of isBoth ? [id, other] : [id]) {
      if (isAcknowledged(ended)) this.#told[each].acknowledged++;
      else if (ended.kind === "unknown") this.#told[each].unknown++;
    }
  }

  check(rows: FinalRows): string[] {
    const found = new Map<number, number>();
    for (const row of rows(this.tables[0]).values())
      found.set(row.id as number, row.count as number);
    return this.#told.flatMap(({ acknowledged, unknown }, id) => {
      const value = found.get(id) ?? 0;
      if (value >= acknowledged && value <= acknowledged + unknown) return [];
      return [
        `counter ${id} has ${value}; ${acknowledged} calls were acknowledged, ${unknown} unknown`,
      ];
    });
  }
}

/** What a procedure has returned may be lost with its node: then its caller knows that it was committed. */
function isAcknowledged(ended: Ended<unknown>): boolean {
  return ended.kind === "ok" || ended.error.message.includes("was committed");
}
