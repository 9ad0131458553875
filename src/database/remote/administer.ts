/** Asks the manager of a cluster for what an operator wants. */

import { Administer } from "../../cluster/membership/administer.ts";
import type { Wish } from "../../cluster/membership/administration.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import { Driver } from "../../protocols/driver.ts";
import { once } from "../../protocols/message.ts";
import { SituError } from "../../runtime/errors.ts";
import { MAX_MANAGER_HOPS } from "../../runtime/limits.ts";
import { descriptionFrom, endpointTo } from "./connect.ts";
import { type ConnectOptions, connectSettingsOf } from "./connect-options.ts";

export type { Wish };

/** Resolves when the manager has accepted it; what it does then is seen in the cluster's status. */
export async function administer(options: ConnectOptions, wish: Wish): Promise<void> {
  const settings = connectSettingsOf(options);
  const { timeoutMs } = settings;
  const { configuration } = await descriptionFrom(settings);
  const { nodes, configurationId, cluster } = configuration;
  let { manager } = configuration;
  if (manager === undefined) {
    const why = `the nodes of cluster ${cluster} are fixed in their files; with etcd they can change`;
    throw new SituError("SITU_UNSUPPORTED", why);
  }
  const addresses = new Map(nodes.map(({ id, host, port }) => [id, { host, port }]));
  const endpoint = await endpointTo(settings, addresses, configurationId);
  const driver = new Driver(endpoint);
  const ask = async (node: NodeId) => {
    const message = new Administer(node, wish);
    await driver.start(once(message), timeoutMs);
    if (message.granted === undefined) throw message.error;
    return message.granted;
  };
  try {
    for (let hop = 0; hop < MAX_MANAGER_HOPS; hop++) {
      if (manager === undefined || !addresses.has(manager)) break;
      const granted = await ask(manager);
      if (granted.answer === "accepted") return;
      if (granted.answer === "refused") throw new SituError("SITU_CONFIG", granted.why);
      manager = granted.manager;
    }
  } finally {
    driver.close();
    await endpoint.close();
  }
  const why = `cluster ${cluster} has another manager by now; ask again in a moment`;
  throw new SituError("SITU_UNREACHABLE", why);
}
