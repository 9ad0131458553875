/**
 * Copies of records on their way to the log: those that are not written from their journal, because something lies
 * between them there that the log does not get (the redo words of engine/journal.ts). Copies that follow each other
 * are one part. The room is kept from one batch to the next.
 */

/** Room is taken in pieces of this size; a larger record gets one of its own. */
const CHUNK_WORDS = 1 << 18;
/** Kept for the next batch. */
const KEPT_CHUNKS = 4;

export class Staging {
  readonly #chunks: Int32Array[] = [];
  /** The chunk in use, the words in it that are taken, and those of them that were handed out. */
  #chunk = -1;
  #taken = 0;
  #given = 0;

  /** Begins a new batch: what was handed out before is overwritten. */
  clear(): void {
    this.#chunks.length = Math.min(this.#chunks.length, KEPT_CHUNKS);
    this.#chunk = -1;
    this.#taken = 0;
    this.#given = 0;
  }

  /** Copies words; `parts` gets what was copied before, if they do not fit behind it. Returns the copy. */
  copy(words: Int32Array, from: number, to: number, parts: Uint8Array[]): Int32Array {
    const length = to - from;
    const chunk = this.#chunks[this.#chunk];
    if (chunk === undefined || this.#taken + length > chunk.length) {
      this.give(parts);
      this.#next(length);
    }
    const copy = this.#chunks[this.#chunk].subarray(this.#taken, this.#taken + length);
    copy.set(words.subarray(from, to));
    this.#taken += length;
    return copy;
  }

  /** Hands out what was copied since the last call. */
  give(parts: Uint8Array[]): void {
    if (this.#taken === this.#given) return;
    const { buffer } = this.#chunks[this.#chunk];
    parts.push(new Uint8Array(buffer, 4 * this.#given, 4 * (this.#taken - this.#given)));
    this.#given = this.#taken;
  }

  #next(words: number): void {
    this.#chunk++;
    this.#taken = 0;
    this.#given = 0;
    const known = this.#chunks[this.#chunk];
    if (known !== undefined && known.length >= words) return;
    this.#chunks[this.#chunk] = new Int32Array(Math.max(words, CHUNK_WORDS));
  }
}
