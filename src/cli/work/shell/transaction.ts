/**
 * A transaction over several lines, on `db.begin()`.
 *
 * An interactive transaction that conflicts with another one is rolled back. A person has decided by what
 * was shown, so the statements are then carried out again in a new one, and compared: if each has the
 * same result, the transaction is one that the person could have typed just then, and goes on. If not,
 * nothing is changed, and the statements that have a different result now are told.
 */

import type { InteractiveTransaction } from "../../../database/async-transaction.ts";
import type { Database } from "../../../database/database.ts";
import { nowMs, realClock } from "../../../runtime/clock.ts";
import { ConflictError, TimeoutError } from "../../../runtime/errors.ts";
import { type DataStatement, gathered, type Outcome, toldAs } from "./outcome.ts";
import { type Target, TransactionTarget } from "./target.ts";

interface Carried {
  readonly statement: DataStatement;
  /** Its result, or the code of its error. */
  readonly told: string;
}

type Ending = "commit" | "rollback";

/** The statements of a transaction that could not be committed because others were first. */
export class ChangedError extends ConflictError {
  /** Those that would come to something else now. */
  readonly changed: readonly string[];
  /** All of them. */
  readonly lines: readonly string[];

  constructor(changed: readonly string[], lines: readonly string[]) {
    const what = changed.map((line) => `"${line}"`).join(", ");
    super(
      `conflict with another transaction: ${what} would have a different result now. Nothing was ` +
        "changed. Check the data and decide again, or type repeat to run the same statements again: " +
        lines.join("; "),
      [],
    );
    this.changed = changed;
    this.lines = lines;
  }
}

export class ShellTransaction {
  readonly #db: Database;
  readonly #endMs: number;
  readonly #timer: { cancel(): void };
  readonly #carried: Carried[] = [];
  #tx: Promise<InteractiveTransaction>;
  /** How it ended; undefined if it was committed or rolled back as wanted. */
  readonly ended: Promise<unknown>;
  #tellEnded!: (error: unknown) => void;
  #isOpen = true;
  /** Why it ended early. */
  #error: unknown;

  constructor(db: Database, timeoutMs: number) {
    this.#db = db;
    this.#endMs = nowMs() + timeoutMs;
    this.ended = new Promise((resolve) => {
      this.#tellEnded = resolve;
    });
    this.#timer = realClock.after(timeoutMs, () => {
      this.#end(new TimeoutError(`the transaction was open for ${timeoutMs} ms and rolled back`));
    });
    this.#tx = this.#begin();
  }

  get lines(): readonly string[] {
    return this.#carried.map(({ statement }) => statement.line);
  }

  /** Carries out a statement inside the transaction. */
  async carryOut(statement: DataStatement): Promise<Outcome> {
    for (;;) {
      try {
        const outcome = await gathered(await statement.carryOut(await this.#target()));
        this.#carried.push({ statement, told: toldAs(outcome) });
        return outcome;
      } catch (error) {
        if (!this.#isOpen) throw this.#error;
        if (!(error instanceof ConflictError)) {
          this.#carried.push({ statement, told: codeOf(error) });
          throw error;
        }
      }
      await this.#repeat();
    }
  }

  /** Resolves to the error that it ended with, if it did. */
  async finish(ending: Ending): Promise<unknown> {
    while (this.#isOpen) {
      try {
        const tx = await this.#tx;
        if (ending === "commit") await tx.commit();
        this.#end(undefined);
      } catch (error) {
        if (!(error instanceof ConflictError)) this.#end(error);
        else await this.#repeat().catch(() => {});
      }
    }
    return this.ended;
  }

  /** In a new transaction; ends this one if that fails. */
  async #repeat(): Promise<void> {
    try {
      while (!(await this.#repeated()));
    } catch (error) {
      this.#end(error);
      throw this.#error;
    }
  }

  /** False if that met others, too. */
  async #repeated(): Promise<boolean> {
    if (!this.#isOpen) throw this.#error;
    this.#tx = this.#begin();
    const target = await this.#target();
    const changed: string[] = [];
    for (const { statement, told } of this.#carried) {
      const toldNow = await toldAgain(statement, target);
      if (toldNow === undefined) return false;
      if (toldNow !== told) changed.push(statement.line);
    }
    if (changed.length > 0) throw new ChangedError(changed, this.lines);
    return true;
  }

  #begin(): Promise<InteractiveTransaction> {
    const beginning = this.#db.begin({ timeoutMs: Math.max(1, this.#endMs - nowMs()) });
    // Whoever uses it is told; nobody may.
    beginning.catch(() => {});
    return beginning;
  }

  async #target(): Promise<Target> {
    return new TransactionTarget(await this.#tx);
  }

  #end(error: unknown): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#error = error;
    this.#timer.cancel();
    // Does nothing to one that has ended; of one that never began, the error is known.
    this.#tx
      .then((tx) => tx[Symbol.asyncDispose]())
      .then(
        () => this.#tellEnded(error),
        () => this.#tellEnded(error),
      );
  }
}

/** Undefined if it met others. */
async function toldAgain(statement: DataStatement, target: Target): Promise<string | undefined> {
  try {
    return toldAs(await gathered(await statement.carryOut(target)));
  } catch (error) {
    return error instanceof ConflictError ? undefined : codeOf(error);
  }
}

function codeOf(error: unknown): string {
  return `error ${(error as { code?: string }).code ?? String(error)}`;
}
