/** Asks all nodes of a cluster how they are: what `situ cluster status` shows. */

import { Describe, type Description } from "../../cluster/describe.ts";
import { type ClusterHealth, healthOf } from "../../cluster/health.ts";
import { AskReport, type NodeReport } from "../../cluster/membership/administer.ts";
import { ringReplicas } from "../../cluster/placement.ts";
import { nextStep } from "../../cluster/planning/planning.ts";
import type { NodeId } from "../../fabric/fabric.ts";
import { Driver } from "../../protocols/driver.ts";
import { once } from "../../protocols/message.ts";
import { descriptionFrom, endpointTo } from "./connect.ts";
import { type ConnectOptions, connectSettingsOf } from "./connect-options.ts";

export interface NodeStatus {
  readonly id: NodeId;
  readonly host: string;
  readonly port: number;
  readonly domain: string | undefined;
  readonly isManager: boolean;
  readonly isDraining: boolean;
  readonly isAnswering: boolean;
  /** What it says of itself, in a cluster with etcd: whether it has its lease, and all its rows. */
  readonly report: NodeReport | undefined;
  /** The number of the configuration that it has. */
  readonly configurationId: number | undefined;
  /** Partitions of which it is the primary, a backup, and those that it copies. */
  readonly primaries: number;
  readonly backups: number;
  readonly filling: number;
}

export interface ClusterStatus {
  readonly cluster: string;
  readonly configurationId: number;
  readonly backups: number;
  readonly partitions: number;
  /** Whether nothing moves, and nothing would lie better elsewhere. */
  readonly isBalanced: boolean;
  readonly health: ClusterHealth;
  readonly nodes: readonly NodeStatus[];
}

/** One of the nodes in `connect` must answer; of the others it is told who does not. */
export async function clusterStatus(options: ConnectOptions): Promise<ClusterStatus> {
  const settings = connectSettingsOf(options);
  const { configuration } = await descriptionFrom(settings);
  const { cluster, configurationId, backups, partitions, manager } = configuration;
  const addresses = new Map(configuration.nodes.map(({ id, host, port }) => [id, { host, port }]));
  const endpoint = await endpointTo(settings, addresses, configurationId);
  const driver = new Driver(endpoint);
  const placement = configuration.placement ?? ringReplicas(configuration);
  const answers = new Map<NodeId, Description>();
  const reports = new Map<NodeId, NodeReport>();
  const ask = async (id: NodeId): Promise<void> => {
    const message = new Describe(id);
    await driver.start(once(message), settings.timeoutMs).catch(() => {});
    if (message.description?.node !== id) return;
    answers.set(id, message.description);
    if (manager === undefined) return;
    const asked = new AskReport(id);
    await driver.start(once(asked), settings.timeoutMs).catch(() => {});
    if (asked.report !== undefined) reports.set(id, asked.report);
  };
  try {
    await Promise.all(configuration.nodes.map(({ id }) => ask(id)));
  } finally {
    driver.close();
    await endpoint.close();
  }
  const nodes = configuration.nodes.map(({ id, host, port, domain, draining }): NodeStatus => {
    const count = (isIt: (each: (typeof placement)[number]) => boolean): number =>
      placement.filter(isIt).length;
    return {
      id,
      host,
      port,
      domain,
      isManager: id === manager,
      isDraining: draining === true,
      isAnswering: answers.has(id),
      report: reports.get(id),
      configurationId: answers.get(id)?.configuration.configurationId,
      primaries: count(({ primary }) => primary === id),
      backups: count((each) => each.backups.includes(id)),
      filling: count((each) => each.filling.includes(id)),
    };
  });
  const health = healthOf(configuration, new Set(answers.keys()));
  const isBalanced =
    health.filling.length === 0 &&
    (manager === undefined || nextStep({ ...configuration, placement }) === undefined);
  return { cluster, configurationId, backups, partitions, isBalanced, health, nodes };
}
