/** `situ node`: runs one node of a cluster until it is told to stop. */

import { type MetricsEndpoint, startMetrics } from "../../gateways/metrics/endpoint.ts";
import {
  type MemoryNodeConfiguration,
  readMemoryNodeFile,
} from "../../node/memory-configuration.ts";
import { MemoryNode } from "../../node/memory-node.ts";
import { type NodeListener, SituNode } from "../../node/node.ts";
import { readNodeFile } from "../../node/node-configuration.ts";
import {
  readXenicNodeFile,
  type XenicNodeConfiguration,
} from "../../node/xenic/xenic-configuration.ts";
import { XenicNode } from "../../node/xenic/xenic-node.ts";
import { SituError } from "../../runtime/errors.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import { type Context, type Run, untilStopped } from "./context.ts";

/** Why a node ends: it is told to stop; the cluster goes on without it; it was to leave. */
type End = "stopped" | "removed" | "drained";

export const runNode: Run<"node"> = async ({ config, role }, context) => {
  const memory = readMemoryNodeFile(config);
  if (memory !== undefined) return runMemory(memory, context);
  const xenic = readXenicNodeFile(config);
  if (xenic !== undefined && role !== "memory") return runXenic(xenic, context);
  if (role === "memory") {
    const why = 'a memory server says "protocol": "nam" in its file';
    throw new SituError("SITU_CONFIG", `${config}: ${why}`);
  }
  const { screen, signal } = context;
  const file = readNodeFile(config);
  const say = (event: string, text: string, more: object): void => {
    screen.line(text);
    screen.json({ event, ...more });
  };
  /** Its number, when it has served. */
  let served: number | undefined;
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
    const node = await SituNode.start(file, listener).catch((error: unknown) => {
      // Stopped while it joined again: it has closed its store, as one that serves does.
      if (served === undefined || !signal.aborted) throw error;
    });
    if (node === undefined) {
      say("closed", `situ: node ${served} closed`, { node: served });
      return EXIT_OK;
    }
    served = node.id;
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

/** A memory server, until it is told to stop: what it holds is gone then. */
async function runMemory(
  configuration: MemoryNodeConfiguration,
  { screen, signal }: Context,
): Promise<number> {
  const node = await MemoryNode.start(configuration, (error) => {
    screen.note(`situ node: ${error.stack ?? error.message}`);
    process.exit(EXIT_FAILED);
  });
  const { id, host, port } = node;
  const { cluster, configurationId, nodes } = configuration.cluster;
  screen.line(
    `situ: memory server ${id} of ${nodes.length} in cluster ${cluster} listening on ${host}:${port}`,
  );
  screen.json({
    event: "listening",
    role: "memory",
    node: id,
    host,
    port,
    cluster,
    configurationId,
  });
  await untilStopped(signal);
  await node.close();
  screen.line(`situ: memory server ${id} closed`);
  screen.json({ event: "closed", node: id });
  return EXIT_OK;
}

/** A node with the protocol "xenic", until it is told to stop: what it holds is gone then. */
async function runXenic(
  configuration: XenicNodeConfiguration,
  { screen, signal }: Context,
): Promise<number> {
  const died = (error: Error): void => {
    screen.note(`situ node: ${error instanceof SituError ? error.message : error.stack}`);
    process.exit(EXIT_FAILED);
  };
  const { id } = configuration;
  const { cluster, nodes } = configuration.cluster;
  screen.note(`situ node: waiting for all ${counted(nodes.length, "node")} of cluster ${cluster}`);
  const node = await XenicNode.start(configuration, died, signal);
  const { host, port } = node;
  screen.line(
    `situ: node ${id} of ${nodes.length} in cluster ${cluster} (protocol xenic) listening on ${host}:${port}`,
  );
  screen.json({ event: "listening", role: "xenic", node: id, host, port, cluster });
  await untilStopped(signal);
  await node.close();
  screen.line(`situ: node ${id} closed`);
  screen.json({ event: "closed", node: id });
  return EXIT_OK;
}

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
