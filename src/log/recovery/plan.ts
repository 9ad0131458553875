/**
 * What to recover from: the newest checkpoint that is sound, and the log after it. A checkpoint was
 * copied while others wrote, so it is worth something only with the log up to its end. Where
 * a checkpoint is damaged the one before it serves, if the log reaches back so far. Where the log is
 * damaged, nothing does: what was acknowledged would be lost without a word.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import type { Geometry } from "../../memory/control.ts";
import { SituError } from "../../runtime/errors.ts";
import { type CataloguePlace, QUIET } from "../checkpoint/format.ts";
import { type CheckpointInfo, chainOf, listCheckpoints } from "../checkpoint/reader.ts";
import { isDamage } from "../head.ts";
import { scanLog } from "../segments/reader.ts";
import type { LogBatch } from "../segments/segment-reader.ts";
import type { SegmentHead } from "../segments/segments.ts";

export interface RecoveryPlan {
  /** A full checkpoint and the incremental ones upon it; empty: from the beginning of the log. */
  readonly chain: readonly CheckpointInfo[];
  /** The records after this epoch are replayed. */
  readonly startEpoch: number;
  /** Every commit up to this epoch is recovered, and none after it. */
  readonly epoch: number;
  /** The last epoch of the last batch: the log goes on after it. */
  readonly logEpoch: number;
  /** The last segment; 0 if there is none. */
  readonly lastSegment: number;
  readonly batches: readonly LogBatch[];
  /** That of the origin, with the most regions that any file speaks of. */
  readonly geometry: Geometry;
  /** How large the store might be, as the newest file says. */
  readonly memoryBytes: number;
  readonly catalogue: CataloguePlace;
  readonly checkpointBytes: number;
  readonly logBytes: number;
  readonly cut: Damage | undefined;
  /** What was found damaged and could be done without. */
  readonly damage: readonly Damage[];
}

/**
 * Plans the recovery of a store, or refuses with SITU_CORRUPT. `known` is damage that an earlier
 * attempt has come upon in checkpoints: these are not used.
 */
export function planRecovery(
  files: StoreFiles,
  logId: string,
  known: readonly Damage[] = [],
): RecoveryPlan {
  const { sound, damaged } = listCheckpoints(files);
  const bad = new Set(known.map(({ file }) => file));
  const usable = sound.filter((one) => !bad.has(one.name) && one.logId === logId);
  const damage = [...known, ...damaged];
  for (const checkpoint of usable) {
    const chain = chainOf(usable, checkpoint);
    if (isDamage(chain)) damage.push(chain);
    else return planFrom(files, logId, chain, damage);
  }
  return planFrom(files, logId, [], damage);
}

function planFrom(
  files: StoreFiles,
  logId: string,
  chain: readonly CheckpointInfo[],
  damage: Damage[],
): RecoveryPlan {
  const checkpoint = chain.at(-1);
  const startEpoch = checkpoint?.startEpoch ?? 0;
  const scan = scanLog(files, startEpoch);
  const foreign = scan.segments.find(({ head }) => head.logId !== logId);
  if (foreign !== undefined) {
    refuse(files, [{ file: foreign.name, offset: 0, what: "it is a segment of another store" }]);
  }
  if (scan.damage.length > 0) refuse(files, [...scan.damage, ...damage]);
  // Of the log up to its start epoch it needs nothing.
  const needsLog = checkpoint !== undefined && checkpoint.logEpoch > startEpoch;
  if (needsLog && scan.lastEpoch < checkpoint.logEpoch) {
    const what =
      `the log ends with epoch ${scan.lastEpoch}, and this checkpoint has what was committed up to ` +
      `epoch ${checkpoint.logEpoch}`;
    refuse(files, [{ file: checkpoint.name, offset: 0, what }, ...damage]);
  }
  const origin = checkpoint ?? scan.segments[0]?.head;
  if (origin === undefined) {
    refuse(files, [{ file: "log", offset: 0, what: "there is neither log nor checkpoint" }]);
  }
  let logBytes = 0;
  for (const { payloadBytes } of scan.batches) logBytes += payloadBytes;
  return {
    chain,
    startEpoch,
    // Beyond all that the checkpoint speaks of: no epoch comes twice.
    epoch: Math.max(scan.lastEpoch, checkpoint?.endEpoch ?? 0),
    // Where a checkpoint has what the log has not, the log has a hole, and goes on behind it.
    logEpoch: Math.max(scan.lastEpoch, checkpoint === undefined ? 0 : coveredBy(checkpoint)),
    lastSegment: scan.segments.at(-1)?.number ?? 0,
    batches: scan.batches,
    geometry: {
      ...origin.geometry,
      regions: [origin, ...scan.segments.map(({ head }) => head)].reduce(
        (most, { geometry }) => Math.max(most, geometry.regions),
        0,
      ),
    },
    memoryBytes: memoryBytesOf(newestOf(checkpoint, scan.segments.at(-1)?.head) ?? origin),
    catalogue: origin.catalogue,
    checkpointBytes: chain.reduce((sum, { bytes }) => sum + bytes, 0),
    logBytes,
    cut: scan.cut,
    damage: [...damage, ...scan.aside],
  };
}

type SizedFile = Pick<CheckpointInfo, "geometry" | "memoryBytes">;

function newestOf(
  checkpoint: CheckpointInfo | undefined,
  head: SegmentHead | undefined,
): SizedFile | undefined {
  if (checkpoint === undefined || head === undefined) return checkpoint ?? head;
  return checkpoint.closedMs > head.createdMs ? checkpoint : head;
}

/** Earlier versions had room for just the regions that the store might have. */
function memoryBytesOf({ memoryBytes, geometry }: SizedFile): number {
  return memoryBytes ?? geometry.regions * geometry.regionBytes;
}

/** The epoch up to which nobody needs the log who has the checkpoint. */
function coveredBy({ startEpoch, logEpoch }: CheckpointInfo): number {
  return logEpoch === QUIET ? startEpoch : logEpoch;
}

function refuse(files: StoreFiles, damage: readonly Damage[]): never {
  const [first, ...others] = damage;
  const more = others.length === 0 ? "" : `, and ${others.length} more`;
  throw new SituError(
    "SITU_CORRUPT",
    `the store cannot be recovered: ${files.place}/${first.file}, byte ${first.offset}: ` +
      `${first.what}${more}. Nothing was changed. Restore a backup, or restore this store to a ` +
      `point in time before the damage`,
    { cause: damage },
  );
}
