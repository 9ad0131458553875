/**
 * What a NIC's program is given: how it reaches other NICs, its host's memory, and its host's program. The simulation
 * implements it on a bus with delays or a model of the hardware (simulation/xenic/), nodes on sockets and memory that two threads share
 * (node/xenic/xenic-nic.ts). All calls return at once.
 */

import type { NodeId, Timer } from "../../fabric/fabric.ts";
import type { XenicMessage } from "./message.ts";

export interface NicPorts {
  readonly self: NodeId;
  /** One way. What goes to the own node comes back without the network. */
  post(to: NodeId, message: XenicMessage): void;
  /** A DMA read of so many words of host memory. Memory is looked at when `done` is called, not before. */
  read(words: number, done: () => void): void;
  /** A DMA write of so many words. They are in host memory when `done` is called. */
  write(words: number, done: () => void): void;
  /** Over the bus to the host's program. */
  toHost(words: number, run: () => void): void;
  /** And from there. */
  toNic(words: number, run: () => void): void;
  /** Later, unless it is cancelled. */
  after(us: number, run: () => void): Timer;
}

/** Who has which copy of which shard. It holds for one configuration. */
export interface Placement {
  readonly configurationId: number;
  /** The shard of a row. */
  shardOf(table: number, key: number): number;
  primaryOf(shard: number): NodeId;
  backupsOf(shard: number): readonly NodeId[];
}

/** Techniques of the paper, each of which can be left out (§5.7). */
export interface Switches {
  /** EXECUTE locks and reads; else rows are read first and then locked, by messages of their own. */
  readonly combines: boolean;
  /** Procedures that may run at a NIC do. */
  readonly runsAtNic: boolean;
  /** Transactions of one or two shards are executed at the remote primary, and backups answer the coordinator. */
  readonly hops: boolean;
  /** Local reads ask their NIC what the host's table does not show yet; the paper's do not. */
  readonly asksNic: boolean;
  /** What was told to be committed can be proved after as many deaths as there are backups. */
  readonly provesAll: boolean;
}

export const ALL_ON: Switches = {
  combines: true,
  runsAtNic: true,
  hops: true,
  asksNic: true,
  provesAll: true,
};
