/**
 * What is in a segment of the log, or in a checkpoint: plain objects for people and for JSON. Also
 * of files that are damaged, as far as that goes; what is wrong stands beside what could be read.
 */

import type { Damage, StoreFiles } from "../../folder/files.ts";
import {
  CHUNK_HEADER_BYTES,
  type CheckpointKind,
  CLASS_MASK,
  ENTRY_FIRST_INCARNATION,
  ENTRY_SHAPE,
  ENTRY_UNIT,
  ENTRY_WORDS,
  QUIET,
  WHOLE,
} from "../../log/checkpoint/format.ts";
import { Checkpoint } from "../../log/checkpoint/reader.ts";
import { isDamage } from "../../log/head.ts";
import { PayloadReader } from "../../log/segments/payloads.ts";
import {
  hasHead,
  LOG_FOLDER,
  listSegments,
  type SegmentHead,
} from "../../log/segments/segments.ts";
import { surveySegment } from "../../log/segments/survey.ts";
import type { Geometry } from "../../memory/control.ts";
import { CELL_BYTES } from "../../memory/size-classes.ts";
import { SituError } from "../../runtime/errors.ts";
import { UNIT_BYTES } from "../../runtime/limits.ts";
import { decodeRecords, type LogRecord, recordsFault } from "./records.ts";

export interface InspectedBatch {
  readonly offset: number;
  /** With its header. */
  readonly bytes: number;
  /** It has all that was committed after the first of these epochs, up to the second. */
  readonly afterEpoch: number;
  readonly lastEpoch: number;
  /** When it was closed, as an ISO text. */
  readonly closedAt: string;
  readonly records: number;
  /** If they were asked for. */
  readonly transactions?: readonly LogRecord[];
}

export interface InspectedSegment {
  readonly name: string;
  readonly bytes: number;
  /** Null if it cannot be read. */
  readonly head: SegmentHead | null;
  readonly usedBytes: number;
  readonly batches: readonly InspectedBatch[];
  readonly records: number;
  readonly firstEpoch: number | null;
  readonly lastEpoch: number | null;
  /** What lies behind the last batch. */
  readonly end: "nothing" | "zeroes" | "torn";
  readonly damage: readonly Damage[];
}

/** `name` is that of a file in the store's folder, as in "log/0000000001.log". */
export function inspectSegment(
  files: StoreFiles,
  name: string,
  options: { readonly records?: boolean } = {},
): InspectedSegment {
  const segment = listSegments(files).find((each) => each.name === name);
  if (segment === undefined) throw notThere(files, name, `${LOG_FOLDER}/…`);
  const { batches, damage, end, usedBytes } = surveySegment(files, segment);
  const head = hasHead(segment) ? segment.head : null;
  const found = [...damage];
  const reader = new PayloadReader(files);
  try {
    const inspected = batches.map((batch): InspectedBatch => {
      const { offset, after, last, records, closedMs, payloadAt, payloadBytes } = batch;
      const common = {
        offset,
        bytes: payloadAt - offset + payloadBytes,
        afterEpoch: after,
        lastEpoch: last,
        closedAt: shownTime(closedMs),
        records,
      };
      if (options.records !== true || head === null) return common;
      const words = reader.read(batch);
      const fault = recordsFault(words, batch, head.geometry);
      if (fault === undefined) return { ...common, transactions: decodeRecords(words) };
      found.push({ file: name, offset, what: fault });
      return common;
    });
    return {
      name,
      bytes: segment.bytes,
      head,
      usedBytes,
      batches: inspected,
      records: batches.reduce((sum, { records }) => sum + records, 0),
      firstEpoch: batches[0]?.after ?? null,
      lastEpoch: batches.at(-1)?.last ?? null,
      end,
      damage: found,
    };
  } finally {
    reader.close();
  }
}

export interface InspectedBlock {
  readonly regionId: number;
  /** The first of its units in the region. */
  readonly unit: number;
  /** Bytes of its cells; null for a unit that is free. */
  readonly cellBytes: number | null;
  readonly firstIncarnation: number;
  /** What the checkpoint has of it, with its header; 0: as in the one that it builds on. */
  readonly bytes: number;
  readonly isWhole: boolean;
}

