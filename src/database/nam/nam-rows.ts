/**
 * A table of rows as a table of memory servers (protocols/nam/layout.ts). Rows are encoded as in every other table. A record has
 * a fixed size there, so rows and keys of variable size have a bound, and their words are preceded by how many there are.
 */

import { Views } from "../../memory/views.ts";
import type { TableShape } from "../../protocols/nam/extents.ts";
import type { NamTable } from "../../protocols/nam/layout.ts";
import { SituError } from "../../runtime/errors.ts";
import {
  NAM_CELLS_PER_ROW,
  NAM_KEY_BYTES,
  NAM_RING,
  NAM_ROW_BYTES,
  NAM_ROWS,
} from "../../runtime/limits.ts";
import type { RowCodec } from "../../stores/store.ts";
import { codecOf } from "../../tables/codec/codec.ts";
import type { RowValues } from "../../tables/indexes/structure.ts";
import { table as declare, type Table } from "../../tables/table.ts";
import type { ExtentHints } from "../remote/connect-options.ts";

type Codec = RowCodec<RowValues, unknown>;

/** Throws SITU_UNSUPPORTED for tables that memory servers cannot have. */
export function checkNamTable(table: Table): void {
  const refuse = (what: string, instead: string): never => {
    throw new SituError(
      "SITU_UNSUPPORTED",
      `table ${table.name}: memory servers have no ${what}; ${instead}`,
    );
  };
  const cluster = 'use a cluster with the protocol "rpc" or "one-sided"';
  if (table.ordered) refuse("ordered tables", `leave out ordered, or ${cluster}`);
  if (table.indexes.length > 0) refuse("indexes", `leave them out, or ${cluster}`);
  if (table.expires !== undefined) refuse("expiry of rows", "leave it out");
  if (table.storage === "device") refuse("device", "leave out storage");
  for (const [name, field] of Object.entries(table.fields)) {
    if (field.kind === "pointer") refuse(`objects for the pointer ${name}`, "leave it out");
  }
}

export class NamRows {
  readonly table: Table;
  readonly #codec: Codec;
  readonly #keyCodec: Codec;
  readonly shape: TableShape;
  #extents: NamTable | undefined;

  constructor(table: Table, { rows = NAM_ROWS, rowBytes = NAM_ROW_BYTES }: ExtentHints) {
    this.table = table;
    this.#codec = codecOf(table as Table<RowValues>) as Codec;
    const fields = Object.fromEntries(table.key.map((name) => [name, table.fields[name]]));
    const keys = declare(table.name, fields, { key: table.key as never }) as Table;
    this.#keyCodec = codecOf(keys as Table<RowValues>) as Codec;
    this.shape = {
      name: table.name,
      keyWords: this.#keyCodec.fixedWords || 1 + NAM_KEY_BYTES / 4,
      dataWords: this.#codec.fixedWords || 1 + Math.ceil(rowBytes / 4),
      cells: rows * NAM_CELLS_PER_ROW,
      ring: NAM_RING,
    };
  }

  /** Where it lies; known once it is open. */
  get extents(): NamTable {
    return this.#extents!;
  }

  opened(extents: NamTable): void {
    this.#extents = extents;
  }

  /** A key in the form that the database keeps it in. */
  key(key: unknown): Int32Array {
    const { key: names, singleKey } = this.table;
    const values = singleKey ? [key] : (key as readonly unknown[]);
    const row = Object.fromEntries(names.map((name, i) => [name, values[i]]));
    return this.#words(this.#keyCodec, row, this.extents.keyWords, "key");
  }

  data(row: RowValues): Int32Array {
    return this.#words(this.#codec, row, this.extents.dataWords, "row");
  }

  row(data: Int32Array): RowValues {
    const { fixedWords } = this.#codec;
    const isFixed = fixedWords > 0;
    // What lies there was written by another process: its length is believed as far as it goes.
    const words = isFixed ? fixedWords : Math.min(data[0] >>> 0, data.length - 1);
    scratch.i32.set(isFixed ? data.subarray(0, words) : data.subarray(1, 1 + words));
    return this.#codec.decode(scratch, 0, words);
  }

  #words(codec: Codec, row: RowValues, room: number, what: "key" | "row"): Int32Array {
    const words = codec.encode(row);
    const isFixed = codec.fixedWords > 0;
    if (words + (isFixed ? 0 : 1) > room) {
      const wayOut =
        what === "row"
          ? "give a larger rowBytes to the open that creates the table"
          : "use shorter keys";
      throw new SituError(
        "SITU_TOO_LARGE",
        `a ${what} of table ${this.table.name} has ${words * 4} bytes, and memory servers have room for ${(room - 1) * 4}: ${wayOut}`,
      );
    }
    const out = new Int32Array(room);
    if (!isFixed) out[0] = words;
    out.set(codec.scratch.i32.subarray(0, words), isFixed ? 0 : 1);
    return out;
  }
}

/** One for the thread: a row is decoded out of it at once. */
const scratch = new Views(new ArrayBuffer(64 * 1024));
