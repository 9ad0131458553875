/**
 * The files of a store. Its folder holds what identifies it, its log and its checkpoints; the mapped
 * files lie in a folder of their own in memory:
 *
 *   <path>                                locked by all who have the store open: folder-lock.ts
 *   <path>/store.json                     id, which memory it has and where, and the id of the log
 *   <path>/open.lock                      held while somebody creates, joins or recovers the store: open-lock.ts
 *   <path>/cluster.json                   of which cluster it is which node, see src/node/membership-file.ts
 *   <path>/log/, <path>/checkpoints/      see src/log/
 *   <memoryDir>/situ-<id>-<memory id>/    control (memory/control.ts), region-<n>, journal-<slot>, …
 *
 * The memory may be gone while the folder is there: after a reboot. It is then rebuilt from checkpoint
 * and log; a store without a log starts empty. Each memory has an id of its own, which is in its
 * name, cannot be foreseen, and is never used again.
 *
 * store.json also says which folder it was written in (its device, inode and time of creation). A folder
 * that is another one is a copy, or was moved to another file system. Its store is one of its own: the
 * memory that store.json names is not its memory.
 */

import {
  closeSync,
  constants,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { isOwnFolder } from "../memory/ownership.ts";
import { wallClockMs } from "../runtime/clock.ts";
import { SituError, type SituErrorCode } from "../runtime/errors.ts";
import { uniqueId } from "../runtime/random.ts";
import { systemError } from "../runtime/system-errors.ts";
import type { MemoryBytes } from "./memory-size.ts";
import { makeFolders } from "./node-files.ts";

const IDENTITY = "store.json";
const ID = /^[0-9a-f]{24}$/;
const FOLDER_MARK = /^\d+:\d+:\d+$/;
/** There while the store is rebuilt from its log: others who want to open it wait longer. */
export const RECOVERING = "recovering";

export interface Identity {
  readonly id: string;
  readonly memoryDir: string;
  readonly createdAt: string;
  /** The id of the store's log, if it has one. A restored store has the log of the original. */
  readonly logId?: string;
  /** Whether there must be something in the log, or it has been lost. */
  readonly logStarted?: boolean;
  /** The memory that the store has; undefined before it has one, and in stores of earlier versions. */
  readonly memoryId?: string;
  /**
   * How large the store may be, or "auto": what `resize` has set last. The limit in memory follows it
   * (attach/resize.ts). Not there in stores of earlier versions.
   */
  readonly memoryBytes?: MemoryBytes;
  /** The folder that this was written in, see `folderMark`. Not there in stores of earlier versions. */
  readonly folder?: string;
}

export function memoryFolder({ id, memoryDir, memoryId }: Identity): string {
  return join(memoryDir, memoryId === undefined ? `situ-${id}` : `situ-${id}-${memoryId}`);
}

/**
 * Tells a folder from a copy of it: device, inode and time of creation, which a rename keeps. The time is
 * left out where the file system does not know it.
 */
function folderMark(path: string): string {
  const { dev, ino, birthtimeNs, ctimeNs } = statSync(path, { bigint: true });
  // Where there is none, Node may give the time of the last change.
  return `${dev}:${ino}:${birthtimeNs === ctimeNs ? 0n : birthtimeNs}`;
}

/** Whether the folder is a copy of the one that store.json was written in, or was moved like one. */
export function isCopied(path: string, { folder }: Identity): boolean {
  if (folder === undefined) return false;
  const [dev, ino, birth] = folder.split(":");
  const [devNow, inoNow, birthNow] = folderMark(path).split(":");
  if (dev !== devNow || ino !== inoNow) return true;
  return birth !== "0" && birthNow !== "0" && birth !== birthNow;
}

/** Runs the recovery of a store, under its open lock. */
export async function whileRecovering<T>(path: string, work: () => Promise<T>): Promise<T> {
  const file = join(path, RECOVERING);
  explained(file, () => writeFileSync(file, "", { mode: 0o600 }));
  try {
    return await work();
  } finally {
    rmSync(file, { force: true });
  }
}

export function makeFolder(path: string): void {
  explainedOnDisk(path, () => makeFolders(path, 0o700));
}

export function readIdentity(path: string): Identity | undefined {
  const file = join(path, IDENTITY);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    return explained(file, () => {
      throw error;
    });
  }
  try {
    const identity = parseIdentity(JSON.parse(text) as Partial<Identity>);
    if (identity !== undefined) return identity;
  } catch {
    // Reported below: whatever is wrong with it, it is not what Situ wrote.
  }
  throw new SituError(
    "SITU_CORRUPT",
    `${file} is damaged and no longer says where the store's memory is: restore the file; or, to ` +
      `start an empty store, remove it, with the folders log and checkpoints beside it`,
  );
}

