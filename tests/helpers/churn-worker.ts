/** A thread that works at random in a store of a test (churn.ts) until it has done so many steps. */

import { parentPort, workerData } from "node:worker_threads";
import { Executor } from "../../src/engine/executor.ts";
import { FileLockLeases } from "../../src/engine/leases/file-lock.ts";
import type { Leases } from "../../src/engine/leases/leases.ts";
import { HEAD, TAIL } from "../../src/engine/slot.ts";
import { controlBytes, type Geometry } from "../../src/memory/control.ts";
import { MappedSegments } from "../../src/memory/mapped-segments.ts";
import { CONTROL_NAME, StoreMemory } from "../../src/memory/store-memory.ts";
import { sleepSync } from "../../src/runtime/clock.ts";
import { Random } from "../../src/runtime/random.ts";
import { Churn, type ChurnStore } from "./churn.ts";

export interface ChurnTask {
  readonly folder: string;
  readonly geometry: Geometry;
  readonly seed: number;
  readonly steps: number;
}

/** The store, as this thread has it. */
class AttachedStore implements ChurnStore {
  readonly #task: ChurnTask;
  readonly memory: StoreMemory;
  readonly #leases = new Map<Executor, Leases>();

  constructor(task: ChurnTask) {
    this.#task = task;
    this.memory = this.#attach();
  }

  open(): Executor {
    const leases = new FileLockLeases(this.#task.folder);
    const executor = Executor.open(this.#attach(), leases);
    this.#leases.set(executor, leases);
    return executor;
  }

  close(executor: Executor): void {
    executor.close();
    this.#leases.delete(executor);
  }

  kill(executor: Executor): void {
    this.#leases.get(executor)?.close();
  }

  #attach(): StoreMemory {
    const { folder, geometry } = this.#task;
    const segments = new MappedSegments(folder);
    const control = segments.attach(CONTROL_NAME, controlBytes(geometry));
    return new StoreMemory(segments, control, geometry);
  }
}

const task = workerData as ChurnTask;
const store = new AttachedStore(task);
const { control } = store.memory;

/** Waits until the log has caught up with all executors of this thread. */
function awaitLog(): void {
  for (const executor of churn.executors) {
    const at = control.slotAt(executor.slot);
    const used = (): number =>
      (Atomics.load(control.i32, at + HEAD) - Atomics.load(control.i32, at + TAIL)) | 0;
    while (4 * used() > task.geometry.journalBytes / 8) sleepSync(1);
  }
}

const churn: Churn = new Churn(store, new Random(task.seed), 1, awaitLog);
for (let step = 0; step < task.steps; step++) churn.step();
for (const executor of [...churn.executors]) store.close(executor);
parentPort?.postMessage("done");
