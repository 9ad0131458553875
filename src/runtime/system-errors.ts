/**
 * From what the operating system and Node say to errors with a code. One table for all calls that a
 * caller makes with a path: whatever goes wrong below them, the caller gets a SituError that says
 * what to do, with the original as its cause.
 */

import { AssertionError } from "./assert.ts";
import { SituError, type SituErrorCode } from "./errors.ts";

interface Explanation {
  readonly code: SituErrorCode;
  /** Follows the path. */
  readonly says: string;
}

const NO_PERMISSION: Explanation = {
  code: "SITU_PERMISSION",
  says: "open the store as the user who owns it",
};
const NOT_A_FOLDER: Explanation = { code: "SITU_CONFIG", says: "is not a folder" };
const NO_ROOM: Explanation = { code: "SITU_DISK_FULL", says: "no room left on its file system" };
const TOO_MANY_FILES: Explanation = {
  code: "SITU_OVERLOADED",
  says: "too many files are open: raise the limit (ulimit -n), or close some",
};
const UNSUPPORTED: Explanation = {
  code: "SITU_UNSUPPORTED",
  says: "its file system cannot do what Situ needs: use a folder on a local one, such as ext4 or xfs",
};

const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  EACCES: NO_PERMISSION,
  EPERM: NO_PERMISSION,
  EROFS: { code: "SITU_PERMISSION", says: "its file system is read-only" },
  ERR_ACCESS_DENIED: {
    code: "SITU_PERMISSION",
    says:
      "Node's permission model denies it: start the process with --allow-fs-read and " +
      "--allow-fs-write for this folder and for the one of the store's memory, --allow-worker and " +
      "--allow-addons",
  },
  ENOTDIR: NOT_A_FOLDER,
  EEXIST: NOT_A_FOLDER,
  EISDIR: { code: "SITU_CONFIG", says: "is a folder, and a file is needed there" },
  ENOENT: {
    code: "SITU_CONFIG",
    says: "cannot be made there: is it, or a folder above it, a link to nowhere?",
  },
  ELOOP: { code: "SITU_CONFIG", says: "leads through symbolic links that go round in circles" },
  ENAMETOOLONG: { code: "SITU_CONFIG", says: "the name is too long for the file system" },
  EINVAL: { code: "SITU_CONFIG", says: "the file system refuses this name or this use of it" },
  ERR_INVALID_ARG_VALUE: { code: "SITU_CONFIG", says: "is not a name that a file can have" },
  ENXIO: { code: "SITU_CONFIG", says: "is a device or socket, and not a folder" },
  ENOSPC: NO_ROOM,
  EDQUOT: NO_ROOM,
  EFBIG: NO_ROOM,
  ENOMEM: { code: "SITU_NO_MEMORY", says: "the system has no memory left for it" },
  EMFILE: TOO_MANY_FILES,
  ENFILE: TOO_MANY_FILES,
  EBUSY: { code: "SITU_IN_USE", says: "is in use by the system or by another process" },
  ETXTBSY: { code: "SITU_IN_USE", says: "is in use by another process" },
  ENOTEMPTY: { code: "SITU_IN_USE", says: "another process is writing to it" },
  ENODEV: UNSUPPORTED,
  ENOSYS: UNSUPPORTED,
  ENOTSUP: UNSUPPORTED,
  EOPNOTSUPP: UNSUPPORTED,
  ENOLCK: UNSUPPORTED,
  ESTALE: UNSUPPORTED,
  EIO: {
    code: "SITU_CORRUPT",
    says: "the disk reports an input/output error: check it, and restore a backup if it is failing",
  },
};

/** Undefined for what did not come from the system, such as an error of the caller's own code. */
export function systemError(
  cause: unknown,
  path: string,
  noRoom: SituErrorCode = "SITU_DISK_FULL",
): SituError | undefined {
  if (!(cause instanceof Error)) return undefined;
  const { code, syscall } = cause as NodeJS.ErrnoException;
  const known =
    typeof code === "string" && Object.hasOwn(EXPLANATIONS, code) ? EXPLANATIONS[code] : undefined;
  if (known === undefined) {
    if (syscall === undefined) return undefined;
    return new SituError("SITU_CONFIG", `${path} cannot be used: ${cause.message}`, { cause });
  }
  const chosen = known === NO_ROOM ? noRoom : known.code;
  const subject = known === NO_PERMISSION ? `no permission for ${path}` : path;
  return new SituError(chosen, `${subject}: ${known.says}`, { cause });
}

/** Runs a call on the store of a folder. Errors that are not Situ's own get a code. */
export async function coded<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof AssertionError) throw damaged(error, path);
    throw systemError(error, path) ?? error;
  }
}

/** What is wrong with memory that does not hold what it must, for one who is just opening it. */
function damaged(cause: AssertionError, path: string): SituError {
  return new SituError(
    "SITU_CORRUPT",
    `the store at ${path} is damaged (${cause.message}): run "situ verify", and restore a backup, ` +
      `or end all processes that have it open so that its memory is rebuilt from the log`,
    { cause },
  );
}
