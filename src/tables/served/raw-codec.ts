/**
 * A codec whose rows are not decoded but copied, as words, into a message: what a node reads for
 * another needs no objects. Only for reading; rows that are written are decoded and checked.
 */

import type { Writer } from "../../fabric/wire.ts";
import type { Views } from "../../memory/views.ts";
import { assert } from "../../runtime/assert.ts";
import type { OrderedCodec, RowCodec } from "../../stores/store.ts";

/** Where rows go: their words, one unused word, and the row. */
export class RawRows {
  out: Writer | undefined;
  start = 0;

  /** A row that is read again, for it changed meanwhile, takes the place of its first copy. */
  take(views: Views, at: number, words: number): true {
    const out = this.out!;
    out.at = this.start;
    out.word(words);
    out.word(0);
    out.words(views.i32, at, words);
    return true;
  }
}

/** A codec of the same layout whose rows are what `rows` makes of them. */
export function rawCodec<Key, Form>(
  codec: RowCodec<never, Key>,
  rows: { take(views: Views, at: number, words: number): Form },
): RowCodec<Form, Key> | OrderedCodec<Form, Key> {
  const refuse = (): never => {
    assert(false, "raw rows are only read");
    throw new Error("unreachable");
  };
  return {
    ...codec,
    decode: (views: Views, at: number, words: number) => rows.take(views, at, words),
    stageKeyOf: refuse,
    stageOrderedOf: refuse,
    stageEncoded: refuse,
    stageOrderedEncoded: refuse,
    encode: refuse,
    decodeToMerge: refuse,
    takeChanges: refuse,
    merge: refuse,
    stageUpdate: refuse,
    stageOrderedUpdate: refuse,
    patch: refuse,
  };
}
