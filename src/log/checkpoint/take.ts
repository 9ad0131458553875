/**
 * Takes a checkpoint from beginning to end, and removes what it makes superfluous: checkpoints
 * beyond those that are kept, then the log that none of these needs. A crash between any two of
 * these steps leaves more than is needed, never less.
 */

import type { Executor } from "../../engine/executor.ts";
import { awaitCommits } from "../../engine/snapshots/snapshot.ts";
import type { StoreFiles } from "../../folder/files.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD } from "../../memory/control.ts";
import { wallClockMs } from "../../runtime/clock.ts";
import {
  DELTA_AT_MOST,
  KEPT_CHECKPOINTS,
  MAX_DELTAS,
  MAX_TIMEOUT_MS,
} from "../../runtime/limits.ts";
import { isDamage } from "../head.ts";
import { writersDamage } from "../segments/memories.ts";
import { LOG_FOLDER, listSegments, segmentsBefore } from "../segments/segments.ts";
import { changedBytes } from "./changes.ts";
import { CHECKPOINTS_FOLDER, type CheckpointKind, QUIET } from "./format.ts";
import { Checkpoint, type CheckpointInfo, chainOf, listCheckpoints } from "./reader.ts";
import { CheckpointWriter, removeUnfinished } from "./writer.ts";

/** How long it waits at a time for one who is committing and does not move. */
const PATIENCE_MS = MAX_TIMEOUT_MS;

export interface TakeOptions {
  readonly logId: string;
  /** How long checkpoints and log are kept beyond need. */
  readonly keepLogMs: number;
  /** Bytes of log that are kept beyond need, for those who watch a table. */
  readonly keepLogBytes?: number;
}

export interface TakenCheckpoint {
  readonly name: string;
  readonly kind: CheckpointKind;
  readonly startEpoch: number;
  readonly endEpoch: number;
  readonly bytes: number;
}

export function takeCheckpoint(
  executor: Executor,
  files: StoreFiles,
  options: TakeOptions,
): TakenCheckpoint {
  removeUnfinished(files);
  const base = baseFor(executor, files, options.logId);
  try {
    const writer = writerOf(executor, files, options.logId, base);
    try {
      writer.begin(closeEpoch(executor));
      while (writer.step());
      const end = writer.end();
      executor.durability.awaitSync(end, PATIENCE_MS);
      const taken = writer.publish(executor.durability.written);
      removeSuperfluous(files, options);
      return taken;
    } catch (error) {
      writer.abandon();
      throw error;
    }
  } finally {
    base?.close();
  }
}

/**
 * A full checkpoint by one who is alone in the store, so that it needs no log; whatever else was on
 * disk is removed. Returns the epoch after which the log goes on.
 */
export function takeQuietCheckpoint(executor: Executor, files: StoreFiles, logId: string): number {
  removeUnfinished(files);
  const writer = writerOf(executor, files, logId, undefined);
  try {
    const epoch = closeEpoch(executor);
    writer.begin(epoch);
    while (writer.step());
    writer.end();
    const { name } = writer.publish(QUIET);
    removeCheckpoints(files, (one) => one !== name);
    return epoch;
  } catch (error) {
    writer.abandon();
    throw error;
  }
}

/**
 * Removes the checkpoints and segments that are not to be kept. Kept are the newest checkpoint and
 * the newest that builds on another full one, each with all that it builds on: no damage in one
 * place makes both useless. And more, as long as they are not older than the time to be kept.
 */
export function removeSuperfluous(files: StoreFiles, options: TakeOptions): void {
  const { logId, keepLogMs, keepLogBytes = 0 } = options;
  // What shows that the log is not sound is kept.
  if (writersDamage(files, listSegments(files)).length > 0) return;
  const { sound } = listCheckpoints(files);
  const points = sound.filter((one) => one.logId === logId);
  const kept = new Set<string>();
  const bases = new Set<string>();
  for (const point of points) {
    const chain = chainOf(points, point);
    if (isDamage(chain)) continue;
    for (const { name } of chain) kept.add(name);
    bases.add(chain[0].name);
    if (bases.size < KEPT_CHECKPOINTS || point.closedMs > wallClockMs() - keepLogMs) continue;
    removeCheckpoints(files, (name) => !kept.has(name));
    const segments = segmentsBefore(files, point.startEpoch, keepLogBytes);
    for (const name of segments) files.remove(name);
    if (segments.length > 0) files.syncFolder(LOG_FOLDER);
    return;
  }
}

function removeCheckpoints(files: StoreFiles, isSuperfluous: (name: string) => boolean): void {
  const { sound, damaged } = listCheckpoints(files);
  const names = [...sound.map(({ name }) => name), ...damaged.map(({ file }) => file)];
  // The newest first: a delta never stands without what it builds on.
  const superfluous = names.filter(isSuperfluous).sort().reverse();
  for (const name of superfluous) files.remove(name);
  if (superfluous.length > 0) files.syncFolder(CHECKPOINTS_FOLDER);
}

/** The checkpoint that an incremental one would build on, if that pays. */
function baseFor(executor: Executor, files: StoreFiles, logId: string): Checkpoint | undefined {
  const { sound } = listCheckpoints(files);
  const points = sound.filter((one) => one.logId === logId);
  const newest = points[0];
  if (newest === undefined || !pays(executor, points, newest)) return undefined;
  const opened = Checkpoint.open(files, newest.name);
  return isDamage(opened) ? undefined : opened;
}

function pays(
  executor: Executor,
  points: readonly CheckpointInfo[],
  newest: CheckpointInfo,
): boolean {
  const chain = chainOf(points, newest);
  if (isDamage(chain) || chain.length > MAX_DELTAS) return false;
  const { changed, total } = changedBytes(executor, newest.startEpoch);
  // What recovery would have to read beside the full one.
  const deltas = chain.slice(1).reduce((sum, { bytes }) => sum + bytes, 0);
  return deltas + changed <= total * DELTA_AT_MOST;
}

function writerOf(
  executor: Executor,
  files: StoreFiles,
  logId: string,
  base: Checkpoint | undefined,
): CheckpointWriter {
  const { i32 } = executor.memory.control;
  const catalogue = { regionId: i32[CATALOGUE_REGION] - 1, word: i32[CATALOGUE_WORD] };
  return new CheckpointWriter(executor, files, { logId, catalogue, base });
}

/** All that was committed up to the epoch that is returned is installed. */
function closeEpoch(executor: Executor): number {
  const epoch = executor.mark();
  awaitCommits(executor, epoch, PATIENCE_MS);
  return epoch;
}
