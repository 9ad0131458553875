/**
 * A transaction of a compute server on its way to its commit: snapshot isolation by NAM-DB's protocol (protocols/nam). What it
 * reads is of one state from the first read on, so nothing has to be validated before a callback's error is believed. What it writes,
 * or has read with `getForUpdate`, must not have been written by anybody since.
 */

import { CONFLICT, isSignal } from "../../engine/signals.ts";
import type { Driver } from "../../protocols/driver.ts";
import type { Entry } from "../../protocols/execute/remote-access-set.ts";
import type { Timestamps } from "../../protocols/nam/timestamps.ts";
import { NamTransaction } from "../../protocols/nam/transaction.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, SituError } from "../../runtime/errors.ts";
import { MAX_ASYNC_PAUSE_MS, OUTCOME_GRACE_MS } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { type Fetcher, RemoteTransaction } from "../remote/remote-transaction.ts";
import { type AsyncLimits, AsyncRetry } from "../run/async-retry.ts";
import { ENDED } from "../run/ended.ts";
import type { Execution } from "../run/execution.ts";
import type { NamRows } from "./nam-rows.ts";
import type { NamThreads } from "./nam-threads.ts";

const FIRST_PAUSE_MS = 0.25;

/** What transactions need of their database. */
export interface NamHost {
  readonly driver: Driver;
  readonly timestamps: Timestamps;
  readonly threads: NamThreads;
  readonly random: Random;
  readonly view: Fetcher["view"];
  tableOf: Fetcher["tableOf"];
  rowsOf(entry: Entry): NamRows;
}

export class NamExecution implements Execution<RemoteTransaction> {
  readonly retry: AsyncRetry;
  readonly #host: NamHost;
  #tx!: RemoteTransaction;
  #attempt!: NamTransaction;
  #isCommitting = false;
  /** What the last attempt found no room for is not a conflict. */
  #hasNoRoom = false;

  constructor(host: NamHost, limits: AsyncLimits) {
    this.#host = host;
    this.retry = new AsyncRetry(limits, host.driver.endpoint.clock);
  }

  begin(): RemoteTransaction {
    const { threads, timestamps } = this.#host;
    this.#isCommitting = false;
    this.#hasNoRoom = false;
    this.#attempt = new NamTransaction(threads.reader, timestamps);
    this.#tx = new RemoteTransaction(
      namFetcher(this.#host, this.#attempt, () => this.#leftMs(), true),
    );
    return this.#tx;
  }

