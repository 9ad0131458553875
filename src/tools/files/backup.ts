/**
 * A backup of a store that goes on running: its newest sound checkpoint, and the log from there to
 * now. Recovery makes of it the store as it was when the backup read the end of the log; nobody
 * waits for it, and nothing of the store is changed. With the log that a store keeps (keepLogMs), a
 * backup of the folder as it is serves more points in time: see restore.ts.
 */

import type { StoreFiles } from "../../folder/files.ts";
import { type Copied, type CopyOptions, copyStore } from "./copy.ts";

/** Copies to an empty folder. Not copied is what names the store (store.json). */
export async function backupFiles(
  from: StoreFiles,
  to: StoreFiles,
  options: CopyOptions = {},
): Promise<Copied> {
  return await copyStore(from, to, {}, options);
}
