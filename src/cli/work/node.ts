/** `situ node`: runs one node of a cluster until it is told to stop. */

import { type MetricsEndpoint, startMetrics } from "../../gateways/metrics/endpoint.ts";
import { type NodeListener, SituNode } from "../../node/node.ts";
import { readNodeFile } from "../../node/node-configuration.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import { type Run, untilStopped } from "./context.ts";

/** Why a node ends: it is told to stop; the cluster goes on without it; it was to leave. */
type End = "stopped" | "removed" | "drained";

export const runNode: Run<"node"> = async ({ config }, { screen, signal }) => {
  const file = readNodeFile(config);
  const say = (event: string, text: string, more: object): void => {
    screen.line(text);
    screen.json({ event, ...more });
  };
  for (;;) {
    let remove: (end: End) => void = () => {};
    const removed = new Promise<End>((resolve) => {
      remove = resolve;
    });
    const listener: NodeListener = {
      died: (error) => {
        screen.note(`situ node: ${error.stack ?? error.message}`);
        process.exit(EXIT_FAILED);
      },
      removed: (wasDrained) => remove(wasDrained ? "drained" : "removed"),
      waiting: (missing) => {
        screen.note(`situ node: waiting for ${counted(missing, "more node")} to form the cluster`);
      },
      signal,
    };
    const node = await SituNode.start(file, listener);
    const metrics = await metricsOf(node);
    const { id, host, port } = node;
    const { cluster, configurationId, nodes } = node.configuration.cluster;
    const where = `node ${id} of ${nodes.length} in cluster ${cluster}`;
    say(
      "listening",
      `situ: ${where} (configuration ${configurationId}) listening on ${host}:${port}`,
      { node: id, host, port, cluster, configurationId, metricsPort: metrics?.port },
    );
    if (metrics !== undefined) {
      screen.line(screen.dim(`      metrics on http://${metrics.host}:${metrics.port}/metrics`));
    }
    const stopped = untilStopped(signal).then((): End => "stopped");
    const end = await Promise.race([stopped, removed]);
    await metrics?.close();
    await node.close();
    if (end === "removed") {
      // Another life of it, with what it has; the others may have taken a slow node for a dead one.
      say("removed", `situ: the cluster went on without node ${id}; it joins again`, { node: id });
      continue;
    }
    if (end === "drained") {
      say("drained", `situ: node ${id} has left the cluster, which has its data`, { node: id });
    }
    say("closed", `situ: node ${id} closed`, { node: id });
    return EXIT_OK;
  }
};

/** The metrics of the node's store, and of the node, if its file has a place for them. */
async function metricsOf(node: SituNode): Promise<MetricsEndpoint | undefined> {
  const { metrics } = node.configuration;
  if (metrics === undefined) return undefined;
  const { database } = node;
  const reasons = (): string[] =>
    node.mayServe ? [] : ["this node has no lease of the cluster, and serves nothing"];
  try {
    return await startMetrics({ ...metrics, database, node: () => node.stats(), reasons });
  } catch (error) {
    await node.close();
    throw error;
  }
}
