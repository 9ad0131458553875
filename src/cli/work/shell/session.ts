/** A shell at work: the store with its tables, the transaction that is open, and what was typed. */

import type { Database } from "../../../database/database.ts";
import { SituError } from "../../../runtime/errors.ts";
import { didYouMean } from "../../../runtime/nearest.ts";
import type { Table } from "../../../tables/table.ts";
import type { OpenStore } from "../../../transfer/stored-tables.ts";
import type { Screen } from "../../screen.ts";
import { openStored } from "../stores.ts";
import type { DataStatement, Outcome } from "./outcome.ts";
import { StoreTarget } from "./target.ts";
import { ChangedError, ShellTransaction } from "./transaction.ts";

export interface ShellSessionOptions {
  readonly path: string;
  readonly screen: Screen;
  /** Rows of a scan without a limit. */
  readonly mostRows: number;
  readonly transactionMs: number;
}

export class ShellSession {
  readonly options: ShellSessionOptions;
  #store: OpenStore;
  #transaction: ShellTransaction | undefined;
  /** The statements of a transaction that others were quicker than. */
  lost: readonly string[] = [];
  /** Told when a transaction ends that nobody has ended. */
  onLost: (error: unknown) => void = () => {};

  private constructor(options: ShellSessionOptions, store: OpenStore) {
    this.options = options;
    this.#store = store;
  }

  static async open(options: ShellSessionOptions): Promise<ShellSession> {
    return new ShellSession(options, await openStored(options.path, options.screen));
  }

  get db(): Database {
    return this.#store.db;
  }

  get tables(): ReadonlyMap<string, Table> {
    return this.#store.tables;
  }

  get isInTransaction(): boolean {
    return this.#transaction !== undefined;
  }

  /** A table by its name; one that somebody has made since the store was opened, too. */
  async table(name: string | undefined): Promise<Table> {
    if (name === undefined) throw new SituError("SITU_TYPE", "a table name is missing");
    const known = this.tables.get(name);
    if (known !== undefined) return known;
    const isNew = this.db.stats().tables.some((each) => each.name === name);
    if (isNew && !this.isInTransaction) {
      await this.#reopen();
      return this.table(name);
    }
    const names = [...this.tables.keys()];
    const all = names.length === 0 ? "; it has none" : `; it has ${names.join(", ")}`;
    const hint = didYouMean(name, names, all);
    throw new SituError("SITU_UNKNOWN_TABLE", `the store has no table ${name}${hint}`);
  }

  async #reopen(): Promise<void> {
    const { db } = this.#store;
    this.#store = await openStored(this.options.path, this.options.screen);
    await db.close();
  }

  carryOut(statement: DataStatement): Promise<Outcome> {
    const transaction = this.#transaction;
    if (transaction !== undefined) return transaction.carryOut(statement);
    return statement.carryOut(new StoreTarget(this.db));
  }

  begin(): void {
    if (this.#transaction !== undefined) {
      throw new SituError(
        "SITU_NESTED",
        "a transaction is already open: commit or roll it back first",
      );
    }
    const transaction = new ShellTransaction(this.db, this.options.transactionMs);
    this.#transaction = transaction;
    this.lost = [];
    void transaction.ended.then((error) => {
      // Only if nobody waits for it: its time is over, or the store is.
      if (this.#transaction !== transaction) return;
      this.#transaction = undefined;
      if (error !== undefined) this.onLost(error);
    });
  }

  /** How many statements it had. */
  async finish(ending: "commit" | "rollback"): Promise<number> {
    const transaction = this.#transaction;
    if (transaction === undefined) {
      throw new SituError("SITU_CLOSED", `there is no transaction to ${ending}`);
    }
    this.#transaction = undefined;
    const error = await transaction.finish(ending);
    if (error === undefined) return transaction.lines.length;
    if (error instanceof ChangedError) this.lost = error.lines;
    throw error;
  }

  async close(): Promise<void> {
    if (this.#transaction !== undefined) await this.finish("rollback");
    await this.db.close();
  }
}
