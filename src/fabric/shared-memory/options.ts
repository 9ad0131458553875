import type { StoreMemory } from "../../memory/region.ts";
import type { NodeId, Service } from "../fabric.ts";

/** Where a node of this machine is. */
export interface NodePlace {
  /** Of its message rings: a folder of its own, best in memory (/dev/shm). */
  readonly folder: string;
  /** Of its store's memory. With it verbs are done here, directly; without it they are messages. */
  readonly memoryFolder?: string;
}

export interface SharedMemoryOptions {
  readonly self: NodeId;
  readonly nodes: ReadonlyMap<NodeId, NodePlace>;
  readonly epoch: number;
  /** For a node that serves: its own folder. */
  readonly listen?: { readonly folder: string };
  readonly memory?: StoreMemory;
  readonly service?: Service;
  /** Ends that may send to this node at once; MAX_RING_SLOTS if not given. */
  readonly maxConnections?: number;
  readonly progressTimeoutMs?: number;
  readonly onConnectionClosed?: (connection: number) => void;
}
