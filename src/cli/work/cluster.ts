/** `situ cluster status`: asks the nodes, and shows the health of their cluster first. */

import { clusterStatus, type NodeStatus } from "../../database/remote/cluster-status.ts";
import { counted } from "../../runtime/units.ts";
import { EXIT_FAILED, EXIT_OK } from "../failures.ts";
import { type Column, renderTable } from "../text-table.ts";
import { connectionOf } from "./cluster-connection.ts";
import type { Run } from "./context.ts";

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
  const status = await clusterStatus(connectionOf(values, values.timeout));
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
  if (node.report?.isServing === false) words.push("has no lease");
  else if (node.report?.isWhole === false) words.push("recovers");
  if (node.isAnswering && node.configurationId !== configurationId) {
    words.push(`configuration ${node.configurationId}`);
  }
  return words.join(", ");
}
