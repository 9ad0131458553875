/** What a recovery does on disk, before the memory that it has rebuilt is anybody's. */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { CHECKPOINTS_FOLDER } from "../checkpoint/format.ts";
import type { RecoveryPlan } from "./plan.ts";

/**
 * Prepares what the next recovery will find: `damaged` are checkpoints that this one came upon and
 * could not use.
 */
export function prepareDisk(
  files: StoreFiles,
  plan: RecoveryPlan,
  damaged: readonly Damage[],
): void {
  setAside(files, damaged);
  syncEnd(files, plan);
}

/**
 * Checkpoints that turned out to be damaged are none any more: nothing may be built on them, and they
 * must not be counted among those that are kept. Their bytes stay for whoever wants to look at them.
 */
function setAside(files: StoreFiles, damaged: readonly Damage[]): void {
  for (const { file } of damaged) {
    if (files.has(file)) files.rename(file, `${file}.damaged`);
  }
  if (damaged.length > 0) files.syncFolder(CHECKPOINTS_FOLDER);
}

/**
 * The last batch may have been read from the system's cache: killed processes leave it there. Before
 * it is called durable it must be on disk; the ones before it are.
 */
function syncEnd(files: StoreFiles, { batches }: RecoveryPlan): void {
  const last = batches.at(-1);
  if (last === undefined) return;
  const file = files.open(last.file);
  try {
    file.sync();
  } finally {
    file.close();
  }
}
