// One of the processes of two-processes.ts: opens the store, then runs what it is told and reports
// when it started and ended. CLOCK_MONOTONIC is the same clock in every process of the machine.
import { randomPairs } from "../harness/random.ts";
import type { SyncContestant } from "../harness/rounds.ts";
import { sink } from "../harness/sink.ts";
import { bareMemory, bareTransfer } from "./bare.ts";
import { openBank, type StorePlace, situTransfer } from "./situ.ts";

/** The process works on the rows first .. first + rows - 1. */
export interface ProcessTask extends StorePlace {
  readonly first: number;
  readonly rows: number;
  readonly seed: number;
}

export type Work = "situ" | "bare";
export type ToProcess =
  | { readonly kind: "run"; readonly work: Work; readonly ms: number }
  | { readonly kind: "stop" };
export type FromProcess =
  | { readonly kind: "ready" }
  | {
      readonly kind: "ran";
      readonly operations: number;
      readonly startNs: number;
      readonly endNs: number;
    };

const operationsPerCheck = 256;

async function main(task: ProcessTask): Promise<void> {
  const db = await openBank(task);
  const keys = randomPairs(task.rows, task.seed, task.first);
  const contestants: Record<Work, SyncContestant> = {
    situ: situTransfer(db, keys, task.first),
    bare: bareTransfer(bareMemory(task.rows), keys),
  };
  process.on("message", (message: ToProcess) => {
    if (message.kind === "run") send(run(contestants[message.work], message.ms));
    else void db.close().then(() => process.disconnect());
  });
  send({ kind: "ready" });
}

function run(contestant: SyncContestant, ms: number): FromProcess {
  let operations = 0;
  const startNs = monotonicNs();
  const deadlineNs = startNs + ms * 1e6;
  let endNs = startNs;
  while (endNs < deadlineNs) {
    sink.value = contestant.run(operationsPerCheck);
    operations += operationsPerCheck;
    endNs = monotonicNs();
  }
  return { kind: "ran", operations, startNs, endNs };
}

function monotonicNs(): number {
  return Number(process.hrtime.bigint());
}

function send(message: FromProcess): void {
  process.send?.(message);
}

await main(JSON.parse(process.argv[2]) as ProcessTask);
