/**
 * Bulk operations as their users see them: what is done with all rows that meet a condition. Conditions and new values are
 * expressions of the table's fields, which are compiled once and read only the fields that they name (docs/BULK.md).
 */

import type { Plan } from "../tables/bulk/plan.ts";
import type {
  AggregateOptions,
  AggregateValues,
  DeleteWhereOptions,
  ExplainOptions,
  SelectOptions,
  UpdateWhereOptions,
} from "../tables/bulk/requests.ts";
import type { Deleted, Updated } from "../tables/bulk/runs.ts";
import type { Opened, Simplify } from "../tables/table.ts";
import type { AsyncScan, Scan } from "./scan.ts";
import type { TransactOptions } from "./transact-options.ts";

/** What `aggregate` returns: one object, or with `groupBy` one for each group. */
export type AggregateResult<Row, RowValues, Names extends keyof Row> = [Names] extends [never]
  ? AggregateValues<RowValues>
  : Simplify<Pick<Row, Names> & AggregateValues<RowValues>>[];

/** The row that `select` returns. */
export type Selected<Row, Names extends keyof Row> = Simplify<Pick<Row, Names>>;

/** Reading many rows, while the event loop turns. */
export interface BulkReads<Names extends string> {
  /** Computes counts, sums, smallest, largest and average values over the rows that match. */
  aggregate<Row, Key, RowValues, Groups extends keyof Row = never>(
    table: Opened<Names, Row, Key>,
    options: AggregateOptions<Row, RowValues, Groups>,
  ): Promise<AggregateResult<Row, RowValues, Groups>>;

  /** Says how the rows of an operation would be found, what was compared, and why it was chosen. */
  explain<Row, Key>(table: Opened<Names, Row, Key>, options?: ExplainOptions<Row>): Promise<Plan>;
}

/** The same in a transaction, with changes. */
export interface BulkTransaction<Names extends string> extends BulkReads<Names> {
  /** The rows that match, in no particular order. */
  select<Row, Key, Columns extends keyof Row = keyof Row>(
    table: Opened<Names, Row, Key>,
    options?: SelectOptions<Row, Columns>,
  ): AsyncScan<Selected<Row, Columns>>;

  /**
   * Changes fields of all rows that match. Rows that have the new values already are not written. Should it fail
   * after some rows were changed, the transaction ends with it.
   */
  updateWhere<Row, Key, Changes, const S>(
    table: Opened<Names, Row, Key, Changes>,
    options: UpdateWhereOptions<Row, Changes, S>,
  ): Promise<Updated>;

  /** Removes all rows that match. */
  deleteWhere<Row, Key>(
    table: Opened<Names, Row, Key>,
    options: DeleteWhereOptions<Row>,
  ): Promise<Deleted>;
}

/** The same outside of a transaction: each call is one. */
export interface BulkDatabase<Names extends string> extends BulkReads<Names> {
  /**
   * Changes fields of all rows that match, in one transaction: all of them, or none. Rows that have the new values already
   * are not written.
   */
  updateWhere<Row, Key, Changes, const S>(
    table: Opened<Names, Row, Key, Changes>,
    options: UpdateWhereOptions<Row, Changes, S>,
    transaction?: TransactOptions,
  ): Promise<Updated>;

  /** Removes all rows that match, in one transaction. */
  deleteWhere<Row, Key>(
    table: Opened<Names, Row, Key>,
    options: DeleteWhereOptions<Row>,
    transaction?: TransactOptions,
  ): Promise<Deleted>;
}

/** What databases in memory and snapshots have of `select`: `for…of` blocks, `for await` does not. */
export interface BulkSelect<Names extends string> {
  /** The rows that match, in no particular order. All are of one state. */
  select<Row, Key, Columns extends keyof Row = keyof Row>(
    table: Opened<Names, Row, Key>,
    options?: SelectOptions<Row, Columns>,
  ): Scan<Selected<Row, Columns>>;
}

/** In `transactSync`: nothing is a promise, and the event loop waits. */
export interface SyncBulk<Names extends string> extends BulkSelect<Names> {
  /** Computes counts, sums, smallest, largest and average values over the rows that match. */
  aggregate<Row, Key, RowValues, Groups extends keyof Row = never>(
    table: Opened<Names, Row, Key>,
    options: AggregateOptions<Row, RowValues, Groups>,
  ): AggregateResult<Row, RowValues, Groups>;

  /** Changes fields of all rows that match. Rows that have the new values already are not written. */
  updateWhere<Row, Key, Changes, const S>(
    table: Opened<Names, Row, Key, Changes>,
    options: UpdateWhereOptions<Row, Changes, S>,
  ): Updated;

  /** Removes all rows that match. */
  deleteWhere<Row, Key>(table: Opened<Names, Row, Key>, options: DeleteWhereOptions<Row>): Deleted;

  /** Says how the rows of an operation would be found, what was compared, and why it was chosen. */
  explain<Row, Key>(table: Opened<Names, Row, Key>, options?: ExplainOptions<Row>): Plan;
}
