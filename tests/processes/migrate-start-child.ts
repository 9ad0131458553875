/** Opens the store with the new declaration, as many others do at the same moment. */

import { addField } from "../../src/index.ts";
import { orderOf, report, waitForGo } from "../helpers/process-child.ts";
import { DEFAULT_EXTRA, openItems, Wider } from "./migrate-store.ts";

const { path, dies } = orderOf<{ readonly path: string; readonly dies: boolean }>();
await waitForGo();
const pids = new Set<number>();
const db = await openItems(path, {
  tables: [Wider],
  migrate: [addField(Wider, "extra", { default: DEFAULT_EXTRA })],
  onMigration: ({ pid, rows }) => {
    pids.add(pid);
    // In the middle of its own work.
    if (dies && pid === process.pid && rows > 0) process.kill(pid, "SIGKILL");
  },
});
const extras = db
  .scan(Wider)
  .toArray()
  .map(({ extra }) => extra);
await db.close();
process.stdin.destroy();
report({
  rows: extras.length,
  isDefault: extras.every((extra) => extra === DEFAULT_EXTRA),
  pids: [...pids],
});
