/**
 * Nodes that go on without those who have died. The simulation stands in for the manager: it gives all that are
 * up the next configuration, as the planner has it (src/cluster/planning), one after the other, and when all have
 * adopted it tells them so. They then settle what is in doubt (src/protocols/recovery).
 */

import type { Configuration } from "../../src/cluster/configuration.ts";
import { ringReplicas } from "../../src/cluster/placement.ts";
import { afterFailures, type PlacedConfiguration } from "../../src/cluster/planning/planning.ts";
import { View } from "../../src/cluster/view.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import type { SimulatedFabric } from "../fabric/fabric.ts";
import type { SimulatedNode } from "./sim-node.ts";

export class RecoveringNodes {
  configuration: PlacedConfiguration;
  readonly #fabric: SimulatedFabric;
  readonly #nodes: readonly SimulatedNode[];
  /** How long until a node hears of something. */
  readonly #delayUs: () => number;

  constructor(
    fabric: SimulatedFabric,
    nodes: readonly SimulatedNode[],
    configuration: Configuration,
    delayUs: () => number = () => 0,
  ) {
    this.#fabric = fabric;
    this.#nodes = nodes;
    this.#delayUs = delayUs;
    this.configuration = { ...configuration, placement: ringReplicas(configuration) };
  }

  get up(): SimulatedNode[] {
    return this.#nodes.filter(({ isUp }) => isUp);
  }

  isBlocked(node: NodeId, partition: number): boolean {
    return this.#nodes[node].service.isBlocked(partition);
  }

  copiesOf(partition: number): NodeId[] {
    const { primary, backups } = this.configuration.placement[partition];
    return [primary, ...backups];
  }

  /** All that are up get a configuration without the others; `committed` is called when all have it. */
  recover(committed: () => void = () => {}): void {
    const members = this.up;
    const survivors = new Set(members.map(({ id }) => id));
    this.configuration = afterFailures(this.configuration, survivors, members[0].id);
    const { configuration } = this;
    let left = members.length;
    for (const node of members) {
      this.#later(this.#delayUs(), () => {
        // A member that dies before it has adopted the configuration takes another one to go on.
        if (!node.isUp) return;
        adopt(node, configuration);
        if (--left === 0) this.#commit(members, configuration, committed);
      });
    }
  }

  #commit(
    members: readonly SimulatedNode[],
    { configurationId }: PlacedConfiguration,
    committed: () => void,
  ): void {
    for (const node of members) {
      this.#later(this.#delayUs() + 1, () => {
        const { service } = node;
        if (node.isUp && service.view.current.configurationId === configurationId) {
          service.recover();
        }
      });
    }
    this.#later(1, committed);
  }

  #later(us: number, run: () => void): void {
    if (us === 0) run();
    else this.#fabric.at(this.#fabric.nowUs + us, run);
  }
}

function adopt({ id, service }: SimulatedNode, configuration: Configuration): void {
  const { instance, protocol } = service.view.current;
  service.adopt(new View({ self: id, instance, configuration, protocol: protocol.name }));
}
