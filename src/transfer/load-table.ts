/**
 * Rows from text into a table, in transactions of a few hundred rows. A mistake in the text stops the load
 * with the number of its line; what was committed before stays.
 *
 * A load that can be resumed keeps its place in the store itself: a row of the table `situ loads`, which each
 * transaction changes together with the rows that it loads. A process that dies leaves both or neither, so
 * the next attempt goes on with the first row that is missing.
 */

import type { AsyncTransaction } from "../database/async-transaction.ts";
import { type AnyDatabase, isLocal } from "../database/database.ts";
import type { Transaction } from "../database/transaction.ts";
import { nowMs, turn } from "../runtime/clock.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import {
  LOAD_BATCH_LENGTH,
  LOAD_BATCH_ROWS,
  MAX_LOADED_ROW_LENGTH,
  SCAN_YIELD_MS,
} from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { str, u64 } from "../tables/fields.ts";
import { keyIn } from "../tables/indexes/entries.ts";
import type { RowValues } from "../tables/indexes/structure.ts";
import { LOADS } from "../tables/own-tables.ts";
import { type InferRow, type Table, table } from "../tables/table.ts";
import { type DumpFormat, formatOf, type TransferProgress } from "./dump-table.ts";
import type { RowReader } from "./format.ts";
import { fieldTexts } from "./value-text.ts";

/** What happens to a row whose key is in the table already. */
export type OnConflict = "fail" | "replace" | "skip";

/** What `loadTable` takes. */
export interface LoadTableOptions {
  /** Default: "jsonl". */
  readonly format?: DumpFormat;
  /** What happens to a row whose key is in the table already. Default: "fail", with SITU_EXISTS. */
  readonly onConflict?: OnConflict;
  /** Stops the load. What was committed stays. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the progress. */
  readonly onProgress?: (progress: TransferProgress) => void;
}

/** What was loaded into a table. */
export interface Loaded {
  /** Rows that were written. */
  readonly rows: number;
  /** Rows whose key was in the table already, with `onConflict: "skip"`. */
  readonly skipped: number;
}

/** How far loads are that can be resumed. */
export const Loads = table(
  LOADS,
  { source: str(200), offset: u64(), lines: u64(), rows: u64(), skipped: u64() },
  { key: "source" },
);

/** A text that can be read from any byte on, or only from the first. */
export interface TextSource {
  read(fromByte: number): AsyncIterable<Uint8Array>;
}

/** What the rows of a text are loaded into. */
export interface RowSink {
  /** As in "table order". */
  readonly subject: string;
  /** Writes a row; false if it was skipped. */
  add(tx: Transaction, row: RowValues, onConflict: OnConflict): boolean;
  /** The same in a transaction of a cluster, if that can be. */
  addLater?(tx: AsyncTransaction, row: RowValues, onConflict: OnConflict): Promise<boolean>;
}

const CONFLICTS: readonly unknown[] = ["fail", "replace", "skip"];
/** Mistakes in the text, as opposed to what is wrong with the store. */
const MISTAKES: readonly SituErrorCode[] = [
  "SITU_TYPE",
  "SITU_EXISTS",
  "SITU_UNIQUE",
  "SITU_TOO_LARGE",
  "SITU_MISSING",
];
const OPTIONS = ["format", "onConflict", "signal", "onProgress"];

/** Loads a text; with the place where an earlier attempt has ended, what comes after it. */
export async function loadText(
  db: AnyDatabase,
  into: Table,
  source: TextSource,
  options: LoadTableOptions = {},
  place?: InferRow<typeof Loads>,
): Promise<Loaded> {
  refuseUnknownOptions("loadTable", options, OPTIONS);
  const format = formatOf("loadTable", options.format ?? "jsonl");
  const reader = format.reader(fieldTexts(into));
  return loadRows(db, new TableSink(into), reader, source, options, place);
}

/** Loads what a reader makes of a text. */
export async function loadRows(
  db: AnyDatabase,
  sink: RowSink,
  reader: RowReader,
  source: TextSource,
  options: LoadTableOptions,
  place?: InferRow<typeof Loads>,
): Promise<Loaded> {
  const { onConflict = "fail" } = options;
  if (!CONFLICTS.includes(onConflict)) {
    throw new SituError(
      "SITU_CONFIG",
      `loadTable: onConflict is "fail", "replace" or "skip", not ${show(onConflict)}`,
    );
  }
  return new TextLoad(db, sink, reader, { ...options, onConflict }, place).run(source);
}

export function loadTable(
  db: AnyDatabase,
  into: Table,
  text: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
  options: LoadTableOptions = {},
): Promise<Loaded> {
  return loadText(db, into, { read: () => bytesOf(text) }, options);
}

async function* bytesOf(
  text: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
): AsyncGenerator<Uint8Array> {
  for await (const piece of text) yield typeof piece === "string" ? Buffer.from(piece) : piece;
}

