/**
 * Nodes that go on without those who have died. The simulation stands in for the manager: it gives all that are
 * up the next configuration, as the planner has it (src/cluster/planning), and tells them that all have it. They
 * then settle what is in doubt (src/protocols/recovery).
 */

import type { Configuration } from "../../src/cluster/configuration.ts";
import { ringReplicas } from "../../src/cluster/placement.ts";
import { afterFailures, type PlacedConfiguration } from "../../src/cluster/planning/planning.ts";
import { View } from "../../src/cluster/view.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import {
  RECOVERY_PHASES,
  type RecoveringThread,
} from "../../src/protocols/recovery/phases/table.ts";
import { Recovery, type Settled } from "../../src/protocols/recovery/recovery.ts";
import { StoreReplica } from "../../src/protocols/recovery/store-replica.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import type { SimulatedNode } from "./sim-node.ts";

export class RecoveringNodes {
  configuration: PlacedConfiguration;
  readonly #fabric: SimulatedFabric;
  readonly #nodes: readonly SimulatedNode[];
  readonly #threads: readonly RecoveringThread[];

  /** `settled` is told the outcomes that nodes come to. */
  constructor(
    fabric: SimulatedFabric,
    nodes: readonly SimulatedNode[],
    configuration: Configuration,
    settled: Settled = () => {},
  ) {
    this.#fabric = fabric;
    this.#nodes = nodes;
    this.configuration = { ...configuration, placement: ringReplicas(configuration) };
    this.#threads = nodes.map(({ service }) => {
      const { participant, backup, driver, disk } = service;
      const replica = new StoreReplica(participant, backup!);
      const thread = { replica, recovery: new Recovery(driver, replica, settled), disk };
      for (const { serve, ...handler } of RECOVERY_PHASES) {
        service.handle({ ...handler, serve: (_, incoming) => serve(thread, incoming) });
      }
      return thread;
    });
  }

  get up(): SimulatedNode[] {
    return this.#nodes.filter(({ isUp }) => isUp);
  }

  isBlocked(node: NodeId, partition: number): boolean {
    return this.#threads[node].recovery.isBlocked(partition);
  }

  copiesOf(partition: number): NodeId[] {
    const { primary, backups } = this.configuration.placement[partition];
    return [primary, ...backups];
  }

  /** All that are up get a configuration without the others. */
  recover(): void {
    const survivors = new Set(this.up.map(({ id }) => id));
    this.configuration = afterFailures(this.configuration, survivors, this.up[0].id);
    const { configuration } = this;
    for (const node of this.up) {
      const view = node.service.view as { current: View };
      const previous = view.current;
      const { instance, protocol } = previous;
      view.current = new View({
        self: node.id,
        instance,
        configuration,
        protocol: protocol.name,
      });
      node.endpoint.configurationId = configuration.configurationId;
      this.#fabric.at(this.#fabric.nowUs + 1, () => {
        if (node.isUp) this.#threads[node.id].recovery.recover(view.current, previous);
      });
    }
  }
}
