/**
 * How a cluster is, in one sentence for whoever has to decide something: what works, how many more nodes
 * may fail, and what to do. Made from a configuration and from who answers; nothing else is known here.
 */

import type { NodeId } from "../fabric/fabric.ts";
import { counted } from "../runtime/units.ts";
import type { Configuration } from "./configuration.ts";
import { ringReplicas } from "./placement.ts";
import { lostPartitions } from "./planning/planning.ts";

export type HealthState = "healthy" | "restoring" | "degraded" | "unavailable" | "lost";

export interface ClusterHealth {
  readonly state: HealthState;
  readonly sentence: string;
  /** So many more nodes may fail, whichever they are, and no row is lost. */
  readonly mayFail: number;
  /** Nodes that do not answer. */
  readonly silent: readonly NodeId[];
  /** Partitions with fewer copies at nodes that answer than there should be. */
  readonly lacking: readonly number[];
  /** Partitions that are being copied. */
  readonly filling: readonly number[];
  /** Partitions whose primary does not answer. */
  readonly unserved: readonly number[];
  /** Partitions that no node of the configuration has. */
  readonly lost: readonly number[];
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
  const found = {
    mayFail: Math.max(0, Math.min(...copies, backups + 1) - 1),
    silent: nodes.map(({ id }) => id).filter((id) => !answering.has(id)),
    lacking: all.filter((partition) => copies[partition] <= backups),
    filling: all.filter((partition) => placement[partition].filling.length > 0),
    unserved: all.filter((partition) => !answering.has(placement[partition].primary)),
    lost: lostPartitions({ ...configuration, placement }),
  };
  const { state, what } = judged(found, configuration);
  // Without a manager, nobody takes the place of a node.
  const isFixed = manager === undefined;
  const fixed = "the nodes are fixed: when one stops, its rows are unavailable until it returns";
  const sentence = `${state}: ${what}${isFixed && found.silent.length === 0 ? `; ${fixed}` : ""}`;
  return { state, sentence, ...found };
}

type Found = Omit<ClusterHealth, "state" | "sentence">;

function judged(
  { mayFail, silent, lacking, filling, unserved, lost }: Found,
  { nodes, backups, partitions, manager }: Configuration,
): { state: HealthState; what: string } {
  const of = (list: readonly unknown[]): string => `${list.length} of ${partitions} partitions`;
  const who = silent.length === 1 ? `node ${silent[0]}` : `nodes ${silent.join(", ")}`;
  if (lost.length > 0) {
    const what = `all copies of ${of(lost)} are gone; start one of the nodes that had them, with its store`;
    return { state: "lost", what };
  }
  if (unserved.length > 0) {
    const what = `${who} ${silent.length === 1 ? "does" : "do"} not answer, and ${of(unserved)}`;
    const then =
      manager === undefined ? "start it again" : "another node takes over, or start it again";
    return { state: "unavailable", what: `${what} cannot be used; ${then}` };
  }
  if (lacking.length === 0) {
    const what =
      mayFail === 0
        ? `all ${nodes.length} nodes answer; each row has one copy, so no node may fail`
        : `any ${mayFail} of ${nodes.length} nodes may fail`;
    return { state: "healthy", what };
  }
  const now = `${of(lacking)} have fewer than ${counted(backups + 1, "copy", "copies")}`;
  const more = mayFail === 0 ? "no node may fail" : `${counted(mayFail, "more node")} may fail`;
  if (filling.length >= lacking.length && silent.length === 0) {
    return { state: "restoring", what: `${now} and are being copied; until then ${more}` };
  }
  const then = silent.length > 0 ? `start ${who} again` : "add a node";
  return { state: "degraded", what: `${now}, and ${more}; ${then}` };
}
