/**
 * Numbers for the keys that `insert` fills in. The next number of each table is a row of a table of
 * Situ's own, so it is logged, recovered and backed up as rows are. An executor takes a range of numbers
 * at a time, in a transaction of its own that commits beside the one that inserts: what it took and has
 * not used when it ends is a gap, and so is the number of an insert that is not committed.
 *
 * A number is given out only after its range was committed, and a transaction that uses it commits
 * later. Recovery yields whole epochs in order, so a recovered row's number lies below the recovered
 * counter. An executor that dies before the commit of its range has changed nothing; one that dies after
 * it leaves a gap.
 *
 * Callers may choose keys themselves. Such a key moves the counter behind it (`pass`). It may still lie in
 * a range that some executor has taken already, so an insert that finds its number in use takes another
 * one (`skip`), in growing steps: a table may be full of keys that the counter has never seen.
 */

import type { Executor } from "../engine/executor.ts";
import { runBeside, runSync } from "../engine/run.ts";
import { Transaction } from "../engine/transaction.ts";
import { SituError } from "../runtime/errors.ts";
import {
  DEFAULT_TIMEOUT_MS,
  SEQUENCE_PASS_NUMBERS,
  SEQUENCE_RANGE_NUMBERS,
} from "../runtime/limits.ts";
import type { RowStore } from "../stores/store.ts";
import { openTable } from "./catalogue.ts";
import { u32, u53 } from "./fields.ts";
import type { TableStore } from "./indexes/table-store.ts";
import { COUNTERS } from "./own-tables.ts";
import { table } from "./table.ts";

/** By the position of a table in the catalogue, which it keeps whatever it is called. */
const Counters = table(COUNTERS, { table: u32(), next: u53() }, { key: "table" });

interface Counter {
  table: number;
  next: number;
}

const MOST = { u32: 0xffffffff, u53: Number.MAX_SAFE_INTEGER };

export class Sequence {
  readonly #executor: Executor;
  readonly #tx: Transaction;
  readonly #counters: RowStore<Counter, number>;
  readonly #position: number;
  readonly #name: string;
  readonly #most: number;
  /** Numbers from #next up to, not including, #end are this executor's own. */
  #next = 0;
  #end = 0;
  /** The counter is known to be this large at least. */
  #counter = 0;

  constructor(executor: Executor, { table: { name, key, fields }, position }: TableStore) {
    this.#executor = executor;
    this.#tx = new Transaction(executor);
    this.#counters = openTable(executor, Counters).rows as unknown as RowStore<Counter, number>;
    this.#position = position;
    this.#name = name;
    this.#most = MOST[fields[key[0]].kind as "u32" | "u53"];
    this.#create();
  }

  /** Before it is needed: what runs beside a transaction should not have to allocate. */
  #create(): void {
    const create = (): void => {
      if (this.#counters.has(this.#tx, this.#position)) return;
      this.#counters.insert(this.#tx, { table: this.#position, next: 1 });
    };
    this.#tx.subject = Counters.name;
    runSync(this.#executor, this.#tx, DEFAULT_TIMEOUT_MS, create, undefined);
    this.#counters.maintain();
  }

  /** A number that nobody else is given. */
  take(): number {
    if (this.#next === this.#end) this.#reserve();
    return this.#next++;
  }

  /** The number that was taken last is in use, as were so many before it: passes over some more. */
  skip(inUse: number): void {
    const ahead = 2 ** Math.min(inUse, 52) - 1;
    if (this.#end - this.#next > ahead) this.#next += ahead;
    else {
      this.pass(Math.min(this.#next + ahead, this.#most));
      this.#next = this.#end;
    }
  }

  /** A caller has chosen a key: numbers up to it are not given out any more. */
  pass(key: number): void {
    if (key < this.#counter) return;
    // Some more, for who loads many rows with their keys in order.
    const wanted = key + 1 + SEQUENCE_PASS_NUMBERS;
    this.#counter = this.#advance((next) => Math.max(next, wanted));
  }

  #reserve(): void {
    const end = this.#advance((next) => next + SEQUENCE_RANGE_NUMBERS);
    this.#counter = end;
    this.#end = Math.min(end, this.#most + 1);
    this.#next = Math.min(end - SEQUENCE_RANGE_NUMBERS, this.#end);
    if (this.#next < this.#end) return;
    throw new SituError(
      "SITU_FULL",
      `table ${this.#name} has used up the numbers of its autoIncrement() key, up to ${this.#most}`,
    );
  }

  /** Moves the counter, and says where it is then. */
  #advance(move: (next: number) => number): number {
    const last = this.#most + 1 + SEQUENCE_RANGE_NUMBERS;
    return runBeside(
      this.#executor,
      this.#tx,
      (tx) => {
        tx.subject = Counters.name;
        const { next = 1 } = this.#counters.read(tx, this.#position) ?? {};
        const moved = Math.min(move(next), last, Number.MAX_SAFE_INTEGER);
        if (moved > next) this.#counters.put(tx, { table: this.#position, next: moved });
        return moved;
      },
      undefined,
    );
  }
}
