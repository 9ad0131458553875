/**
 * Blind writes, removals and inserts of absent keys. A register is three rows, of three tables and
 * mostly of three nodes. A transaction that sets it writes one new number to all three; one that
 * clears it removes two of them and writes its number to the third. Neither reads anything. So
 * whoever reads must find all three from one transaction, and the third row says which one: it makes
 * the history one of a register whose writes differ, which can be checked exactly.
 */

import { str, u32 } from "../../../src/tables/fields.ts";
import type { Values } from "../../../src/tables/indexes/structure.ts";
import { type Table, table } from "../../../src/tables/table.ts";
import { type Program, pause } from "../program.ts";
import type { RowKey } from "../transaction.ts";
import { attempt, backOff, read, type Worker } from "../worker.ts";
import type { Counts, FinalRows, Witness, Workload } from "../workload.ts";
import { checkRegister, INITIAL, type RegisterRead, type RegisterWrite } from "./register-zones.ts";

const Left = table("left", { id: u32(), value: u32(), text: str() }, { key: "id" });
const Right = table(
  "right",
  { id: u32(), value: u32() },
  { key: "id", ordered: true, indexes: { byValue: { on: ["value"] } } },
);
const Middle = table(
  "middle",
  { id: u32(), value: u32(), present: u32() },
  { key: "id", layout: "buckets" },
);
const TABLES = [Left, Right, Middle] as unknown as readonly Table[];
const REGISTERS = 5;
const SHOWN = 3;

export class RegistersWorkload implements Workload {
  readonly name = "registers";
  readonly tables = TABLES;
  readonly counts: Counts = { committed: 0, aborted: 0, unknown: 0 };
  readonly #witness: Witness;
  readonly #writes: RegisterWrite[][] = Array.from({ length: REGISTERS }, () => []);
  readonly #reads: RegisterRead[][] = Array.from({ length: REGISTERS }, () => []);
  readonly #problems: string[] = [];
  #values = INITIAL;

  constructor(witness: Witness) {
    this.#witness = witness;
  }

  *load(): Program<void> {}

  *work(worker: Worker, transactions: number): Program<void> {
    for (let done = 0; done < transactions; done++) {
      const id = worker.random.below(REGISTERS);
      const isReader = worker.random.below(2) === 0;
      for (let attempts = 1; ; attempts++) {
        if (worker.isGone) return;
        const isEnded = isReader
          ? yield* this.#read(worker, id)
          : yield* this.#write(worker, id, worker.random.below(3) > 0);
        if (isEnded) break;
        yield* backOff(worker, attempts);
      }
      yield* pause(worker.random.below(500) / 1_000);
    }
  }

  *#write(worker: Worker, id: number, present: boolean): Program<boolean> {
    const value = ++this.#values;
    const start = this.#witness.nowUs;
    const [left, right, middle] = TABLES.map((each) => worker.tableOf(each));
    // biome-ignore lint/correctness/useYield: a body that reads nothing
    const { kind } = yield* attempt(worker, function* (tx) {
      if (present) {
        tx.put(left, { id, value, text: "x".repeat(value % 300) });
        tx.put(right, { id, value });
      } else {
        tx.remove(left, id);
        tx.remove(right, id);
      }
      tx.put(middle, { id, value, present: present ? 1 : 0 });
      return "done" as const;
    });
    this.#count(worker, kind, `${id} := ${value}`);
    const end = kind === "unknown" ? Number.POSITIVE_INFINITY : this.#witness.nowUs;
    if (kind !== "failed") this.#writes[id].push({ value, start, end });
    return kind !== "failed";
  }

  *#read(worker: Worker, id: number): Program<boolean> {
    const start = this.#witness.nowUs;
    const keys: RowKey[] = TABLES.map((each) => ({ table: worker.tableOf(each), key: id }));
    const ended = yield* attempt(worker, function* (tx) {
      const rows = yield* read(tx, keys);
      return rows;
    });
    this.#count(worker, ended.kind, `${id}?`);
    if (ended.kind !== "ok") return false;
    const end = this.#witness.nowUs;
    this.#reads[id].push({ value: this.#valueOf(id, ended.result), start, end });
    return true;
  }

  #count({ number }: Worker, kind: "ok" | "failed" | "unknown", what: string): void {
    this.counts[kind === "ok" ? "committed" : kind === "failed" ? "aborted" : "unknown"]++;
    this.#witness.note(`${number} ${what} ${kind} ${this.#witness.nowUs}`);
  }

  /** The value of a register, if its rows agree. */
  #valueOf(id: number, rows: readonly (Values | undefined)[]): number {
    const [left, right, middle] = rows;
    const wanted = middle?.present === 1 ? (middle.value as number) : undefined;
    if (left?.value !== wanted || right?.value !== wanted) {
      this.#problems.push(`register ${id} at ${this.#witness.nowUs} µs: ${JSON.stringify(rows)}`);
    }
    return (middle?.value as number) ?? INITIAL;
  }

  check(rows: FinalRows): string[] {
    const finals = TABLES.map((each) => rows(each));
    for (let id = 0; id < REGISTERS; id++) {
      const found = finals.map((all) => [...all.values()].find((row) => row.id === id));
      const at = this.#witness.nowUs + 1;
      this.#reads[id].push({ value: this.#valueOf(id, found), start: at, end: at });
    }
    const problems = this.#problems.slice(0, SHOWN);
    for (let id = 0; id < REGISTERS; id++) {
      const found = checkRegister(this.#writes[id], this.#reads[id]);
      problems.push(...found.slice(0, SHOWN).map((each) => `register ${id}: ${each}`));
    }
    return problems;
  }
}
