/** All tables of a store as text in a folder, in the state of one snapshot. */

import { createWriteStream, mkdirSync, readdirSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { Database } from "../database/database.ts";
import { folderOf } from "../database/open-options.ts";
import type { Snapshot } from "../database/snapshot.ts";
import { wallClockMs } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { MAX_TIMEOUT_MS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { coded } from "../runtime/system-errors.ts";
import { isOwnTable } from "../tables/own-tables.ts";
import { schemaOf } from "../tables/schema.ts";
import type { Table } from "../tables/table.ts";
import { type DumpFormat, dumpTable, formatOf, type TransferProgress } from "./dump-table.ts";
import { type Dumped, fileOf, MANIFEST, manifestText } from "./manifest.ts";
import { openStored } from "./stored-tables.ts";

/** What `dump` takes. */
export interface DumpOptions {
  /** Default: "jsonl". */
  readonly format?: DumpFormat;
  /** The names of the tables. Default: all. */
  readonly tables?: readonly string[];
  /** Stops the dump. */
  readonly signal?: AbortSignal;
  /** Called from time to time with the progress. */
  readonly onProgress?: (progress: TransferProgress) => void;
}

export async function dump(
  path: string,
  folder: string,
  options: DumpOptions = {},
): Promise<Dumped> {
  refuseUnknownOptions("dump", options, ["format", "tables", "signal", "onProgress"]);
  formatOf("dump", options.format ?? "jsonl");
  const target = folderOf("the folder of the dump", folder);
  // A dump may take long. A snapshot whose room writers need is released, whatever its age.
  const { db, tables } = await openStored({ path, maxSnapshotMs: MAX_TIMEOUT_MS });
  try {
    const names = options.tables ?? [...tables.keys()].filter((name) => !isOwnTable(name));
    const chosen = names.map((name) => tables.get(name) ?? noTable(name, path));
    makeEmpty(target);
    using snapshot = db.snapshot();
    return await coded(target, () => dumpTables(db, chosen, target, options, snapshot));
  } finally {
    await db.close();
  }
}

export function noTable(name: unknown, path: string): never {
  throw new SituError("SITU_UNKNOWN_TABLE", `the store at ${path} has no table ${show(name)}`);
}

function makeEmpty(folder: string): void {
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length === 0) return;
  throw new SituError("SITU_CONFIG", `${folder} is not empty: dump to a new folder`);
}

async function dumpTables(
  db: Database,
  tables: readonly Table[],
  folder: string,
  { format = "jsonl", signal, onProgress }: DumpOptions,
  snapshot: Snapshot,
): Promise<Dumped> {
  const { extension } = formatOf("dump", format);
  const dumped = [];
  for (const [position, table] of tables.entries()) {
    const file = fileOf(table.name, position, extension);
    let rows = 0;
    const pieces = dumpTable(db, table, {
      format,
      snapshot,
      ...(signal === undefined ? {} : { signal }),
      onProgress: (progress) => {
        rows = progress.rows;
        onProgress?.(progress);
      },
    });
    const out = createWriteStream(join(folder, file), { flush: true });
    await pipeline(pieces, out);
    const { bytesWritten: bytes } = out;
    dumped.push({ name: table.name, file, rows, bytes, schema: schemaOf(table) });
  }
  const createdAt = new Date(wallClockMs()).toISOString();
  await writeSynced(join(folder, MANIFEST), manifestText({ format, createdAt, tables: dumped }));
  return { format, tables: dumped.map(({ schema: _, ...table }) => table) };
}

async function writeSynced(file: string, text: string): Promise<void> {
  const handle = await openFile(file, "wx");
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
