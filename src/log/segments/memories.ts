/**
 * Whether the log was written by one memory at a time.
 *
 * Each segment names the memory whose commits it holds (control.memoryId, made anew whenever memory is
 * created or rebuilt). Within one memory a segment may begin before the last batch of the one before it:
 * its writer died before the batch was published, and the records come again (segments.ts). Across
 * memories that cannot be. A memory is rebuilt from all that the log holds, and its first segment begins
 * where that ended. So:
 *
 *   - the segments of one memory follow each other, and a memory never comes back after another;
 *   - the first segment of a memory follows the one that it was rebuilt from (`origin`);
 *   - the segment before it has no batch beyond the epoch after which it begins.
 *
 * Anything else was written by two memories at once, each of which took the store for its own. What
 * one of them has acknowledged is missing in the other, so neither can be called the store. Segments
 * of versions that did not name their memory count as those of one memory, whatever their place.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { shownWriters } from "./end.ts";
import { saltOf } from "./format.ts";
import { endOf, isFlaw, SegmentReader } from "./segment-reader.ts";
import { hasHead, type LogSegment, type SegmentFile } from "./segments.ts";

/** What shows that two memories have written these segments. */
export function writersDamage(files: StoreFiles, segments: readonly SegmentFile[]): Damage[] {
  const damage: Damage[] = [];
  const seen = new Set<string>();
  let previous: LogSegment | undefined;
  for (const segment of segments) {
    if (!hasHead(segment)) {
      previous = undefined;
      continue;
    }
    const { memoryId } = segment.head;
    if (previous !== undefined && previous.head.memoryId !== memoryId) {
      const what =
        memoryId !== undefined && seen.has(memoryId)
          ? ", and earlier segments by the same memory as this one"
          : originFault(previous, segment);
      if (what !== undefined)
        damage.push({ file: segment.name, offset: 0, what: told(previous, segment, what) });
      else damage.push(...overlap(files, previous, segment));
    }
    if (memoryId !== undefined) seen.add(memoryId);
    previous = segment;
  }
  return damage;
}

function originFault(previous: LogSegment, { number, head }: LogSegment): string | undefined {
  if (head.memoryId === undefined || head.origin === undefined) return undefined;
  // After segments that were removed, nothing can be told.
  if (previous.number !== number - 1 || head.origin === previous.number) return undefined;
  return `, which was not there when the memory of this one was rebuilt (from segment ${head.origin})`;
}

/** A batch that the memory of a segment wrote when the memory of the next one had taken over. */
function overlap(files: StoreFiles, segment: LogSegment, next: LogSegment): Damage[] {
  if (segment.number !== next.number - 1) return [];
  const { afterEpoch } = next.head;
  const wrong = (offset: number, epoch: number): Damage[] => {
    const what = `, which goes up to epoch ${epoch}, and this one begins after ${afterEpoch}`;
    return [{ file: segment.name, offset, what: told(segment, next, what) }];
  };
  if (segment.head.afterEpoch > afterEpoch) return wrong(0, segment.head.afterEpoch);
  const file = files.open(segment.name, true);
  try {
    const reader = new SegmentReader(file, segment.number, saltOf(segment.head.logId));
    for (let offset = HEAD_BYTES; ; ) {
      const found = reader.batchAt(offset);
      if (!isFlaw(found)) {
        if (found.last > afterEpoch) return wrong(offset, found.last);
        offset = endOf(found);
        continue;
      }
      // What a power loss left of the last batch is none; but nothing sound lies behind that.
      const from = found.header === undefined ? offset + 1 : endOf(found.header);
      const later = reader.findBatch(from, afterEpoch);
      const isSound = later !== undefined && !isFlaw(reader.batchAt(later.offset));
      return isSound ? wrong(later.offset, later.last) : [];
    }
  } finally {
    file.close();
  }
}

function told(previous: LogSegment, next: LogSegment, what: string): string {
  const ids = [previous, next].map(({ head }) => head.memoryId ?? "unnamed");
  return `${shownWriters(ids)}: ${next.name} follows ${previous.name}${what}`;
}
