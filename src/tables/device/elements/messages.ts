/** What a database and the device's threads tell each other, as structured clones. */

import type { SharedSnapshot } from "../../../engine/snapshots/snapshot.ts";
import type { Address } from "../../../memory/address.ts";
import { SituError, type SituErrorCode } from "../../../runtime/errors.ts";
import type { Accumulated } from "../../expressions/accumulate.ts";
import type { Table } from "../../table.ts";
import type { Changed } from "./change-job.ts";

/** What a thread is started with. */
export interface ElementTask {
  /** The store's folder. */
  readonly path: string;
  /** The folder of its memory. */
  readonly memory: string;
}

/** Reads the rows of a share of the pages through a snapshot. */
export interface ReadOrder {
  readonly kind: "aggregate" | "select";
  readonly id: number;
  readonly table: Table;
  /** Where the caller has found the table. */
  readonly root: Address;
  /** As `programText` writes it. */
  readonly program: string;
  readonly snapshot: SharedSnapshot;
  /** Which one of how many threads this is. */
  readonly part: number;
  readonly parts: number;
  /** Words of SIGNAL_WORDS. */
  readonly signals: Int32Array<SharedArrayBuffer>;
}

/** Changes rows, in one transaction. */
export interface ChangeOrder {
  readonly kind: "change";
  readonly id: number;
  readonly table: Table;
  readonly root: Address;
  readonly program: string;
  /** Rows that expire by then are not there. */
  readonly momentMs: number;
  /** How long it waits for other executors, and for the disk. */
  readonly timeoutMs: number;
  /** Whether it is done only when it is on disk. */
  readonly waits: boolean;
  readonly signals: Int32Array<SharedArrayBuffer>;
  /** For tests: where it is cut off. */
  readonly death: Death | undefined;
}

/** The steps of an update, for those who test what a death leaves: see change-job.ts. */
export const CRASH_POINTS = [
  "announced",
  "written",
  "synced",
  "applying",
  "applied",
  "ended",
] as const;
export type CrashPoint = (typeof CRASH_POINTS)[number];

/** At a step of an update: the process dies, or only the thread does. */
export interface Death {
  readonly at: CrashPoint;
  readonly of: "process" | "thread";
}

/** The word of an operation's signals that turns to 1 when it is to end. */
export const STOPPED = 0;
/** The word that counts the batches of a selection that its reader has taken. */
export const TAKEN = 1;
export const SIGNAL_WORDS = 2;

export type Order = ReadOrder | ChangeOrder;

export type Request =
  | Order
  | { readonly kind: "taken"; readonly id: number }
  | { readonly kind: "end" };

export interface Told {
  readonly id: number;
  /** Rows of a selection; more will follow. */
  readonly rows?: readonly unknown[];
  /** What an aggregate has come to. It is done. */
  readonly accumulated?: Accumulated;
  /** What an update has come to. It is done. */
  readonly changed?: Changed;
  /** A selection is done. */
  readonly isDone?: boolean;
  readonly failure?: ToldError;
}

/** An error, of which a clone would keep the message only. */
export interface ToldError {
  readonly code: SituErrorCode | undefined;
  readonly message: string;
  readonly stack: string | undefined;
}

export function toldError(error: unknown): ToldError {
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { code: error instanceof SituError ? error.code : undefined, message, stack };
}

export function errorFrom({ code, message, stack }: ToldError): Error {
  if (code !== undefined) return new SituError(code, message);
  return Object.assign(new Error(message), { stack });
}

/** What ends an operation that nobody waits for any more. */
export function stopped(): SituError {
  return new SituError("SITU_ABORTED", "the operation was stopped");
}
