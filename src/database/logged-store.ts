/**
 * A store with a log, seen by `open`: memory that is gone is rebuilt from disk, a new store's log
 * begins, and a log that has failed, or never was, is begun anew with all of memory as its base.
 */

import { availableParallelism } from "node:os";
import { beginLog } from "../device/begin.ts";
import type { Damage } from "../device/files.ts";
import { isDamage } from "../device/head.ts";
import { listSegments } from "../device/log/segments.ts";
import { NodeFiles } from "../device/node-files.ts";
import type { RecoveryPlan } from "../device/recovery/plan.ts";
import type { RecoveryProgress } from "../device/recovery/progress.ts";
import { FAILED, RUNNING } from "../engine/durability.ts";
import type { Executor } from "../engine/executor.ts";
import { LOG_STATE } from "../memory/control.ts";
import type { StoreMemory } from "../memory/region.ts";
import { nowMs } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { MAX_RECOVERY_THREADS } from "../runtime/limits.ts";
import { createMemory, type NewMemory, refuseIfNoRoom } from "./memory-creation.ts";
import type { Settings } from "./options.ts";
import {
  explainedOnDisk,
  type Identity,
  whileRecovering,
  withLog,
  writeIdentity,
} from "./store-files.ts";

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

export function filesOf(path: string): NodeFiles {
  return new NodeFiles(path);
}

/**
 * Rebuilds the memory of a store from its checkpoint and log, and publishes it. For one who has the
 * folder to itself.
 */
export async function recoverMemory(
  settings: Settings,
  identity: Identity,
): Promise<NewMemory & { recovered: Recovered }> {
  const startMs = nowMs();
  const { path } = settings;
  const { planRecovery } = await import("../device/recovery/plan.ts");
  const { settleDisk } = await import("../device/recovery/settle.ts");
  return whileRecovering(path, async () => {
    const damage: Damage[] = [];
    for (;;) {
      const plan = explainedOnDisk(path, () =>
        planRecovery(filesOf(path), identity.logId!, damage),
      );
      refuseIfNoRoom(identity.memoryDir, plan.geometry.regionBytes * plan.geometry.regions);
      const made = createMemory(path, identity, plan.geometry);
      const { memory } = made;
      try {
        const recovered = await rebuild(settings, plan, memory, memory.segments.place);
        if (!isDamage(recovered)) {
          explainedOnDisk(path, () => settleDisk(filesOf(path), plan, damage));
          memory.control.publish();
          warnOf(path, recovered.damage);
          return { ...made, recovered: { ...recovered, ms: nowMs() - startMs } };
        }
        // From another checkpoint, then. There is an end to it: none is tried twice.
        damage.push(recovered);
      } catch (error) {
        memory.close();
        throw error;
      }
      memory.close();
    }
  });
}

async function rebuild(
  settings: Settings,
  plan: RecoveryPlan,
  memory: StoreMemory,
  folder: string,
): Promise<Omit<Recovered, "ms"> | Damage> {
  memory.control.startLog();
  const { path } = settings;
  const threads = Math.min(availableParallelism(), MAX_RECOVERY_THREADS);
  const onProgress = settings.onRecovery ?? terminalProgress(path);
  const { recover } = await import("../device/recovery/recover.ts");
  const done = await recover(plan, memory, { path, folder, threads, onProgress });
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

/**
 * Whether nobody knows what is on disk: the log has failed, or whoever began it died over that.
 */
export function isLogInDoubt({ control }: StoreMemory, identity: Identity): boolean {
  const hasFailed = Atomics.load(control.i32, LOG_STATE) === FAILED;
  return hasFailed || control.isLogged !== (identity.logStarted === true);
}

/** Begins a log, or begins it anew, with all of memory as its base: see device/begin.ts. */
export function startLogAnew(settings: Settings, identity: Identity, executor: Executor): Identity {
  const { path } = settings;
  return explainedOnDisk(path, () => {
    // First the id: whoever dies over this, or finds no room, goes on with the same log.
    const begun = identity.logId === undefined ? writeIdentity(path, withLog(identity)) : identity;
    beginLog(executor, filesOf(path), begun.logId!);
    const done = writeIdentity(path, { ...begun, logStarted: true });
    executor.memory.control.startLog();
    executor.durability.setState(RUNNING, 0);
    return done;
  });
}

/** Without store.json nobody can tell whose log this is; a new store must not mix with it. */
export function refuseForeignLog(path: string): void {
  if (explainedOnDisk(path, () => listSegments(filesOf(path))).length === 0) return;
  throw new SituError(
    "SITU_CORRUPT",
    `${path} has a log but no store.json: bring that file back, or restore the store from a ` +
      `backup, or remove ${path}/log and ${path}/checkpoints to start an empty store`,
  );
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
