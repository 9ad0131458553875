/**
 * List-append over tables of every layout: transactions read up to four lists, of several nodes, and
 * append to some of them. Half of all picks go to a few hot keys. After a while other lists are used,
 * so that they do not get long; they are absent at first, so that inserts of one key race, too. The
 * history goes through the checker for strict serializability.
 */

import type { RemoteTransaction } from "../../../src/database/remote/remote-transaction.ts";
import type { Isolation } from "../../../src/database/transact-options.ts";
import { bytes, u32 } from "../../../src/tables/fields.ts";
import type { RowValues } from "../../../src/tables/indexes/structure.ts";
import { type Table, table } from "../../../src/tables/table.ts";
import type { FinalReads, History, Operation, Transaction, Value } from "../../checkers/history.ts";
import { checkListAppend, type ListAppendOptions } from "../../checkers/list-append.ts";
import type { Worker } from "../worker.ts";
import { type Counts, count, type FinalRows, type Witness, type Workload } from "../workload.ts";

/** Rows of one size that lie in their buckets: procedures can lock them as they read them. */
const FIXED_BYTES = 96;
const LONGEST_LIST = 60;
const FIXED = { id: u32(), values: bytes(FIXED_BYTES) };
const VARIABLE = { id: u32(), values: bytes() };
const COUNTED = { id: u32(), length: u32(), values: bytes() };

const TABLES: readonly Table[] = [
  table("fixed lists", FIXED, { key: "id" }),
  table("fixed lists in buckets", FIXED, { key: "id", layout: "buckets" }),
  table("lists", VARIABLE, { key: "id" }),
  table("lists in buckets", VARIABLE, { key: "id", layout: "buckets" }),
  table("lists in order", COUNTED, {
    key: "id",
    ordered: true,
    indexes: { byLength: { on: ["length"] } },
  }),
] as unknown as readonly Table[];

const KEYS_PER_TABLE = 7;
/** The first so many keys of all, over all tables. */
const HOT_KEYS = 6;
const MOST_KEYS = 4;
/** Between reading and going on. */
const MOST_THINK_US = 200;
/** After so many appends there are other keys. */
const GENERATION = 200;
/** So many times: a long run does not fill the stores, but reads full lists in the end. */
const MOST_GENERATIONS = 64;

export interface Picked {
  readonly table: Table;
  readonly id: number;
  readonly isWritten: boolean;
}

export class AppendWorkload implements Workload {
  readonly name: string = "append";
  readonly tables = TABLES;
  readonly counts: Counts = { committed: 0, aborted: 0, unknown: 0 };
  readonly history: Transaction[] = [];
  protected readonly witness: Witness;
  #values = 0;

  constructor(witness: Witness) {
    this.witness = witness;
  }

  async load(): Promise<void> {}

  async work(worker: Worker, transactions: number): Promise<void> {
    for (let done = 0; done < transactions; done++) {
      await this.workOnce(worker, this.pick(worker));
      if (worker.isGone) return;
    }
  }

