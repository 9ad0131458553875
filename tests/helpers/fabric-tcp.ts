/** Endpoints over TCP on this machine, with ports of their own. */

import { CLIENT, type NodeId } from "../../src/fabric/fabric.ts";
import { openTcp, type TcpEndpoint } from "../../src/fabric/tcp/endpoint.ts";
import type { NodeAddress, TcpOptions } from "../../src/fabric/tcp/tcp-options.ts";
import { nowMs, sleep, turn } from "../../src/runtime/clock.ts";
import type { FabricMaker, FabricPlan, TestFabric } from "./fabric-maker.ts";

export const CLUSTER = "test";
const ANY_PORT: NodeAddress = { host: "127.0.0.1", port: 0 };
const PATIENCE_MS = 20_000;

export async function openNode(
  self: NodeId,
  options: Partial<TcpOptions> = {},
): Promise<TcpEndpoint> {
  const fixed = { self, nodes: new Map(), configurationId: 1, cluster: CLUSTER, listen: ANY_PORT };
  return openTcp({ ...fixed, ...options });
}

/** A client of the nodes given, by their places in the list. */
export function openClient(
  nodes: readonly TcpEndpoint[],
  options: Partial<TcpOptions> = {},
): Promise<TcpEndpoint> {
  const fixed = { self: CLIENT, nodes: addressesOf(nodes), configurationId: 1, cluster: CLUSTER };
  return openTcp({ ...fixed, ...options });
}

export function addressesOf(nodes: readonly TcpEndpoint[]): Map<NodeId, NodeAddress> {
  return new Map(
    nodes.map((node) => [node.self, { host: "127.0.0.1", port: node.address().port }]),
  );
}

/** Turns the event loop until something has happened. */
export async function eventually(done: () => boolean): Promise<void> {
  const deadlineMs = nowMs() + PATIENCE_MS;
  for (let turns = 0; !done(); turns++) {
    if (nowMs() > deadlineMs) throw new Error(`it does not happen: ${done}`);
    if (turns < 100) await turn();
    else await sleep(2);
  }
}

export function tcpMaker(name: string, common: Partial<TcpOptions> = {}): FabricMaker {
  return {
    name,
    async make(plan: FabricPlan): Promise<TestFabric> {
      const nodes: TcpEndpoint[] = [];
      for (const [id, node] of plan.nodes.entries()) {
        nodes.push(await openNode(id, { ...common, ...node }));
      }
      for (const node of nodes) node.setNodes(addressesOf(nodes));
      const clients: TcpEndpoint[] = [];
      const configurationId = plan.clientConfigurationId ?? 1;
      for (let i = 0; i < (plan.clients ?? 1); i++) {
        clients.push(await openClient(nodes, { ...common, configurationId }));
      }
      return {
        nodes,
        clients,
        until: eventually,
        async close() {
          await Promise.all([...clients, ...nodes].map((endpoint) => endpoint.close()));
        },
      };
    },
  };
}
