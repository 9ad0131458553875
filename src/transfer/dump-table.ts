/** The rows of a table as text, piece by piece, all of one state. */

import {
  type AnyDatabase,
  type Database,
  isLocal,
  type RemoteDatabase,
} from "../database/database.ts";
import type { RemoteSnapshot, Snapshot } from "../database/snapshot.ts";
import { nowMs, turn } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { SCAN_YIELD_MS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import type { Table } from "../tables/table.ts";
import { CSV } from "./csv.ts";
import type { Format } from "./format.ts";
import { JSON_LINES } from "./json-lines.ts";
import { fieldTexts } from "./value-text.ts";

/** How dumped rows are written: a JSON object on each line, or CSV. */
export type DumpFormat = "jsonl" | "csv";

const FORMATS: Readonly<Record<DumpFormat, Format>> = { jsonl: JSON_LINES, csv: CSV };

/** Characters of a piece of text. */
const PIECE_LENGTH = 64 * 1024;

/** How far a dump or load is. */
export interface TransferProgress {
  /** What is being written or read, as in "table order". */
  readonly subject: string;
  /** The rows of it that are done. */
  readonly rows: number;
}

/** What `dumpTable` takes. */
export interface DumpTableOptions {
  /** Default: "jsonl". */
  readonly format?: DumpFormat;
  /** The state to dump. Default: a snapshot that is taken when the first piece is asked for. */
  readonly snapshot?: Snapshot | RemoteSnapshot;
  /** Stops the dump. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the progress. */
  readonly onProgress?: (progress: TransferProgress) => void;
}

export function formatOf(call: string, format: unknown): Format {
  if (typeof format === "string" && Object.hasOwn(FORMATS, format)) {
    return FORMATS[format as DumpFormat];
  }
  throw new SituError("SITU_CONFIG", `${call}: format is "jsonl" or "csv", not ${show(format)}`);
}

export async function* dumpTable(
  db: AnyDatabase,
  table: Table,
  options: DumpTableOptions = {},
): AsyncGenerator<string, void, void> {
  refuseUnknownOptions("dumpTable", options, ["format", "snapshot", "signal", "onProgress"]);
  const writer = formatOf("dumpTable", options.format ?? "jsonl").writer(fieldTexts(table));
  const { signal, onProgress } = options;
  const snapshot = options.snapshot ?? (await (db as Database | RemoteDatabase).snapshot());
  const subject = `table ${table.name}`;
  let rows = 0;
  let turnMs = nowMs();
  let piece = writer.head;
  const isPieceFull = (row: unknown): boolean => {
    piece += writer.line(row as object);
    rows++;
    return piece.length >= PIECE_LENGTH;
  };
  const given = async (): Promise<void> => {
    piece = "";
    if (nowMs() - turnMs < SCAN_YIELD_MS) return;
    onProgress?.({ subject, rows });
    await turn();
    turnMs = nowMs();
  };
  try {
    if (isLocal(db)) {
      for (const row of (snapshot as Snapshot).scan(table)) {
        if (!isPieceFull(row)) continue;
        signal?.throwIfAborted();
        yield piece;
        await given();
      }
    } else {
      for await (const row of (snapshot as RemoteSnapshot).scan(table)) {
        if (!isPieceFull(row)) continue;
        signal?.throwIfAborted();
        yield piece;
        await given();
      }
    }
    if (piece !== "") yield piece;
    onProgress?.({ subject, rows });
  } finally {
    if (options.snapshot === undefined) await snapshot.close();
  }
}
