/**
 * Rows of a table as objects of Xenic: a number of at most 53 bits, and words. Where the key of a table is a u32 or i32, that is the
 * number, and the words are the row. Elsewhere the number is a hash of the key, and the words are all rows with this hash, each after
 * its length; that there are two is as good as impossible, and must work nevertheless.
 */

import { Views } from "../../memory/views.ts";
import type { OpenedTable } from "../../protocols/xenic/client-messages.ts";
import type { HostTableShape } from "../../protocols/xenic/host-table.ts";
import { ABSENT, type Value } from "../../protocols/xenic/message.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  XENIC_MAX_ROW_BYTES,
  XENIC_MAX_ROWS,
  XENIC_ROW_BYTES,
  XENIC_ROWS,
} from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import { codecOf } from "../../tables/codec/codec.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import { table as declare, type Table } from "../../tables/table.ts";
import type { ExtentHints } from "../remote/connect-options.ts";

type Codec = RowCodec<RowValues, unknown>;

/** Throws SITU_UNSUPPORTED for tables that such a cluster cannot have. */
export function checkXenicTable(table: Table): void {
  const refuse = (what: string, instead: string): never => {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `table ${table.name}: a cluster with the protocol "xenic" has no ${what}; ${instead}`,
    );
  };
  const cluster = 'use a cluster with the protocol "rpc" or "one-sided"';
  if (table.ordered) refuse("ordered tables", `leave out ordered, or ${cluster}`);
  if (table.indexes.length > 0) refuse("indexes", `leave them out, or ${cluster}`);
  if (table.expires !== undefined) refuse("expiry of rows", "leave it out");
  if (table.storage === "device") refuse("tables on a device", "leave out storage");
  for (const [name, field] of Object.entries(table.fields)) {
    if (field.kind === "pointer") refuse(`objects for the pointer ${name}`, "leave it out");
  }
}

export class XenicRows {
  readonly table: Table;
  readonly #codec: Codec;
  readonly #keyCodec: Codec;
  /** Whether the number of an object is its key. */
  readonly #isExact: boolean;
  #opened: OpenedTable | undefined;

  constructor(table: Table) {
    this.table = table;
    this.#codec = codecOf(table as Table<RowValues>) as Codec;
    const fields = Object.fromEntries(table.key.map((name) => [name, table.fields[name]]));
    const keys = declare(table.name, fields, { key: table.key as never }) as Table;
    this.#keyCodec = codecOf(keys as Table<RowValues>) as Codec;
    const [{ kind }] = table.key.map((name) => table.fields[name]);
    this.#isExact = table.singleKey && (kind === "u32" || kind === "i32");
  }

