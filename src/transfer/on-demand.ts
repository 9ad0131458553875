/**
 * Data in and out, loaded by the first call: a process that only opens a store does not pay for it when it
 * starts.
 */

import type { AnyDatabase } from "../database/database.ts";
import type { ConnectOptions } from "../database/remote/connect-options.ts";
import type { Table } from "../tables/table.ts";
import type { DumpOptions } from "./dump.ts";
import type { DumpTableOptions } from "./dump-table.ts";
import type { LoadedStore, LoadOptions } from "./load.ts";
import type { Loaded, LoadTableOptions } from "./load-table.ts";
import type { Dumped } from "./manifest.ts";

/**
 * The rows of a table as text, in pieces of whole lines. All rows are of one state.
 *
 *     await pipeline(dumpTable(db, Order, { format: "csv" }), createWriteStream("orders.csv"));
 */
export async function* dumpTable<Row, Key>(
  db: AnyDatabase,
  table: Table<Row, Key>,
  options?: DumpTableOptions,
): AsyncGenerator<string, void, void> {
  const { dumpTable: start } = await import("./dump-table.ts");
  yield* start(db, table, options);
}

/** Loads rows into a table from text that `dumpTable`, or another program, has written. */
export async function loadTable<Row, Key>(
  db: AnyDatabase,
  table: Table<Row, Key>,
  text: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
  options?: LoadTableOptions,
): Promise<Loaded> {
  const { loadTable: start } = await import("./load-table.ts");
  return start(db, table, text, options);
}

/**
 * Writes the tables of a store, given by its path, or of a cluster, given as `open` takes it, to an empty folder, as text: see
 * `load`. All rows are of one state.
 */
export async function dump(
  from: string | ConnectOptions,
  folder: string,
  options?: DumpOptions,
): Promise<Dumped> {
  const { dump: start } = await import("./dump.ts");
  return start(from, folder, options);
}

/**
 * Loads a dump into the store at a path, which is created if it is not there, or into a cluster; with `table`, a single file.
 * After an interruption, the same call goes on where the load was. Into a cluster it begins again: use `onConflict`.
 */
export async function load(
  from: string,
  into: string | ConnectOptions,
  options?: LoadOptions,
): Promise<LoadedStore> {
  const { load: start } = await import("./load.ts");
  return start(from, into, options);
}
