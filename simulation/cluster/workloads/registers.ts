/**
 * Blind writes, removals and inserts of absent keys. A register is three rows, of three tables and
 * mostly of three nodes. A transaction that sets it writes one new number to all three, and reads
 * nothing; one that clears it removes two of them and writes its number to the third. So whoever reads must find all three from one transaction, and the third row says which one: it makes
 * the history one of a register whose writes differ, which can be checked exactly.
 */

import { str, u32 } from "../../../src/tables/fields.ts";
import type { RowValues } from "../../../src/tables/indexes/structure.ts";
import { type Table, table } from "../../../src/tables/table.ts";
import type { Ended, Worker } from "../worker.ts";
import { type Counts, count, type FinalRows, type Witness, type Workload } from "../workload.ts";
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

  async load(): Promise<void> {}

  async work(worker: Worker, transactions: number): Promise<void> {
    for (let done = 0; done < transactions; done++) {
      const id = worker.random.below(REGISTERS);
      const isReader = worker.random.below(2) === 0;
      for (let times = 1; !worker.isGone; times++) {
        const isEnded = isReader
          ? await this.#read(worker, id)
          : await this.#write(worker, id, worker.random.below(3) > 0);
        if (isEnded) break;
        await worker.backOff(times);
      }
      if (worker.isGone) return;
      await worker.pause(worker.random.below(500) / 1_000);
    }
  }

  async #write(worker: Worker, id: number, present: boolean): Promise<boolean> {
    const value = ++this.#values;
    const start = this.#witness.nowUs;
    const ended = await worker.transact(async (tx) => {
      const others = present
        ? [tx.put(Left, { id, value, text: "x".repeat(value % 300) }), tx.put(Right, { id, value })]
        : [tx.delete(Left, id), tx.delete(Right, id)];
      await Promise.all([...others, tx.put(Middle, { id, value, present: present ? 1 : 0 })]);
    });
    this.#count(worker, ended, `${id} := ${value}`);
    const { kind } = ended;
    const end = kind === "unknown" ? Number.POSITIVE_INFINITY : this.#witness.nowUs;
    if (kind !== "failed") this.#writes[id].push({ value, start, end });
    return kind !== "failed";
  }

  async #read(worker: Worker, id: number): Promise<boolean> {
    // That of the last attempt: the others have returned nothing.
    let start = 0;
    const ended = await worker.transact(async (tx) => {
      start = this.#witness.nowUs;
      return Promise.all(TABLES.map((each) => tx.get(each, id) as Promise<RowValues | undefined>));
    });
    this.#count(worker, ended, `${id}?`);
    if (ended.kind !== "ok") return false;
    const end = this.#witness.nowUs;
    this.#reads[id].push({ value: this.#valueOf(id, ended.result), start, end });
    return true;
  }

  #count({ number }: Worker, ended: Ended<unknown>, what: string): void {
    count(this.counts, ended);
    this.#witness.note(`${number} ${what} ${ended.kind} ${this.#witness.nowUs}`);
  }

  /** The value of a register, if its rows agree. */
  #valueOf(id: number, rows: readonly (RowValues | undefined)[]): number {
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