  shape({ rows = XENIC_ROWS, rowBytes = XENIC_ROW_BYTES }: ExtentHints): HostTableShape {
    const { name } = this.table;
    if (!Number.isInteger(rows) || rows < 1 || rows > XENIC_MAX_ROWS) {
      throw new SituError("SITU_CONFIG", `extents.${name}.rows is from 1 to ${XENIC_MAX_ROWS}`);
    }
    if (!Number.isInteger(rowBytes) || rowBytes < 1 || rowBytes > XENIC_MAX_ROW_BYTES) {
      const most = XENIC_MAX_ROW_BYTES;
      throw new SituError("SITU_CONFIG", `extents.${name}.rowBytes is from 1 to ${most}`);
    }
    const words = this.#codec.fixedWords || Math.ceil(rowBytes / 4);
    return { rows, valueWords: this.#isExact && this.#codec.fixedWords > 0 ? words : 1 + words };
  }

  opened(opened: OpenedTable): void {
    this.#opened = opened;
  }

  get number(): number {
    return this.#opened!.number;
  }

  /** Whether what is written must know what was there: other rows may be in the same object. */
  get needsBase(): boolean {
    return !this.#isExact;
  }

  /** The object of a key in the form that the database keeps it in. */
  objectOf(key: unknown): number {
    const words = this.#encodeKey(key);
    const { i32 } = this.#keyCodec.scratch;
    if (this.#isExact) return i32[0];
    let low = 0x3c6ef372;
    let high = 0x14650fb0;
    for (let i = 0; i < words; i++) {
      low = Math.imul((low ^ i32[i]) + 0x7f4a7c15, 0x85ebca6b);
      low ^= low >>> 15;
      high = Math.imul((high ^ i32[i]) + 0x6d2b79f5, 0xc2b2ae35);
      high ^= high >>> 13;
    }
    low = Math.imul(low ^ (low >>> 16), 0x45d9f3b);
    high = Math.imul(high ^ (high >>> 16), 0x27d4eb2f);
    return ((high ^ (high >>> 15)) & 0xfffff) * 2 ** 32 + ((low ^ (low >>> 16)) >>> 0);
  }

  /** The row of a key in an object. */
  rowIn(value: Value, key: unknown): RowValues | undefined {
    return this.#rowsIn(value).find((row) => this.#isExact || this.#isOf(row, key));
  }

  /** An object after rows of it were written, or removed. */
  merge(
    base: Value,
    changes: readonly { readonly key: unknown; readonly row: RowValues | undefined }[],
  ): Value {
    const rows = this.#isExact
      ? []
      : this.#rowsIn(base).filter((row) => !changes.some(({ key }) => this.#isOf(row, key)));
    for (const { row } of changes) if (row !== undefined) rows.push(row);
    if (rows.length === 0) return ABSENT;
    const { valueWords } = this.#opened!.shape;
    const isPlain = this.#isExact && this.#codec.fixedWords > 0;
    const out: number[] = [];
    for (const row of rows) {
      const words = this.#codec.encode(row);
      const encoded = this.#codec.scratch.i32.subarray(0, words);
      if (!isPlain) out.push(words);
      for (const word of encoded) out.push(word);
    }
    if (out.length > valueWords) throw this.#tooLarge(rows.length, out.length * 4);
    // What follows the last row must not look like another one.
    if (!isPlain && out.length < valueWords) out.push(0);
    return Int32Array.from(out);
  }

  #rowsIn(value: Value): RowValues[] {
    if (value === ABSENT) return [];
    const { fixedWords } = this.#codec;
    if (this.#isExact && fixedWords > 0) return [this.#decode(value, 0, fixedWords)];
    const rows: RowValues[] = [];
    for (let at = 0; at < value.length && value[at] > 0; ) {
      const words = value[at];
      if (at + 1 + words > value.length) {
        throw new SituError("SITU_PROTOCOL", `a row of table ${this.table.name} is cut off`);
      }
      rows.push(this.#decode(value, at + 1, words));
      at += 1 + words;
    }
    return rows;
  }

  #decode(value: Int32Array, at: number, words: number): RowValues {
    scratch.i32.set(value.subarray(at, at + words));
    return this.#codec.decode(scratch, 0, words);
  }

  /** Into the scratch of the codec for keys. How many words. */
  #encodeKey(key: unknown): number {
    const { key: names, singleKey } = this.table;
    const values = singleKey ? [key] : (key as readonly unknown[]);
    return this.#keyCodec.encode(Object.fromEntries(names.map((name, i) => [name, values[i]])));
  }

  #isOf(row: RowValues, key: unknown): boolean {
    const words = this.#encodeKey(key);
    const wanted = this.#keyCodec.scratch.i32.slice(0, words);
    const own = this.#keyCodec.encode(
      Object.fromEntries(this.table.key.map((name) => [name, row[name]])),
    );
    const { i32 } = this.#keyCodec.scratch;
    return own === words && wanted.every((word, i) => word === i32[i]);
  }

  #tooLarge(rows: number, bytes: number): SituError {
    const what = rows === 1 ? "a row" : `${rows} rows of one hash`;
    return new SituError(
      "SITU_TOO_LARGE",
      `${what} of table ${this.table.name} take ${bytes} bytes, and its objects have room for ${this.#opened!.shape.valueWords * 4}: give a larger rowBytes, in extents, to the open that creates the table`,
    );
  }
}

/** One for the thread: a row is decoded out of it at once. */
const scratch = new Views(new ArrayBuffer(2 * XENIC_MAX_ROW_BYTES));
