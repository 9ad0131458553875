/**
 * Recovery, from the folder to memory that others may join: plan it from the files on disk (plan.ts), make
 * memory, rebuild it on several threads (recover.ts), prepare the disk (prepare-disk.ts), publish. A checkpoint that
 * proves damaged on the way is left out of the next plan.
 */

import { availableParallelism } from "node:os";
import type { Damage } from "../../folder/files.ts";
import { createMemory, type NewMemory, refuseIfNoRoom } from "../../folder/memory-creation.ts";
import { type MemoryBytes, type MemorySize, sizeOfRebuilt } from "../../folder/memory-size.ts";
import { NodeFiles } from "../../folder/node-files.ts";
import {
  explainedOnDisk,
  type Identity,
  removeMemory,
  whileRecovering,
} from "../../folder/store-files.ts";
import { freeBytesOf } from "../../memory/free-bytes.ts";
import type { StoreMemory } from "../../memory/store-memory.ts";
import { nowMs } from "../../runtime/clock.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_RECOVERY_THREADS } from "../../runtime/limits.ts";
import { shownSize } from "../../runtime/units.ts";
import { isDamage } from "../head.ts";
import type { RecoveryPlan } from "./plan.ts";
import type { RecoveryProgress } from "./progress.ts";

/** What a recovery has found and done. */
export interface Recovered {
  readonly ms: number;
  /** Every commit up to this epoch is there, and none after it. */
  readonly epoch: number;
  /** The checkpoint that it began with, if there was one, and the incremental ones upon it. */
  readonly checkpoints: readonly string[];
  readonly checkpointBytes: number;
  readonly logBytes: number;
  /** Transactions that were replayed from the log. */
  readonly transactions: number;
  readonly threads: number;
  /** Where the log ended in something that is no whole batch: a write that was cut short. */
  readonly cut: Damage | undefined;
  /** Damage that recovery could do without: it used an older checkpoint. */
  readonly damage: readonly Damage[];
}

export interface RecoverySettings {
  /** The store's folder. */
  readonly path: string;
  readonly onRecovery: ((progress: RecoveryProgress) => void) | undefined;
  /** What the opener asks for: less than the store had is not heeded. */
  readonly memoryBytes: MemoryBytes | undefined;
}

/**
 * Rebuilds the memory of a store from its checkpoint and log, and publishes it. For one who has the
 * folder to itself.
 */
export async function rebuildMemory(
  settings: RecoverySettings,
  identity: Identity,
): Promise<NewMemory & { recovered: Recovered }> {
  const startMs = nowMs();
  const { path } = settings;
  const { planRecovery } = await import("./plan.ts");
  const { prepareDisk } = await import("./prepare-disk.ts");
  return whileRecovering(path, async () => {
    const damage: Damage[] = [];
    for (;;) {
      const plan = explainedOnDisk(path, () =>
        planRecovery(new NodeFiles(path), identity.logId!, damage),
      );
      const size = sizeOfRebuilt(
        settings.memoryBytes,
        identity.memoryBytes,
        plan.geometry,
        plan.memoryBytes,
      );
      const made = whereThereIsRoom(path, identity, size, () => {
        refuseIfNoRoom(identity.memoryDir, leastBytes(plan, size));
        return createMemory(path, identity, size);
      });
      const { memory } = made;
      try {
        const recovered = await rebuild(settings, plan, memory, size.regionLimit);
        if (!isDamage(recovered)) {
          explainedOnDisk(path, () => prepareDisk(new NodeFiles(path), plan, damage));
          memory.control.publish();
          warnOf(path, recovered.damage);
          return { ...made, recovered: { ...recovered, ms: nowMs() - startMs } };
        }
        // From another checkpoint, then. There is an end to it: none is tried twice.
        damage.push(recovered);
      } catch (error) {
        memory.close();
        // Nobody has seen it, and it may be what fills the file system.
        removeMemory(made.identity);
        throw noRoomExplained(path, identity, size, error);
      }
      memory.close();
    }
  });
}

function whereThereIsRoom<T>(path: string, identity: Identity, size: MemorySize, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw noRoomExplained(path, identity, size, error);
  }
}

/** Says how a store can be opened that does not fit the memory that this machine or container has for it. */
function noRoomExplained(
  path: string,
  { memoryDir }: Identity,
  { geometry }: MemorySize,
  error: unknown,
): unknown {
  if (!(error instanceof SituError) || error.code !== "SITU_NO_MEMORY") return error;
  const regions = shownSize(geometry.regionBytes);
  return new SituError(
    "SITU_NO_MEMORY",
    `the store at ${path} cannot be rebuilt from its log in ${memoryDir}: it was created with regions of ${regions}, ` +
      `and there is not enough room for those that it needs (${shownSize(freeBytesOf(memoryDir))} are free). Its log is ` +
      `unharmed. Give it more shared memory (docker run --shm-size=1g, or mount -o remount,size=1g ${memoryDir}), ` +
      `or open it with a memoryDir that has more room`,
    { cause: error },
  );
}

/** The memory that recovery needs for certain. What comes with the log is not known before. */
function leastBytes(
  { checkpointBytes }: RecoveryPlan,
  { geometry, regionLimit }: MemorySize,
): number {
  const regions = Math.ceil(checkpointBytes / geometry.regionBytes);
  return Math.max(1, Math.min(regions, regionLimit)) * geometry.regionBytes;
}

async function rebuild(
  settings: RecoverySettings,
  plan: RecoveryPlan,
  memory: StoreMemory,
  regionLimit: number,
): Promise<Omit<Recovered, "ms"> | Damage> {
  memory.control.startLog();
  const { path } = settings;
  const threads = Math.min(availableParallelism(), MAX_RECOVERY_THREADS);
  const onProgress = settings.onRecovery ?? terminalProgress(path);
  const { recover } = await import("./recover.ts");
  const folder = memory.segments.place;
  const options = { path, folder, threads, regionLimit, onProgress };
  const done = await recover(plan, memory, options);
  if (isDamage(done)) return done;
  const { chain, epoch, logBytes, checkpointBytes, cut, damage } = plan;
  const checkpoints = chain.map(({ name }) => name);
  const { transactions } = done;
  return { epoch, checkpoints, checkpointBytes, logBytes, transactions, threads, cut, damage };
}

function warnOf(path: string, damage: readonly Damage[]): void {
  for (const { file, offset, what } of damage) {
    process.emitWarning(`${path}/${file}, byte ${offset}: ${what}; recovered without it`, {
      code: "SITU_DAMAGED",
    });
  }
}

/** A line on a terminal that says how far it is. */
function terminalProgress(path: string): ((progress: RecoveryProgress) => void) | undefined {
  if (!process.stderr.isTTY) return undefined;
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1);
  return ({ phase, doneBytes, totalBytes }) => {
    const percent = totalBytes === 0 ? 100 : Math.floor((100 * doneBytes) / totalBytes);
    const end = phase === "log" && doneBytes === totalBytes ? "\n" : "";
    process.stderr.write(
      `\r\u001b[Ksitu: recovering ${path}: ${phase}, ${mebibytes(doneBytes)} of ` +
        `${mebibytes(totalBytes)} MiB, ${percent} %${end}`,
    );
  };
}
