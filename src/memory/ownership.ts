/**
 * Whose memory it is. Memory files lie in a folder where every user of the machine may make files
 * (/dev/shm), under names that everyone can list. So a file is used only if it belongs to the user of
 * this process, no other user may write to it, and it is no symbolic link. A file that fails this was
 * made by somebody else: it is never read, written or removed.
 */

import type { Stats } from "node:fs";
import { SituError } from "../runtime/errors.ts";

const WRITABLE_BY_OTHERS = 0o022;

/** Refuses what another user made, or may write to. */
export function refuseForeign(path: string, stats: Stats, kind: "file" | "folder"): void {
  const why = whyForeign(stats, kind);
  if (why === undefined) return;
  throw new SituError(
    "SITU_PERMISSION",
    `${path} ${why}: memory is shared only among processes of the user who owns the store`,
  );
}

/** Whether this user made the folder; then it may also be removed. */
export function isOwnFolder(stats: Stats): boolean {
  return stats.isDirectory() && stats.uid === (process.geteuid?.() ?? stats.uid);
}

/** What is wrong with a file's owner, mode or kind; undefined if it is this user's own. */
function whyForeign(stats: Stats, kind: "file" | "folder"): string | undefined {
  if (stats.isSymbolicLink()) return "is a symbolic link";
  if (kind === "file" ? !stats.isFile() : !stats.isDirectory()) return `is not a ${kind}`;
  const user = process.geteuid?.();
  if (user !== undefined && stats.uid !== user) {
    return `belongs to user ${stats.uid}, and this process runs as user ${user}`;
  }
  if ((stats.mode & WRITABLE_BY_OTHERS) === 0) return undefined;
  return `can be written by other users (mode ${(stats.mode & 0o777).toString(8)})`;
}
