/**
 * The view that a node or a client has of its cluster: who it is, the configuration, where data lies
 * under it, and where each phase of the protocol runs. It is made once and never changes; a later
 * configuration comes as another view that replaces it whole. So whoever decides something by a
 * view decides all of it by one configuration.
 */

import { CLIENT, type ConfigurationId, type NodeId } from "../fabric/fabric.ts";
import type { ClusterView, CurrentView } from "../protocols/cluster-view.ts";
import { type Places, type Protocol, protocolOf, type Thread } from "../protocols/places.ts";
import type { Placement } from "../tables/partitions.ts";
import type { Configuration } from "./configuration.ts";
import { ClusterPlacement } from "./placement.ts";

export interface ViewOptions {
  /** CLIENT for one who is no node. */
  readonly self: NodeId;
  /** Names this life of the node, or of the client: another one after each start. */
  readonly instance: string;
  readonly configuration: Configuration;
  readonly protocol: string;
  /** Which thread of the nodes serves their messages. */
  readonly thread?: Thread;
  /** Phases that are elsewhere. */
  readonly places?: Partial<Places> | undefined;
}

export class View implements ClusterView {
  readonly self: NodeId;
  readonly instance: string;
  readonly configuration: Configuration;
  readonly placement: ClusterPlacement;
  readonly protocol: Protocol;
  /** All nodes of the configuration. */
  readonly nodes: readonly NodeId[];

  constructor(options: ViewOptions) {
    const { self, instance, configuration, protocol, thread = "nic", places } = options;
    this.self = self;
    this.instance = instance;
    this.configuration = configuration;
    this.placement = new ClusterPlacement(configuration);
    this.protocol = protocolOf(protocol, thread, places);
    this.nodes = configuration.nodes.map(({ id }) => id);
  }

  get configurationId(): ConfigurationId {
    return this.configuration.configurationId;
  }

  /** Whether this life of the node is a member. */
  get isMember(): boolean {
    const { self, instance } = this;
    return this.configuration.nodes.some((node) => node.id === self && node.instance === instance);
  }

  /** The configuration that took in this life of a node; undefined for one that is no member. */
  memberSince(node: NodeId): ConfigurationId | undefined {
    const found = this.configuration.nodes.find(({ id }) => id === node);
    return found && (found.since ?? 1);
  }
}

/** What holds the view that counts now. */
export interface ViewHolder extends CurrentView {
  current: View;
}

/** Whether a node of one view is in a later one, and has not been started anew since. */
export function livesOn(node: NodeId, before: View, now: View): boolean {
  const since = now.memberSince(node);
  return since !== undefined && since <= before.configurationId;
}

/** The view of a client, which is no node. */
export function clientView(id: string, configuration: Configuration, protocol: string): ViewHolder {
  return { current: new View({ self: CLIENT, instance: id, configuration, protocol }) };
}

/** Where data lies under whatever view is the current one. */
export function currentPlacement(view: CurrentView): Placement {
  return {
    get partitions() {
      return view.current.placement.partitions;
    },
    primaryOf: (partition) => view.current.placement.primaryOf(partition),
    backupsOf: (partition) => view.current.placement.backupsOf(partition),
    copiesOf: (partition) => view.current.placement.copiesOf(partition),
    fillingOf: (partition) => view.current.placement.fillingOf(partition),
    primarySince: (partition) => view.current.placement.primarySince(partition),
    replicasSince: (partition) => view.current.placement.replicasSince(partition),
  };
}
