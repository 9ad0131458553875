/**
 * Rows that are objects of their own (stores/row-object.ts), as a check reads them: the object, and
 * the pieces of a row that was cut. Every size must be the one that follows from the row's.
 */

import { classFor, mayLieIn } from "../../engine/cells.ts";
import { Views } from "../../memory/views.ts";
import { MAX_CELL_BYTES, MAX_ROW_BYTES } from "../../runtime/limits.ts";
import {
  CHUNK_POINTER_WORDS,
  CHUNK_WORDS,
  chunkBytes,
  chunkCount,
  chunkWordsOf,
  MAX_READ_SINGLE_WORDS,
  ROW_CHUNKS,
  ROW_DATA,
  ROW_WORDS,
} from "../../stores/row-object.ts";
import type { Place } from "./check.ts";
import type { ObjectReader } from "./reader.ts";

/** One for the thread: what is read last is there until the next one is read. */
const single = new Views(new ArrayBuffer(MAX_CELL_BYTES));
const piece = new Views(new ArrayBuffer(MAX_CELL_BYTES));
/** Where a row that was cut is put together. */
const assembled = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

class PiecePlace implements Place {
  row: Place = "";
  index = 0;

  toString(): string {
    return `${this.row}, piece ${this.index} of its row`;
  }
}

export class RowReader {
  readonly #reader: ObjectReader;
  readonly #fixedWords: number;
  readonly #piece = new PiecePlace();
  /** Where the row that was read last lies. */
  views: Views = single;
  at = 0;
  words = 0;
  /** Row objects that were read, and how many of them were in pieces. */
  objects = 0;
  cut = 0;

  /** `fixedWords` are the words of every row, 0 if they differ. */
  constructor(reader: ObjectReader, fixedWords: number) {
    this.#reader = reader;
    this.#fixedWords = fixedWords;
  }

  /** Follows a fat pointer to a row. False if there is none, and then the problem has been told. */
  read(place: Place, regionId: number, word: number, incarnation: number): boolean {
    const reader = this.#reader;
    const expected = { sizeClass: -1, incarnation };
    if (!reader.readCell(place, regionId, word, expected, -1, single)) return false;
    this.objects++;
    const words = single.i32[ROW_WORDS];
    const chunks = single.i32[ROW_CHUNKS];
    const fault = this.#fault(words, chunks);
    if (fault !== undefined) {
      reader.problems.add(place, fault);
      return false;
    }
    this.words = words;
    this.views = chunks === 0 ? single : assembled;
    this.at = chunks === 0 ? ROW_DATA : 0;
    return chunks === 0 || this.#gather(place, words, chunkCount(chunks), chunkWordsOf(chunks));
  }

  #fault(words: number, chunks: number): string | undefined {
    if (words <= 0 || words * 4 > MAX_ROW_BYTES || words % 2 !== 0) {
      return `its row has ${words} words, which none can have`;
    }
    if (this.#fixedWords > 0 && words !== this.#fixedWords) {
      return `its row has ${words} words, all rows here have ${this.#fixedWords}`;
    }
    const pieces = chunks === 0 ? 0 : Math.ceil(words / chunkWordsOf(chunks));
    if (chunkCount(chunks) !== pieces || (chunks === 0 && words > MAX_READ_SINGLE_WORDS)) {
      return `its row of ${words} words is in ${chunks} pieces`;
    }
    const dataWords = ROW_DATA + (pieces === 0 ? words : CHUNK_POINTER_WORDS * pieces);
    if (mayLieIn(classFor(dataWords * 4), this.#reader.sizeClass)) return undefined;
    return `its row of ${words} words lies in a cell of another size than such rows have`;
  }

  #gather(place: Place, words: number, chunks: number, chunkWords: number): boolean {
    const reader = this.#reader;
    const where = this.#piece;
    where.row = place;
    this.cut++;
    for (let index = 0; index < chunks; index++) {
      const at = ROW_DATA + CHUNK_POINTER_WORDS * index;
      const from = index * chunkWords;
      const part = Math.min(chunkWords, words - from);
      where.index = index;
      const bytes = chunkWords === CHUNK_WORDS ? chunkBytes(part) : part * 4;
      const expected = { sizeClass: classFor(bytes), incarnation: single.i32[at + 2] };
      const [regionId, word] = [single.i32[at] - 1, single.i32[at + 1]];
      if (!reader.readCell(where, regionId, word, expected, part, piece)) return false;
      assembled.i32.set(piece.i32.subarray(0, part), from);
    }
    return true;
  }
}
