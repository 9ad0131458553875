// The processor time of a process that has a `lazy` store open and does nothing with it: all of its
// threads, the writer of the log included.
import { diskFolder } from "../durable/disk.ts";
import { counted } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { temporaryFolder } from "../harness/resources.ts";
import type { IdleOrder, IdleOutcome, IdleTask } from "./idle-process.ts";
import type { TrustMeasure } from "./measure.ts";

const BAR = { atMost: 2 };

export const idle: TrustMeasure = {
  name: "idle",
  async run({ options, progress, memoryFolder }) {
    const task: IdleTask = {
      path: temporaryFolder(diskFolder()),
      memoryDir: temporaryFolder(memoryFolder),
    };
    const script = new URL("./idle-process.js", import.meta.url);
    const started = await MeasuringProcess.start<IdleOrder, IdleOutcome>(script, task);
    const ms = options.quick ? 2_000 : 10_000;
    progress.show(`idle: ${ms / 1_000} s`);
    const { cpuMs, wallMs } = await started.ask({ ms });
    await started.stop();
    const perSecond = cpuMs / (wallMs / 1_000);
    return {
      figures: [
        counted("idle processor time of an open lazy store", BAR, perSecond, "ms a second"),
      ],
      notes: [
        `idle: user and system time of all threads of one process, ${ms / 1_000} s after a second of rest`,
      ],
    };
  },
};
