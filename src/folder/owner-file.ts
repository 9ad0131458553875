/**
 * A file in the folder of a store's memory that says which store it belongs to, for `situ clean`, which
 * looks for memory whose store is gone. Paths mean something only in the mount namespace that they were
 * seen in, so that is noted, too.
 */

import { readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const OWNER = "store";

export interface Owner {
  /** The folder of the store. */
  readonly path: string;
  /** The mount namespace that the path belongs to; "" where the system has none. */
  readonly namespace: string;
}

/** Called by one who has just made the memory, or holds the store's open.lock. */
export function writeOwner(memoryFolder: string, path: string): void {
  const owner: Owner = { path, namespace: mountNamespace() };
  // Not under another name first: a file that disappears is taken for a loss of memory. Who reads half of
  // it knows nothing of the owner, which is harmless.
  writeFileSync(join(memoryFolder, OWNER), `${JSON.stringify(owner)}\n`, { mode: 0o600 });
}

/** Undefined for memory of an earlier version, or of a store that is just being created. */
export function readOwner(memoryFolder: string): Owner | undefined {
  try {
    const found = JSON.parse(readFileSync(join(memoryFolder, OWNER), "utf8")) as Partial<Owner>;
    const { path, namespace } = found;
    return typeof path === "string" && typeof namespace === "string"
      ? { path, namespace }
      : undefined;
  } catch {
    return undefined;
  }
}

export function mountNamespace(): string {
  try {
    return readlinkSync("/proc/self/ns/mnt");
  } catch {
    return "";
  }
}
