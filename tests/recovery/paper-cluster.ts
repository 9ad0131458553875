/**
 * Nodes that have nothing but recovery, on the simulated fabric: transactions are left halfway by
 * hand, nodes die, and the survivors get the next configuration as if a manager had sent it.
 */

import type { SimulatedEndpoint } from "../../simulation/fabric/endpoint.ts";
import { SimulatedFabric } from "../../simulation/fabric/fabric.ts";
import type { NodeId } from "../../src/fabric/fabric.ts";
import { AT_ONCE } from "../../src/protocols/disk.ts";
import { Driver } from "../../src/protocols/driver.ts";
import { coordinatorNumber, Name } from "../../src/protocols/names.ts";
import { Registry } from "../../src/protocols/phases/registry.ts";
import { Head } from "../../src/protocols/records.ts";
import {
  RECOVERY_HANDLERS,
  type RecoveringThread,
} from "../../src/protocols/recovery/phases/table.ts";
import { Recovery } from "../../src/protocols/recovery/recovery.ts";
import { keyOf, type RecoveryView } from "../../src/protocols/recovery/round.ts";
import { PaperReplica } from "./paper-replica.ts";

export interface PaperNode extends RecoveringThread {
  readonly id: NodeId;
  readonly replica: PaperReplica;
  readonly endpoint: SimulatedEndpoint;
  readonly driver: Driver;
  view: RecoveryView;
  isUp: boolean;
}

export interface Copies {
  primary: NodeId;
  backups: NodeId[];
  filling: NodeId[];
  primarySince: number;
  replicasSince: number;
}

export class PaperCluster {
  readonly fabric: SimulatedFabric;
  readonly nodes: PaperNode[];
  readonly partitions: Copies[];
  /** Outcomes that settlers have told, by transaction. */
  readonly told = new Map<string, Set<string>>();
  configurationId = 1;
  #sequence = 0;

  constructor(seed: number, nodes: number, partitions: readonly (readonly NodeId[])[]) {
    this.fabric = new SimulatedFabric({ seed });
    this.partitions = partitions.map(([primary, ...backups]) => ({
      primary,
      backups,
      filling: [],
      primarySince: 1,
      replicasSince: 1,
    }));
    this.nodes = Array.from({ length: nodes }, (_, id) => this.#node(id));
    for (const node of this.nodes) node.view = this.view(node.id);
  }

  /** A transaction of a coordinator, under the configuration in force. */
  head(coordinator: NodeId, partitions: readonly number[]): Head {
    const name = new Name();
    name.coordinator = coordinatorNumber(coordinator, "nic");
    name.sequence = ++this.#sequence;
    return new Head(name, this.configurationId, undefined, [...partitions]);
  }

  get members(): NodeId[] {
    return this.nodes.filter(({ isUp }) => isUp).map(({ id }) => id);
  }

  kill(id: NodeId): void {
    const node = this.nodes[id];
    node.isUp = false;
    this.fabric.crash(id);
    node.driver.close();
  }

  /** A node is started again with what it had, and has the partitions whose last copies it was one of. */
  comeBack(id: NodeId): void {
    const { replica, view } = this.nodes[id];
    this.nodes[id] = this.#node(id, replica);
    this.nodes[id].view = view;
    this.configurationId++;
    for (const copies of this.partitions) {
      const all = [copies.primary, ...copies.backups];
      const isLost = all.every((node) => node === id || !this.nodes[node].isUp);
      if (!isLost || !all.includes(id)) continue;
      const since = this.configurationId;
      Object.assign(copies, {
        primary: id,
        backups: [],
        primarySince: since,
        replicasSince: since,
      });
    }
  }

  /** The next configuration, without those who have died; `fill` says who copies what they had. */
  reconfigure(fill: (partition: number, copies: readonly NodeId[]) => NodeId[] = () => []): void {
    const { members } = this;
    this.configurationId++;
    for (const [partition, copies] of this.partitions.entries()) {
      const isMember = (node: NodeId): boolean => members.includes(node);
      const all = [copies.primary, ...copies.backups];
      const left = all.filter(isMember);
      const filling = copies.filling.filter(isMember);
      const isWhole = left.length === all.length && filling.length === copies.filling.length;
      // A lost one keeps the names of its last copies.
      if (left.length === 0) continue;
      if (isWhole) continue;
      if (left[0] !== copies.primary) copies.primarySince = this.configurationId;
      copies.replicasSince = this.configurationId;
      copies.primary = left[0];
      copies.backups = left.slice(1);
      copies.filling = [...filling, ...fill(partition, [...left, ...filling])];
    }
  }

  /** All survivors adopt it, one after the other; then they are told that all have. */
  adopt(pauseUs: () => number = () => 0): void {
    const { configurationId } = this;
    const isInForce = (node: PaperNode): boolean =>
      node.isUp && this.configurationId === configurationId;
    let lastUs = this.fabric.nowUs;
    const up = this.nodes.filter(({ isUp }) => isUp);
    const views = up.map(({ id }) => this.view(id));
    for (const node of up) {
      const atUs = this.fabric.nowUs + pauseUs();
      lastUs = Math.max(lastUs, atUs);
      this.fabric.at(atUs, () => {
        if (isInForce(node)) node.endpoint.configurationId = configurationId;
      });
    }
    for (const [i, node] of up.entries()) {
      this.fabric.at(lastUs + 1 + pauseUs(), () => {
        if (!isInForce(node)) return;
        const previous = node.view;
        node.view = views[i];
        node.recovery.recover(node.view, previous);
      });
    }
  }

  view(self: NodeId): RecoveryView {
    const { configurationId, members } = this;
    const partitions = this.partitions.map((copies) => ({ ...copies }));
    return {
      self,
      configurationId,
      nodes: members,
      memberSince: (node) => (members.includes(node) ? 1 : undefined),
      placement: {
        partitions: partitions.length,
        primaryOf: (partition) => partitions[partition].primary,
        backupsOf: (partition) => [
          ...partitions[partition].backups,
          ...partitions[partition].filling,
        ],
        copiesOf: (partition) => [partitions[partition].primary, ...partitions[partition].backups],
        fillingOf: (partition) => partitions[partition].filling,
        primarySince: (partition) => partitions[partition].primarySince,
        replicasSince: (partition) => partitions[partition].replicasSince,
      },
    };
  }

  async close(): Promise<void> {
    for (const { endpoint } of this.nodes) await endpoint.close();
  }

  #node(id: NodeId, replica = new PaperReplica()): PaperNode {
    const handlers = new Registry<RecoveringThread>(RECOVERY_HANDLERS);
    const endpoint = this.fabric.endpoint({
      self: id,
      configurationId: 1,
      service: (incoming) => handlers.serve(node, incoming),
    });
    const driver = new Driver(endpoint, (incoming) => handlers.serve(node, incoming));
    const recovery = new Recovery(driver, replica, ({ name }, outcome) => {
      const told = this.told.get(keyOf(name)) ?? new Set();
      this.told.set(keyOf(name), told.add(outcome));
    });
    const node: PaperNode = {
      id,
      replica,
      endpoint,
      driver,
      recovery,
      disk: AT_ONCE,
      view: undefined as unknown as RecoveryView,
      isUp: true,
    };
    return node;
  }
}