  async commit(): Promise<boolean> {
    const tx = this.#tx;
    if (tx.isDoomed) return false;
    tx.end(ENDED);
    this.#isCommitting = true;
    const entries = tx.accesses.toConfirm();
    if (entries.length === 0) return true;
    const { threads, driver, rowsOf } = this.#host;
    for (const entry of entries) {
      const rows = rowsOf(entry);
      const key = rows.key(entry.key);
      if (!entry.isWritten) this.#attempt.touch(rows.extents, key);
      else {
        const data = entry.row === undefined ? undefined : rows.data(entry.row);
        this.#attempt.write(rows.extents, key, data);
      }
    }
    const attempt = this.#attempt;
    const thread = await threads.acquire(this.#leftMs());
    try {
      const outcome = await driver.start(attempt.commit(thread), this.#leftMs());
      if (outcome.kind === "committed") return true;
      this.#hasNoRoom = outcome.reason === "no room";
      this.retry.inTheWay = this.#hasNoRoom ? noRoom : undefined;
      return false;
    } catch (error) {
      if (!(error instanceof SituError)) throw error;
      if (attempt.begun === undefined) return this.#unlessPassing(error);
      const found = await threads.resolve(thread, attempt.begun, this.#leftMs());
      if (found === "committed") return true;
      if (found === "aborted") return this.#unlessPassing(error);
      throw new SituError(
        "SITU_UNKNOWN_OUTCOME",
        `the transaction was being committed when a memory server stopped to answer (${error.message}): whether it was is not known`,
        { cause: error },
      );
    } finally {
      threads.release(thread);
    }
  }

  /** Nothing was done. What passes is tried again. */
  #unlessPassing(error: SituError): false {
    if (!isPassing(error)) throw error;
    this.retry.inTheWay = () => error;
    return false;
  }

  isValid(): boolean {
    return !this.#tx.isDoomed;
  }

  isCallersOwn(error: unknown): boolean {
    return this.#isCommitting || !isSignal(error);
  }

  countAbort(): void {}

  endAttempt(why: SituError): void {
    this.#tx.end(why);
  }

  async awaitRetry(): Promise<void> {
    const { retry } = this;
    if (!retry.mayRetry()) throw retry.inTheWay?.() ?? retry.conflict("what this one writes");
    const { random, driver } = this.#host;
    const pauseMs = retry.pauseMs(random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS);
    await sleep(pauseMs, driver.endpoint.clock);
  }

  whyNot(): SituError {
    if (this.#hasNoRoom) return noRoom();
    return new ConflictError(
      "another transaction has written, or is writing, what this one writes: this one was rolled back. Begin it again",
      [],
    );
  }

  end(): void {}

  acknowledge(): undefined {}

  count(): void {}

  #leftMs(): number {
    return Math.max(Math.ceil(this.retry.leftMs()), OUTCOME_GRACE_MS);
  }
}

/** Reads rows at the snapshot of a transaction. */
export function namFetcher(
  host: NamHost,
  attempt: NamTransaction,
  leftMs: () => number,
  mayRetry: boolean,
): Fetcher {
  const { driver, view } = host;
  return {
    view,
    tableOf: (table) => host.tableOf(table),
    pause: async () => {},
    run: async () => {
      throw noScans();
    },
    fetch: async (entries) => {
      const wanted = entries.map((entry) => {
        const rows = host.rowsOf(entry);
        return { table: rows.extents, key: rows.key(entry.key) };
      });
      const reading = (): Promise<(Int32Array | undefined)[]> =>
        driver.start(attempt.read(wanted), leftMs());
      const found = await readWith(host, reading, leftMs, mayRetry);
      for (const [i, entry] of entries.entries()) take(entry, host.rowsOf(entry), found[i]);
      return true;
    },
  };
}

/** With the thread that reads; another one is entered if that is not this process's any more. */
export async function readWith<T>(
  { threads }: NamHost,
  read: () => Promise<T>,
  leftMs: () => number,
  mayRetry: boolean,
): Promise<T> {
  const { reader } = threads;
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof SituError)) throw error;
    if (error.code === "SITU_STALE_CONFIGURATION") {
      await threads.replaceReader(reader, leftMs());
      if (!mayRetry) throw tooOld(error);
    }
    if (mayRetry && isPassing(error)) throw CONFLICT;
    throw error;
  }
}

function take(entry: Entry, rows: NamRows, data: Int32Array | undefined): void {
  // Written blindly meanwhile: then that counts.
  if (entry.isKnown) return;
  entry.row = data === undefined ? undefined : rows.row(data);
  entry.isKnown = true;
}

/** Another attempt may do better. */
function isPassing({ code }: SituError): boolean {
  return (
    code === "SITU_CONFLICT" ||
    code === "SITU_SNAPSHOT_TOO_OLD" ||
    code === "SITU_STALE_CONFIGURATION"
  );
}

function noRoom(): SituError {
  return new SituError(
    "SITU_FULL",
    "a memory server has no room for the old version of a row, and nothing was committed: try again after longestTransactionMs, " +
      "or give the memory servers a larger overflowBytes",
  );
}

function tooOld(cause: SituError): SituError {
  return new SituError(
    "SITU_SNAPSHOT_TOO_OLD",
    "this process was taken for dead meanwhile, and its snapshot with it: take a new one",
    { cause },
  );
}

export function noBulk(): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    'memory servers (protocol "nam") have no bulk operations: scan a snapshot (await db.snapshot()), and change rows by their keys',
  );
}

export function noScans(): SituError {
  return new SituError(
    "SITU_UNSUPPORTED",
    'memory servers (protocol "nam") have no scans in transactions: read rows by their keys, or scan a snapshot (await db.snapshot())',
  );
}
