/**
 * The segments of the log: files log/0000000001.log and so on, numbered without gaps. The head of
 * each says whose log it is and after which epoch it counts:
 *
 *   - The log up to `afterEpoch` lies in earlier segments, and was on disk before this head was
 *     written. A batch there that goes beyond is void: its writer died before it was
 *     published, and the same records come again here.
 *   - `memoryId` and `origin` say which memory wrote it (memories.ts).
 *   - `bytes` is the room that was reserved. A shorter file was closed in good order, or cut
 *     short by somebody else: it has no torn end to be forgiven.
 *
 * A segment is made before it is needed, without a head, and gets its head when its first batch is
 * about to be written. A file without a readable head and without a batch is such a beginning.
 */

import type { Damage, StoreFile, StoreFiles } from "../../folder/files.ts";
import type { Geometry } from "../../memory/control.ts";
import { SituError } from "../../runtime/errors.ts";
import { HEAD_BYTES } from "../../runtime/limits.ts";
import { decodeHead, encodeHead, isDamage } from "../head.ts";
import { readLogEnd } from "./end.ts";
import { readAt, SegmentReader } from "./segment-reader.ts";

export const LOG_FOLDER = "log";
const MAGIC = "SITULOG1";
const FORMAT = 1;
const NAME = /^(\d{10})\.log$/;

/** What all segments of a log have in common. */
export interface LogIdentity {
  readonly logId: string;
  readonly geometry: Geometry;
  /** How large the store might be then. Not there in logs of earlier versions, where the geometry says it. */
  readonly memoryBytes?: number;
  readonly catalogue: { readonly regionId: number; readonly word: number };
  /** The memory that writes, and the last segment that it was rebuilt from: see memories.ts. */
  readonly memoryId?: string;
  readonly origin?: number;
}

export interface SegmentHead extends LogIdentity {
  readonly format: typeof FORMAT;
  readonly number: number;
  readonly afterEpoch: number;
  readonly createdMs: number;
  readonly bytes: number;
}

/** What is wrong with a head. */
export interface HeadDamage extends Damage {
  /** Whether it may have never been written: it is not a head of another kind. */
  readonly isIllegible: boolean;
}

export interface SegmentFile {
  /** With its folder. */
  readonly name: string;
  readonly number: number;
  /** The length of the file. */
  readonly bytes: number;
  readonly head: SegmentHead | HeadDamage;
}

/** A segment whose head is sound. */
export interface LogSegment extends SegmentFile {
  readonly head: SegmentHead;
}

export function segmentName(number: number): string {
  return `${LOG_FOLDER}/${String(number).padStart(10, "0")}.log`;
}

/** The number in the name of a segment, without its folder; undefined for other files. */
export function segmentNumber(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}

export function hasHead(segment: SegmentFile): segment is LogSegment {
  return !isDamage(segment.head);
}

export function encodeSegmentHead(head: Omit<SegmentHead, "format">): Buffer {
  return encodeHead(MAGIC, { format: FORMAT, ...head });
}

export function readSegmentHead(file: StoreFile, number: number): SegmentHead | HeadDamage {
  const wrong = (what: string): HeadDamage => {
    return { file: file.name, offset: 0, what, isIllegible: false };
  };
  const bytes = Buffer.alloc(HEAD_BYTES);
  let length: number;
  try {
    length = readAt(file, bytes, 0);
  } catch (error) {
    // Only who needs this segment is to fail for it.
    if (error instanceof SituError) return wrong("the disk does not give it back");
    throw error;
  }
  const found = decodeHead(MAGIC, bytes.subarray(0, length), file.name);
  if (isDamage(found)) return { ...found, isIllegible: true };
  const head = found as SegmentHead;
  if (head.format !== FORMAT) {
    return wrong(`it has the format ${head.format}, and this version of Situ reads ${FORMAT}`);
  }
  if (head.number !== number) return wrong(`its head says that it is segment ${head.number}`);
  return head;
}

/** All segments, in the order of their numbers. */
export function listSegments(files: StoreFiles): SegmentFile[] {
  const segments: SegmentFile[] = [];
  for (const entry of files.list(LOG_FOLDER)) {
    const number = segmentNumber(entry);
    if (number === undefined) continue;
    const segment = readSegmentFile(files, segmentName(number), number);
    if (segment !== undefined) segments.push(segment);
  }
  return segments;
}

function readSegmentFile(files: StoreFiles, name: string, number: number): SegmentFile | undefined {
  let file: StoreFile;
  try {
    file = files.open(name, true);
  } catch (error) {
    // Removed since it was listed: a running store does that with segments that it needs no more.
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    return { name, number, bytes: file.size(), head: readSegmentHead(file, number) };
  } finally {
    file.close();
  }
}

/** The segments of the log, and apart from them the file that was to become the next one. */
export function begunSegments(files: StoreFiles): {
  segments: SegmentFile[];
  unfinished: string[];
} {
  const segments = listSegments(files);
  const unfinished: string[] = [];
  for (let last = segments.at(-1); last !== undefined; last = segments.at(-1)) {
    if (hasHead(last) || !(last.head as HeadDamage).isIllegible) break;
    if (hasBatch(files, last)) {
      // Its head is lost; or else it was begun after it had been looked at.
      segments[segments.length - 1] = readSegmentFile(files, last.name, last.number) ?? last;
      break;
    }
    unfinished.unshift(last.name);
    segments.pop();
  }
  return { segments, unfinished };
}

function hasBatch(files: StoreFiles, segment: SegmentFile): boolean {
  const file = files.open(segment.name, true);
  try {
    const reader = new SegmentReader(file, segment.number, undefined);
    return reader.findBatch(HEAD_BYTES, -1) !== undefined;
  } finally {
    file.close();
  }
}

/**
 * The number for the next segment. A file that somebody was making there counts for nothing; one that
 * was there and is missing counts, so that it is missed.
 */
export function nextSegment(files: StoreFiles): number {
  const end = readLogEnd(files);
  const known = end === undefined || isDamage(end) ? 0 : end.number;
  return Math.max(begunSegments(files).segments.at(-1)?.number ?? 0, known) + 1;
}

/**
 * Where one begins to read who needs all that came after an epoch: the last segment that starts at
 * this epoch or before. -1 if there is none.
 */
export function firstNeeded(segments: readonly SegmentFile[], epoch: number): number {
  return segments.findLastIndex((segment) => hasHead(segment) && segment.head.afterEpoch <= epoch);
}

/**
 * Segments that nobody needs who has all up to an epoch, the oldest first, but for the newest of them that
 * make up the bytes to be kept. To be removed in this order; a power loss that brings back some of them
 * does no harm.
 */
export function segmentsBefore(files: StoreFiles, epoch: number, keptBytes = 0): string[] {
  const segments = listSegments(files);
  let end = Math.max(firstNeeded(segments, epoch), 0);
  for (let kept = 0; end > 0 && kept + segments[end - 1].bytes <= keptBytes; end--) {
    kept += segments[end - 1].bytes;
  }
  return segments.slice(0, end).map(({ name }) => name);
}
