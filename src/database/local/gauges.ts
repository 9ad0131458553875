/** How things are now in a store, where `stats()` does not say: for those who watch it. */

import { DISK_FULL, FAILED, LOST } from "../../engine/durability.ts";
import type { Executor } from "../../engine/executor.ts";
import { HEAD, slotsInUse, TAIL } from "../../engine/slot.ts";
import { figureOf } from "../../log/figures.ts";
import { controlBytes, LOG_BLOCKER } from "../../memory/control.ts";

export interface Gauges {
  /** Memory of the store beside that of rows and versions. */
  readonly journalBytes: number;
  readonly controlBytes: number;
  /** Undefined in a store that has no log. */
  readonly log: LogGauges | undefined;
}

export interface LogGauges {
  /** What was committed and is not known to be on disk: in the journals, and since which epoch. */
  readonly lagBytes: number;
  readonly lagEpochs: number;
  readonly hasWriter: boolean;
  readonly failedCheckpoints: number;
  /** When the last checkpoint was begun (wall clock); 0 if there was none. */
  readonly checkpointAtMs: number;
  /** Why the log does not go on, if it does not. */
  readonly problem: string | undefined;
}

export function gaugesOf(executor: Executor): Gauges {
  const { memory, durability } = executor;
  const { control } = memory;
  let journals = 0;
  for (let slot = 0; slot < slotsInUse(control); slot++) {
    if (memory.hasJournal(slot)) journals++;
  }
  return {
    journalBytes: journals * control.geometry.journalBytes,
    // Without the room for regions that the store may not have.
    controlBytes: controlBytes(control.geometry, control.regionLimit),
    log: durability.isLogged ? logGauges(executor) : undefined,
  };
}

function logGauges({ memory, durability, epochs }: Executor): LogGauges {
  const lagBytes = pendingBytes(memory.control);
  return {
    lagBytes,
    // The durable epoch stays where it is while there is nothing to write.
    lagEpochs: lagBytes === 0 ? 0 : Math.max(epochs.current() - durability.epoch, 0),
    hasWriter: durability.writer !== undefined,
    failedCheckpoints: figureOf(memory, "failedCheckpoints"),
    checkpointAtMs: figureOf(memory, "checkpointAtMs"),
    problem: logProblem({ memory, durability }),
  };
}

/** What lies in the journals, from the first record that is not in the log yet. */
function pendingBytes(control: Executor["memory"]["control"]): number {
  let words = 0;
  for (let slot = 0; slot < slotsInUse(control); slot++) {
    const at = control.slotAt(slot);
    const tail = Atomics.load(control.i32, at + TAIL);
    // Positions go round in a circle of 32 bits.
    words += (Atomics.load(control.i32, at + HEAD) - tail) >>> 0;
  }
  return words * 4;
}

function logProblem({
  memory,
  durability,
}: Pick<Executor, "memory" | "durability">): string | undefined {
  const { state } = durability;
  if (state === LOST) return "the store's memory files were removed: nothing more is committed";
  if (state === FAILED) return "the log has failed: nothing more becomes durable";
  if (state === DISK_FULL) return "the disk of the log is full";
  if (durability.writer === undefined) return "nobody writes the log";
  if (Atomics.load(memory.control.i32, LOG_BLOCKER) === 0) return undefined;
  return "a process is committing and does not move: the log waits for it";
}
