// A process that has the store open and runs transfers, or the bare loop, when it is told.
import { serve, taskOf } from "../harness/process-side.ts";
import { randomPairs } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { runFor, type TimedRun } from "../harness/timed-run.ts";
import { bareMemory, bareTransfer } from "./bare.ts";
import { Account, openBank, type StorePlace } from "./situ.ts";
import { situTransfer } from "./situ-transfer.ts";

/** The process works on the rows first .. first + rows - 1. */
export interface TransferTask extends StorePlace {
  readonly first: number;
  readonly rows: number;
  readonly seed: number;
}

export type Work = "situ" | "bare";

export interface RunTransfers {
  readonly work: Work;
  readonly ms: number;
}

const task = taskOf<TransferTask>();
const db = await openBank(task);
const keys = randomPairs(task.rows, task.seed, task.first);
const contestants: Record<Work, SyncContestant> = {
  situ: situTransfer(db, Account, keys, task.first),
  bare: bareTransfer(bareMemory(task.rows), keys),
};

serve<RunTransfers, TimedRun>({
  handle: ({ work, ms }, answer) => answer(runFor(contestants[work], ms)),
  close: () => db.close(),
});
