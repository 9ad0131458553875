/** `situ cluster status`: asks the nodes, and shows the health of their cluster first. */

import { readFileSync } from "node:fs";
import { clusterStatus, type NodeStatus } from "../../database/remote/cluster-status.ts";
import type { ConnectOptions } from "../../database/remote/connect-options.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_FAILED, EXIT_OK, UsageError } from "../failures.ts";
import { type Column, renderTable } from "../text-table.ts";
import type { Run, Values } from "./context.ts";

const COLUMNS: readonly Column[] = [
  { head: "node", isRight: true },
  { head: "address" },
  { head: "domain" },
  { head: "state" },
  { head: "primary of", isRight: true },
  { head: "backup of", isRight: true },
  { head: "copying", isRight: true },
];

export const runClusterStatus: Run<"cluster status"> = async (values, { screen }) => {
  const status = await clusterStatus(connectionOf(values));
  const { cluster, configurationId, backups, partitions, health, nodes } = status;
  screen.json(status);
  const paint =
    health.state === "healthy"
      ? screen.green
      : isServing(health.state)
        ? screen.yellow
        : screen.red;
  screen.line(paint(health.sentence));
  const copies = counted(backups + 1, "copy", "copies");
  screen.line(
    `cluster ${cluster}, configuration ${configurationId}: ` +
      `${counted(nodes.length, "node")}, ${counted(partitions, "partition")} with ${copies} each`,
  );
  screen.line();
  const rows = nodes.map((node) => [
    String(node.id),
    `${node.host}:${node.port}`,
    node.domain ?? "",
    stateOf(node, configurationId),
    String(node.primaries),
    String(node.backups),
    String(node.filling),
  ]);
  for (const line of renderTable(COLUMNS, rows, screen.columns, screen.dim)) screen.line(line);
  return isServing(health.state) ? EXIT_OK : EXIT_FAILED;
};

function isServing(state: string): boolean {
  return state !== "unavailable" && state !== "lost";
}

function stateOf(node: NodeStatus, configurationId: number): string {
  const words = [node.isAnswering ? "answers" : "does not answer"];
  if (node.isManager) words.push("manager");
  if (node.isDraining) words.push("draining");
  if (node.isAnswering && node.configurationId !== configurationId) {
    words.push(`configuration ${node.configurationId}`);
  }
  return words.join(", ");
}

function connectionOf(values: Values<"cluster status">): ConnectOptions {
  const { connect, cluster, secretFile, secret, ca, timeout } = values;
  const given = secretFile === undefined ? (secret ?? process.env.SITU_SECRET) : read(secretFile);
  return {
    connect: connect.split(",").map((each) => each.trim()),
    cluster,
    timeoutMs: timeout,
    ...(given === undefined || given === "" ? {} : { secret: given }),
    ...(ca === undefined ? {} : { tls: { ca: read(ca) } }),
  };
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new UsageError(`${path} cannot be read: ${(error as Error).message}`);
  }
}
