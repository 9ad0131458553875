/**
 * What objects hold: texts of the table's full length. Which text was written follows from the
 * stamp that was written with it, so a row of which only a part was written shows.
 */

import { Stream } from "../random/stream.ts";
import type { ObjectRow } from "./store.ts";

const TEXTS_SEED = 0x6f626a73;
const WRITTEN = 256;
/** Stamps are small integers, which V8 keeps without a box, and not 0, which rows begin with. */
export const MAX_STAMP = 2 ** 30 - 1;

export class Texts {
  readonly length: number;
  readonly #written: readonly string[];
  readonly #initial: readonly string[];

  constructor(length: number) {
    this.length = length;
    const stream = new Stream(TEXTS_SEED, length);
    this.#written = Array.from({ length: WRITTEN }, () => makeText(stream, length));
    this.#initial = Array.from({ length: WRITTEN }, () => makeText(stream, length));
  }

  written(stamp: number): string {
    return this.#written[stamp & (WRITTEN - 1)];
  }

  initial(key: number): string {
    return this.#initial[key & (WRITTEN - 1)];
  }

  initialRow(key: number): ObjectRow {
    return { key, count: 0, stamp: 0, text: this.initial(key) };
  }
}

/** Through a buffer, so that it is one piece, and one byte a character. */
function makeText(stream: Stream, length: number): string {
  const bytes = Buffer.alloc(length);
  for (let index = 0; index < length; index++) bytes[index] = 0x30 + stream.below(64);
  return bytes.toString("latin1");
}
