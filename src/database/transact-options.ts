/** What transactions take, and the errors of those who call them wrongly. */

import type { DurabilityMode } from "../attach/settings.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { show } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";

/** What a transaction may see of others: see docs/ISOLATION.md. */
export type Isolation = "strict-serializable" | "snapshot";

export interface TransactSyncOptions {
  /**
   * How long to retry and to wait for others, and for the disk, before giving up. Default: that of
   * `open`. If that has none, `transactSync`, which holds the event loop, waits for other processes
   * for 500 ms; 5 s hold for the disk, for the body itself, and for `transact`.
   */
  readonly timeoutMs?: number;
  /**
   * With "snapshot", reads see the store as it was when the body began, and of two transactions
   * that change the same the first to commit wins. Default: "strict-serializable".
   */
  readonly isolation?: Isolation;
  /** "sync" waits until the commit is on disk, in a database that is not as strict by itself. */
  readonly durability?: Exclude<DurabilityMode, "none">;
}

export interface TransactOptions extends TransactSyncOptions {
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
      `${call}: signal is an AbortSignal, as in controller.signal`,
    );
  }
}

export function notAFunction(call: string, body: unknown): SituError {
  return new SituError("SITU_TYPE", `${call} takes a function that gets tx, not ${typeof body}`);
}

export function nested(): SituError {
  return new SituError(
    "SITU_NESTED",
    "a transaction is running here already: use its tx, transactions do not nest",
  );
}

export function unknownTable(table: Table): SituError {
  const name = table?.name === undefined ? show(table) : table.name;
  return new SituError(
    "SITU_UNKNOWN_TABLE",
    `table ${name} is not open here: pass it to open({ tables: [...] })`,
  );
}
