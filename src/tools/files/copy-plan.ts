/**
 * Which files, and how much of each, make a store as of a point: the newest checkpoint that does
 * not reach beyond it, with those that it builds on, and the log from there up to the point.
 *
 * A checkpoint was copied while others wrote: it has parts of what was committed up to its end
 * epoch, and needs the log up to its log epoch. So it serves a point only if that is not before it.
 * The log is cut behind a batch, for only whole batches are whole epochs. Of each segment, only
 * what counts is taken: neither batches that became void, nor torn ends, nor room that was not
 * used. The copy then is a log that was closed in good order.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { QUIET } from "../../log/checkpoint/format.ts";
import { type CheckpointInfo, chainOf, listCheckpoints } from "../../log/checkpoint/reader.ts";
import { isDamage } from "../../log/head.ts";
import type { LogEnd } from "../../log/segments/end.ts";
import { type LogScan, scanLog } from "../../log/segments/reader.ts";
import { endOf, type LogBatch } from "../../log/segments/segment-reader.ts";
import {
  firstNeeded,
  hasHead,
  LOG_FOLDER,
  type LogSegment,
  listSegments,
  type SegmentFile,
} from "../../log/segments/segments.ts";
import { surveySegment } from "../../log/segments/survey.ts";
import { SituError } from "../../runtime/errors.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { shownTime } from "./inspect.ts";
import { logIdOf } from "./verify.ts";

/** A moment in the life of a store; without either, the end of its log. */
export interface Point {
  /** The last batch that was closed by then, in milliseconds of the wall clock. */
  readonly toMs?: number | undefined;
  /** The last batch that ends with this epoch or before. */
  readonly toEpoch?: number | undefined;
}

export interface CopiedFile {
  readonly name: string;
  /** How many of its bytes are copied, from its beginning on. */
  readonly bytes: number;
}

export interface CopyPlan {
  /** Every commit up to this epoch is in the copy, and none after it. */
  readonly epoch: number;
  /** When the last batch was closed, or the checkpoint if none came after it. */
  readonly closedMs: number;
  readonly logId: string;
  /** A full checkpoint and the incremental ones upon it. Empty: the log from its beginning. */
  readonly chain: readonly CheckpointInfo[];
  readonly segments: readonly CopiedFile[];
  /** What the copy says about the end of its log. */
  readonly end: LogEnd;
}

/** Why a checkpoint does not serve. */
const TOO_NEW = Symbol("the point lies before it");

/**
 * Plans the copy, or refuses: with SITU_CONFIG a point that lies before all that is there, with
 * SITU_CORRUPT one that lies behind damage. Checkpoints in `known` are damaged and not used.
 */
export function planCopy(
  files: StoreFiles,
  point: Point,
  logId: string | undefined,
  known: readonly Damage[],
): CopyPlan {
  const { sound, damaged } = listCheckpoints(files);
  const segments = listSegments(files);
  const id = logId ?? logIdOf(segments, sound);
  if (id === undefined) {
    const what = "there is neither a log nor a checkpoint";
    throw new SituError("SITU_CORRUPT", `${files.place} cannot be copied: ${what}`);
  }
  const isBad = (name: string): boolean => known.some(({ file }) => file === name);
  const usable = sound.filter((info) => info.logId === id && !isBad(info.name));
  const points = usable.filter((info) => isCovered(segments, info));
  const damage = [...known, ...damaged];
  // Without any, the log is damaged where the newest begins: that is then told.
  for (const info of candidates(points.length > 0 ? points : usable.slice(0, 1), point)) {
    const chain = chainOf(usable, info);
    if (isDamage(chain)) {
      damage.push(chain);
      continue;
    }
    const plan = planFrom(files, point, id, chain, damage);
    if (plan !== TOO_NEW) return plan;
  }
  // The whole log serves as well, if its beginning is there.
  const hasBeginning = segments.some((one) => hasHead(one) && one.head.afterEpoch === 0);
  if (hasBeginning || points.length === 0 || damage.length > 0) {
    const plan = planFrom(files, point, id, [], damage);
    if (plan !== TOO_NEW) return plan;
  }
  throw tooEarly(files, point, points);
}

