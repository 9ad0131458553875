/**
 * A transaction over several lines: an asynchronous `transact` whose body waits for the next one.
 *
 * When others got in between, the engine runs a body again. A person has decided by what was
 * shown, so the second run repeats the statements and compares: if each comes to the same, the
 * transaction is one that the person could have typed just then, and it commits. If not, nothing
 * is changed, and the statements that come to something else now are told.
 */

import type { AsyncTransaction } from "../../../database/async-transaction.ts";
import type { Database } from "../../../database/database.ts";
import { isSignal } from "../../../engine/signals.ts";
import { ConflictError, SituError } from "../../../runtime/errors.ts";
import { type DataStatement, gathered, type Outcome, toldAs } from "./outcome.ts";
import { type Target, TransactionTarget } from "./target.ts";

/** Thrown out of the body to undo it. */
const ROLLBACK = new SituError("SITU_ABORTED", "rolled back");

interface Carried {
  readonly statement: DataStatement;
  /** What it came to, or the code of its error. */
  readonly told: string;
}

interface Request {
  readonly statement: DataStatement;
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
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
  readonly #carried: Carried[] = [];
  #attempts = 0;
  /** A statement that is to be carried out, or is being. */
  #request: Request | undefined;
  #ending: Ending | undefined;
  #wake: () => void = () => {};
  /** How it ended; undefined if it was committed or rolled back as wanted. */
  readonly ended: Promise<unknown>;
  #isOpen = true;

  constructor(db: Database, timeoutMs: number) {
    const running = db.transact((tx) => this.#body(tx), { timeoutMs });
    this.ended = running.then(
      () => this.#end(undefined),
      (error: unknown) => this.#end(error === ROLLBACK ? undefined : error),
    );
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  get lines(): readonly string[] {
    return this.#carried.map(({ statement }) => statement.line);
  }

  /** Carries out a statement inside the transaction. */
  carryOut(statement: DataStatement): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.#request = { statement, resolve, reject };
      this.#wake();
    });
  }

  /** Comes to the error that it has met, if it has. */
  finish(ending: Ending): Promise<unknown> {
    this.#ending = ending;
    this.#wake();
    return this.ended;
  }

  #end(error: unknown): unknown {
    this.#isOpen = false;
    this.#request?.reject(error ?? ROLLBACK);
    this.#request = undefined;
    return error;
  }

  async #body(tx: AsyncTransaction): Promise<void> {
    const target = new TransactionTarget(tx);
    if (++this.#attempts > 1) await this.#repeat(target);
    for (;;) {
      if (this.#request !== undefined) await this.#carryOut(this.#request, target);
      else if (this.#ending === "commit") return;
      else if (this.#ending === "rollback") throw ROLLBACK;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  async #carryOut(request: Request, target: Target): Promise<void> {
    const { statement } = request;
    let outcome: Outcome;
    try {
      outcome = await gathered(await statement.carryOut(target));
    } catch (error) {
      // Others got in between. The body is run again, with the request that is still there.
      if (isSignal(error)) throw error;
      this.#request = undefined;
      this.#carried.push({ statement, told: codeOf(error) });
      request.reject(error);
      return;
    }
    this.#request = undefined;
    this.#carried.push({ statement, told: toldAs(outcome) });
    request.resolve(outcome);
  }

  async #repeat(target: Target): Promise<void> {
    const changed: string[] = [];
    for (const { statement, told } of this.#carried) {
      if ((await toldAgain(statement, target)) !== told) changed.push(statement.line);
    }
    if (changed.length > 0) throw new ChangedError(changed, this.lines);
  }
}

async function toldAgain(statement: DataStatement, target: Target): Promise<string> {
  try {
    return toldAs(await gathered(await statement.carryOut(target)));
  } catch (error) {
    if (isSignal(error)) throw error;
    return codeOf(error);
  }
}

function codeOf(error: unknown): string {
  return `error ${(error as { code?: string }).code ?? String(error)}`;
}
