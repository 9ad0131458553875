/**
 * What the protocols may know of the cluster: who this end is, which nodes have which data, and where
 * each phase runs. A view never changes; a change of the configuration replaces it whole. Whoever
 * needs it later keeps the holder, and reads `current` once for each decision, so that one message is
 * not served under two views. cluster/view.ts makes them.
 */

import type { ConfigurationId, NodeId } from "../fabric/fabric.ts";
import type { Placement } from "../tables/partitions.ts";
import type { Protocol } from "./places.ts";

export interface ClusterView {
  /** CLIENT for one who is no node. */
  readonly self: NodeId;
  readonly configurationId: ConfigurationId;
  readonly placement: Placement;
  /** All nodes of the configuration. */
  readonly nodes: readonly NodeId[];
  readonly protocol: Protocol;
  /** The configuration that took in this life of a member; undefined for others. */
  memberSince(node: NodeId): ConfigurationId | undefined;
}

export interface CurrentView {
  readonly current: ClusterView;
}
