/** The options of transactions, and the errors for wrong calls. */

import type { DurabilityMode } from "../attach/settings.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { show } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";

/** What a transaction may see of others: see docs/ISOLATION.md. */
export type Isolation = "strict-serializable" | "snapshot";

/** What `transactSync` takes. */
export interface TransactSyncOptions {
  /**
   * How long to retry, and to wait for others and for the disk, before giving up. For `begin`: how long
   * the transaction may stay open. Default: that of `open`. If that has none, 5 s; but `transactSync`,
   * which blocks the event loop, waits for other processes for only 500 ms.
   */
  readonly timeoutMs?: number;
  /**
   * With "snapshot", reads see the store as it was when the transaction began, or, across machines, with its first
   * read; and of two transactions
   * that change the same row, the first to commit wins. Default: "strict-serializable".
   */
  readonly isolation?: Isolation;
  /** "sync" waits until this commit is on disk, in a database that was opened with "lazy". */
  readonly durability?: Exclude<DurabilityMode, "none">;
}

/**
 * What the callback of `transactSync` returns: anything but a promise. For functions of your own that
 * pass a callback on: `<T>(callback: (tx: Transaction) => SyncResult<T>): T`.
 */
export type SyncResult<T> = T &
  ([Extract<T, PromiseLike<unknown>>] extends [never]
    ? unknown
    : "the callback of transactSync must not be async: use transact");

/** What `transact` and `begin` take. */
export interface TransactOptions extends TransactSyncOptions {
  /** Aborts the transaction: it fails with SITU_ABORTED, and nothing is committed. */
  readonly signal?: AbortSignal;
}

const ISOLATIONS: readonly unknown[] = ["strict-serializable", "snapshot", undefined];
const SYNC_OPTIONS = ["timeoutMs", "isolation", "durability"];
const ASYNC_OPTIONS = [...SYNC_OPTIONS, "signal"];

export function checkOptions(call: "transact" | "transactSync" | "begin", options: object): void {
  refuseUnknownOptions(call, options, call === "transactSync" ? SYNC_OPTIONS : ASYNC_OPTIONS);
  const { signal, isolation } = options as TransactOptions;
  if (!ISOLATIONS.includes(isolation)) {
    throw new SituError(
      "SITU_CONFIG",
      `${call}: isolation must be "strict-serializable" or "snapshot", not ${show(isolation)}`,
    );
  }
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new SituError(
      "SITU_CONFIG",
      `${call}: signal must be an AbortSignal, as in controller.signal`,
    );
  }
}

export function notAFunction(call: string, body: unknown): SituError {
  return new SituError(
    "SITU_TYPE",
    `${call} takes a callback, as in (tx) => …, not ${typeof body}`,
  );
}

export function nested(): SituError {
  return new SituError(
    "SITU_NESTED",
    "this code already runs inside a transaction: use its tx; transactions do not nest",
  );
}

export function besideTransaction(): SituError {
  return new SituError(
    "SITU_NESTED",
    "this code runs inside the callback of transactSync, and would read beside the transaction: use " +
      "its tx; for the state before it, take a snapshot",
  );
}

export function unknownTable(
  table: Table,
  open: readonly { readonly table: Table }[] = [],
): SituError {
  const name = table?.name === undefined ? show(table) : table.name;
  const isOther = open.some((each) => each.table.name === table?.name);
  return new SituError(
    "SITU_UNKNOWN_TABLE",
    isOther
      ? `table ${name} is open here with another declaration: use the one that was passed to open, or open the ` +
          `store again with this one (also after db.migrate)`
      : `table ${name} is not open here: pass it to open({ tables: [...] })`,
  );
}
