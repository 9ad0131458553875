/**
 * Procedures: transactions that run at the nodes, where the data is (function shipping, FaRM §3.2). A
 * module of the application exports them, a node is started with the path of the module, and any client
 * can call them by name.
 *
 *     export const transfer = procedure("transfer", async (tx, from, to, amount) => { … }, {
 *       tables: [Account],
 *       at: (from) => [Account, from],
 *     });
 */

import { SituError } from "../runtime/errors.ts";
import { MAX_NAME_BYTES } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";
import type { AsyncTransaction } from "./async-transaction.ts";

/** Found by this among the exports of a module, whichever copy of the package made it. */
const MARK = "situ procedure";

/** The callback of a procedure. Its values must be what can be sent in a message. */
export type ProcedureBody<RowValues extends readonly unknown[], T> = (
  tx: AsyncTransaction,
  ...values: RowValues
) => T | PromiseLike<T>;

/** What `procedure` takes besides a name and a callback. */
export interface ProcedureOptions<RowValues extends readonly unknown[]> {
  /** The tables that the procedure uses. */
  readonly tables?: readonly Table[];
  /** The row at whose node the procedure runs. Default: the node that was called. */
  readonly at?: (...values: RowValues) => readonly [table: Table, key: unknown];
  /**
   * Where it runs in clusters with the protocol "xenic": at the host of a node, or, if it is short and needs nothing but rows, in a
   * worker of the node's NIC. Others run it at the host. Default: "host".
   */
  readonly runs?: "host" | "nic";
  /**
   * All rows that a procedure at the NIC uses, if its values tell. A row that is only read says "read". With them it needs one round of
   * messages, and can be executed at another node.
   */
  readonly rows?: (...values: RowValues) => readonly UsedRow[];
}

/** A row that a procedure uses. */
export type UsedRow = readonly [table: Table, key: unknown, how?: "read" | "write"];

/** What `procedure` returns. */
export interface Procedure<RowValues extends readonly unknown[] = readonly unknown[], T = unknown> {
  readonly kind: typeof MARK;
  readonly name: string;
  readonly body: ProcedureBody<RowValues, T>;
  readonly tables: readonly Table[];
  readonly at: ((...values: RowValues) => readonly [Table, unknown]) | undefined;
  readonly runs: "host" | "nic";
  readonly rows: ((...values: RowValues) => readonly UsedRow[]) | undefined;
}

/** Declares a procedure. Export it from a module that nodes are started with. */
export function procedure<const RowValues extends readonly unknown[], T>(
  name: string,
  body: ProcedureBody<RowValues, T>,
  options: ProcedureOptions<RowValues> = {},
): Procedure<RowValues, T> {
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new SituError(
      "SITU_TYPE",
      `the name of a procedure must be a string of 1 to ${MAX_NAME_BYTES} bytes, not ${show(name)}`,
    );
  }
  if (typeof body !== "function") {
    throw new SituError("SITU_TYPE", `procedure ${name} takes a callback, as in (tx) => …`);
  }
  const { tables = [], at, runs = "host", rows } = options;
  if (runs !== "host" && runs !== "nic") {
    throw new SituError(
      "SITU_TYPE",
      `procedure ${name} runs at the "host" or "nic", not ${show(runs)}`,
    );
  }
  return Object.freeze({ kind: MARK, name, body, tables, at, runs, rows });
}

export function isProcedure(value: unknown): value is Procedure {
  return typeof value === "object" && value !== null && (value as Procedure).kind === MARK;
}
