/**
 * Rows out of recorded changes (engine/changes.ts), decoded by the fields that they were encoded by, and shown as the
 * reader has declared the table: fields by the names they have there, those that were added later with the value
 * that the migration gave to all rows, and those that are not declared left out.
 */

import { copyWords } from "../../engine/journal.ts";
import { Views } from "../../memory/views.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_ROW_BYTES } from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import { codecOf } from "../codec/codec.ts";
import { knownField } from "../field-text.ts";
import { keyIn } from "../indexes/entries.ts";
import type { RowValues } from "../indexes/structure.ts";
import { isNullable } from "../migrations/conversion.ts";
import { storedField } from "../migrations/declaration.ts";
import { shownValueOf } from "../migrations/projected-store.ts";
import { loadValue } from "../migrations/stored-value.ts";
import { schemaOf } from "../schema.ts";
import type { Table } from "../table.ts";
import { tableFromSchema } from "../table-from-schema.ts";
import { type ChangeFormat, formatId } from "./format.ts";
import { nameNow, type WatchedChanges } from "./watched-changes.ts";

/** Where the row that is decoded lies: at an even word, as its 64-bit fields need. */
const aligned = new Views(new ArrayBuffer(MAX_ROW_BYTES + 8));

/** How rows of one format are read. */
interface Reader {
  readonly codec: RowCodec<RowValues, unknown>;
  /** The row as it is declared; undefined if it is the same. */
  readonly shown: ((row: RowValues) => RowValues) | undefined;
}

export class ChangeDecoder {
  readonly table: Table;
  /** What the catalogue says; replaced when it changes. */
  stored: WatchedChanges;
  /** The format of the declaration itself, whose rows are shown as they are. */
  readonly #own: number;
  readonly #codecs = new Map<number, RowCodec<RowValues, unknown>>();
  readonly #readers = new Map<number, Reader>();

  /** `codec` is that of the table as it is declared. */
  constructor(table: Table, codec: RowCodec<RowValues, unknown>, stored: WatchedChanges) {
    this.table = table;
    this.stored = stored;
    this.#own = formatId(schemaOf(table));
    this.#codecs.set(this.#own, codec);
  }

  /** After a change of the schema: how rows are shown is to be found out anew. */
  forget(): void {
    this.#readers.clear();
  }

  /** Whether rows of a format have been read since then. */
  knows(format: number): boolean {
    return this.#readers.has(format);
  }

  /** The row of so many words at a place of a batch. */
  rowAt(words: Int32Array, at: number, rowWords: number, format: number): RowValues {
    const { codec, shown } = this.#readers.get(format) ?? this.#readerOf(format);
    if (rowWords > aligned.i32.length) throw tooLong(this.table, rowWords);
    copyWords(words, at, aligned.i32, 0, rowWords);
    const row = codec.decode(aligned, 0, rowWords);
    return shown === undefined ? row : shown(row);
  }

  keyOf(row: RowValues): unknown {
    return keyIn(row, this.table.key, this.table.singleKey);
  }

  #readerOf(id: number): Reader {
    let reader: Reader;
    if (id === this.#own) {
      reader = { codec: this.#codecs.get(id)!, shown: undefined };
    } else {
      const format = this.stored.formats.find((each) => each.id === id);
      if (format === undefined) throw unknownFormat(this.table);
      reader = { codec: this.#codecOf(format), shown: this.#shownFrom(format) };
    }
    this.#readers.set(id, reader);
    return reader;
  }

  #codecOf({ id, fields, key }: ChangeFormat): RowCodec<RowValues, unknown> {
    let codec = this.#codecs.get(id);
    if (codec === undefined) {
      const { name } = this.table;
      const recorded = tableFromSchema({ name, fields, key, ordered: false, indexes: [] });
      codec = codecOf(recorded) as RowCodec<RowValues, unknown>;
      this.#codecs.set(id, codec);
    }
    return codec;
  }

  #shownFrom(format: ChangeFormat): (row: RowValues) => RowValues {
    const { schema } = this.stored;
    const recordedNames = new Map<string, string>();
    for (const name of Object.keys(format.fields)) {
      const stored = nameNow(format, schema, name);
      if (stored !== undefined) recordedNames.set(stored, name);
    }
    const copied: { readonly declared: string; readonly from: string }[] = [];
    const added: RowValues = {};
    for (const declared of Object.keys(this.table.fields)) {
      const stored = storedField(schema, declared);
      if (stored === undefined) throw notDeclared(this.table, declared);
      const from = recordedNames.get(stored);
      if (from === undefined) {
        added[declared] = shownValueOf(this.table, declared, this.#defaultOf(stored));
      } else {
        copied.push({ declared, from });
      }
    }
    return (row) => {
      const shown: RowValues = { ...added };
      for (const { declared, from } of copied) {
        shown[declared] = shownValueOf(this.table, declared, row[from]);
      }
      return shown;
    };
  }

  /** What the rows got that were there when the field was added. */
  #defaultOf(stored: string): unknown {
    const { defaults = {}, fields } = this.stored.schema;
    if (Object.hasOwn(defaults, stored)) return loadValue(defaults[stored]);
    const field = knownField(fields[stored]);
    if (field !== undefined && isNullable(field)) return null;
    throw notRecorded(this.table, stored);
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

function notDeclared({ name }: Table, field: string): SituError {
  return new SituError(
    "SITU_SCHEMA",
    `table ${name} was migrated, and its changes cannot be told with the declaration that this process has: ` +
      `field ${field} is no longer in the store. Open the store with the new declaration`,
  );
}

function notRecorded({ name }: Table, field: string): SituError {
  return new SituError(
    "SITU_SCHEMA",
    `a change of table ${name} was recorded before the table had a field ${field}: watch the table from a ` +
      `later position, or from "now"`,
  );
}
