// Do two processes on disjoint keys do twice the work of one? Two children have the store open and
// half of the keys each; a round lets one work, then both. The bare loop, which shares nothing,
// goes through the same rounds: it says how much a second process gets from this machine at all.
import { MeasuringProcess } from "../harness/processes.ts";
import type { Progress } from "../harness/progress.ts";
import type { RoundsPlan } from "../harness/rounds.ts";
import { perSecond, type TimedRun } from "../harness/timed-run.ts";
import type { StorePlace } from "./situ.ts";
import type { RunTransfers, TransferTask, Work } from "./transfer-process.ts";

/** Transfers per second, one entry per round. */
export interface Scaling {
  readonly one: number[];
  readonly two: number[];
}

export type TransferProcess = MeasuringProcess<RunTransfers, TimedRun>;

export async function measureTwoProcesses(
  place: StorePlace,
  rows: number,
  seed: number,
  plan: RoundsPlan,
  progress: Progress,
): Promise<Record<Work, Scaling>> {
  const half = rows >> 1;
  progress.show("starting two processes");
  const processes = await Promise.all([
    startTransferProcess({ ...place, first: 0, rows: half, seed }),
    startTransferProcess({ ...place, first: half, rows: half, seed }),
  ]);
  const scalings: Record<Work, Scaling> = {
    situ: { one: [], two: [] },
    bare: { one: [], two: [] },
  };
  const works = Object.keys(scalings) as Work[];
  for (const work of works) await runTogether(processes, work, plan.roundMs);
  for (let round = 0; round < plan.rounds; round++) {
    for (const work of works) {
      progress.show(`round ${round + 1} of ${plan.rounds}: one process and two, ${work}`);
      // Alternating who works alone: one of them may sit on the slower core or memory.
      const alone = processes[round % processes.length];
      scalings[work].one.push(await runTogether([alone], work, plan.roundMs));
      scalings[work].two.push(await runTogether(processes, work, plan.roundMs));
    }
  }
  await Promise.all(processes.map((process) => process.stop()));
  return scalings;
}

export function startTransferProcess(task: TransferTask): Promise<TransferProcess> {
  return MeasuringProcess.start(new URL("./transfer-process.js", import.meta.url), task);
}

async function runTogether(
  processes: readonly TransferProcess[],
  work: Work,
  ms: number,
): Promise<number> {
  return perSecond(...(await Promise.all(processes.map((process) => process.ask({ work, ms })))));
}
