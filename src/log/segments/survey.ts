/**
 * What is in the segments, for people and tools: all sound batches and all that is wrong, also where
 * the log cannot be recovered from. The judgement, what of it matters, is scanLog's (reader.ts).
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { saltOf } from "./format.ts";
import { type LogScan, scanLog } from "./reader.ts";
import { endOf, isFlaw, type LogBatch, SegmentReader } from "./segment-reader.ts";
import { hasHead, listSegments, type SegmentFile } from "./segments.ts";

export interface SegmentSurvey {
  readonly segment: SegmentFile;
  /** All sound batches, also behind damage, and also those that are void. */
  readonly batches: readonly LogBatch[];
  /** Where nothing sound lies, before the last of these batches; or the head that is wrong. */
  readonly damage: readonly Damage[];
  /** What lies behind the last batch: nothing, room that was not used, or bytes of no batch. */
  readonly end: "nothing" | "zeroes" | "torn";
  /** Where the last sound batch ends. */
  readonly usedBytes: number;
  /** What is wrong with the bytes at that place, if any are there. */
  readonly torn: Damage | undefined;
}

export function surveySegment(files: StoreFiles, segment: SegmentFile): SegmentSurvey {
  const { name, number, head } = segment;
  const file = files.open(name, true);
  try {
    const salt = hasHead(segment) ? saltOf(segment.head.logId) : undefined;
    const reader = new SegmentReader(file, number, salt);
    const damage: Damage[] = [];
    if (!hasHead(segment)) {
      const { offset, what } = head as Damage;
      damage.push({ file: name, offset, what });
    }
    return { segment, ...survey(reader, damage) };
  } finally {
    file.close();
  }
}

function survey(reader: SegmentReader, damage: Damage[]): Omit<SegmentSurvey, "segment"> {
  const batches: LogBatch[] = [];
  let offset = HEAD_BYTES;
  for (;;) {
    const found = reader.batchAt(offset);
    if (!isFlaw(found)) {
      batches.push(found);
      offset = endOf(found);
      continue;
    }
    const flawed = { file: reader.name, offset, what: found.what };
    const next = reader.findBatch(found.header ? endOf(found.header) : offset + 1, -1);
    if (next === undefined) {
      const isZero = reader.isZeroFrom(offset);
      const end = offset >= reader.bytes ? "nothing" : isZero ? "zeroes" : "torn";
      return { batches, damage, end, usedBytes: offset, torn: isZero ? undefined : flawed };
    }
    damage.push(flawed);
    offset = next.offset;
  }
}

/** All segments, and what a reader makes of the whole log, from its beginning on. */
export function surveyLog(files: StoreFiles): { segments: SegmentSurvey[]; scan: LogScan } {
  const all = listSegments(files);
  const first = all.find(hasHead);
  return {
    segments: all.map((segment) => surveySegment(files, segment)),
    scan: scanLog(files, first?.head.afterEpoch ?? 0),
  };
}
