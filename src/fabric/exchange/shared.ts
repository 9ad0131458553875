/** What all connections of an endpoint share, over whichever fabric. */

import type { ConfigurationId, FabricCounters, NodeId } from "../fabric.ts";
import type { Scratch } from "../frames.ts";
import type { SpareFrames } from "./spare-frames.ts";

/** Whether a node may answer. It is asked again before answers leave: the thread may have stood still. */
export interface Gate {
  mayServe(): boolean;
  /** Whether all of the node's memory can be read: a verb does not say of which partition it reads. */
  readonly isWhole: boolean;
}

export interface Shared {
  readonly self: NodeId;
  /** Names this endpoint as long as it is open. */
  readonly instance: string;
  readonly counters: FabricCounters;
  readonly scratch: Scratch;
  readonly spares: SpareFrames;
  configurationId: ConfigurationId;
  /** Without one, all is answered. */
  readonly gate?: Gate | undefined;
}
