/**
 * Nodes that fill and clear partitions. The simulation stands in for the manager: it gives all that are up the next
 * configuration, as the planner has it (src/cluster/planning), and has what nodes have filled count as copies
 * when it is told to.
 */

import type { Configuration } from "../../src/cluster/configuration.ts";
import {
  afterFailures,
  type Filled,
  initialPlacement,
  nextStep,
  type PlacedConfiguration,
  withFilled,
  withNode,
} from "../../src/cluster/planning/planning.ts";
import { View } from "../../src/cluster/view.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { Copying } from "../../src/protocols/copying/copying.ts";
import { COPYING_HANDLERS } from "../../src/protocols/copying/phases.ts";
import { CopySource } from "../../src/protocols/copying/source.ts";
import {
  RECOVERY_HANDLERS,
  type RecoveringThread,
} from "../../src/protocols/recovery/phases/table.ts";
import { Recovery } from "../../src/protocols/recovery/recovery.ts";
import { StoreReplica } from "../../src/protocols/recovery/store-replica.ts";
import type { SimulatedNode } from "../cluster/sim-node.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";

/** What a life of a node has beside its service. */
interface Life {
  readonly copying: Copying;
  readonly recovering: RecoveringThread;
}

export class CopyingNodes {
  configuration: PlacedConfiguration;
  readonly #fabric: SimulatedFabric;
  readonly #nodes: readonly SimulatedNode[];
  readonly #lives = new Map<NodeId, Life>();
  #filled: Filled[] = [];

  /** The configuration's nodes are the first ones of these; the others can join. */
  constructor(
    fabric: SimulatedFabric,
    nodes: readonly SimulatedNode[],
    configuration: Configuration,
  ) {
    this.#fabric = fabric;
    this.#nodes = nodes;
    const { nodes: members, partitions, backups } = configuration;
    const placement = initialPlacement(members, partitions, backups);
    this.configuration = { ...configuration, placement };
    for (const node of nodes) this.begin(node);
    this.take(this.configuration);
  }

  /** The members that are up. */
  get up(): SimulatedNode[] {
    const members = new Set(this.configuration.nodes.map(({ id }) => id));
    return this.#nodes.filter(({ id, isUp }) => isUp && members.has(id));
  }

  get isFilling(): boolean {
    return this.configuration.placement.some(({ filling }) => filling.length > 0);
  }

  copyingAt(node: NodeId): Copying {
    return this.#lives.get(node)!.copying;
  }

  /** A life of a node begins. */
  begin(node: SimulatedNode): void {
    const { service, id, tables, executor } = node;
    const { participant, backup, driver, disk, view } = service;
    const { clock } = driver.endpoint;
    const replica = new StoreReplica(participant, backup!);
    const recovering = { replica, recovery: new Recovery(driver, replica, () => {}), disk };
    for (const { kind, serve } of RECOVERY_HANDLERS) {
      service.handle({ kind, serve: (_, incoming) => serve(recovering, incoming) });
    }
    const hasReplicated = (): boolean => recovering.recovery.hasReplicated;
    const source = new CopySource({
      view,
      executor,
      tables,
      backup: backup!,
      clock,
      replica,
      hasReplicated,
    });
    for (const { kind, serve } of COPYING_HANDLERS) {
      service.handle({ kind, serve: (_, incoming) => serve(source, incoming) });
    }
    const copying = new Copying({
      driver,
      executor,
      tables,
      backup: backup!,
      disk,
      replica,
      filled: (_, partitions) => {
        for (const partition of partitions) this.#filled.push({ partition, node: id });
      },
    });
    this.#lives.set(id, { copying, recovering });
  }

  /** A node dies. Others go on when `fail` says so. */
  crash(node: SimulatedNode): void {
    this.#lives.get(node.id)!.copying.stop();
    node.crash();
  }

  /** All that are down leave. */
  fail(): void {
    const survivors = new Set(this.up.map(({ id }) => id));
    this.take(afterFailures(this.configuration, survivors, [...survivors][0]));
  }

  /** A node joins that is up. */
  join(id: NodeId): void {
    this.take(withNode(this.configuration, { id, host: "joins", port: id }, false));
  }

  /** Towards a better placement; false if there is none. */
  balance(): boolean {
    const next = nextStep(this.configuration);
    if (next !== undefined) this.take(next);
    return next !== undefined;
  }

  /** What was filled since the last configuration counts as copies; false if there is nothing. */
  count(): boolean {
    const { placement } = this.configuration;
    const filled = this.#filled.filter(({ partition, node }) =>
      placement[partition].filling.includes(node),
    );
    if (filled.length > 0) this.take(withFilled(this.configuration, filled));
    return filled.length > 0;
  }

  /** All that are up get a configuration. */
  take(configuration: PlacedConfiguration): void {
    this.configuration = configuration;
    this.#filled = [];
    for (const node of this.up) {
      const view = node.service.view as { current: View };
      const previous = view.current;
      const { instance, protocol } = previous;
      view.current = new View({ self: node.id, instance, configuration, protocol: protocol.name });
      node.endpoint.configurationId = configuration.configurationId;
      this.#fabric.at(this.#fabric.nowUs + 1, () => {
        if (!node.isUp || this.configuration !== configuration) return;
        const { copying, recovering } = this.#lives.get(node.id)!;
        copying.adopt(view.current);
        recovering.recovery.recover(view.current, previous);
      });
    }
  }
}
