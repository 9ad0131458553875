/**
 * The media log of a store: a second copy of the pages of its device tables, in a folder on another disk (the paper's
 * overflow log, §6, from which a lost device is rebuilt). A page lies there under the same name and number. It is written
 * to both, and both are synced, before any place leads to it; so whatever a place leads to is in both. Pages are written
 * once, and a place names their generation: a copy that was left behind is never taken for a newer page.
 *
 * The paper appends pages to a file that grows until it is replayed. A copy by number needs no replay, no more
 * space than the device file, and mends a single page.
 *
 * Which folder it is, is said by a file in the store's folder, so that all processes agree. It is made with the store,
 * before there is any device file, and stays. Processes that have the store open by then have read that there is none:
 * so whoever notes it has the keeper's role (tables/device/keeper-role.ts), and whoever makes a file, or is about to write to one
 * for the first time, looks again under that role. It also says whose it is: of two copies of a store's folder, one would write over
 * what the other one needs.
 */

import { type StoreFiles, writeFully } from "../folder/files.ts";
import { explainedOnDisk } from "../folder/store-files.ts";
import { SituError } from "../runtime/errors.ts";
import { DEVICE_FOLDER, isDeviceFile, isUnfinished } from "./page-file.ts";

const SETTING = `${DEVICE_FOLDER}/media-log`;
const MOST_BYTES = 16_384;

/** The folder of a store's media log, or undefined if it has none. */
export function mediaLogFolder(files: StoreFiles): string | undefined {
  if (!files.has(SETTING)) return undefined;
  const file = files.open(SETTING, true);
  try {
    const bytes = Buffer.alloc(MOST_BYTES);
    const text = bytes.toString("utf8", 0, file.read(bytes, 0));
    const { folder, store } = JSON.parse(text) as { folder?: unknown; store?: unknown };
    if (typeof folder !== "string") throw new Error("it names no folder");
    if (store !== files.place) throw elsewhere(files.place, String(store));
    return folder;
  } catch (error) {
    if (error instanceof SituError) throw error;
    throw new SituError(
      "SITU_CORRUPT",
      `${files.place}/${SETTING} cannot be read: ${(error as Error).message}`,
      { cause: error },
    );
  } finally {
    file.close();
  }
}

function elsewhere(place: string, store: string): SituError {
  return new SituError(
    "SITU_CONFIG",
    `the media log of ${place} belongs to the store at ${store}: if the folder was moved, remove ${place}/${SETTING}, and ` +
      "it has none",
  );
}

/** Removes what a store that is being destroyed has in its media log. */
export function removeMediaLog(files: StoreFiles, openMedia: (folder: string) => StoreFiles): void {
  const folder = mediaLogFolder(files);
  if (folder === undefined) return;
  const media = openMedia(folder);
  for (const name of media.list(DEVICE_FOLDER)) {
    if (isDeviceFile(name) || isUnfinished(name)) media.remove(`${DEVICE_FOLDER}/${name}`);
  }
}

/** Notes the folder that the store is opened with. For the keeper: nobody makes a file meanwhile. */
export function noteMediaLog(
  files: StoreFiles,
  folder: string,
  openMedia: (folder: string) => StoreFiles,
): void {
  const known = mediaLogFolder(files);
  if (known === folder) return;
  if (known !== undefined) {
    throw new SituError(
      "SITU_CONFIG",
      `mediaLog is ${folder}, but the media log of ${files.place} is in ${known}`,
    );
  }
  if (files.list(DEVICE_FOLDER).some(isDeviceFile)) {
    throw new SituError(
      "SITU_CONFIG",
      `the store at ${files.place} has device tables without a media log: mediaLog takes effect before the first rows ` +
        "are on the device",
    );
  }
  const media = openMedia(folder);
  explainedOnDisk(folder, () => {
    media.makeFolder(DEVICE_FOLDER);
    if (media.list(DEVICE_FOLDER).some(isDeviceFile)) {
      throw new SituError("SITU_CONFIG", `mediaLog: ${folder} has the media log of another store`);
    }
    media.syncFolder(DEVICE_FOLDER);
    media.syncFolder("");
  });
  explainedOnDisk(files.place, () => {
    files.makeFolder(DEVICE_FOLDER);
    // Under another name first: whoever dies has noted it, or not.
    const unfinished = `${SETTING}.new`;
    const file = files.create(unfinished, 0);
    try {
      writeFully(file, [Buffer.from(JSON.stringify({ folder, store: files.place }))], 0);
      file.sync();
    } finally {
      file.close();
    }
    files.rename(unfinished, SETTING);
    files.syncFolder(DEVICE_FOLDER);
    files.syncFolder("");
  });
}
