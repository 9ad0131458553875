/** How much memory is left: on the file system of a folder, and on the machine or in the container. */

import { statfsSync } from "node:fs";
import { totalmem } from "node:os";

/** Bytes that can still be written to the file system of a folder. */
export function freeBytesOf(folder: string): number {
  const { bavail, bsize, blocks } = statfsSync(folder);
  // A tmpfs that was mounted without a limit says that it has no blocks at all.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** What this machine has, or what its container (cgroup) may use, if that is less. */
export function machineBytes(): number {
  const limit = process.constrainedMemory();
  // Without a limit, some versions of Node.js say 0 or undefined, others a very large number.
  return limit > 0 ? Math.min(totalmem(), limit) : totalmem();
}
