/**
 * Begins a log with all of memory as its base, by one who is alone in the store: for a new store,
 * for one that had no log, and where the log has failed. Memory is whole, whatever has become of what
 * is on disk, which is void from here on.
 *
 * First the checkpoint, which needs no log; then a segment that says to go on after it; then what
 * was there before is removed. Cut short between any two of these, the newest checkpoint serves.
 */

import type { Executor } from "../engine/executor.ts";
import type { StoreFiles } from "../folder/files.ts";
import { CATALOGUE_REGION, CATALOGUE_WORD } from "../memory/control.ts";
import { wallClockMs } from "../runtime/clock.ts";
import { SEGMENT_BYTES } from "../runtime/limits.ts";
import { takeQuietCheckpoint } from "./checkpoint/take.ts";
import { figureOf, setFigure } from "./figures.ts";
import { refuseOtherWriter } from "./segments/end.ts";
import {
  LOG_FOLDER,
  type LogIdentity,
  listSegments,
  nextSegment,
  segmentName,
} from "./segments/segments.ts";
import { LogWriter } from "./segments/writer.ts";

export function beginLog(executor: Executor, files: StoreFiles, logId: string): void {
  const number = nextSegment(files);
  // What a creator left who died, or a store that had no log, comes before a memory that has written nothing.
  if (figureOf(executor.memory, "segment") === 0) {
    setFigure(executor.memory, "originSegment", number - 1);
  }
  const identity = logIdentityOf(executor, logId);
  refuseOtherWriter(files, identity);
  const epoch = takeQuietCheckpoint(executor, files, logId);
  const follows = false;
  new LogWriter(files, identity, number, epoch, wallClockMs(), SEGMENT_BYTES, follows).close();
  for (const { name } of listSegments(files)) {
    if (name !== segmentName(number)) files.remove(name);
  }
  files.syncFolder(LOG_FOLDER);
  // All that is in the journals is in the checkpoint.
  executor.durability.setWritten(epoch);
  executor.durability.publish(epoch, () => {});
}

/** What the segments of a store's log have in common. */
export function logIdentityOf({ memory }: Executor, logId: string): LogIdentity {
  const { i32, geometry } = memory.control;
  const catalogue = { regionId: i32[CATALOGUE_REGION] - 1, word: i32[CATALOGUE_WORD] };
  const { memoryId } = memory.control;
  const origin = figureOf(memory, "originSegment");
  const memoryBytes = memory.control.regionLimit * geometry.regionBytes;
  return { logId, geometry, memoryBytes, catalogue, memoryId, origin };
}
