/** The metrics of a node of a cluster, one row each: written behind those of its store (metric-table.ts). */

import type { Figure, Metric } from "./metric-table.ts";

/** What a node says of itself. All counts are since it was started. */
export interface NodeFigures {
  readonly committed: number;
  readonly aborted: number;
  /** Transactions that hold locks here, records that are not applied, transactions not over. */
  readonly prepared: number;
  readonly logged: number;
  readonly open: number;
  readonly counters: {
    readonly requestsSent: number;
    readonly requestsServed: number;
    readonly lost: number;
    readonly stale: number;
    readonly overloaded: number;
    readonly connections: number;
  };
  /** In a cluster with etcd. */
  readonly member?: MemberFigures | undefined;
}

export interface MemberFigures {
  readonly configurationId: number;
  readonly nodes: number;
  readonly isManager: boolean;
  /** Whether it has its lease in a configuration that is committed. */
  readonly isServing: boolean;
  readonly suspicions: number;
  /** Partitions of which it is the primary, a backup, and those that it copies. */
  readonly primaries: number;
  readonly backups: number;
  readonly filling: number;
}

export interface NodeMetric extends Omit<Metric, "read" | "counter"> {
  readonly of: (node: NodeFigures) => Figure;
}

const section = "A node of a cluster";

function ofMember(read: (member: MemberFigures) => Figure): (node: NodeFigures) => Figure {
  return ({ member }) => (member === undefined ? undefined : read(member));
}

export const NODE_METRICS: readonly NodeMetric[] = [
  {
    name: "situ_node_commits_total",
    type: "counter",
    section,
    help: "Transactions that this node has coordinated and committed.",
    of: ({ committed }) => committed,
  },
  {
    name: "situ_node_aborts_total",
    type: "counter",
    section,
    help: "Transactions that this node has coordinated and aborted. Most of them are retried.",
    worry: "it exceeds a tenth of the commits",
    of: ({ aborted }) => aborted,
  },
  {
    name: "situ_node_prepared",
    type: "gauge",
    section,
    help: "Transactions that hold locks at this node.",
    worry: "it stays above 0 without load: a coordinator does not answer",
    of: ({ prepared }) => prepared,
  },
  {
    name: "situ_node_logged",
    type: "gauge",
    section,
    help: "Records of transactions that this node has logged as a backup, and not applied yet.",
    worry: "it only grows",
    of: ({ logged }) => logged,
  },
  {
    name: "situ_node_open",
    type: "gauge",
    section,
    help: "Transactions that this node coordinates and that are not over at all nodes.",
    worry: "it only grows",
    of: ({ open }) => open,
  },
  {
    name: "situ_node_connections",
    type: "gauge",
    section,
    help: "Connections of clients and other nodes.",
    of: ({ counters }) => counters.connections,
  },
  {
    name: "situ_node_requests_served_total",
    type: "counter",
    section,
    help: "Requests of clients and other nodes.",
    of: ({ counters }) => counters.requestsServed,
  },
  {
    name: "situ_node_requests_sent_total",
    type: "counter",
    section,
    help: "Requests to other nodes.",
    of: ({ counters }) => counters.requestsSent,
  },
  {
    name: "situ_node_requests_failed_total",
    type: "counter",
    section,
    help: "Requests that got no reply (lost), or were refused for another configuration or a limit.",
    label: "reason",
    values: ["lost", "stale", "overloaded"],
    worry: "`overloaded` grows",
    of: ({ counters: { lost, stale, overloaded } }) => ({ lost, stale, overloaded }),
  },
  {
    name: "situ_node_configuration",
    type: "gauge",
    section,
    help: "The number of the configuration that the node has adopted last.",
    worry: "it differs between nodes for long, or grows all the time",
    of: ofMember(({ configurationId }) => configurationId),
  },
  {
    name: "situ_node_members",
    type: "gauge",
    section,
    help: "The nodes of that configuration.",
    worry: "it is less than there should be",
    of: ofMember(({ nodes }) => nodes),
  },
  {
    name: "situ_node_is_manager",
    type: "gauge",
    section,
    help: "1 if this node is the manager of the cluster, else 0.",
    of: ofMember(({ isManager }) => Number(isManager)),
  },
  {
    name: "situ_node_is_serving",
    type: "gauge",
    section,
    help: "1 if this node has its lease and may serve, else 0.",
    worry: "it is 0 for more than a few leases",
    of: ofMember(({ isServing }) => Number(isServing)),
  },
  {
    name: "situ_node_partitions",
    type: "gauge",
    section,
    help: "Partitions that this node has, or copies (filling).",
    label: "role",
    values: ["primary", "backup", "filling"],
    worry: "`filling` stays above 0 and does not change",
    of: ofMember(({ primaries, backups, filling }) => ({
      primary: primaries,
      backup: backups,
      filling,
    })),
  },
  {
    name: "situ_node_suspicions_total",
    type: "counter",
    section,
    help: "How often a lease of another node has run out here, as far as this node looks after it.",
    worry: "it grows while all nodes run: `leaseMs` is too short for these machines",
    of: ofMember(({ suspicions }) => suspicions),
  },
];
