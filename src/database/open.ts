/** Opening and destroying stores: where a user starts. */

import { whileAlone } from "../attach/alone.ts";
import { attach } from "../attach/attach.ts";
import { refuseIfInThreads } from "../attach/join-threads.ts";
import { deviceFilesOf } from "../device/device.ts";
import { noteMediaLog, removeMediaLog } from "../device/media-log.ts";
import { withOpenLock } from "../folder/open-lock.ts";
import { readIdentity, removeStore } from "../folder/store-files.ts";
import { startLogAnew } from "../log/start.ts";
import { unshareBuffers } from "../memory/thread-segments.ts";
import { coded } from "../runtime/system-errors.ts";
import { createCatalogue } from "../tables/catalogue.ts";
import { keeperSync } from "../tables/device/keeper-role.ts";
import type { NameOf, Table } from "../tables/table.ts";
import type { Database, RemoteDatabase } from "./database.ts";
import { LocalDatabase } from "./local/local-database.ts";
import { type OpenOptions, type Settings, settingsOf } from "./open-options.ts";
import type { ConnectOptions } from "./remote/connect-options.ts";

/** How long a failed `open` frees what it leaves behind, if snapshots of others hold that up; else the next one does. */
const CLEAR_MS = 5_000;

/** Opens the store in a folder, and creates it if there is none. */
export async function open<const Tables extends readonly Table[] = readonly Table[]>(
  options: OpenOptions<Tables>,
): Promise<Database<NameOf<Tables[number]>>>;
/** Connects to a cluster: a database whose rows are spread over machines. */
export async function open<const Tables extends readonly Table[] = readonly Table[]>(
  options: ConnectOptions<Tables>,
): Promise<RemoteDatabase<NameOf<Tables[number]>>>;
export async function open(
  options: OpenOptions | ConnectOptions,
): Promise<Database | RemoteDatabase> {
  if (isConnect(options)) {
    // Most processes open a store of their own machine: they need not load the client of a cluster.
    const { connect } = await import("./remote/connect.ts");
    return connect(options);
  }
  return openLocal(options);
}

/** For gateways, which use what is not for users. */
export async function openLocal(options: OpenOptions): Promise<LocalDatabase> {
  const settings = settingsOf(options);
  return coded(settings.path, () => openStore(settings));
}

function isConnect(options: OpenOptions | ConnectOptions): options is ConnectOptions {
  return typeof options === "object" && options !== null && "connect" in options;
}

/** For those who have checked settings: the node. */
export async function openStore(settings: Settings): Promise<LocalDatabase> {
  const db = await attach(settings, ({ executor, fresh, identity, recovered }) => {
    const { mediaLog, path, sharing, timeoutMs } = settings;
    if (mediaLog !== undefined && sharing === "processes") {
      const note = (): void => noteMediaLog(deviceFilesOf(path), mediaLog, deviceFilesOf);
      keeperSync(executor, timeoutMs, note);
    }
    if (fresh) {
      createCatalogue(executor);
      if (identity?.logId !== undefined) startLogAnew(settings.path, identity, executor);
      executor.memory.control.publish();
    }
    return new LocalDatabase(executor, settings, { identity, recovered });
  });
  try {
    // Not under the lock of the folder: it may take long, and others may join meanwhile.
    await migrateTables(db, settings);
    await db.buildIndexes();
    db.clearRemains();
  } catch (error) {
    // Structures that could not be completed may have taken the last memory of those who go on.
    db.clearRemains();
    await db.hasCleared(CLEAR_MS);
    await db.close();
    throw error;
  }
  return db;
}

/** Brings the tables that the store has to the declared ones, and opens them. */
async function migrateTables(db: LocalDatabase, settings: Settings): Promise<void> {
  const { migrate: steps, onMigration, tables } = settings;
  if (steps === undefined) return;
  await db.migrate(steps, { tables, ...(onMigration && { onProgress: onMigration }) });
  db.openTables(tables);
}

/** Deletes a store that no process has open: its memory, its log and its checkpoints. */
export async function destroy(path: string): Promise<void> {
  const { path: folder } = settingsOf({ path, sharing: "threads" });
  await coded(folder, async () => {
    refuseIfInThreads(folder);
    unshareBuffers(folder);
    if (readIdentity(folder) === undefined) return;
    await withOpenLock(folder, () =>
      whileAlone(folder, () => {
        const identity = readIdentity(folder);
        if (identity === undefined) return;
        removeMediaLog(deviceFilesOf(folder), deviceFilesOf);
        removeStore(folder, identity);
      }),
    );
  });
}
