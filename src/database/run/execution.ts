/**
 * One transaction on its way to its commit, over as many attempts as that takes: what the runner of
 * callbacks (runner.ts) and interactive transactions (interactive.ts) need of a store in local memory
 * (local/local-execution.ts), and of a cluster (remote/remote-execution.ts).
 *
 *   begin → operations → settle → commit ─ true ──→ end → acknowledge
 *     ↑                             │ false, or an error that is not to be believed
 *     └──────── awaitRetry ←── endAttempt
 *
 * Nothing that a callback throws is believed before its reads are validated: it may have seen two rows
 * at different moments.
 */

import type { SituError } from "../../runtime/errors.ts";
import type { AsyncRetry } from "./async-retry.ts";
import type { OperationQueue } from "./operation-queue.ts";

export interface Execution<Tx extends OperationQueue<unknown>> {
  readonly retry: AsyncRetry;
  /**
   * Begins an attempt. What it returns is for the caller, until `endAttempt`. The only attempt of an
   * interactive transaction waits where another would be run again.
   */
  begin(isOnly?: boolean): Tx | Promise<Tx>;
  /** False if another transaction was in the way. */
  commit(): boolean | Promise<boolean>;
  /** Whether all that the attempt has read is still so, and it can go on. */
  isValid(): boolean | Promise<boolean>;
  /** Whether an error has ended the transaction, and not only an attempt that saw two moments. */
  isCallersOwn(error: unknown): boolean | Promise<boolean>;
  /** The time is over, or the signal aborted: that has ended the attempt. */
  countAbort(cause: unknown): void;
  /** No further operation of this attempt is possible: each fails with `why`. Locks are released. */
  endAttempt(why: SituError): void;
  /** After an attempt that met others: returns when it is time for the next, or throws why there is none. */
  awaitRetry(): Promise<void>;
  /** For one who does not retry: why the attempt cannot go on. Nothing but `end` may follow. */
  whyNot(): SituError;
  /** Releases all that the transaction holds. */
  end(): void;
  /** After the commit: waits until the caller may be told. */
  acknowledge(): Promise<void> | undefined;
  /** For statistics, once: that it has committed, or what it failed with. */
  count(failed?: { readonly error: unknown }): void;
}
