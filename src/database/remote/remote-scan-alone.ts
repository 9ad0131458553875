/**
 * A scan outside of transactions: a read-only transaction of its own for each iteration. All rows
 * belong to one state, that of a moment while the scan ran:
 *
 *   - A scan of up to SCAN_HELD_ROWS rows is validated before it gives out the first one, and run
 *     again if somebody has changed what it read.
 *   - A longer one gives rows out while it goes and is validated when it has come to its end. If
 *     somebody has changed what it read meanwhile, it then fails with SITU_CONFLICT, and what was
 *     given out may be of several states. One that is left before its end was not validated.
 */

import { isSignal } from "../../engine/signals.ts";
import type { Clock } from "../../fabric/fabric.ts";
import { sleep } from "../../runtime/clock.ts";
import { ConflictError, SituError } from "../../runtime/errors.ts";
import { MAX_ASYNC_PAUSE_MS, SCAN_HELD_ROWS } from "../../runtime/limits.ts";
import type { Random } from "../../runtime/random.ts";
import { RetryPolicy } from "../../runtime/retry-policy.ts";
import { ENDED } from "../run/ended.ts";
import { AsyncRowScan } from "../run/row-scan.ts";
import type { AsyncScan } from "../scan.ts";
import { isPassing } from "./follower.ts";
import type { RemoteTransaction } from "./remote-transaction.ts";

const FIRST_PAUSE_MS = 0.25;

/** What such a scan needs of its database. */
export interface LoneScans {
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly random: Random;
  begin(): RemoteTransaction;
  /** Whether all that the transaction has read is still so. */
  isValid(tx: RemoteTransaction): Promise<boolean>;
  /** Waits a little for what is the matter with the cluster. */
  pause(tx: RemoteTransaction): Promise<void>;
}

/** `plan` is `tx.scan`, with its arguments. */
export function scanAlone<Row>(
  db: LoneScans,
  plan: (tx: RemoteTransaction) => AsyncScan<Row>,
): AsyncScan<Row> {
  // What is wrong with the arguments is said at once.
  plan(db.begin());
  return new AsyncRowScan(() => rowsOf(db, plan));
}

async function* rowsOf<Row>(
  db: LoneScans,
  plan: (tx: RemoteTransaction) => AsyncScan<Row>,
): AsyncGenerator<Row, undefined> {
  const { clock, timeoutMs } = db;
  const retry = new RetryPolicy({ timeoutMs, clock });
  // Starts the time.
  retry.leftMs();
  for (;;) {
    const tx = db.begin();
    let trouble: SituError | undefined;
    try {
      const rows = plan(tx)[Symbol.asyncIterator]();
      const begun = await begin(db, tx, rows);
      if (begun instanceof SituError) trouble = begun;
      else if (begun !== undefined) {
        yield* begun.held;
        if (!begun.isWhole) yield* goOn(db, tx, rows);
        return;
      }
    } finally {
      tx.end(ENDED);
    }
    if (!retry.mayRetry()) throw trouble ?? retry.conflict("what the scan read");
    if (trouble !== undefined) await db.pause(tx);
    else await sleep(retry.pauseMs(db.random, FIRST_PAUSE_MS, MAX_ASYNC_PAUSE_MS), clock);
  }
}

/**
 * The first rows; undefined if somebody got in between, or what is the matter with the cluster. If they are all,
 * they are validated.
 */
async function begin<Row>(
  db: LoneScans,
  tx: RemoteTransaction,
  rows: AsyncIterator<Row>,
): Promise<{ readonly held: Row[]; readonly isWhole: boolean } | SituError | undefined> {
  const held: Row[] = [];
  try {
    while (held.length < SCAN_HELD_ROWS) {
      const next = await rows.next();
      if (next.done) return (await db.isValid(tx)) ? { held, isWhole: true } : undefined;
      held.push(next.value);
    }
  } catch (error) {
    if (isSignal(error)) return undefined;
    if (isPassing(error)) return error;
    throw error;
  }
  return { held, isWhole: false };
}

async function* goOn<Row>(
  db: LoneScans,
  tx: RemoteTransaction,
  rows: AsyncIterator<Row>,
): AsyncGenerator<Row, undefined> {
  for (;;) {
    let next: IteratorResult<Row>;
    try {
      next = await rows.next();
    } catch (error) {
      throw isSignal(error) || isStale(error) ? changed() : error;
    }
    if (next.done) break;
    yield next.value;
  }
  const isValid = await db.isValid(tx).catch((error: unknown) => {
    if (!isStale(error)) throw error;
    return false;
  });
  if (!isValid) throw changed();
}

function isStale(error: unknown): boolean {
  return error instanceof SituError && error.code === "SITU_STALE_CONFIGURATION";
}

function changed(): ConflictError {
  return new ConflictError(
    "other transactions have changed what the scan read, or the cluster has changed, after its first " +
      "rows were given out: scan again, or scan a smaller range",
    [],
  );
}
