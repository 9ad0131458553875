// How much of a store's memory can be used before it says SITU_FULL: rows of mixed sizes, put in by
// one process or by several at once. Counted are the bytes of the rows' values.
import { counted, type Figure } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { TrustContext, TrustMeasure, TrustResult } from "./measure.ts";
import { MIB } from "./mixed.ts";

/** MiB of rows that must fit 256 MiB, by the number of processes. */
const bars: readonly (readonly [processes: number, mebibytes: number])[] = [
  [1, 200],
  [4, 190],
  [16, 170],
];

export const mixedRows: TrustMeasure = {
  name: "mixed-rows",
  async run(context: TrustContext): Promise<TrustResult> {
    const figures: Figure[] = [];
    for (const [processes, atLeast] of bars) {
      const name = `rows of mixed sizes in 256 MiB, ${processes} process${processes > 1 ? "es" : ""}`;
      context.progress.show(name);
      const bytes = await fillTogether(context, processes);
      figures.push(counted(name, { atLeast }, bytes / MIB, "MiB"));
    }
    return { figures, notes: ["rows of 0 to 400 KB, cubed: each process puts them in until full"] };
  },
};

async function fillTogether(context: TrustContext, count: number): Promise<number> {
  const path = temporaryFolder(context.memoryFolder);
  const script = new URL("./mixed-rows-process.js", import.meta.url);
  const processes: MeasuringProcess<"fill", number>[] = [];
  for (let number = 0; number < count; number++) {
    const task = { path, memoryDir: path, number, seed: context.options.seed };
    processes.push(await MeasuringProcess.start(script, task));
  }
  const filled = await Promise.all(processes.map((each) => each.ask("fill")));
  await Promise.all(processes.map((each) => each.stop()));
  return filled.reduce((sum, bytes) => sum + bytes, 0);
}
