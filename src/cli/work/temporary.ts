/** A store for a while, in a folder of its own: whatever happens in it, nothing is left of it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { destroy } from "../../database/open.ts";
import { readIdentity, removeStore } from "../../folder/store-files.ts";

export async function withTemporaryFolder<T>(
  name: string,
  parent: string | undefined,
  use: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(parent ?? tmpdir(), `situ-${name}-`));
  // Also where the process is told to stop at once.
  const remove = (): void => {
    const identity = readIdentity(folder);
    if (identity !== undefined) removeStore(folder, identity);
    rmSync(folder, { recursive: true, force: true });
  };
  process.once("exit", remove);
  try {
    return await use(folder);
  } finally {
    await destroy(folder);
    process.off("exit", remove);
    remove();
  }
}
