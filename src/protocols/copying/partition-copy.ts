/**
 * Copies partitions from their primary, table by table and piece by piece, in one walk for all of them. At most one
 * piece is under way at a time; the next one is asked for after a pause, so that both ends give it a share of
 * their time only. What fails is asked for again, as long as the copy is wanted.
 */

import type { Executor } from "../../engine/executor.ts";
import { Transaction } from "../../engine/transaction.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import { Reader, Writer } from "../../fabric/wire.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  APPLY_RETRY_MS,
  COPY_PAUSE_MS,
  COPY_RETRY_MS,
  COPY_TIMEOUT_MS,
} from "../../runtime/limits.ts";
import { tableId } from "../../tables/partitions.ts";
import type { CopiedTables, ServedTable } from "../../tables/served/contract.ts";
import { BEGINNING } from "../../tables/served/partition-rows.ts";
import { decodeWrite, nonsense, PUT } from "../../tables/served/requests.ts";
import type { Disk } from "../disk.ts";
import type { Driver } from "../driver.ts";
import { OK, once } from "../message.ts";
import type { TransactionId } from "../names.ts";
import { maintainTables } from "../participant.ts";
import { type Ends, FetchEnds, NO_TRANSACTION } from "./fetch-ends.ts";
import { FetchRows } from "./fetch-rows.ts";
import { fetchSchemas } from "./fetch-tables.ts";
import type { Touched } from "./touched.ts";
import { attempt, pauseMs } from "./work.ts";

export interface CopyHost {
  readonly driver: Driver;
  readonly executor: Executor;
  readonly tables: CopiedTables;
  readonly disk: Disk;
  readonly touched: Touched;
  /** How many copy or clear at a time. */
  readonly workers: number;
  /** Takes note of what went wrong with a piece, or that nothing did. */
  ran(problem: SituError | undefined): void;
  /** Takes note of what is committed: the rows of these partitions that follow have it. */
  hear(ends: Ends, partitions: ReadonlySet<number>): void;
  /** Takes note of what was copied. */
  copied(rows: number, bytes: number): void;
  /** All rows of its partitions are copied, and kept. */
  ended(copy: PartitionCopy): void;
}

export class PartitionCopy {
  readonly source: NodeId;
  /** Those that are still wanted. */
  readonly partitions: Set<number>;
  readonly #host: CopyHost;
  readonly #tx: Transaction;
  readonly #body = new Writer();
  #tables: readonly number[] = [];
  #table = 0;
  #place: Int32Array = BEGINNING;
  #lockedMs = COPY_PAUSE_MS;
  #isOver = false;

  constructor(host: CopyHost, source: NodeId, partitions: Iterable<number>) {
    this.#host = host;
    this.source = source;
    this.partitions = new Set(partitions);
    this.#tx = new Transaction(host.executor);
    this.#tx.subject = "a copy of a partition";
  }

  cancel(): void {
    this.#isOver = true;
  }

