/**
 * Procedures: transactions that nodes keep, and run where the data is (function shipping, FaRM §3.2).
 * A module of the application exports them; a node is started with the module's path; any client calls
 * them by name.
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
import type { RemoteTransaction } from "./remote/remote-transaction.ts";

/** Found by this among the exports of a module, whichever copy of the package made it. */
const MARK = "situ procedure";

export type ProcedureBody<Values extends readonly unknown[], T> = (
  tx: RemoteTransaction,
  ...values: Values
) => T | PromiseLike<T>;

export interface ProcedureOptions<Values extends readonly unknown[]> {
  /** The tables that it uses. */
  readonly tables?: readonly Table[];
  /** The row whose node it runs at. Default: the node that was called. */
  readonly at?: (...values: Values) => readonly [table: Table, key: unknown];
}

export interface Procedure<Values extends readonly unknown[] = readonly unknown[], T = unknown> {
  readonly kind: typeof MARK;
  readonly name: string;
  readonly body: ProcedureBody<Values, T>;
  readonly tables: readonly Table[];
  readonly at: ((...values: Values) => readonly [Table, unknown]) | undefined;
}

export function procedure<const Values extends readonly unknown[], T>(
  name: string,
  body: ProcedureBody<Values, T>,
  options: ProcedureOptions<Values> = {},
): Procedure<Values, T> {
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new SituError("SITU_TYPE", `a procedure's name is a text, not ${show(name)}`);
  }
  if (typeof body !== "function") {
    throw new SituError("SITU_TYPE", `procedure ${name} takes a function that gets tx`);
  }
  const { tables = [], at } = options;
  return Object.freeze({ kind: MARK, name, body, tables, at });
}

export function isProcedure(value: unknown): value is Procedure {
  return typeof value === "object" && value !== null && (value as Procedure).kind === MARK;
}
