/** Starting the threads of this layer: one bundled script beside the package's. */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { WorkerTask } from "./worker.ts";

/** Seen from the bundle, from the compiled source, and from the source. */
const PLACES = ["./situ-device.js", "../../situ-device.js", "../../dist/situ-device.js"];

export function startThread(task: WorkerTask): Worker {
  return new Worker(scriptFile(), {
    workerData: task,
    name: `situ ${task.role}`,
    // What the process was started with is meant for its own script: loaders, --input-type, …
    execArgv: [],
  });
}

function scriptFile(): string {
  for (const place of PLACES) {
    const file = fileURLToPath(new URL(place, import.meta.url));
    if (existsSync(file)) return file;
  }
  throw new Error("situ-device.js is not beside the package: was it built?");
}
