/** From the description of a cluster with the protocol "xenic" to a database on it. */

import type { Configuration } from "../../cluster/configuration.ts";
import { clientView } from "../../cluster/view.ts";
import type { TcpEndpoint } from "../../fabric/tcp/endpoint.ts";
import { fixedPlacement } from "../../protocols/xenic/fixed-placement.ts";
import { uniqueId } from "../../runtime/random.ts";
import type { ConnectSettings } from "../remote/connect-options.ts";
import { XenicDatabase } from "./xenic-database.ts";

export async function connectXenic(
  settings: ConnectSettings,
  configuration: Configuration,
  endpoint: TcpEndpoint,
): Promise<XenicDatabase> {
  const nodes = configuration.nodes.map(({ id }) => id);
  const { backups, configurationId } = configuration;
  const { current } = clientView(uniqueId(), configuration, "rpc");
  const db = new XenicDatabase({
    endpoint,
    view: current,
    partitions: current.placement,
    placement: fixedPlacement(nodes, backups, configurationId),
    nodes,
    timeoutMs: settings.timeoutMs,
    close: () => endpoint.close(),
  });
  try {
    await db.openTables(settings.tables, settings.extents ?? {});
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}
