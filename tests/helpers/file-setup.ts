/**
 * Runs before each test file, in its worker. Temporary folders and the memory of stores lie in two
 * folders of the file; whatever is in them at its end, and every process that it has started and
 * that still runs, fails the file and is removed. If the worker does not get so far, the guard of
 * the run does the same (benchmarks/harness/guard/).
 */

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect } from "vitest";
import { ownerOfThis, redirectFolders } from "../../benchmarks/harness/guard/guard.ts";
import { kill, processesOf } from "../../benchmarks/harness/guard/owned.ts";
import { releaseAll } from "../../benchmarks/harness/resources.ts";

/** Far more than a process needs that was told to end. */
const END_MS = 20_000;

const owner = ownerOfThis(expect.getState().testPath ?? "a test file");
const { disk, memory } = redirectFolders(owner);

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
