/** What all connections of an endpoint share, over whichever fabric. */

import type { ConfigurationId, FabricCounters, NodeId } from "../fabric.ts";
import type { Scratch } from "../frames.ts";
import type { SpareFrames } from "./spare-frames.ts";

export interface Shared {
  readonly self: NodeId;
  /** Names this endpoint as long as it is open. */
  readonly instance: string;
  readonly counters: FabricCounters;
  readonly scratch: Scratch;
  readonly spares: SpareFrames;
  configurationId: ConfigurationId;
}
