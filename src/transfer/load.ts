/**
 * A dump into a store, which is created if it is not there. A load that was interrupted is resumed by the same
 * call: each file goes on where it was (load-table.ts), as long as it is the same file.
 */

import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DurabilityMode } from "../attach/settings.ts";
import type { Database } from "../database/database.ts";
import { open } from "../database/open.ts";
import { folderOf, type OpenOptions } from "../database/open-options.ts";
import { crc32 } from "../runtime/checksum.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { coded } from "../runtime/system-errors.ts";
import type { InferRow, Table } from "../tables/table.ts";
import { tableFromSchema } from "../tables/table-from-schema.ts";
import { noTable } from "./dump.ts";
import type { DumpFormat, TransferProgress } from "./dump-table.ts";
import { type Loaded, Loads, loadText, type OnConflict } from "./load-table.ts";
import { type DumpedTable, type Manifest, readManifest } from "./manifest.ts";
import { openStored } from "./stored-tables.ts";

/** What `load` takes. */
export interface LoadOptions {
  /** Loads a single file of rows into this table of the store. */
  readonly table?: string;
  /** With `table`: the format of the file. Default: by its name, "csv" for .csv, else "jsonl". */
  readonly format?: DumpFormat;
  /** What happens to a row whose key is in the table already. Default: "fail", with SITU_EXISTS. */
  readonly onConflict?: OnConflict;
  /** For a store that is created: as in `open`. */
  readonly memoryBytes?: OpenOptions["memoryBytes"];
  /** For a store that is created: as in `open`. */
  readonly memoryDir?: string;
  /** As in `open`. */
  readonly durability?: DurabilityMode;
  /** Stops the load; the same call resumes it. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the progress. */
  readonly onProgress?: (progress: TransferProgress) => void;
}

/** What `load` did, by table. */
export interface LoadedStore {
  readonly tables: readonly (Loaded & { readonly name: string })[];
}

const OPTIONS = [
  "table",
  "format",
  "onConflict",
  "memoryBytes",
  "memoryDir",
  "durability",
  "signal",
  "onProgress",
];

/** The head of a file that tells it from others. */
const HEAD_BYTES = 64 * 1024;

/** A file with the rows of a table. */
interface Source {
  readonly table: Table;
  readonly file: string;
  readonly format: DumpFormat;
  /** What dump.json says about it. */
  readonly dumped?: DumpedTable;
}

export async function load(
  from: string,
  path: string,
  options: LoadOptions = {},
): Promise<LoadedStore> {
  refuseUnknownOptions("load", options, OPTIONS);
  const source = resolve(from);
  const { memoryBytes, memoryDir, durability } = options;
  const settings = {
    path: folderOf("path", path),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(memoryDir === undefined ? {} : { memoryDir }),
    ...(durability === undefined ? {} : { durability }),
  };
  return coded(source, () =>
    options.table === undefined
      ? loadFolder(source, settings, options)
      : loadFile(source, options.table, settings, options),
  );
}

async function loadFile(
  file: string,
  name: string,
  settings: OpenOptions,
  options: LoadOptions,
): Promise<LoadedStore> {
  const { db, tables } = await openStored(settings, [Loads]);
  await using _ = db;
  const table = tables.get(name) ?? noTable(name, settings.path);
  const format = options.format ?? (file.endsWith(".csv") ? "csv" : "jsonl");
  return await loadAll(db, [{ table, file, format }], options);
}

async function loadFolder(
  folder: string,
  settings: OpenOptions,
  options: LoadOptions,
): Promise<LoadedStore> {
  const manifest: Manifest = readManifest(folder);
  if (options.format !== undefined) {
    throw new SituError(
      "SITU_CONFIG",
      "load: format goes with table; a dump says which format it has",
    );
  }
  const sources = manifest.tables.map((dumped) => {
    const file = join(folder, dumped.file);
    const { size } = statSync(file);
    if (size !== dumped.bytes) {
      throw new SituError(
        "SITU_CORRUPT",
        `${file} has ${size} bytes and should have ${dumped.bytes}: take the dump again`,
      );
    }
    return { table: tableFromSchema(dumped.schema), file, format: manifest.format, dumped };
  });
  const tables = [...sources.map(({ table }) => table), Loads];
  await using db = await open({ ...settings, tables });
  return await loadAll(db, sources, options);
}

async function loadAll(
  db: Database,
  sources: readonly Source[],
  options: LoadOptions,
): Promise<LoadedStore> {
  const { signal, onProgress, onConflict } = options;
  const places: string[] = [];
  const tables = [];
  for (const { table, file, format, dumped } of sources) {
    const place = placeOf(db, table, file);
    places.push(place.source);
    const given = {
      format,
      ...(onConflict === undefined ? {} : { onConflict }),
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined ? {} : { onProgress }),
    };
    const text = { read: (start: number) => createReadStream(file, { start }) };
    const loaded = await loadText(db, table, text, given, place).catch((error: unknown) => {
      if (error instanceof SituError && /^(after )?line \d/.test(error.message)) {
        error.message = `${file}, ${error.message}`;
      }
      throw error;
    });
    if (dumped !== undefined && loaded.rows + loaded.skipped !== dumped.rows) {
      throw new SituError(
        "SITU_CORRUPT",
        `${file} has ${loaded.rows + loaded.skipped} rows and should have ${dumped.rows}`,
      );
    }
    tables.push({ name: table.name, ...loaded });
  }
  // All of it is there: a later load of the same files is a new one.
  db.transactSync((tx) => {
    for (const source of places) tx.delete(Loads, source);
  });
  return { tables };
}

/** Where the load of a file was interrupted; its start if there was none. */
function placeOf(db: Database, table: Table, file: string): InferRow<typeof Loads> {
  const source = `${crc32(table.name).toString(16)}-${fingerprint(file)}`;
  const start = { source, offset: 0n, lines: 0n, rows: 0n, skipped: 0n };
  return db.get(Loads, source) ?? start;
}

/** Tells a file from others, and from what it was before it was changed. */
function fingerprint(file: string): string {
  const { size, mtimeMs } = statSync(file);
  const fd = openSync(file, "r");
  try {
    const head = Buffer.alloc(Math.min(size, HEAD_BYTES));
    const read = readSync(fd, head, 0, head.length, 0);
    return `${size}-${Math.trunc(mtimeMs)}-${crc32(head.subarray(0, read)).toString(16)}`;
  } finally {
    closeSync(fd);
  }
}