/**
 * Whether the log reaches back to a checkpoint. Where it does not, the checkpoint is there because
 * a later one builds on it.
 */
function isCovered(segments: readonly SegmentFile[], { startEpoch }: CheckpointInfo): boolean {
  return firstNeeded(segments, startEpoch) >= 0;
}

/**
 * The checkpoints that may serve a point, the best first. Of those that were closed after it only
 * the oldest is worth a look at the log: it may have been as good as closed.
 */
function candidates(points: readonly CheckpointInfo[], point: Point): readonly CheckpointInfo[] {
  const closed = points.filter((info) => !isBefore(point, info));
  return closed.length > 0 ? closed : points.slice(-1);
}

function planFrom(
  files: StoreFiles,
  point: Point,
  logId: string,
  chain: readonly CheckpointInfo[],
  others: readonly Damage[],
): CopyPlan | typeof TOO_NEW {
  const checkpoint = chain.at(-1);
  const startEpoch = checkpoint?.startEpoch ?? 0;
  const scan = scanLog(files, startEpoch);
  const damage = damageOf(scan, logId);
  const kept = batchesUpTo(scan, point);
  const last = kept.at(-1);
  // Whether there are batches after the point: then damage behind them is none of its business.
  const isCut = kept.length < scan.batches.length;
  if (!reaches(checkpoint, last, point)) {
    if (isCut || isBefore(point, checkpoint)) return TOO_NEW;
    // The log should reach the checkpoint's end, and beyond, and does not.
    return refuse(files, [...damage, ...shortOf(checkpoint, scan)], others);
  }
  const { toEpoch } = point;
  const isSound = isCut || (toEpoch !== undefined && toEpoch <= scan.lastEpoch);
  if (damage.length > 0 && !isSound) return refuse(files, damage, others);
  const { segments, logEpoch } = segmentsOf(files, scan.segments, startEpoch, kept);
  return {
    // As recovery will say: between the last batch and the checkpoint's end nothing was committed.
    epoch: Math.max(last?.last ?? 0, checkpoint?.endEpoch ?? 0),
    closedMs: last?.closedMs ?? checkpoint!.closedMs,
    logId,
    chain,
    segments,
    end: endOfCopy(scan.segments, segments, logId, logEpoch),
  };
}

function damageOf({ segments, damage }: LogScan, logId: string): readonly Damage[] {
  const foreign = segments.find(({ head }) => head.logId !== logId);
  if (foreign === undefined) return damage;
  return [{ file: foreign.name, offset: 0, what: "it is a segment of another store" }];
}

/** The batches after the checkpoint that are to be in the copy. */
function batchesUpTo({ batches }: LogScan, { toMs, toEpoch }: Point): readonly LogBatch[] {
  const isIn = ({ last, closedMs }: LogBatch): boolean =>
    (toMs === undefined || closedMs <= toMs) && (toEpoch === undefined || last <= toEpoch);
  return batches.slice(0, batches.findLastIndex(isIn) + 1);
}

/** Whether a checkpoint, or the beginning, serves a point before which this is the last batch. */
function reaches(
  checkpoint: CheckpointInfo | undefined,
  last: LogBatch | undefined,
  point: Point,
): boolean {
  if (checkpoint === undefined) return last !== undefined;
  const { startEpoch, logEpoch } = checkpoint;
  if (last !== undefined) return last.last >= logEpoch;
  // Nothing was committed while it was taken, nor from then up to the point.
  return logEpoch <= startEpoch && !isBefore(point, checkpoint);
}

/** Whether the point lies before a checkpoint; before the beginning lies none. */
function isBefore({ toMs, toEpoch }: Point, checkpoint: CheckpointInfo | undefined): boolean {
  if (checkpoint === undefined) return false;
  const isEarlier = toEpoch !== undefined && toEpoch < lastCommitOf(checkpoint);
  return isEarlier || (toMs !== undefined && toMs < checkpoint.closedMs);
}

