/** Some nodes with leases, their clocks, and the messages between them, delivered by hand. */

import type { Configuration } from "../../src/cluster/configuration.ts";
import { configurationOf } from "../../src/cluster/configuration.ts";
import { type LeaseMessage, Leases } from "../../src/cluster/membership/leases.ts";

export const LEASE_MS = 1_000;

export interface Sent {
  readonly to: number;
  readonly message: LeaseMessage;
}

/** Lives are named after the node and a number: "1.0" is the first of node 1. */
export function configurationWith(
  configurationId: number,
  instances: readonly string[],
  manager = 0,
): Configuration {
  const nodes = instances.map((instance) => {
    const id = Number(instance.split(".")[0]);
    return { id, host: "test", port: id, instance };
  });
  return configurationOf({ configurationId, nodes, manager, leaseMs: LEASE_MS }, "the test");
}

export class LeaseGroup {
  nowMs = 5_000;
  readonly nodes = new Map<string, Leases>();
  readonly sent: Sent[] = [];
  /** Messages for which it says false are lost. */
  reaches: (from: number, to: number) => boolean = () => true;

  constructor(configuration: Configuration) {
    for (const { instance } of configuration.nodes) this.start(instance!, configuration);
  }

  start(instance: string, configuration: Configuration, earlierLeaseMs = 0): Leases {
    const self = Number(instance.split(".")[0]);
    const nowMs = (): number => this.nowMs;
    const node = new Leases({
      self,
      instance,
      clock: { nowMs, atLeastMs: nowMs },
      earlierLeaseMs,
      send: (to, message) => this.sent.push({ to, message }),
    });
    this.nodes.set(instance, node);
    node.adopt(configuration);
    return node;
  }

  node(instance: string): Leases {
    return this.nodes.get(instance)!;
  }

  hasLease(instance: string): boolean {
    return this.nowMs < this.node(instance).deadlineMs;
  }

  /** All that was sent arrives, and what that leads to. */
  deliver(): void {
    for (let next = this.sent.shift(); next !== undefined; next = this.sent.shift()) {
      if (!this.reaches(next.message.from, next.to)) continue;
      for (const node of this.nodes.values()) if (node.self === next.to) node.receive(next.message);
    }
  }

  /** Time passes, and leases are renewed as far as messages arrive. */
  pass(ms: number): void {
    const end = this.nowMs + ms;
    while (this.nowMs < end) {
      this.nowMs = Math.min(end, this.nowMs + LEASE_MS / 10);
      for (const node of this.nodes.values()) node.tick();
      this.deliver();
    }
  }
}
