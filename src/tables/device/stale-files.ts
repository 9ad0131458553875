/** Removes device files whose tables are gone: those that nothing in the catalogue leads to. */

import { deviceFilesOf } from "../../device/device.ts";
import { mediaLogFolder } from "../../device/media-log.ts";
import {
  DEVICE_FOLDER,
  fileName,
  isDeviceFile,
  isUnfinished,
  unfinishedName,
} from "../../device/page-file.ts";
import type { Executor } from "../../engine/executor.ts";
import type { Address } from "../../memory/address.ts";
import { readSchemas } from "../catalogue.ts";
import type { Remains } from "../migrations/stored.ts";
import { isOnDevice } from "../schema.ts";
import { deviceRootAt } from "./hidden-tables.ts";

/** The files of all tables on the device, and where these are rooted. */
export function filesInUse(executor: Executor): Map<string, Address> {
  const used = new Map<string, Address>();
  for (const { schema, root } of readSchemas(executor)) {
    if (schema.state !== undefined || !isOnDevice(schema)) continue;
    const { fileHigh, fileLow } = deviceRootAt(executor, root);
    used.set(fileName(fileHigh, fileLow), root);
  }
  return used;
}

/** For one who knows that nothing is left to be freed of tables that were dropped. */
export function removeStaleFiles(executor: Executor): void {
  const { path } = executor.memory;
  if (path === undefined) return;
  const files = deviceFilesOf(path);
  const folder = mediaLogFolder(files);
  const disks = folder === undefined ? [files] : [files, deviceFilesOf(folder)];
  // Before the catalogue is read: a table is in it before its file is made.
  const isOurs = (name: string): boolean => isDeviceFile(name) || isUnfinished(name);
  const found = new Set(disks.flatMap((disk) => disk.list(DEVICE_FOLDER)).filter(isOurs));
  if (found.size === 0) return;
  // Another's snapshots may need files of tables that were dropped, until he has freed them.
  const isLeft = ({ root, schema }: Remains): boolean => root !== undefined && isOnDevice(schema);
  if (readSchemas(executor).some(({ schema }) => schema.remains?.some(isLeft))) return;
  const used = filesInUse(executor);
  for (const name of found) {
    const file = `${DEVICE_FOLDER}/${name}`;
    if ([...used.keys()].some((each) => file === each || file === unfinishedName(each))) continue;
    for (const disk of disks) if (disk.has(file)) disk.remove(file);
  }
}
