/** The entry of the NIC worker's script: of a node, of a memory server, of a node with the protocol "xenic", or of its procedures. */

import { workerData } from "node:worker_threads";
import { isMemoryTask, runMemoryNic } from "./memory-nic.ts";
import { runNic } from "./nic-worker.ts";
import { isProcedureTask, runProcedureWorker } from "./xenic/procedure-worker.ts";
import { isXenicTask, runXenicNic } from "./xenic/xenic-nic-worker.ts";

if (isMemoryTask(workerData)) await runMemoryNic(workerData);
else if (isXenicTask(workerData)) await runXenicNic(workerData);
else if (isProcedureTask(workerData)) await runProcedureWorker(workerData);
else await runNic();
