/** Removes device files whose tables are gone: those that nothing in the catalogue leads to. */

import { deviceFilesOf } from "../../device/device.ts";
import { DEVICE_FOLDER, fileName, isDeviceFile } from "../../device/page-file.ts";
import type { Executor } from "../../engine/executor.ts";
import { readSchemas } from "../catalogue.ts";
import { isOnDevice } from "../schema.ts";
import { deviceRootAt } from "./hidden-tables.ts";

/** For one who knows that nothing is left to be freed of tables that were dropped. */
export function removeStaleFiles(executor: Executor): void {
  const { path } = executor.memory;
  if (path === undefined) return;
  const files = deviceFilesOf(path);
  // Before the catalogue is read: a table is in it before its file is made.
  const found = files.list(DEVICE_FOLDER).filter(isDeviceFile);
  if (found.length === 0) return;
  const used = new Set(
    readSchemas(executor)
      .filter(({ schema }) => schema.state === undefined && isOnDevice(schema))
      .map(({ root }) => {
        const { fileHigh, fileLow } = deviceRootAt(executor, root);
        return fileName(fileHigh, fileLow);
      }),
  );
  for (const name of found) {
    const file = `${DEVICE_FOLDER}/${name}`;
    if (!used.has(file)) files.remove(file);
  }
}
