/**
 * Rows that are objects of their own (../row-object.ts), read from afar. Their size is not known
 * before they are read: where nothing tells it, it is guessed from the rows before, and a row that
 * is longer is read a second time.
 */

import { HEADER_WORDS } from "../../memory/object.ts";
import type { Views } from "../../memory/views.ts";
import { MAX_ROW_BYTES, MAX_VERB_WORDS } from "../../runtime/limits.ts";
import { MAX_READ_SINGLE_WORDS, ROW_CHUNKS, ROW_DATA, ROW_WORDS } from "../row-object.ts";
import type { Reading, RemoteTable, Trail, Wanted } from "./remote.ts";

/** The first guess: what a cell of 256 bytes holds. */
const FIRST_GUESS_WORDS = 60;

/** Whether there is a row, and if not, why. */
export type RowOutcome = "row" | "locked" | "ask" | "moved";

export class RemoteRows {
  readonly #regionWords: number;
  readonly #fixedWords: number;
  #guessWords = FIRST_GUESS_WORDS;

  constructor({ regionWords, fixedWords }: RemoteTable) {
    this.#regionWords = regionWords;
    this.#fixedWords = fixedWords;
  }

  /**
   * Reads the row behind a pointer, and depends on its object if it is one of its own. `rowWords`
   * is its size, if the pointer tells, else 0. "moved": what held the pointer has changed since.
   */
  *read(
    pointer: Int32Array,
    at: number,
    rowWords: number,
    trail: Trail,
    place: { views: Views; words: number },
    depends: boolean,
  ): Reading<RowOutcome> {
    const [regionId, word, incarnation] = [pointer[at] - 1, pointer[at + 1], pointer[at + 2]];
    let known = rowWords || this.#fixedWords;
    for (;;) {
      if (ROW_DATA + known > MAX_VERB_WORDS) return "ask";
      const guess = known > 0 ? ROW_DATA + known : this.#guessWords;
      // Beyond the end of its region there is nothing to read, and no row either.
      const dataWords = Math.min(guess, this.#regionWords - word - HEADER_WORDS);
      const wanted: Wanted = { regionId, word, dataWords };
      trail.count(1);
      trail.below++;
      const [answer] = yield [wanted];
      if (answer.isLocked || answer.data === undefined) return "locked";
      if (answer.incarnation !== incarnation) return "moved";
      const { i32 } = answer.data;
      const words = i32[ROW_WORDS];
      if (words <= 0 || words * 4 > MAX_ROW_BYTES) return "moved";
      if (i32[ROW_CHUNKS] !== 0 || words > MAX_READ_SINGLE_WORDS) return "ask";
      if (ROW_DATA + words <= dataWords) {
        this.#learn(ROW_DATA + words);
        if (depends) trail.depend(wanted, answer);
        place.views = answer.data;
        place.words = words;
        return "row";
      }
      known = words;
    }
  }

  /** Up at once, down by and by: a second read costs more than some words too many. */
  #learn(words: number): void {
    const less = (this.#guessWords - words) >> 3;
    this.#guessWords = less < 0 ? words : this.#guessWords - less;
  }
}
