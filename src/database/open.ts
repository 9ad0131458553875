/** Opening and destroying stores: where a user starts. */

import { attach, refuseIfInThreads, whileAlone } from "../attach/attach.ts";
import { readIdentity, removeStore, withOpenLock } from "../folder/store-files.ts";
import { startLogAnew } from "../log/start.ts";
import { unshareBuffers } from "../memory/thread-segments.ts";
import { coded } from "../runtime/system-errors.ts";
import { createCatalogue } from "../tables/catalogue.ts";
import { Database } from "./database.ts";
import { type OpenOptions, type Settings, settingsOf } from "./open-options.ts";
import { connect } from "./remote/connect.ts";
import type { ConnectOptions } from "./remote/connect-options.ts";
import type { RemoteDatabase } from "./remote/remote-database.ts";

/** Opens the store of a folder, creating it if it is not there. */
export async function open(options: OpenOptions): Promise<Database>;
/** Connects to a cluster: the same database, spread over machines. */
export async function open(options: ConnectOptions): Promise<RemoteDatabase>;
export async function open(
  options: OpenOptions | ConnectOptions,
): Promise<Database | RemoteDatabase> {
  if (isConnect(options)) return connect(options);
  const settings = settingsOf(options);
  return coded(settings.path, () => openStore(settings));
}

function isConnect(options: OpenOptions | ConnectOptions): options is ConnectOptions {
  return typeof options === "object" && options !== null && "connect" in options;
}

/** For those who have checked settings: the node. */
export async function openStore(settings: Settings): Promise<Database> {
  const db = await attach(settings, ({ executor, fresh, identity, recovered }) => {
    if (fresh) {
      createCatalogue(executor);
      if (identity?.logId !== undefined) startLogAnew(settings.path, identity, executor);
      executor.memory.control.publish();
    }
    return new Database(executor, settings, { identity, recovered });
  });
  try {
    // Not under the lock of the folder: it may take long, and others may join meanwhile.
    await db.buildIndexes();
  } catch (error) {
    await db.close();
    throw error;
  }
  return db;
}

/** Removes a store that nobody has open, memory and all. */
export async function destroy(path: string): Promise<void> {
  const { path: folder } = settingsOf({ path, sharing: "threads" });
  await coded(folder, async () => {
    refuseIfInThreads(folder);
    unshareBuffers(folder);
    if (readIdentity(folder) === undefined) return;
    await withOpenLock(folder, () =>
      whileAlone(folder, () => {
        const identity = readIdentity(folder);
        if (identity !== undefined) removeStore(folder, identity);
      }),
    );
  });
}
