/** Opening a store that is there, with a line that says how far its recovery is. */

import { type OpenStore, openStored as openTables } from "../../transfer/stored-tables.ts";
import { ProgressLine } from "../progress.ts";
import type { Screen } from "../screen.ts";

/** Opens a store with tables made from the schemas that it has. */
export async function openStored(path: string, screen: Screen): Promise<OpenStore> {
  const line = new ProgressLine(screen, "recovering");
  try {
    return await openTables({ path, onRecovery: line.show });
  } finally {
    line.clear();
  }
}
