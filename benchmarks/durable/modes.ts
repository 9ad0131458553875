// What the log costs those who do not wait for it: the same transfers in a store with a log and in
// one without, in one process and in two on disjoint rows.
import type { BenchOptions } from "../harness/bench-options.ts";
import type { Progress } from "../harness/progress.ts";
import { perSecond, waitedPart } from "../harness/timed-run.ts";
import type { StorePlace } from "../memory/situ.ts";
import type { BankTask, Outcome } from "./bank-process.ts";
import { inBankProcesses } from "./bank-processes.ts";

export type Mode = "none" | "lazy";
export type Stores = Readonly<Record<Mode, StorePlace>>;

/** Transfers per second, one entry per round. */
export type Rates = Readonly<Record<Mode, number[]>>;

export interface ModesMeasured {
  readonly one: Rates;
  readonly two: Rates;
  /** Bytes per second that went to the log of one process, one entry per round. */
  readonly logRate: readonly number[];
  /** Checkpoints that Situ took by itself in the measured turns of "lazy" with one process. */
  readonly checkpoints: number;
  /** The part of its time that the one process waited for a processor, one entry per turn. */
  readonly waited: readonly number[];
}

const modes: readonly Mode[] = ["none", "lazy"];
/** V8 is done after a third of it. */
const warmUpMs = 600;

export async function measureModes(
  stores: Stores,
  rows: number,
  { rounds, roundMs, seed }: BenchOptions,
  progress: Progress,
): Promise<ModesMeasured> {
  const one: Rates = { none: [], lazy: [] };
  const two: Rates = { none: [], lazy: [] };
  const logRate: number[] = [];
  const waited: number[] = [];
  let checkpoints = 0;
  const half = rows >> 1;
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < modes.length; turn++) {
      const mode = modes[(turn + round) % modes.length];
      const task = { ...stores[mode], durability: mode, first: 0, rows, seed: seed + round };
      progress.show(`round ${round + 1} of ${rounds}: transfers in "${mode}", one process`);
      const [alone] = await runTogether([task], 4 * roundMs);
      one[mode].push(perSecond(alone.run));
      waited.push(waitedPart(alone.run));
      if (mode === "lazy") {
        const { endNs, startNs } = alone.run;
        logRate.push((alone.log.logBytes * 1e9) / (endNs - startNs));
        checkpoints += alone.checkpoints;
      }
      progress.show(`round ${round + 1} of ${rounds}: transfers in "${mode}", two processes`);
      const halves = [0, half].map((first) => ({ ...task, first, rows: half }));
      const both = await runTogether(halves, 4 * roundMs);
      two[mode].push(perSecond(...both.map(({ run }) => run)));
    }
  }
  return { one, two, logRate, checkpoints, waited };
}

function runTogether(tasks: readonly BankTask[], ms: number): Promise<Outcome[]> {
  return inBankProcesses(tasks, async (processes) => {
    const run = (forMs: number): Promise<Outcome[]> =>
      Promise.all(processes.map((process) => process.ask({ kind: "transfer", ms: forMs })));
    await run(warmUpMs);
    return run(ms);
  });
}
