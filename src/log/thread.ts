/** Starting the threads of this layer: one bundled script beside the package's. */

import { Worker } from "node:worker_threads";
import { threadScript } from "../runtime/thread-script.ts";
import type { WorkerTask } from "./worker.ts";

/** The script of all of them. */
export const LOG_SCRIPT = "situ-log.js";

export function startThread(task: WorkerTask): Worker {
  return new Worker(threadScript(LOG_SCRIPT), {
    workerData: task,
    name: `situ ${task.role}`,
    // What the process was started with is meant for its own script: loaders, --input-type, …
    execArgv: [],
  });
}
