/**
 * Clears away the rows of partitions that a node has no more, or copies anew: one walk over all tables for all of
 * them. Records of a partition that is copied anew may be applied meanwhile; what they have put stays.
 */

import type { Executor } from "../../engine/executor.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { Clock } from "../../fabric/fabric.ts";
import { SituError } from "../../runtime/errors.ts";
import { APPLY_RETRY_MS, COPY_RETRY_MS } from "../../runtime/limits.ts";
import type { CopiedTables } from "../../tables/served/contract.ts";
import { BEGINNING } from "../../tables/served/partition-rows.ts";
import { maintainTables } from "../participant.ts";
import type { Touched } from "./touched.ts";
import { attempt, pauseMs } from "./work.ts";

export interface ClearingHost {
  readonly executor: Executor;
  readonly tables: CopiedTables;
  readonly clock: Clock;
  readonly touched: Touched;
  /** How many copy or clear at a time. */
  readonly workers: number;
  /** Whether the rows of a partition are still to be removed. */
  isCleared(partition: number): boolean;
  /** Takes note of what went wrong with a piece, or that nothing did. */
  ran(problem: SituError | undefined): void;
}

export class Clearing {
  /** Those that the walk has been for since it began. */
  readonly partitions: ReadonlySet<number>;
  readonly #host: ClearingHost;
  readonly #done: () => void;
  readonly #tx: Transaction;
  readonly #tables: readonly number[];
  #table = 0;
  #place: Int32Array = BEGINNING;
  #isOver = false;

  constructor(host: ClearingHost, partitions: Iterable<number>, done: () => void) {
    this.#host = host;
    this.partitions = new Set(partitions);
    this.#done = done;
    this.#tx = new Transaction(host.executor);
    this.#tx.subject = "rows of partitions that have moved";
    this.#tables = host.tables.all().map(({ id }) => id);
  }

  cancel(): void {
    this.#isOver = true;
  }

  /** Goes on until it is done, with pauses. */
  run(): void {
    if (this.#isOver) return;
    if (this.#table === this.#tables.length) {
      this.#isOver = true;
      this.#done();
      return;
    }
    const { clock, workers } = this.#host;
    const startMs = clock.nowMs();
    let nextMs: number;
    try {
      nextMs = this.#step() ? pauseMs(clock.nowMs() - startMs, workers) : APPLY_RETRY_MS;
      this.#host.ran(undefined);
    } catch (error) {
      // Such as a disk that is full: an operator may make room.
      if (!(error instanceof SituError)) throw error;
      this.#host.ran(error);
      nextMs = COPY_RETRY_MS;
    }
    clock.after(nextMs, () => this.run());
  }

  /** A piece of the walk; false if it must be tried again. */
  #step(): boolean {
    const { executor, tables, touched } = this.#host;
    const table = tables.byId(this.#tables[this.#table]);
    const isWanted = (partition: number): boolean =>
      this.partitions.has(partition) && this.#host.isCleared(partition);
    const isKept = (partition: number, key: unknown): boolean =>
      touched.has(partition) && touched.wasWritten(partition, table.id, key);
    const walked = attempt(executor, this.#tx, () =>
      table.clear(this.#tx, this.#place, isWanted, isKept),
    );
    if (walked === undefined) return false;
    maintainTables([table]);
    this.#place = walked.place;
    if (walked.isDone) {
      this.#table++;
      this.#place = BEGINNING;
    }
    return true;
  }
}
