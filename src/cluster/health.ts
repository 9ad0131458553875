/**
 * How a cluster is, in one sentence for whoever has to decide something: what works, how many more nodes
 * may fail, and what to do. Made from a configuration and from who answers; nothing else is known here.
 */

import type { NodeId } from "../fabric/fabric.ts";
import { counted } from "../runtime/units.ts";
import type { Configuration } from "./configuration.ts";
import { majorityOf } from "./membership/succession.ts";
import { ringReplicas } from "./placement.ts";
import { lostPartitions } from "./planning/planning.ts";
import { hasNothing, type Replicas } from "./replicas.ts";

export type HealthState = "healthy" | "restoring" | "degraded" | "unavailable" | "lost";

export interface ClusterHealth {
  readonly state: HealthState;
  readonly sentence: string;
  /** So many more nodes may fail, whichever they are, and no row is lost. */
  readonly mayFail: number;
  /** So many of these may fail at once, and the others go on: a majority of the nodes has to be left. */
  readonly mayFailAtOnce: number;
  /** Nodes that do not answer. */
  readonly silent: readonly NodeId[];
  /** Partitions with fewer copies at nodes that answer than there should be. */
  readonly lacking: readonly number[];
  /** Partitions that are being copied. */
  readonly filling: readonly number[];
  /** Partitions whose primary does not answer. */
  readonly unserved: readonly number[];
  /** Partitions that no node of the configuration has; and the nodes that had them last. */
  readonly lost: readonly number[];
  readonly lostAt: readonly NodeId[];
  /** Nodes that are being drained, and how many partitions they still have. */
  readonly draining: readonly { readonly node: NodeId; readonly partitions: number }[];
  /** Nodes that are the primary of nothing yet, and will be. */
  readonly idle: readonly NodeId[];
}

export function healthOf(
  configuration: Configuration,
  answering: ReadonlySet<NodeId>,
): ClusterHealth {
  const { nodes, backups, partitions, manager } = configuration;
  const placement = configuration.placement ?? ringReplicas(configuration);
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const copies = placement.map(
    ({ primary, backups: others }) => [primary, ...others].filter((id) => answering.has(id)).length,
  );
  const mayFail = Math.max(0, Math.min(...copies, backups + 1) - 1);
  const silent = nodes.map(({ id }) => id).filter((id) => !answering.has(id));
  const spare = nodes.length - silent.length - majorityOf(nodes.length);
  const lost = lostPartitions({ ...configuration, placement });
  const hadLost = lost.flatMap((each) => [placement[each].primary, ...placement[each].backups]);
  const found = {
    mayFail,
    // Without a manager, nobody takes the place of a node.
    mayFailAtOnce: manager === undefined ? 0 : Math.max(0, Math.min(mayFail, spare)),
    silent,
    lacking: all.filter((partition) => copies[partition] <= backups),
    filling: all.filter((partition) => placement[partition].filling.length > 0),
    unserved: all.filter((partition) => !answering.has(placement[partition].primary)),
    lost,
    lostAt: [...new Set(hadLost)].sort((a, b) => a - b),
    draining: nodes
      .filter(({ draining }) => draining === true)
      .map(({ id }) => {
        const has = placement.filter((each) => !hasNothing([each], id));
        return { node: id, partitions: has.length };
      }),
    // Where nodes are fixed, or there are more of them than partitions, that stays so.
    idle: nodes
      .filter(({ draining }) => draining !== true)
      .map(({ id }) => id)
      .filter((id) => manager !== undefined && partitions >= nodes.length && isIdle(placement, id)),
  };
  const { state, what } = judged(found, configuration);
  return { state, sentence: [`${state}: ${what}`, ...besides(found)].join("; "), ...found };
}

type Found = Omit<ClusterHealth, "state" | "sentence">;

