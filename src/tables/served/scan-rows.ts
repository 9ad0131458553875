/**
 * Rows as a node's scan meets them: the key, read by a codec that knows no other field, and a copy of
 * the row's words. A row may be met while it is being changed, and is then met again. So nothing is
 * made of it here: who asked looks at what the cursor has given out in the end.
 */

import { Writer } from "../../fabric/wire.ts";
import type { Views } from "../../memory/views.ts";
import { SCAN_STEP_BYTES } from "../../runtime/limits.ts";
import type { OrderedCodec, RowCodec } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { layoutOf } from "../codec/layout.ts";
import type { RowValues, Structure } from "../indexes/structure.ts";
import { rawCodec } from "./raw-codec.ts";

export interface MetRow {
  /** The fields of the key. */
  readonly key: RowValues;
  /** Where the copy of the row begins, or NOT_COPIED: no room was left, or it is to be skipped. */
  readonly at: number;
  readonly words: number;
}

export const NOT_COPIED = -1;

export class RowCopies {
  readonly copies = new Writer();
  #met = 0;
  #skip = 0;
  #isCopying = true;

  /** Forgets all copies. Of the next rows, so many are not copied, or none is. */
  begin(skip: number, isCopying: boolean): void {
    this.copies.clear();
    this.#met = 0;
    this.#skip = skip;
    this.#isCopying = isCopying;
  }

  /**
   * Copies a row. The first one always: a row of any size must be passed sometime. A row that is met
   * again makes all that follow seem further behind; so more of those to be skipped are copied.
   */
  take(views: Views, at: number, words: number): number {
    const { copies } = this;
    if (!this.#isCopying || this.#met++ < this.#skip) return NOT_COPIED;
    if (copies.at > 0 && (copies.at + words) * 4 > SCAN_STEP_BYTES) return NOT_COPIED;
    const start = copies.at;
    copies.words(views.i32, at, words);
    return start;
  }
}

/** A codec that reads rows as `MetRow`, for a table with this structure. */
export function metRowCodec(
  { table, codec }: Structure<RowValues, unknown>,
  copies: RowCopies,
): RowCodec<MetRow, unknown> | OrderedCodec<MetRow, unknown> {
  const fields = Object.fromEntries(table.key.map((name) => [name, table.fields[name]]));
  const keys = codecOf({ ...table, fields }, layoutOf(table));
  return rawCodec(codec as RowCodec<never, unknown>, {
    take: (views, at, words): MetRow => ({
      key: keys.decode(views, at, words) as RowValues,
      at: copies.take(views, at, words),
      words,
    }),
  });
}
