/** Opening a store, or a cluster, with the tables that it has, without knowing how its users have declared them. */

import { existsSync } from "node:fs";
import type { Database, RemoteDatabase } from "../database/database.ts";
import { open } from "../database/open.ts";
import type { OpenOptions } from "../database/open-options.ts";
import type { ConnectOptions } from "../database/remote/connect-options.ts";
import { readIdentity } from "../folder/store-files.ts";
import { SituError } from "../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { isForChange } from "../tables/indexes/replaced-names.ts";
import type { TableStats } from "../tables/schema.ts";
import type { Table } from "../tables/table.ts";
import { tableFromSchema } from "../tables/table-from-schema.ts";

/** A store with all of its tables, as they are now. */
export interface OpenStore {
  readonly db: Database;
  readonly tables: ReadonlyMap<string, Table>;
}

/** Refuses a folder without a store: who only looks must not make one where a name was mistyped. */
export function existingStore(path: string): void {
  if (readIdentity(path) !== undefined) return;
  const why = existsSync(path) ? "" : " (the folder does not exist)";
  throw new SituError("SITU_CONFIG", `there is no store at ${path}${why}: check the path`);
}

/** Opens a store with tables made from the schemas that it has, and others that are given. */
export async function openStored(
  options: OpenOptions,
  others: readonly Table[] = [],
): Promise<OpenStore> {
  existingStore(options.path);
  const given = { timeoutMs: DEFAULT_TIMEOUT_MS, ...options };
  const plain = await open(given);
  try {
    const names = new Set(others.map(({ name }) => name));
    const stored = plain.stats().tables.filter(({ name }) => !names.has(name));
    const tables = [...stored.map(readyTable), ...others];
    const db = await open({ ...given, tables });
    return { db, tables: new Map(tables.map((table) => [table.name, table])) };
  } finally {
    await plain.close();
  }
}

/** Connects to a cluster with all of its tables, or with those that are given. */
export async function openCluster(
  options: ConnectOptions,
): Promise<{ readonly db: RemoteDatabase; readonly tables: ReadonlyMap<string, Table> }> {
  let { tables } = options;
  if (tables === undefined) {
    // Only those who need it load the client of a cluster.
    const { clusterTables } = await import("../database/remote/cluster-tables.ts");
    tables = (await clusterTables(options)).map(tableFromSchema);
  }
  const db = await open({ ...options, tables });
  return { db, tables: new Map(tables.map((table) => [table.name, table])) };
}

/** Without indexes that somebody is building just now: to declare them is to build them, too. */
function readyTable(schema: TableStats): Table {
  const ready = schema.indexes.filter(({ name, state }) => state === "ready" && !isForChange(name));
  return tableFromSchema({ ...schema, indexes: ready });
}
