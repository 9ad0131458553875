// The processor time of a process that has a `lazy` store open and does nothing with it: all of its
// threads, the writer of the log included. It is measured after V8 has come to rest: eight seconds after the first
// full garbage collection of a thread (mapping the store's memory causes one) V8 collects up to three times more, on
// all of its helper threads, to give memory back. That happens once; what it takes is noted, and so is what a
// process takes that has one timer and no store.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { diskFolder } from "../durable/disk.ts";
import { counted } from "../harness/figures.ts";
import { MeasuringProcess } from "../harness/processes.ts";
import { onRelease, temporaryFolder } from "../harness/resources.ts";
import type { IdleOrder, IdleOutcome, IdleTask } from "./idle-process.ts";
import type { TrustMeasure } from "./measure.ts";

const BAR = { atMost: 2 };
/** What opening and compiling takes is over by then. */
const OPENED_MS = 1_000;
/** And V8's collections after it, in both threads. */
const SETTLED_MS = 10_000;

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
    progress.show(`idle: three times ${ms / 1_000} s`);
    const early = perSecond(await started.ask({ restMs: OPENED_MS, ms }));
    const restMs = options.quick ? 0 : SETTLED_MS;
    const settled = perSecond(await started.ask({ restMs, ms }));
    await started.stop();
    const bare = await bareProcess(OPENED_MS, ms);
    return {
      figures: [counted("idle processor time of an open lazy store", BAR, settled, "ms a second")],
      notes: [
        `idle: user and system time of all threads of one process, during ${ms / 1_000} s, ` +
          `${(OPENED_MS + ms + restMs) / 1_000} s after the open; during the same time one second after the ` +
          `open ${early.toFixed(2)} ms a second; a process with one timer and no store ${bare.toFixed(2)}`,
      ],
    };
  },
};

function perSecond({ cpuMs, wallMs }: IdleOutcome): number {
  return cpuMs / (wallMs / 1_000);
}

/** The same of a process that opens nothing. */
async function bareProcess(restMs: number, ms: number): Promise<number> {
  const script = fileURLToPath(new URL("./bare-process.js", import.meta.url));
  const child = spawn(process.execPath, [script, "count", JSON.stringify({ restMs, ms })], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  onRelease(() => {
    if (child.exitCode === null) child.kill("SIGKILL");
  });
  const ended = new Promise<never>((_, reject) => {
    child.on("exit", () => reject(new Error("the process without a store ended early")));
  });
  const told = new Promise<number>((resolve) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve(Number(line)));
  });
  const used = await Promise.race([told, ended]);
  ended.catch(() => {});
  child.stdin.end();
  return used;
}
