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
export type ProcedureBody<Values extends readonly unknown[], T> = (
  tx: AsyncTransaction,
  ...values: Values
) => T | PromiseLike<T>;

/** What `procedure` takes besides a name and a callback. */
export interface ProcedureOptions<Values extends readonly unknown[]> {
  /** The tables that the procedure uses. */
  readonly tables?: readonly Table[];
  /** The row at whose node the procedure runs. Default: the node that was called. */
  readonly at?: (...values: Values) => readonly [table: Table, key: unknown];
}

/** What `procedure` returns. */
export interface Procedure<Values extends readonly unknown[] = readonly unknown[], T = unknown> {
  readonly kind: typeof MARK;
  readonly name: string;
  readonly body: ProcedureBody<Values, T>;
  readonly tables: readonly Table[];
  readonly at: ((...values: Values) => readonly [Table, unknown]) | undefined;
}

/** Declares a procedure. Export it from a module that nodes are started with. */
export function procedure<const Values extends readonly unknown[], T>(
  name: string,
  body: ProcedureBody<Values, T>,
  options: ProcedureOptions<Values> = {},
): Procedure<Values, T> {
  if (typeof name !== "string" || name === "" || Buffer.byteLength(name) > MAX_NAME_BYTES) {
    throw new SituError(
      "SITU_TYPE",
      `the name of a procedure must be a string of 1 to ${MAX_NAME_BYTES} bytes, not ${show(name)}`,
    );
  }
  if (typeof body !== "function") {
    throw new SituError("SITU_TYPE", `procedure ${name} takes a callback, as in (tx) => …`);
  }
  const { tables = [], at } = options;
  return Object.freeze({ kind: MARK, name, body, tables, at });
}

export function isProcedure(value: unknown): value is Procedure {
  return typeof value === "object" && value !== null && (value as Procedure).kind === MARK;
}
