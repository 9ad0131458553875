/**
 * The threads of this layer, by role. Each is an executor of its own in the store, so its death is
 * noticed, and what it held given back, as that of any other.
 *
 *   log          writes the log, and has checkpoints taken
 *   checkpoint   takes one checkpoint
 *   recovery     rebuilds a part of memory from checkpoint and log
 */

import { parentPort, workerData } from "node:worker_threads";
import { Executor } from "../engine/executor.ts";
import { FileLockLeases } from "../engine/leases/file-lock.ts";
import { NodeFiles } from "../folder/node-files.ts";
import { bootId } from "../memory/boot.ts";
import { LOG_STARTER } from "../memory/control.ts";
import { MappedSegments } from "../memory/mapped-segments.ts";
import { joinMemory } from "../memory/mapped-store.ts";
import { sleep } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { CheckpointSchedule } from "./checkpoint/schedule.ts";
import { takeCheckpoint } from "./checkpoint/take.ts";
import { GroupCommit } from "./group-commit.ts";
import { runLog } from "./loop.ts";
import { type RecoveryTask, recoverPart } from "./recovery/part.ts";
import { ENDED, type LogTask, STOP } from "./tasks.ts";

/** How often the log is looked after while a last checkpoint is being taken. */
const END_ROUND_MS = 2;

export type WorkerTask = LogTask | RecoveryTask;

/** Runs the task that the thread was started for. */
export async function runWorker(): Promise<void> {
  const task = workerData as WorkerTask;
  if (task.role === "recovery") recoverPart(task, (told) => parentPort?.postMessage(told));
  else if (task.role === "checkpoint") checkpoint(task);
  else await writeLog(task);
}

async function writeLog(task: LogTask): Promise<void> {
  try {
    await writeLogIfNeeded(task);
  } finally {
    Atomics.store(task.signals, ENDED, 1);
  }
}

async function writeLogIfNeeded(task: LogTask): Promise<void> {
  const executor = openExecutor(task);
  const log = new GroupCommit(executor, new NodeFiles(task.path), task.logId);
  const isWriter = log.tryBegin();
  Atomics.compareExchange(executor.memory.control.i32, LOG_STARTER, task.starter, 0);
  if (!isWriter) {
    executor.close();
    return;
  }
  const schedule = new CheckpointSchedule(executor, task);
  try {
    await runLog(log, {
      isStopped: () => Atomics.load(task.signals, STOP) !== 0,
      lookAfterCheckpoints: () => schedule.look(),
    });
  } finally {
    await endCheckpoints(log, schedule);
    log.end();
    executor.close();
  }
}

/** One that must be waited for needs the log until its end. */
async function endCheckpoints(log: GroupCommit, schedule: CheckpointSchedule): Promise<void> {
  let isOver = false;
  const stopping = schedule.stop().finally(() => {
    isOver = true;
  });
  while (!isOver) {
    log.round();
    await sleep(END_ROUND_MS);
  }
  await stopping;
}

function checkpoint(task: LogTask): void {
  const executor = openExecutor(task);
  try {
    const taken = takeCheckpoint(executor, new NodeFiles(task.path), task);
    parentPort?.postMessage(taken);
  } finally {
    executor.close();
  }
}

function openExecutor({ memory: folder }: LogTask): Executor {
  const memory = joinMemory(new MappedSegments(folder), bootId());
  if (memory === undefined) throw new SituError("SITU_CLOSED", `${folder} is gone`);
  return Executor.open(memory, new FileLockLeases(folder), true);
}
