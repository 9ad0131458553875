// What checkpoints cost: their size, how long they take beside transfers, and what the transfers
// lose meanwhile. Full ones, after transfers all over the table, and incremental ones, after
// transfers among a hundredth of the rows.
import type { BenchOptions } from "../harness/bench-options.ts";
import type { Progress } from "../harness/progress.ts";
import { perSecond } from "../harness/timed-run.ts";
import type { StorePlace } from "../memory/situ.ts";
import type { Checkpoint } from "./bank-process.ts";
import { inBankProcess } from "./bank-processes.ts";

export interface CheckpointTurn {
  readonly checkpoint: Checkpoint;
  /** Transfers per second, before it and until it was on disk. */
  readonly before: number;
  readonly beside: number;
}

export interface CheckpointsMeasured {
  /** After changes all over the table. */
  readonly all: readonly CheckpointTurn[];
  /** After changes to a hundredth of it. */
  readonly few: readonly CheckpointTurn[];
}

export async function measureCheckpoints(
  place: StorePlace,
  rows: number,
  { rounds, roundMs, seed }: BenchOptions,
  progress: Progress,
): Promise<CheckpointsMeasured> {
  const turns = Math.min(rounds, 5);
  const measure = (among: number): Promise<CheckpointTurn[]> => {
    const durable = { ...place, durability: "lazy", noCheckpoints: true } as const;
    return inBankProcess({ ...durable, first: 0, rows: among, seed }, async (process) => {
      const taken: CheckpointTurn[] = [];
      await process.ask({ kind: "transfer", ms: roundMs });
      // What was changed before, by anybody, is in this one.
      await process.ask({ kind: "checkpoint" });
      for (let turn = 0; turn < turns; turn++) {
        progress.show(`round ${turn + 1} of ${turns}: checkpoints`);
        const { run: before } = await process.ask({ kind: "transfer", ms: 2 * roundMs });
        const outcome = await process.ask({ kind: "transfer-beside-checkpoint" });
        const { run, lastCheckpoint: checkpoint } = outcome;
        if (checkpoint === undefined) throw new Error("no checkpoint was taken");
        taken.push({ checkpoint, before: perSecond(before), beside: perSecond(run) });
      }
      return taken;
    });
  };
  return { all: await measure(rows), few: await measure(Math.ceil(rows / 100)) };
}
