/**
 * Rebuilds the memory of a store as a plan says: threads fill it (part.ts), then what belongs to
 * the whole is set: the catalogue, the epoch, which goes on after the last one in the log, and
 * where the log is to go on. Nobody sees the memory before its maker publishes it, so whoever
 * dies over this leaves nothing behind that counts.
 */

import { Durability } from "../../engine/durability.ts";
import { raiseEpoch } from "../../engine/epoch.ts";
import type { Damage } from "../../folder/files.ts";
import { NodeFiles } from "../../folder/node-files.ts";
import { BlockTable } from "../../memory/blocks.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD, REGION_LIMIT, SHARINGS } from "../../memory/control.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { LOST_EPOCHS } from "../../runtime/limits.ts";
import { setFigure } from "../figures.ts";
import { startThread } from "../thread.ts";
import { type PartProgress, type RecoveryTask, rebuild } from "./part.ts";
import type { RecoveryPlan } from "./plan.ts";
import type { RecoveryProgress } from "./progress.ts";

/** Below this, starting threads takes longer than the work. */
const ALONE_BYTES = 4 << 20;

export interface RecoverOptions {
  /** The store's folder, and the folder of its memory. */
  readonly path: string;
  readonly folder: string;
  readonly threads: number;
  /** The regions that the store is to have, if what it holds fits them. */
  readonly regionLimit: number;
  readonly onProgress: ((progress: RecoveryProgress) => void) | undefined;
}

/** How many transactions were replayed; or what a checkpoint turned out to be damaged by. */
export async function recover(
  plan: RecoveryPlan,
  memory: StoreMemory,
  options: RecoverOptions,
): Promise<{ transactions: number } | Damage> {
  const { path, folder } = options;
  const isSmall = plan.checkpointBytes + plan.logBytes < ALONE_BYTES;
  const threads = isSmall ? 1 : options.threads;
  const progress = new Progress(plan, options, threads);
  if (threads === 1) {
    rebuild(new NodeFiles(path), plan, memory, 0, 1, (part) => progress.hear(part));
  } else {
    const tasks = Array.from({ length: threads }, (_, part): RecoveryTask => {
      return { role: "recovery", path, folder, plan, part, parts: threads };
    });
    await Promise.all(tasks.map((task) => runTask(task, (part) => progress.hear(part))));
  }
  if (progress.damage !== undefined) return progress.damage;
  finishMemory(plan, memory, options.regionLimit);
  return { transactions: progress.records };
}

/** What belongs to the store as a whole. */
export function finishMemory(
  plan: RecoveryPlan,
  memory: StoreMemory,
  regionLimit = memory.control.geometry.regions,
): void {
  const { control } = memory;
  let regions = control.geometry.regions;
  while (regions > 0 && !memory.isReady(regions - 1)) regions--;
  // What the log fills and empties again beyond the limit was given back when the store was made smaller.
  const blocks = new BlockTable(memory);
  while (regions > regionLimit && blocks.clearIfEmpty(regions - 1)) {
    memory.giveRegionBack(--regions, 0);
  }
  // Regions follow each other, also those in which nothing was left.
  for (let id = 0; id < regions; id++) memory.ensureRegion(id);
  Atomics.store(control.i32, REGION_LIMIT, Math.max(regions, regionLimit));
  control.i32[CATALOGUE_REGION] = plan.catalogue.regionId + 1;
  control.i32[CATALOGUE_WORD] = plan.catalogue.word;
  // Every block is one that its owner left.
  control.i32[SHARINGS] = 1;
  // Beyond every TID there is, and every one that was lost: another machine may remember having read it.
  raiseEpoch(control, plan.epoch + LOST_EPOCHS);
  setFigure(memory, "originSegment", plan.lastSegment);
  const durability = new Durability(memory);
  durability.setWritten(plan.logEpoch);
  durability.publish(plan.epoch, () => {});
}

function runTask(task: RecoveryTask, hear: (progress: PartProgress) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = startThread(task);
    let isDone = false;
    worker.on("message", (progress: PartProgress) => {
      if (progress.done !== undefined || progress.damage !== undefined) isDone = true;
      hear(progress);
    });
    worker.on("error", reject);
    worker.on("exit", () => {
      if (isDone) resolve();
      else reject(new Error("a thread of the recovery ended before its work"));
    });
  });
}

/** The progress of all threads together. */
class Progress {
  records = 0;
  damage: Damage | undefined;
  readonly #plan: RecoveryPlan;
  readonly #options: RecoverOptions;
  readonly #parts = new Map<number, PartProgress>();

  constructor(plan: RecoveryPlan, options: RecoverOptions, threads: number) {
    this.#plan = plan;
    this.#options = options;
    for (let part = 0; part < threads; part++) {
      this.#parts.set(part, { part, checkpointBytes: 0, logBytes: 0 });
    }
  }

  hear(part: PartProgress): void {
    this.#parts.set(part.part, part);
    // All threads read the same log, and each counts all of it.
    if (part.done !== undefined) this.records = part.done.records;
    this.damage ??= part.damage;
    const { onProgress } = this.#options;
    if (onProgress === undefined) return;
    const slowest = [...this.#parts.values()].reduce((a, b) =>
      a.checkpointBytes + a.logBytes <= b.checkpointBytes + b.logBytes ? a : b,
    );
    const { checkpointBytes, logBytes } = this.#plan;
    if (slowest.checkpointBytes < checkpointBytes) {
      const doneBytes = slowest.checkpointBytes;
      onProgress({ phase: "checkpoint", doneBytes, totalBytes: checkpointBytes });
    } else {
      onProgress({ phase: "log", doneBytes: slowest.logBytes, totalBytes: logBytes });
    }
  }
}
