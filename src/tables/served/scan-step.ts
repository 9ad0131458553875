/** What one step of a scan at a node is asked for, and where it says the next one begins (protocols/phases/scan.ts). */

import type { Writer } from "../../fabric/wire.ts";
import type { KeyRange } from "../../stores/store.ts";

/** What is scanned; the same for all steps. */
export interface ScanWay {
  /** Without one, the rows themselves. */
  readonly index: string | undefined;
  readonly range: KeyRange;
  readonly reverse: boolean;
  /** Of a hash index: the values. */
  readonly equal: unknown;
}

export interface ScanStep extends ScanWay {
  /** Only the number of rows is wanted. */
  readonly counts: boolean;
  readonly most: number;
  readonly place: Int32Array;
}

/** For the node: where the next step begins. */
export function appendPlace(out: Writer, isDone: boolean, place: Int32Array): void {
  out.word(isDone ? 1 : 0);
  encodeWords(out, place);
}

export function encodeWords(out: Writer, words: Int32Array): void {
  out.word(words.length);
  out.words(words, 0, words.length);
}
