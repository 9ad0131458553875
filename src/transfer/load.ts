/**
 * A dump into a store or a cluster. A store is created if it is not there. A load that was interrupted is resumed by the same
 * call: each file goes on where it was (load-table.ts), as long as it is the same file.
 */

import { closeSync, createReadStream, openSync, readSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DurabilityMode } from "../attach/settings.ts";
import { type AnyDatabase, type Database, isLocal } from "../database/database.ts";
import { restoredGraph } from "../database/local/graph/open-graph.ts";
import type { LocalDatabase } from "../database/local/local-database.ts";
import { open } from "../database/open.ts";
import { folderOf, type OpenOptions } from "../database/open-options.ts";
import type { ConnectOptions } from "../database/remote/connect-options.ts";
import { crc32 } from "../runtime/checksum.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { coded } from "../runtime/system-errors.ts";
import type { InferRow, Table } from "../tables/table.ts";
import { tableFromSchema } from "../tables/table-from-schema.ts";
import { noTable } from "./dump.ts";
import type { DumpFormat, TransferProgress } from "./dump-table.ts";
import { GraphLinesReader } from "./graph-lines.ts";
import { GraphSink } from "./graph-sink.ts";
import {
  type Loaded,
  Loads,
  type LoadTableOptions,
  loadRows,
  loadText,
  type OnConflict,
  type TextSource,
} from "./load-table.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { openCluster, openStored } from "./stored-tables.ts";

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
  /** As in `open`, for a store. */
  readonly durability?: DurabilityMode;
  /** Stops the load; the same call resumes it. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the progress. */
  readonly onProgress?: (progress: TransferProgress) => void;
}

/** What `load` did, by table and by graph. */
export interface LoadedStore {
  readonly tables: readonly (Loaded & { readonly name: string })[];
  /** Of a graph, rows are objects and edges. */
  readonly graphs: readonly (Loaded & { readonly name: string })[];
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

type Place = InferRow<typeof Loads>;

/** A file with the rows of a table, or with the objects and edges of a graph. */
interface Source {
  readonly kind: keyof LoadedStore;
  readonly name: string;
  readonly file: string;
  /** How many rows dump.json says that it has. */
  readonly rows?: number;
  run(
    db: AnyDatabase,
    text: TextSource,
    options: LoadTableOptions,
    place: Place | undefined,
  ): Promise<Loaded>;
}

function tableSource(table: Table, file: string, format: DumpFormat): Source {
  return {
    kind: "tables",
    name: table.name,
    file,
    run: (db, text, options, place) => loadText(db, table, text, { ...options, format }, place),
  };
}

function graphSource({ name, definition }: Manifest["graphs"][number], file: string): Source {
  return {
    kind: "graphs",
    name,
    file,
    run(db, text, options, place) {
      const graph = restoredGraph(db as LocalDatabase, name, definition);
      const reader = new GraphLinesReader(graph.definition);
      return loadRows(db, new GraphSink(graph), reader, text, options, place);
    },
  };
}

export async function load(
  from: string,
  into: string | ConnectOptions,
  options: LoadOptions = {},
): Promise<LoadedStore> {
  refuseUnknownOptions("load", options, OPTIONS);
  const source = resolve(from);
  const { memoryBytes, memoryDir, durability } = options;
  if (typeof into === "object" && into !== null) {
    if (durability !== undefined) {
      throw new SituError(
        "SITU_CONFIG",
        "load: the nodes of a cluster have a durability of their own",
      );
    }
    return coded(source, () => loadCluster(source, into, options));
  }
  const path = into;
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

async function loadCluster(
  source: string,
  into: ConnectOptions,
  options: LoadOptions,
): Promise<LoadedStore> {
  if (options.table !== undefined) {
    const { db, tables } = await openCluster(into);
    await using _ = db;
    const table = tables.get(options.table) ?? noTable(options.table, "the cluster");
    const format = options.format ?? (source.endsWith(".csv") ? "csv" : "jsonl");
    return await loadAll(db, [tableSource(table, source, format)], options);
  }
  const { tables, sources } = dumpIn(source, options);
  if (sources.some(({ kind }) => kind === "graphs")) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "the dump has a graph, which cannot be loaded into a cluster: load its tables one by one, with table",
    );
  }
  await using db = await open({ ...into, tables });
  return await loadAll(db, sources, options);
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
  return await loadAll(db, [tableSource(table, file, format)], options);
}

