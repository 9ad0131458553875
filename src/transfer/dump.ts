/** All tables of a store, or of a cluster, as text in a folder, in the state of one snapshot. */

import { createWriteStream, mkdirSync, readdirSync } from "node:fs";
import { open as openFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import type { AnyDatabase } from "../database/database.ts";
import { definitionAt, storedGraphs } from "../database/local/graph/open-graph.ts";
import type { LocalDatabase } from "../database/local/local-database.ts";
import type { LocalSnapshot } from "../database/local/local-snapshot.ts";
import { folderOf } from "../database/open-options.ts";
import type { ConnectOptions } from "../database/remote/connect-options.ts";
import type { RemoteSnapshot, Snapshot } from "../database/snapshot.ts";
import { wallClockMs } from "../runtime/clock.ts";
import { SituError } from "../runtime/errors.ts";
import { refuseUnknownOptions } from "../runtime/known-options.ts";
import { MAX_TIMEOUT_MS } from "../runtime/limits.ts";
import { show } from "../runtime/show.ts";
import { coded } from "../runtime/system-errors.ts";
import { GRAPHS, isOwnTable } from "../tables/own-tables.ts";
import { schemaOf } from "../tables/schema.ts";
import type { Table } from "../tables/table.ts";
import { dumpGraph } from "./dump-graph.ts";
import { type DumpFormat, dumpTable, formatOf, type TransferProgress } from "./dump-table.ts";
import { type Dumped, fileOf, MANIFEST, manifestText } from "./manifest.ts";
import { openCluster, openStored } from "./stored-tables.ts";

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
  from: string | ConnectOptions,
  folder: string,
  options: DumpOptions = {},
): Promise<Dumped> {
  refuseUnknownOptions("dump", options, ["format", "tables", "signal", "onProgress"]);
  formatOf("dump", options.format ?? "jsonl");
  const target = folderOf("the folder of the dump", folder);
  if (typeof from === "object" && from !== null) return dumpCluster(from, target, options);
  const path = from;
  // A dump may take long. A snapshot whose room writers need is released, whatever its age.
  const { db, tables } = await openStored({ path, maxSnapshotMs: MAX_TIMEOUT_MS });
  try {
    const names = options.tables ?? [...tables.keys()].filter((name) => !isOwnTable(name));
    const hasGraphs = options.tables === undefined && tables.has(GRAPHS);
    const graphs = hasGraphs ? storedGraphs(db as LocalDatabase) : [];
    if (graphs.length > 0 && options.format === "csv") refuseCsv(path);
    const chosen = names.map((name) => tables.get(name) ?? noTable(name, path));
    makeEmpty(target);
    using snapshot = db.snapshot();
    for (const { graph, definition } of graphs) {
      const then = definitionAt(
        db as LocalDatabase,
        snapshot as unknown as LocalSnapshot,
        graph.name,
      );
      if (JSON.stringify(then) !== JSON.stringify(definition)) changedMeanwhile(graph.name);
    }
    return await coded(target, () => dumpAll(db, chosen, graphs, target, options, snapshot));
  } finally {
    await db.close();
  }
}

/** What names of the tables begin with that a graph of a cluster is made of (tables/graph/row-tables.ts). */
const GRAPH_ROWS = "@";

async function dumpCluster(
  from: ConnectOptions,
  target: string,
  options: DumpOptions,
): Promise<Dumped> {
  const { db, tables } = await openCluster({ maxSnapshotMs: MAX_TIMEOUT_MS, ...from });
  await using _ = db;
  const names = options.tables ?? [...tables.keys()];
  if (options.tables === undefined && names.some((name) => name.startsWith(GRAPH_ROWS))) {
    throw new SituError(
      "SITU_UNSUPPORTED",
      "the cluster has a graph, which dump cannot write: name the tables to dump",
    );
  }
  const chosen = names.map((name) => tables.get(name) ?? noTable(name, "the cluster"));
  makeEmpty(target);
  await using snapshot = await db.snapshot();
  return await coded(target, () => dumpAll(db, chosen, [], target, options, snapshot));
}

/** Snapshots know only the tables that were open before: graphs are opened first. */
function changedMeanwhile(name: string): never {
  throw new SituError(
    "SITU_SCHEMA",
    `kinds or associations were added to graph ${show(name)} just when its dump began: dump again`,
  );
}

/** What is left out must not be missed only when it is needed. */
function refuseCsv(path: string): never {
  throw new SituError(
    "SITU_UNSUPPORTED",
    `the store at ${path} has a graph, which has no form as CSV: dump it as "jsonl", or name the tables to dump`,
  );
}

/** `where`: the path of a store, or what else it is. */
export function noTable(name: unknown, where: string): never {
  const what = where === "the cluster" ? where : `the store at ${where}`;
  throw new SituError("SITU_UNKNOWN_TABLE", `${what} has no table ${show(name)}`);
}

function makeEmpty(folder: string): void {
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length === 0) return;
  throw new SituError("SITU_CONFIG", `${folder} is not empty: dump to a new folder`);
}

async function dumpAll(
  db: AnyDatabase,
  tables: readonly Table[],
  graphs: ReturnType<typeof storedGraphs>,
  folder: string,
  { format = "jsonl", signal, onProgress }: DumpOptions,
  snapshot: Snapshot | RemoteSnapshot,
): Promise<Dumped> {
  const { extension } = formatOf("dump", format);
  const write = async (
    file: string,
    dumping: (watch: Pick<DumpOptions, "signal" | "onProgress">) => AsyncIterable<string>,
  ): Promise<{ rows: number; bytes: number }> => {
    let rows = 0;
    const pieces = dumping({
      ...(signal === undefined ? {} : { signal }),
      onProgress: (progress) => {
        rows = progress.rows;
        onProgress?.(progress);
      },
    });
    const out = createWriteStream(join(folder, file), { flush: true });
    await pipeline(pieces, out);
    return { rows, bytes: out.bytesWritten };
  };
  const dumped = [];
  for (const [position, table] of tables.entries()) {
    const file = fileOf(table.name, position, extension);
    const written = await write(file, (watch) =>
      dumpTable(db, table, { format, snapshot, ...watch }),
    );
    dumped.push({ name: table.name, file, ...written, schema: schemaOf(table) });
  }
  const dumpedGraphs = [];
  for (const [position, { graph, definition }] of graphs.entries()) {
    // In the names of tables' files, @ is written as %40: no table has the same one.
    const file = `graph@${fileOf(graph.name, position, extension)}`;
    const written = await write(file, (watch) =>
      dumpGraph(graph, snapshot as unknown as LocalSnapshot, watch),
    );
    dumpedGraphs.push({ name: graph.name, file, ...written, definition });
  }
  const createdAt = new Date(wallClockMs()).toISOString();
  const listed = { format, createdAt, tables: dumped, graphs: dumpedGraphs };
  await writeSynced(join(folder, MANIFEST), manifestText(listed));
  return {
    format,
    tables: dumped.map(({ schema: _, ...table }) => table),
    graphs: dumpedGraphs.map(({ definition: _, ...graph }) => graph),
  };
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