export interface InspectedCheckpoint {
  readonly name: string;
  readonly bytes: number;
  readonly kind: CheckpointKind;
  /** The start epoch of the checkpoint that it builds on. */
  readonly base: number | null;
  /** It has all that was committed up to the first of these epochs, nothing after the second. */
  readonly startEpoch: number;
  readonly endEpoch: number;
  /** Up to which it needs the log; null if it needs none. */
  readonly logEpoch: number | null;
  readonly closedAt: string;
  readonly logId: string;
  readonly geometry: Geometry;
  readonly catalogue: { readonly regionId: number; readonly word: number };
  /** Blocks that it has something of, and those that are as in the one that it builds on. */
  readonly writtenBlocks: number;
  readonly otherBlocks: number;
  /** By the size of cells: how many blocks, and bytes of them in the file. */
  readonly sizes: readonly {
    readonly cellBytes: number;
    readonly blocks: number;
    readonly bytes: number;
  }[];
  readonly damage: readonly Damage[];
  /** If they were asked for. */
  readonly blocks?: readonly InspectedBlock[];
}

/** As in "checkpoints/0000000000000123.full". If nothing of it can be read, what is wrong. */
export function inspectCheckpoint(
  files: StoreFiles,
  name: string,
  options: { readonly blocks?: boolean } = {},
): InspectedCheckpoint | Damage {
  if (!files.has(name)) throw notThere(files, name, "checkpoints/…");
  const checkpoint = Checkpoint.open(files, name);
  if (isDamage(checkpoint)) return checkpoint;
  try {
    const { closedMs, ...info } = checkpoint.info;
    const blocks = blocksOf(checkpoint);
    const written = blocks.filter(({ bytes }) => bytes > 0);
    const used = blocks.filter(({ cellBytes }) => cellBytes !== null);
    return {
      ...info,
      logEpoch: info.logEpoch === QUIET ? null : info.logEpoch,
      closedAt: shownTime(closedMs),
      writtenBlocks: written.length,
      otherBlocks: used.length - written.length,
      sizes: sizesOf(used),
      damage: checkpoint.verify(),
      ...(options.blocks === true ? { blocks } : {}),
    };
  } finally {
    checkpoint.close();
  }
}

function blocksOf(checkpoint: Checkpoint): InspectedBlock[] {
  const { words, entries, info } = checkpoint;
  const unitsPerRegion = info.geometry.regionBytes / UNIT_BYTES;
  return Array.from({ length: entries }, (_, entry) => {
    const at = entry * ENTRY_WORDS;
    const unit = words[at + ENTRY_UNIT];
    const shape = words[at + ENTRY_SHAPE];
    const sizeClass = (shape & CLASS_MASK) - 1;
    return {
      regionId: Math.floor(unit / unitsPerRegion),
      unit: unit % unitsPerRegion,
      cellBytes: sizeClass < 0 ? null : CELL_BYTES[sizeClass],
      firstIncarnation: words[at + ENTRY_FIRST_INCARNATION],
      bytes: checkpoint.chunkBytesOf(entry),
      isWhole: (shape & WHOLE) !== 0,
    };
  });
}

function sizesOf(blocks: readonly InspectedBlock[]): InspectedCheckpoint["sizes"] {
  const sizes = new Map<number, { cellBytes: number; blocks: number; bytes: number }>();
  for (const { cellBytes, bytes } of blocks) {
    const size = sizes.get(cellBytes!) ?? { cellBytes: cellBytes!, blocks: 0, bytes: 0 };
    size.blocks++;
    size.bytes += Math.max(0, bytes - CHUNK_HEADER_BYTES);
    sizes.set(cellBytes!, size);
  }
  return [...sizes.values()].sort((a, b) => a.cellBytes - b.cellBytes);
}

/** Times on disk may be damaged in ways that no checksum tells: whatever it is, it is shown. */
export function shownTime(ms: number): string {
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : String(ms);
}

function notThere(files: StoreFiles, name: string, expected: string): SituError {
  return new SituError("SITU_CONFIG", `${files.place} has no file ${name}, as in ${expected}`);
}
