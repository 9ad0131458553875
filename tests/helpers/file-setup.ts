/**
 * Runs before each test file, in its worker. Temporary folders and the memory of stores lie in two
 * folders of the file; whatever is in them at its end, and every process that it has started and
 * that still runs, fails the file and is removed. If the worker does not get so far, the guard of
 * the run does the same (benchmarks/harness/guard/).
 */

import { appendFileSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { afterAll, beforeEach, expect } from "vitest";
import { ownerOfThis, redirectFolders } from "../../benchmarks/harness/guard/guard.ts";
import { kill, processesOf } from "../../benchmarks/harness/guard/owned.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";
import { projectRoot } from "./project-root.ts";
import { commandToRepeat, startFile, startTest } from "./seed.ts";

/** Far more than a process needs that was told to end. */
const END_MS = 20_000;

const owner = ownerOfThis(expect.getState().testPath ?? "a test file");
const { disk, memory } = redirectFolders(owner);
startFile();

/** Of the test file, from the folder of the project. */
const path = relative(projectRoot(), expect.getState().testPath ?? "");

beforeEach(({ onTestFailed }) => {
  startTest();
  onTestFailed(({ task }) => {
    const command = commandToRepeat(path, task.fullTestName ?? task.name);
    for (const error of task.result?.errors ?? []) {
      const message = `${error.message}\n\nTo repeat it: ${command}\n`;
      if (error.stack !== undefined) error.stack = error.stack.replace(error.message, message);
      error.message = message;
    }
  });
});

/** CPU time of this process and of those it has waited for, in ms; wall time says little on a busy machine. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  // After the name of the command: state, …; the 14th and 15th are cutime and cstime, in 10 ms.
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ");
  return Math.round((user + system) / 1000) + (Number(fields[13]) + Number(fields[14])) * 10;
}

// SITU_TEST_TIMES=<file> gets a line for each test file: CPU time, wall time, path.
const times = process.env.SITU_TEST_TIMES;
if (times !== undefined) {
  const startMs = performance.now();
  const startCpuMs = cpuMs();
  afterAll(() => {
    const wallMs = Math.round(performance.now() - startMs);
    appendFileSync(times, `${cpuMs() - startCpuMs} ${wallMs} ${path}\n`);
  });
}

afterAll(async () => {
  // What would be released at the end of the worker.
  releaseAll();
  const deadline = performance.now() + END_MS;
  let processes = processesOf(owner.identity, [disk, memory]);
  while (processes.length > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    processes = processesOf(owner.identity, [disk, memory]);
  }
  kill(processes);
  const left = processes.map(({ pid, command }) => `process ${pid}: ${command}`);
  for (const folder of [disk, memory]) {
    for (const name of readdirSync(folder)) {
      left.push(join(folder, name));
      rmSync(join(folder, name), { recursive: true, force: true });
    }
  }
  expect(left, "what the test file has left behind").toEqual([]);
}, 2 * END_MS);
