/**
 * Adding indexes to a table that has rows, while others write to it (the method is F1's, "Online,
 * asynchronous schema change"). definition.ts tells the states that an index goes through; before
 * each next step all transactions that may not know of the last one are waited for:
 *
 *   1. the catalogue gets the index as announced; everyone learns of it
 *   2. building; everyone learns of it, and from now on maintains it
 *   3. the rows that a scan finds are indexed, some at a time, each in its present state
 *   4. ready
 *
 * Every step can be done again, so two may build the same index, and whoever finds one that its
 * builder did not finish goes on from its state.
 */

import type { Executor } from "../../engine/executor.ts";
import { runSync, tryRun } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { SCHEMA_GENERATION } from "../../memory/control.ts";
import { nowMs, sleep, turn } from "../../runtime/clock.ts";
import { RowError, SituError, TimeoutError } from "../../runtime/errors.ts";
import { BUILD_BATCH_ROWS, MAX_INDEXES } from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { readSchema, writeSchema } from "../catalogue.ts";
import type { ScanSource } from "../scan-plan.ts";
import { differences, type StoredSchema, schemaOf } from "../schema.ts";
import {
  type IndexDefinition,
  type IndexState,
  type StoredIndex,
  sameDefinition,
} from "./definition.ts";
import { type Index, keyIn } from "./entries.ts";
import { openIndex, structuresOf } from "./forms.ts";
import { refuseTaken } from "./indexed-store.ts";
import { clearLeftover } from "./leftovers.ts";
import type { Values } from "./structure.ts";
import type { TableStore } from "./table-store.ts";

/** Attempts for a whole batch; smaller ones meet fewer writers. */
const BATCH_ATTEMPTS = 4;
const SWEEP_ROUNDS = 20;

export interface BuildOptions {
  readonly executor: Executor;
  readonly table: TableStore;
  readonly timeoutMs: number;
  /** What the table is read through: each step must see one state, not each the same. */
  readonly source: () => ScanSource;
}

/** Builds all indexes that the table declares and that are not ready. */
export async function buildIndexes(options: BuildOptions): Promise<void> {
  for (const definition of options.table.table.indexes) {
    await new Builder(options, definition).run();
  }
}

class Builder {
  readonly #options: BuildOptions;
  readonly #definition: IndexDefinition;
  readonly #tx: Transaction;

  constructor(options: BuildOptions, definition: IndexDefinition) {
    this.#options = options;
    this.#definition = definition;
    this.#tx = new Transaction(options.executor);
  }

  async run(): Promise<void> {
    const { executor, timeoutMs } = this.#options;
    for (;;) {
      const index = this.#find() ?? (await this.#announce());
      if (index?.state === "ready") return;
      // Another builder was quicker: look again.
      if (index === undefined) continue;
      await everyoneKnows(executor, timeoutMs);
      if (index.state === "announced") {
        this.#moveOn(index, "building");
      } else if (await this.#fill(index)) {
        this.#moveOn(index, "ready");
        Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
      }
    }
  }

  #transact<T>(body: () => T): T {
    const { executor, timeoutMs, table } = this.#options;
    this.#tx.subject = `index ${this.#definition.name} of table ${table.table.name}`;
    return runSync(executor, this.#tx, timeoutMs, body, undefined);
  }