  protected pick(worker: Worker): Picked[] {
    return pick(worker, Math.floor(this.#values / GENERATION) % MOST_GENERATIONS);
  }

  /** One transaction, until it has committed. */
  protected async workOnce(
    worker: Worker,
    picked: readonly Picked[],
    isolation?: Isolation,
  ): Promise<void> {
    for (let times = 1; !worker.isGone; times++) {
      if ((await this.#transact(worker, picked, isolation)) !== "failed") return;
      await worker.backOff(times);
    }
  }

  async #transact(
    worker: Worker,
    picked: readonly Picked[],
    isolation: Isolation = "strict-serializable",
  ): Promise<Transaction["outcome"]> {
    const attempts: { readonly start: number; readonly operations: Operation[] }[] = [];
    const ended = await worker.transact(async (tx) => {
      const operations: Operation[] = [];
      attempts.push({ start: this.witness.nowUs, operations });
      await this.#body(worker, tx, picked, operations);
    }, isolation);
    count(this.counts, ended);
    for (const [i, { start, operations }] of attempts.entries()) {
      const isLast = i === attempts.length - 1;
      const outcome = isLast ? ended.kind : "failed";
      const end = isLast ? this.witness.nowUs : attempts[i + 1].start;
      const isWriter = operations.some(({ kind }) => kind === "append");
      if (outcome !== "failed" || isWriter) {
        this.history.push({ process: worker.number, start, end, operations, outcome, isolation });
      }
      this.witness.note(JSON.stringify({ worker: worker.number, outcome, operations }));
    }
    return ended.kind;
  }

  async #body(
    worker: Worker,
    tx: RemoteTransaction,
    picked: readonly Picked[],
    operations: Operation[],
  ): Promise<void> {
    // All in one batch, or the first ones before the others.
    const first = picked.length > 1 && worker.random.below(2) === 0 ? 1 : picked.length;
    for (const part of [picked.slice(0, first), picked.slice(first)]) {
      if (part.length === 0) continue;
      const reads = part.map(({ table, id, isWritten }) =>
        isWritten ? tx.getForUpdate(table, id) : tx.get(table, id),
      );
      const rows = (await Promise.all(reads)) as (RowValues | undefined)[];
      for (const [i, each] of part.entries()) await this.#apply(tx, each, rows[i], operations);
      if (worker.random.below(2) === 0)
        await worker.pause(worker.random.below(MOST_THINK_US) / 1e3);
    }
  }

  async #apply(
    tx: RemoteTransaction,
    { table, id, isWritten }: Picked,
    row: RowValues | undefined,
    operations: Operation[],
  ): Promise<void> {
    const key = keyOf(table, id);
    const list = decodeList(row);
    operations.push({ kind: "read", key, list });
    const most = table.fields.values.max === undefined ? LONGEST_LIST : FIXED_BYTES / 4;
    if (!isWritten || list.length >= most) return;
    const value = ++this.#values;
    operations.push({ kind: "append", key, value });
    const values = encodeList([...list, value]);
    await tx.put(
      table,
      "length" in table.fields ? { id, length: list.length + 1, values } : { id, values },
    );
  }

  check(rows: FinalRows): string[] {
    return problemsOf(this.history, "strict-serializable", finalReadsOf(rows));
  }
}

export function finalReadsOf(rows: FinalRows): FinalReads {
  const finalReads = new Map<string, readonly Value[]>();
  for (const each of TABLES) {
    for (const row of rows(each).values()) {
      finalReads.set(keyOf(each, row.id as number), decodeList(row));
    }
  }
  return finalReads;
}

/** What the checker says of a history, as sentences. */
export function problemsOf(
  history: History,
  isolation: ListAppendOptions["isolation"],
  finalReads?: FinalReads,
): string[] {
  const { ok, anomalies, counts } = checkListAppend(history, {
    isolation,
    explainedPerKind: 2,
    ...(finalReads === undefined ? {} : { finalReads }),
  });
  if (ok) return [];
  return [
    `anomalies: ${JSON.stringify([...counts])}`,
    ...anomalies.map(({ kind, explanation }) => `${kind}: ${explanation}`),
  ];
}

function pick({ random }: Worker, generation: number): Picked[] {
  const count = 1 + random.below(MOST_KEYS);
  const isReader = random.below(4) === 0;
  const picked = new Map<string, Picked>();
  while (picked.size < count) {
    const isHot = random.below(2) === 0;
    const number = random.below(isHot ? HOT_KEYS : TABLES.length * KEYS_PER_TABLE);
    const table = TABLES[number % TABLES.length];
    const id = generation * KEYS_PER_TABLE + Math.floor(number / TABLES.length);
    const isWritten = !isReader && random.below(3) > 0;
    picked.set(keyOf(table, id), { table, id, isWritten });
  }
  return [...picked.values()];
}

export function keyOf({ name }: Table, id: number): string {
  return `${name} ${id}`;
}

function encodeList(values: readonly number[]): Uint8Array {
  return new Uint8Array(new Int32Array(values).buffer);
}

export function decodeList(row: RowValues | undefined): number[] {
  if (row === undefined) return [];
  return [...new Int32Array((row.values as Uint8Array).slice().buffer)];
}
