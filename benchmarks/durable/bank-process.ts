// A process that has a store open and does with it what it is told.
import { setTimeout as sleep } from "node:timers/promises";
import { serve, taskOf } from "../harness/process-side.ts";
import { randomKeys, randomPairs } from "../harness/random.ts";
import { monotonicNs, runEach, runFor, type TimedRun } from "../harness/timed-run.ts";
import { Account, type Bank, loadBank } from "../memory/situ.ts";
import { situTransfer } from "../memory/situ-transfer.ts";
import {
  type DurablePlace,
  type LogFigures,
  logFigures,
  logSince,
  openDurableBank,
  situUpdate,
  TransfersInFlight,
} from "./situ.ts";

/** The process works on the rows first .. first + rows - 1. */
export interface BankTask extends DurablePlace {
  readonly first: number;
  readonly rows: number;
  readonly seed: number;
}

export type Order =
  | { readonly kind: "load" }
  /** One after another, each in a call that returns when it is committed, as the mode says. */
  | { readonly kind: "transfer"; readonly ms: number }
  /** The same, and each is timed: the run is a `TimedEach`. */
  | { readonly kind: "transfer-one-by-one"; readonly ms: number }
  | { readonly kind: "transfer-in-flight"; readonly ms: number; readonly clients: number }
  /** Updates of 8 bytes. */
  | { readonly kind: "update"; readonly updates: number }
  | { readonly kind: "checkpoint" }
  /** Transfers from the moment that a checkpoint is asked for until it is on disk. */
  | { readonly kind: "transfer-beside-checkpoint" }
  /** Without leaving the store in any order. */
  | { readonly kind: "die" };

export interface Outcome {
  readonly run: TimedRun;
  /** What went to the log for it. */
  readonly log: LogFigures;
  /** Checkpoints taken meanwhile, and the last one. */
  readonly checkpoints: number;
  readonly lastCheckpoint: Checkpoint | undefined;
}

export type Checkpoint = NonNullable<ReturnType<Bank["stats"]>["durability"]["lastCheckpoint"]>;

const task = taskOf<BankTask>();
const db = await openDurableBank(task);
const pairs = randomPairs(task.rows, task.seed, task.first);
const transfer = situTransfer(db, Account, pairs, task.first);
const inFlight = new TransfersInFlight(db, pairs);
const update = situUpdate(db, randomKeys(task.rows, task.seed, task.first));
/** Between looks at whether the checkpoint is there. */
const sliceMs = 10;

async function perform(order: Order): Promise<TimedRun> {
  switch (order.kind) {
    case "load":
      return timed(task.rows, () => loadBank(db, task.rows));
    case "transfer":
      return runFor(transfer, order.ms);
    case "transfer-one-by-one":
      return runEach(transfer, order.ms);
    case "transfer-in-flight":
      return { ...(await inFlight.runFor(order.clients, order.ms)), waitedNs: 0 };
    case "update":
      return timed(order.updates, () => update.run(order.updates));
    case "checkpoint":
      return timed(1, () => db.checkpoint());
    case "transfer-beside-checkpoint":
      return besideCheckpoint();
    case "die":
      process.kill(process.pid, "SIGKILL");
      await sleep(60_000);
      throw new Error("the process has survived SIGKILL");
  }
}

async function timed(operations: number, work: () => unknown): Promise<TimedRun> {
  const startNs = monotonicNs();
  await work();
  return { operations, startNs, endNs: monotonicNs(), waitedNs: 0 };
}

/** The transfers do not let the event loop turn: what the checkpoint needs runs in other threads. */
async function besideCheckpoint(): Promise<TimedRun> {
  const before = db.stats().durability.checkpoints;
  const taken = db.checkpoint();
  const runs: TimedRun[] = [];
  while (db.stats().durability.checkpoints === before) runs.push(runFor(transfer, sliceMs));
  await taken;
  return {
    operations: runs.reduce((sum, { operations }) => sum + operations, 0),
    startNs: runs[0].startNs,
    endNs: runs[runs.length - 1].endNs,
    waitedNs: runs.reduce((sum, { waitedNs }) => sum + waitedNs, 0),
  };
}

/** All that was committed is in the log then, and counted. */
async function settle(): Promise<void> {
  if (task.durability !== "none") await db.durable();
}

serve<Order, Outcome>({
  async handle(order, answer) {
    await settle();
    const log = logFigures(db);
    const { checkpoints } = db.stats().durability;
    const run = await perform(order);
    await settle();
    const now = db.stats().durability;
    answer({
      run,
      log: logSince(db, log),
      checkpoints: now.checkpoints - checkpoints,
      lastCheckpoint: now.lastCheckpoint,
    });
  },
  close: () => db.close(),
});