  #find(): StoredIndex | undefined {
    const { table } = this.#options.table;
    return this.#transact(() => {
      const schema = this.#schema();
      const lines = differences(schema, schemaOf(table));
      if (lines.length > 0) {
        const what = `table ${table.name} is in the store with another schema`;
        throw new SituError("SITU_SCHEMA", `${what}:\n  ${lines.join("\n  ")}`);
      }
      return schema.indexes.find(({ name }) => name === this.#definition.name);
    });
  }

  /** Adds the index to the catalogue, unless another builder does so first. */
  async #announce(): Promise<StoredIndex | undefined> {
    const { executor, table, timeoutMs } = this.#options;
    const leftover = this.#transact(() => this.#leftover());
    if (leftover !== undefined) {
      await everyoneKnows(executor, timeoutMs);
      if (!(await clearLeftover(executor, table, leftover, timeoutMs))) return undefined;
    }
    const structures = structuresOf(table.table, this.#definition);
    const build = uniqueId();
    return this.#transact(() => {
      const { indexes, leftovers } = this.#schema();
      if (indexes.some(({ name }) => name === this.#definition.name)) return undefined;
      if (this.#leftover()?.build !== leftover?.build) return undefined;
      if (indexes.length >= MAX_INDEXES) {
        throw new SituError(
          "SITU_SCHEMA",
          `table ${table.table.name} has ${MAX_INDEXES} indexes in the store, which is the most`,
        );
      }
      const roots = leftover?.roots ?? structures.map((structure) => structure.create(this.#tx));
      const index: StoredIndex = { ...this.#definition, state: "announced", roots, build };
      this.#write(
        [...indexes, index],
        leftovers.filter((each) => each.build !== leftover?.build),
      );
      return index;
    });
  }

  #schema(): StoredSchema {
    return readSchema(this.#tx, this.#options.table.position);
  }

  /** What an attempt to build the same index has left behind. */
  #leftover(): StoredIndex | undefined {
    const { name } = this.#definition;
    const isSame = (each: StoredIndex) =>
      each.name === name && sameDefinition(each, this.#definition);
    return this.#schema().leftovers.find(isSame);
  }

  /** As it stands in the catalogue now, if it is still the same attempt. */
  #current(index: StoredIndex): StoredIndex | undefined {
    return this.#schema().indexes.find(({ build }) => build === index.build);
  }

  #moveOn(index: StoredIndex, state: IndexState): void {
    this.#transact(() => {
      if (this.#current(index)?.state !== index.state) return;
      const { indexes, leftovers } = this.#schema();
      this.#write(
        indexes.map((each) => (each.build === index.build ? { ...each, state } : each)),
        leftovers,
      );
    });
  }

  #write(indexes: readonly StoredIndex[], leftovers: readonly StoredIndex[]): void {
    const { position } = this.#options.table;
    writeSchema(this.#tx, position, { ...this.#schema(), indexes, leftovers });
  }

  /** Indexes all rows; false if the index was finished or taken out by another one meanwhile. */
  async #fill(stored: StoredIndex): Promise<boolean> {
    const { executor, table } = this.#options;
    const index = openIndex(executor, table.table, stored);
    try {
      for await (const keys of this.#keys()) {
        if (!this.#addAll(stored, index, keys)) return false;
        index.maintain();
      }
      return true;
    } catch (error) {
      const isRefused =
        error instanceof SituError &&
        (error.code === "SITU_UNIQUE" || error.code === "SITU_TOO_LARGE");
      if (!isRefused) throw error;
      if (await this.#takeOut(stored)) throw this.#notBuilt(error);
      return false;
    }
  }

  #notBuilt(cause: SituError): SituError {
    const { table } = this.#options;
    const message =
      `index ${this.#definition.name} of table ${table.table.name} cannot be built, and was not ` +
      `added; nothing else has changed. ${cause.message}`;
    return cause instanceof RowError
      ? new RowError("SITU_UNIQUE", message, cause, { cause })
      : new SituError(cause.code, message, { cause });
  }

  /** The keys of all rows, in batches, letting the event loop turn in between. */
  async *#keys(): AsyncGenerator<unknown[]> {
    const { table, source: open } = this.#options;
    const { key, singleKey } = table.table;
    const cursor = table.rows.cursor({ from: undefined, to: undefined }, false);
    const rows: Values[] = [];
    const source = open();
    try {
      // Whole groups of rows: then the place of a hashed walk does not depend on a row.
      const step = (tx: Transaction) => cursor.next(tx, rows, Number.POSITIVE_INFINITY);
      while (source.run(step, undefined)) {
        for (let from = 0; from < rows.length; from += BUILD_BATCH_ROWS) {
          const batch = rows.slice(from, from + BUILD_BATCH_ROWS);
          yield batch.map((row) => keyIn(row, key, singleKey));
          await turn();
        }
      }
    } finally {
      source.release();
    }
  }

  /** Indexes the rows of some keys; if others keep getting in between, in smaller parts. */
  #addAll(stored: StoredIndex, index: Index, keys: readonly unknown[]): boolean {
    let isCurrent = true;
    const body = (): void => {
      isCurrent = this.#current(stored)?.state === "building";
      if (isCurrent) for (const key of keys) this.#add(index, key);
    };
    if (keys.length === 1) this.#transact(body);
    else if (!this.#tryAll(body)) {
      const middle = keys.length >> 1;
      return (
        this.#addAll(stored, index, keys.slice(0, middle)) &&
        this.#addAll(stored, index, keys.slice(middle))
      );
    }
    return isCurrent;
  }

  #tryAll(body: () => void): boolean {
    try {
      return tryRun(this.#options.executor, this.#tx, BATCH_ATTEMPTS, body);
    } catch (error) {
      // It may be the transaction that is too large, and not a key. And others may be in the way
      // for longer than this attempt waits: a smaller part will wait its time.
      const code = error instanceof SituError ? error.code : undefined;
      if (code === "SITU_TOO_LARGE" || code === "SITU_TIMEOUT") return false;
      throw error;
    }
  }

  #add(index: Index, key: unknown): void {
    const { table } = this.#options;
    const row = table.rows.read(this.#tx, key);
    if (row === undefined) return;
    index.check(row);
    refuseTaken(this.#tx, table.table, index, row);
    try {
      index.add(this.#tx, row);
    } catch (error) {
      this.#tx.failHalfWay(error);
    }
  }

  /** Takes an index out that cannot be built; false if another builder was quicker to end it. */
  async #takeOut(index: StoredIndex): Promise<boolean> {
    const isTakenOut = this.#transact(() => {
      if (this.#current(index)?.state !== "building") return false;
      const { indexes, leftovers } = this.#schema();
      this.#write(
        indexes.filter(({ build }) => build !== index.build),
        [...leftovers, index].slice(-MAX_INDEXES),
      );
      return true;
    });
    Atomics.add(this.#options.executor.memory.control.i32, SCHEMA_GENERATION, 1);
    return isTakenOut;
  }
}