class TableSink implements RowSink {
  readonly subject: string;
  readonly #table: Table;

  constructor(into: Table) {
    this.subject = `table ${into.name}`;
    this.#table = into;
  }

  add(tx: Transaction, row: RowValues, onConflict: OnConflict): boolean {
    if (onConflict === "replace") tx.put(this.#table, row);
    else if (onConflict === "fail" || !tx.has(this.#table, this.#keyOf(row))) {
      tx.insert(this.#table, row);
    } else return false;
    return true;
  }

  async addLater(tx: AsyncTransaction, row: RowValues, onConflict: OnConflict): Promise<boolean> {
    if (onConflict === "replace") await tx.put(this.#table, row);
    else if (onConflict === "fail" || !(await tx.has(this.#table, this.#keyOf(row)))) {
      await tx.insert(this.#table, row);
    } else return false;
    return true;
  }

  #keyOf(row: RowValues): unknown {
    return keyIn(row, this.#table.key, this.#table.singleKey);
  }
}

class TextLoad {
  readonly #db: AnyDatabase;
  readonly #sink: RowSink;
  readonly #reader: RowReader;
  readonly #options: LoadTableOptions;
  readonly #onConflict: OnConflict;
  /** The name of the place in the store, if it is kept there. */
  readonly #source: string | undefined;
  /** The first byte and line that are not loaded yet. */
  #offset = 0;
  #lines = 0;
  #rows = 0;
  #skipped = 0;
  /** The text that was read beyond that, and its rows. */
  #readBytes = 0;
  #readLines = 0;
  readonly #batch: RowValues[] = [];
  /** The line of each row in the batch. */
  readonly #numbers: number[] = [];
  #batchSkipped = 0;
  /** The cluster wants to be told that snapshot isolation is enough. */
  #isSnapshotOnly = false;
  #turnMs = nowMs();

  constructor(
    db: AnyDatabase,
    sink: RowSink,
    reader: RowReader,
    options: LoadTableOptions & { onConflict: OnConflict },
    place: InferRow<typeof Loads> | undefined,
  ) {
    this.#db = db;
    this.#sink = sink;
    this.#reader = reader;
    this.#options = options;
    this.#onConflict = options.onConflict;
    if (place === undefined) return;
    this.#source = place.source;
    this.#offset = Number(place.offset);
    this.#lines = Number(place.lines);
    this.#rows = Number(place.rows);
    this.#skipped = Number(place.skipped);
  }

  async run(source: TextSource): Promise<Loaded> {
    // Resumed: the names in the first line of a CSV are needed all the same.
    if (this.#offset > 0) await this.#pieces(source.read(0), true);
    await this.#pieces(source.read(this.#offset), this.#offset === 0);
    this.#options.onProgress?.({ subject: this.#sink.subject, rows: this.#rows });
    return { rows: this.#rows, skipped: this.#skipped };
  }

  /** Loads the pieces of a text; if it begins with a head, and something is loaded already, only that. */
  async #pieces(pieces: AsyncIterable<Uint8Array>, hasHead: boolean): Promise<void> {
    const isHeadOnly = this.#offset > 0 && hasHead;
    const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
    const decoded = (piece?: Uint8Array): string => {
      try {
        return piece === undefined ? decoder.decode() : decoder.decode(piece, { stream: true });
      } catch (error) {
        throw mistake(`after line ${this.#lines}: the text is not UTF-8`, error);
      }
    };
    let needsHead = hasHead;
    let text = "";
    const take = async (isLast: boolean): Promise<boolean> => {
      if (needsHead) {
        const head = this.#head(text, isLast);
        if (head < 0) return false;
        needsHead = false;
        if (isHeadOnly) return true;
        this.#readBytes += Buffer.byteLength(text.slice(0, head));
        this.#readLines += head > 0 && text[head - 1] === "\n" ? 1 : 0;
        text = text.slice(head);
      }
      text = await this.#take(text, isLast);
      return false;
    };
    for await (const piece of pieces) {
      text += decoded(piece);
      if (await take(false)) return;
      if (text.length > MAX_LOADED_ROW_LENGTH) {
        throw mistake(
          `line ${this.#lines + 1}: a row has more than ${MAX_LOADED_ROW_LENGTH} characters`,
        );
      }
    }
    text += decoded();
    await take(true);
  }

  #head(text: string, isLast: boolean): number {
    // A mark that some programs put before UTF-8.
    const from = text.charCodeAt(0) === 0xfeff ? 1 : 0;
    try {
      const end = this.#reader.readHead(text.slice(from), isLast);
      return end < 0 ? -1 : from + end;
    } catch (error) {
      throw atLine(1, error);
    }
  }

  /** Takes the rows of the whole lines of a text; returns the rest of it. */
  async #take(text: string, isLast: boolean): Promise<string> {
    const reader = this.#reader;
    let from = 0;
    let at = 0;
    while (at < text.length) {
      const end = reader.next(text, at, isLast);
      if (end < 0) break;
      const line = this.#lines + ++this.#readLines;
      try {
        const row = reader.row(text, at, end);
        if (row !== undefined) {
          this.#batch.push(row as RowValues);
          this.#numbers.push(line);
        }
      } catch (error) {
        throw atLine(line, error);
      }
      at = end;
      if (this.#batch.length < LOAD_BATCH_ROWS && at - from < LOAD_BATCH_LENGTH) continue;
      this.#readBytes += Buffer.byteLength(text.slice(from, at));
      await this.#commit();
      from = at;
    }
    this.#readBytes += Buffer.byteLength(text.slice(from, at));
    if (isLast || this.#readBytes >= LOAD_BATCH_LENGTH) await this.#commit();
    return text.slice(at);
  }

  async #commit(): Promise<void> {
    this.#options.signal?.throwIfAborted();
    if (this.#readBytes === 0) return;
    const numbers = this.#numbers.splice(0);
    this.#offset += this.#readBytes;
    this.#lines += this.#readLines;
    this.#readBytes = 0;
    this.#readLines = 0;
    await this.#write(numbers);
    this.#rows += this.#batch.length - this.#batchSkipped;
    this.#skipped += this.#batchSkipped;
    this.#batch.length = 0;
    if (nowMs() - this.#turnMs < SCAN_YIELD_MS) return;
    this.#options.onProgress?.({ subject: this.#sink.subject, rows: this.#rows });
    await turn();
    this.#turnMs = nowMs();
  }

  async #write(numbers: readonly number[]): Promise<void> {
    const db = this.#db;
    let at = 0;
    try {
      if (isLocal(db)) {
        db.transactSync((tx) => {
          this.#batchSkipped = 0;
          for (at = 0; at < this.#batch.length; at++) {
            const isAdded = this.#sink.add(tx, this.#batch[at], this.#onConflict);
            if (!isAdded) this.#batchSkipped++;
          }
          if (this.#source !== undefined) tx.put(Loads, this.#placeRow(this.#source));
        });
      } else {
        this.#batchSkipped = 0;
        await this.#writeThere(db, 0, this.#batch.length, (next) => {
          at = next;
        });
      }
    } catch (error) {
      const isMistake = error instanceof SituError && MISTAKES.includes(error.code);
      throw isMistake && at < numbers.length ? atLine(numbers[at], error) : error;
    }
  }

  /** Rows of the batch to a cluster. What is too large for one transaction there is written in several. */
  async #writeThere(
    db: AnyDatabase,
    from: number,
    to: number,
    reached: (at: number) => void,
  ): Promise<void> {
    let at = from;
    let skipped = 0;
    const body = async (tx: AsyncTransaction): Promise<void> => {
      skipped = 0;
      for (at = from; at < to; at++) {
        reached(at);
        const isAdded = await this.#sink.addLater?.(tx, this.#batch[at], this.#onConflict);
        if (isAdded === undefined) throw onlyLocal(this.#sink);
        if (!isAdded) skipped++;
      }
      reached(at);
    };
    try {
      // Rows that are read are those that are written, so it comes to the same where there is less isolation (NAM-DB).
      await db.transact(body, this.#isSnapshotOnly ? { isolation: "snapshot" } : {});
    } catch (error) {
      const code = error instanceof SituError ? error.code : undefined;
      if (code === "SITU_UNSUPPORTED" && at === from && !this.#isSnapshotOnly) {
        this.#isSnapshotOnly = true;
        await this.#writeThere(db, from, to, reached);
        return;
      }
      const half = from + ((to - from) >> 1);
      if (code !== "SITU_TOO_LARGE" || at < to || half === from) throw error;
      await this.#writeThere(db, from, half, reached);
      await this.#writeThere(db, half, to, reached);
      return;
    }
    this.#batchSkipped += skipped;
  }

  /** As it is once the batch is committed. */
  #placeRow(source: string): InferRow<typeof Loads> {
    return {
      source,
      offset: BigInt(this.#offset),
      lines: BigInt(this.#lines),
      rows: BigInt(this.#rows + this.#batch.length - this.#batchSkipped),
      skipped: BigInt(this.#skipped + this.#batchSkipped),
    };
  }
}

function onlyLocal({ subject }: RowSink): SituError {
  return new SituError("SITU_UNSUPPORTED", `${subject} cannot be loaded into a cluster`);
}

function mistake(what: string, cause?: unknown): SituError {
  return new SituError("SITU_TYPE", what, cause === undefined ? {} : { cause });
}

/** The same error, with the line in its message. */
function atLine(line: number, error: unknown): unknown {
  if (!(error instanceof SituError))
    return mistake(`line ${line}: ${(error as Error).message}`, error);
  error.message = `line ${line}: ${error.message}`;
  return error;
}
