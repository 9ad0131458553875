/**
 * Opening a store that is there. A command that only looks must not make a store of a folder whose
 * name was mistyped, so the folder is looked at first.
 */

import { existsSync } from "node:fs";
import type { Database } from "../../database/database.ts";
import { open } from "../../database/open.ts";
import { readIdentity } from "../../folder/store-files.ts";
import { SituError } from "../../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS } from "../../runtime/limits.ts";
import type { TableStats } from "../../tables/schema.ts";
import type { Table } from "../../tables/table.ts";
import { tableFromSchema } from "../../tables/table-from-schema.ts";
import { ProgressLine } from "../progress.ts";
import type { Screen } from "../screen.ts";

/** Refuses a folder without a store. */
export function existingStore(path: string): void {
  if (readIdentity(path) !== undefined) return;
  const why = existsSync(path) ? "" : ", not even the folder";
  throw new SituError("SITU_CONFIG", `there is no store at ${path}${why}: see what --path says`);
}

/** A store with all of its tables, as they are now. */
export interface OpenStore {
  readonly db: Database;
  readonly tables: ReadonlyMap<string, Table>;
}

/** Opens a store with tables made from the schemas that it has. */
export async function openStored(path: string, screen: Screen): Promise<OpenStore> {
  existingStore(path);
  const line = new ProgressLine(screen, "recovering");
  const plain = await open({ path, onRecovery: line.show, timeoutMs: DEFAULT_TIMEOUT_MS });
  line.clear();
  try {
    const tables = plain.stats().tables.map(readyTable);
    const db = await open({ path, tables, timeoutMs: DEFAULT_TIMEOUT_MS });
    return { db, tables: new Map(tables.map((table) => [table.name, table])) };
  } finally {
    await plain.close();
  }
}

/** Without indexes that somebody is building just now: to declare them is to build them, too. */
function readyTable(schema: TableStats): Table {
  const ready = schema.indexes.filter(({ state }) => state === "ready");
  return tableFromSchema({ ...schema, indexes: ready });
}