function judged(
  found: Found,
  { nodes, backups, partitions, manager }: Configuration,
): { state: HealthState; what: string } {
  const { mayFail, silent, lacking, filling, unserved, lost, lostAt } = found;
  const of = (list: readonly unknown[]): string => `${list.length} of ${partitions} partitions`;
  const who = named(silent);
  if (lost.length > 0) {
    const which = `all copies of ${of(lost)} are gone (${listed(lost)})`;
    return { state: "lost", what: `${which}; start ${named(lostAt)} again, with its store` };
  }
  const there = nodes.length - silent.length;
  if (manager !== undefined && there < majorityOf(nodes.length)) {
    const need = `${there} of ${nodes.length} nodes answer, and ${majorityOf(nodes.length)} are needed`;
    return { state: "unavailable", what: `${need}; start ${who} again` };
  }
  if (unserved.length > 0) {
    const what = `${who} ${silent.length === 1 ? "does" : "do"} not answer, and ${of(unserved)}`;
    const then =
      manager === undefined ? "start it again" : "another node takes over, or start it again";
    return { state: "unavailable", what: `${what} cannot be used; ${then}` };
  }
  if (lacking.length === 0)
    return { state: "healthy", what: healthy(found, nodes.length, manager) };
  const now = `${of(lacking)} have fewer than ${counted(backups + 1, "copy", "copies")}`;
  const more = mayFail === 0 ? "no node may fail" : another(found);
  if (filling.length >= lacking.length && silent.length === 0) {
    return { state: "restoring", what: `${now} and are being copied; until then ${more}` };
  }
  const then = silent.length > 0 ? `start ${who} again` : "add a node";
  return { state: "degraded", what: `${now}, and ${more}; ${then}` };
}

function healthy(
  { mayFail, mayFailAtOnce, silent }: Found,
  nodes: number,
  manager: NodeId | undefined,
): string {
  if (mayFail === 0) return `all ${nodes} nodes answer; each row has one copy, so no node may fail`;
  if (manager === undefined) {
    const fixed = "the nodes are fixed: when one stops, its rows are unavailable until it returns";
    const what = `any ${mayFail} of ${nodes} nodes may fail`;
    return silent.length === 0 ? `${what}; ${fixed}` : what;
  }
  if (mayFailAtOnce === mayFail) return `any ${mayFail} of ${nodes} nodes may fail`;
  if (mayFailAtOnce === 0) {
    const stops = "no row is lost, and the others wait until it is back";
    return `all ${nodes} nodes answer; if one fails, ${stops}. With three nodes they could go on`;
  }
  const most = `if ${mayFail} do at once, no row is lost, and the others wait for one of them`;
  return `any ${mayFailAtOnce} of ${nodes} nodes may fail; ${most}`;
}

function another({ mayFail, mayFailAtOnce }: Found): string {
  if (mayFailAtOnce > 0) return `${counted(mayFailAtOnce, "more node")} may fail`;
  const stops = "no row is lost, and the cluster waits until it is back";
  return mayFail > 0 ? `if another node fails, ${stops}` : "no node may fail";
}

/** What is going on, and what operators can do next. */
function besides({ lacking, filling, draining, idle }: Found): string[] {
  const moving = filling.length - lacking.length;
  return [
    ...(moving > 0 ? [`${counted(moving, "partition")} ${moving === 1 ? "moves" : "move"}`] : []),
    ...(idle.length > 0
      ? [`${named(idle)} ${idle.length === 1 ? "gets its" : "get their"} share`]
      : []),
    ...draining.map(({ node, partitions }) =>
      partitions > 0
        ? `node ${node} is being drained, with ${counted(partitions, "partition")} left`
        : `node ${node} is drained: remove it with situ cluster remove ${node}`,
    ),
  ];
}

function isIdle(placement: readonly Replicas[], node: NodeId): boolean {
  return placement.every(({ primary }) => primary !== node);
}

function named(nodes: readonly NodeId[]): string {
  return nodes.length === 1 ? `node ${nodes[0]}` : `nodes ${nodes.join(", ")}`;
}

/** So many numbers stand in a sentence; `--json` has all. */
const LISTED = 12;

function listed(partitions: readonly number[]): string {
  const more = partitions.length > LISTED ? ", …" : "";
  return `${partitions.slice(0, LISTED).join(", ")}${more}`;
}
