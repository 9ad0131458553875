/** A process that commits, counts commands as a gateway would, and stays until it is told to go. */

import { openLocal as open } from "../../src/database/open.ts";
import { CommandMetrics } from "../../src/gateways/metrics/command-metrics.ts";
import { orderOf, waitForGo } from "../helpers/process-child.ts";
import { Cell } from "./metrics-store.ts";

export interface MetricsOrder {
  readonly path: string;
  readonly id: number;
  readonly commits: number;
  readonly clients: number;
}

const { path, id, commits, clients } = orderOf<MetricsOrder>();
const db = await open({ path, tables: [Cell], timeoutMs: 30_000 });
const commands = new CommandMetrics(db.executor.metrics);
commands.clients(clients);
for (let value = 0; value < commits; value++) {
  db.transactSync((tx) => tx.put(Cell, { id, value }));
  commands.count(1);
}
await waitForGo();
await db.close();
process.stdin.destroy();
