/** The lease thread, and no other of its process, runs before all ordinary threads. */

import { readdirSync, readFileSync } from "node:fs";
import { platform } from "node:os";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";

const SCRIPT = `
  const { parentPort } = require("node:worker_threads");
  import(${JSON.stringify(new URL("../../dist/src/fabric/lease-priority.js", import.meta.url).href)})
    .then(({ goFirst }) => parentPort.postMessage(goFirst()));
  parentPort.on("message", () => parentPort.close());
`;
/** In /proc/self/task/…/stat, after the name. */
const POLICY_FIELD = 38;
const ROUND_ROBIN = 2;

function realTimeThreads(): number {
  const policies = readdirSync("/proc/self/task").map((task) => {
    const stat = readFileSync(`/proc/self/task/${task}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[POLICY_FIELD]);
  });
  return policies.filter((policy) => policy === ROUND_ROBIN).length;
}

test.runIf(platform() === "linux")("one thread has the real-time class, if it may", async () => {
  const worker = new Worker(SCRIPT, { eval: true });
  const goesFirst = await new Promise<boolean>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
  });
  expect(realTimeThreads()).toBe(goesFirst ? 1 : 0);
  worker.postMessage("end");
  await new Promise((resolve) => worker.once("exit", resolve));
});