/** What is left undone if somebody has a transaction open for too long. */
const UNFINISHED = [
  "building an index",
  "the index will be finished when the store is opened again",
];

/** Tells all executors that the catalogue has changed, and waits for transactions that do not know. */
export async function everyoneKnows(
  executor: Executor,
  timeoutMs: number,
  unfinished: readonly string[] = UNFINISHED,
): Promise<void> {
  Atomics.add(executor.memory.control.i32, SCHEMA_GENERATION, 1);
  const epoch = executor.mark();
  const deadlineMs = nowMs() + timeoutMs;
  for (let round = 1; !executor.epochs.isPast(epoch); round++) {
    if (nowMs() > deadlineMs) throw tooLong(executor, epoch, timeoutMs, unfinished);
    if (round % SWEEP_ROUNDS === 0) executor.sweep();
    await sleep(1);
  }
}

function tooLong(
  executor: Executor,
  epoch: number,
  timeoutMs: number,
  [what, outlook]: readonly string[],
): TimeoutError {
  const holder = executor.epochs.laggard(epoch);
  const who =
    holder === undefined
      ? "another process"
      : `process ${holder.pid} (thread ${holder.threadId}, slot ${holder.slot})`;
  return new TimeoutError(
    `${what}: ${who} has had a transaction open for more than ${timeoutMs} ms; ${outlook}`,
    holder,
  );
}