/** No commit after this epoch is in a checkpoint. */
function lastCommitOf({ startEpoch, logEpoch }: CheckpointInfo): number {
  return logEpoch === QUIET ? startEpoch : logEpoch;
}

/** The log ends before what it should have. */
function shortOf(checkpoint: CheckpointInfo | undefined, { lastEpoch }: LogScan): Damage[] {
  if (checkpoint === undefined) {
    return [{ file: LOG_FOLDER, offset: 0, what: "nothing was written to the log yet" }];
  }
  const { name, logEpoch } = checkpoint;
  const what = `the log ends with epoch ${lastEpoch}, and it needs that up to ${logEpoch}`;
  return [{ file: name, offset: 0, what }];
}

/** The copy is closed in good order. */
function endOfCopy(
  found: readonly LogSegment[],
  segments: readonly CopiedFile[],
  logId: string,
  epoch: number,
): LogEnd {
  const { name, bytes } = segments.at(-1)!;
  const { number, head } = found.find((segment) => segment.name === name)!;
  return { logId, memoryId: head.memoryId, number, epoch, bytes };
}

/**
 * The segments from the first one on up to that of the last batch, each up to its last batch; and the
 * epoch that they reach.
 */
function segmentsOf(
  files: StoreFiles,
  segments: readonly LogSegment[],
  startEpoch: number,
  kept: readonly LogBatch[],
): { segments: CopiedFile[]; logEpoch: number } {
  const first = segments[firstNeeded(segments, startEpoch)];
  const last = kept.at(-1) ?? lastBefore(files, first, startEpoch);
  const lastName = last?.file ?? first.name;
  const ends = new Map<string, number>();
  for (const batch of kept) ends.set(batch.file, endOf(batch));
  if (last !== undefined) ends.set(last.file, endOf(last));
  const copied = segments
    .filter(({ name }) => name >= first.name && name <= lastName)
    .map(({ name }) => ({ name, bytes: ends.get(name) ?? HEAD_BYTES }));
  return { segments: copied, logEpoch: last?.last ?? first.head.afterEpoch };
}

/**
 * The last batch that a checkpoint has all of. Those are not needed for what is in them, but to show
 * that the log reaches as far as the checkpoint says.
 */
function lastBefore(files: StoreFiles, segment: LogSegment, epoch: number): LogBatch | undefined {
  return surveySegment(files, segment).batches.findLast(({ last }) => last <= epoch);
}

function refuse(files: StoreFiles, found: readonly Damage[], others: readonly Damage[]): never {
  const [{ file, offset, what }] = found;
  throw new SituError(
    "SITU_CORRUPT",
    `${files.place} cannot be copied up to there: ${file}, byte ${offset}: ${what}. A point ` +
      `before that can be`,
    { cause: [...found, ...others] },
  );
}

function tooEarly(
  files: StoreFiles,
  { toMs, toEpoch }: Point,
  checkpoints: readonly CheckpointInfo[],
): SituError {
  const asked = [
    ...(toMs === undefined ? [] : [shownTime(toMs)]),
    ...(toEpoch === undefined ? [] : [`epoch ${toEpoch}`]),
  ].join(" and ");
  const oldest = checkpoints.at(-1);
  const earliest = oldest === undefined ? "the first batch of its log" : earliestOf(files, oldest);
  return new SituError(
    "SITU_CONFIG",
    `${files.place} does not reach back to ${asked}: the earliest point is ${earliest}`,
  );
}

/** The first point that a checkpoint serves. */
function earliestOf(files: StoreFiles, checkpoint: CheckpointInfo): string {
  const { startEpoch, logEpoch, closedMs } = checkpoint;
  const { batches } = scanLog(files, startEpoch);
  const first = logEpoch > startEpoch ? batches.find(({ last }) => last >= logEpoch) : undefined;
  const epoch = first?.last ?? lastCommitOf(checkpoint);
  return `epoch ${epoch}, ${shownTime(first?.closedMs ?? closedMs)}`;
}