  start(): void {
    const { driver, tables } = this.#host;
    const again = (error: unknown): void => this.#failed(error, () => this.start());
    const opened = (schemas: readonly string[]): void => {
      if (this.#isOver) return;
      try {
        for (const schema of schemas) tables.open(schema);
      } catch (error) {
        again(error);
        return;
      }
      this.#tables = schemas.map((schema) => tableId((JSON.parse(schema) as Named).name));
      this.#hear(NO_TRANSACTION);
    };
    driver.run(fetchSchemas(this.source), COPY_TIMEOUT_MS, opened, again);
  }

  /** Asks what is committed, behind a transaction, and then for rows. */
  #hear(after: TransactionId): void {
    if (this.#isOver) return;
    const message = new FetchEnds(this.source, after, [...this.partitions]);
    const again = (): void => this.#hear(after);
    const done = (): void => {
      if (this.#isOver) return;
      if (message.error !== undefined) {
        this.#failed(message.error, again);
        return;
      }
      if (message.outcome !== OK) {
        this.#later(this.#lockedMs, again);
        this.#lockedMs = Math.min(2 * this.#lockedMs, COPY_RETRY_MS);
        return;
      }
      this.#lockedMs = COPY_PAUSE_MS;
      try {
        this.#host.hear(message, this.partitions);
      } catch (error) {
        this.#failed(error, again);
        return;
      }
      if (message.hasMore) this.#later(COPY_PAUSE_MS, () => this.#hear(message.names.at(-1)!));
      else this.#next();
    };
    this.#host.driver.run(once(message), COPY_TIMEOUT_MS, done, rethrow);
  }

  #next(): void {
    if (this.#table === this.#tables.length) {
      this.#end();
      return;
    }
    const table = this.#tables[this.#table];
    const message = new FetchRows(this.source, table, this.#place, [...this.partitions]);
    const done = (): void => {
      if (this.#isOver) return;
      if (message.error !== undefined) {
        this.#failed(message.error, () => this.#next());
      } else if (message.outcome !== OK) {
        this.#later(this.#lockedMs, () => this.#next());
        this.#lockedMs = Math.min(2 * this.#lockedMs, COPY_RETRY_MS);
      } else {
        this.#lockedMs = COPY_PAUSE_MS;
        this.#apply(message);
      }
    };
    this.#host.driver.run(once(message), COPY_TIMEOUT_MS, done, rethrow);
  }

  #apply(message: FetchRows): void {
    const { clock } = this.#host.driver.endpoint;
    const startMs = clock.nowMs();
    try {
      if (!this.#insert(message)) {
        this.#later(APPLY_RETRY_MS, () => this.#apply(message));
        return;
      }
    } catch (error) {
      this.#failed(error, () => this.#apply(message));
      return;
    }
    this.#host.ran(undefined);
    const { writes, isDone, place, spentMs } = message;
    this.#host.copied(message.rows, writes.byteLength);
    this.#place = place;
    if (isDone) {
      this.#table++;
      this.#place = BEGINNING;
    }
    const workedMs = clock.nowMs() - startMs + spentMs;
    this.#later(pauseMs(workedMs, this.#host.workers), () => this.#next());
  }

  /** Adds the rows of a piece, all at once if a journal holds them; false if it must be tried again. */
  #insert({ writes, rows }: FetchRows): boolean {
    if (rows === 0) return true;
    try {
      return this.#insertSome(writes, 0, writes.length);
    } catch (error) {
      if (!(error instanceof SituError) || error.code !== "SITU_TOO_LARGE") throw error;
    }
    for (let at = 0; at < writes.length; at += writes[at]) {
      if (!this.#insertSome(writes, at, at + writes[at])) return false;
    }
    return true;
  }

  #insertSome(writes: Int32Array, from: number, to: number): boolean {
    const { executor, tables, touched } = this.#host;
    const tx = this.#tx;
    const body = this.#body;
    body.clear();
    body.words(writes, from, to - from);
    const reader = new Reader(body.views).reset(body.views, 0, to - from);
    const changed = new Set<ServedTable>();
    const done = attempt(executor, tx, () => {
      reader.at = 0;
      while (reader.left > 0) {
        const request = decodeWrite(reader, to - from);
        if (request.code !== PUT) throw nonsense();
        const { partition } = request;
        if (!this.partitions.has(partition)) continue;
        const table = tables.byId(request.table);
        // Only where something was removed a key is worth a text.
        const isGone =
          touched.has(partition) && touched.wasRemoved(partition, table.id, table.keyOf(request));
        if (!isGone && table.insert(tx, request)) changed.add(table);
      }
      return changed;
    });
    if (done === undefined) return false;
    maintainTables(changed);
    return true;
  }

  #end(): void {
    this.#host.disk.whenKept((error) => {
      if (this.#isOver) return;
      if (error !== undefined) {
        this.#failed(error, () => this.#end());
        return;
      }
      this.#isOver = true;
      this.#host.ended(this);
    });
  }

  /** Tries again: such as when a node is not reached, or an operator must make room. */
  #failed(error: unknown, again: () => void): void {
    if (!(error instanceof SituError)) throw error;
    this.#host.ran(error);
    this.#later(COPY_RETRY_MS, again);
  }

  #later(ms: number, run: () => void): void {
    const { driver } = this.#host;
    if (this.#isOver || driver.isClosed) return;
    driver.endpoint.clock.after(ms, () => {
      if (!this.#isOver && !driver.isClosed) run();
    });
  }
}

interface Named {
  readonly name: string;
}

function rethrow(error: unknown): never {
  throw error;
}
