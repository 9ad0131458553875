/** Starting the threads of this layer: one bundled script beside the package's. */

import { Worker } from "node:worker_threads";
import { threadScript } from "../runtime/thread-script.ts";
import type { WorkerTask } from "./worker.ts";

export function startThread(task: WorkerTask): Worker {
  return new Worker(threadScript("situ-log.js"), {
    workerData: task,
    name: `situ ${task.role}`,
    // What the process was started with is meant for its own script: loaders, --input-type, …
    execArgv: [],
  });
}
