/**
 * A ring of slots for records that are short, as nearly all are: objects of the store at places that are known,
 * so that to keep a record is to overwrite one object, and to remove it is to overwrite two words of it. The
 * record with arrival a lies in slot a modulo RECORD_SLOTS, or not in the ring at all: where that slot still
 * holds an earlier one, or the record is too long, its log keeps it as a row (record-log.ts). So nothing has to
 * be remembered of where a record is, and one that stays for long is in the way of one arrival of a round.
 *
 *   word 0  words of the record; 0 if the slot is free; less than 0 if it is free and what it held was installed: what that
 *           was, the next life of the node can read as long as nothing else is put there
 *   word 1  its arrival
 *   word 2… the record
 *
 * The slots are made in pieces, each when the ring first gets there. A piece is an array of objects
 * (memory/object.ts); a row of a table says where it is.
 */

import type { Executor } from "../../engine/executor.ts";
import { copyWords } from "../../engine/journal.ts";
import { runReadOnly, runSync } from "../../engine/run.ts";
import { Transaction } from "../../engine/transaction.ts";
import { HEADER_WORDS } from "../../memory/object.ts";
import type { Region } from "../../memory/store-memory.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  DEFAULT_TIMEOUT_MS,
  RECORD_PIECE_SLOTS,
  RECORD_SLOT_WORDS,
  RECORD_SLOTS,
} from "../../runtime/limits.ts";
import type { Store } from "../../stores/store.ts";
import { openTable } from "../catalogue.ts";
import { str, u8, u32 } from "../fields.ts";
import { RECORD_PIECES } from "../own-tables.ts";
import { table } from "../table.ts";

const LENGTH = 0;
const ARRIVAL = 1;
const RECORD = 2;
/** Of the longest record that a slot holds. */
const MOST_WORDS = RECORD_SLOT_WORDS - RECORD;
const STRIDE = HEADER_WORDS + RECORD_SLOT_WORDS;

const Pieces = table(
  RECORD_PIECES,
  { log: str(), piece: u8(), region: u32(), word: u32() },
  { key: ["log", "piece"] },
);

interface PieceRow {
  log: string;
  piece: number;
  region: number;
  word: number;
}

interface InSlot {
  readonly arrival: number;
  readonly record: Int32Array;
}

/** Where the first slot of a piece is. */
interface Piece {
  readonly region: Region;
  readonly word: number;
}

export class RecordSlots {
  readonly #executor: Executor;
  readonly #log: string;
  readonly #table: Store<PieceRow, [string, number]>;
  readonly #pieces: (Piece | undefined)[];
  /** The store had no room for a piece: this life does without. */
  #isFull = false;

