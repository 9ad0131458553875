/** Which tables a cluster has, for one who does not know how its users have declared them. */

import { ListTables } from "../../cluster/describe.ts";
import { Driver } from "../../protocols/driver.ts";
import { isLost, once } from "../../protocols/message.ts";
import { listTables } from "../../protocols/nam/catalogue.ts";
import { stateOf } from "../../protocols/nam/formation.ts";
import { SituError } from "../../runtime/errors.ts";
import type { Schema } from "../../tables/schema.ts";
import { descriptionFrom, endpointTo } from "./connect.ts";
import { type ConnectOptions, connectSettingsOf } from "./connect-options.ts";

/** Asks one node after the other: all of them know all tables. */
export async function clusterTables(options: ConnectOptions): Promise<Schema[]> {
  const settings = connectSettingsOf(options);
  const { timeoutMs } = settings;
  const { configuration, protocol } = await descriptionFrom(settings);
  const addresses = new Map(configuration.nodes.map(({ id, host, port }) => [id, { host, port }]));
  const endpoint = await endpointTo(settings, addresses, configuration.configurationId);
  const driver = new Driver(endpoint);
  let trouble: unknown;
  try {
    for (const node of addresses.keys()) {
      try {
        if (protocol === "nam") {
          const { formation, alive } = await driver.start(stateOf(node), timeoutMs);
          if (formation === 0) continue;
          const entries = await driver.start(listTables(alive, formation), timeoutMs);
          return entries.map(({ schema }) => JSON.parse(schema) as Schema);
        }
        const message = new ListTables(node);
        await driver.start(once(message), timeoutMs);
        if (message.error !== undefined) throw message.error;
        return message.schemas;
      } catch (error) {
        if (!(error instanceof SituError) || !isLost(error)) throw error;
        trouble = error;
      }
    }
  } finally {
    driver.close();
    await endpoint.close();
  }
  if (trouble !== undefined) throw trouble;
  return [];
}
