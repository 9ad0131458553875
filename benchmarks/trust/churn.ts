// How much memory rows of mixed sizes take after they have been replaced for a while by four
// processes, against what is live; and how much of it can be used again when all are deleted.
import { counted } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { ChurnOrder, ChurnTask } from "./churn-process.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "./measure.ts";
import { MIB, openMixed } from "./mixed.ts";

const processCount = 4;
/** Rows of each process at a time: about 42 MiB live together. */
const rows = 110;
const churnMs = 5 * 60_000;
const quickChurnMs = 10_000;
/** Memory that may be used beyond 1.4 times what is live. */
const spareMebibytes = 16;

export const churn: TrustMeasure = {
  name: "churn",
  async run({ options, progress, memoryFolder }: TrustContext): Promise<TrustResult> {
    const path = temporaryFolder(memoryFolder);
    const place = { path, memoryDir: path };
    const script = new URL("./churn-process.js", import.meta.url);
    const processes: MeasuringProcess<ChurnOrder, number>[] = [];
    for (let number = 0; number < processCount; number++) {
      const task: ChurnTask = { ...place, number, seed: options.seed, rows };
      processes.push(await MeasuringProcess.start(script, task));
    }
    const db = await openMixed(place);
    const ms = options.quick ? quickChurnMs : churnMs;
    progress.show(`churn for ${ms / 1_000} s`);
    const live = await together(processes, { order: "churn", ms });
    const { reservedBytes, freeBytes } = db.stats().memory;
    const used = reservedBytes - freeBytes;
    progress.show("deleting all rows, filling the store again");
    await together(processes, { order: "delete" });
    // One of the processes, so that the memory that the others had must have come back.
    const again = await processes[0].ask({ order: "fill" });
    const refilled = db.stats().memory;
    await Promise.all(processes.map((each) => each.stop()));
    await db.close();
    const allowed = 1.4 * live + spareMebibytes * MIB;
    return {
      figures: [
        counted(
          "memory used after churn, against 1.4 times live and 16 MiB",
          { atMost: 1 },
          used / allowed,
          "times",
        ),
        counted(
          "memory used again after all rows were deleted, of 256 MiB",
          { atLeast: 240 },
          (refilled.reservedBytes - refilled.freeBytes) / MIB,
          "MiB",
        ),
      ],
      notes: [
        `churn: ${processCount} processes, ${ms / 1_000} s, ${mebibytes(live)} MiB live, ` +
          `${mebibytes(used)} MiB used; refilled with ${mebibytes(again)} MiB of rows`,
      ],
    };
  },
};

async function together(
  processes: readonly MeasuringProcess<ChurnOrder, number>[],
  message: ChurnOrder,
): Promise<number> {
  const answers = await Promise.all(processes.map((each) => each.ask(message)));
  return answers.reduce((sum, bytes) => sum + bytes, 0);
}

function mebibytes(bytes: number): string {
  return (bytes / MIB).toFixed(0);
}