async function loadFolder(
  folder: string,
  settings: OpenOptions,
  options: LoadOptions,
): Promise<LoadedStore> {
  const { tables, sources } = dumpIn(folder, options);
  await using db = await open({ ...settings, tables: [...tables, Loads] });
  return await loadAll(db, sources, options);
}

/** What a folder has, checked as far as that can be done without reading its files. */
function dumpIn(
  folder: string,
  options: LoadOptions,
): { readonly tables: readonly Table[]; readonly sources: readonly Source[] } {
  const manifest: Manifest = readManifest(folder);
  if (options.format !== undefined) {
    throw new SituError(
      "SITU_CONFIG",
      "load: format goes with table; a dump says which format it has",
    );
  }
  const wholeFile = ({ file: name, bytes }: { file: string; bytes: number }): string => {
    const file = join(folder, name);
    const { size } = statSync(file);
    if (size === bytes) return file;
    throw new SituError(
      "SITU_CORRUPT",
      `${file} has ${size} bytes and should have ${bytes}: take the dump again`,
    );
  };
  const tables = manifest.tables.map(({ schema }) => tableFromSchema(schema));
  const sources = [
    ...manifest.tables.map((dumped, i) => ({
      ...tableSource(tables[i], wholeFile(dumped), manifest.format),
      rows: dumped.rows,
    })),
    ...manifest.graphs.map((dumped) => ({
      ...graphSource(dumped, wholeFile(dumped)),
      rows: dumped.rows,
    })),
  ];
  return { tables, sources };
}

async function loadAll(
  db: AnyDatabase,
  sources: readonly Source[],
  options: LoadOptions,
): Promise<LoadedStore> {
  const { signal, onProgress, onConflict } = options;
  const places: string[] = [];
  const done = { tables: [], graphs: [] } as Record<keyof LoadedStore, (Loaded & Named)[]>;
  for (const source of sources) {
    const { kind, name, file, rows } = source;
    // Where it was interrupted is kept in a store, not in a cluster.
    const what = kind === "tables" ? name : `graph ${name}`;
    const place = isLocal(db) ? placeOf(db, what, file) : undefined;
    if (place !== undefined) places.push(place.source);
    const given = {
      ...(onConflict === undefined ? {} : { onConflict }),
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined ? {} : { onProgress }),
    };
    const text = { read: (start: number) => createReadStream(file, { start }) };
    const loaded = await source.run(db, text, given, place).catch((error: unknown) => {
      if (error instanceof SituError && /^(after )?line \d/.test(error.message)) {
        error.message = `${file}, ${error.message}`;
      }
      throw error;
    });
    if (rows !== undefined && loaded.rows + loaded.skipped !== rows) {
      throw new SituError(
        "SITU_CORRUPT",
        `${file} has ${loaded.rows + loaded.skipped} rows and should have ${rows}`,
      );
    }
    done[kind].push({ name, ...loaded });
  }
  // All of it is there: a later load of the same files is a new one.
  if (isLocal(db)) {
    db.transactSync((tx) => {
      for (const source of places) tx.delete(Loads, source);
    });
  }
  return done;
}

interface Named {
  readonly name: string;
}

/** Where the load of a file was interrupted; its start if there was none. */
function placeOf(db: Database, name: string, file: string): Place {
  const source = `${crc32(name).toString(16)}-${fingerprint(file)}`;
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
