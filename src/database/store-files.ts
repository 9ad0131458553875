/**
 * The files of a store. Its folder holds what identifies it, and later its log; the mapped files
 * lie in a folder of their own in memory:
 *
 *   <path>/store.json                     id, and where the memory is
 *   <path>/open.lock                      held while somebody creates or joins the store
 *   <memoryDir>/situ-<id>/control         see memory/control.ts
 *   <memoryDir>/situ-<id>/region-<n>      created when needed
 *   <memoryDir>/situ-<id>/journal-<slot>, slot-<slot>.lock
 *
 * The memory may be gone while the folder is there: after a reboot. The store then starts empty.
 */

import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { libc } from "../memory/libc.ts";
import { nowMs, sleep, wallClockMs } from "../runtime/clock.ts";
import { SituError, TimeoutError } from "../runtime/errors.ts";
import { DEFAULT_TIMEOUT_MS } from "../runtime/limits.ts";
import { uniqueId } from "../runtime/random.ts";

const IDENTITY = "store.json";
const OPEN_LOCK = "open.lock";

export interface Identity {
  readonly id: string;
  readonly memoryDir: string;
  readonly createdAt: string;
}

export function memoryFolder({ id, memoryDir }: Identity): string {
  return join(memoryDir, `situ-${id}`);
}

/** Runs `work` while nobody else creates, joins or destroys the store of this folder. */
export async function withOpenLock<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  const file = join(path, OPEN_LOCK);
  const fd = explained(file, () => openSync(file, constants.O_RDWR | constants.O_CREAT, 0o600));
  try {
    const deadlineMs = nowMs() + DEFAULT_TIMEOUT_MS;
    while (!libc().tryLock(fd)) {
      if (nowMs() > deadlineMs) {
        throw new TimeoutError(`another process has been opening ${path} for too long`);
      }
      await sleep(2);
    }
    return await work();
  } finally {
    // Closing gives the lock back.
    closeSync(fd);
  }
}

export function makeFolder(path: string): void {
  explained(path, () => mkdirSync(path, { recursive: true, mode: 0o700 }));
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
    const { id, memoryDir, createdAt } = JSON.parse(text) as Partial<Identity>;
    if (/^[0-9a-f]{24}$/.test(id ?? "") && typeof memoryDir === "string") {
      return { id: id!, memoryDir, createdAt: String(createdAt) };
    }
  } catch {
    // Reported below: whatever is wrong with it, it is not what Situ wrote.
  }
  throw new SituError(
    "SITU_CORRUPT",
    `${file} is damaged and no longer says where the store's memory is: restore the file, or remove ` +
      `it to start an empty store`,
  );
}

export function writeIdentity(path: string, memoryDir: string): Identity {
  const identity = {
    id: uniqueId(),
    memoryDir,
    createdAt: new Date(wallClockMs()).toISOString(),
  };
  const file = join(path, IDENTITY);
  // Renamed into place, so that a crash leaves no half-written file.
  explained(file, () => {
    writeFileSync(`${file}.new`, `${JSON.stringify(identity, undefined, 2)}\n`, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  });
  return identity;
}

export function removeStore(path: string, identity: Identity): void {
  rmSync(memoryFolder(identity), { recursive: true, force: true });
  rmSync(join(path, IDENTITY), { force: true });
}

/** Runs a file operation and says in plain words what went wrong with it. */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
      throw new SituError(
        "SITU_PERMISSION",
        `no permission for ${path}: open the store as the user who owns it`,
        { cause },
      );
    }
    if (code === "ENOTDIR" || code === "EEXIST") {
      throw new SituError("SITU_CONFIG", `${path} is not a folder`, { cause });
    }
    if (code === "ENOSPC") {
      throw new SituError("SITU_NO_MEMORY", `no room left for ${path}`, { cause });
    }
    throw cause;
  }
}
