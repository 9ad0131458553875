// Situ's side: stores of accounts with a log on disk, or without one, and what their figures say.
import * as situ from "situ";
import { keyMask } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { monotonicNs, type TimedRun } from "../harness/timed-run.ts";
import { Account, type Bank, type StorePlace } from "../memory/situ.ts";

export interface DurablePlace extends StorePlace {
  readonly durability: situ.DurabilityMode;
  /** Only checkpoints that are asked for. Default: also those that Situ takes by itself. */
  readonly noCheckpoints?: boolean;
}

export function openDurableBank(
  { path, memoryDir, durability, noCheckpoints }: DurablePlace,
  onRecovery?: (progress: situ.RecoveryProgress) => void,
): Promise<Bank> {
  return situ.open({
    path,
    memoryDir,
    durability,
    tables: [Account],
    memoryBytes: 512 * 2 ** 20,
    ...(noCheckpoints === true && { checkpointBytes: 2 ** 40, checkpointMs: 24 * 3600 * 1000 }),
    ...(onRecovery !== undefined && { onRecovery }),
  });
}

/** What went to the log. */
export interface LogFigures {
  readonly logBytes: number;
  readonly batches: number;
  readonly records: number;
}

export function logFigures(db: Bank): LogFigures {
  const { logBytes, batches, records } = db.stats().durability;
  return { logBytes, batches, records };
}

export function logSince(db: Bank, before: LogFigures): LogFigures {
  const { logBytes, batches, records } = logFigures(db);
  return {
    logBytes: logBytes - before.logBytes,
    batches: batches - before.batches,
    records: records - before.records,
  };
}

/** One added to the balance of a row, in a transaction of its own: 8 bytes change. */
export function situUpdate(db: Bank, keys: Int32Array): SyncContestant {
  const mask = keyMask;
  let kept = 0;
  let id = 0;
  const body = (tx: situ.Transaction): number => {
    const row = tx.get(Account, id);
    if (row === undefined) throw new Error("situ lost a row");
    tx.update(Account, id, { balance: row.balance + 1n });
    return row.a;
  };
  return {
    name: "situ update",
    run(operations) {
      let cursor = kept;
      let sum = 0;
      for (let done = 0; done < operations; done++) {
        id = keys[cursor];
        cursor = (cursor + 1) & mask;
        sum += db.transactSync(body);
      }
      kept = cursor;
      return sum;
    },
  };
}

/** Transfers by `transact`, so many at a time: each client begins its next when one is done. */
export class TransfersInFlight {
  readonly #db: Bank;
  readonly #keys: Int32Array;
  #cursor = 0;

  constructor(db: Bank, keys: Int32Array) {
    this.#db = db;
    this.#keys = keys;
  }

  async runFor(clients: number, ms: number): Promise<Omit<TimedRun, "waitedNs">> {
    const startNs = monotonicNs();
    const deadlineNs = startNs + ms * 1e6;
    const done = await Promise.all(Array.from({ length: clients }, () => this.#client(deadlineNs)));
    const operations = done.reduce((sum, count) => sum + count, 0);
    return { operations, startNs, endNs: monotonicNs() };
  }

  async #client(deadlineNs: number): Promise<number> {
    const db = this.#db;
    const keys = this.#keys;
    let from = 0;
    let to = 0;
    const body = async (tx: situ.AsyncTransaction): Promise<void> => {
      const [payer, payee] = await tx.getMany(Account, [from, to]);
      if (payer === undefined || payee === undefined) throw new Error("situ lost a row");
      await Promise.all([
        tx.update(Account, from, { balance: payer.balance - 1n }),
        tx.update(Account, to, { balance: payee.balance + 1n }),
      ]);
    };
    let operations = 0;
    while (monotonicNs() < deadlineNs) {
      const cursor = this.#cursor;
      this.#cursor = (cursor + 2) & keyMask;
      from = keys[cursor];
      to = keys[cursor + 1];
      await db.transact(body);
      operations++;
    }
    return operations;
  }
}
