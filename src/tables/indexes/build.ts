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
import { runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { passOver } from "../../runtime/background-errors.ts";
import { RowError, SituError, type SituErrorCode } from "../../runtime/errors.ts";
import { MAX_INDEXES } from "../../runtime/limits.ts";
import { uniqueId } from "../../runtime/random.ts";
import { BatchRunner, keyBatches } from "../backfill.ts";
import { readSchema, readTable, writeSchema } from "../catalogue.ts";
import { announceChange, everyoneKnows } from "../everyone-knows.ts";
import { harmfulDifferences, indexDifferences } from "../migrations/declaration.ts";
import { ownerIn } from "../migrations/owner.ts";
import type { Remains } from "../migrations/stored.ts";
import type { ScanSource } from "../scan-plan.ts";
import { type StoredSchema, schemaOf } from "../schema.ts";
import {
  type IndexDefinition,
  type IndexState,
  type StoredIndex,
  sameDefinition,
} from "./definition.ts";
import type { Index } from "./entries.ts";
import { openIndex, structuresOf } from "./forms.ts";
import { refuseTaken } from "./indexed-store.ts";
import { clearLeftover } from "./leftovers.ts";
import { isForChange, publicName } from "./replaced-names.ts";
import type { TableStore } from "./table-store.ts";

export interface BuildOptions {
  readonly executor: Executor;
  readonly table: TableStore;
  readonly timeoutMs: number;
  /** What the table is read through: each step must see one state, not each the same. */
  readonly source: () => ScanSource;
}

/**
 * Builds all indexes that the table declares and that are not ready. False if the table is being
 * migrated, or was meanwhile: then what is to be built is to be looked up again.
 */
export async function buildIndexes(options: BuildOptions): Promise<boolean> {
  for (const definition of options.table.declaredIndexes()) {
    if (!(await new Builder(options, definition).run())) return false;
  }
  return true;
}

/** Errors that mean that the rows do not allow the index, or that there is no room for it. */
const REFUSALS: readonly SituErrorCode[] = ["SITU_UNIQUE", "SITU_TOO_LARGE", "SITU_FULL"];

/** What is found of an index in a table that is being migrated. */
const MIGRATING = Symbol("the table is being migrated");

class Builder {
  readonly #options: BuildOptions;
  readonly #definition: IndexDefinition;
  readonly #tx: Transaction;

  constructor(options: BuildOptions, definition: IndexDefinition) {
    this.#options = options;
    this.#definition = definition;
    this.#tx = new Transaction(options.executor);
  }

  async run(): Promise<boolean> {
    const { executor, timeoutMs } = this.#options;
    for (;;) {
      const found = this.#find();
      if (found === MIGRATING) return false;
      const index = found ?? (await this.#announce());
      if (index?.state === "ready") return true;
      // Another builder was quicker: look again.
      if (index === undefined) continue;
      await everyoneKnows(executor, timeoutMs);
      if (index.state === "announced") {
        this.#moveOn(index, "building");
      } else if (await this.#fill(index)) {
        this.#moveOn(index, "ready");
        announceChange(executor);
      }
    }
  }

  #transact<T>(body: () => T): T {
    const { executor, timeoutMs, table } = this.#options;
    this.#tx.subject = `index ${this.#definition.name} of table ${table.table.name}`;
    return runSync(executor, this.#tx, timeoutMs, body, undefined);
  }

  #find(): StoredIndex | undefined | typeof MIGRATING {
    const { table, position, structure, root } = this.#options.table;
    return this.#transact(() => {
      const { schema, root: rootNow } = readTable(this.#tx, position);
      const index = schema.indexes.find(({ name }) => name === this.#definition.name);
      if (root !== rootNow || schema.state !== undefined) return MIGRATING;
      if (index === undefined && schema.successor !== undefined) return MIGRATING;
      if (index?.state === "retired") return MIGRATING;
      const wanted = { ...schemaOf(structure.table), indexes: [this.#definition] };
      const lines = [...harmfulDifferences(schema, wanted), ...indexDifferences(schema, wanted)];
      if (lines.length > 0) {
        const what = `table ${table.name} is in the store with another schema`;
        throw new SituError("SITU_SCHEMA", `${what}:\n  ${lines.join("\n  ")}`);
      }
      return index ?? this.#takenPlace(schema);
    });
  }

  /** The index that was built to take another one's place, if another process has seen to that by now. */
  #takenPlace({ indexes }: StoredSchema): StoredIndex | undefined {
    if (!isForChange(this.#definition.name)) return undefined;
    const name = publicName(this.#definition.name);
    return indexes.find((each) => each.name === name && sameDefinition(each, this.#definition));
  }

  /** Adds the index to the catalogue, unless another builder does so first. */
  async #announce(): Promise<StoredIndex | undefined> {
    const { executor, table, timeoutMs } = this.#options;
    const leftover = this.#transact(() => this.#leftover());
    if (leftover !== undefined) {
      await everyoneKnows(executor, timeoutMs);
      if (!(await clearLeftover(executor, table, leftover, timeoutMs))) return undefined;
    }
    const structures = structuresOf(table.structure.table, this.#definition);
    const build = uniqueId();
    return this.#transact(() => {
      const { indexes, leftovers, successor } = this.#schema();
      if (indexes.some(({ name }) => name === this.#definition.name)) return undefined;
      if (this.#takenPlace(this.#schema()) !== undefined) return undefined;
      if (successor !== undefined) return undefined;
      if (this.#leftover()?.build !== leftover?.build) return undefined;
      // One that takes another one's place is none more, in the end.
      const others = indexes.filter(({ name }) => !isForChange(name));
      if (others.length >= MAX_INDEXES && !isForChange(this.#definition.name)) {
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
    const index = openIndex(executor, table.structure.table, stored);
    const batches = new BatchRunner(executor, this.#tx, this.#options.timeoutMs, (keys) => {
      const isCurrent = this.#current(stored)?.state === "building";
      if (isCurrent) for (const key of keys) this.#add(index, key);
      return isCurrent;
    });
    try {
      for await (const { keys } of keyBatches(table, this.#options.source)) {
        if (!batches.run(keys)) return false;
        index.maintain();
      }
      return true;
    } catch (error) {
      if (!(error instanceof SituError) || !REFUSALS.includes(error.code)) throw error;
      if (await this.#takeOut(stored, error.code === "SITU_FULL")) throw this.#notBuilt(error);
      return false;
    }
  }

  #notBuilt(cause: SituError): SituError {
    const { table } = this.#options;
    const message =
      `index ${publicName(this.#definition.name)} of table ${table.table.name} cannot be built, and ` +
      `was not added; nothing else has changed. ${cause.message}`;
    return cause instanceof RowError
      ? new RowError("SITU_UNIQUE", message, cause, { cause })
      : new SituError(cause.code, message, { cause });
  }

  #add(index: Index, key: unknown): void {
    const { table } = this.#options;
    // One that has ended may be in the way of those that are there.
    if (table.evict(this.#tx, key)) return;
    const row = table.rows.read(this.#tx, key);
    if (row === undefined) return;
    index.check(row);
    refuseTaken(this.#tx, table.structure.table, index, row);
    try {
      index.add(this.#tx, row);
    } catch (error) {
      this.#tx.failHalfWay(error);
    }
  }

  /**
   * Takes an index out that cannot be built; false if another builder was quicker to end it. What it has is kept for the
   * next attempt, or, if there was no room for it, freed (../migrations/remains.ts).
   */
  async #takeOut(index: StoredIndex, isFull: boolean): Promise<boolean> {
    const { executor, table, timeoutMs } = this.#options;
    if (!isFull) return this.#moveOut(index, false);
    try {
      return this.#moveOut(index, true);
    } catch (error) {
      if (!(error instanceof SituError) || error.code !== "SITU_FULL") throw error;
    }
    // Not even for a longer entry of the catalogue. As it is kept for the next attempt the entry has the same size.
    const isOut = this.#moveOut(index, false);
    try {
      await everyoneKnows(executor, timeoutMs);
      if (isOut) await clearLeftover(executor, table, index, timeoutMs);
    } catch (error) {
      passOver(error, "emptying an index that could not be built");
    }
    return isOut;
  }

  #moveOut(index: StoredIndex, isToBeFreed: boolean): boolean {
    const { executor, table } = this.#options;
    const isOut = this.#transact(() => {
      if (this.#current(index)?.state !== "building") return false;
      const schema = this.#schema();
      const indexes = schema.indexes.filter(({ build }) => build !== index.build);
      if (!isToBeFreed) {
        this.#write(indexes, [...schema.leftovers, index].slice(-MAX_INDEXES));
        return true;
      }
      const remains = [...(schema.remains ?? []), this.#remainsOf(schema, index)];
      writeSchema(this.#tx, table.position, { ...schema, indexes, remains });
      return true;
    });
    announceChange(executor);
    return isOut;
  }

  #remainsOf({ name, fields, key, ordered, layout }: StoredSchema, index: StoredIndex): Remains {
    const kept = layout === undefined ? {} : { layout };
    const schema = { name, fields, key, ordered, ...kept, indexes: [index] };
    return { build: index.build, owner: ownerIn(this.#options.executor), schema };
  }
}