  /** Those of the log with a name. */
  constructor(executor: Executor, log: string) {
    this.#executor = executor;
    this.#log = log;
    this.#table = openTable(executor, Pieces).rows as unknown as Store<PieceRow, [string, number]>;
    this.#pieces = runReadOnly(
      executor,
      new Transaction(executor),
      (tx) => this.#find(tx),
      undefined,
    );
  }

  fits({ length }: Int32Array): boolean {
    return length <= MOST_WORDS;
  }

  /** Whether a record can be put in its slot. */
  hasRoom(arrival: number, record: Int32Array): boolean {
    if (!this.fits(record)) return false;
    const piece = this.#pieceOf(arrival) ?? this.#makePiece(pieceAt(arrival));
    return piece !== undefined && piece.region.i32[dataAt(piece, arrival) + LENGTH] <= 0;
  }

  /** Whether the record of an arrival is in its slot. Only its log's thread changes that. */
  has(arrival: number): boolean {
    const piece = this.#pieceOf(arrival);
    if (piece === undefined) return false;
    const { i32 } = piece.region;
    const at = dataAt(piece, arrival);
    return i32[at + LENGTH] > 0 && i32[at + ARRIVAL] >>> 0 === arrival;
  }

  put(tx: Transaction, arrival: number, record: Int32Array): void {
    const { length } = record;
    const at = this.#open(tx, arrival, RECORD + length);
    const { i32 } = tx.set.arena;
    i32[at + LENGTH] = length;
    i32[at + ARRIVAL] = arrival;
    copyWords(record, 0, i32, at + RECORD, length);
  }

  /** Makes the slot of a record free. */
  clear(tx: Transaction, arrival: number, isInstalled: boolean): void {
    const piece = this.#pieceOf(arrival)!;
    const length = piece.region.i32[dataAt(piece, arrival) + LENGTH];
    const at = this.#open(tx, arrival, RECORD);
    const { i32 } = tx.set.arena;
    i32[at + LENGTH] = isInstalled ? -length : 0;
    i32[at + ARRIVAL] = arrival;
  }

  /** What is in the slots, in their order. */
  all(tx: Transaction): InSlot[] {
    return this.#inSlots(tx, (length) => length);
  }

  /** What was in slots that are free, and was installed. */
  installed(tx: Transaction): Int32Array[] {
    return this.#inSlots(tx, (length) => -length).map(({ record }) => record);
  }

  #inSlots(tx: Transaction, lengthOf: (length: number) => number): InSlot[] {
    const found: InSlot[] = [];
    for (const piece of this.#pieces) {
      if (piece === undefined) continue;
      for (let slot = 0; slot < RECORD_PIECE_SLOTS; slot++) {
        const entry = tx.open(piece.region, piece.word + slot * STRIDE);
        const { views, at } = tx;
        const length = Math.min(lengthOf(views.i32[at + LENGTH]), MOST_WORDS);
        const arrival = views.i32[at + ARRIVAL] >>> 0;
        const record = views.i32.slice(at + RECORD, at + RECORD + Math.max(length, 0));
        if (!tx.settle(entry)) tx.conflict(entry);
        tx.depend(entry);
        if (length > 0) found.push({ arrival, record });
      }
    }
    return found;
  }

  /** Opens the slot of an arrival to overwrite its first words; where they are in the arena. */
  #open(tx: Transaction, arrival: number, words: number): number {
    const piece = this.#pieceOf(arrival)!;
    const entry = tx.open(piece.region, dataAt(piece, arrival) - HEADER_WORDS);
    return tx.overwritableWindow(entry, 0, words, RECORD_SLOT_WORDS);
  }

  #pieceOf(arrival: number): Piece | undefined {
    return this.#pieces[pieceAt(arrival)];
  }

  #makePiece(index: number): Piece | undefined {
    if (this.#isFull) return undefined;
    const executor = this.#executor;
    const tx = new Transaction(executor);
    tx.subject = "records of transactions";
    try {
      runSync(executor, tx, DEFAULT_TIMEOUT_MS, () => this.#addPiece(tx, index), undefined);
    } catch (error) {
      if (!(error instanceof SituError) || error.code !== "SITU_FULL") throw error;
      this.#isFull = true;
      return undefined;
    }
    this.#table.maintain();
    const pieces = runReadOnly(executor, tx, () => this.#find(tx), undefined);
    this.#pieces[index] = pieces[index];
    return pieces[index];
  }

  #addPiece(tx: Transaction, index: number): void {
    const first = tx.allocateArray(RECORD_PIECE_SLOTS, RECORD_SLOT_WORDS * 4);
    const [region, word] = [tx.set.regionIdOf(first), tx.set.wordOf(first)];
    this.#table.put(tx, { log: this.#log, piece: index, region, word });
  }

  #find(tx: Transaction): (Piece | undefined)[] {
    const { memory } = this.#executor;
    return Array.from({ length: RECORD_SLOTS / RECORD_PIECE_SLOTS }, (_, index) => {
      const row = this.#table.read(tx, [this.#log, index]);
      return row && { region: memory.region(row.region), word: row.word };
    });
  }
}

function pieceAt(arrival: number): number {
  return Math.floor((arrival % RECORD_SLOTS) / RECORD_PIECE_SLOTS);
}

/** Where the data of an arrival's slot begins. */
function dataAt({ word }: Piece, arrival: number): number {
  return word + (arrival % RECORD_PIECE_SLOTS) * STRIDE + HEADER_WORDS;
}
