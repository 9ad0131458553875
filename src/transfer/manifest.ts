/**
 * A dump of a store is a folder: a file with the rows of each table, and dump.json, which names them with
 * the schemas of the tables. It is written last, so a folder without it is a dump that was cut short.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SituError } from "../runtime/errors.ts";
import type { StoredGraph } from "../tables/graph/definition.ts";
import type { Schema } from "../tables/schema.ts";
import type { DumpFormat } from "./dump-table.ts";

export const MANIFEST = "dump.json";
/** Since version 2, a dump may have graphs: one that has none is of version 1, and older ones of Situ read it. */
const VERSION = 2;
const VERSION_WITHOUT_GRAPHS = 1;

/** A table in a dump. */
export interface DumpedTable {
  readonly name: string;
  /** The file with its rows, in the folder of the dump. */
  readonly file: string;
  readonly rows: number;
  readonly bytes: number;
}

/** A graph in a dump. */
export interface DumpedGraph {
  readonly name: string;
  /** The file with its objects and edges, in the folder of the dump. */
  readonly file: string;
  /** Objects and edges, of which each is one line. */
  readonly rows: number;
  readonly bytes: number;
}

/** What `dump` wrote. */
export interface Dumped {
  readonly format: DumpFormat;
  readonly tables: readonly DumpedTable[];
  readonly graphs: readonly DumpedGraph[];
}

export interface Manifest extends Dumped {
  readonly version: number;
  readonly createdAt: string;
  readonly tables: readonly (DumpedTable & { readonly schema: Schema })[];
  readonly graphs: readonly (DumpedGraph & { readonly definition: StoredGraph })[];
}

export function manifestText({ graphs, ...dumped }: Omit<Manifest, "version">): string {
  const listed =
    graphs.length === 0
      ? { version: VERSION_WITHOUT_GRAPHS, ...dumped }
      : { version: VERSION, ...dumped, graphs };
  return `${JSON.stringify(listed, undefined, 2)}\n`;
}

export function readManifest(folder: string): Manifest {
  const file = join(folder, MANIFEST);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw new SituError(
      "SITU_CONFIG",
      `${folder} is not a dump, or one that was cut short: it has no ${MANIFEST}. To load a single file, ` +
        `say which table it is for`,
    );
  }
  const manifest = parsed(text);
  if (manifest === undefined)
    throw new SituError("SITU_CORRUPT", `${file} is not the list of a dump`);
  if (manifest.version === VERSION_WITHOUT_GRAPHS || manifest.version === VERSION) return manifest;
  throw new SituError(
    "SITU_LAYOUT",
    `${file} has version ${manifest.version}, and this Situ reads versions up to ${VERSION}: load it with the ` +
      `Situ that wrote it`,
  );
}

function parsed(text: string): Manifest | undefined {
  try {
    const found = JSON.parse(text) as Partial<Manifest> | null;
    const { version, tables, graphs = [] } = found ?? {};
    const isList = typeof version === "number" && Array.isArray(tables) && Array.isArray(graphs);
    return isList ? ({ ...found, graphs } as Manifest) : undefined;
  } catch {
    return undefined;
  }
}

/** The name of a table's file: readable where it can be. */
export function fileOf(table: string, position: number, extension: string): string {
  const name = encodeURIComponent(table).replaceAll("*", "%2A");
  return `${name.length <= 100 ? name : `table-${position}`}.${extension}`;
}
