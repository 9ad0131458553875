/** Rows out of recorded changes (engine/changes.ts), decoded by the fields that they were encoded by. */

import { copyWords } from "../../engine/journal.ts";
import { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues } from "../indexes/structure.ts";
import { schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { type ChangeFormat, formatId, type StoredChanges } from "./format.ts";

/** Where the row that is decoded lies: at an even word, as its 64-bit fields need. */
const aligned = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

export class ChangeDecoder {
  readonly table: Table;
  /** What the catalogue says; replaced when it changes. */
  stored: StoredChanges;
  readonly #codecs = new Map<number, RowCodec<RowValues, unknown>>();

  constructor(table: Table, codec: RowCodec<RowValues, unknown>, stored: StoredChanges) {
    this.table = table;
    this.stored = stored;
    this.#codecs.set(formatId(schemaOf(table)), codec);
  }

  /** The row of so many words at a place of a batch. */
  rowAt(words: Int32Array, at: number, rowWords: number, format: number): RowValues {
    const codec = this.#codecs.get(format) ?? this.#codecOf(format);
    if (rowWords > aligned.i32.length) throw tooLong(this.table, rowWords);
    copyWords(words, at, aligned.i32, 0, rowWords);
    return codec.decode(aligned, 0, rowWords);
  }

  keyOf(row: RowValues): unknown {
    return keyIn(row, this.table.key, this.table.singleKey);
  }

  #codecOf(format: number): RowCodec<RowValues, unknown> {
    const found = this.stored.formats.find(({ id }) => id === format);
    if (found === undefined) throw unknownFormat(this.table);
    const codec = codecOf(this.#tableOf(found)) as RowCodec<RowValues, unknown>;
    this.#codecs.set(format, codec);
    return codec;
  }

  #tableOf({ fields, key }: ChangeFormat): Table {
    return tableFromSchema({ name: this.table.name, fields, key, ordered: false, indexes: [] });
  }
}

function tooLong({ name }: Table, words: number): SituError {
  return new SituError("SITU_CORRUPT", `the log has a change of table ${name} with ${words} words`);
}

function unknownFormat({ name }: Table): SituError {
  return new SituError(
    "SITU_SCHEMA",
    `a change of table ${name} was recorded with a schema that the store no longer knows: watch the ` +
      `table from a later position, or from "now"`,
  );
}