function parseIdentity(found: Partial<Identity>): Identity | undefined {
  const { id, memoryDir, createdAt, logId, logStarted, memoryId, memoryBytes, folder } = found;
  const isId = (value: unknown): value is string => typeof value === "string" && ID.test(value);
  const mayBeId = (value: unknown): boolean => value === undefined || isId(value);
  if (!isId(id) || typeof memoryDir !== "string") return undefined;
  if (!mayBeId(logId) || !mayBeId(memoryId)) return undefined;
  const isSize = memoryBytes === "auto" || Number.isSafeInteger(memoryBytes);
  if (memoryBytes !== undefined && !isSize) return undefined;
  if (folder !== undefined && !FOLDER_MARK.test(folder)) return undefined;
  return {
    id,
    memoryDir,
    createdAt: String(createdAt),
    ...(logId === undefined ? {} : { logId, logStarted: logStarted === true }),
    ...(memoryId === undefined ? {} : { memoryId }),
    ...(memoryBytes === undefined ? {} : { memoryBytes }),
    ...(folder === undefined ? {} : { folder }),
  };
}

export function newIdentity(memoryDir: string): Identity {
  return { id: uniqueId(), memoryDir, createdAt: new Date(wallClockMs()).toISOString() };
}

/** The same with a log that has not begun. */
export function withLog(identity: Identity): Identity {
  return { ...identity, logId: uniqueId(), logStarted: false };
}

/** Written by one who has the folder's lock alone, or has the memory that it names. */
export function writeIdentity(path: string, given: Identity): Identity {
  const identity = { ...given, folder: folderMark(path) };
  writeJson(path, IDENTITY, identity);
  return identity;
}

/** Renamed into place and synced, so that neither a crash nor a power cut leaves half of it. */
export function writeJson(path: string, name: string, value: object): void {
  const file = join(path, name);
  explainedOnDisk(file, () => {
    const text = `${JSON.stringify(value, undefined, 2)}\n`;
    writeFileSync(`${file}.new`, text, { mode: 0o600, flush: true });
    renameSync(`${file}.new`, file);
    const folder = openSync(path, constants.O_RDONLY);
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  });
}

/** For one who is alone in the store. A copy has no memory, and that of the original is not touched. */
export function removeStore(path: string, identity: Identity): void {
  if (!isCopied(path, identity)) removeMemory(identity);
  for (const folder of ["log", "checkpoints", "device"]) {
    rmSync(join(path, folder), { recursive: true, force: true });
  }
  // Last what makes it a store: whoever dies over this can be asked to do it again.
  rmSync(join(path, IDENTITY), { force: true });
}

/**
 * Removes all memory that the store has or had: one that a crash left, or that was given up when the
 * store was rebuilt elsewhere. What another user has put under its name stays.
 */
export function removeMemory({ id, memoryDir }: Identity): void {
  const name = `situ-${id}`;
  for (const entry of foldersIn(memoryDir)) {
    if (entry !== name && !entry.startsWith(`${name}-`)) continue;
    const folder = join(memoryDir, entry);
    const stats = lstatSync(folder, { throwIfNoEntry: false });
    if (stats === undefined || !isOwnFolder(stats)) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    return explained(folder, () => {
      throw error;
    });
  }
}

const NO_MEMORY: SituErrorCode = "SITU_NO_MEMORY";

/** The same for files that are on disk, and not in memory. */
export function explainedOnDisk<T>(path: string, work: () => T): T {
  return explained(path, work, "SITU_DISK_FULL");
}

/** Runs a file operation and says in plain words what went wrong with it. */
export function explained<T>(path: string, work: () => T, noRoom = NO_MEMORY): T {
  try {
    return work();
  } catch (cause) {
    throw systemError(cause, path, noRoom) ?? cause;
  }
}
