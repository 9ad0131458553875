/**
 * List-append with snapshots of the cluster beside it. A third of all that workers do reads from a snapshot: some lists by
 * their keys, twice, and whole tables by a scan. Another part runs with isolation "snapshot". Then four things must hold:
 *
 *   - What is not about snapshots is strictly serializable.
 *   - With all that was read from snapshots it is serializable. Not strictly so: of two transactions that have nothing
 *     in common a snapshot may see the later one only, if both ran while it was taken (docs/ISOLATION.md).
 *   - With the transactions of isolation "snapshot" it is snapshot-isolated.
 *   - A snapshot has all that had ended before it was asked for, and nothing that began after it was taken.
 */

import type { RemoteSnapshot } from "../../../src/database/snapshot.ts";
import type { RowValues } from "../../../src/tables/indexes/structure.ts";
import type { Operation, Transaction } from "../../checkers/history.ts";
import type { Worker } from "../worker.ts";
import type { FinalRows } from "../workload.ts";
import {
  AppendWorkload,
  decodeList,
  finalReadsOf,
  keyOf,
  type Picked,
  problemsOf,
} from "./append.ts";

/** Why a snapshot may fail: a node does not answer, or is another one by now. */
const PASSING: ReadonlySet<string> = new Set([
  "SITU_SNAPSHOT_TOO_OLD",
  "SITU_TIMEOUT",
  "SITU_LOST",
  "SITU_UNREACHABLE",
  "SITU_OVERLOADED",
  "SITU_STALE_CONFIGURATION",
  "SITU_UNKNOWN_OUTCOME",
]);

/** While a snapshot is held. */
const MOST_HELD_US = 2_000;

/** A snapshot, what was read from it, and when it was asked for and there. */
interface Seen {
  readonly start: number;
  readonly taken: number;
  readonly end: number;
  readonly process: number;
  readonly operations: readonly Operation[];
}

export class SnapshotsWorkload extends AppendWorkload {
  override readonly name = "snapshots";
  readonly #seen: Seen[] = [];
  readonly #torn: string[] = [];
  readonly #failures = new Map<string, number>();

  protected override async workOnce(worker: Worker, picked: readonly Picked[]): Promise<void> {
    const what = worker.random.below(6);
    if (what < 2) await this.#look(worker, picked);
    else await super.workOnce(worker, picked, what === 2 ? "snapshot" : "strict-serializable");
  }

  async #look(worker: Worker, picked: readonly Picked[]): Promise<void> {
    const start = this.witness.nowUs;
    const ended = await worker.attempt(async () => {
      const snapshot = await worker.db.snapshot();
      const taken = this.witness.nowUs;
      try {
        const operations = await this.#read(worker, snapshot, picked);
        return { start, taken, operations };
      } finally {
        await snapshot.close();
      }
    });
    if (ended.kind === "ok") {
      const { result } = ended;
      this.counts.committed++;
      this.#seen.push({ ...result, end: this.witness.nowUs, process: worker.number });
      this.witness.note(JSON.stringify({ worker: worker.number, seen: result.operations }));
      return;
    }
    const { code } = ended.error;
    this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
    this.witness.note(JSON.stringify({ worker: worker.number, failed: code }));
    await worker.backOff(1);
  }

  async #read(
    worker: Worker,
    snapshot: RemoteSnapshot,
    picked: readonly Picked[],
  ): Promise<Operation[]> {
    const [{ table: scanned }] = picked;
    const operations: Operation[] = [];
    const first = await this.#lists(snapshot, picked);
    await worker.pause(worker.random.below(MOST_HELD_US) / 1e3);
    const rows = (await snapshot.scan(scanned).toArray()) as RowValues[];
    const found = new Map(rows.map((row) => [keyOf(scanned, row.id as number), decodeList(row)]));
    if ((await snapshot.count(scanned)) !== rows.length)
      this.#tear("its count differs from its rows");
    const again = await this.#lists(snapshot, picked);
    for (const [key, list] of first) {
      operations.push({ kind: "read", key, list });
      if (String(again.get(key)) !== String(list))
        this.#tear(`${key} was ${list}, then ${again.get(key)}`);
    }
    for (const [key, list] of found) {
      const before = first.get(key);
      if (before === undefined) operations.push({ kind: "read", key, list });
      else if (String(before) !== String(list))
        this.#tear(`${key} is ${before}, by a scan ${list}`);
    }
    return operations;
  }

  async #lists(
    snapshot: RemoteSnapshot,
    picked: readonly Picked[],
  ): Promise<Map<string, number[]>> {
    const lists = picked.map(async ({ table, id }): Promise<[string, number[]]> => {
      const row = (await snapshot.get(table, id)) as RowValues | undefined;
      return [keyOf(table, id), decodeList(row)];
    });
    return new Map(await Promise.all(lists));
  }

  #tear(what: string): void {
    this.#torn.push(`a snapshot is of two states: ${what}`);
  }

  override check(rows: FinalRows): string[] {
    const finalReads = finalReadsOf(rows);
    const strict = this.history.filter(({ isolation }) => isolation !== "snapshot");
    const seen = this.#seen.map(
      ({ process, start, end, operations }): Transaction => ({
        process,
        start,
        end,
        operations,
        outcome: "ok",
      }),
    );
    const isWriter = ({ operations }: Transaction): boolean =>
      operations.some(({ kind }) => kind === "append");
    const skewed = this.history.filter((each) => each.isolation === "snapshot" && isWriter(each));
    // Without its reads, what a transaction of isolation "snapshot" writes has its place in any serial order.
    const writes = skewed.map((each) => ({
      ...each,
      operations: each.operations.filter(({ kind }) => kind === "append"),
    }));
    const problems = [
      ...this.#torn.slice(0, 4),
      ...[...this.#failures.keys()].filter((code) => !PASSING.has(code)),
      ...problemsOf([...strict, ...writes], "strict-serializable", finalReads),
      ...problemsOf([...strict, ...writes, ...seen], "serializable", finalReads),
      ...problemsOf([...this.history, ...seen], "snapshot", finalReads),
      ...this.#outOfTime(),
    ];
    return [...new Set(problems)];
  }

  /** What a snapshot lacks or has though its time says otherwise. */
  #outOfTime(): string[] {
    const problems: string[] = [];
    const appends = this.history.flatMap((each) =>
      each.operations.flatMap((op) => (op.kind === "append" ? [{ ...each, ...op }] : [])),
    );
    for (const { start, taken, operations } of this.#seen) {
      const lists = new Map<unknown, readonly number[]>();
      for (const op of operations) if (op.kind === "read") lists.set(op.key, op.list);
      for (const each of appends) {
        const list = lists.get(each.key);
        if (list === undefined || each.outcome === "failed") continue;
        const isThere = list.includes(each.value);
        if (each.outcome === "ok" && each.end < start && !isThere) {
          problems.push(
            `a snapshot lacks ${each.value} of ${each.key}, which was committed before`,
          );
        }
        if (each.start > taken && isThere) {
          problems.push(`a snapshot has ${each.value} of ${each.key}, which came after it`);
        }
      }
    }
    return problems.slice(0, 4);
  }

  /** How many snapshots were read from, and why others failed. */
  get snapshots(): { readonly read: number; readonly failed: ReadonlyMap<string, number> } {
    return { read: this.#seen.length, failed: this.#failures };
  }
}
